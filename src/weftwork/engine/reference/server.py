"""Inside a server of the reference engine: NVLink and PCIe.

They carry the messages of its ranks in slices, not in packets.
Source: `docs/models/packet-engine.md`, section Inside a server.
Leaves out: packets, loss and congestion inside a server; memory and CPUs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum

from weftwork.base.clock import serialisation_ps
from weftwork.engine.reference.clock import Agenda, Clock, Phase
from weftwork.engine.reference.message import Inbox, Message

__all__ = ["Link", "ServerLane", "ServerLink"]


class Link(IntEnum):
    """The two links of a rank inside its server.

    Their number orders the agenda.
    """

    NVLINK = 0
    PCIE = 1


class ServerLink:
    """One link of one rank: an egress and an ingress.

    The egress serves its lanes in rotation, and slices take turns at the ingress.

    Attributes
    ----------
    lanes : in the order in which they were opened
    ingress_free_at_ps : when the ingress has taken what has been started towards it
    """

    def __init__(
        self, clock: Clock, rank: int, link: Link, *, rate_bps: int, latency_ps: int, slice_bytes: int
    ) -> None:
        self.clock = clock
        self.rank = rank
        self.link = link
        self.rate_bps = rate_bps
        self.latency_ps = latency_ps
        self.slice_bytes = slice_bytes
        self.lanes: list[ServerLane] = []
        self.last_served = -1  # the first lane is first
        self.is_busy = False
        self.ingress_free_at_ps = 0

    def start(self) -> None:
        """Start a slice of the next lane that has one, if idle.

        Lanes count from the lane served last; the egress must be idle.
        """
        if self.is_busy:
            return
        count = len(self.lanes)
        for step in range(1, count + 1):
            lane = self.lanes[(self.last_served + step) % count]
            if lane.queue:
                self.last_served = (self.last_served + step) % count
                self._start_slice(lane)
                return

    def _start_slice(self, lane: ServerLane) -> None:
        now_ps = self.clock.now_ps
        size_bytes, is_last = lane.take_slice(self.slice_bytes)
        self.is_busy = True
        left_at_ps = now_ps + serialisation_ps(size_bytes, self.rate_bps)
        self.clock.at(left_at_ps, Phase.AGENDA, (Agenda.EGRESS, self.rank, self.link), self._free)
        ingress = lane.ingress
        taken_from_ps = max(now_ps + self.latency_ps, ingress.ingress_free_at_ps)
        ingress.ingress_free_at_ps = taken_from_ps + serialisation_ps(size_bytes, ingress.rate_bps)
        if is_last:
            there_at_ps = max(ingress.ingress_free_at_ps, left_at_ps + self.latency_ps)
            self.clock.at(there_at_ps, Phase.AGENDA, (Agenda.DELIVERY, lane.destination), lane.deliver)

    def _free(self) -> None:
        self.is_busy = False
        self.start()


class ServerLane:
    """Messages of one (source, destination, channel) inside a server, first in first out.

    Parameters
    ----------
    source, destination, channel : its name
    egress, ingress : link of the source, and of the destination

    Attributes
    ----------
    queue : messages of which a slice has not been started
    messages : all of them
    """

    def __init__(
        self,
        clock: Clock,
        source: int,
        destination: int,
        channel: int,
        *,
        egress: ServerLink,
        ingress: ServerLink,
    ) -> None:
        self.clock = clock
        self.source = source
        self.destination = destination
        self.channel = channel
        self.egress = egress
        self.ingress = ingress
        self.messages: list[Message] = []
        self.inbox = Inbox(clock, self.messages)
        self.queue: deque[Message] = deque()
        self._left_bytes = 0  # of the head of the queue

    def post(self, size_bytes: int, completed: Callable[[], None]) -> None:
        """Take over a message; the first message opens the lane.

        ``completed`` is called when the message has arrived.
        """
        if not self.messages:
            self.egress.lanes.append(self)
        message = Message(size_bytes=size_bytes, posted_at_ps=self.clock.now_ps, completed=completed)
        self.messages.append(message)
        if not self.queue:
            self._left_bytes = size_bytes
        self.queue.append(message)
        self.egress.start()

    def claim(self, completed: Callable[[], None]) -> bool:
        """Ask for the next message; returns whether it is there already.

        Otherwise ``completed`` is called when it is.
        """
        return self.inbox.claim(completed)

    def take_slice(self, slice_bytes: int) -> tuple[int, bool]:
        """Size of the next slice, and whether it ends its message.

        The slice starts now.
        """
        size_bytes = min(slice_bytes, self._left_bytes)
        self._left_bytes -= size_bytes
        if self._left_bytes > 0:
            return size_bytes, False
        self.queue.popleft()
        if self.queue:
            self._left_bytes = self.queue[0].size_bytes
        return size_bytes, True

    def deliver(self) -> None:
        """Deliver the next message.

        A lane keeps its order, since an ingress does.
        """
        self.inbox.deliver().acknowledged(self.clock.now_ps)
