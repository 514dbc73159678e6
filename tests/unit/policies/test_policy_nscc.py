"""NSCC against its equations, worked out by hand for the network that its constants are meant for.

100 Gb/s x 12 us is 150,000 B, so that a = 1; the target is 9 us, b = 0.75, and the largest window 225,000 B.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.policies.interface import OFF, Kind
from weftwork.policies.load import LoadedPolicy, load

US_PS = 1_000_000


BASE_PS = 12 * US_PS


MTU = 4_096


FOUR = 4 * MTU  # what one answer tells


LARGEST = 225_000.0


class Sender:
    """One queue pair with 100,000 B of window; every answer comes a microsecond after the one before."""

    def __init__(self, variant: str | None = None, line_bps: int = 100_000_000_000, **parameters: Any) -> None:
        given = {"first_window_bytes": 100_000, **parameters}
        self.policy: LoadedPolicy = load("congestion_control", "nscc", given, variant)
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.signal.line_rate_bps, self.signal.mtu_bytes = line_bps, MTU
        self.signal.base_rtt_ps = self.signal.fabric_base_rtt_ps = BASE_PS
        self.signal.backlog_bytes = 10**9
        self.state.rate_bps = line_bps
        self.tell(Kind.START)

    @property
    def window(self) -> float:
        return float(self.state.window_bytes)

    def tell(self, kind: Kind, **fields: int) -> None:
        cleared = dict.fromkeys(("arrived_bytes", "lost_bytes", "rtt_ps", "ecn", "last_hop"), 0)
        for name, value in {**cleared, "kind": int(kind), **fields}.items():
            setattr(self.signal, name, value)
        self.policy.call_step(self.state, self.signal)

    def ack(self, late_us: float = 0.0, arrived: int = FOUR, ecn: int = 0, after_us: float = 1.0) -> None:
        now_ps = self.signal.now_ps + int(after_us * US_PS)
        self.tell(Kind.ACK, arrived_bytes=arrived, ecn=ecn, rtt_ps=BASE_PS + int(late_us * US_PS), now_ps=now_ps)

    def trim(self, after_us: float = 1.0, inflight: int = 0, last_hop: int = 0) -> None:
        now_ps = self.signal.now_ps + int(after_us * US_PS)
        told = {"lost_bytes": MTU, "rtt_ps": BASE_PS, "inflight_bytes": inflight, "last_hop": last_hop}
        self.tell(Kind.TRIM, now_ps=now_ps, **told)


def test_it_starts_with_one_and_a_half_bandwidth_delay_products_at_line_rate() -> None:
    sender = Sender(first_window_bytes=0)
    assert sender.window == LARGEST
    assert sender.state.rate_bps == 100_000_000_000  # as the NIC sets it
    assert list(sender.state.timer_at_ps) == [OFF] * 4


def test_below_the_target_the_window_grows_in_proportion_to_what_is_left_of_it() -> None:
    """A third of the target late, two thirds are left: 4 packets x 0.75 x 2/3 for a window's worth of bytes."""
    sender = Sender()
    sender.ack(3.0)
    sender.ack(3.0)
    assert sender.window == 100_000.0  # eight packets have arrived, and not more
    sender.ack(3.0)
    assert sender.window == pytest.approx(100_000 + 3 * FOUR * 4 * MTU * 0.75 * (2 / 3) / 100_000)


def test_above_the_target_without_a_mark_five_packets_a_round_trip() -> None:
    sender = Sender()
    for _ in range(3):
        sender.ack(9.0)
    assert sender.window == pytest.approx(100_000 + 3 * FOUR * 5 * MTU / 100_000)


@pytest.mark.parametrize("late_us", [0.0, 8.9])
def test_a_mark_below_the_target_is_left_to_the_path_selection(late_us: float) -> None:
    sender = Sender()
    for _ in range(11):
        sender.ack(late_us, ecn=1)
    assert sender.window == 100_000.0


def test_a_mark_above_the_target_cuts_by_the_average_delay_once_in_a_base_rtt() -> None:
    sender = Sender(eta_packets=0)
    sender.state.delay_ps = 18e6
    sender.ack(18.0, ecn=1)
    assert sender.window == pytest.approx(100_000 * (1 - 0.8 * (18 - 9) / 18))
    cut = sender.window
    for _ in range(11):
        sender.ack(18.0, ecn=1)
    assert sender.window == cut
    sender.ack(18.0, ecn=1, after_us=1.1)  # 12.1 us after the first
    assert sender.window == pytest.approx(cut * 0.6)


