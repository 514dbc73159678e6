"""The receiving end of a queue pair: order, acknowledgements, end-to-end credits and the receiver's step.

Source: `docs/models/packet-engine.md`, section The receiving NIC; NAKs and credits are those of IBTA vol. 1,
9.7.5.1.3 and 9.7.7.2. Leaves out: RNR NAKs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from weftwork.engine.reference.port import Agenda, Packet, PacketKind
from weftwork.engine.reference.timers import PolicyTimers
from weftwork.policies.interface import OFF, Kind
from weftwork.wire.ib import credits_to_code

if TYPE_CHECKING:
    from weftwork.engine.reference.nic import Nic
    from weftwork.engine.reference.queue_pair import QueuePair
    from weftwork.policies.interface import CongestionControl

__all__ = ["Receiver"]

_SENT_COUNTER = {
    PacketKind.ACK: "acks_sent",
    PacketKind.NAK: "naks_sent",
    PacketKind.CNP: "cnps_sent",
    PacketKind.CREDIT: "credits_sent",
}


class Receiver:
    """State by the names of the page: ``expected`` is the next packet in order."""

    def __init__(self, queue_pair: QueuePair) -> None:
        self.queue_pair = queue_pair
        self.simulation = queue_pair.simulation
        self.transport = queue_pair.simulation.plan.transport
        self.is_selective = self.transport.recovery == "selective-repeat"
        self.keeps_early = self.is_selective or self.transport.reorder_tolerant
        self.expected = 0
        self.early: dict[int, bool] = {}  # packets kept behind a gap, and whether each asked for an ACK
        self.has_sent_nak = False  # since the gap opened
        self.is_marked = False
        self.control_packets = 0
        self.last_credit_code: int | None = None
        self.slot = OFF  # at the NIC, from the first data packet on
        self.control = queue_pair.simulation.plan.congestion_control
        self.state: Any = self.control.new_receiver_state()
        self.wants_all_data = cast("CongestionControl", self.control.plugin).receiver_signals == "data"
        self.timers = (
            None
            if self.state is None
            else PolicyTimers(self.simulation, Agenda.RECEIVER, self.state, self._timer_fires)
        )

    @property
    def nic(self) -> Nic:
        """The NIC at this end."""
        return self.simulation.nics[self.queue_pair.destination_port.id]

    # Data

    def handle(self, packet: Packet) -> None:
        """Take a data packet that has passed the host interface."""
        if self.slot == OFF:
            self.slot = self.nic.new_receiver_slot()
        packet.host_delay_ps = self.simulation.now_ps - packet.arrived_at_ps
        wants_ack = self._run_step_on_data(packet)
        self.is_marked = self.is_marked or packet.is_marked
        sent_nak = discarded = duplicate = owes_ack = False
        n = packet.seq
        if n == self.expected:
            owes_ack = self._in_order()
        elif n < self.expected or n in self.early:
            duplicate = True
            if n in self.early:
                self.early[n] |= packet.asks_ack
            self.simulation.counters["duplicates"] += 1
        elif self.keeps_early and n - self.expected < self.transport.reorder_window_packets:
            self.early[n] = packet.asks_ack
            if self.is_selective:
                sent_nak = True
                self._answer(PacketKind.NAK, packet)
        else:
            discarded = True
            self.simulation.counters["out_of_order_discards"] += 1
            is_go_back_n = self.transport.recovery == "go-back-n" and not self.transport.reorder_tolerant
            if is_go_back_n and not self.has_sent_nak:
                sent_nak = self.has_sent_nak = True
                self._answer(PacketKind.NAK, packet)
        if (packet.asks_ack and not sent_nak and not discarded) or owes_ack or duplicate or wants_ack:
            self._answer(PacketKind.ACK, packet)

    def _in_order(self) -> bool:
        """Go on over the packet expected and those kept behind it; returns whether one of these asked for an ACK."""
        owes_ack = False
        self.expected += 1
        while self.expected in self.early:
            owes_ack |= self.early.pop(self.expected)
            self.expected += 1
        self.has_sent_nak = False
        messages, inbox = self.queue_pair.messages, self.queue_pair.inbox
        while inbox.delivered < len(messages) and messages[inbox.delivered].end <= self.expected:
            inbox.deliver(messages[inbox.delivered])
        return owes_ack

    def probed(self) -> None:
        """Answer a PROBE."""
        self._answer(PacketKind.ACK, None)

    def claimed(self) -> None:
        """A RECEIVE has taken a message that was here: its buffer is free, which a sender without credits must hear."""
        if self.transport.end_to_end_credits and self.last_credit_code == 0:
            self._answer(PacketKind.ACK, None)

    def move_in(self) -> None:
        """Go on at another port: a queue pair that had a slot gets one there, and its timers keep their instants."""
        if self.slot == OFF:
            return
        self.slot = self.nic.new_receiver_slot()
        if self.timers is not None:
            self.timers.schedule(self.nic.port.id, self.slot)

    # Answers

    def _answer(self, kind: PacketKind, echo: Packet | None) -> None:
        """Queue an ACK or NAK; without an echo it says nothing about a packet."""
        packet = self._control_packet(kind, self.transport.ack_bytes)
        packet.is_marked, self.is_marked = self.is_marked, False
        packet.echo = echo
        packet.host_delay_ps = echo.host_delay_ps if echo is not None else 0
        packet.msn = self.queue_pair.inbox.delivered
        if self.transport.end_to_end_credits:
            packet.credit_code = self.last_credit_code = credits_to_code(self._free_buffers())
        self.nic.queue_control(packet)

    def _free_buffers(self) -> int:
        inbox = self.queue_pair.inbox
        claimed = inbox.claimed if self.simulation.plan.has_receives else inbox.delivered
        return self.transport.end_to_end_credits - inbox.delivered + claimed

    def _control_packet(self, kind: PacketKind, size_bytes: int) -> Packet:
        packet = self.queue_pair.packet(
            kind,
            seq=self.expected,
            attempt=self.control_packets % (1 << 16),
            size_bytes=size_bytes,
            traffic_class=self.simulation.plan.control_class,
        )
        self.control_packets += 1
        self.simulation.counters[_SENT_COUNTER[kind]] += 1
        return packet

    # The receiver's step

    def _run_step_on_data(self, packet: Packet) -> bool:
        """Call the step if it wants this packet; returns whether it asks for an ACK."""
        if self.state is None or not (self.wants_all_data or packet.is_marked):
            return False
        signal = self._signal(Kind.DATA)
        signal.bytes = packet.payload_bytes
        signal.seq = packet.seq
        signal.ecn = int(packet.is_marked)
        signal.entropy = packet.entropy
        signal.host_delay_ps = packet.host_delay_ps
        return self._run_step(signal)

    def _signal(self, kind: Kind) -> Any:  # noqa: ANN401 - the record of the policies
        signal = self.control.new_signal()
        signal.kind = int(kind)
        signal.now_ps = self.simulation.now_ps
        signal.line_rate_bps = self.nic.port.rate_bps
        signal.base_rtt_ps = self.queue_pair.base_rtt_ps
        signal.mtu_bytes = self.transport.mtu_bytes
        return signal

    def _run_step(self, signal: Any) -> bool:  # noqa: ANN401
        state = self.state
        self.control.call_receive(state, self.nic.shared_state, signal)
        wants_ack = bool(state.send_ack)
        state.send_ack = 0
        if state.send_cnp:
            state.send_cnp = 0
            self.nic.queue_control(self._control_packet(PacketKind.CNP, self.transport.cnp_bytes))
        if state.credit_bytes > 0:
            packet = self._control_packet(PacketKind.CREDIT, self.transport.credit_bytes)
            packet.credit_bytes = int(state.credit_bytes)
            state.credit_bytes = 0
            self.nic.queue_control(packet)
        if self.timers is not None:
            self.timers.schedule(self.nic.port.id, self.slot)
        return wants_ack

    def _timer_fires(self, timer: int) -> None:
        signal = self._signal(Kind.TIMER)
        signal.timer = timer
        if self._run_step(signal):
            self._answer(PacketKind.ACK, None)
