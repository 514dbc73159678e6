"""TIMELY against algorithm 1 and its patch, worked out by hand, and its fixed points in a network."""

from __future__ import annotations

import heapq
from typing import Any

import pytest
from helpers.both import both
from helpers.told_sender import ToldSender, long_flow, plan, probe_rtts_ps, probes, run, shares, star

from weftwork.base.clock import MS_PS, US_PS
from weftwork.policies.interface import NO_WINDOW_BYTES, Kind
from weftwork.policies.load import load

G = 1_000_000_000
LINE_BPS = 10 * G


class Sender(ToldSender):
    """A queue pair of which every acknowledgement ends a round trip, or a segment."""

    def __init__(self, variant: str | None = None, **parameters: Any) -> None:
        super().__init__("timely", variant, **parameters)
        self.acknowledged = 0

    def hears(self, rtt_us: float) -> float:
        """The rate after an RTT; 16,000 bytes have arrived since the one before, which is 100 us ago."""
        self.acknowledged += 16
        now_ps = self.signal.now_ps + 100 * US_PS
        self.tell(
            Kind.ACK, now_ps=now_ps, seq=self.acknowledged, next_seq=self.acknowledged, arrived_bytes=16_000,
            rtt_ps=round(rtt_us * US_PS),
        )  # fmt: skip
        return float(self.state.rate_bps)

    def at(self, rate_bps: float) -> Sender:
        self.state.rate_bps = rate_bps
        return self


def test_it_starts_at_line_rate_without_a_window_and_paces_packets() -> None:
    state = Sender().state
    assert (state.rate_bps, state.window_bytes, state.segment_bytes) == (LINE_BPS, NO_WINDOW_BYTES, 0)


@pytest.mark.parametrize(("variant", "first_bps", "segment"), [("paper", 10 * G, 64_000), ("zhu-repo", G, 16_000)])
def test_variants_start_elsewhere_and_send_segments(variant: str, first_bps: int, segment: int) -> None:
    state = Sender(variant).state
    assert (state.rate_bps, state.segment_bytes) == (first_bps, segment)


def test_the_first_rtt_changes_nothing() -> None:
    assert Sender().at(5 * G).hears(30) == 5 * G


@pytest.mark.parametrize(("line_bps", "step_bps"), [(10 * G, 10e6), (100 * G, 100e6)])
def test_below_the_lower_threshold_it_rises_by_a_step_that_scales(line_bps: int, step_bps: float) -> None:
    sender = Sender(line_bps=line_bps).at(5e9)
    sender.hears(30)
    assert sender.hears(49) == 5e9 + step_bps


def test_above_the_upper_threshold_it_falls_by_the_excess() -> None:
    sender = Sender().at(5e9)
    sender.hears(900)
    assert sender.hears(625) == pytest.approx(5e9 * (1 - 0.8 * (1 - 500 / 625)))  # although the slope is below 0


def test_between_them_it_falls_by_the_slope_of_a_mean() -> None:
    sender = Sender().at(5e9)
    sender.hears(100)
    first = sender.hears(104)  # 0.875 x 4 us, over 20 us
    assert first == pytest.approx(5e9 * (1 - 0.8 * 3.5 / 20))
    assert sender.hears(102) == pytest.approx(first + 10e6)  # 0.125 x 3.5 - 0.875 x 2 is below 0


def test_a_steep_slope_leaves_the_floor() -> None:
    sender = Sender().at(5e9)
    sender.hears(100)
    assert sender.hears(200) == 1e9


@pytest.mark.parametrize(("variant", "floor_bps"), [("paper", 2.5e9), ("zhu-repo", 0.1e9)])
def test_a_steep_slope_leaves_a_half_or_a_hundredth_in_the_variants(variant: str, floor_bps: float) -> None:
    sender = Sender(variant, newest_weight=0.875, segment_bytes=16_000).at(5e9)
    sender.hears(100)
    assert sender.hears(200) == pytest.approx(floor_bps)


def test_after_five_rises_in_a_row_it_hurries_until_it_falls() -> None:
    sender = Sender().at(1e9)
    sender.hears(30)
    rises = [sender.hears(30) for _ in range(7)]
    assert rises == [1e9 + 10e6 * turn for turn in range(1, 6)] + [1.1e9, 1.15e9]
    sender.hears(600)
    before = sender.state.rate_bps
    assert sender.hears(30) == pytest.approx(before + 10e6)


