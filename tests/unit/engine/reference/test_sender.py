"""The sender alone, on a clock and a line that the test moves: what may leave, and what answers and timers change."""

from __future__ import annotations

import random

import pytest
from helpers.by_hand import (
    CONTROL_CLASS,
    FLOW,
    FRAME_BYTES,
    FRAME_PS,
    MTU_BYTES,
    RATE_BPS,
    HandLine,
    data,
)
from helpers.driven_sender import ACK, CNP, CREDIT, NAK, TIMEOUT_PS, drive

from weftwork.base.clock import NEVER_PS, US_PS
from weftwork.engine.reference.packet import PacketKind
from weftwork.policies.interface import NO_WINDOW_BYTES, OFF
from weftwork.wire.credits import credits_to_code

# What leaves


def test_a_new_sender_has_the_line_rate_and_no_window() -> None:
    state = drive().sender.state
    assert (state.rate_bps, state.window_bytes) == (float(RATE_BPS), NO_WINDOW_BYTES)


def test_a_message_leaves_as_full_packets_and_a_shorter_last_one() -> None:
    sent = drive(2 * MTU_BYTES + 100, first_extra_bytes=16).sends(3)
    assert [packet.payload_bytes for packet in sent] == [MTU_BYTES, MTU_BYTES, 100]
    assert [packet.size_bytes for packet in sent] == [FRAME_BYTES + 16, FRAME_BYTES, 162]
    assert [packet.ends_message for packet in sent] == [False, False, True]
    assert {(packet.origin, packet.destination, packet.flow) for packet in sent} == {(0, 1, FLOW)}
    assert len({packet.identity for packet in sent}) == 3


def test_nothing_leaves_without_a_message_and_an_empty_one_is_one_packet() -> None:
    driven = drive()
    assert driven.leaves() is None
    assert not driven.sender.wants_to_send()
    driven.post(0)
    (packet,) = driven.sends(1)
    assert (packet.payload_bytes, packet.ends_message) == (0, True)
    assert driven.leaves() is None
    assert not driven.sender.wants_to_send()


@pytest.mark.parametrize("rate_bps", [70_000_000_000, 399_999_999_999, 1_000_000_007])
def test_the_gap_between_two_packets_is_the_frame_at_the_rate_to_the_picosecond(rate_bps: int) -> None:
    driven = drive(3 * MTU_BYTES)
    driven.sender.state.rate_bps = float(rate_bps)
    driven.sends(1)
    gap_ps = int((FRAME_BYTES + 20) * 8e12 / rate_bps)
    assert driven.sender.next_send_at_ps == gap_ps
    driven.clock.go_to(gap_ps - 1)
    assert driven.leaves() is None
    driven.clock.go_to(gap_ps)
    assert driven.leaves() is not None
    driven.sender.state.rate_bps = float(RATE_BPS)  # changes no gap that has begun
    assert driven.sender.next_send_at_ps == 2 * gap_ps


def test_a_rate_of_almost_nothing_waits_for_ever_and_no_longer() -> None:
    driven = drive(2 * MTU_BYTES)
    driven.sender.state.rate_bps = 1e-30
    driven.sends(1)
    assert driven.sender.next_send_at_ps == int(float(NEVER_PS))


def test_a_window_is_filled_to_the_byte() -> None:
    driven = drive(10 * MTU_BYTES, window_bytes=3.0 * MTU_BYTES)
    driven.sends(3)
    assert driven.holds_back()
    driven.hears(ACK, 1)
    driven.sends(1)
    assert driven.holds_back()
    driven.sender.state.window_bytes = 4.0 * MTU_BYTES - 1
    assert driven.holds_back()
    driven.sender.state.window_bytes = 4.0 * MTU_BYTES
    driven.sends(1)


def test_a_window_below_a_packet_lets_one_go_at_a_time_and_a_closed_one_none() -> None:
    driven = drive(3 * MTU_BYTES, window_bytes=1.0)
    driven.sends(1)
    assert driven.holds_back()
    driven.hears(ACK, 1)
    driven.sends(1)
    driven.hears(ACK, 2)
    driven.sender.state.window_bytes = 0.0
    assert driven.holds_back()


