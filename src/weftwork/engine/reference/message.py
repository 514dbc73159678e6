"""A message of the reference engine, and the inbox in which the receiving rank claims it.

Source: `docs/models/packet-engine.md`, section The job.
Leaves out: how the message gets there, see `queue_pair` and `server`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weftwork.policies.interface import OFF

if TYPE_CHECKING:
    from weftwork.engine.reference.job import RankStream
    from weftwork.engine.reference.simulation import Simulation

__all__ = ["Inbox", "Message"]


@dataclass(kw_only=True, slots=True)
class Message:
    """One message; between servers, packets ``first`` to ``end - 1`` of its queue pair carry it."""

    size_bytes: int
    posted_at_ps: int
    stream: RankStream
    delivered_at_ps: int = OFF
    acked_at_ps: int = OFF
    traffic_class: int = 0
    first: int = 0
    end: int = 0
    bytes_before: int = 0  # payload of all messages before it

    def acknowledged(self, now_ps: int) -> None:
        """Tell the sender that all of it has arrived."""
        self.acked_at_ps = now_ps
        self.stream.completed()


class Inbox:
    """What arrives of one (source, destination, channel): the n-th RECEIVE claims the n-th message.

    Attributes
    ----------
    delivered, receives : how many messages have arrived, and how many were asked for
    """

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.delivered = 0
        self.receives = 0
        self._waiting: dict[int, RankStream] = {}  # by the ordinal of the message

    @property
    def claimed(self) -> int:
        """Messages that have arrived and were asked for."""
        return min(self.receives, self.delivered)

    def claim(self, stream: RankStream) -> bool:
        """Ask for the next message; returns whether it is there already."""
        ordinal = self.receives
        self.receives += 1
        if ordinal < self.delivered:
            return True
        self._waiting[ordinal] = stream
        return False

    def deliver(self, message: Message) -> None:
        """Take a message that is there whole."""
        message.delivered_at_ps = self.simulation.now_ps
        self.simulation.delivered_bytes += message.size_bytes
        stream = self._waiting.pop(self.delivered, None)
        self.delivered += 1
        if stream is not None:
            stream.completed()
