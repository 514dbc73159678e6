"""What both ends of a queue pair of the reference engine know: identity, messages and the path between them.

Source: `docs/models/packet-engine.md`, sections Packets, Queue pairs and Base RTT.
Leaves out: what either end does, see `sender` and `receiver`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from weftwork.base.clock import serialisation_ps
from weftwork.base.random import Stream, draw
from weftwork.engine.reference.message import Inbox, Message
from weftwork.engine.reference.port import Packet, PacketKind
from weftwork.engine.reference.receiver import Receiver
from weftwork.engine.reference.sender import Sender

if TYPE_CHECKING:
    from weftwork.engine.reference.job import RankStream
    from weftwork.engine.reference.port import Port
    from weftwork.engine.reference.simulation import Simulation

__all__ = ["QueuePair"]

FIRST_ENTROPY: Final = 0xC000  # the dynamic ports of RFC 6335, section 6


class QueuePair:
    """One (source, destination, channel) between two hosts.

    Attributes
    ----------
    source_port, destination_port : NIC ports at both ends, from `open` on
    sender : from `open` on
    column, peer_rail : of the first SEND
    """

    def __init__(self, simulation: Simulation, source: int, destination: int, channel: int) -> None:
        plan = simulation.plan
        self.simulation = simulation
        self.source = source
        self.destination = destination
        self.channel = channel
        self.flow = source << 40 | destination << 16 | channel
        self.entropy = FIRST_ENTROPY | draw(plan.seed, Stream.PATH_CHOICE, self.flow, 0, 0) & 0x3FFF
        self.number = draw(0, Stream.PATH_CHOICE, self.flow, 1, 0) & 0xFFFFFF
        self.mtu_bytes = plan.transport.mtu_bytes
        self.messages: list[Message] = []
        self.inbox = Inbox(simulation)
        self._firsts: list[int] = []
        self.column = 0
        self.peer_rail = False
        self.source_port: Port
        self.destination_port: Port
        self.base_rtt_ps = 0
        self.sender: Sender | None = None
        self.receiver = Receiver(self)

    def open(self, column: int, *, peer_rail: bool) -> Sender:
        """Take the ports of a column of `Plan.rank_ports`, or of the next that works: the first SEND does."""
        self.column, self.peer_rail = column, peer_rail
        self.source_port, self.destination_port = self._ports_that_work() or self._ports_of(column)
        self.base_rtt_ps = self._base_rtt_ps()
        self.sender = Sender(self)
        return self.sender

    def fail_over(self) -> bool:
        """Change to ports that work, if there are any; returns whether they are others than before."""
        before = (self.source_port, self.destination_port)
        after = self._ports_that_work() or before
        if self.sender is None or after == before:
            return False
        self.sender.leave()
        self.source_port, self.destination_port = after
        self.sender.move_in()
        self.receiver.move_in()
        return True

    def _ports_that_work(self) -> tuple[Port, Port] | None:
        """Of the first column, from that of the first SEND on, whose ports both were up at the last FAILOVER."""
        columns = self.simulation.plan.rank_ports.shape[1]
        choices = [self._ports_of((self.column + step) % columns) for step in range(columns)]
        return next((ports for ports in choices if all(port.id not in self.simulation.down for port in ports)), None)

    def _ports_of(self, column: int) -> tuple[Port, Port]:
        ports, rank_ports = self.simulation.ports, self.simulation.plan.rank_ports
        source = ports[int(rank_ports[self.source, column])]
        destination = ports[int(rank_ports[self.destination, column])]
        if self.peer_rail:
            source = ports[source.id - source.local_index + destination.local_index]
        return source, destination

    def claim(self, stream: RankStream) -> bool:
        """Ask for the next message; returns whether it is there already."""
        is_there = self.inbox.claim(stream)
        if is_there:
            self.receiver.claimed()
        return is_there

    def packet(self, kind: PacketKind, *, seq: int, attempt: int, size_bytes: int, traffic_class: int) -> Packet:
        """A packet that is sent or queued now."""
        is_forward = kind in (PacketKind.DATA, PacketKind.PROBE)
        return Packet(
            queue_pair=self,
            origin=self.source_port if is_forward else self.destination_port,
            destination=self.destination_port if is_forward else self.source_port,
            kind=kind,
            seq=seq,
            attempt=attempt,
            size_bytes=size_bytes,
            traffic_class=traffic_class,
            entropy=self.entropy,
        )

    @property
    def end(self) -> int:
        """Packets posted."""
        return self.messages[-1].end if self.messages else 0

    def append(self, size_bytes: int, traffic_class: int, stream: RankStream) -> None:
        """Add a message: ``max(1, ceil(size / mtu))`` packets, the last one shorter."""
        first = self.end
        last = self.messages[-1] if self.messages else None
        message = Message(
            size_bytes=size_bytes,
            traffic_class=traffic_class,
            first=first,
            end=first + max(1, -(-size_bytes // self.mtu_bytes)),
            bytes_before=last.bytes_before + last.size_bytes if last else 0,
            posted_at_ps=self.simulation.now_ps,
            stream=stream,
        )
        self.messages.append(message)
        self._firsts.append(first)

    def ordinal_of(self, seq: int) -> int:
        """Of the message that packet ``seq`` belongs to."""
        return bisect_right(self._firsts, seq) - 1

    def message_of(self, seq: int) -> Message:
        """The message that packet ``seq`` belongs to."""
        return self.messages[self.ordinal_of(seq)]

    def bytes_before(self, seq: int) -> int:
        """Payload of all packets before ``seq``, which may be one past the last."""
        if not self.messages:
            return 0
        message = self.message_of(seq)
        return message.bytes_before + min(message.size_bytes, (seq - message.first) * self.mtu_bytes)

    def payload_bytes(self, first: int, end: int) -> int:
        """Of packets ``first`` to ``end - 1``."""
        return self.bytes_before(end) - self.bytes_before(first)

    def _base_rtt_ps(self) -> int:
        """There with a full data packet, back with an ACK, over the paths of first candidates; 0 without a route."""
        transport = self.simulation.plan.transport
        data_bytes = transport.mtu_bytes + transport.data_overhead_bytes + transport.telemetry_bytes
        there = self._one_way_ps(self.source_port, self.destination_port, data_bytes)
        back = self._one_way_ps(self.destination_port, self.source_port, transport.ack_bytes)
        return there + back if there and back else 0

    def _one_way_ps(self, origin: Port, target: Port, size_bytes: int) -> int:
        plan, table = self.simulation.plan, self.simulation.plan.routes[0]
        wire_bytes = size_bytes + plan.transport.interframe_bytes
        total_ps, port = 0, origin.id
        while True:
            total_ps += int(plan.port_delay_ps[port]) + serialisation_ps(wire_bytes, int(plan.port_rate_bps[port]))
            arrival = int(plan.port_peer[port])
            if arrival == target.id:
                return total_ps
            group = int(table.group_of[int(plan.port_node[arrival]), int(plan.attachment[target.id])])
            if group == -1 or int(plan.attachment[arrival]) >= 0:  # no route, or a host, which does not forward
                return 0
            port = target.peer_id if group < 0 else int(table.group_ports[int(table.group_ptr[group])])
