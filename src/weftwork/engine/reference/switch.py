"""A switch of the reference engine: routing, shared buffer, pause, marks and scheduling.

Source: `docs/models/packet-engine.md`, section Switches; the dynamic threshold is that of Choudhury and Hahne, IEEE/ACM
ToN 6(2), 1998, doi:10.1109/90.664262, the scheduler Shreedhar and Varghese's deficit round robin, SIGCOMM 1995.
Leaves out: cells, cut-through, multicast.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from weftwork.base.random import Stream, uniform
from weftwork.engine.hashing import field_bytes, final_hash
from weftwork.engine.reference.port import Hop, Packet, PacketKind, Port
from weftwork.policies.interface import HOPS

if TYPE_CHECKING:
    from weftwork.engine.reference.simulation import Simulation

__all__ = ["Ingress", "Switch"]

QUANTUM_BYTES: Final = 1_024  # of weight 1: `weftwork.spec.device.Scheduling`
DELIVER: Final = -2  # RouteTable.group_of: this node is the attachment
UNREACHABLE: Final = -1


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


class Switch:
    """One domain that forwards.

    Attributes
    ----------
    ingress : by port id and class
    egress : by port id
    shared_used_bytes : sum over all ingresses of what each uses above the reserve
    """

    def __init__(self, simulation: Simulation, node: int) -> None:
        plan = simulation.plan
        row = plan.switches[int(plan.node_device[node])]
        self.simulation = simulation
        self.id = node
        self.classes = len(plan.class_priority)
        self.reserve_bytes = int(row["reserve_bytes"])
        self.alpha = float(row["alpha"])
        self.egress_alpha = float(row["egress_alpha"])
        self.xon_offset_bytes = int(row["xon_offset_bytes"])
        self.kmin_bytes = int(row["kmin_bytes"])
        self.kmax_bytes = int(row["kmax_bytes"])
        self.pmax = float(row["pmax"])
        self.marks_at_dequeue = bool(row["mark_at_dequeue"])
        self.has_telemetry = bool(row["telemetry"]) and "telemetry" in plan.congestion_control.plugin.needs
        self.hash = tuple(int(row[f"hash_{name}"]) for name in ("algorithm", "seed", "offset", "fields"))
        self.weights: list[int] = row["weight"].tolist()[: self.classes]
        self.weighted = [c for c in range(self.classes) if self.weights[c] > 0]
        self.shared_bytes = int(plan.shared_bytes[node])
        self.shared_used_bytes = 0
        self.ports = [
            Port(simulation, port, self, int(row["pause_quanta"]))
            for port in range(int(plan.port_base[node]), int(plan.port_base[node + 1]))
        ]
        first_weighted = self.weighted[0] if self.weighted else 0
        self.ingress = {port.id: [Ingress() for _ in range(self.classes)] for port in self.ports}
        self.egress = {port.id: Egress(self.classes, first_weighted) for port in self.ports}
        self.headroom_bytes = {port.id: int(plan.port_headroom_bytes[port.id]) for port in self.ports}
        self.selection_state = plan.port_selection.new_state()
        self.wants_queue = "queue" in plan.port_selection.plugin.needs

    # Arrival

    def receive(self, port: Port, packet: Packet) -> None:
        """Route, admit, pause, mark, enqueue (steps b to g of the page)."""
        packet.ingress = port
        egress_port = self._route(port, packet)
        if egress_port is None:
            self.simulation.drop("no_route", port)
        elif not egress_port.is_up:
            self.simulation.drop("link_down", egress_port)
        elif self._admit(port, egress_port, packet):
            self._pause_if_needed(port, packet.traffic_class)
            egress = self.egress[egress_port.id]
            if not self.marks_at_dequeue:
                self._mark(egress_port, packet, egress.queue_bytes[packet.traffic_class])
            egress.queues[packet.traffic_class].append(packet)
            egress.queue_bytes[packet.traffic_class] += packet.size_bytes
            depth_bytes = egress.queue_bytes[packet.traffic_class]
            egress_port.counts["max_queue_bytes"] = max(egress_port.counts["max_queue_bytes"], depth_bytes)
            egress_port.start()

    def _route(self, port: Port, packet: Packet) -> Port | None:
        simulation = self.simulation
        table = simulation.routes
        group = int(table.group_of[self.id, simulation.plan.attachment[packet.destination.id]])
        if group == DELIVER:
            return simulation.ports[packet.destination.peer_id]
        if group == UNREACHABLE:
            return None
        first, last = int(table.group_ptr[group]), int(table.group_ptr[group + 1])
        members: list[int] = table.group_ports[first:last].tolist()
        if len(members) == 1:
            return simulation.ports[members[0]]
        return simulation.ports[members[self._choose(port, packet, members, table.group_weights[first:last].tolist())]]

    def _choose(self, port: Port, packet: Packet, members: list[int], weights: list[int]) -> int:
        """Ask the port selection."""
        simulation = self.simulation
        selection = simulation.plan.port_selection
        candidates = selection.new_candidates(len(members))
        for candidate, member, weight in zip(candidates, members, weights, strict=True):
            other = simulation.ports[member]
            candidate.queue_bytes = self.egress[member].queue_bytes[packet.traffic_class] if self.wants_queue else 0
            candidate.rate_bps = other.rate_bps
            candidate.up = int(other.is_up)
            candidate.weight = weight
        signal = selection.new_port_signal()
        signal.now_ps = simulation.now_ps
        signal.hash = self._hash(port, packet)
        signal.draw = simulation.draw(Stream.PORT_CHOICE, packet, self.id) >> 2
        signal.bytes = packet.size_bytes
        signal.candidates = len(members)
        signal.is_data = int(packet.kind == PacketKind.DATA)
        signal.destination = int(simulation.plan.destination_number[packet.destination.id])
        signal.stride = int(simulation.plan.port_stride[members[0]])
        selection.call_step(self.selection_state, signal, candidates)
        return int(signal.choice)

    def _hash(self, port: Port, packet: Packet) -> int:
        algorithm, seed, offset, fields = self.hash
        data = field_bytes(
            fields=fields,
            source_port=packet.origin.id,
            destination_port=packet.destination.id,
            entropy=packet.entropy,
            in_port=port.local_index,
            destination_qp=packet.queue_pair.number,
        )
        return final_hash(algorithm, seed, offset, data)

    # The shared buffer

    @property
    def free_bytes(self) -> int:
        """Of the shared part."""
        return max(0, self.shared_bytes - self.shared_used_bytes)

    def _admit(self, port: Port, egress_port: Port, packet: Packet) -> bool:
        """Find room for a packet, or drop it with the reason."""
        c, size_bytes = packet.traffic_class, packet.size_bytes
        ingress = self.ingress[port.id][c]
        over_reserve = max(0, ingress.used_bytes - self.reserve_bytes)
        growth = max(0, ingress.used_bytes + size_bytes - self.reserve_bytes) - over_reserve
        is_full = self.shared_used_bytes + growth > self.shared_bytes
        if self.simulation.lossless[c]:
            if port.asked[c] or is_full:
                if ingress.headroom_used_bytes + size_bytes > self.headroom_bytes[port.id]:
                    self.simulation.drop("headroom_full" if port.asked[c] else "buffer_full", port)
                    return False
                ingress.headroom_used_bytes += size_bytes
                self._note_use(port, ingress)
                return True
        else:
            threshold = self.reserve_bytes + int(self.egress_alpha * self.free_bytes)
            if self.egress[egress_port.id].queue_bytes[c] + size_bytes > threshold:
                self.simulation.drop("egress_threshold", egress_port)
                return False
            if is_full:
                self.simulation.drop("buffer_full", port)
                return False
        self._use(ingress, size_bytes)
        self._note_use(port, ingress)
        return True

    def _use(self, ingress: Ingress, change_bytes: int) -> None:
        """Change the use of an ingress and what it takes of the shared part."""
        before = max(0, ingress.used_bytes - self.reserve_bytes)
        ingress.used_bytes += change_bytes
        self.shared_used_bytes += max(0, ingress.used_bytes - self.reserve_bytes) - before

    @staticmethod
    def _note_use(port: Port, ingress: Ingress) -> None:
        use_bytes = ingress.used_bytes + ingress.headroom_used_bytes
        port.counts["max_ingress_bytes"] = max(port.counts["max_ingress_bytes"], use_bytes)

    def _release(self, packet: Packet) -> None:
        """Give back a packet's bytes, those of the headroom first."""
        assert packet.ingress is not None  # noqa: S101 - set where it was received
        ingress = self.ingress[packet.ingress.id][packet.traffic_class]
        from_headroom = min(ingress.headroom_used_bytes, packet.size_bytes)
        ingress.headroom_used_bytes -= from_headroom
        self._use(ingress, from_headroom - packet.size_bytes)

    def _settle_headroom(self, ingress: Ingress) -> None:
        """What is in the headroom counts as used from now on."""
        moved_bytes, ingress.headroom_used_bytes = ingress.headroom_used_bytes, 0
        self._use(ingress, moved_bytes)

    # Pause

    def _pause_if_needed(self, port: Port, c: int) -> None:
        if not self.simulation.lossless[c] or port.asked[c]:
            return
        ingress = self.ingress[port.id][c]
        limit_bytes = int(self.alpha * self.free_bytes)
        if ingress.used_bytes - self.reserve_bytes > limit_bytes or ingress.headroom_used_bytes > 0:
            port.ask_pause(c)

    def _resume_where_possible(self) -> None:
        """Test every paused ingress, not only that of the packet that left: engine rule against a pause for ever."""
        for port in self.ports:
            for c in range(self.classes):
                if port.asked[c]:
                    self._resume_if_possible(port, c)

    def _resume_if_possible(self, port: Port, c: int) -> None:
        ingress = self.ingress[port.id][c]
        limit_bytes = int(self.alpha * self.free_bytes) - self.xon_offset_bytes
        if ingress.used_bytes + ingress.headroom_used_bytes <= self.reserve_bytes:
            self._settle_headroom(ingress)
            port.ask_resume(c)
        elif ingress.headroom_used_bytes == 0 and ingress.used_bytes - self.reserve_bytes <= limit_bytes:
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
        if self.has_telemetry and packet.kind == PacketKind.DATA and len(packet.hops) < HOPS:
            now_ps = self.simulation.now_ps
            sent_bytes = port.counts["bytes"]
            behind_bytes = sum(egress.queue_bytes)
            packet.hops.append(Hop(queue_bytes=behind_bytes, tx_bytes=sent_bytes, rate_bps=port.rate_bps, at_ps=now_ps))
        if self.marks_at_dequeue:
            self._mark(port, packet, egress.queue_bytes[c])
        port.transmit(packet)
        self._resume_where_possible()

    def _schedule(self, egress: Egress, ready: list[int]) -> int:
        """Strict classes first, the highest first; then deficit round robin; one class alone is not accounted."""
        if len(ready) == 1:
            return ready[0]
        strict = [c for c in ready if self.weights[c] == 0]
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
                egress.deficit_bytes[c] += self.weights[c] * QUANTUM_BYTES

    def _mark(self, port: Port, packet: Packet, queue_bytes: int) -> None:
        """Mark congestion experienced on a data packet, by the length of its egress queue."""
        if packet.kind != PacketKind.DATA or queue_bytes <= self.kmin_bytes:
            return
        if queue_bytes < self.kmax_bytes:
            luck = uniform(self.simulation.draw(Stream.ECN_MARK, packet, port.id))
            if luck >= self.pmax * (queue_bytes - self.kmin_bytes) / (self.kmax_bytes - self.kmin_bytes):
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
                self.simulation.drop("link_down", port)
            self._settle_headroom(self.ingress[port.id][c])
        self._resume_where_possible()
