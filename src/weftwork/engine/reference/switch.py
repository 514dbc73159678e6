"""A switch of the reference engine: packets from arrival to departure.

Marks and scheduling belong to it.
Source: `docs/models/packet-engine.md`, section Switches; the scheduler is Shreedhar and Varghese's deficit round robin,
SIGCOMM 1995. Where a packet goes is in `port_choice`, whether there is room in `shared_buffer`.
Leaves out: cells, cut-through, multicast.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.random import Stream, uniform
from weftwork.engine.reference.clock import Clock
from weftwork.engine.reference.packet import HopTelemetry, Packet, PacketKind
from weftwork.engine.reference.path_load import PortLoad, code_of
from weftwork.engine.reference.port import Port
from weftwork.engine.reference.port_choice import PortChoice, PortChoiceConfig, WaysToEdges
from weftwork.engine.reference.shared_buffer import BufferConfig, SharedBuffer
from weftwork.policies.interface import HOPS
from weftwork.policies.load import LoadedPolicy

__all__ = ["Egress", "SwitchConfig", "SwitchNode"]

QUANTUM_BYTES: Final = 1_024  # of weight 1: `weftwork.spec.device.Scheduling`
_MOST_HOPS: Final = 255  # a TTL is a byte: RFC 791, section 3.1
_COUNTS_HOPS: Final = (PacketKind.DATA, PacketKind.REQUEST)  # whose count the receiver's step is told


@dataclass(frozen=True, kw_only=True, slots=True)
class SwitchConfig:
    """A switch as set by device, transport and fabric.

    Parameters
    ----------
    choice, buffer : what its port selection and its buffer see
    kmin_bytes, kmax_bytes : of ECN, by port id
    pmax, marks_at_dequeue : of ECN
    has_telemetry, telemetry_hop_bytes : whether it writes into data packets, and by how much that lengthens them
    path_load_ps : over which it smooths the loads that it writes into data packets; 0: it writes none
    trim_bytes, trim_class : frame of a packet that was cut, and the index of its class; 0 bytes: none is cut
    weights : by class index; 0: strict
    """

    choice: PortChoiceConfig
    buffer: BufferConfig
    kmin_bytes: dict[int, int]
    kmax_bytes: dict[int, int]
    pmax: float
    marks_at_dequeue: bool
    has_telemetry: bool
    path_load_ps: int
    telemetry_hop_bytes: int
    trim_bytes: int
    trim_class: int
    weights: tuple[int, ...]


class Egress:
    """Queues of one port by class, and the state of its deficit round robin."""

    def __init__(self, classes: int, first_weighted: int) -> None:
        self.queues: list[deque[Packet]] = [deque() for _ in range(classes)]
        self.queue_bytes = [0] * classes
        self.deficit_bytes = [0] * classes
        self.current = first_weighted

    def take(self, traffic_class: int) -> Packet:
        """Take the head packet of a queue.

        A class whose queue becomes empty loses its deficit.
        """
        packet = self.queues[traffic_class].popleft()
        self.queue_bytes[traffic_class] -= packet.size_bytes
        if not self.queues[traffic_class]:
            self.deficit_bytes[traffic_class] = 0
        return packet


class SwitchNode:
    """A switch, which forwards packets.

    Parameters
    ----------
    config : what it is
    clock : what time it is, for telemetry and the port selection
    ports : its own; it becomes their node by `Port.join`
    routes : where a packet may go
    selection : port selection, which chooses among several

    Attributes
    ----------
    buffer : that its ports share
    choice : of the port by which a packet leaves
    egress : by port id
    """

    def __init__(
        self, config: SwitchConfig, clock: Clock, ports: list[Port], routes: WaysToEdges, selection: LoadedPolicy
    ) -> None:
        self.config = config
        self.clock = clock
        self.ports = ports
        self._port_of = {port.id: port for port in ports}
        self.classes = len(config.weights)
        self.weighted = [c for c in range(self.classes) if config.weights[c] > 0]
        first_weighted = self.weighted[0] if self.weighted else 0
        self.buffer = SharedBuffer(config.buffer, [port.id for port in ports])
        self.egress = {port.id: Egress(self.classes, first_weighted) for port in ports}
        self.loads = {port.id: PortLoad() for port in ports}
        self.choice = PortChoice(config.choice, clock, ports, routes, selection, self._queue_bytes)

    def _queue_bytes(self, port: int, traffic_class: int) -> int:
        return self.egress[port].queue_bytes[traffic_class]

    # Arrival

    def receive(self, port: Port, packet: Packet) -> None:
        """Route, admit, pause, mark, enqueue.

        These are steps 2 to 6 of docs/models/packet-engine.md.
        """
        packet.ingress, packet.arrival_class = port.id, packet.traffic_class
        egress_port = self.choice.choose(port, packet)
        if egress_port is None:
            port.drop("no_route")
            port.free(packet.arrival_class, packet.size_bytes)
        elif not egress_port.is_up:
            egress_port.drop("link_down")
            port.free(packet.arrival_class, packet.size_bytes)
        elif self._admit(port, egress_port, packet):
            if not port.asked[packet.arrival_class] and self.buffer.wants_pause(port.id, packet.arrival_class):
                port.ask_pause(packet.arrival_class)
            egress = self.egress[egress_port.id]
            if not self.config.marks_at_dequeue:
                self._mark(egress_port, packet, egress.queue_bytes[packet.traffic_class])
            egress.queues[packet.traffic_class].append(packet)
            egress.queue_bytes[packet.traffic_class] += packet.size_bytes
            depth_bytes = egress.queue_bytes[packet.traffic_class]
            egress_port.counts["max_queue_bytes"] = max(egress_port.counts["max_queue_bytes"], depth_bytes)
            egress_port.start()

    def _admit(self, port: Port, egress_port: Port, packet: Packet) -> bool:
        """Admit a packet or its cut remainder, or drop it with a reason.

        Under credits there is always room.
        """
        if port.credits is not None:
            self._count_ingress(port, packet.arrival_class)
            return True
        reason = self._find_room(port, egress_port, packet)
        if reason is not None and self._may_cut(packet):
            self._cut(egress_port, packet)
            reason = self._find_room(port, egress_port, packet)
        if reason is not None:
            (egress_port if reason == "egress_threshold" else port).drop(reason)
            return False
        self._count_ingress(port, packet.arrival_class)
        return True

    def held_bytes(self, port: Port, traffic_class: int) -> int:
        """Held bytes of packets from a port and class."""
        if port.credits is not None:
            return port.credits.used_bytes[traffic_class]
        return self.buffer.ingress[port.id][traffic_class].held_bytes

    def _count_ingress(self, port: Port, traffic_class: int) -> None:
        held_bytes = self.held_bytes(port, traffic_class)
        port.counts["max_ingress_bytes"] = max(port.counts["max_ingress_bytes"], held_bytes)

    def _find_room(self, port: Port, egress_port: Port, packet: Packet) -> str | None:
        return self.buffer.admit(
            port.id,
            packet.arrival_class,
            packet.size_bytes,
            is_paused=port.asked[packet.arrival_class],
            queue_bytes=self.egress[egress_port.id].queue_bytes[packet.traffic_class],
        )

    def _may_cut(self, packet: Packet) -> bool:
        is_lossy_data = packet.kind == PacketKind.DATA and not self.config.buffer.lossless[packet.arrival_class]
        return is_lossy_data and not packet.is_cut and packet.size_bytes > self.config.trim_bytes > 0

    def _cut(self, egress_port: Port, packet: Packet) -> None:
        """Cut a packet to its headers, which have a class of their own."""
        packet.is_cut, packet.is_cut_at_last_hop = True, self.choice.is_last(packet)
        packet.size_bytes = self.config.trim_bytes
        packet.arrival_class = packet.traffic_class = self.config.trim_class
        packet.hops.clear()
        egress_port.count("trims")
        egress_port.counts["trims"] += 1

    # Departure

    def send_next(self, port: Port) -> None:
        """Start the packet that the scheduler chooses, if any."""
        egress = self.egress[port.id]
        has_credits = port.credits is not None
        ready = [
            c
            for c, queue in enumerate(egress.queues)
            if queue and not (port.is_held(c, self.head_bytes(port, c)) if has_credits else port.is_paused(c))
        ]
        if not ready:
            return
        c = self._schedule(egress, ready)
        packet = egress.take(c)
        arrival_bytes = packet.size_bytes
        if packet.kind in _COUNTS_HOPS:
            packet.hop_count = min(packet.hop_count + 1, _MOST_HOPS)
        if self.config.has_telemetry and self._writes_into(packet):
            self._write_telemetry(port, packet, sum(egress.queue_bytes))
        if self.config.path_load_ps and packet.kind == PacketKind.DATA and not packet.is_cut:
            self._write_load(port, packet, sum(egress.queue_bytes))
        if self.config.marks_at_dequeue:
            self._mark(port, packet, egress.queue_bytes[c])
        port.transmit(packet)
        self._release(packet, arrival_bytes)
        self._resume_where_possible()

    def waiting(self, port: Port) -> list[int]:
        """Classes with packets at a port."""
        return [c for c, queue in enumerate(self.egress[port.id].queues) if queue]

    def head_bytes(self, port: Port, traffic_class: int) -> int:
        """Frame size of a class's next packet on a port's link.

        It includes the fields that this switch writes.
        """
        head = self.egress[port.id].queues[traffic_class][0]
        is_longer = self.config.has_telemetry and self._writes_into(head)
        return head.size_bytes + (self.config.telemetry_hop_bytes if is_longer else 0)

    def _writes_into(self, packet: Packet) -> bool:
        return packet.kind == PacketKind.DATA and not packet.is_cut

    def _release(self, packet: Packet, arrival_bytes: int) -> None:
        """Release the bytes of a packet that leaves or is dropped."""
        ingress = self._port_of[packet.ingress]
        if ingress.credits is not None:
            ingress.free(packet.arrival_class, arrival_bytes)
        else:
            self.buffer.release(ingress.id, packet.arrival_class, arrival_bytes)

    def _write_telemetry(self, port: Port, packet: Packet, behind_bytes: int) -> None:
        """Add this switch's telemetry to a packet.

        Queue and buffer held it without, the wire carries it with.
        """
        if len(packet.hops) == HOPS:
            text = (
                "a packet has come to a ninth switch with in-band telemetry, and has room for what eight write, since a"
                " port selection, or routes that changed meanwhile, have sent it another way than a shortest one; take"
                " a port selection that makes fewer detours, or a congestion control and a path selection without"
                " telemetry"
            )
            raise ConfigError("packet engine", [Mistake(path="engine", text=text)])
        packet.hops.append(
            HopTelemetry(
                queue_bytes=behind_bytes,
                tx_bytes=port.counts["bytes"],
                rate_bps=port.rate_bps,
                at_ps=self.clock.now_ps,
                port=port.id,
            )
        )
        packet.size_bytes += self.config.telemetry_hop_bytes

    def _write_load(self, port: Port, packet: Packet, behind_bytes: int) -> None:
        """Measure a port's load, and write it into a packet if larger.

        It is compared with the loads of the ports before.
        """
        load, sent_bytes = self.loads[port.id], port.counts["bytes"]
        load.measure(self.clock.now_ps, behind_bytes, sent_bytes, port.rate_bps, self.config.path_load_ps)
        code = code_of(load.load, packet.draw(self.config.choice.seed, Stream.PATH_LOAD, port.id))
        packet.path_load_code = max(packet.path_load_code, code)

    def _resume_where_possible(self) -> None:
        """Test every paused ingress for its resume.

        Not only that of the packet that left: the engine rule prevents a pause for ever.
        """
        for port in self.ports:
            if True not in port.asked:
                continue
            for c in range(self.classes):
                if port.asked[c] and self.buffer.resumes(port.id, c):
                    port.ask_resume(c)

    def _schedule(self, egress: Egress, ready: list[int]) -> int:
        """Choose a class: strict classes first, then deficit round robin.

        The highest strict class comes first; one class alone is not accounted.
        """
        if len(ready) == 1:
            return ready[0]
        strict = [c for c in ready if self.config.weights[c] == 0]
        if strict:
            return strict[-1]
        while True:
            c = egress.current
            if c in ready and egress.deficit_bytes[c] >= egress.queues[c][0].size_bytes:
                egress.deficit_bytes[c] -= egress.queues[c][0].size_bytes
                return c
            c = self.weighted[(self.weighted.index(c) + 1) % len(self.weighted)]
            egress.current = c
            if c in ready:
                egress.deficit_bytes[c] += self.config.weights[c] * QUANTUM_BYTES

    def _mark(self, port: Port, packet: Packet, queue_bytes: int) -> None:
        """Mark congestion on a data packet, by its egress queue length."""
        kmin_bytes, kmax_bytes = self.config.kmin_bytes[port.id], self.config.kmax_bytes[port.id]
        if packet.kind != PacketKind.DATA or packet.is_cut or queue_bytes <= kmin_bytes:
            return
        if queue_bytes < kmax_bytes:
            luck = uniform(packet.draw(self.config.choice.seed, Stream.ECN_MARK, port.id))
            if luck >= self.config.pmax * (queue_bytes - kmin_bytes) / (kmax_bytes - kmin_bytes):
                return
        packet.is_marked = True
        port.counts["marks"] += 1

    # Faults

    def port_went_down(self, port: Port) -> None:
        """Drop queued packets, by class and order, and test resumes."""
        egress = self.egress[port.id]
        for c in range(self.classes):
            while egress.queues[c]:
                packet = egress.take(c)
                port.drop("link_down")
                self._release(packet, packet.size_bytes)
            self.buffer.settle_headroom(port.id, c)
        self._resume_where_possible()
