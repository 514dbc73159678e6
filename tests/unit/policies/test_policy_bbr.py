"""BBR version 1: samples of the delivery rate and transitions by hand, then flows in deep buffers."""

from typing import Any

import pytest
from helpers.acked_flow import BASE_RTT_PS, LINE_BPS, MTU_BYTES, AckedFlow

from weftwork.base.clock import MS_PS, US_PS
from weftwork.policies.interface import Kind

STARTUP, DRAIN, PROBE_BW, PROBE_RTT = 0, 1, 2, 3


def rate_bps(size_bytes: float, time_ps: float) -> float:
    return size_bytes * 8e12 / time_ps


def steady(bw_bps: float = 8e9, rtt_ps: int = 100 * US_PS, **parameters: Any) -> AckedFlow:
    """A flow in ProbeBW with a known model: 100 kB are its bandwidth-delay product."""
    flow = AckedFlow("bbr", **parameters)
    state = flow.state
    state.mode, state.phase, state.is_full, state.bw_bps, state.min_rtt_ps = PROBE_BW, 2, 1, bw_bps, rtt_ps
    state.bw_of_round[0] = bw_bps
    state.round_ends_at_bytes = 1 << 40
    state.cwnd_bytes = 150_000.0
    flow.send(0)
    return flow


def test_it_starts_with_ten_packets_in_a_base_rtt() -> None:
    flow = AckedFlow("bbr")
    assert flow.state.window_bytes == 10 * MTU_BYTES
    assert flow.state.rate_bps == rate_bps(10 * MTU_BYTES, BASE_RTT_PS) * 2.885 * (1.0 - 0.01)


def test_the_first_rate_is_at_most_the_line_rate() -> None:
    assert AckedFlow("bbr", initial_window_packets=1000).state.rate_bps == LINE_BPS


def test_one_packet_in_a_round_trip_is_the_first_sample() -> None:
    flow = AckedFlow("bbr")
    flow.round_trip(0, BASE_RTT_PS, 1, 0)
    assert flow.state.bw_bps == rate_bps(MTU_BYTES, BASE_RTT_PS)
    assert flow.state.min_rtt_ps == BASE_RTT_PS


def test_a_sample_is_limited_by_the_slower_of_sending_and_acknowledging() -> None:
    """The third packet leaves 30 us after the first; two arrived between its departure's count and its ACK."""
    flow = AckedFlow("bbr")
    flow.send(0)
    flow.send(15 * US_PS)
    flow.ack(40 * US_PS)  # delivered 1, at 40 us; the sending side begins at 0
    flow.send(45 * US_PS)  # remembers 1 packet at 40 us, sending began at 0
    flow.ack(55 * US_PS)
    flow.ack(100 * US_PS)
    # 2 packets in max(45 us of sending, 60 us of acknowledging)
    assert flow.state.bw_of_round[flow.state.round % 32] == rate_bps(2 * MTU_BYTES, 60 * US_PS)


def test_a_sample_shorter_than_the_smallest_rtt_counts_for_nothing() -> None:
    flow = steady(min_rtt_window_ps="1s")
    flow.ack(10 * US_PS)  # from an ACK that is too early to be of this path
    assert flow.state.min_rtt_ps == 10 * US_PS
    flow = steady()
    flow.state.mark_delivered_at_ps[0] = flow.state.mark_first_sent_at_ps[0] = 0
    flow.state.mark_sent_at_ps[0] = 50 * US_PS
    flow.state.delivered_bytes = 1_000_000  # in 49 us that would be 163 Gb/s
    flow.flying[0] = 50 * US_PS
    flow.ack(99 * US_PS)
    assert flow.state.bw_bps == 8e9