def test_no_cut_leaves_less_than_half() -> None:
    sender = Sender()
    sender.state.delay_ps = 90e6
    sender.ack(36.0, ecn=1)
    assert sender.window == 50_000.0


def test_no_cut_where_the_delay_is_high_and_its_average_is_not() -> None:
    sender = Sender()
    sender.ack(20.0, ecn=1)
    assert sender.state.delay_ps == 0.0125 * 20e6
    assert sender.window == 100_000.0


def test_a_long_delay_without_a_mark_counts_as_a_quarter_of_the_base_rtt() -> None:
    sender = Sender()
    sender.ack(20.0)
    assert sender.state.delay_ps == 0.0125 * 3e6
    sender.ack(9.0)  # not above the target
    assert sender.state.delay_ps == 0.0125 * 9e6 + 0.9875 * (0.0125 * 3e6)


def test_after_a_whole_window_without_delay_a_quarter_of_each_byte_is_added_at_once() -> None:
    sender = Sender(first_window_bytes=3 * FOUR)
    grown = 3 * FOUR
    for _ in range(3):
        sender.ack(0.9, arrived=FOUR)
    grown += (1 - 0.1) * 4 * MTU * 0.75 * 3 * FOUR / (3 * FOUR)  # three in proportion, put into effect together
    assert sender.window == pytest.approx(grown)
    sender.ack(0.9)  # 65,536 B, more than the window
    assert sender.window == pytest.approx(grown + FOUR / 4)
    sender.ack(0.9)
    assert sender.window == pytest.approx(grown + FOUR / 2)
    sender.ack(1.0)  # a delay ends it: 8/9 of the target is left
    assert sender.window == pytest.approx(grown + FOUR / 2 + 4 * MTU * 0.75 * FOUR * (8 / 9) / (grown + FOUR / 2))


def test_once_in_a_base_rtt_a_little_comes_in_any_case() -> None:
    sender = Sender()
    sender.ack(9.0, arrived=FOUR, ecn=1, after_us=12.0)
    assert sender.window == 100_000.0  # not later than a round trip, and few packets
    sender.ack(8.0, arrived=FOUR, ecn=1)
    assert sender.window == pytest.approx(100_000 + 0.15 * MTU)


def test_a_network_four_times_as_large_makes_steps_four_times_as_large() -> None:
    sender = Sender(line_bps=400_000_000_000)
    for _ in range(3):
        sender.ack(9.0)
    assert sender.window == pytest.approx(100_000 + 3 * FOUR * 5 * 4 * MTU / 100_000)


def test_a_shorter_round_trip_makes_a_smaller_largest_window() -> None:
    sender = Sender(first_window_bytes=0)
    sender.ack(-4.0)
    assert sender.window == LARGEST * 8 / 12


def test_answers_without_a_mark_are_taken_four_packets_together() -> None:
    sender = Sender()
    for _ in range(3):
        sender.ack(9.0, arrived=MTU)
    assert sender.state.gained == 0.0
    sender.ack(9.0, arrived=MTU)
    assert sender.state.gained == 5.0 * MTU * FOUR
    sender.ack(9.0, arrived=MTU, ecn=1)
    assert sender.state.gathered_bytes == 0.0
    each = Sender(gather_packets=1)
    each.ack(9.0, arrived=MTU)
    assert each.state.gained == 5.0 * MTU * MTU


def test_an_answer_that_no_packet_caused_tells_no_delay() -> None:
    sender = Sender()
    sender.state.delay_ps = 10e6
    sender.tell(Kind.ACK, arrived_bytes=FOUR, now_ps=US_PS)
    assert sender.state.delay_ps == 10e6
    assert sender.state.gained == 5.0 * MTU * FOUR  # at the average delay, above the target


def after_a_period(arrived: int, variant: str | None = None) -> Sender:
    """A sender of which so much arrived in its first whole period; the next answer ends it."""
    sender = Sender(variant)
    sender.ack(0.0, arrived=MTU, ecn=1)  # the period begins behind it
    sender.ack(0.0, arrived=arrived, ecn=1, after_us=1.0)
    sender.signal.now_ps += 20 * US_PS
    return sender


def test_after_a_bad_period_the_window_is_what_has_arrived_in_it() -> None:
    sender = after_a_period(3 * MTU)
    sender.trim(inflight=7 * MTU)
    assert sender.window == 3 * MTU
    assert sender.state.to_ignore_bytes == 8 * MTU  # what was in flight, the cut packet with it


