"""Completion queues, and channels that announce new completions.

Source: IBTA vol. 1, 11.4.2 (poll, request notification), by the names of rdma-core's libibverbs.
Leaves out: timestamps.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from weftwork.base.errors import UsageError
from weftwork.base.grammar import plural
from weftwork.rdma.verbs import Wc, WcStatus

__all__ = ["CompletionChannel", "CompletionQueue"]


class CompletionChannel:
    """Completion queues with new completions, in the order of arrival.

    Only queues that have asked for notification count.
    """

    def __init__(self) -> None:
        self._events: deque[CompletionQueue] = deque()

    def get_event(self) -> CompletionQueue | None:
        """Take the next queue with completions, or None."""
        return self._events.popleft() if self._events else None

    def notify(self, queue: CompletionQueue) -> None:
        """Note that a queue has completions."""
        self._events.append(queue)


class CompletionQueue:
    """Work completions in order of arrival.

    Parameters
    ----------
    cqe : most completions that it holds; one more overruns it
    channel : told of completions after `request_notify`

    Attributes
    ----------
    is_overrun : a completion was lost; every queue pair that completes here goes to ERR
    """

    def __init__(self, cqe: int, channel: CompletionChannel | None = None) -> None:
        self.cqe = cqe
        self.channel: Final = channel
        self.is_overrun = False
        self._entries: deque[Wc] = deque()
        self._wants: str | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def poll(self, most: int = 1) -> list[Wc]:
        """Take up to ``most`` completions."""
        return [self._entries.popleft() for _ in range(min(most, len(self._entries)))]

    def resize(self, cqe: int) -> None:
        """Change the number of completions that it holds; UsageError below those that wait in it."""
        if cqe < len(self._entries):
            raise UsageError(f"cqe: found {cqe}, wanted room for {plural(len(self._entries), 'completion')}")
        self.cqe = cqe

    def discard(self, qp_num: int) -> None:
        """Forget the completions of a queue pair."""
        kept = [wc for wc in self._entries if wc.qp_num != qp_num]
        self._entries.clear()
        self._entries.extend(kept)

    def request_notify(self, *, solicited_only: bool = False) -> None:
        """Notify the channel once, at the next completion.

        It may be limited to solicited or failed completions.
        """
        self._wants = "solicited" if solicited_only and self._wants != "any" else "any"

    def add(self, wc: Wc) -> None:
        """Take a completion from a queue pair."""
        if len(self._entries) >= self.cqe:
            self.is_overrun = True
            return
        self._entries.append(wc)
        if self._wants == "any" or (self._wants and (wc.solicited or wc.status is not WcStatus.SUCCESS)):
            self._wants = None
            if self.channel is not None:
                self.channel.notify(self)
