"""The receiving end of a queue pair.

It has order, acknowledgements, end-to-end credits and the receiver's step.

Source: `docs/models/packet-engine.md`, section The receiving NIC; NAKs and credits are those of IBTA vol. 1,
9.7.5.1.3 and 9.7.7.2. Messages that need not wait for each other are put together in `ordering`.
Leaves out: RNR NAKs; the network, of which it sees a clock and a line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, cast

from weftwork.engine.reference.clock import Agenda, Clock
from weftwork.engine.reference.flow import Flow, QueuePairConfig
from weftwork.engine.reference.line import ReceiverLine
from weftwork.engine.reference.ordering import Assembly
from weftwork.engine.reference.packet import Packet, PacketKind
from weftwork.engine.reference.timers import PolicyTimers
from weftwork.policies.interface import OFF, CongestionControl, Kind
from weftwork.wire.credits import credits_to_code

__all__ = ["EarlyPacket", "ReceiveQueue", "Receiver"]

_SENT_COUNTER = {
    PacketKind.ACK: "acks_sent",
    PacketKind.NAK: "naks_sent",
    PacketKind.CNP: "cnps_sent",
    PacketKind.CREDIT: "credits_sent",
}


class ReceiveQueue(Protocol):
    """The receiving rank as a receiver sees it."""

    @property
    def delivered(self) -> int:
        """Number of delivered messages."""

    @property
    def claimed(self) -> int:
        """Number of delivered messages that the rank has claimed.

        Their buffers are free.
        """

    def deliver(self, ordinal: int | None = None) -> object:
        """Take a complete message.

        It is the next message, or out of order the message with this number.
        """


class EarlyPacket(NamedTuple):
    """State of a packet that a receiver keeps behind a gap."""

    asks_ack: bool  # any copy of it
    ends_message: bool


class Receiver:
    """Receiver state, with the names of docs/models/packet-engine.md.

    ``expected`` is the next packet in order.

    Parameters
    ----------
    flow, config : identity and rules of the queue pair
    clock : what time it is
    line : the NIC port at this end
    destination : address of the NIC port to which answers go
    inbox : the receiving rank
    base_rtt_ps : round trip of a packet and its ACK without queues, for policies
    count : told of what outcomes count, by the names of `COUNTERS`
    """

    def __init__(
        self,
        flow: Flow,
        config: QueuePairConfig,
        *,
        clock: Clock,
        line: ReceiverLine,
        destination: int,
        inbox: ReceiveQueue,
        base_rtt_ps: int,
        count: Callable[[str], None],
    ) -> None:
        self.flow = flow
        self.config = config
        self.clock = clock
        self.line = line
        self.destination = destination
        self.inbox = inbox
        self.base_rtt_ps = base_rtt_ps
        self.count = count
        line.attach_receiver(self)
        self.transport = config.transport
        self.is_selective = self.transport.recovery == "selective-repeat"
        self.keeps_early = self.is_selective or self.transport.reorder_tolerant
        self.assembly = None if self.transport.ordering == "connection" else Assembly()
        self.expected = 0
        self.early: dict[int, EarlyPacket] = {}  # packets kept behind a gap
        self.has_sent_nak = False  # since the gap opened
        self.is_marked = False
        self.marked_bytes = 0  # payload that has arrived with a mark
        self.credit_bytes_told = 0  # by the last CREDIT
        self.control_packets = 0
        self.last_credit_code: int | None = None
        self.slot = OFF  # at the NIC, from the first data packet or REQUEST on
        self.control = config.congestion_control
        self.state: Any = self.control.new_receiver_state()
        self.wants_all_data = cast("CongestionControl", self.control.plugin).receiver_signals == "data"
        self.timers = (
            None
            if self.state is None
            else PolicyTimers(clock, Agenda.RECEIVER, self.state, self._timer_fires, self.control)
        )

    # Data

    def handle(self, packet: Packet) -> None:
        """Take a data packet that has passed the host interface."""
        self._take_slot()
        packet.host_delay_ps = self.clock.now_ps - packet.arrived_at_ps
        wants_ack = self._run_step_on_data(packet)
        self.is_marked = self.is_marked or packet.is_marked
        sent_nak = discarded = duplicate = owes_ack = False
        n = packet.seq
        if n == self.expected:
            self._has_arrived(packet)
            owes_ack = self._in_order(packet)
        elif n < self.expected or n in self.early:
            duplicate = True
            if n in self.early:
                kept = self.early[n]
                self.early[n] = kept._replace(asks_ack=kept.asks_ack or packet.asks_ack)
            self.count("duplicates")
        elif self.keeps_early and n - self.expected < self.transport.reorder_window_packets:
            self._has_arrived(packet)
            self.early[n] = EarlyPacket(packet.asks_ack, packet.ends_message)
            self.line.keep_early(1)
            if self.is_selective:
                sent_nak = True
                self._answer(PacketKind.NAK, packet)
        else:
            discarded = True
            self.count("out_of_order_discards")
            is_go_back_n = self.transport.recovery == "go-back-n" and not self.transport.reorder_tolerant
            if is_go_back_n and not self.has_sent_nak:
                sent_nak = self.has_sent_nak = True
                self._answer(PacketKind.NAK, packet)
        if (packet.asks_ack and not sent_nak and not discarded) or owes_ack or duplicate or wants_ack:
            self._answer(PacketKind.ACK, packet)

    def _in_order(self, packet: Packet) -> bool:
        """Advance over the expected packet and those kept behind it.

        Returns whether a kept packet asked for an ACK.
        """
        owes_ack = False
        complete_messages = int(packet.ends_message)
        self.expected += 1
        while self.expected in self.early:
            kept = self.early.pop(self.expected)
            self.line.keep_early(-1)
            owes_ack |= kept.asks_ack
            complete_messages += kept.ends_message
            self.expected += 1
        self.has_sent_nak = False
        if self.assembly is None:
            for _ in range(complete_messages):
                self.inbox.deliver()
        return owes_ack

    def _take_slot(self) -> None:
        if self.slot == OFF:
            self.slot = self.line.new_receiver_slot()

    def _has_arrived(self, packet: Packet) -> None:
        """Note an accepted packet: its mark, and a complete message.

        The packet is neither discarded nor a duplicate; the message waits for no other.
        """
        if packet.is_marked:
            self.marked_bytes += packet.payload_bytes
        if self.assembly is not None and self.assembly.completes(packet):
            self.inbox.deliver(packet.message)

    def handle_cut(self, packet: Packet) -> None:
        """Take a cut data packet and tell the sender.

        Its payload is missing.
        """
        self._take_slot()
        packet.host_delay_ps = 0  # it passes no host interface
        wants_ack = self.state is not None and self._run_step(self._packet_signal(Kind.TRIM, packet))
        is_missing = packet.seq >= self.expected and packet.seq not in self.early
        if not is_missing:
            self.count("duplicates")
        self._answer(PacketKind.NAK if is_missing else PacketKind.ACK, packet)
        if wants_ack:
            self._answer(PacketKind.ACK, None)

    def requested(self, packet: Packet) -> None:
        """Take a REQUEST, which only the step hears."""
        self._take_slot()
        if self.state is not None and self._run_step(self._packet_signal(Kind.REQUEST, packet)):
            self._answer(PacketKind.ACK, None)

    def probed(self) -> None:
        """Answer a PROBE."""
        self._answer(PacketKind.ACK, None)

    def claimed(self) -> None:
        """Free the buffer of a message that a RECEIVE has taken.

        A sender without credits must hear of it.
        """
        if self.transport.end_to_end_credits and self.last_credit_code == 0:
            self._answer(PacketKind.ACK, None)

    def move(self, line: ReceiverLine, destination: int) -> None:
        """Move to other ports.

        A slot is replaced by a slot there, and timers keep their instants.
        """
        if self.early:
            self.line.keep_early(-len(self.early))
            line.keep_early(len(self.early))
        self.line, self.destination = line, destination
        line.attach_receiver(self)
        if self.slot == OFF:
            return
        self.slot = self.line.new_receiver_slot()
        if self.timers is not None:
            self.timers.schedule(self.line.id, self.slot)

    # Answers

    def _answer(self, kind: PacketKind, echo: Packet | None) -> None:
        """Queue an ACK or NAK.

        Without an echo it says nothing about a packet.
        """
        packet = self._control_packet(kind, self.transport.ack_bytes + self._echo_bytes(echo))
        packet.is_marked, self.is_marked = self.is_marked, False
        packet.echo = echo
        if echo is not None and self.transport.reply_entropy == "echoed":
            packet.entropy = echo.entropy
        packet.host_delay_ps = echo.host_delay_ps if echo is not None else 0
        packet.marked_bytes = self.marked_bytes
        packet.msn = self.inbox.delivered
        if self.transport.end_to_end_credits:
            packet.credit_code = self.last_credit_code = credits_to_code(self._free_buffers())
        self.line.queue_control(packet)

    def _echo_bytes(self, echo: Packet | None) -> int:
        """Extra bytes of an answer that echoes a packet."""
        if echo is None:
            return 0
        transport = self.transport
        telemetry_bytes = transport.telemetry_bytes + len(echo.hops) * transport.telemetry_hop_bytes
        return transport.echo_bytes + (telemetry_bytes if self.config.has_telemetry else 0)

    def _free_buffers(self) -> int:
        inbox = self.inbox
        claimed = inbox.claimed if self.config.has_receives else inbox.delivered
        return self.transport.end_to_end_credits - inbox.delivered + claimed

    def _control_packet(self, kind: PacketKind, size_bytes: int) -> Packet:
        packet = Packet(
            flow=self.flow,
            origin=self.line.id,
            destination=self.destination,
            kind=kind,
            seq=self.expected,
            attempt=self.control_packets % (1 << 16),
            size_bytes=size_bytes,
            traffic_class=self.config.control_class,
            entropy=self.flow.entropy,
        )
        self.control_packets += 1
        self.count(_SENT_COUNTER[kind])
        return packet

    # The receiver's step

    def _run_step_on_data(self, packet: Packet) -> bool:
        """Call the step for a packet; returns whether it wants an ACK.

        It is called if it wants this packet.
        """
        if self.state is None or not (self.wants_all_data or packet.is_marked):
            return False
        signal = self._packet_signal(Kind.DATA, packet)
        signal.ecn = int(packet.is_marked)
        signal.host_delay_ps = packet.host_delay_ps
        return self._run_step(signal)

    def _packet_signal(self, kind: Kind, packet: Packet) -> Any:  # noqa: ANN401
        """Make the step's signal of a packet from the sender.

        It is DATA, a cut packet or not, or REQUEST.
        """
        signal = self._signal(kind)
        signal.seq = packet.seq
        signal.request_bytes = packet.request_bytes
        signal.hops = packet.hop_count
        if kind != Kind.REQUEST:
            signal.bytes = packet.payload_bytes
            signal.entropy = packet.entropy
            signal.last_hop = int(packet.is_cut_at_last_hop)
        return signal

    def _signal(self, kind: Kind) -> Any:  # noqa: ANN401 - the record of the policies
        signal = self.control.new_signal()
        signal.kind = int(kind)
        signal.now_ps = self.clock.now_ps
        signal.line_rate_bps = self.line.rate_bps
        signal.base_rtt_ps = self.base_rtt_ps
        signal.mtu_bytes = self.transport.mtu_bytes
        return signal

    def _run_step(self, signal: Any) -> bool:  # noqa: ANN401
        state = self.state
        self.control.call_receive(state, self.line.shared_state, signal)
        wants_cnp, wants_ack = bool(state.send_cnp), bool(state.send_ack)
        wants_credit = bool(state.send_credit) or state.credit_bytes > self.credit_bytes_told
        state.send_cnp = state.send_credit = state.send_ack = 0
        if wants_cnp:
            self.line.queue_control(self._control_packet(PacketKind.CNP, self.transport.cnp_bytes))
        if wants_credit:
            packet = self._control_packet(PacketKind.CREDIT, self.transport.credit_bytes)
            packet.credit_bytes = self.credit_bytes_told = int(state.credit_bytes)
            self.line.queue_control(packet)
        if self.timers is not None:
            self.timers.schedule(self.line.id, self.slot)
        return wants_ack

    def _timer_fires(self, timer: int) -> None:
        signal = self._signal(Kind.TIMER)
        signal.timer = timer
        if self._run_step(signal):
            self._answer(PacketKind.ACK, None)