def test_by_the_authors_code_only_falling_rtts_hurry_and_only_between_the_thresholds() -> None:
    sender = Sender("paper", segment_bytes=16_000).at(1e9)
    for rtt_us in (200, 190, 180, 170, 160):
        rate_bps = sender.hears(rtt_us)
    assert rate_bps == pytest.approx(1e9 + 4 * 10e6)
    assert sender.hears(150) == pytest.approx(1e9 + 4 * 10e6 + 50e6)  # the fifth difference below 0
    assert sender.hears(40) == pytest.approx(1e9 + 4 * 10e6 + 50e6 + 10e6)


def test_by_the_authors_code_a_step_too_soon_is_as_much_smaller() -> None:
    sender = Sender("paper", segment_bytes=16_000).at(1e9)
    sender.hears(30)
    sender.tell(Kind.ACK, now_ps=sender.signal.now_ps + 5 * US_PS, rtt_ps=30 * US_PS, arrived_bytes=16_000)
    assert sender.state.rate_bps == pytest.approx(1e9 + 10e6 * 5 / 20)


def test_the_packets_own_time_on_the_first_link_is_not_counted() -> None:
    sender = Sender("zhu-repo")
    sender.hears(60)
    assert sender.state.last_rtt_ps == 60 * US_PS - 800_000  # 1,000 bytes at 10 Gb/s


def test_a_step_is_a_round_trip_or_a_segment() -> None:
    sender = Sender().at(1e9)
    sender.tell(Kind.ACK, seq=1, next_seq=20, rtt_ps=30 * US_PS, arrived_bytes=1_000)
    sender.tell(Kind.ACK, seq=20, next_seq=40)
    assert sender.state.rate_bps == 1e9
    sender.tell(Kind.ACK, seq=21, next_seq=41)
    assert sender.state.rate_bps == 1.01e9
    sender = Sender("zhu-repo")
    for seq in range(1, 32):
        sender.tell(Kind.ACK, seq=seq, next_seq=40, rtt_ps=30 * US_PS, arrived_bytes=1_000)
    assert sender.state.rate_bps == 1e9
    sender.tell(Kind.ACK, seq=32)
    assert sender.state.rate_bps == 1.01e9


@pytest.mark.parametrize(
    ("rtt_us", "before_us", "weight"),
    [(100, 100, 0.5), (102, 100, 0.675), (98, 100, 0.325), (110, 100, 1), (90, 99, 0)],
)
def test_the_patch_weighs_the_excess_by_the_slope(rtt_us: float, before_us: float, weight: float) -> None:
    """Weight = 2 x slope + 1/2, with a slope of 0.875 x difference / 20 us, between 0 and 1."""
    sender = Sender("patched", without_serialisation=False).at(5e9)
    sender.hears(before_us)
    excess = (rtt_us - 50) / 50
    wanted_bps = 10e6 * (1 - weight) + 5e9 * (1 - 0.008 * weight * excess)
    assert sender.hears(rtt_us) == pytest.approx(wanted_bps)


def fixed(variant: str, rtt_us: float, rate_bps: float) -> float:
    """Change of the rate where the RTT stays."""
    sender = Sender(variant, without_serialisation=False).at(rate_bps)
    sender.hears(rtt_us)
    return sender.hears(rtt_us) - rate_bps


@pytest.mark.parametrize("rate_bps", [1e9, 3e9, 7e9])
def test_where_the_rtt_stays_any_rate_is_a_fixed_point_or_none_is(rate_bps: float) -> None:
    """CoNEXT 2016, theorems 3 and 4: none where a slope of 0 rises, infinitely many where it does not."""
    assert fixed("zhu-repo", 80, rate_bps) == 0
    assert fixed("hpcc-repo", 80, rate_bps) == 10e6


@pytest.mark.parametrize("flows", [2, 4, 10])
def test_the_patch_has_one_fixed_point_that_flows_share(flows: int) -> None:
    """RTT = low (1 + increase x N / (b C)) at C / N, and there alone."""
    rtt_us = 50 * (1 + 0.125 * flows)
    assert fixed("patched", rtt_us, LINE_BPS / flows) == pytest.approx(0, abs=1)
    assert fixed("patched", rtt_us, 1.2 * LINE_BPS / flows) < -100_000
    assert fixed("patched", rtt_us, 0.8 * LINE_BPS / flows) > 100_000
    assert fixed("patched", rtt_us + 5, LINE_BPS / flows) < -100_000


