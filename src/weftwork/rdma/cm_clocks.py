"""Clocks of conversations: which one is due next.

Source: IBTA vol. 1, 12.9.8 (timeouts).
Leaves out: what a conversation does when its time is over.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Final, Protocol

__all__ = ["CmClocks", "CmTimed"]

_STALE_DEADLINES: Final = 64  # chosen: too few to be worth sorting out


class CmTimed(Protocol):
    """A conversation with a clock.

    Attributes
    ----------
    wait_ps : time to wait, or None without end
    deadline_ps : when the wait ends; None without end, or where it has not begun
    """

    wait_ps: int | None
    deadline_ps: int | None

    def on_timer(self) -> None:
        """Do what is due."""


class CmClocks:
    """Running clocks, in order of their deadlines."""

    def __init__(self) -> None:
        self._to_start: Final[dict[CmTimed, None]] = {}
        self._deadlines: list[tuple[int, int, CmTimed]] = []  # instant, number, and whose; its own instant counts
        self._numbers: Final = itertools.count()
        self._most = _STALE_DEADLINES

    def restart(self, conversation: CmTimed) -> None:
        """Restart a clock at the next `start`."""
        self._to_start[conversation] = None

    def stop(self, conversation: CmTimed) -> None:
        """Stop a clock."""
        conversation.deadline_ps = None
        self._to_start.pop(conversation, None)

    def start(self, now_ps: int) -> None:
        """Start all clocks that wait for it."""
        for conversation in self._to_start:
            if conversation.wait_ps is not None:
                conversation.deadline_ps = now_ps + conversation.wait_ps
                heapq.heappush(self._deadlines, (conversation.deadline_ps, next(self._numbers), conversation))
        self._to_start.clear()
        if len(self._deadlines) > self._most:  # most are of conversations that are over
            self._deadlines = [entry for entry in self._deadlines if entry[2].deadline_ps == entry[0]]
            heapq.heapify(self._deadlines)
            self._most = 2 * len(self._deadlines) + _STALE_DEADLINES

    def next_ps(self) -> int | None:
        """Next deadline, or None."""
        while self._deadlines:
            at_ps, _, conversation = self._deadlines[0]
            if conversation.deadline_ps == at_ps:
                return at_ps
            heapq.heappop(self._deadlines)
        return None

    def fire(self, now_ps: int) -> None:
        """Let all conversations whose time is over do what is due."""
        due_ps = self.next_ps()
        while due_ps is not None and due_ps <= now_ps:
            conversation = heapq.heappop(self._deadlines)[2]
            conversation.deadline_ps = None
            conversation.on_timer()
            due_ps = self.next_ps()