def test_startup_ends_after_three_rounds_without_growth_and_drain_takes_the_queue_down() -> None:
    flow, now_ps = AckedFlow("bbr"), 0
    for wanted in (STARTUP, STARTUP, STARTUP, STARTUP):
        now_ps = flow.round_trip(now_ps, BASE_RTT_PS, 8, 5 * US_PS)
        assert flow.state.mode == wanted
    # eight packets each: the second round has the growth, the third and fourth have none; the fifth ends it
    flow.send(now_ps, 40)
    flow.ack(now_ps + 40 * US_PS)
    assert (flow.state.mode, bool(flow.state.is_full)) == (DRAIN, True)
    assert flow.state.rate_bps == pytest.approx(flow.state.bw_bps / 2.885 * 0.99)
    for number in range(1, 40):
        flow.ack(now_ps + (40 + 5 * number) * US_PS)
    assert flow.state.mode == PROBE_BW


@pytest.mark.parametrize(("phase", "gain"), [(0, 1.25), (1, 0.75), (2, 1.0), (5, 1.0), (7, 1.0)])
def test_each_phase_has_its_gain_and_the_window_is_two_products(phase: int, gain: float) -> None:
    flow = steady()
    flow.send(90 * US_PS, 30)  # more than the product, and less than 1.25 of it
    flow.state.phase, flow.state.phase_at_ps = phase, 100 * US_PS
    flow.ack(150 * US_PS)
    assert flow.state.phase == phase
    assert flow.state.rate_bps == pytest.approx(gain * 8e9 * 0.99)
    flow.state.cwnd_bytes = 1e6
    flow.ack(195 * US_PS)
    packets = 5 if phase == 0 else 3
    assert flow.state.window_bytes == 2.0 * 100_000 + packets * MTU_BYTES


def test_a_cruising_phase_lasts_a_smallest_rtt() -> None:
    flow = steady()
    flow.send(0, 60)
    flow.state.phase_at_ps = 0
    flow.ack(100 * US_PS)
    assert flow.state.phase == 2
    flow.ack(100 * US_PS + 1)
    assert flow.state.phase == 3


def test_probing_lasts_until_inflight_has_grown_or_a_loss() -> None:
    """1.25 x 100 kB and five packets are 145,480 B: with 36 packets in flight before the ACK it is enough."""
    few, many, lossy = steady(), steady(), steady()
    for flow, packets in ((few, 30), (many, 36), (lossy, 30)):
        flow.send(0, packets - 1)
        flow.state.phase, flow.state.phase_at_ps = 0, -10 * US_PS
        flow.ack(100 * US_PS, lost_bytes=MTU_BYTES if flow is lossy else 0)
    assert [flow.state.phase for flow in (few, many, lossy)] == [0, 1, 1]


def test_draining_ends_as_soon_as_inflight_is_the_product() -> None:
    """100 kB and three packets are 112,288 B, 27 packets."""
    much, little = steady(), steady()
    for flow, packets in ((much, 40), (little, 27)):
        flow.send(0, packets - 1)
        flow.state.phase, flow.state.phase_at_ps = 1, 90 * US_PS
        flow.ack(100 * US_PS)
    assert [flow.state.phase for flow in (much, little)] == [1, 2]


def test_the_bandwidth_is_the_largest_of_ten_rounds() -> None:
    flow, now_ps = AckedFlow("bbr", full_rounds=1000), 0
    now_ps = flow.round_trip(now_ps, BASE_RTT_PS, 8, 5 * US_PS)
    now_ps = flow.round_trip(now_ps, BASE_RTT_PS, 8, 5 * US_PS)
    best_bps = flow.state.bw_bps
    for _ in range(8):
        now_ps = flow.round_trip(now_ps, 4 * BASE_RTT_PS, 1, 0)
        assert flow.state.bw_bps == best_bps
    for _ in range(3):
        now_ps = flow.round_trip(now_ps, 4 * BASE_RTT_PS, 1, 0)
    assert flow.state.bw_bps == rate_bps(MTU_BYTES, 4 * BASE_RTT_PS)


