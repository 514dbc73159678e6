"""Sender state of selective repeat: packets kept by the receiver, and lost packets.

Source: `docs/models/packet-engine.md`, section Selective repeat.
Leaves out: when a packet may be sent, see `sender`.
"""

from __future__ import annotations

__all__ = ["Scoreboard"]


class Scoreboard:
    """State of selective repeat, with the names of docs/models/packet-engine.md.

    They are ``sacked``, ``lost``, ``judged_below``, ``resent``.
    """

    def __init__(self) -> None:
        self.sacked: set[int] = set()
        self.lost: set[int] = set()
        self.judged_below = 0
        self.resent: list[tuple[int, int]] = []

    @property
    def first_lost(self) -> int | None:
        """The next packet to retransmit."""
        return min(self.lost, default=None)

    @property
    def away(self) -> set[int]:
        """Sent packets that are not in flight."""
        return self.sacked | self.lost

    def advance(self, una: int) -> None:
        """Forget acknowledged packets."""
        self.sacked = {packet for packet in self.sacked if packet >= una}
        self.lost = {packet for packet in self.lost if packet >= una}

    def keeps(self, packet: int, *, una: int, threshold_packets: int) -> set[int]:
        """Note that the receiver keeps ``packet``.

        Packets that it has overtaken by more than a threshold are lost. Returns the packets that are lost since now.
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
        """Note that a switch has cut ``packet``.

        Returns whether it is newly lost.
        """
        if not una <= packet < nxt or packet in self.away:
            return False
        self.lost = self.lost | {packet}
        self.resent = [(again, mark) for again, mark in self.resent if again != packet]
        return True

    def sends_again(self, packet: int, nxt: int) -> None:
        """Note the retransmission of a lost packet.

        Packets from ``nxt`` on are sent after it.
        """
        self.lost.remove(packet)
        self.resent.append((packet, nxt))

    def lose_all(self, una: int, nxt: int) -> set[int]:
        """Treat all packets in flight as lost.

        Nothing has come back for a whole timeout, or they are given up. Returns the packets that are lost since now.
        """
        before = self.lost
        self.lost = set(range(una, nxt)) - self.sacked
        self.judged_below = nxt
        self.resent = []
        return self.lost - before
