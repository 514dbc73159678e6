"""Link credits at one port: permitted bytes, and owed credit.

A class may send the permitted bytes, and owes the credit to the far end. It belongs to the reference engine.
Source: `docs/models/packet-engine.md`, section Credits between links; lanes and credits as InfiniBand has them (IBTA
vol. 1, 7.9). Leaves out: how much room there is, see `weftwork.engine.credits`; the frames that carry credit, which are
the port's.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["LinkCredits"]


class LinkCredits:
    """Both directions of the link at a port, by class.

    Each class is a separate lane.

    Parameters
    ----------
    room_ahead_bytes : of each lane behind the far end's port
    quantum_bytes : what is owed goes back when it is so much
    classes : how many lanes a direction has

    Attributes
    ----------
    credit_bytes : that the port may send
    used_bytes : that came in by the port and are still in its node
    owed_bytes : that have left the node, and that no frame has told the far end yet
    """

    def __init__(self, room_ahead_bytes: int, quantum_bytes: int, classes: int) -> None:
        self.room_ahead_bytes = room_ahead_bytes
        self.quantum_bytes = quantum_bytes
        self.credit_bytes = [room_ahead_bytes] * classes
        self.used_bytes = [0] * classes
        self.owed_bytes = [0] * classes

    def owe(self, traffic_class: int, size_bytes: int) -> int:
        """Note credit that goes back to the far end later.

        Returns the credit that a frame has to tell it now, or 0.
        """
        self.owed_bytes[traffic_class] += size_bytes
        if self.owed_bytes[traffic_class] < self.quantum_bytes:
            return 0
        due_bytes, self.owed_bytes[traffic_class] = self.owed_bytes[traffic_class], 0
        return due_bytes

    def restart(self, used_ahead_bytes: Sequence[int]) -> None:
        """Restart after the link was down.

        The used bytes behind the far end's port are given by class.
        """
        self.credit_bytes = [self.room_ahead_bytes - used_bytes for used_bytes in used_ahead_bytes]
        self.owed_bytes = [0] * len(self.owed_bytes)
