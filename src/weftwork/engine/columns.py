"""Arrays in the form that the native core borrows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["column"]


def column(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous, one-dimensional array.

    Numbers stay as they are; records become bytes, whose layout ``_native.records`` tells.

    Parameters
    ----------
    array : of numbers or of records, of any shape
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8) if flat.dtype.names else flat
