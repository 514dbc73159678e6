"""The sender alone under selective repeat: what is in flight, what goes again, and when."""

from __future__ import annotations

import pytest
from helpers.by_hand import (
    MTU_BYTES,
    data,
)
from helpers.driven_sender import ACK, NAK, drive


def test_only_what_is_lost_goes_again_and_then_what_the_pipe_has_room_for() -> None:
    driven = drive(8 * MTU_BYTES, window_bytes=4.0 * MTU_BYTES, recovery="selective-repeat", ack_every=100)
    driven.sends(4)
    driven.hears(NAK, 0, echo=data(2))  # 0 and 1 were overtaken; 3 alone is in flight
    assert driven.sender.inflight_bytes == MTU_BYTES
    again = driven.sends(3)
    assert [(packet.seq, packet.attempt, packet.asks_ack) for packet in again] == [
        (0, 1, True), (1, 2, True), (4, 2, True)
    ]  # fmt: skip
    assert (driven.sender.nxt, driven.sender.inflight_bytes) == (5, 4 * MTU_BYTES)
    assert driven.holds_back()
    assert driven.counted["retransmissions"] == 2


@pytest.mark.parametrize(("resend", "leaves"), [("by-window", []), ("at-once", [0])])
def test_a_lost_packet_obeys_the_window_unless_the_transport_says_at_once(resend: str, leaves: list[int]) -> None:
    driven = drive(8 * MTU_BYTES, window_bytes=4.0 * MTU_BYTES, recovery="selective-repeat", resend=resend)
    driven.sends(4)
    driven.sender.state.window_bytes = 2.0 * MTU_BYTES
    driven.hears(NAK, 0, echo=data(1))  # 0 is lost, 2 and 3 are in flight
    assert [packet.seq for packet in driven.sends(len(leaves))] == leaves
    assert driven.holds_back()
    assert driven.sender.wants_to_send()
    driven.hears(NAK, 0, echo=data(2))
    rest = [0] if not leaves else []
    assert [packet.seq for packet in driven.sends(len(rest))] == rest
    assert driven.holds_back()


@pytest.mark.parametrize(("resend", "leaves"), [("by-window", []), ("at-once", [0])])
def test_a_lost_packet_obeys_the_cap_unless_the_transport_says_at_once(resend: str, leaves: list[int]) -> None:
    driven = drive(2 * MTU_BYTES, inflight_cap_bytes=2 * MTU_BYTES, recovery="selective-repeat", resend=resend)
    driven.post(4 * MTU_BYTES, traffic_class=1)
    driven.sends(2)
    driven.hears(NAK, 0, echo=data(1))  # 0 is lost, and nothing is in flight
    driven.line.paused = {0}
    assert [packet.seq for packet in driven.sends(2)] == [2, 3]  # they take its room while it is paused
    driven.line.paused = set()
    assert [packet.seq for packet in driven.sends(len(leaves))] == leaves
    assert driven.holds_back()


def test_a_packet_that_is_lost_again_after_it_was_sent_again_is_known_to_be() -> None:
    driven = drive(12 * MTU_BYTES, recovery="selective-repeat", reorder_threshold_packets=1)
    driven.sends(4)
    driven.hears(NAK, 0, echo=data(2))  # 0 was overtaken by two
    assert [packet.seq for packet in driven.sends(3)] == [0, 4, 5]
    driven.hears(NAK, 0, echo=data(3))  # 3 was sent before 0 went again: 1 is lost, nothing is known of 0
    assert [packet.seq for packet in driven.sends(2)] == [1, 6]
    driven.hears(NAK, 0, echo=data(4))  # 4 was sent after it, but overtakes it by one only
    assert driven.sender.first_lost is None
    driven.hears(NAK, 0, echo=data(5))
    assert [packet.seq for packet in driven.sends(1)] == [0]
    driven.hears(NAK, 0, echo=data(6))  # the second time 0 went after 6, and so did not 1, which went before it
    assert driven.sender.first_lost is None


def test_what_was_overtaken_by_no_more_than_the_threshold_is_not_lost() -> None:
    driven = drive(
        8 * MTU_BYTES, recovery="selective-repeat", reorder_threshold_packets=2, window_bytes=3.0 * MTU_BYTES
    )
    driven.sends(3)
    driven.hears(NAK, 0, echo=data(2))
    assert [packet.seq for packet in driven.sends(1)] == [3]  # 2 is not in flight any more
    assert driven.holds_back()
    driven.hears(NAK, 0, echo=data(3))
    assert driven.sends(1)[0].seq == 0


def test_a_timeout_sends_again_what_the_receiver_does_not_keep() -> None:
    driven = drive(5 * MTU_BYTES, recovery="selective-repeat", reorder_threshold_packets=10)
    driven.sends(5)
    driven.hears(NAK, 1, echo=data(3))
    driven.clock.go_to(driven.sender.deadline_at_ps)
    assert [packet.seq for packet in driven.sends(3)] == [1, 2, 4]
    assert driven.holds_back()


def test_an_old_nak_tells_what_is_kept_all_the_same_and_an_old_ack_nothing() -> None:
    driven = drive(8 * MTU_BYTES, recovery="selective-repeat", window_bytes=6.0 * MTU_BYTES)
    driven.sends(6)
    driven.hears(ACK, 2)
    driven.hears(NAK, 0, echo=data(2))  # it came late: packet 2 itself is kept
    assert driven.sender.first_lost is None
    driven.hears(NAK, 1, echo=data(4))
    assert [packet.seq for packet in driven.sends(3)] == [3, 6, 7]
    driven.control.kinds()
    driven.hears(ACK, 1, echo=data(5))
    assert driven.control.kinds() == []
    assert driven.sender.first_lost is None


def test_policies_hear_of_a_loss_when_it_is_found_and_not_again_for_the_next_packet_behind_it() -> None:
    driven = drive(8 * MTU_BYTES, recovery="selective-repeat")
    driven.sends(6)
    driven.control.kinds()
    driven.hears(NAK, 1, echo=data(3))
    driven.hears(NAK, 1, echo=data(4))
    assert driven.control.kinds() == ["ACK", "NAK", "ACK"]
    driven.sends(2)
    driven.control.kinds()
    driven.hears(NAK, 1, echo=data(5))  # no news: what it has overtaken has gone again
    assert driven.control.kinds() == ["ACK"]


def test_a_lost_packet_that_is_paused_holds_up_no_other_class() -> None:
    driven = drive(2 * MTU_BYTES, recovery="selective-repeat")
    driven.post(2 * MTU_BYTES, traffic_class=1)
    driven.sends(3)
    driven.hears(NAK, 0, echo=data(1))
    driven.line.paused = {0}
    assert [packet.seq for packet in driven.sends(1)] == [3]
    assert driven.sender.wants_to_send()
    assert driven.holds_back()
    driven.line.paused = set()
    assert [packet.seq for packet in driven.sends(1)] == [0]
