"""A switch of the reference engine: routing, shared buffer, pause, marks and scheduling.

Source: `docs/models/packet-engine.md`, section Switches; the dynamic threshold is that of Choudhury and Hahne, IEEE/ACM
ToN 6(2), 1998, doi:10.1109/90.664262, the scheduler Shreedhar and Varghese's deficit round robin, SIGCOMM 1995.
Leaves out: cells, cut-through, multicast.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol

from weftwork.base.random import Stream, uniform
from weftwork.engine.hashing import field_bytes, final_hash
from weftwork.engine.reference.clock import Clock
from weftwork.engine.reference.packet import HopTelemetry, Packet, PacketKind
from weftwork.engine.reference.port import Port
from weftwork.policies.interface import HOPS
from weftwork.policies.load import LoadedPolicy

__all__ = ["Egress", "Ingress", "NextHops", "SwitchConfig", "SwitchNode"]

QUANTUM_BYTES: Final = 1_024  # of weight 1: `weftwork.spec.device.Scheduling`


class NextHops(Protocol):
    """The routes as a switch sees them."""

    def next_hops(self, node: int, destination: int) -> tuple[list[int], list[int]]:
        """Ports of a switch that lead to a NIC port, and their weights; none: there is no route."""

    def digit_of(self, port: int, destination: int) -> tuple[int, int]:
        """What a port selection by destination sees: number of the NIC port, and stride of the candidates' tier."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SwitchConfig:
    """A switch as its device, the transport and the fabric make it.

    Parameters
    ----------
    id : of the node
    seed : of the run
    shared_bytes, reserve_bytes : shared part of the buffer, and what each (port, class) has for itself
    headroom_bytes : by port id, of each lossless class whose ingress is the port
    alpha, egress_alpha : share of what is free that an ingress of a lossless class, and an egress of another, may take
    xon_offset_bytes : a pause ends this far below its threshold
    kmin_bytes, kmax_bytes : of ECN, by port id
    pmax, marks_at_dequeue : of ECN
    has_telemetry : whether it writes into data packets
    hash : algorithm, seed, offset, fields
    weights : by class index; 0: strict
    lossless : by class index
    """

    id: int
    seed: int
    shared_bytes: int
    reserve_bytes: int
    headroom_bytes: dict[int, int]
    alpha: float
    egress_alpha: float
    xon_offset_bytes: int
    kmin_bytes: dict[int, int]
    kmax_bytes: dict[int, int]
    pmax: float
    marks_at_dequeue: bool
    has_telemetry: bool
    hash: tuple[int, int, int, int]
    weights: tuple[int, ...]
    lossless: tuple[bool, ...]


class Ingress:
    """Buffer that packets of one (port, class) hold."""

    def __init__(self) -> None:
        self.used_bytes = 0
        self.headroom_used_bytes = 0


class Egress:
    """Queues of one port by class, and the state of its deficit round robin."""

    def __init__(self, classes: int, first_weighted: int) -> None:
        self.queues: list[deque[Packet]] = [deque() for _ in range(classes)]
        self.queue_bytes = [0] * classes
        self.deficit_bytes = [0] * classes
        self.current = first_weighted

    def take(self, traffic_class: int) -> Packet:
        """The head of a queue, which leaves it; a class whose queue becomes empty loses its deficit."""
        packet = self.queues[traffic_class].popleft()
        self.queue_bytes[traffic_class] -= packet.size_bytes
        if not self.queues[traffic_class]:
            self.deficit_bytes[traffic_class] = 0
        return packet


