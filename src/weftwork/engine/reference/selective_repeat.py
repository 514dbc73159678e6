"""What a sender under selective repeat knows of its packets: which ones the receiver keeps, and which ones are lost.

Source: `docs/models/packet-engine.md`, section Selective repeat.
Leaves out: when a packet may be sent, see `sender`.
"""

from __future__ import annotations

__all__ = ["Scoreboard"]


class Scoreboard:
    """State by the names of the page: ``sacked``, ``lost_below``, ``next_lost``."""

    def __init__(self) -> None:
        self.sacked: set[int] = set()
        self.lost_below = 0
        self.next_lost = 0

    def first_lost(self, una: int) -> int | None:
        """The packet that has to be sent again next."""
        candidates = range(max(una, self.next_lost), self.lost_below)
        return next((packet for packet in candidates if packet not in self.sacked), None)

    def advance(self, una: int) -> None:
        """Forget what is acknowledged."""
        self.sacked = {packet for packet in self.sacked if packet >= una}
        self.next_lost = max(self.next_lost, una)

    def keeps(self, packet: int, threshold_packets: int) -> None:
        """The receiver has told that it keeps ``packet``: what it has overtaken by more than a threshold is lost."""
        self.sacked.add(packet)
        self.lost_below = max(self.lost_below, packet - threshold_packets)

    def lose_all(self, una: int, nxt: int) -> None:
        """Nothing has come back for a whole timeout, or all that is under way is given up: send it again."""
        self.lost_below = nxt
        self.next_lost = una
