"""Members of enumerations as names of their module, as Cython exports them.

Source: Cython, ``cpdef enum``.
Leaves out: nothing.
"""

from __future__ import annotations

from enum import Enum, EnumMeta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["members_of"]


def members_of(names: Mapping[str, object]) -> dict[str, Enum]:
    """Members of all enumerations among the names of a module."""
    found: dict[str, Enum] = {}
    for kind in names.values():
        if isinstance(kind, EnumMeta):
            found.update(kind.__members__)
    return found