def test_a_cap_holds_back_what_no_window_does_and_the_packet_that_fills_it_asks_for_an_ack() -> None:
    driven = drive(10 * MTU_BYTES, inflight_cap_bytes=3 * MTU_BYTES - 1, ack_every=100)
    assert [packet.asks_ack for packet in driven.sends(2)] == [False, True]
    assert driven.holds_back()
    driven.hears(ACK, 1)
    driven.sends(1)
    assert driven.holds_back()


@pytest.mark.parametrize(("window_packets", "leave"), [(0.0, 0), (2.0, 2), (4.0, 3)])
def test_of_the_window_and_the_cap_the_smaller_one_holds(window_packets: float, leave: int) -> None:
    driven = drive(10 * MTU_BYTES, window_bytes=window_packets * MTU_BYTES, inflight_cap_bytes=3 * MTU_BYTES)
    driven.sends(leave)
    assert driven.holds_back()


def test_a_cap_below_a_packet_lets_one_go_at_a_time() -> None:
    driven = drive(2 * MTU_BYTES, inflight_cap_bytes=1)
    driven.sends(1)
    assert driven.holds_back()
    driven.hears(ACK, 1)
    driven.sends(1)


@pytest.mark.parametrize("recovery", ["go-back-n", "timeout", "selective-repeat"])
@pytest.mark.parametrize("seed", range(6))
def test_whatever_comes_back_no_packet_exceeds_the_window(recovery: str, seed: int) -> None:
    source = random.Random(seed)
    window_bytes = 5.0 * MTU_BYTES
    driven = drive(*(source.randrange(6 * MTU_BYTES) for _ in range(12)), window_bytes=window_bytes, recovery=recovery)
    sender = driven.sender
    for _ in range(400):
        driven.clock.go_to(driven.clock.now_ps + source.randrange(2 * FRAME_PS))
        if driven.leaves() is not None:
            assert sender.inflight_bytes <= window_bytes
        away = set() if sender.scoreboard is None else sender.scoreboard.away
        in_flight = set(range(sender.una, sender.nxt)) - away
        assert sender.inflight_bytes == sum(sender.queue.payload_bytes(one, one + 1) for one in in_flight)
        assert sender.una <= sender.nxt <= sender.high <= sender.end
        if source.random() < 0.5 and sender.high > 0:
            kind, seq = source.choice([ACK, NAK]), source.randrange(sender.high + 1)
            echo = data(min(sender.high - 1, seq + source.randrange(3)))
            driven.hears(kind, seq, echo=echo)
    assert sender.una > 0


def test_a_paused_class_holds_back_its_messages_and_what_was_posted_behind_them() -> None:
    driven = drive(MTU_BYTES)
    driven.post(MTU_BYTES, traffic_class=1)
    driven.line.paused = {0}
    assert driven.holds_back()
    assert driven.sender.wants_to_send()
    driven.line.paused = {1}
    driven.sends(1)
    assert driven.holds_back()
    driven.line.paused = set()
    (packet,) = driven.sends(1)
    assert packet.traffic_class == 1


def test_every_fourth_packet_asks_for_an_ack_and_the_last_of_a_message() -> None:
    sent = drive(6 * MTU_BYTES, 3 * MTU_BYTES, ack_every=4).sends(9)
    assert [packet.seq for packet in sent if packet.asks_ack] == [3, 5, 7, 8]


def test_a_packet_that_fills_the_window_asks_for_an_ack() -> None:
    sent = drive(9 * MTU_BYTES, window_bytes=2.5 * MTU_BYTES, ack_every=100).sends(2)
    assert [packet.asks_ack for packet in sent] == [False, True]


# What the receiver says


