"""Detect a timer that is set to its own firing instant each time.

Simulated time would stand still. Both engines count the firings of a queue pair's end at one instant; the native one in
``native/packet/timers.hpp``.
Leaves out: timers that are set a little later each time, which only make a run slow.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, Final

from weftwork.base.errors import PolicyError
from weftwork.policies.interface import OFF, TIMERS
from weftwork.policies.layout import place_of

__all__ = ["MOST_FIRINGS", "due_timers", "refuse_standing"]

MOST_FIRINGS: Final = 10_000  # chosen: no policy needs as many at one instant, and they take less than a second


def due_timers(state: Any, now_ps: int) -> frozenset[int]:  # noqa: ANN401 - the class is the policy's
    """Timers of a sender's or receiver's state that fire at an instant."""
    return frozenset(timer for timer in range(TIMERS) if OFF != state.timer_at_ps[timer] <= now_ps)


def refuse_standing(file: str, state: Any, before: AbstractSet[int], now_ps: int) -> None:  # noqa: ANN401
    """Refuse timers that are set to the present or the past.

    It is called beyond the most firings at one instant.

    Parameters
    ----------
    file : of the policy, for a timer that no line has set
    state : after the step
    before : timers that were due before the step
    now_ps : the instant

    Raises
    ------
    PolicyError : there is such a timer; with the line that has set it
    """
    for timer in sorted(due_timers(state, now_ps) - before):
        text = (
            f"timer_at_ps[{timer}] became {state.timer_at_ps[timer]}, which is not after signal.now_ps, {now_ps};"
            f" timers have fired {MOST_FIRINGS:,} times at this instant, and time would stand still;"
            " set it to a later instant, or to OFF"
        )
        raise PolicyError(*(place_of(state, "timer_at_ps", timer) or (file, 1)), text)