def test_quick_adapt_leaves_a_packet_at_least() -> None:
    sender = after_a_period(100)
    sender.trim()
    assert sender.window == MTU


def test_a_period_in_which_an_eighth_of_the_largest_window_arrived_is_not_bad() -> None:
    below, above = after_a_period(28_124), after_a_period(28_125)
    below.trim()
    above.trim()
    assert below.window == 28_124
    assert above.window == 100_000 - MTU


def test_before_the_period_is_over_a_cut_packet_costs_itself() -> None:
    sender = Sender()
    sender.ack(0.0, ecn=1)
    sender.trim()
    sender.trim()
    assert sender.window == 100_000 - 2 * MTU
    assert sender.state.delay_ps == pytest.approx(0.0125 * 12e6 * (1 + 0.9875))


def test_marks_and_cuts_of_what_was_in_flight_are_old_news() -> None:
    sender = after_a_period(3 * MTU)
    sender.trim(inflight=2 * MTU)
    sender.state.delay_ps = 30e6
    sender.ack(20.0, arrived=MTU, ecn=1)
    sender.trim()
    assert sender.window == 3 * MTU  # 2 of 3 packets
    sender.ack(20.0, arrived=MTU, ecn=1)
    assert sender.window == pytest.approx(3 * MTU * 0.5 + 0.15 * MTU)


def test_an_alarm_stays_until_quick_adapt_acts() -> None:
    """A cut in a good period, then a bad one without any cut."""
    sender = after_a_period(60_000)
    sender.trim()
    assert sender.window == 100_000 - MTU
    sender.ack(0.0, arrived=5 * MTU, ecn=1, after_us=10.0)
    sender.ack(0.0, arrived=MTU, ecn=1, after_us=11.5)
    assert sender.window == 6 * MTU


def test_a_delay_above_four_targets_is_a_bad_period_too_but_for_the_table() -> None:
    sender, table = after_a_period(MTU), after_a_period(MTU, "table-3-82")
    sender.ack(36.1)
    table.ack(36.1)
    assert sender.window == 5 * MTU
    assert table.window == pytest.approx(100_000 + 5 * MTU * FOUR / 100_000 + 0.15 * MTU)  # as after any other period


def test_a_delay_of_four_targets_is_not_above_them() -> None:
    sender = after_a_period(MTU)
    sender.ack(36.0, arrived=FOUR)
    assert sender.window > 100_000


@pytest.mark.parametrize(
    ("variant", "last_hop", "cut"), [("uet-htsim", 1, MTU), ("with-credit", 0, MTU), ("with-credit", 1, 0)]
)
def test_cuts_at_the_last_hop_are_left_to_the_receivers_credit(variant: str, last_hop: int, cut: int) -> None:
    sender = Sender(variant)
    sender.trim(last_hop=last_hop)
    assert sender.window == 100_000 - cut


def test_a_timeout_takes_what_was_lost_and_leaves_a_packet() -> None:
    sender = Sender()
    sender.tell(Kind.TIMEOUT, lost_bytes=60_000)
    assert sender.window == 40_000
    sender.tell(Kind.TIMEOUT, lost_bytes=60_000)
    assert sender.window == MTU


def test_without_trimming_the_target_is_a_whole_base_rtt() -> None:
    sender = Sender("no-trimming")
    for _ in range(3):
        sender.ack(11.9)
    assert sender.window == pytest.approx(100_000 + 3 * FOUR * 4 * MTU * (0.1 / 12) / 100_000)


events = st.tuples(
    st.sampled_from(["ack", "trim", "timeout"]), st.floats(-6, 80), st.integers(0, 60_000), st.integers(0, 1)
)


@given(story=st.lists(events, min_size=1, max_size=60))
def test_the_window_stays_between_a_packet_and_the_largest_of_the_least_round_trip(story: list[tuple]) -> None:
    sender = Sender(first_window_bytes=0)
    least_us = 12.0
    for kind, late_us, size, ecn in story:
        if kind == "ack":
            sender.ack(late_us, arrived=size, ecn=ecn)
            least_us = min(least_us, 12 + int(late_us * US_PS) / US_PS)
        elif kind == "trim":
            sender.trim(late_us + 6, inflight=size, last_hop=ecn)
        else:
            sender.tell(Kind.TIMEOUT, lost_bytes=size)
        assert MTU <= sender.window <= 1.5 * 12_500 * least_us * (1 + 1e-12)
