"""The receiver alone, on a clock and a line that the test moves: order, answers, credits and its step."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest
from helpers.by_hand import (
    CONTROL_CLASS,
    FLOW,
    MTU_BYTES,
    RATE_BPS,
    HandClock,
    HandControl,
    HandInbox,
    HandLine,
    Tally,
    answer,
    data,
    queue_pair_config,
)

from weftwork.base.clock import US_PS
from weftwork.engine.reference.clock import Agenda, Phase
from weftwork.engine.reference.packet import HopTelemetry, Packet, PacketKind
from weftwork.engine.reference.receiver import Receiver
from weftwork.policies.interface import OFF, Kind
from weftwork.wire.credits import credits_to_code


@dataclass
class Driven:
    """A receiver with all that it sees."""

    receiver: Receiver
    clock: HandClock
    line: HandLine
    inbox: HandInbox
    control: HandControl
    counted: Tally

    def takes(self, *seqs: int, **changes: Any) -> list[tuple[str, int]]:
        """Data packets, each of which asks for an ACK unless told otherwise; returns the answers."""
        for seq in seqs:
            self.receiver.handle(data(seq, **({"asks_ack": True} | changes)))
        return self.line.answers()

    def answers_to(self, packet: Packet) -> Packet:
        """The one answer to a packet."""
        self.receiver.handle(packet)
        (answer,) = self.line.control
        self.line.control = []
        return answer


def drive(receiver_signals: str | None = None, *, has_receives: bool = True, **changes: Any) -> Driven:
    clock, line, inbox, counted = HandClock(), HandLine(port=1), HandInbox(), Tally()
    control = HandControl(receiver_signals=receiver_signals)
    receiver = Receiver(
        FLOW,
        queue_pair_config(control, has_receives=has_receives, **changes),
        clock=clock,
        line=line,
        destination=0,
        inbox=inbox,
        base_rtt_ps=7 * US_PS,
        count=counted,
    )
    assert line.receivers == [receiver]
    return Driven(receiver, clock, line, inbox, control, counted)


# Order


def test_acks_are_sent_where_packets_ask_for_them_and_acknowledge_all_before() -> None:
    driven = drive()
    answers = [driven.takes(seq, asks_ack=seq % 4 == 3) for seq in range(8)]
    assert answers == [[], [], [], [("ACK", 4)], [], [], [], [("ACK", 8)]]
    assert driven.counted == {"acks_sent": 2}


def test_a_message_is_delivered_with_its_last_packet() -> None:
    driven = drive()
    driven.takes(0)
    assert driven.inbox.delivered == 0
    driven.takes(1, ends_message=True)
    assert driven.inbox.delivered == 1
    driven.takes(1, ends_message=True)  # again: a duplicate delivers nothing
    assert driven.inbox.delivered == 1


def test_a_gap_is_told_once_until_it_is_closed() -> None:
    driven = drive()
    driven.takes(0)
    assert driven.takes(2, 3, 4) == [("NAK", 1)]
    assert driven.takes(1) == [("ACK", 2)]
    assert driven.takes(3) == [("NAK", 2)]
    assert driven.counted == {"out_of_order_discards": 4, "naks_sent": 2, "acks_sent": 2}


def test_a_gap_before_the_first_packet_is_one_as_well() -> None:
    assert drive().takes(1) == [("NAK", 0)]


def test_under_timeout_recovery_a_gap_is_told_never() -> None:
    driven = drive(recovery="timeout")
    assert driven.takes(1, 2) == []
    assert driven.counted == {"out_of_order_discards": 2}


@pytest.mark.parametrize("recovery", ["go-back-n", "timeout"])
def test_what_comes_early_is_kept_within_the_window_and_discarded_from_its_end_on(recovery: str) -> None:
    driven = drive(recovery=recovery, reorder_tolerant=True, reorder_window_packets=4)
    assert driven.takes(4, asks_ack=False) == []  # 4 - 0 is the window itself
    assert driven.counted == {"out_of_order_discards": 1}
    assert driven.takes(3) == [("ACK", 0)]
    assert sorted(driven.receiver.early) == [3]
    driven.takes(1, 2, asks_ack=False, ends_message=True)
    assert driven.inbox.delivered == 0
    assert driven.takes(0, asks_ack=False, ends_message=True) == [("ACK", 4)]  # packet 3 had asked
    assert driven.inbox.delivered == 3
    assert driven.receiver.early == {}


def test_the_window_of_what_is_kept_moves_with_what_is_expected() -> None:
    driven = drive(reorder_tolerant=True, reorder_window_packets=4)
    driven.takes(0, 1, 2)
    driven.takes(6, 7)
    assert (sorted(driven.receiver.early), driven.counted["out_of_order_discards"]) == ([6], 1)


def test_a_gap_that_closes_before_packets_that_ask_for_nothing_is_not_acknowledged() -> None:
    driven = drive(reorder_tolerant=True)
    driven.takes(1, asks_ack=False)
    assert driven.takes(0, asks_ack=False) == []


def test_any_copy_of_an_early_packet_may_ask_for_the_ack_and_its_end_of_message_stays() -> None:
    driven = drive(reorder_tolerant=True)
    driven.takes(1, asks_ack=False, ends_message=True)
    assert driven.takes(1, ends_message=True) == [("ACK", 0)]  # as any duplicate
    assert driven.takes(0, asks_ack=False) == [("ACK", 2)]
    assert driven.inbox.delivered == 1


def test_a_duplicate_is_counted_and_acknowledged_whether_it_asks_or_not() -> None:
    driven = drive()
    driven.takes(0, 1)
    assert driven.takes(0, asks_ack=False) == [("ACK", 2)]
    assert driven.counted["duplicates"] == 1


def test_under_selective_repeat_every_packet_that_is_kept_is_told_of() -> None:
    driven = drive(recovery="selective-repeat")
    driven.receiver.handle(data(2, asks_ack=True))
    driven.receiver.handle(data(4, asks_ack=True))
    assert [(packet.kind.name, packet.seq, packet.echo.seq) for packet in driven.line.control if packet.echo] == [
        ("NAK", 0, 2),
        ("NAK", 0, 4),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_in_whatever_order_packets_come_every_message_is_delivered_once_when_all_before_it_is_there(seed: int) -> None:
    source = random.Random(seed)
    ends = sorted(source.sample(range(40), 9))
    driven = drive(recovery="selective-repeat", reorder_window_packets=100)
    arrivals = [seq for seq in range(ends[-1] + 1) for _ in range(source.randrange(1, 3))]
    source.shuffle(arrivals)
    seen: set[int] = set()
    for seq in arrivals:
        driven.takes(seq, ends_message=seq in ends)
        seen.add(seq)
        there = next(expected for expected in range(len(arrivals) + 1) if expected not in seen)
        assert driven.receiver.expected == there
        assert driven.inbox.delivered == sum(end < there for end in ends)
    assert driven.inbox.delivered == len(ends)


# What an answer carries


def test_an_answer_goes_back_with_the_packet_that_caused_it_and_a_number_of_its_own() -> None:
    driven = drive()
    packets = [data(seq, asks_ack=True, entropy=50_000 + seq) for seq in range(3)]
    answers = [driven.answers_to(packet) for packet in packets]
    assert [answer.echo for answer in answers] == packets
    assert {(answer.origin, answer.destination, answer.traffic_class) for answer in answers} == {(1, 0, CONTROL_CLASS)}
    assert [answer.attempt for answer in answers] == [0, 1, 2]
    assert len({answer.identity for answer in answers}) == 3


def test_a_mark_is_echoed_once_with_the_next_answer() -> None:
    driven = drive()
    assert not driven.answers_to(data(0, asks_ack=True)).is_marked
    driven.takes(1, asks_ack=False, is_marked=True)
    assert [driven.answers_to(data(seq, asks_ack=True)).is_marked for seq in (2, 3)] == [True, False]


def test_an_answer_tells_how_long_the_host_held_the_packet() -> None:
    driven = drive()
    driven.clock.go_to(5 * US_PS)
    answer = driven.answers_to(data(0, asks_ack=True, arrived_at_ps=2 * US_PS))
    assert answer.host_delay_ps == 3 * US_PS


def test_a_probe_is_answered_by_an_ack_without_echo() -> None:
    driven = drive()
    driven.takes(0)
    driven.receiver.probed()
    (answer,) = driven.line.control
    assert (answer.kind.name, answer.seq, answer.echo) == ("ACK", 1, None)


# End-to-end credits


def test_a_delivered_message_keeps_its_buffer_until_it_is_claimed() -> None:
    driven = drive(end_to_end_credits=4)
    told = [driven.answers_to(data(seq, asks_ack=True, ends_message=True)) for seq in range(3)]
    assert [(answer.msn, answer.credit_code) for answer in told] == [
        (1, credits_to_code(3)),
        (2, credits_to_code(2)),
        (3, credits_to_code(1)),
    ]
    driven.inbox.claimed = 2
    told = [driven.answers_to(data(3, asks_ack=True))]
    assert told[0].credit_code == credits_to_code(3)


def test_a_claim_is_told_of_only_to_a_sender_without_credits() -> None:
    driven = drive(end_to_end_credits=2)
    driven.takes(0, ends_message=True)
    driven.inbox.claimed = 1
    driven.receiver.claimed()
    assert driven.line.answers() == []  # it had one left
    driven.takes(1, ends_message=True)
    driven.inbox.claimed = 0
    driven.takes(2)
    driven.inbox.claimed = 1
    driven.receiver.claimed()
    (answer,) = driven.line.control
    assert (answer.kind.name, answer.echo, answer.credit_code) == ("ACK", None, credits_to_code(1))


def test_where_nobody_claims_a_buffer_is_free_at_once() -> None:
    driven = drive(end_to_end_credits=4, has_receives=False)
    told = [driven.answers_to(data(seq, asks_ack=True, ends_message=True)) for seq in range(3)]
    assert {answer.credit_code for answer in told} == {credits_to_code(4)}


def test_without_credits_an_answer_promises_nothing() -> None:
    driven = drive()
    assert driven.answers_to(data(0, asks_ack=True, ends_message=True)).credit_code == 0
    driven.receiver.claimed()
    assert driven.line.answers() == []


# The receiver's step


def asks_for_all(state: Any, signal: Any) -> None:
    del signal
    state.send_cnp, state.credit_bytes, state.send_ack = 1, 7 * MTU_BYTES, 1


def test_a_step_gets_a_cnp_a_credit_and_an_ack_in_this_order_and_once() -> None:
    driven = drive("data")
    driven.control.on_step = asks_for_all
    driven.receiver.handle(data(0))
    assert [(packet.kind.name, packet.credit_bytes) for packet in driven.line.control] == [
        ("CNP", 0),
        ("CREDIT", 7 * MTU_BYTES),
        ("ACK", 0),
    ]
    driven.line.answers()
    driven.control.on_step = lambda _state, _signal: None
    assert driven.takes(1, asks_ack=False) == []
    assert driven.counted == {"cnps_sent": 1, "credits_sent": 1, "acks_sent": 1}


def test_a_step_that_wants_marks_sees_marked_packets_only() -> None:
    driven = drive("ecn")
    driven.takes(0)
    driven.takes(1, is_marked=True)
    assert [(told.seq, told.ecn) for told in driven.control.heard] == [(1, 1)]


def test_a_step_is_told_of_the_packet_and_of_the_line() -> None:
    driven = drive("data")
    driven.clock.go_to(3 * US_PS)
    driven.takes(0, entropy=51_000, arrived_at_ps=US_PS)
    (told,) = driven.control.heard
    assert (told.kind, told.now_ps, told.bytes, told.seq) == (Kind.DATA, 3 * US_PS, MTU_BYTES, 0)
    assert (told.entropy, told.host_delay_ps) == (51_000, 2 * US_PS)
    assert (told.line_rate_bps, told.base_rtt_ps, told.mtu_bytes) == (RATE_BPS, 7 * US_PS, MTU_BYTES)


def test_a_timer_of_the_step_fires_at_the_place_of_the_receiver_and_may_ask_for_an_ack() -> None:
    driven = drive("data")
    driven.line.receiver_slots = 3
    driven.control.on_step = lambda state, _signal: state.timer_at_ps.__setitem__(2, US_PS)
    driven.takes(0)
    assert driven.clock.calls == [(US_PS, Phase.AGENDA, (Agenda.RECEIVER, 1, 3, 2))]
    driven.control.on_step = asks_for_all
    driven.clock.go_to(US_PS)
    assert driven.control.kinds() == ["DATA", "TIMER"]
    assert [packet.echo for packet in driven.line.control] == [None] * 3


def test_a_credit_tells_all_that_was_granted_when_that_has_grown_or_when_the_step_says_so() -> None:
    driven = drive("data")

    def grants(credit_bytes: int, send_credit: int) -> list[int]:
        """What the CREDITs tell that one packet leads to."""

        def step(state: Any, _signal: Any) -> None:
            state.credit_bytes, state.send_credit = credit_bytes, send_credit

        driven.control.on_step = step
        driven.receiver.handle(data(driven.receiver.expected))
        told, driven.line.control = driven.line.control, []
        assert driven.receiver.state.send_credit == 0
        return [packet.credit_bytes for packet in told]

    assert grants(0, 0) == []
    assert grants(0, 1) == [0]
    assert grants(4_000, 0) == [4_000]
    assert grants(4_000, 0) == []
    assert grants(4_000, 1) == [4_000]  # again, where one may be lost
    assert grants(9_000, 1) == [9_000]
    assert driven.receiver.state.credit_bytes == 9_000
    assert driven.counted["credits_sent"] == 4


def test_a_step_is_told_of_the_switches_that_a_packet_has_passed_and_of_its_request() -> None:
    driven = drive("data")
    driven.takes(0, hop_count=3, request_bytes=700)
    (told,) = driven.control.heard
    assert (told.hops, told.request_bytes, told.last_hop) == (3, 700, 0)


# Requests


def request(seq: int, **changes: Any) -> Packet:
    return answer(PacketKind.REQUEST, seq, origin=0, destination=1, size_bytes=66, **changes)


@pytest.mark.parametrize("receiver_signals", ["data", "ecn"])
def test_a_request_is_for_the_step_alone(receiver_signals: str) -> None:
    driven = drive(receiver_signals)
    driven.clock.go_to(3 * US_PS)
    driven.receiver.requested(request(9, request_bytes=700, hop_count=3))
    (told,) = driven.control.heard
    assert (told.kind, told.now_ps, told.seq, told.request_bytes, told.hops) == (Kind.REQUEST, 3 * US_PS, 9, 700, 3)
    assert (told.bytes, told.entropy, told.line_rate_bps, told.base_rtt_ps) == (0, 0, RATE_BPS, 7 * US_PS)
    assert driven.line.answers() == []
    assert (driven.receiver.slot, driven.line.receiver_slots) == (0, 1)
    driven.control.on_step = asks_for_all
    driven.receiver.requested(request(9))
    assert [(packet.kind.name, packet.echo) for packet in driven.line.control] == [
        ("CNP", None),
        ("CREDIT", None),
        ("ACK", None),
    ]


def test_without_a_step_a_request_takes_a_slot_and_nothing_else() -> None:
    driven = drive()
    driven.receiver.requested(request(0))
    assert (driven.receiver.slot, driven.receiver.expected, driven.line.answers()) == (0, 0, [])


# What was cut


def cut(seq: int, **changes: Any) -> Packet:
    return data(seq, **({"size_bytes": 64, "is_cut": True} | changes))


def test_what_was_cut_is_told_as_missing_unless_it_is_here() -> None:
    driven = drive(recovery="selective-repeat")
    driven.takes(0, 3)
    driven.receiver.handle_cut(cut(1))
    driven.receiver.handle_cut(cut(1))
    driven.receiver.handle_cut(cut(9, is_cut_at_last_hop=True))
    driven.receiver.handle_cut(cut(0))
    driven.receiver.handle_cut(cut(3))
    told = driven.line.control
    assert [(packet.kind.name, packet.seq) for packet in told] == [
        ("NAK", 1),
        ("NAK", 1),
        ("NAK", 1),
        ("ACK", 1),
        ("ACK", 1),
    ]
    echoes = [packet.echo for packet in told if packet.echo is not None]
    assert [(echo.seq, echo.is_cut, echo.is_cut_at_last_hop) for echo in echoes] == [
        (1, True, False),
        (1, True, False),
        (9, True, True),
        (0, True, False),
        (3, True, False),
    ]
    assert driven.counted["duplicates"] == 2
    assert (driven.receiver.expected, sorted(driven.receiver.early), driven.inbox.delivered) == (1, [3], 0)


def test_what_was_cut_marks_nothing_and_was_held_by_no_host() -> None:
    driven = drive(recovery="selective-repeat")
    driven.clock.go_to(5 * US_PS)
    driven.receiver.handle_cut(cut(0, is_marked=True, arrived_at_ps=5 * US_PS))
    (told,) = driven.line.control
    assert (told.is_marked, told.marked_bytes, told.host_delay_ps) == (False, 0, 0)


def test_a_mark_that_waits_for_an_answer_goes_with_that_to_a_cut_packet() -> None:
    driven = drive(recovery="selective-repeat")
    driven.takes(0, asks_ack=False, is_marked=True)
    driven.receiver.handle_cut(cut(1))
    (told,) = driven.line.control
    assert (told.is_marked, told.marked_bytes) == (True, MTU_BYTES)


@pytest.mark.parametrize("receiver_signals", ["data", "ecn"])
def test_a_step_hears_of_what_was_cut_before_the_sender_does(receiver_signals: str) -> None:
    driven = drive(receiver_signals, recovery="selective-repeat")
    driven.control.on_step = asks_for_all
    packet = cut(2, entropy=51_000, hop_count=3, request_bytes=700, is_cut_at_last_hop=True, is_marked=True)
    driven.receiver.handle_cut(packet)
    (told,) = driven.control.heard
    assert (told.kind, told.bytes, told.seq, told.entropy) == (Kind.TRIM, MTU_BYTES, 2, 51_000)
    assert (told.hops, told.request_bytes, told.last_hop, told.ecn) == (3, 700, 1, 0)
    assert [(packet.kind.name, packet.echo is not None) for packet in driven.line.control] == [
        ("CNP", False),
        ("CREDIT", False),
        ("NAK", True),
        ("ACK", False),
    ]
    assert driven.receiver.slot == 0


# Marked bytes and sizes


def test_marked_bytes_are_those_that_have_arrived_once() -> None:
    driven = drive(reorder_tolerant=True, reorder_window_packets=4)
    told = [
        driven.answers_to(data(seq, asks_ack=True, is_marked=seq != 1, payload_bytes=1_000 + seq)).marked_bytes
        for seq in (0, 1, 3, 3, 0, 2)
    ]
    assert told == [1_000, 1_000, 2_003, 2_003, 2_003, 3_005]
    driven.takes(9, is_marked=True)  # too early to be kept
    assert driven.answers_to(data(4, asks_ack=True)).marked_bytes == 3_005


ECHOES = {"ack_bytes": 66, "echo_bytes": 6, "telemetry_bytes": 4, "telemetry_hop_bytes": 8}


def test_telemetry_that_nobody_asks_for_is_not_echoed() -> None:
    assert drive(echoes=False, **ECHOES).answers_to(data(0, asks_ack=True)).size_bytes == 72


def test_an_answer_is_larger_for_what_it_echoes() -> None:
    driven = drive(recovery="selective-repeat", **ECHOES)
    hop = HopTelemetry(queue_bytes=0, tx_bytes=0, rate_bps=0, at_ps=0, port=0)
    sizes = [
        driven.answers_to(data(seq, asks_ack=True, hops=[hop] * hops)).size_bytes for seq, hops in ((0, 0), (3, 2))
    ]
    driven.receiver.handle_cut(cut(1))
    driven.receiver.probed()
    assert sizes + [packet.size_bytes for packet in driven.line.control] == [76, 92, 76, 66]


# Slots and failover


def test_a_receiver_takes_its_slot_with_its_first_data_packet() -> None:
    driven = drive()
    assert driven.receiver.slot == OFF
    driven.takes(0, 1)
    assert (driven.receiver.slot, driven.line.receiver_slots) == (0, 1)


def test_at_another_port_it_answers_from_there_and_its_timers_keep_their_instants() -> None:
    driven = drive("data")
    driven.control.on_step = lambda state, _signal: state.timer_at_ps.__setitem__(0, 5 * US_PS)
    driven.takes(0)
    other = HandLine(port=5)
    other.receiver_slots = 2
    driven.receiver.move(other, destination=4)
    assert (other.receivers, driven.receiver.slot) == ([driven.receiver], 2)
    assert (5 * US_PS, Phase.AGENDA, (Agenda.RECEIVER, 5, 2, 0)) in driven.clock.calls
    driven.receiver.handle(data(1, asks_ack=True))
    assert [(packet.origin, packet.destination) for packet in other.control] == [(5, 4)]
    driven.control.kinds()
    driven.control.on_step = lambda _state, _signal: None
    driven.clock.go_to(5 * US_PS)
    assert driven.control.kinds() == ["TIMER"]  # once, though the agenda has it for both ports


def test_a_receiver_without_a_slot_takes_none_when_it_moves() -> None:
    driven = drive()
    other = HandLine(port=5)
    driven.receiver.move(other, destination=4)
    assert (other.receivers, other.receiver_slots, driven.receiver.slot) == ([driven.receiver], 0, OFF)
