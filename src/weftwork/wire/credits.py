"""Credits of a reliable connection: posted receives of the responder.

Five bits of an ACK carry them.
Source: IBTA vol. 1, table 45; credit_table in Linux drivers/infiniband/sw/rdmavt/rc.c.
Leaves out: when a responder announces credits.
"""

from __future__ import annotations

from bisect import bisect_right

from weftwork.base.errors import UsageError
from weftwork.wire.fields import check_fits

__all__ = ["CREDITS_BY_CODE", "NO_CREDIT_COUNT", "code_to_credits", "credits_to_code"]

# IBTA vol. 1, table 45; credit_table in Linux drivers/infiniband/sw/rdmavt/rc.c. Each step is a half or a third more.
CREDITS_BY_CODE = (
    *(0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192),
    *(256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768),
)
NO_CREDIT_COUNT = 31  # IBTA vol. 1, table 45: the responder counts no credits, the requester need not either


def credits_to_code(credit_count: int) -> int:
    """Largest code for at most ``credit_count`` receives.

    UsageError for a negative count.

    Examples
    --------
    >>> credits_to_code(5), credits_to_code(6), credits_to_code(1_000_000)
    (4, 5, 30)
    """
    if credit_count < 0:
        raise UsageError(f"credit_count: found {credit_count}, wanted zero or more")
    return bisect_right(CREDITS_BY_CODE, credit_count) - 1


def code_to_credits(code: int) -> int | None:
    """Receives of a credit code; None for code 31, which means no count.

    UsageError beyond five bits.
    """
    check_fits("code", code, 5)
    return None if code == NO_CREDIT_COUNT else CREDITS_BY_CODE[code]
