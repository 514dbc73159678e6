"""Simulated time in picoseconds, and the time that bytes take on a line.

Times are int64 counts. One rule turns bytes into time. At 400 Gb/s a byte takes exactly 20 ps, so rounding never
decides who comes first; int64 lasts 106 days.
"""

from __future__ import annotations

__all__ = ["MS_PS", "NEVER_PS", "NS_PS", "SECOND_PS", "US_PS", "serialisation_ps", "whole_ps"]

NS_PS = 1_000
US_PS = 1_000_000
MS_PS = 1_000_000_000
SECOND_PS = 1_000_000_000_000
# chosen: a quarter of the range of int64, so that a sum of two instants cannot overflow
NEVER_PS = (2**63 - 1) // 4


def whole_ps(time_ps: float) -> int:
    """Round a duration to simulated time, at most `NEVER_PS`.

    Examples
    --------
    >>> whole_ps(2.6), whole_ps(float("inf")) == whole_ps(float("nan")) == NEVER_PS
    (3, True)
    """
    return round(time_ps) if time_ps < NEVER_PS else NEVER_PS  # also a difference of two that have no end


def serialisation_ps(size_bytes: int, rate_bps: int) -> int:
    """Time that ``size_bytes`` occupy a line, rounded up to a picosecond.

    Both engines, pacing and the closed forms use this rule; Python's integers make the product exact.

    Parameters
    ----------
    size_bytes : bytes on the line, zero or more
    rate_bps : bits per second, above zero

    Returns
    -------
    picoseconds

    Examples
    --------
    >>> serialisation_ps(4096, 400_000_000_000)
    81920
    >>> serialisation_ps(1, 3_000_000_000_000)
    3
    """
    return -(-size_bytes * 8 * SECOND_PS // rate_bps)
