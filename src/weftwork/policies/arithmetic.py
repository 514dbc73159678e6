"""Mathematical functions of compiled steps; they fail where Python's fail.

A compiled step calls them in place of Python's functions. Numba's own return NaN or infinity, or an undefined integer,
where ``math`` raises; everything else is the same to the bit, since both call the C library. Leaves out: what Python
and Numba round differently (powers, cube roots).
"""

from __future__ import annotations

import math
from math import inf, pi
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

__all__ = ["OPTIONS", "ceil", "exp", "floor", "inf", "integer", "log", "pi", "sqrt"]

# Python's divisions, bounds of arrays as Python's lists check them, no reordering of sums.
OPTIONS: Any = {"error_model": "python", "boundscheck": True, "fastmath": False}
_LIMIT = 9223372036854775808.0  # 2**63


@njit(**OPTIONS)
def sqrt(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """``math.sqrt``."""
    if x < 0:
        raise ValueError("math domain error")
    return math.sqrt(x)


@njit(**OPTIONS)
def log(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """``math.log`` of one argument."""
    if x <= 0:
        raise ValueError("math domain error")
    return math.log(x)


@njit(**OPTIONS)
def exp(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """``math.exp``."""
    value = math.exp(x)
    if value == inf and x != inf:
        raise OverflowError("math range error")
    return value


def integer(x: Any) -> int:  # noqa: ANN401
    """``int``: round towards zero.

    Numba compiles the overload below.
    """
    return int(x)


@overload(integer, jit_options=OPTIONS)
def _integer(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    if not isinstance(x, types.Float):
        return lambda x: int(x)  # noqa: PLW0108 - Numba inlines a function, not a type

    def from_float(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        if x != x:  # noqa: PLR0124 - true for NaN alone
            raise ValueError("cannot convert float NaN to integer")
        if not -_LIMIT <= x < _LIMIT:
            raise OverflowError("the number does not fit 64 bits")
        return int(x)

    return from_float


@njit(**OPTIONS)
def floor(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """``math.floor``."""
    return integer(np.floor(float(x)))


@njit(**OPTIONS)
def ceil(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """``math.ceil``."""
    return integer(np.ceil(float(x)))
