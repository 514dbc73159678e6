"""What a sender under selective repeat knows of its packets: which ones the receiver keeps, and which ones are lost.

Source: `docs/models/packet-engine.md`, section Selective repeat.
Leaves out: when a packet may be sent, see `sender`.
"""

from __future__ import annotations

__all__ = ["Scoreboard"]


class Scoreboard:
    """State by the names of the page: ``sacked``, ``lost``, ``judged_below``, ``resent``."""

    def __init__(self) -> None:
        self.sacked: set[int] = set()
        self.lost: set[int] = set()
        self.judged_below = 0
        self.resent: list[tuple[int, int]] = []

    @property
    def first_lost(self) -> int | None:
        """The packet that has to be sent again next."""
        return min(self.lost, default=None)

    @property
    def away(self) -> set[int]:
        """Packets that were sent and are not in flight."""
        return self.sacked | self.lost

    def advance(self, una: int) -> None:
        """Forget what is acknowledged."""
        self.sacked = {packet for packet in self.sacked if packet >= una}
        self.lost = {packet for packet in self.lost if packet >= una}

    def keeps(self, packet: int, *, una: int, threshold_packets: int) -> set[int]:
        """The receiver has told that it keeps ``packet``: what it has overtaken by more than a threshold is lost.

        Returns the packets that are lost since now.
        """
        before = self.lost
        self.sacked.add(packet)
        below = packet - threshold_packets
        overtaken = set(range(max(una, self.judged_below), below)) - {again for again, _ in self.resent}
        self.judged_below = max(self.judged_below, below)
        overtaken |= {again for again, mark in self.resent if mark <= below and again >= una}
        self.resent = [(again, mark) for again, mark in self.resent if mark > below]
        self.lost = (self.lost | overtaken) - self.sacked
        return self.lost - before

    def trims(self, packet: int, *, una: int, nxt: int) -> bool:
        """A switch has cut ``packet``; returns whether it is lost since now."""
        if not una <= packet < nxt or packet in self.away:
            return False
        self.lost = self.lost | {packet}
        self.resent = [(again, mark) for again, mark in self.resent if again != packet]
        return True

    def sends_again(self, packet: int, nxt: int) -> None:
        """A lost packet goes again; those from ``nxt`` on are sent after it."""
        self.lost.remove(packet)
        self.resent.append((packet, nxt))

    def lose_all(self, una: int, nxt: int) -> set[int]:
        """Nothing has come back for a whole timeout, or all that is under way is given up: send it again.

        Returns the packets that are lost since now.
        """
        before = self.lost
        self.lost = set(range(una, nxt)) - self.sacked
        self.judged_below = nxt
        self.resent = []
        return self.lost - before
