"""Packet order of one queue pair direction, as seen by a listener.

Source: IBTA vol. 1, 9.7.1 (the circle of PSNs) and 9.7.3.1 (a READ takes the PSNs of its responses).
Leaves out: unreliable datagrams, whose PSNs count per sender and say nothing about a receiver.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from weftwork.wire.ib import psn_add, psn_compare

__all__ = ["PATH_MTUS_BYTES", "PsnOrder", "Verdict"]

PATH_MTUS_BYTES: Final = (256, 512, 1024, 2048, 4096)  # enum ib_mtu in Linux ib_verbs.h
_MOST_KEPT: Final = 1 << 18  # chosen: missing PSNs of a flow, so that a made-up capture takes megabytes at most
_MOST_MISSING: Final = 1 << 14  # chosen: a jump beyond it is a new conversation rather than a loss


class Verdict(Enum):
    """Verdict about the PSN of a packet."""

    IN_ORDER = "in order"
    GAP = "gap"  # PSNs before it have not been seen
    SENT_AGAIN = "sent again"  # seen before, or asked for by a NAK
    LATE = "late"  # not seen before, though later ones were
    NEW_START = "new start"  # too far from what came before


class PsnOrder:
    """The seen PSNs: the highest number, and a set of missing PSNs.

    Invariant: no missing PSN is at or ahead of ``expected``.
    """

    def __init__(self) -> None:
        self.expected: frozenset[int] = frozenset()
        self.missing: set[int] = set()
        self.asked: tuple[int, int] | None = None
        self.first: int | None = None

    @property
    def last(self) -> int | None:
        """Highest PSN of the packets so far; None before the first."""
        return None if not self.expected else psn_add(min(self.expected, key=self._ahead), -1)

    def start(self, psn: int) -> None:
        """Expect this PSN first, as agreed by both ends."""
        self.first = psn
        self.expected = frozenset({psn})
        self.missing.clear()
        self.asked = None

    def forget(self) -> None:
        """Expect any PSN next, because an unknown number of packets went by."""
        self.expected = frozenset()
        self.missing.clear()
        self.asked = None

    def skip_to(self, psn: int) -> None:
        """Expect this PSN next; earlier PSNs are not missing."""
        self.first = psn if self.first is None else self.first
        self.expected = frozenset({psn})

    def narrow(self, psn: int) -> None:
        """Expect only this PSN out of several possible PSNs."""
        if psn in self.expected:
            self.expected = frozenset({psn})

    def nak(self, psn: int) -> None:
        """Note a request for all packets from this PSN on.

        It is for those up to the last that was sent by now.
        """
        self.asked = psn, self.last if self.last is not None else psn

    def see(self, psn: int, psns: frozenset[int] = frozenset({1})) -> tuple[Verdict, int]:
        """Take a packet.

        Parameters
        ----------
        psn : of the packet
        psns : how many PSNs it may take; several values where a READ was asked for and the path MTU is not known

        Returns
        -------
        the verdict, and how many more PSNs are missing than before: -1 where the packet is one of them
        """
        following = frozenset(psn_add(psn, count) for count in psns)
        if not self.expected:
            self.first = psn
            self.expected = following
            return Verdict.IN_ORDER, 0
        if psn in self.expected:
            self.expected = following
            return Verdict.IN_ORDER, 0
        nearest = min(self.expected, key=self._ahead)
        ahead = psn_compare(psn, nearest)
        if abs(ahead) > _MOST_MISSING:
            self.start(psn)
            self.expected = following
            return Verdict.NEW_START, 0
        if ahead > 0:
            # of several values that a READ may have taken, the largest leaves the fewest PSNs to be missing
            begin = max((one for one in self.expected if psn_compare(psn, one) > 0), key=self._ahead)
            if len(self.missing) > _MOST_KEPT:
                self.missing.clear()
            self.missing.update(psn_add(begin, step) for step in range(psn_compare(psn, begin)))
            self.expected = following
            return Verdict.GAP, psn_compare(psn, begin)
        if psn not in self.missing:
            return Verdict.SENT_AGAIN, 0
        self.missing.discard(psn)
        return (Verdict.SENT_AGAIN if self._is_asked(psn) else Verdict.LATE), -1

    def _is_asked(self, psn: int) -> bool:
        return self.asked is not None and psn_compare(psn, self.asked[0]) >= 0 >= psn_compare(psn, self.asked[1])

    def _ahead(self, psn: int) -> int:
        # relative to the first PSN that is known to be free, so that a wrap changes nothing
        return psn_compare(psn, next(iter(self.expected)))
