"""The sending end of a queue pair: window, pacing, acknowledgements, sending again, timeouts and credits.

Source: `docs/models/packet-engine.md`, section Queue pairs and the sending NIC; go-back-N and its timer are those of
IBTA vol. 1, 9.7.5 and 9.7.6. What selective repeat remembers is in `selective_repeat`.
Leaves out: RNR NAKs; the network, of which it sees a clock and a line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from weftwork.base.clock import NEVER_PS
from weftwork.base.random import Stream
from weftwork.engine.reference.clock import Agenda, Clock, Phase
from weftwork.engine.reference.flow import Flow, QueuePairConfig
from weftwork.engine.reference.line import SenderLine
from weftwork.engine.reference.message import SendQueue
from weftwork.engine.reference.packet import Packet, PacketKind
from weftwork.engine.reference.selective_repeat import Scoreboard
from weftwork.engine.reference.timers import PolicyTimers
from weftwork.policies.interface import NO_WINDOW_BYTES, OFF, CongestionControl, Kind, PathSelection
from weftwork.wire.ib import code_to_credits

__all__ = ["Sender"]

PS_PER_BYTE_SECOND: Final = 8e12
ATTEMPTS: Final = 1 << 16


class Sender:
    """State by the names of the page: ``una``, ``nxt``, ``high`` count packets; bytes are payload.

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
        self.base_rtt_ps = base_rtt_ps
        self.count = count
        self.transport = config.transport
        self.queue = queue
        self.slot = line.attach(self)
        self.una = 0
        self.nxt = 0
        self.high = 0
        self.next_send_at_ps = 0
        self.deadline_at_ps = OFF
        self.retries = 0
        self.attempt = 0
        self.probes = 0
        self.acked_messages = 0
        self.has_failed = False
        self.credit_limit = self.transport.end_to_end_credits
        self.scoreboard = Scoreboard() if self.transport.recovery == "selective-repeat" else None
        self.control = config.congestion_control
        self.state: Any = self.control.new_state()
        self.state.rate_bps = float(line.rate_bps)
        self.state.window_bytes = NO_WINDOW_BYTES
        self.timers = PolicyTimers(clock, Agenda.CONGESTION_CONTROL, self.state, self._timer_fires, self.control)
        self.control_signals = cast("CongestionControl", self.control.plugin).signals | {Kind.START, Kind.TIMER}
        self.path = config.path_selection
        self.path_entropy = flow.entropy
        self.path_state: Any = None
        self.path_signals: frozenset[Kind] = frozenset()
        if self.path is not None:
            plugin = cast("PathSelection", self.path.plugin)
            self.path_signals = plugin.signals
            self.path_per_packet = plugin.per == "packet"
            self.path_state = self.path.new_state()
            self.path_state.entropy = flow.entropy

    # What may be sent

    @property
    def end(self) -> int:
        """Packets posted."""
        return self.queue.end

    @property
    def has_credit(self) -> bool:
        """Whether the message of the next packet may start."""
        return self.transport.end_to_end_credits == 0 or self.queue.ordinal_of(self.nxt) < self.credit_limit

    @property
    def inflight_bytes(self) -> int:
        """Payload that was sent and of which nothing is known: not acknowledged, not kept by the receiver, not lost."""
        away = () if self.scoreboard is None else self.scoreboard.away
        left_bytes = sum(self.queue.payload_bytes(packet, packet + 1) for packet in away)
        return self.queue.payload_bytes(self.una, self.nxt) - left_bytes

    @property
    def first_lost(self) -> int | None:
        """The packet that selective repeat has to send again next."""
        return None if self.scoreboard is None else self.scoreboard.first_lost

    def wants_to_send(self) -> bool:
        """Whether there is a packet that only time, a pause, the window or credits hold back."""
        return not self.has_failed and (self.nxt < self.end or self.first_lost is not None)

    def next_packet(self) -> int | None:
        """The packet that may leave now: a lost one, whatever credits say, or else the next new one."""
        if not self.wants_to_send() or self.next_send_at_ps > self.clock.now_ps:
            return None
        lost = self.first_lost
        if lost is not None and not self._is_paused(lost) and (self._resends_at_once or self._window_allows(lost)):
            return lost
        may_leave = (
            self.nxt < self.end and not self._is_paused(self.nxt) and self.has_credit and self._window_allows(self.nxt)
        )
        return self.nxt if may_leave else None

    def _is_paused(self, seq: int) -> bool:
        return self.line.is_paused(self.queue.message_of(seq).traffic_class)

    @property
    def _resends_at_once(self) -> bool:
        return self.transport.resend == "at-once"

    def _window_allows(self, seq: int) -> bool:
        inflight_bytes, window_bytes = self.inflight_bytes, self.state.window_bytes
        payload_bytes = self.queue.payload_bytes(seq, seq + 1)
        return bool(inflight_bytes + payload_bytes <= window_bytes or (inflight_bytes == 0 and window_bytes > 0))

    def post(self, size_bytes: int, traffic_class: int, completed: Callable[[], None]) -> None:
        """Take a message over; ``completed`` is called when all of it is acknowledged."""
        is_new = self.end == 0
        was_idle = self.una == self.end
        self.queue.append(size_bytes, traffic_class, self.clock.now_ps, completed)
        if is_new:
            self._tell_control(self._signal(Kind.START))
        elif was_idle:
            self._tell_control(self._signal(Kind.RESUME))
        self._watch_credits()
        self.line.start()

    def send(self, seq: int) -> Packet:
        """Packet ``seq``, which `next_packet` has found and which starts now."""
        now_ps = self.clock.now_ps
        is_lost = seq == self.first_lost
        if is_lost:
            self.attempt = (self.attempt + 1) % ATTEMPTS
        message = self.queue.message_of(seq)
        payload_bytes = self.queue.payload_bytes(seq, seq + 1)
        is_first = seq == message.first
        packet = self._packet(
            PacketKind.DATA,
            seq=seq,
            attempt=self.attempt,
            size_bytes=payload_bytes + self.transport.data_overhead_bytes + self.transport.telemetry_bytes
            + (self.transport.first_extra_bytes if is_first else 0),
            traffic_class=message.traffic_class,
        )  # fmt: skip
        packet.payload_bytes = payload_bytes
        packet.ends_message = seq + 1 == message.end
        packet.sent_at_ps = now_ps
        packet.entropy = self._choose_entropy(packet, is_first=is_first)
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
        self._tell_control(self._signal(Kind.SEND, bytes=payload_bytes, seq=seq, entropy=packet.entropy))
        gap = (packet.size_bytes + self.transport.interframe_bytes) * PS_PER_BYTE_SECOND / self.state.rate_bps
        self.next_send_at_ps = now_ps + int(min(gap, float(NEVER_PS)))
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

    def _choose_entropy(self, packet: Packet, *, is_first: bool) -> int:
        path = self.path
        if path is not None and (self.path_per_packet or is_first):
            draw_bits = packet.draw(self.config.seed, Stream.PATH_CHOICE, self.line.id) >> 2
            signal = self._signal(
                Kind.SEND, bytes=packet.payload_bytes, seq=packet.seq, draw=draw_bits, entropy=self.flow.entropy
            )
            path.call_step(self.path_state, signal)
            self.path_entropy = int(self.path_state.entropy)
        return self.path_entropy

    # What the receiver says

    def receive(self, packet: Packet) -> None:
        """Take an ACK, NAK, CNP or CREDIT."""
        if self.has_failed:
            return
        if packet.kind == PacketKind.CNP:
            if self.una < self.end:
                self._tell_control(self._signal(Kind.CNP))
        elif packet.kind == PacketKind.CREDIT:
            self._tell_control(self._signal(Kind.CREDIT, bytes=packet.credit_bytes))
        elif packet.seq >= self.una or (packet.kind == PacketKind.NAK and self.scoreboard is not None):
            self._acknowledged(packet)
        self.line.start()

    def _acknowledged(self, packet: Packet) -> None:
        """An ACK or NAK whose expected number is not old; under selective repeat, an old NAK tells what is kept."""
        expected, is_nak = max(self.una, packet.seq), packet.kind == PacketKind.NAK
        had_lost = self.first_lost is not None
        is_new = expected > self.una
        newly_bytes = self.queue.payload_bytes(self.una, expected)
        if is_new:
            self._advance(expected)
        if self.scoreboard is not None and packet.echo is not None and is_nak and packet.echo.seq >= self.una:
            threshold = self.transport.reorder_threshold_packets
            self.scoreboard.keeps(packet.echo.seq, una=self.una, threshold_packets=threshold)
        if self.transport.end_to_end_credits:
            self.credit_limit = max(self.credit_limit, packet.msn + (code_to_credits(packet.credit_code) or 0))
        if is_new or not is_nak or self.scoreboard is not None:
            self._tell_path(self._ack_signal(packet, expected, newly_bytes))
            self._tell_control(self._ack_signal(packet, expected, newly_bytes))
        if self.una == self.end:  # idle
            self.timers.stop()
        if is_nak and self._recovers(had_lost=had_lost):
            self._tell_path(self._signal(Kind.NAK, seq=expected))
            self._tell_control(self._signal(Kind.NAK, seq=expected))
        self._watch_credits()

    def _recovers(self, *, had_lost: bool) -> bool:
        """What a NAK leads to: returns whether policies are told of it."""
        if self.scoreboard is not None:
            return self.first_lost is not None and not had_lost
        if self.nxt > self.una:
            self.send_again()
            return True
        return False

    def _advance(self, expected: int) -> None:
        messages = self.queue.messages
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

    def _ack_signal(self, packet: Packet, expected: int, newly_bytes: int) -> Any:  # noqa: ANN401 - the record of the policies
        echo = packet.echo
        if echo is None:
            return self._signal(Kind.ACK, bytes=newly_bytes, seq=expected, ecn=int(packet.is_marked))
        rtt_ps = self.clock.now_ps - echo.sent_at_ps
        signal = self._signal(
            Kind.ACK,
            bytes=newly_bytes,
            seq=expected,
            ecn=int(packet.is_marked),
            rtt_ps=rtt_ps,
            host_delay_ps=packet.host_delay_ps,
            fabric_delay_ps=rtt_ps - packet.host_delay_ps,
            entropy=echo.entropy,
            hops=len(echo.hops),
        )
        for index, hop in enumerate(echo.hops):
            signal.hop_queue_bytes[index] = hop.queue_bytes
            signal.hop_tx_bytes[index] = hop.tx_bytes
            signal.hop_rate_bps[index] = hop.rate_bps
            signal.hop_at_ps[index] = hop.at_ps
        return signal

    def send_again(self) -> None:
        """All that is under way, from `una` on: go back, or under selective repeat what the receiver does not keep."""
        if self.scoreboard is not None:
            self.scoreboard.lose_all(self.una, self.nxt)
        else:
            self.nxt = self.una
            self.attempt = (self.attempt + 1) % ATTEMPTS
        self.deadline_at_ps = OFF

    # Timers

    def _set_deadline(self) -> None:
        self.deadline_at_ps = self.clock.now_ps + self.transport.retransmission_timeout_ps
        self._await_deadline()

    def _await_deadline(self) -> None:
        identity = (Agenda.RETRANSMISSION, self.line.id, self.slot)
        self.clock.at(self.deadline_at_ps, Phase.AGENDA, identity, self._deadline_passes, identity)

    def _watch_credits(self) -> None:
        """With nothing outstanding the timer runs only while credits hold the queue pair back, to ask for them."""
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
            self.timers.stop()
            return
        self.send_again()
        self._tell_path(self._signal(Kind.TIMEOUT))
        self._tell_control(self._signal(Kind.TIMEOUT))

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

    # Failover

    def move(self, line: SenderLine, destination: int) -> None:
        """Go on between other ports, in a slot of its own: timers keep their instants, what is under way goes again."""
        self.line.detach(self.slot)
        self.line, self.destination = line, destination
        self.slot = line.attach(self)
        self.timers.schedule(self.line.id, self.slot)
        if self.una < self.nxt:
            self.send_again()
        elif self.deadline_at_ps != OFF:
            self._await_deadline()
        self._watch_credits()

    # Policies

    def _signal(self, kind: Kind, **fields: int) -> Any:  # noqa: ANN401 - the record of the policies
        signal = self.control.new_signal()
        signal.kind = int(kind)
        signal.now_ps = self.clock.now_ps
        signal.next_seq = self.nxt
        signal.line_rate_bps = self.line.rate_bps
        signal.base_rtt_ps = self.base_rtt_ps
        signal.mtu_bytes = self.transport.mtu_bytes
        signal.inflight_bytes = self.inflight_bytes
        signal.backlog_bytes = self.queue.payload_bytes(self.nxt, self.end)
        for name, value in fields.items():
            setattr(signal, name, value)
        return signal

    def _tell_path(self, signal: Any) -> None:  # noqa: ANN401
        if self.path is not None and signal.kind in self.path_signals:
            self.path.call_step(self.path_state, signal)

    def _tell_control(self, signal: Any) -> None:  # noqa: ANN401
        if signal.kind not in self.control_signals:
            return
        self.control.call_step(self.state, signal)
        self.timers.schedule(self.line.id, self.slot)

    def _timer_fires(self, timer: int) -> None:
        self._tell_control(self._signal(Kind.TIMER, timer=timer))
        self.line.start()
