"""A NIC port of the reference engine: its queue pairs and host interface.

Queue pairs take turns.
Source: `docs/models/packet-engine.md`, sections Queue pairs and the sending NIC, and The receiving NIC; the host
interface can be the bottleneck and push back, as Agarwal et al. found, HotNets 2022, doi:10.1145/3563766.3564110. What
packets cost the host's processor is in `processor`.
Leaves out: NVLink and PCIe between GPUs, see `server`; memory inside the host.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from weftwork.base.clock import serialisation_ps
from weftwork.engine.reference.clock import Agenda, Clock, Phase
from weftwork.engine.reference.line import PacketSink, PacketSource
from weftwork.engine.reference.packet import Packet, PacketKind
from weftwork.engine.reference.port import Port
from weftwork.engine.reference.processor import HostProcessor

__all__ = ["NicConfig", "NicPort"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NicConfig:
    """A NIC port and its host interface at the start.

    Parameters
    ----------
    pcie_rate_bps, pcie_latency_ps : of the host interface; both 0: there is none
    receive_buffer_bytes, xoff_bytes, xon_bytes : of the buffer before the host interface
    lossless : by class index
    control_class : class index of what is not data
    host_packet_ps, host_byte_ps : what a data packet, and 1,000 bytes of its payload, cost the host's processor
    connection_state_bytes : that one end of a queue pair takes here
    """

    pcie_rate_bps: int
    pcie_latency_ps: int
    receive_buffer_bytes: int
    xoff_bytes: int
    xon_bytes: int
    lossless: tuple[bool, ...]
    control_class: int
    host_packet_ps: int = 0
    host_byte_ps: int = 0
    connection_state_bytes: int = 0


class NicPort:
    """One NIC port, the line of the queue pairs that end here.

    The ports of a host share nothing but the instant.

    Attributes
    ----------
    senders : queue pairs whose source is this port, by slot
    shared_state : record that the queue pairs which end here share, or None
    pcie_rate_bps, has_host_interface : of the device's host interface, which a fault changes
    buffer_bytes : what waits for the host interface, or for the host's processor
    """

    def __init__(self, port: Port, config: NicConfig, clock: Clock, shared_state: Any = None) -> None:  # noqa: ANN401 - the class is the policy's
        self.port = port
        self.id = port.id
        self.config = config
        self.clock = clock
        self.senders: list[PacketSource | None] = []  # None: the queue pair has another port now
        self.last_served = -1  # slot; slot 0 is first
        self.control_queue: deque[Packet] = deque()
        self._asks_sender = False  # for a packet, which goes first
        self.receiver_slots = 0
        self.shared_state = shared_state
        self._sender_of: dict[int, PacketSource] = {}  # by flow: every queue pair that has ever had this port
        self._receiver_of: dict[int, PacketSink] = {}
        self.processor = HostProcessor(packet_ps=config.host_packet_ps, byte_ps=config.host_byte_ps)
        self.pcie_rate_bps = config.pcie_rate_bps
        self.has_host_interface = config.pcie_rate_bps > 0 or config.pcie_latency_ps > 0
        self.pcie_free_at_ps = 0
        self.buffer_bytes = 0
        self.buffer: deque[Packet] = deque()
        self.early_packets = 0  # that receivers keep behind gaps

    # The line of a sender

    @property
    def rate_bps(self) -> int:
        """Line rate, now."""
        return self.port.rate_bps

    def is_held(self, traffic_class: int, frame_bytes: int) -> bool:
        """Whether link flow control holds back a frame of this class."""
        return self.port.is_held(traffic_class, frame_bytes)

    def start(self) -> None:
        """Ask the senders for a packet, if the port is idle."""
        self.port.start()

    def attach(self, sender: PacketSource) -> int:
        """Add a sender to the rotation; returns its slot."""
        self.senders.append(sender)
        self._sender_of[sender.flow.id] = sender
        self._count_connection_state()
        return len(self.senders) - 1

    def detach(self, slot: int) -> None:
        """Give up a slot.

        Late answers still reach the sender.
        """
        self.senders[slot] = None

    def queue_control(self, packet: Packet) -> None:
        """Queue a control packet.

        Control packets keep their order.
        """
        self.control_queue.append(packet)
        if not self._asks_sender:
            self.port.start()

    # Sending

    def send_next(self, port: Port) -> None:
        """Send control packets first, then the next eligible queue pair.

        It is the first eligible queue pair after the one served last.
        """
        control = self.control_queue
        if control and not port.is_held(self.config.control_class, control[0].size_bytes):
            port.transmit(control.popleft())
            return
        count = len(self.senders)
        for step in range(1, count + 1):
            slot = (self.last_served + step) % count
            sender = self.senders[slot]
            seq = sender.next_packet() if sender is not None else None
            if sender is not None and seq is not None:
                self.last_served = slot
                self._asks_sender = True
                packet = sender.send(seq)
                self._asks_sender = False
                port.transmit(packet)
                self._keep_busy(packet)
                return
        now_ps = self.clock.now_ps
        waiting = [sender.next_send_at_ps for sender in self.senders if sender is not None and sender.wants_to_send()]
        paced = [at_ps for at_ps in waiting if at_ps > now_ps]
        if paced:
            port.wake_at(min(paced))

    def _keep_busy(self, packet: Packet) -> None:
        """Wait for the host's processor before the next data packet.

        It works on the data packet that starts now.
        """
        done_at_ps = self.clock.now_ps + self.processor.cost_ps(packet.payload_bytes)
        if done_at_ps > self.port.busy_until_ps:
            self.port.busy_until_ps = done_at_ps
            self.port.wake_at(done_at_ps)

    # The line of a receiver

    def attach_receiver(self, receiver: PacketSink) -> None:
        """Register the receiver of a flow."""
        self._receiver_of[receiver.flow.id] = receiver

    def new_receiver_slot(self) -> int:
        """The next number of a queue pair that ends here."""
        self.receiver_slots += 1
        self._count_connection_state()
        return self.receiver_slots - 1

    def keep_early(self, packets: int) -> None:
        """Add to the packets that receivers here keep behind gaps."""
        self.early_packets += packets
        counts = self.port.counts
        counts["max_early_packets"] = max(counts["max_early_packets"], self.early_packets)

    def _count_connection_state(self) -> None:
        """Count the connection state of one more used slot."""
        self.port.counts["nic_state_bytes"] += self.config.connection_state_bytes

    # Receiving

    def receive(self, port: Port, packet: Packet) -> None:
        """Hand a packet to its queue pair.

        Data that was not cut passes the host interface.
        """
        if packet.destination != port.id:
            port.drop("no_route")  # hosts do not forward
        elif packet.kind == PacketKind.DATA:
            packet.arrived_at_ps = self.clock.now_ps
            if packet.is_cut:
                self._receiver_of[packet.flow.id].handle_cut(packet)
            elif self.has_host_interface or self.processor.takes_part:
                self._enter_buffer(packet)
                return  # there it still takes room
            else:
                self._receiver_of[packet.flow.id].handle(packet)
        elif packet.kind == PacketKind.REQUEST:
            self._receiver_of[packet.flow.id].requested(packet)
        elif packet.kind == PacketKind.PROBE:
            self._receiver_of[packet.flow.id].probed()
        else:
            self._sender_of[packet.flow.id].receive(packet)
        port.free(packet.traffic_class, packet.size_bytes)

    def _enter_buffer(self, packet: Packet) -> None:
        """Wait for the host interface, the host's processor, or both.

        The interface is the device's; its buffer is limited.
        """
        if self.has_host_interface and self.buffer_bytes + packet.size_bytes > self.config.receive_buffer_bytes:
            self.port.drop("receive_buffer")
            self.port.free(packet.traffic_class, packet.size_bytes)
            return
        now_ps = self.clock.now_ps
        transfer_ps = serialisation_ps(packet.size_bytes, self.pcie_rate_bps) if self.pcie_rate_bps > 0 else 0
        cost_ps = self.processor.cost_ps(packet.payload_bytes)
        self.pcie_free_at_ps = max(now_ps, self.pcie_free_at_ps) + transfer_ps + cost_ps
        self.buffer.append(packet)
        self.buffer_bytes += packet.size_bytes
        identity = (Agenda.HOST_INTERFACE, self.port.id)
        self.clock.at(self.pcie_free_at_ps + self.config.pcie_latency_ps, Phase.AGENDA, identity, self._leave_buffer)
        if self.has_host_interface and self.buffer_bytes > self.config.xoff_bytes:
            for traffic_class in self._lossless_classes(is_asked=False):
                self.port.ask_pause(traffic_class)

    def _leave_buffer(self) -> None:
        packet = self.buffer.popleft()
        self.buffer_bytes -= packet.size_bytes
        if self.buffer_bytes <= self.config.xon_bytes:
            for traffic_class in self._lossless_classes(is_asked=True):
                self.port.ask_resume(traffic_class)
        self.port.free(packet.traffic_class, packet.size_bytes)
        self._receiver_of[packet.flow.id].handle(packet)

    def _lossless_classes(self, *, is_asked: bool) -> list[int]:
        lossless = self.config.lossless
        return [c for c, asked in enumerate(self.port.asked) if lossless[c] and asked == is_asked]

    # Faults

    def port_went_down(self, port: Port) -> None:
        """Drop the waiting control packets.

        Timers and the host interface go on.
        """
        while self.control_queue:
            self.control_queue.popleft()
            port.drop("link_down")
