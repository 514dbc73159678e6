"""How much longer this machine takes than the machine on which budgets and prices were measured.

Machines differ by two, and busy neighbours make a machine three to five times slower for hours. A run beyond its limit
of time counts for nothing, so a plan has to know.
"""

from __future__ import annotations

import time
from typing import Final

__all__ = ["LOOP_S", "MOST", "loop_s", "slowness"]

LOOP_S: Final = 0.0042  # the loop of `loop_s` on the machine on which the suite was sorted, November 2026
MOST: Final = 3.0  # chosen: three times 1,800 s are the 90 minutes beyond which a run counts for nothing


def loop_s(times: int = 3) -> float:
    """CPU seconds of a fixed piece of work on this machine, now: the least of some times."""
    least_s = 1.0
    for _ in range(times):
        started_s = time.process_time()
        total = 0
        for number in range(100_000):
            total += number * number % 7
        least_s = min(least_s, time.process_time() - started_s)
    return least_s


def slowness(times: int = 20) -> float:
    """Times as long as on the machine of `LOOP_S`, 1 to `MOST`: budgets never shrink.

    The loop alone was seen to take five times as long where whole steps took twice as long.
    """
    return min(MOST, max(1.0, loop_s(times) / LOOP_S))