@pytest.mark.parametrize(("variant", "most_bps"), [(None, 10e9), ("zhu-repo", 9.6e9)])
def test_the_rate_stays_below_its_ceiling(variant: str | None, most_bps: float) -> None:
    sender = Sender(variant).at(9.59e9)
    for _ in range(60):
        sender.hears(30)
    assert sender.state.rate_bps == most_bps


@pytest.mark.parametrize(("follows", "left"), [(True, 0.25), (False, 1.0)])
def test_the_window_is_a_bandwidth_delay_product_that_follows_the_rate(*, follows: bool, left: float) -> None:
    sender = Sender("hpcc-repo-window", window_follows_rate=follows).at(2.5e9)
    assert sender.state.window_bytes == 12_500 + 1_000  # 10 Gb/s x 10 us, and a packet
    sender.hears(30)
    assert sender.state.window_bytes == left * 13_500


def in_a_fluid_queue(variant: str, first_bps: float, second_bps: float) -> tuple[float, float, float]:
    """Ratio of the rates and span of the RTT after 45 ms at one queue of 10 Gb/s; RTTs arrive when they have passed."""
    senders = [Sender(variant, without_serialisation=False).at(rate_bps) for rate_bps in (first_bps, second_bps)]
    events = [(0.0, number, 0.0) for number in range(2)]  # us, sender, RTT that arrives, or 0: a segment ends
    now_us = queue_us = 0.0
    ratios, rtts_us = [], []
    while now_us < 50_000:
        at_us, number, rtt_us = heapq.heappop(events)
        excess = sum(sender.state.rate_bps for sender in senders) / LINE_BPS - 1
        queue_us = max(0.0, queue_us + excess * (at_us - now_us))
        now_us = at_us
        if rtt_us:
            senders[number].hears(rtt_us)
            ratios.append(senders[0].state.rate_bps / senders[1].state.rate_bps)
            rtts_us.append((now_us, rtt_us))
        else:
            heapq.heappush(events, (now_us + 4.8 + queue_us, number, 4.8 + queue_us))
            heapq.heappush(events, (now_us + 128e9 / senders[number].state.rate_bps, number, 0.0))
    late_us = [rtt_us for at_us, rtt_us in rtts_us if at_us > 45_000]
    return ratios[-1], min(late_us), max(late_us)


def test_rates_of_7_and_3_gbps_stay_apart_and_meet_with_the_patch() -> None:
    """CoNEXT 2016: the start decides what each flow has for ever; with the patch both come to the same."""
    ratio, low_us, high_us = in_a_fluid_queue("zhu-repo", 7e9, 3e9)
    assert ratio > 7 / 3
    patched, patched_low_us, patched_high_us = in_a_fluid_queue("patched", 7e9, 3e9)
    assert 1 < patched < 1.2
    assert (patched_low_us, patched_high_us) == pytest.approx((62.5, 62.5), abs=1)
    assert high_us - low_us > 20 * (patched_high_us - patched_low_us)


# In a network


@pytest.mark.parametrize("flows", [2, 4, 10])
def test_the_steady_rtt_of_the_patch_is_that_of_its_fixed_point(flows: int) -> None:
    messages = [one for flow in range(flows) for one in long_flow(flow, flows, 0, 120_000_000 // flows)]
    messages += probes(flows + 1, flows, range(60 * MS_PS, 80 * MS_PS, 200 * US_PS))
    outcome = run(star(flows + 2, LINE_BPS), messages, load("congestion_control", "timely", {}, "patched"))
    rtts_ps = probe_rtts_ps(outcome)
    wanted_ps = 50 * US_PS * (1 + 0.125 * flows)
    assert sum(rtts_ps) / len(rtts_ps) - 800_000 == pytest.approx(wanted_ps, rel=0.03)
    assert sum(shares(outcome, flows, 60 * MS_PS, 80 * MS_PS)) > 0.9 * LINE_BPS


@pytest.mark.parametrize("variant", [None, "paper", "zhu-repo", "patched", "hpcc-repo-window"])
def test_both_engines_agree(variant: str | None) -> None:
    messages = [*long_flow(0, 3, 0, 400_000), *long_flow(1, 3, 50 * US_PS, 400_000), *long_flow(2, 3, 0, 400_000)]
    outcome = both(plan(star(4, LINE_BPS), messages, load("congestion_control", "timely", {}, variant)))
    assert (outcome.messages["delivered_at_ps"] >= 0).all()