def test_an_ack_completes_the_messages_that_end_below_it_in_their_order() -> None:
    driven = drive(2 * MTU_BYTES, MTU_BYTES, MTU_BYTES)
    driven.sends(4)
    driven.hears(ACK, 1)
    assert driven.complete == []
    driven.clock.go_to(5 * US_PS)
    driven.hears(ACK, 3)
    assert driven.complete == [0, 1]
    assert [message.acked_at_ps for message in driven.sender.queue.messages] == [5 * US_PS, 5 * US_PS, OFF]
    driven.hears(ACK, 2)  # older than what is known
    assert driven.sender.una == 3
    driven.hears(ACK, 4)
    assert driven.complete == [0, 1, 2]
    assert driven.sender.inflight_bytes == 0


def test_a_nak_goes_back_to_the_gap_and_all_behind_it_goes_again() -> None:
    driven = drive(6 * MTU_BYTES)
    first = driven.sends(5)
    driven.hears(NAK, 2)
    assert (driven.sender.una, driven.sender.nxt, driven.sender.high) == (2, 2, 5)
    again = driven.sends(4)
    assert [packet.seq for packet in again] == [2, 3, 4, 5]
    assert [packet.attempt for packet in again] == [1, 1, 1, 1]
    assert not {packet.identity for packet in first} & {packet.identity for packet in again}
    assert driven.counted == {"data_sent": 9, "retransmissions": 3}


def test_a_nak_with_nothing_under_way_goes_back_nowhere() -> None:
    driven = drive(2 * MTU_BYTES)
    driven.sends(2)
    driven.control.kinds()
    driven.hears(NAK, 2)
    assert driven.sender.attempt == 0
    assert driven.control.kinds() == ["ACK"]  # it acknowledges, and that is all


def test_an_ack_of_what_was_sent_before_going_back_is_not_sent_again() -> None:
    driven = drive(6 * MTU_BYTES)
    driven.sends(5)
    driven.hears(NAK, 1)
    driven.hears(ACK, 4)
    assert [packet.seq for packet in driven.sends(2)] == [4, 5]


@pytest.mark.parametrize("kind", [ACK, NAK])
def test_an_answer_that_is_older_than_what_is_known_changes_nothing(kind: PacketKind) -> None:
    driven = drive(6 * MTU_BYTES)
    driven.sends(5)
    driven.hears(ACK, 3)
    driven.control.kinds()
    driven.hears(kind, 2, is_marked=True, echo=data(4))
    assert (driven.sender.una, driven.sender.nxt, driven.sender.attempt) == (3, 5, 0)
    assert driven.control.kinds() == []


def test_a_message_and_every_answer_let_the_port_look_again() -> None:
    driven = drive(MTU_BYTES)
    assert driven.line.starts == 1
    driven.sends(1)
    for kind in (CNP, CREDIT, ACK, NAK):
        before = driven.line.starts
        driven.hears(kind, 0)
        assert driven.line.starts == before + 1


# Timeouts


def test_the_timer_runs_from_the_first_packet_and_anew_from_every_ack_that_tells_news() -> None:
    driven = drive(4 * MTU_BYTES)
    driven.sends(2)
    assert driven.sender.deadline_at_ps == TIMEOUT_PS
    driven.clock.go_to(10 * US_PS)
    driven.hears(ACK, 1)
    assert driven.sender.deadline_at_ps == 10 * US_PS + TIMEOUT_PS
    driven.clock.go_to(20 * US_PS)
    driven.hears(ACK, 1)  # nothing new
    assert driven.sender.deadline_at_ps == 10 * US_PS + TIMEOUT_PS
    driven.hears(ACK, 2)
    assert driven.sender.deadline_at_ps == OFF
    driven.clock.go_to(2 * TIMEOUT_PS)
    assert driven.counted["timeouts"] == 0


def test_a_timeout_goes_back_at_its_instant_and_an_ack_forgives_all_before() -> None:
    driven = drive(3 * MTU_BYTES)
    driven.sends(3)
    driven.clock.go_to(TIMEOUT_PS - 1)
    assert driven.sender.nxt == 3
    driven.clock.go_to(TIMEOUT_PS)
    assert (driven.sender.nxt, driven.sender.retries, driven.counted["timeouts"]) == (0, 1, 1)
    driven.sends(1)
    driven.hears(ACK, 1)
    assert driven.sender.retries == 0


