"""The event heap: a simulation clock that jumps between events.

It belongs to the reference engine.
Source: `docs/models/packet-engine.md`, section Time. Leaves out: what the events do.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from weftwork.engine.reference.clock import Phase

__all__ = ["EventHeap"]

EVENTS_PER_TURN: Final = 10_000  # chosen: some tenths of a second


class Watch(Protocol):
    """Periodic check of a run."""

    @property
    def at_ps(self) -> int:
        """Instant of the next check."""

    def look(self, next_ps: int) -> bool:
        """Check before anything happens at that instant or later.

        Returns whether the run ends.
        """


class EventHeap:
    """A `Clock` that advances after all earlier events are handled.

    Attributes
    ----------
    now_ps : instant of the event that is handled, or of the last one
    """

    def __init__(self) -> None:
        self.now_ps = 0
        self._events: list[tuple[int, Phase, tuple[int, ...], int, Callable[..., None], tuple[object, ...]]] = []
        self._serial = 0

    def __bool__(self) -> bool:
        return bool(self._events)

    def at(
        self, at_ps: int, phase: Phase, identity: tuple[int, ...], action: Callable[..., None], *arguments: object
    ) -> None:
        """Call an action at an instant, in the documented order.

        docs/models/packet-engine.md has the order of one instant.
        """
        self._serial += 1
        heapq.heappush(self._events, (at_ps, phase, identity, self._serial, action, arguments))

    def pending(self) -> Iterator[tuple[Phase, tuple[int, ...]]]:
        """Phase and identity of every future event, unordered.

        Events that mean nothing any more are among them.
        """
        return ((phase, identity) for _, phase, identity, *_ in self._events)

    def run(
        self,
        until_ps: int,
        on_turn: Callable[[], None] | None = None,
        watch: Watch | None = None,
    ) -> None:
        """Handle events before an instant.

        Parameters
        ----------
        until_ps : the instant
        on_turn : called now and then
        watch : looks before an event that comes no earlier than its instant; ends the run if it returns True
        """
        events, handled = self._events, 0
        while events:
            next_ps = events[0][0]
            if watch is not None and watch.at_ps <= next_ps and watch.look(min(next_ps, until_ps - 1)):
                return
            if next_ps >= until_ps:
                break
            self.now_ps, _, _, _, action, arguments = heapq.heappop(events)
            action(*arguments)
            handled += 1
            if on_turn is not None and handled % EVENTS_PER_TURN == 0:
                on_turn()
        if events:
            self.now_ps = until_ps
