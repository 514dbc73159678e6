"""A host of the reference engine: its NIC ports, their turn among queue pairs, and the host interface behind each.

Source: `docs/models/packet-engine.md`, sections Queue pairs and the sending NIC, and The receiving NIC; the host
interface can be the bottleneck and push back, as Agarwal et al. found, HotNets 2022, doi:10.1145/3563766.3564110.
Leaves out: NVLink and PCIe between GPUs, see `server`; memory inside the host.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from weftwork.base.clock import serialisation_ps
from weftwork.engine.reference.port import Agenda, Packet, PacketKind, Phase, Port

if TYPE_CHECKING:
    from weftwork.engine.reference.sender import Sender
    from weftwork.engine.reference.simulation import Simulation

__all__ = ["Nic"]


class Nic:
    """One NIC port; the ports of a host share nothing but the instant.

    Attributes
    ----------
    senders : queue pairs whose source is this port, by slot
    buffer_bytes : what waits for the host interface
    """

    def __init__(self, simulation: Simulation, node: int, port_id: int) -> None:
        plan = simulation.plan
        row = plan.nics[int(plan.node_device[node])]
        self.simulation = simulation
        self.port = Port(simulation, port_id, self, int(row["pause_quanta"]))
        self.senders: list[Sender | None] = []  # None: the queue pair has another port now
        self.last_served = -1  # slot; slot 0 is first
        self.control_queue: deque[Packet] = deque()
        self.receiver_slots = 0
        self.shared_state: Any = plan.congestion_control.new_shared_state()
        self.pcie_rate_bps = int(row["pcie_rate_bps"])
        self.pcie_latency_ps = int(row["pcie_latency_ps"])
        self.has_host_interface = self.pcie_rate_bps > 0 or self.pcie_latency_ps > 0
        self.receive_buffer_bytes = int(row["receive_buffer_bytes"])
        self.xoff_bytes = int(row["xoff_bytes"])
        self.xon_bytes = int(row["xon_bytes"])
        self.pcie_free_at_ps = 0
        self.buffer_bytes = 0
        self.buffer: deque[Packet] = deque()

    # Sending

    def new_slot(self, sender: Sender) -> int:
        """The next number of a queue pair that begins here."""
        self.senders.append(sender)
        return len(self.senders) - 1

    def queue_control(self, packet: Packet) -> None:
        """Queue what is not data; control packets keep their order."""
        self.control_queue.append(packet)
        self.port.start()

    def send_next(self, port: Port) -> None:
        """Control packets first, then the first eligible queue pair after the one served last."""
        if self.control_queue and not port.is_paused(self.simulation.plan.control_class):
            port.transmit(self.control_queue.popleft())
            return
        count = len(self.senders)
        for step in range(1, count + 1):
            slot = (self.last_served + step) % count
            sender = self.senders[slot]
            seq = sender.next_packet() if sender is not None else None
            if sender is not None and seq is not None:
                self.last_served = slot
                port.transmit(sender.send(seq))
                return
        now_ps = self.simulation.now_ps
        waiting = [sender.next_send_at_ps for sender in self.senders if sender is not None and sender.wants_to_send()]
        paced = [at_ps for at_ps in waiting if at_ps > now_ps]
        if paced:
            port.wake_at(min(paced))

    # Receiving

    def new_receiver_slot(self) -> int:
        """The next number of a queue pair that ends here."""
        self.receiver_slots += 1
        return self.receiver_slots - 1

    def receive(self, port: Port, packet: Packet) -> None:
        """Hand a packet to its queue pair; data passes the host interface."""
        if packet.destination is not port:
            self.simulation.drop("no_route", port)  # hosts do not forward
        elif packet.kind == PacketKind.DATA:
            packet.arrived_at_ps = self.simulation.now_ps
            if self.has_host_interface:
                self._enter_buffer(packet)
            else:
                packet.queue_pair.receiver.handle(packet)
        elif packet.kind == PacketKind.PROBE:
            packet.queue_pair.receiver.probed()
        elif packet.queue_pair.sender is not None:
            packet.queue_pair.sender.receive(packet)

    def _enter_buffer(self, packet: Packet) -> None:
        if self.buffer_bytes + packet.size_bytes > self.receive_buffer_bytes:
            self.simulation.drop("receive_buffer", self.port)
            return
        now_ps = self.simulation.now_ps
        transfer_ps = serialisation_ps(packet.size_bytes, self.pcie_rate_bps) if self.pcie_rate_bps > 0 else 0
        self.pcie_free_at_ps = max(now_ps, self.pcie_free_at_ps) + transfer_ps
        self.buffer.append(packet)
        self.buffer_bytes += packet.size_bytes
        identity = (Agenda.HOST_INTERFACE, self.port.id)
        self.simulation.at(self.pcie_free_at_ps + self.pcie_latency_ps, Phase.AGENDA, identity, self._leave_buffer)
        if self.buffer_bytes > self.xoff_bytes:
            for traffic_class in self._lossless_classes(is_asked=False):
                self.port.ask_pause(traffic_class)

    def _leave_buffer(self) -> None:
        packet = self.buffer.popleft()
        self.buffer_bytes -= packet.size_bytes
        if self.buffer_bytes <= self.xon_bytes:
            for traffic_class in self._lossless_classes(is_asked=True):
                self.port.ask_resume(traffic_class)
        packet.queue_pair.receiver.handle(packet)

    def _lossless_classes(self, *, is_asked: bool) -> list[int]:
        lossless = self.simulation.lossless
        return [c for c, asked in enumerate(self.port.asked) if lossless[c] and asked == is_asked]

    # Faults

    def port_went_down(self, port: Port) -> None:
        """Drop the control packets that wait; timers and what is in the host interface go on."""
        while self.control_queue:
            self.control_queue.popleft()
            self.simulation.drop("link_down", port)
