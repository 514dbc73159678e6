"""CUBIC against RFC 9438 and Linux, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.tcp_sender import MTU, RTT_PS, Sender

from weftwork.base.clock import MS_PS, US_PS
from weftwork.policies.interface import Kind

S_PS = 1_000 * MS_PS
BETA = 717 / 1024


def sender_of(**parameters: Any) -> Sender:
    return Sender("cubic", **({"hystart": False} | parameters))


def avoiding(window: float, *, peak: float = 0.0, rtt_ps: int = 100 * MS_PS, **parameters: Any) -> Sender:
    """A sender in congestion avoidance at time 0, with the RTT that it has always measured."""
    sender = sender_of(**parameters)
    sender.state.smoothed_ps, sender.state.least_rtt_ps = float(rtt_ps), float(rtt_ps)
    sender.state.window = sender.state.threshold = window
    sender.state.before = max(window, peak)
    sender.state.window_bytes = window * MTU
    sender.state.peak = peak
    return sender


@pytest.mark.parametrize(("variant", "left"), [("linux", 10.0), ("rfc-9438", 15 * 0.7)])
def test_a_loss_leaves_beta_of_the_window(variant: str, left: float) -> None:
    """Of 15 packets 717 / 1024, rounded down, or 0.7."""
    sender = sender_of(variant=variant, initial_bytes=0, initial_packets=15)
    sender.loses()
    assert sender.window == pytest.approx(left)
    sender.loses()  # another packet of the same window
    assert sender.window == pytest.approx(left)


def test_a_cut_takes_flight_or_window() -> None:
    for flight, left in ((True, 4 * 0.7), (False, 7.0)):
        sender = sender_of(variant="rfc-9438", initial_bytes=0, cut_takes_flight=flight)
        sender.signal.next_seq = 4
        sender.tell(Kind.NAK, lost_bytes=MTU)
        assert sender.window == pytest.approx(left)


def test_fast_convergence_aims_below_a_peak_that_was_not_reached() -> None:
    for fast, whole, peak in ((True, True, 8), (True, False, 10 * (1 + BETA) / 2), (False, True, 10)):
        sender = sender_of(fast_convergence=fast, whole_windows=whole)
        sender.state.peak = 20.0
        sender.loses()
        assert sender.state.peak == peak


def test_the_window_is_at_its_peak_again_after_k_seconds() -> None:
    """K is the cube root of (W_max - cwnd) / C: for 100 packets of which 70 are left, 4.217 s."""
    sender = avoiding(70.0, peak=100.0, variant="rfc-9438", slow_start_packets=0)
    windows = []
    for turn in range(43):
        sender.hears(int(sender.state.window), now_ps=turn * 100 * MS_PS)
        windows.append(sender.window)
    assert sender.state.k_s == pytest.approx((30 / 0.4) ** (1 / 3))
    assert windows[-1] == pytest.approx(100, abs=0.5)
    for turn, window in list(enumerate(windows))[3:]:  # at first Reno is faster
        assert window == pytest.approx(0.4 * (turn / 10 + 0.1 - 4.217) ** 3 + 100, abs=1.0), turn


def test_whole_windows_are_at_their_peak_when_the_cube_is_less_than_a_packet_below() -> None:
    """At K less the cube root of 1 / C, 1.36 s early; a round trip of 100 ms lies ahead."""
    sender = avoiding(70.0, peak=100.0, beta=0.7, initial_bytes=0)
    at_ps = 0
    for _ in range(4_000):
        sender.hears(now_ps=at_ps)
        if sender.window >= 100:
            break
        at_ps += 100 * MS_PS // int(sender.window)
    assert at_ps / S_PS == pytest.approx(4.217 - 1.357, abs=0.15)


@pytest.mark.parametrize("variant", ["linux", "rfc-9438"])
def test_two_acks_at_least_for_a_packet(variant: str) -> None:
    sender = avoiding(10.0, peak=1_000.0, variant=variant, hystart=False)
    sender.hears(now_ps=0)
    sender.hears(now_ps=20 * S_PS)
    before = sender.window
    sender.hears()
    assert sender.window - before == pytest.approx(0.5)


@pytest.mark.parametrize("variant", ["linux", "rfc-9438"])
def test_where_the_cube_is_flat_the_window_is_renos(variant: str) -> None:
    """A round trip of 100 us: 3 (1 - beta) / (1 + beta) packets in each, whatever the cube says."""
    sender = avoiding(70.0, peak=100.0, rtt_ps=RTT_PS, beta=0.7, variant=variant, hystart=False)
    for turn in range(50):
        for _ in range(int(sender.state.window)):
            sender.hears(now_ps=turn * RTT_PS)
    assert sender.window == pytest.approx(70 + 50 * 0.9 / 1.7, abs=2)


@pytest.mark.parametrize(("rises", "growth"), [(True, 1.0), (False, 0.9 / 1.7)])
def test_above_the_window_before_the_cut_renos_estimate_grows_by_a_packet(rises: bool, growth: float) -> None:  # noqa: FBT001
    sender = avoiding(70.0, peak=100.0, rtt_ps=RTT_PS, variant="rfc-9438", reno_alpha_rises=rises)
    sender.hears(now_ps=0)
    sender.state.estimate = sender.state.window = 80.0
    sender.state.before = 75.0
    sender.hears(10)
    assert sender.window - 80 == pytest.approx(growth * 10 / 80)


def test_before_the_first_loss_the_window_grows_by_a_twentieth_in_a_round_trip() -> None:
    grown = {}
    for peak in (0.0, 49.0):
        sender = avoiding(50.0, peak=peak, rtt_ps=US_PS)
        sender.hears(now_ps=0)
        grown[peak] = sender.window - 50
    assert grown[0.0] == pytest.approx(1 / 20)
    assert grown[49.0] == pytest.approx(1 / 5_000)


def test_after_a_timeout_the_plateau_is_where_avoidance_begins() -> None:
    """Section 4.8: K is 0."""
    sender = sender_of()
    sender.tell(Kind.TIMEOUT, lost_bytes=10 * MTU)
    assert sender.window == 1
    assert sender.state.threshold == 7  # beta of 10, whole
    sender.state.window = sender.state.threshold
    sender.signal.seq = sender.signal.next_seq = 10
    sender.hears(now_ps=S_PS)
    assert (sender.state.k_s, sender.state.origin) == (0.0, 7.0)


def test_silence_is_no_time_of_the_cube() -> None:
    sender = avoiding(70.0, peak=100.0)
    sender.hears(now_ps=S_PS)
    sender.sends(1)
    assert sender.state.epoch_at_ps == S_PS
    sender.tell(Kind.RESUME, now_ps=S_PS + 150 * MS_PS)
    assert sender.state.epoch_at_ps == S_PS + 150 * MS_PS
    assert sender.window > 70
    sender.sends(1)
    sender.tell(Kind.RESUME, now_ps=10 * S_PS)
    assert sender.window == 10


def test_hystart_ends_slow_start_when_a_train_of_acks_is_half_a_round_trip_long() -> None:
    """From 16 packets on; an ACK each 2 us, a round trip of 100 us."""
    sender = sender_of(hystart=True)
    at_ps = RTT_PS
    for _ in range(100):
        sender.hears(rtt_ps=RTT_PS, now_ps=at_ps)
        at_ps += 2 * US_PS
        if sender.state.is_found:
            break
    assert sender.state.threshold == pytest.approx(sender.window, abs=1)
    # The round that begins at 16 packets has 16 ACKs, too few; of the next one's 33 the 26th is 50 us after its begin.
    assert 58 <= sender.window <= 60
    plain = sender_of()
    for _ in range(100):
        plain.hears(rtt_ps=RTT_PS)
    assert plain.window == 110


def test_hystart_ends_slow_start_when_the_least_delay_of_eight_acks_has_risen() -> None:
    """ACKs 3 ms apart are no train; a rise of 4 ms is asked for at short round trips."""
    found = {}
    for rise_ms in (3, 5):
        sender = sender_of(hystart=True, initial_packets=20)
        sender.hears(rtt_ps=RTT_PS, now_ps=0)
        sender.signal.seq = sender.signal.next_seq
        for turn in range(1, 12):
            sender.hears(rtt_ps=RTT_PS + rise_ms * MS_PS, now_ps=turn * 3 * MS_PS)
        found[rise_ms] = sender.state.is_found
    assert found == {3: False, 5: True}


def test_the_timeout_doubles_and_a_sample_ends_that() -> None:
    sender = sender_of(max_timeout_ps="1s", timeout_above_rtt=False)
    for wanted_ms in (400, 800, 1_000, 1_000):
        sender.tell(Kind.TIMEOUT, lost_bytes=MTU)
        assert sender.state.timeout_ps == wanted_ms * MS_PS
    sender.hears(rtt_ps=RTT_PS)
    assert sender.state.timeout_ps == 200 * MS_PS