def test_after_the_last_retry_nothing_leaves_and_nothing_is_heard() -> None:
    driven = drive(3 * MTU_BYTES, retry_limit=2)
    for _ in range(3):
        driven.sends(1)
        driven.clock.go_to(driven.sender.deadline_at_ps)
    assert driven.counted == {"data_sent": 3, "retransmissions": 2, "timeouts": 3, "queue_pair_errors": 1}
    assert not driven.sender.wants_to_send()
    assert driven.holds_back()
    driven.hears(ACK, 1)
    assert driven.complete == []


# End-to-end credits


def test_a_message_starts_only_with_a_credit_and_one_that_has_started_goes_on() -> None:
    driven = drive(MTU_BYTES, 2 * MTU_BYTES, MTU_BYTES, end_to_end_credits=2)
    driven.sends(3)
    assert driven.holds_back()
    driven.hears(ACK, 1, msn=1, credit_code=credits_to_code(1))  # still two in all
    assert driven.holds_back()
    driven.hears(ACK, 1, msn=1, credit_code=credits_to_code(2))
    assert [packet.seq for packet in driven.sends(1)] == [3]


def test_a_sender_without_credit_asks_every_timeout_and_fails_never() -> None:
    driven = drive(MTU_BYTES, MTU_BYTES, end_to_end_credits=1, retry_limit=0)
    driven.sends(1)
    driven.clock.go_to(US_PS)
    driven.hears(ACK, 1, msn=1, credit_code=0)
    driven.clock.go_to(US_PS + 3 * TIMEOUT_PS)
    assert [packet.attempt for packet in driven.line.control] == [0, 1, 2]
    assert driven.line.answers() == [("PROBE", 1)] * 3
    assert driven.counted == {"data_sent": 1, "probes_sent": 3}
    driven.hears(ACK, 1, msn=1, credit_code=credits_to_code(1))
    driven.sends(1)
    assert driven.sender.deadline_at_ps == driven.clock.now_ps + TIMEOUT_PS  # the whole of it


def test_a_message_that_is_posted_without_credit_asks_for_it_a_timeout_later() -> None:
    driven = drive(MTU_BYTES, end_to_end_credits=1)
    driven.sends(1)
    driven.hears(ACK, 1, msn=1, credit_code=0)
    assert driven.sender.deadline_at_ps == OFF
    driven.clock.go_to(9 * US_PS)
    driven.post(MTU_BYTES)
    assert driven.sender.deadline_at_ps == 9 * US_PS + TIMEOUT_PS


# Failover


def test_at_another_port_all_under_way_goes_again_from_there() -> None:
    driven = drive(4 * MTU_BYTES)
    driven.sends(3)
    driven.hears(ACK, 1)
    other = HandLine(port=4)
    other.senders = [None]
    driven.sender.move(other, destination=5)
    assert driven.line.senders == [None]
    assert other.senders == [None, driven.sender]
    driven.line = other
    assert [(packet.seq, packet.origin, packet.destination) for packet in driven.sends(3)] == [
        (1, 4, 5),
        (2, 4, 5),
        (3, 4, 5),
    ]


def test_a_timer_that_was_set_at_the_port_before_means_nothing() -> None:
    driven = drive(MTU_BYTES)
    driven.sends(1)
    driven.sender.move(HandLine(port=4), destination=5)
    assert driven.sender.deadline_at_ps == OFF
    driven.clock.go_to(FRAME_PS)
    driven.sends(1)
    driven.clock.go_to(TIMEOUT_PS)
    assert driven.counted["timeouts"] == 0
    driven.clock.go_to(FRAME_PS + TIMEOUT_PS)
    assert driven.counted["timeouts"] == 1


def test_control_packets_go_in_the_class_of_control() -> None:
    driven = drive(MTU_BYTES, MTU_BYTES, end_to_end_credits=1)
    driven.sends(1)
    driven.hears(ACK, 1, msn=1, credit_code=0)
    driven.clock.go_to(driven.sender.deadline_at_ps)
    assert [(packet.kind, packet.traffic_class) for packet in driven.line.control] == [
        (PacketKind.PROBE, CONTROL_CLASS)
    ]
