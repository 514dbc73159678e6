"""Wait time that a receiver without receive buffer asks for.

Its sender waits.
Source: IBTA vol. 1, 9.7.5.2.8, as encoded in ib_rvt_rnr_table in Linux drivers/infiniband/sw/rdmavt/qp.c.
Leaves out: how often a sender tries again.
"""

from __future__ import annotations

from typing import Final

from weftwork.wire.fields import check_fits

__all__ = ["RNR_TIMERS_US", "rnr_timer_us"]

RNR_TIMERS_US: Final = (
    *(655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1_280, 1_920),
    *(2_560, 3_840, 5_120, 7_680, 10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880),
    *(163_840, 245_760, 327_680, 491_520),
)


def rnr_timer_us(code: int) -> int:
    """Microseconds of a 5-bit timer code; UsageError beyond five bits.

    Examples
    --------
    >>> rnr_timer_us(0), rnr_timer_us(1), rnr_timer_us(31)
    (655360, 10, 491520)
    """
    check_fits("code", code, 5)
    return RNR_TIMERS_US[code]
