"""Timers of policies at both ends of a queue pair.

The state of a policy's step sets them.
Source: `docs/models/packet-engine.md`, the agenda of kinds 3 and 4. Leaves out: the retransmission timer, which is the
transport's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weftwork.engine.reference.clock import Agenda, Clock, Phase
from weftwork.policies.interface import OFF, TIMERS
from weftwork.policies.load import LoadedPolicy
from weftwork.policies.standing_timers import MOST_FIRINGS, due_timers

__all__ = ["PolicyTimers"]


class PolicyTimers:
    """Watches ``state.timer_at_ps`` and calls ``fire(timer)``.

    It calls when a timer is due, after it has been set OFF. ``fire`` calls the step, and then `schedule` before
    anything else.

    Parameters
    ----------
    clock : what time it is
    kind : of the agenda
    state : of the policy
    fire : called with the number of the timer
    policy : that owns the step
    first : number of the first timer in the agenda, where two policies share a slot
    """

    def __init__(
        self,
        clock: Clock,
        kind: Agenda,
        state: Any,  # noqa: ANN401 - the class is the policy's
        fire: Callable[[int], None],
        policy: LoadedPolicy,
        *,
        first: int = 0,
    ) -> None:
        self.clock = clock
        self.kind = kind
        self.state = state
        self.fire = fire
        self.first = first
        self.policy = policy
        self.fired_at_ps = OFF
        self.firings = 0  # at that instant
        self.due_before: frozenset[int] | None = None  # the step, where it may set no timer to this instant any more
        self.place = (OFF, OFF)  # port and slot; the agenda's events of another place mean nothing
        self.events: list[tuple[int, tuple[int, int]] | None] = [None] * TIMERS  # latest of each timer: instant, place
        self.stop()

    def stop(self) -> None:
        """Set all timers OFF; scheduled events then do nothing."""
        for timer in range(TIMERS):
            self.state.timer_at_ps[timer] = OFF

    def schedule(self, port: int, slot: int) -> None:
        """Schedule the timers that a step has just set.

        They also go on at a new port and slot.
        """
        self.place = (port, slot)
        if self.due_before is not None:
            self.policy.refuse_standing(self.state, self.due_before, self.clock.now_ps)
            self.due_before = None
        for timer in range(TIMERS):
            at_ps = int(self.state.timer_at_ps[timer])
            if at_ps == OFF:
                continue
            due_ps = max(at_ps, self.clock.now_ps)
            event = (due_ps, self.place)
            if self.events[timer] != event:
                self.events[timer] = event
                identity = (self.kind, port, slot, self.first + timer)
                self.clock.at(due_ps, Phase.AGENDA, identity, self._wake, timer, self.place)

    def _wake(self, timer: int, place: tuple[int, int]) -> None:
        now_ps = self.clock.now_ps
        if self.events[timer] == (now_ps, place):
            self.events[timer] = None
        at_ps = int(self.state.timer_at_ps[timer])
        if place != self.place or at_ps == OFF or at_ps > now_ps:
            return  # the queue pair has another port, or the timer has been moved or switched off
        self.state.timer_at_ps[timer] = OFF
        self.firings = self.firings + 1 if self.fired_at_ps == now_ps else 1
        self.fired_at_ps = now_ps
        if self.firings > MOST_FIRINGS:
            self.due_before = due_timers(self.state, now_ps)
        self.fire(timer)
