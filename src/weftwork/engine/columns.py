"""Arrays in the form that the native core borrows and returns."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["column", "fields_of", "single"]


def column(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous, one-dimensional array.

    Numbers stay as they are; records become bytes, whose layout ``_native.records`` tells.

    Parameters
    ----------
    array : of numbers or of records, of any shape
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8) if flat.dtype.names else flat


def single(rows: NDArray[np.void]) -> dict[str, int]:
    """The only row of a table of whole numbers, by the names of its fields.

    Parameters
    ----------
    rows : shape (1,)
    """
    return {name: int(rows[name][0]) for name in rows.dtype.names or ()}


def fields_of(owner: type, row: np.void) -> dict[str, Any]:
    """Numbers of a row that a dataclass has under the same names.

    Parameters
    ----------
    owner : a dataclass, such as the settings of a part of the reference engine
    row : of a structured array
    """
    names = row.dtype.names or ()
    return {each.name: row[each.name].item() for each in dataclasses.fields(owner) if each.name in names}