def test_samples_of_an_application_that_sends_little_do_not_lower_the_bandwidth() -> None:
    flow = steady(bw_rounds=1)
    flow.ack(100 * US_PS)
    flow.tell(Kind.RESUME, now_ps=300 * US_PS, seq=0)
    flow.state.round_ends_at_bytes = 0
    flow.round_trip(300 * US_PS, 100 * US_PS, 1, 0)
    assert flow.state.bw_bps == 8e9  # one packet in 100 us would be 0.3 Gb/s
    assert flow.state.rate_bps == pytest.approx(8e9 * 0.99)


def test_an_old_smallest_rtt_leads_to_four_packets_for_a_while_and_back() -> None:
    flow = steady(min_rtt_window_ps="1ms", probe_rtt_ps="300us")
    flow.state.cwnd_bytes = 120_000.0
    flow.send(0, 9)
    flow.ack(990 * US_PS)
    assert flow.state.mode == PROBE_BW
    flow.ack(1_001 * US_PS)
    assert (flow.state.mode, flow.state.window_bytes) == (PROBE_RTT, 4 * MTU_BYTES)
    assert flow.state.min_rtt_ps == 1_001 * US_PS  # the old one is forgotten
    for number in range(4):
        flow.ack((1_002 + number) * US_PS)
    assert flow.state.probe_rtt_until_ps == 1_005 * US_PS + 300 * US_PS  # four packets are in flight since then
    for number in range(4):
        flow.ack((1_006 + number) * US_PS)
    now_ps = 1_010 * US_PS
    for _ in range(4):
        now_ps = flow.round_trip(now_ps, 50 * US_PS, 1, 0)
    assert (flow.state.mode, flow.state.min_rtt_ps) == (PROBE_RTT, 50 * US_PS)
    flow.round_trip(1_290 * US_PS, 50 * US_PS, 1, 0)
    assert flow.state.mode == PROBE_BW
    assert flow.state.window_bytes > 110_000.0  # as it was, up to two products with the new RTT
    assert flow.state.phase != 1


def test_a_flow_that_was_idle_goes_on_at_its_bandwidth_without_probe_rtt() -> None:
    flow = steady(min_rtt_window_ps="1ms")
    flow.ack(100 * US_PS)
    flow.tell(Kind.RESUME, now_ps=5 * MS_PS)
    assert flow.state.rate_bps == 8e9 * (1.0 - 0.01)
    flow.round_trip(5 * MS_PS, 100 * US_PS, 1, 0)
    assert flow.state.mode == PROBE_BW


def test_a_loss_leaves_what_is_in_flight_and_the_window_comes_back_behind_it() -> None:
    flow = steady()
    flow.send(0, 30)
    flow.state.phase_at_ps = 100 * US_PS
    flow.ack(100 * US_PS, lost_bytes=2 * MTU_BYTES)
    assert bool(flow.state.in_recovery)
    assert flow.state.window_bytes == 30 * MTU_BYTES + MTU_BYTES  # packet conservation: in flight, and what arrived
    flow.ack(101 * US_PS, lost_bytes=MTU_BYTES)
    assert flow.state.window_bytes == 30 * MTU_BYTES
    for number in range(29):
        flow.ack((102 + number) * US_PS)
    assert not flow.state.in_recovery
    assert flow.state.window_bytes >= 150_000.0


def test_a_timeout_begins_with_one_packet() -> None:
    flow = steady()
    flow.send(0, 30)
    flow.state.full_bw_bps = 8e9
    flow.flying.clear()
    flow.tell(Kind.TIMEOUT, now_ps=MS_PS, lost_bytes=31 * MTU_BYTES)
    assert (flow.state.window_bytes, flow.state.full_bw_bps) == (MTU_BYTES, 0.0)


def test_bursts_of_an_offload_take_room_in_the_window() -> None:
    plain, offload = steady(), steady(variant="linux-offload")
    for flow in (plain, offload):
        flow.state.cwnd_bytes = 1e6
        flow.ack(100 * US_PS)
    assert plain.state.window_bytes == 200_000 + 3 * MTU_BYTES
    assert offload.state.window_bytes == 200_000 + 3 * 65_536
