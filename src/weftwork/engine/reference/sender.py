"""The sending end of a queue pair.

It has the window, pacing, acknowledgements, retransmission, timeouts and credits.
Source: `docs/models/packet-engine.md`, section Queue pairs and the sending NIC; go-back-N and its timer are those of
IBTA vol. 1, 9.7.5 and 9.7.6. What selective repeat remembers is in `selective_repeat`, when the next packet may leave
in `pacing`, and what policies are told and ask for in `signals` and `steps`.
Leaves out: RNR NAKs; the network, of which it sees a clock and a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from weftwork.engine.reference.clock import Agenda, Clock, Phase
from weftwork.engine.reference.flow import Flow, QueuePairConfig
from weftwork.engine.reference.line import SenderLine
from weftwork.engine.reference.message import SendQueue
from weftwork.engine.reference.pacing import Pacer
from weftwork.engine.reference.packet import Packet, PacketKind
from weftwork.engine.reference.selective_repeat import Scoreboard
from weftwork.engine.reference.signals import News, SenderSignals
from weftwork.engine.reference.steps import SenderSteps
from weftwork.policies.interface import OFF, Kind
from weftwork.wire.credits import code_to_credits

__all__ = ["Sender"]

ATTEMPTS: Final = 1 << 16


class Sender:
    """Sender state, with the names of docs/models/packet-engine.md.

    ``una``, ``nxt``, ``high`` count packets; bytes are payload.

    Parameters
    ----------
    flow, config : identity and rules of the queue pair
    clock : what time it is
    line : the NIC port at this end
    destination : address of the NIC port at the other end
    queue : what is posted here
    base_rtt_ps : round trip of a packet and its ACK without queues, for policies
    count : told of what outcomes count, by the names of `COUNTERS`
    """

    def __init__(
        self,
        flow: Flow,
        config: QueuePairConfig,
        *,
        clock: Clock,
        line: SenderLine,
        destination: int,
        queue: SendQueue,
        base_rtt_ps: int,
        count: Callable[[str], None],
    ) -> None:
        self.flow = flow
        self.config = config
        self.clock = clock
        self.line = line
        self.destination = destination
        self.count = count
        self.transport = config.transport
        self.queue = queue
        self.slot = line.attach(self)
        self.una = 0
        self.nxt = 0
        self.high = 0
        self.deadline_at_ps = OFF
        self.retries = 0
        self.attempt = 0
        self.probes = 0
        self.requests = 0
        self.granted_bytes = 0
        self.marked_bytes_seen = 0
        self.entropy_of: dict[int, int] = {}  # by packet: of its last transmission
        self.acked_messages = 0
        self.has_failed = False
        self.credit_limit = self.transport.end_to_end_credits
        self.scoreboard = Scoreboard() if self.transport.recovery == "selective-repeat" else None
        self.pacer = Pacer()
        self.signals = SenderSignals(config, clock, self, base_rtt_ps)
        self.steps = SenderSteps(
            flow,
            config,
            clock=clock,
            sender=self,
            signals=self.signals,
            pacer=self.pacer,
            queue_request=self._queue_request,
        )
        self.state = self.steps.state

    # What may be sent

    @property
    def end(self) -> int:
        """Number of posted packets."""
        return self.queue.end

    @property
    def has_credit(self) -> bool:
        """Whether the message of the next packet may start."""
        return self.transport.end_to_end_credits == 0 or self.queue.ordinal_of(self.nxt) < self.credit_limit

    @property
    def inflight_bytes(self) -> int:
        """Payload in flight: sent and neither acknowledged, kept nor lost.

        The receiver keeps packets behind gaps.
        """
        sent_bytes = self.queue.payload_bytes(self.una, self.nxt)
        return sent_bytes if self.scoreboard is None else sent_bytes - self._payload_of(self.scoreboard.away)

    @property
    def window_bytes(self) -> float:
        """Payload that may be in flight.

        Congestion control sets it, up to the cap of the transport, if it has one.
        """
        window_bytes, cap_bytes = float(self.state.window_bytes), self.transport.inflight_cap_bytes
        return min(window_bytes, cap_bytes) if cap_bytes > 0 else window_bytes

    @property
    def backlog_bytes(self) -> int:
        """Payload posted and not sent yet."""
        return self.queue.payload_bytes(self.nxt, self.end)

    @property
    def next_send_at_ps(self) -> int:
        """Earliest next send, by pacing."""
        return self.pacer.next_send_at_ps

    @property
    def first_lost(self) -> int | None:
        """The next packet that selective repeat retransmits."""
        return None if self.scoreboard is None else self.scoreboard.first_lost

    def wants_to_send(self) -> bool:
        """Whether a packet waits.

        Only time, flow control, the window or credits hold it back.
        """
        return not self.has_failed and (self.nxt < self.end or self.first_lost is not None)

    def next_packet(self) -> int | None:
        """The packet that may leave now.

        It is a lost packet, whatever credits say, or else the next new packet.
        """
        if not self.wants_to_send() or self.next_send_at_ps > self.clock.now_ps:
            return None
        lost = self.first_lost
        if lost is not None and not self._is_held(lost) and (self._resends_at_once or self._window_allows(lost)):
            return lost
        may_leave = (
            self.nxt < self.end and not self._is_held(self.nxt) and self.has_credit and self._window_allows(self.nxt)
        )
        return self.nxt if may_leave else None

    def frame_bytes(self, seq: int) -> int:
        """Frame size of a data packet at departure."""
        transport, is_first = self.transport, seq == self.queue.message_of(seq).first
        header_bytes = transport.data_overhead_bytes + transport.telemetry_bytes
        return self.queue.packet_bytes(seq) + header_bytes + (transport.first_extra_bytes if is_first else 0)

    def _is_held(self, seq: int) -> bool:
        frame_bytes = self.frame_bytes(seq) if self.transport.link_credits else 0
        return self.line.is_held(self.queue.message_of(seq).traffic_class, frame_bytes)

    @property
    def _resends_at_once(self) -> bool:
        return self.transport.resend == "at-once"

    def _window_allows(self, seq: int) -> bool:
        inflight_bytes, window_bytes = self.inflight_bytes, self.window_bytes
        payload_bytes = self.queue.packet_bytes(seq)
        return bool(inflight_bytes + payload_bytes <= window_bytes or (inflight_bytes == 0 and window_bytes > 0))

    def post(self, size_bytes: int, traffic_class: int, completed: Callable[[], None]) -> None:
        """Take over a message.

        ``completed`` is called when all of it is acknowledged.
        """
        is_new = self.end == 0
        was_idle = self.una == self.end
        self.queue.append(size_bytes, traffic_class, self.clock.now_ps, completed)
        if is_new:
            self.steps.tell(self.signals.of(Kind.START))
        elif was_idle:
            self.steps.tell(self.signals.of(Kind.RESUME))
        self._watch_credits()
        self.line.start()

    def send(self, seq: int) -> Packet:
        """Send packet ``seq``, which starts now.

        `next_packet` has found it.
        """
        now_ps = self.clock.now_ps
        is_lost = seq == self.first_lost
        if is_lost:
            self.attempt = (self.attempt + 1) % ATTEMPTS
        ordinal = self.queue.ordinal_of(seq)
        message = self.queue.messages[ordinal]
        payload_bytes = self.queue.packet_bytes(seq)
        is_first = seq == message.first
        packet = self._packet(
            PacketKind.DATA,
            seq=seq,
            attempt=self.attempt,
            size_bytes=self.frame_bytes(seq),
            traffic_class=message.traffic_class,
        )
        packet.payload_bytes = payload_bytes
        packet.ends_message = seq + 1 == message.end
        packet.message, packet.message_packets = ordinal, message.end - message.first
        packet.sent_at_ps = now_ps
        packet.entropy = self.entropy_of[seq] = self.steps.choose_entropy(packet, is_first=is_first)
        self.count("data_sent")
        if seq < self.high:
            self.count("retransmissions")
        if self.scoreboard is not None and is_lost:
            packet.asks_ack = True
            self.scoreboard.sends_again(seq, self.nxt)
        else:
            self.nxt += 1
            self.high = max(self.high, self.nxt)
            packet.asks_ack = (
                self.nxt == message.end
                or self.nxt % self.transport.ack_every == 0
                or (self.nxt < self.end and not self._window_allows(self.nxt))
            )
        if self.deadline_at_ps == OFF:
            self._set_deadline()
        sent = self.signals.of(Kind.SEND, bytes=payload_bytes, seq=seq, entropy=packet.entropy)
        self.steps.tell_control(sent)
        packet.request_bytes = int(self.state.request_bytes)
        self.pacer.sent(now_ps, packet.size_bytes + self.transport.interframe_bytes, self.state)
        return packet

    def _packet(self, kind: PacketKind, *, seq: int, attempt: int, size_bytes: int, traffic_class: int) -> Packet:
        return Packet(
            flow=self.flow,
            origin=self.line.id,
            destination=self.destination,
            kind=kind,
            seq=seq,
            attempt=attempt,
            size_bytes=size_bytes,
            traffic_class=traffic_class,
            entropy=self.flow.entropy,
        )

    # What the receiver says

    def receive(self, packet: Packet) -> None:
        """Take an ACK, NAK, CNP or CREDIT."""
        if self.has_failed:
            return
        if packet.kind == PacketKind.CNP:
            if self.una < self.end:
                self.steps.tell_control(self.signals.of(Kind.CNP))
        elif packet.kind == PacketKind.CREDIT:
            self._granted(packet.credit_bytes)
        elif packet.seq >= self.una or (packet.kind == PacketKind.NAK and self.scoreboard is not None):
            self._acknowledged(packet)
        self.line.start()

    def _granted(self, all_bytes: int) -> None:
        """Take a CREDIT, which tells all that was ever granted.

        A CREDIT with no more than an earlier one is old.
        """
        newly_bytes = all_bytes - self.granted_bytes
        if newly_bytes > 0:
            self.granted_bytes = all_bytes
            self.steps.tell_control(self.signals.of(Kind.CREDIT, bytes=newly_bytes))

    def _acknowledged(self, packet: Packet) -> None:
        """Take a current ACK or NAK.

        It is current if its expected number is not old. Under selective repeat, an old NAK tells kept packets.
        """
        expected, is_nak = max(self.una, packet.seq), packet.kind == PacketKind.NAK
        is_trim = self.scoreboard is not None and is_nak and packet.echo is not None and packet.echo.is_cut
        had_lost = self.first_lost is not None
        is_new = expected > self.una
        acked_bytes = self.queue.payload_bytes(self.una, expected)
        arrived_bytes = acked_bytes - self._sacked_bytes(expected)
        completed_messages = self._advance(expected) if is_new else 0
        joined, lost = self._learn_of_gaps(packet) if is_nak else (set[int](), set[int]())
        lost_bytes = self._payload_of(lost)
        if self.transport.end_to_end_credits:
            self.credit_limit = max(self.credit_limit, packet.msn + (code_to_credits(packet.credit_code) or 0))
        if is_new or not is_nak or (self.scoreboard is not None and not is_trim):
            news = News(
                acked_bytes=acked_bytes,
                arrived_bytes=arrived_bytes + self._payload_of(joined),
                lost_bytes=lost_bytes,
                marked_bytes=max(0, packet.marked_bytes - self.marked_bytes_seen),
                completed_messages=completed_messages,
            )
            self.steps.tell(self.signals.ack(packet, expected, news))
            self.marked_bytes_seen = max(self.marked_bytes_seen, packet.marked_bytes)
        if is_trim and lost:
            self.steps.tell(self.signals.trim(packet, lost_bytes))
        if self.una == self.end:  # idle
            self.steps.stop()
        if is_nak and not is_trim and self._recovers(had_lost=had_lost):
            self.steps.tell(self.signals.nak(packet, expected, lost_bytes))
        self._watch_credits()

    def _sacked_bytes(self, expected: int) -> int:
        """Payload below ``expected`` that is already known to have arrived."""
        sacked = () if self.scoreboard is None else self.scoreboard.sacked
        return self._payload_of(seq for seq in sacked if seq < expected)

    def _payload_of(self, packets: Iterable[int]) -> int:
        return sum(self.queue.packet_bytes(seq) for seq in packets)

    def _learn_of_gaps(self, packet: Packet) -> tuple[set[int], set[int]]:
        """Learn from a NAK: packets newly arrived, and packets newly lost."""
        board, told = self.scoreboard, packet.echo
        if board is None:
            return set(), set(range(self.una, self.nxt))  # goes back
        if told is None or told.seq < self.una:
            return set(), set()
        if told.is_cut:
            is_lost = board.trims(told.seq, una=self.una, nxt=self.nxt)
            return set(), {told.seq} if is_lost else set()
        joined = {told.seq} - board.sacked
        lost = board.keeps(told.seq, una=self.una, threshold_packets=self.transport.reorder_threshold_packets)
        return joined, lost

    def _recovers(self, *, had_lost: bool) -> bool:
        """Recover after a NAK.

        Returns whether policies are told of it.
        """
        if self.scoreboard is not None:
            return self.first_lost is not None and not had_lost
        if self.nxt > self.una:
            self.send_again()
            return True
        return False

    def _advance(self, expected: int) -> int:
        """Acknowledge all packets below ``expected``.

        Returns the number of completed messages.
        """
        messages, before = self.queue.messages, self.acked_messages
        for seq in range(self.una, expected):
            self.entropy_of.pop(seq, None)
        self.una = expected
        if self.scoreboard is not None:
            self.scoreboard.advance(expected)
        self.nxt = max(self.nxt, expected)
        self.retries = 0
        if self.una == self.nxt:
            self.deadline_at_ps = OFF
        else:
            self._set_deadline()
        while self.acked_messages < len(messages) and messages[self.acked_messages].end <= expected:
            messages[self.acked_messages].acknowledged(self.clock.now_ps)
            self.acked_messages += 1
        return self.acked_messages - before

    def send_again(self) -> int:
        """Send all packets in flight again, from `una` on.

        This is go-back-N; under selective repeat only packets that the receiver does not keep go again. Returns the
        payload that was in flight and is lost since now.
        """
        self.deadline_at_ps = OFF
        if self.scoreboard is not None:
            return self._payload_of(self.scoreboard.lose_all(self.una, self.nxt))
        lost_bytes = self.queue.payload_bytes(self.una, self.nxt)
        self.nxt = self.una
        self.attempt = (self.attempt + 1) % ATTEMPTS
        return lost_bytes

    # Timers

    @property
    def timeout_ps(self) -> int:
        """Timeout of a new deadline.

        It is the policy's, the timeout for few packets, or the usual one.
        """
        transport = self.transport
        if self.state.timeout_ps > 0:
            return int(self.state.timeout_ps)
        if transport.timeout_low_ps > 0 and self.nxt - self.una <= transport.timeout_low_packets:
            return transport.timeout_low_ps
        return transport.retransmission_timeout_ps

    def _set_deadline(self) -> None:
        self.deadline_at_ps = self.clock.now_ps + self.timeout_ps
        self._await_deadline()

    def _await_deadline(self) -> None:
        identity = (Agenda.RETRANSMISSION, self.line.id, self.slot)
        self.clock.at(self.deadline_at_ps, Phase.AGENDA, identity, self._deadline_passes, identity)

    def _watch_credits(self) -> None:
        """Ask for credits by timer while they hold the queue pair back.

        It applies with nothing outstanding.
        """
        if self.una != self.nxt:
            return
        if not self._lacks_credits():
            self.deadline_at_ps = OFF  # a packet that goes now must not inherit what is left of a probe's time
        elif self.deadline_at_ps == OFF:
            self._set_deadline()

    def _lacks_credits(self) -> bool:
        return self.una == self.nxt and self.wants_to_send() and not self.has_credit

    def _deadline_passes(self, identity: tuple[int, int, int]) -> None:
        is_moved = identity != (Agenda.RETRANSMISSION, self.line.id, self.slot)
        if is_moved or self.deadline_at_ps != self.clock.now_ps:
            return
        self.deadline_at_ps = OFF
        if self.una < self.nxt:
            self._time_out()
        elif self._lacks_credits():
            self._probe()
            self._set_deadline()
        self._watch_credits()
        self.line.start()

    def _time_out(self) -> None:
        self.retries += 1
        self.count("timeouts")
        if self.retries > self.transport.retry_limit:
            self.has_failed = True
            self.count("queue_pair_errors")
            self.steps.stop()
            return
        entropy = self.entropy_of[self.una]
        lost_bytes = self.send_again()
        self.steps.tell(self.signals.of(Kind.TIMEOUT, lost_bytes=lost_bytes, entropy=entropy))

    def _probe(self) -> None:
        packet = self._packet(
            PacketKind.PROBE,
            seq=self.una,
            attempt=self.probes % ATTEMPTS,
            size_bytes=self.transport.ack_bytes,
            traffic_class=self.config.control_class,
        )
        self.probes += 1
        self.count("probes_sent")
        self.line.queue_control(packet)

    def _queue_request(self) -> None:
        packet = self._packet(
            PacketKind.REQUEST,
            seq=self.nxt,
            attempt=self.requests % ATTEMPTS,
            size_bytes=self.transport.credit_bytes,
            traffic_class=self.config.control_class,
        )
        packet.request_bytes = int(self.state.request_bytes)
        self.requests += 1
        self.count("requests_sent")
        self.line.queue_control(packet)

    # Failover

    def move(self, line: SenderLine, destination: int) -> None:
        """Move to other ports, in another slot.

        Timers keep their instants, and packets in flight go again.
        """
        self.line.detach(self.slot)
        self.line, self.destination = line, destination
        self.slot = line.attach(self)
        self.steps.move()
        if self.una < self.nxt:
            self.send_again()
        elif self.deadline_at_ps != OFF:
            self._await_deadline()
        self._watch_credits()