class SwitchNode:
    """A node that forwards.

    Parameters
    ----------
    config : what it is
    clock : what time it is, for telemetry and the port selection
    ports : its own; it becomes their node by `Port.join`
    routes : where a packet may go
    selection : port selection, which chooses among several

    Attributes
    ----------
    ingress : by port id and class
    egress : by port id
    shared_used_bytes : sum over all ingresses of what each uses above the reserve
    """

    def __init__(
        self, config: SwitchConfig, clock: Clock, ports: list[Port], routes: NextHops, selection: LoadedPolicy
    ) -> None:
        self.config = config
        self.clock = clock
        self.ports = ports
        self.routes = routes
        self.selection = selection
        self.selection_state = selection.new_state()
        self.wants_queue = "queue" in selection.plugin.needs
        self.classes = len(config.weights)
        self.weighted = [c for c in range(self.classes) if config.weights[c] > 0]
        self.shared_used_bytes = 0
        first_weighted = self.weighted[0] if self.weighted else 0
        self.ingress = {port.id: [Ingress() for _ in range(self.classes)] for port in ports}
        self.egress = {port.id: Egress(self.classes, first_weighted) for port in ports}
        self._port_of = {port.id: port for port in ports}

    # Arrival

    def receive(self, port: Port, packet: Packet) -> None:
        """Route, admit, pause, mark, enqueue (steps b to g of the page)."""
        packet.ingress = port.id
        egress_port = self._route(port, packet)
        if egress_port is None:
            port.drop("no_route")
        elif not egress_port.is_up:
            egress_port.drop("link_down")
        elif self._admit(port, egress_port, packet):
            self._pause_if_needed(port, packet.traffic_class)
            egress = self.egress[egress_port.id]
            if not self.config.marks_at_dequeue:
                self._mark(egress_port, packet, egress.queue_bytes[packet.traffic_class])
            egress.queues[packet.traffic_class].append(packet)
            egress.queue_bytes[packet.traffic_class] += packet.size_bytes
            depth_bytes = egress.queue_bytes[packet.traffic_class]
            egress_port.counts["max_queue_bytes"] = max(egress_port.counts["max_queue_bytes"], depth_bytes)
            egress_port.start()

    def _route(self, port: Port, packet: Packet) -> Port | None:
        members, weights = self.routes.next_hops(self.config.id, packet.destination)
        if not members:
            return None
        choice = self._choose(port, packet, members, weights) if len(members) > 1 else 0
        return self._port_of[members[choice]]

    def _choose(self, port: Port, packet: Packet, members: list[int], weights: list[int]) -> int:
        """Ask the port selection."""
        candidates = self.selection.new_candidates(len(members))
        for candidate, member, weight in zip(candidates, members, weights, strict=True):
            other = self._port_of[member]
            candidate.queue_bytes = self.egress[member].queue_bytes[packet.traffic_class] if self.wants_queue else 0
            candidate.rate_bps = other.rate_bps
            candidate.weight = weight
            candidate.port = other.local_index
            candidate.minimal = 1
        signal = self.selection.new_port_signal()
        signal.now_ps = self.clock.now_ps
        signal.hash = self._hash(port, packet)
        signal.draw = packet.draw(self.config.seed, Stream.PORT_CHOICE, self.config.id) >> 2
        signal.bytes = packet.size_bytes
        signal.candidates = len(members)
        signal.is_data = int(packet.kind == PacketKind.DATA)
        signal.destination, signal.stride = self.routes.digit_of(members[0], packet.destination)
        self.selection.call_step(self.selection_state, signal, candidates)
        return int(signal.choice)

    def _hash(self, port: Port, packet: Packet) -> int:
        algorithm, seed, offset, fields = self.config.hash
        data = field_bytes(
            fields=fields,
            source_port=packet.origin,
            destination_port=packet.destination,
            entropy=packet.entropy,
            in_port=port.local_index,
            destination_qp=packet.flow.number,
        )
        return final_hash(algorithm, seed, offset, data)

    # The shared buffer

    @property
    def free_bytes(self) -> int:
        """Of the shared part."""
        return max(0, self.config.shared_bytes - self.shared_used_bytes)

    def _admit(self, port: Port, egress_port: Port, packet: Packet) -> bool:
        """Find room for a packet, or drop it with the reason."""
        config, c, size_bytes = self.config, packet.traffic_class, packet.size_bytes
        ingress = self.ingress[port.id][c]
        over_reserve = max(0, ingress.used_bytes - config.reserve_bytes)
        growth = max(0, ingress.used_bytes + size_bytes - config.reserve_bytes) - over_reserve
        is_full = self.shared_used_bytes + growth > config.shared_bytes
        if config.lossless[c]:
            if port.asked[c] or is_full:
                if ingress.headroom_used_bytes + size_bytes > config.headroom_bytes[port.id]:
                    port.drop("headroom_full" if port.asked[c] else "buffer_full")
                    return False
                ingress.headroom_used_bytes += size_bytes
                self._note_use(port, ingress)
                return True
        else:
            threshold = config.reserve_bytes + int(config.egress_alpha * self.free_bytes)
            if self.egress[egress_port.id].queue_bytes[c] + size_bytes > threshold:
                egress_port.drop("egress_threshold")
                return False
            if is_full:
                port.drop("buffer_full")
                return False
        self._use(ingress, size_bytes)
        self._note_use(port, ingress)
        return True

    def _use(self, ingress: Ingress, change_bytes: int) -> None:
        """Change the use of an ingress and what it takes of the shared part."""
        before = max(0, ingress.used_bytes - self.config.reserve_bytes)
        ingress.used_bytes += change_bytes
        self.shared_used_bytes += max(0, ingress.used_bytes - self.config.reserve_bytes) - before

    @staticmethod
    def _note_use(port: Port, ingress: Ingress) -> None:
        use_bytes = ingress.used_bytes + ingress.headroom_used_bytes
        port.counts["max_ingress_bytes"] = max(port.counts["max_ingress_bytes"], use_bytes)

    def _release(self, packet: Packet) -> None:
        """Give back a packet's bytes, those of the headroom first."""
        ingress = self.ingress[packet.ingress][packet.traffic_class]
        from_headroom = min(ingress.headroom_used_bytes, packet.size_bytes)
        ingress.headroom_used_bytes -= from_headroom
        self._use(ingress, from_headroom - packet.size_bytes)

    def _settle_headroom(self, ingress: Ingress) -> None:
        """What is in the headroom counts as used from now on."""
        moved_bytes, ingress.headroom_used_bytes = ingress.headroom_used_bytes, 0
        self._use(ingress, moved_bytes)

    # Pause

    def _pause_if_needed(self, port: Port, c: int) -> None:
        if not self.config.lossless[c] or port.asked[c]:
            return
        ingress = self.ingress[port.id][c]
        limit_bytes = int(self.config.alpha * self.free_bytes)
        if ingress.used_bytes - self.config.reserve_bytes > limit_bytes or ingress.headroom_used_bytes > 0:
            port.ask_pause(c)

    def _resume_where_possible(self) -> None:
        """Test every paused ingress, not only that of the packet that left: engine rule against a pause for ever."""
        for port in self.ports:
            for c in range(self.classes):
                if port.asked[c]:
                    self._resume_if_possible(port, c)

    def _resume_if_possible(self, port: Port, c: int) -> None:
        ingress = self.ingress[port.id][c]
        limit_bytes = int(self.config.alpha * self.free_bytes) - self.config.xon_offset_bytes
        if ingress.used_bytes + ingress.headroom_used_bytes <= self.config.reserve_bytes:
            self._settle_headroom(ingress)
            port.ask_resume(c)
        elif ingress.headroom_used_bytes == 0 and ingress.used_bytes - self.config.reserve_bytes <= limit_bytes:
            port.ask_resume(c)

    # Departure

    def send_next(self, port: Port) -> None:
        """Start the packet that the scheduler chooses, if there is one."""
        egress = self.egress[port.id]
        ready = [c for c in range(self.classes) if egress.queues[c] and not port.is_paused(c)]
        if not ready:
            return
        c = self._schedule(egress, ready)
        packet = egress.take(c)
        self._release(packet)
        if self.config.has_telemetry and packet.kind == PacketKind.DATA and len(packet.hops) < HOPS:
            now_ps = self.clock.now_ps
            sent_bytes = port.counts["bytes"]
            behind_bytes = sum(egress.queue_bytes)
            packet.hops.append(
                HopTelemetry(
                    queue_bytes=behind_bytes, tx_bytes=sent_bytes, rate_bps=port.rate_bps, at_ps=now_ps, port=port.id
                )
            )
        if self.config.marks_at_dequeue:
            self._mark(port, packet, egress.queue_bytes[c])
        port.transmit(packet)
        self._resume_where_possible()

    def _schedule(self, egress: Egress, ready: list[int]) -> int:
        """Strict classes first, the highest first; then deficit round robin; one class alone is not accounted."""
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
        """Mark congestion experienced on a data packet, by the length of its egress queue."""
        kmin_bytes, kmax_bytes = self.config.kmin_bytes[port.id], self.config.kmax_bytes[port.id]
        if packet.kind != PacketKind.DATA or queue_bytes <= kmin_bytes:
            return
        if queue_bytes < kmax_bytes:
            luck = uniform(packet.draw(self.config.seed, Stream.ECN_MARK, port.id))
            if luck >= self.config.pmax * (queue_bytes - kmin_bytes) / (kmax_bytes - kmin_bytes):
                return
        packet.is_marked = True
        port.counts["marks"] += 1

    # Faults

    def port_went_down(self, port: Port) -> None:
        """Drop what is queued, by class and order, and test Resume."""
        egress = self.egress[port.id]
        for c in range(self.classes):
            while egress.queues[c]:
                self._release(egress.take(c))
                port.drop("link_down")
            self._settle_headroom(self.ingress[port.id][c])
        self._resume_where_possible()
