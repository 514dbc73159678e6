"""What a sender makes of an answer for its policies: bytes that have arrived, are marked or lost, and messages."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.by_hand import FRAME_BYTES, MTU_BYTES, HandPath, data
from helpers.driven_sender import ACK, NAK, TIMEOUT_PS, Driven, drive

from weftwork.base.clock import US_PS
from weftwork.policies.interface import Kind

BYTES = ("bytes", "arrived_bytes", "lost_bytes", "marked_bytes", "completed_messages")


def heard(driven: Driven, *names: str) -> list[tuple[Any, ...]]:
    """Kind and fields of what the control was told since the last call."""
    told, driven.control.heard = driven.control.heard, []
    return [(Kind(signal.kind).name, *(getattr(signal, name) for name in names)) for signal in told]


def drive_sent(packets: int, *sizes_bytes: int, **changes: Any) -> Driven:
    """A sender that has sent so many packets, of which its control has been told."""
    driven = drive(*sizes_bytes, **changes)
    driven.sends(packets)
    driven.control.kinds()
    return driven


# Arrived, lost, complete


def test_an_ack_tells_what_has_arrived_and_the_messages_that_are_complete() -> None:
    driven = drive_sent(4, MTU_BYTES, 100, 2 * MTU_BYTES)
    driven.hears(ACK, 3)
    driven.hears(ACK, 3)
    driven.hears(ACK, 4)
    assert heard(driven, *BYTES) == [
        ("ACK", 2 * MTU_BYTES + 100, 2 * MTU_BYTES + 100, 0, 0, 2),
        ("ACK", 0, 0, 0, 0, 0),
        ("ACK", MTU_BYTES, MTU_BYTES, 0, 0, 1),
    ]


def test_a_nak_that_goes_back_tells_all_that_goes_again_as_lost_and_so_does_its_ack() -> None:
    driven = drive_sent(5, 6 * MTU_BYTES)
    driven.hears(NAK, 2, echo=data(3, hop_count=4))
    names = ("seq", "next_seq", "inflight_bytes", "arrived_bytes", "lost_bytes", "hops")
    assert heard(driven, *names) == [
        ("ACK", 2, 5, 3 * MTU_BYTES, 2 * MTU_BYTES, 3 * MTU_BYTES, 4),
        ("NAK", 2, 2, 0, 0, 3 * MTU_BYTES, 4),
    ]
    driven.sends(1)
    driven.control.kinds()
    driven.hears(NAK, 2)
    assert heard(driven, "lost_bytes") == [("NAK", MTU_BYTES)]


def test_what_is_known_beyond_a_gap_has_arrived_once() -> None:
    driven = drive_sent(5, 8 * MTU_BYTES, recovery="selective-repeat", reorder_threshold_packets=1)
    for echo in (2, 4, 2):
        driven.hears(NAK, 0, echo=data(echo))
    driven.hears(ACK, 3)
    assert heard(driven, "bytes", "arrived_bytes", "lost_bytes") == [
        ("ACK", 0, MTU_BYTES, MTU_BYTES),  # 2 is there, and 0 is lost
        ("NAK", 0, 0, MTU_BYTES),
        ("ACK", 0, MTU_BYTES, MTU_BYTES),  # 4 is there, and 1 is lost: 3 is late by one
        ("ACK", 0, 0, 0),
        ("ACK", 3 * MTU_BYTES, 2 * MTU_BYTES, 0),  # 0 and 1; of 2 it was known
    ]


@pytest.mark.parametrize("recovery", ["go-back-n", "timeout"])
def test_a_timeout_tells_all_under_way_as_lost_and_the_path_of_the_oldest_packet(recovery: str) -> None:
    driven = drive_sent(4, 6 * MTU_BYTES, path=HandPath("packet"), recovery=recovery)
    driven.hears(ACK, 1)
    driven.control.kinds()
    driven.clock.go_to(driven.sender.deadline_at_ps)
    names = ("lost_bytes", "entropy", "inflight_bytes", "backlog_bytes")
    assert heard(driven, *names) == [("TIMEOUT", 3 * MTU_BYTES, 2, 0, 5 * MTU_BYTES)]
    driven.sends(1)  # the second packet, now with the fifth entropy
    driven.control.kinds()
    driven.clock.go_to(driven.sender.deadline_at_ps)
    assert heard(driven, "lost_bytes", "entropy") == [("TIMEOUT", MTU_BYTES, 5)]


def test_a_timeout_under_selective_repeat_tells_only_what_was_in_flight() -> None:
    driven = drive_sent(5, 6 * MTU_BYTES, recovery="selective-repeat", reorder_threshold_packets=1)
    driven.hears(NAK, 1, echo=data(3))  # 1 is lost; 2 and 4 are in flight
    driven.control.kinds()
    driven.clock.go_to(driven.sender.deadline_at_ps)
    assert heard(driven, "lost_bytes", "inflight_bytes") == [("TIMEOUT", 2 * MTU_BYTES, 0)]


# Marks


def test_marked_bytes_are_those_since_the_most_that_was_told() -> None:
    driven = drive_sent(4, 6 * MTU_BYTES)
    driven.hears(ACK, 1, marked_bytes=100)
    driven.hears(ACK, 3, marked_bytes=700)
    driven.hears(ACK, 3, marked_bytes=400)  # an answer that is late
    driven.hears(ACK, 4, marked_bytes=700)
    assert heard(driven, "marked_bytes") == [("ACK", 100), ("ACK", 600), ("ACK", 0), ("ACK", 0)]


def test_marks_that_no_ack_has_told_come_with_the_next_one() -> None:
    driven = drive_sent(4, 6 * MTU_BYTES)
    driven.hears(NAK, 0, marked_bytes=100)
    driven.sends(1)
    driven.hears(ACK, 1, marked_bytes=100)
    assert heard(driven, "marked_bytes") == [("NAK", 0), ("SEND", 0), ("ACK", 100)]


def test_both_policies_hear_of_the_same_marks() -> None:
    path = HandPath("packet", frozenset({Kind.ACK}))
    driven = drive_sent(1, MTU_BYTES, path=path)
    driven.hears(ACK, 1, marked_bytes=100)
    assert [path.heard[-1].marked_bytes, driven.control.heard[-1].marked_bytes] == [100, 100]


# Echoes


def test_times_and_entropies_that_nobody_asks_for_are_not_told_and_hops_always_are() -> None:
    for echoes, wanted in ((True, (2 * US_PS, US_PS, US_PS, 77, 3)), (False, (0, 0, 0, 0, 3))):
        driven = drive_sent(1, MTU_BYTES, echoes=echoes)
        driven.clock.go_to(2 * US_PS)
        driven.hears(ACK, 1, echo=data(0, entropy=77, hop_count=3), host_delay_ps=US_PS)
        names = ("rtt_ps", "host_delay_ps", "fabric_delay_ps", "entropy", "hops")
        assert heard(driven, *names) == [("ACK", *wanted)]


def test_an_answer_without_echo_tells_neither_times_nor_a_path() -> None:
    driven = drive_sent(1, MTU_BYTES)
    driven.clock.go_to(2 * US_PS)
    driven.hears(ACK, 1)
    names = ("rtt_ps", "host_delay_ps", "fabric_delay_ps", "entropy", "hops")
    assert heard(driven, *names) == [("ACK", 0, 0, 0, 0, 0)]


# Trims


def drive_trims(packets: int, **changes: Any) -> Driven:
    return drive_sent(packets, 8 * MTU_BYTES, recovery="selective-repeat", **changes)


def cut(seq: int, **changes: Any) -> Any:
    return data(seq, size_bytes=64, is_cut=True, **changes)


def test_a_trim_tells_one_packet_as_lost_and_where_it_was_cut() -> None:
    driven = drive_trims(4)
    driven.clock.go_to(9 * US_PS)
    sent_at_ps = 4 * US_PS
    echo = cut(1, sent_at_ps=sent_at_ps, entropy=77, hop_count=2, is_cut_at_last_hop=True)
    driven.hears(NAK, 0, echo=echo, marked_bytes=100)
    names = ("seq", "bytes", "lost_bytes", "last_hop", "rtt_ps", "fabric_delay_ps", "entropy", "hops", "inflight_bytes")
    assert heard(driven, *names) == [
        ("TRIM", 1, MTU_BYTES, MTU_BYTES, 1, 5 * US_PS, 5 * US_PS, 77, 2, 3 * MTU_BYTES),
    ]
    (again,) = driven.sends(1)
    assert (again.seq, again.attempt) == (1, 1)


def test_a_trim_that_acknowledges_tells_that_first_and_of_the_same_loss() -> None:
    driven = drive_trims(4)
    driven.hears(NAK, 2, echo=cut(3))
    assert heard(driven, *BYTES, "seq", "inflight_bytes") == [
        ("ACK", 2 * MTU_BYTES, 2 * MTU_BYTES, MTU_BYTES, 0, 0, 2, MTU_BYTES),
        ("TRIM", MTU_BYTES, 0, MTU_BYTES, 0, 0, 3, MTU_BYTES),
    ]


@pytest.mark.parametrize("seq", [1, 2, 3])
def test_a_trim_of_what_is_acknowledged_kept_or_lost_already_is_no_news(seq: int) -> None:
    driven = drive_trims(4, reorder_threshold_packets=1)
    driven.hears(NAK, 2, echo=data(3))  # kept
    driven.hears(NAK, 2, echo=cut(2))
    driven.control.kinds()
    driven.hears(NAK, 2, echo=cut(seq))
    assert heard(driven) == []
    assert driven.sender.first_lost == 2


def test_a_trim_overtakes_nothing_and_a_packet_without_payload_is_one_too() -> None:
    driven = drive_sent(4, 3 * MTU_BYTES, 0, recovery="selective-repeat")
    driven.hears(NAK, 0, echo=cut(3, payload_bytes=0))
    assert heard(driven, "seq", "bytes", "lost_bytes") == [("TRIM", 3, 0, 0)]
    assert [packet.seq for packet in driven.sends(1)] == [3]
    assert driven.holds_back()


def test_an_ack_of_a_packet_that_was_cut_is_an_ack() -> None:
    driven = drive_trims(2)
    driven.hears(ACK, 2, echo=cut(1))  # a duplicate at the receiver
    assert heard(driven, "bytes") == [("ACK", 2 * MTU_BYTES)]


# Deadlines


def test_a_policys_own_timeout_holds_for_the_next_deadline() -> None:
    driven = drive(3 * MTU_BYTES, timeout_low_ps=TIMEOUT_PS // 2, timeout_low_packets=9)
    driven.sender.state.timeout_ps = TIMEOUT_PS // 10
    driven.sends(2)
    assert driven.sender.deadline_at_ps == TIMEOUT_PS // 10
    driven.sender.state.timeout_ps = TIMEOUT_PS // 5
    assert driven.sender.deadline_at_ps == TIMEOUT_PS // 10
    driven.clock.go_to(US_PS)
    driven.hears(ACK, 1)
    assert driven.sender.deadline_at_ps == US_PS + TIMEOUT_PS // 5
    driven.clock.go_to(US_PS + TIMEOUT_PS // 5)
    assert driven.counted["timeouts"] == 1


def test_with_few_packets_outstanding_the_low_timeout_holds() -> None:
    driven = drive(6 * MTU_BYTES, timeout_low_ps=TIMEOUT_PS // 2, timeout_low_packets=1)
    driven.sends(1)
    assert driven.sender.deadline_at_ps == TIMEOUT_PS // 2  # this packet counts: it is one
    driven.sends(3)
    driven.clock.go_to(2 * US_PS)
    driven.hears(ACK, 1)
    assert driven.sender.deadline_at_ps == 2 * US_PS + TIMEOUT_PS
    driven.hears(ACK, 2)
    assert driven.sender.deadline_at_ps == 2 * US_PS + TIMEOUT_PS
    driven.hears(ACK, 3)
    assert driven.sender.deadline_at_ps == 2 * US_PS + TIMEOUT_PS // 2


def test_a_probe_that_waits_for_credit_has_the_low_timeout_too() -> None:
    driven = drive(MTU_BYTES, MTU_BYTES, end_to_end_credits=1, timeout_low_ps=TIMEOUT_PS // 2, timeout_low_packets=1)
    driven.sends(1)
    driven.hears(ACK, 1, msn=1, credit_code=0)
    driven.clock.go_to(TIMEOUT_PS // 2 + FRAME_BYTES * 20)
    assert driven.line.answers() == [("PROBE", 1)]
