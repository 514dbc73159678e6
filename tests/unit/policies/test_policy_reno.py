"""TCP Reno against its RFCs, worked out by hand, and its laws in a network."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.tcp_sender import MTU, RTT_PS, Sender

from weftwork.base.clock import MS_PS
from weftwork.policies.interface import Kind

S_PS = 1_000 * MS_PS


def sender_of(**parameters: Any) -> Sender:
    return Sender("reno", **parameters)


def test_slow_start_doubles_the_window_in_a_round_trip() -> None:
    sender = sender_of()
    assert sender.window == 10
    for _ in range(10):
        sender.hears()
    assert sender.window == 20


@pytest.mark.parametrize("name", ["reno", "cubic", "dctcp"])
@pytest.mark.parametrize(("flight", "window"), [(4, 10), (5, 11)])
def test_a_window_of_which_less_than_half_was_in_flight_does_not_grow(name: str, flight: int, window: int) -> None:
    sender = Sender(name)
    sender.tell(Kind.ACK, arrived_bytes=MTU, seq=1, next_seq=flight, inflight_bytes=(flight - 1) * MTU)
    assert sender.window == window


@pytest.mark.parametrize(("variant", "window"), [("linux", 15), ("rfc-5681", 12)])
def test_an_ack_of_five_packets_raises_the_window_by_as_many_or_by_two(variant: str, window: int) -> None:
    sender = sender_of(variant=variant)
    sender.hears(5)
    assert sender.window == window


@pytest.mark.parametrize(("mtu", "window"), [(1_000, 10.0), (1_460, 10.0), (4_096, 14_600 / 4_096), (9_000, 2.0)])
def test_the_first_window_of_the_rfc_is_ten_packets_or_14600_bytes_or_two_packets(mtu: int, window: float) -> None:
    for variant, wanted in (("rfc-5681", window), ("linux", 10.0)):
        sender = sender_of(variant=variant)
        sender.signal.mtu_bytes = mtu
        sender.tell(Kind.START)
        assert sender.state.window == wanted


def test_after_a_loss_half_the_window_stays_until_all_of_it_is_acknowledged() -> None:
    sender = sender_of()
    for _ in range(10):
        sender.hears()
    sender.signal.next_seq = 30
    sender.loses()
    assert sender.window == 10
    sender.loses()  # another packet of the same window
    assert sender.window == 10
    sender.tell(Kind.ACK, arrived_bytes=MTU, seq=29, inflight_bytes=9 * MTU)
    assert sender.window == 10
    sender.tell(Kind.ACK, arrived_bytes=MTU, seq=30, inflight_bytes=9 * MTU)  # the window is whole: avoidance begins
    assert sender.window == 10.1
    sender.signal.next_seq = 40
    sender.tell(Kind.NAK, lost_bytes=MTU)
    assert sender.window == 5.05


def test_congestion_avoidance_adds_one_packet_in_a_round_trip() -> None:
    sender = sender_of()
    sender.loses()
    assert sender.window == 5
    sender.hears(10)
    before = sender.window
    for _ in range(round(before)):
        sender.hears()
    assert sender.window == pytest.approx(before + 1, abs=0.06)


def test_slow_start_ends_at_the_threshold() -> None:
    sender = sender_of()
    sender.hears(10)
    sender.tell(Kind.TIMEOUT, lost_bytes=20 * MTU)
    assert sender.window == 1
    sender.signal.seq = sender.signal.next_seq
    for window in (2, 3, 4, 5, 6, 7, 8, 9, 10, 10.1):
        sender.hears()
        assert sender.window == window


@pytest.mark.parametrize(("variant", "left"), [("linux", 10.0), ("rfc-5681", 3.0)])
def test_a_loss_leaves_half_of_the_window_or_of_what_was_in_flight(variant: str, left: float) -> None:
    sender = sender_of(variant=variant)
    for _ in range(10):
        sender.hears()
    assert sender.window == 20
    sender.signal.seq = sender.state.acked_seq = sender.state.high_seq - 6
    sender.tell(Kind.NAK, lost_bytes=MTU)
    assert sender.window == left


def test_a_cut_leaves_two_packets() -> None:
    sender = sender_of(initial_packets=3)
    sender.loses()
    assert sender.window == 2


def test_the_timeout_is_that_of_rfc_6298() -> None:
    sender = sender_of(min_timeout_ps="1us", timeout_above_rtt=False)
    assert sender.state.timeout_ps == RTT_PS + 4 * RTT_PS // 2  # the handshake's sample
    sender.hears(rtt_ps=2 * RTT_PS)
    variation = 0.75 * (RTT_PS / 2) + 0.25 * RTT_PS
    smoothed = 0.875 * RTT_PS + 0.125 * 2 * RTT_PS
    assert sender.state.timeout_ps == int(smoothed + 4 * variation)
    assert sender_of().state.timeout_ps == RTT_PS + 200 * MS_PS  # Linux: above the RTT
    assert sender_of(timeout_above_rtt=False).state.timeout_ps == 200 * MS_PS
    assert sender_of(variant="rfc-5681").state.timeout_ps == S_PS
    assert sender_of(first_timeout_ps="3s").state.timeout_ps == 3 * S_PS


def test_the_timeout_doubles_up_to_its_longest_and_a_sample_ends_that() -> None:
    sender = sender_of(max_timeout_ps="1s", timeout_above_rtt=False)
    for wanted_ms in (400, 800, 1_000, 1_000):
        sender.tell(Kind.TIMEOUT, lost_bytes=MTU)
        assert sender.state.timeout_ps == wanted_ms * MS_PS
    sender.hears(rtt_ps=RTT_PS)
    assert sender.state.timeout_ps == 200 * MS_PS


def test_a_second_timeout_in_a_row_keeps_the_threshold() -> None:
    sender = sender_of()
    for _ in range(10):
        sender.hears()
    sender.tell(Kind.TIMEOUT, lost_bytes=20 * MTU)
    sender.tell(Kind.TIMEOUT, lost_bytes=MTU)
    assert (sender.window, sender.state.threshold) == (1, 10)
    sender.tell(Kind.NAK, lost_bytes=MTU)  # a loss of what was sent before the timeout
    assert (sender.window, sender.state.threshold) == (1, 10)


@pytest.mark.parametrize(("idle_ms", "restarts", "window"), [(199, True, 20), (201, True, 10), (201, False, 20)])
def test_after_a_long_silence_the_window_is_the_first_one(idle_ms: int, restarts: bool, window: float) -> None:  # noqa: FBT001
    sender = sender_of(idle_restart=restarts)
    for _ in range(10):
        sender.hears()
    sender.sends(1)
    sender.signal.now_ps += idle_ms * MS_PS
    sender.tell(Kind.RESUME)
    assert sender.window == window
