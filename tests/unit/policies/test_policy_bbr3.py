"""BBR version 3: phases, bounds and ProbeRTT by hand, then flows in deep and in shallow buffers."""

from typing import Any

import pytest
from helpers.acked_flow import BASE_RTT_PS, MTU_BYTES, AckedFlow

from weftwork.base.clock import MS_PS, US_PS
from weftwork.policies.interface import NO_WINDOW_BYTES, Kind

STARTUP, DRAIN, PROBE_BW, PROBE_RTT = 0, 1, 2, 3


UP, DOWN, CRUISE, REFILL = 0, 1, 2, 3


BW_BPS = 8e9


PRODUCT_BYTES = 100_000.0  # 8 Gb/s x 100 us


NO_BOUND = NO_WINDOW_BYTES


def steady(phase: int = CRUISE, **parameters: Any) -> AckedFlow:
    """A flow in ProbeBW with a known model, whose rounds do not end by themselves; one packet is in flight since 0."""
    flow = AckedFlow("bbr3", **parameters)
    state = flow.state
    state.mode, state.phase, state.is_full = PROBE_BW, phase, 1
    state.bw_hi_bps = state.bw_of_cycle_bps = BW_BPS
    state.min_rtt_ps = state.probe_rtt_min_ps = 100 * US_PS
    state.round_ends_at_bytes = state.loss_round_ends_at_bytes = 1 << 40
    state.probe_wait_ps = 1 << 60
    state.cwnd_bytes = 150_000.0
    flow.send(0)
    return flow


def round_ends(flow: AckedFlow) -> None:
    """The next sample is of another round."""
    flow.state.round_ends_at_bytes = 0


def test_it_starts_with_ten_packets_in_a_base_rtt() -> None:
    flow = AckedFlow("bbr3")
    assert flow.state.window_bytes == 10 * MTU_BYTES
    assert flow.state.rate_bps == pytest.approx(10 * MTU_BYTES * 8e12 / BASE_RTT_PS * 2.77 * 0.99)


@pytest.mark.parametrize(("variant", "gain"), [("linux-v3", 1 / 2.885), ("draft", 0.5)])
def test_startup_ends_after_three_rounds_without_growth(variant: str, gain: float) -> None:
    flow, now_ps = AckedFlow("bbr3", variant=variant), 0
    for _ in range(3):
        now_ps = flow.round_trip(now_ps, BASE_RTT_PS, 8, 5 * US_PS)
        assert flow.state.mode == STARTUP
    flow.send(now_ps, 40)
    flow.ack(now_ps + 40 * US_PS)
    assert flow.state.mode == DRAIN
    assert flow.state.rate_bps == pytest.approx(flow.state.bw_hi_bps * gain * 0.99)
    for number in range(1, 40):
        flow.ack(now_ps + (40 + 5 * number) * US_PS)
    assert flow.state.mode == PROBE_BW


@pytest.mark.parametrize(
    ("phase", "gain", "window_bytes"),
    [
        (UP, 1.25, 2.25 * PRODUCT_BYTES + 2 * MTU_BYTES),
        (DOWN, 0.91, 2.0 * PRODUCT_BYTES),
        (CRUISE, 1.0, 2.0 * PRODUCT_BYTES),
        (REFILL, 1.0, 2.0 * PRODUCT_BYTES),
    ],
)
def test_each_phase_has_its_gain_and_its_window(phase: int, gain: float, window_bytes: float) -> None:
    flow = steady(phase)
    flow.send(0, 40)
    flow.state.cwnd_bytes = 1e6
    flow.ack(101 * US_PS)
    assert flow.state.phase == phase
    assert flow.state.rate_bps == pytest.approx(gain * BW_BPS * 0.99)
    assert flow.state.window_bytes == window_bytes


@pytest.mark.parametrize(("rounds", "phase"), [(23, CRUISE), (24, REFILL), (62, REFILL)])
def test_a_probe_begins_after_as_many_rounds_as_the_product_has_packets(rounds: int, phase: int) -> None:
    """100 kB are 24.4 packets, and this round is one more."""
    flow = steady()
    flow.state.rounds_since_probe = rounds
    round_ends(flow)
    flow.ack(101 * US_PS)
    assert flow.state.phase == phase


def test_a_probe_begins_after_its_time() -> None:
    flow = steady()
    flow.send(0, 2)
    flow.state.phase_at_ps, flow.state.probe_wait_ps = 0, 100 * US_PS
    flow.ack(100 * US_PS)
    assert flow.state.phase == CRUISE
    flow.ack(100 * US_PS + 1)
    assert flow.state.phase == REFILL


def test_the_wait_is_between_one_and_one_and_a_half_times_by_lot() -> None:
    waits = set()
    for entropy in (50_000, 50_001, 60_123):
        flow = steady(DOWN, probe_wait_ps="2ms")
        flow.state.seed = entropy
        flow.state.mode = DRAIN
        flow.ack(101 * US_PS)
        assert (flow.state.mode, flow.state.phase) == (PROBE_BW, CRUISE)  # one packet in flight: nothing to drain
        waits.add(flow.state.probe_wait_ps)
    assert len(waits) == 3
    assert all(2 * MS_PS <= wait < 3 * MS_PS for wait in waits)


def test_refill_lasts_a_round_and_up_until_the_rate_has_not_grown_for_three() -> None:
    flow = steady(REFILL)
    flow.state.cwnd_bytes = 1e6
    round_ends(flow)
    flow.ack(101 * US_PS)
    assert (flow.state.phase, bool(flow.state.samples_probe)) == (UP, True)
    now_ps = 101 * US_PS
    for phase in (UP, UP, CRUISE):  # through DOWN, where so little is in flight that nothing has to be drained
        flow.state.full_bw_bps = BW_BPS
        now_ps = flow.round_trip(now_ps, 100 * US_PS, 2, US_PS)
        assert flow.state.phase == phase


def test_many_losses_in_a_probe_set_the_bound_and_end_it() -> None:
    """Of 40 packets in flight 3 are lost: the loss of the first one reached 2 % at 37 packets and 0.75 of one."""
    flow = steady(UP)
    flow.send(0, 39)
    flow.state.samples_probe = True
    flow.state.cwnd_bytes = 200_000.0
    for _ in range(3):
        flow.flying.pop()
    for place in range(len(flow.state.mark_inflight_bytes)):
        flow.state.mark_inflight_bytes[place] = 40 * MTU_BYTES
    flow.ack(101 * US_PS, lost_bytes=3 * MTU_BYTES)
    assert (flow.state.phase, bool(flow.state.was_too_high)) == (DOWN, True)
    assert flow.state.inflight_hi_bytes == pytest.approx(37 * MTU_BYTES * (1 + 0.02 / 0.98))


def test_the_bound_is_not_below_seven_tenths_of_the_product() -> None:
    flow = steady(UP)
    flow.state.samples_probe = True
    flow.state.mark_inflight_bytes[0] = 10 * MTU_BYTES
    flow.ack(101 * US_PS, lost_bytes=2 * MTU_BYTES)
    assert flow.state.inflight_hi_bytes == pytest.approx(0.7 * (PRODUCT_BYTES + 2 * MTU_BYTES))  # two packets in UP


def test_few_losses_in_a_probe_change_nothing() -> None:
    flow = steady(UP)
    flow.send(0, 60)
    flow.state.samples_probe = True
    flow.state.mark_inflight_bytes[0] = 60 * MTU_BYTES
    flow.ack(101 * US_PS, lost_bytes=MTU_BYTES)
    assert (flow.state.phase, flow.state.inflight_hi_bytes) == (UP, NO_BOUND)


def test_a_round_with_losses_lowers_the_short_term_bounds_and_refill_forgets_them() -> None:
    flow = steady()
    flow.send(1, 4, every_ps=1)
    flow.ack(101 * US_PS, lost_bytes=MTU_BYTES)
    assert flow.state.bw_lo_bps == NO_BOUND  # the round is not over
    flow.state.loss_round_ends_at_bytes = 0
    window_bytes = flow.state.cwnd_bytes
    flow.ack(102 * US_PS)
    assert flow.state.bw_lo_bps == pytest.approx(0.7 * BW_BPS)
    assert flow.state.inflight_lo_bytes == pytest.approx(0.7 * window_bytes)
    assert flow.state.rate_bps == pytest.approx(0.7 * BW_BPS * 0.99)
    assert flow.state.window_bytes == pytest.approx(0.7 * window_bytes)
    flow.state.phase_at_ps, flow.state.probe_wait_ps = 0, 1
    flow.ack(103 * US_PS)
    assert (flow.state.phase, flow.state.bw_lo_bps, flow.state.inflight_lo_bytes) == (REFILL, NO_BOUND, NO_BOUND)


def test_losses_while_it_probes_do_not_lower_the_short_term_bounds() -> None:
    flow = steady(REFILL)
    flow.send(1, 4, every_ps=1)
    flow.ack(101 * US_PS, lost_bytes=MTU_BYTES)
    flow.state.loss_round_ends_at_bytes = 0
    flow.ack(102 * US_PS)
    assert flow.state.bw_lo_bps == NO_BOUND


@pytest.mark.parametrize(("phase", "share"), [(CRUISE, 0.85), (DOWN, 1.0), (UP, 1.0), (REFILL, 1.0)])
def test_cruising_leaves_headroom_below_the_long_term_bound(phase: int, share: float) -> None:
    flow = steady(phase)
    flow.send(0, 26)  # more than a product, and less than the bound
    flow.state.inflight_hi_bytes = 120_000.0
    flow.ack(101 * US_PS)
    assert flow.state.window_bytes == pytest.approx(share * 120_000)


def test_down_ends_when_what_is_in_flight_leaves_headroom() -> None:
    """85 % of 100 kB are 20.75 packets."""
    much, little = steady(DOWN), steady(DOWN)
    for flow, packets in ((much, 21), (little, 20)):
        flow.state.inflight_hi_bytes = PRODUCT_BYTES
        flow.send(0, packets - 1)
        flow.ack(101 * US_PS)
    assert [flow.state.phase for flow in (much, little)] == [DOWN, CRUISE]


def test_the_long_term_bound_grows_by_packets_that_double_each_round() -> None:
    flow = steady(REFILL)
    state = flow.state
    state.inflight_hi_bytes = state.cwnd_bytes = 100_000.0
    round_ends(flow)
    flow.ack(101 * US_PS)
    assert (state.phase, state.up_bytes_per_packet) == (UP, pytest.approx(100_000.0))
    for rounds, packets in ((2, 2), (3, 4)):
        flow.send(102 * US_PS)
        state.is_cwnd_limited = True
        state.full_bw_bps = 0.0
        state.cwnd_bytes = state.inflight_hi_bytes
        round_ends(flow)
        flow.ack(300 * US_PS)
        assert state.up_rounds == rounds
        assert state.up_bytes_per_packet == pytest.approx(state.cwnd_bytes / packets, rel=0.1)
    state.up_acked_bytes, state.up_bytes_per_packet = 0.0, 1024.0
    before_bytes = state.cwnd_bytes = state.inflight_hi_bytes
    state.is_cwnd_limited = True
    flow.send(301 * US_PS)
    flow.state.round_ends_at_bytes = 1 << 40
    flow.ack(402 * US_PS)
    assert state.inflight_hi_bytes == before_bytes + 4 * MTU_BYTES  # 4096 acknowledged, a packet for each 1024


def test_after_a_probe_that_went_too_far_the_next_one_stops_at_the_bound_and_goes_on_at_once() -> None:
    flow = steady(UP)
    flow.send(0, 30)
    flow.state.was_too_high, flow.state.inflight_hi_bytes = 1, 100_000.0
    flow.ack(101 * US_PS)
    assert (flow.state.phase, bool(flow.state.was_cautious), bool(flow.state.was_too_high)) == (DOWN, True, False)
    round_ends(flow)
    flow.send(102 * US_PS)
    flow.state.first_mark = flow.state.next_mark - 1
    for _ in range(31):
        flow.ack(210 * US_PS)
    assert flow.state.phase == REFILL


def test_without_a_smaller_rtt_it_probes_with_half_a_product_in_flight() -> None:
    flow = steady(probe_rtt_interval_ps="1ms", probe_rtt_ps="200us")
    flow.send(0, 30)
    flow.state.cwnd_bytes = 140_000.0
    flow.ack(999 * US_PS)
    assert flow.state.mode == PROBE_BW
    flow.ack(1_001 * US_PS)
    assert (flow.state.mode, flow.state.min_rtt_ps) == (PROBE_RTT, 100 * US_PS)  # the long window still knows it
    assert flow.state.window_bytes == PRODUCT_BYTES / 2
    for number in range(17):  # 29 - 17 = 12 packets are 49,152 B
        flow.ack((1_002 + number) * US_PS)
    assert flow.state.probe_rtt_until_ps == (1_018 + 200) * US_PS
    for _ in range(12):
        flow.ack(1_100 * US_PS)
    flow.round_trip(1_110 * US_PS, 100 * US_PS, 1, 0)
    assert flow.state.mode == PROBE_RTT
    flow.round_trip(1_211 * US_PS, 100 * US_PS, 1, 0)
    assert (flow.state.mode, flow.state.phase) == (PROBE_BW, CRUISE)
    assert flow.state.window_bytes > 140_000.0


def test_a_flow_that_was_idle_goes_on_at_its_bandwidth_without_probe_rtt() -> None:
    flow = steady(probe_rtt_interval_ps="1ms")
    flow.ack(101 * US_PS)
    flow.tell(Kind.RESUME, now_ps=5 * MS_PS)
    assert flow.state.rate_bps == pytest.approx(BW_BPS * 0.99)
    flow.round_trip(5 * MS_PS, 100 * US_PS, 1, 0)
    assert flow.state.mode == PROBE_BW


def test_a_timeout_begins_with_one_packet_and_the_window_comes_back_behind_it() -> None:
    flow = steady()
    flow.send(0, 10)
    flow.tell(Kind.TIMEOUT, now_ps=MS_PS, lost_bytes=11 * MTU_BYTES)
    assert (flow.state.window_bytes, flow.state.inflight_lo_bytes) == (MTU_BYTES, 150_000.0)
    for _ in range(11):
        flow.ack(MS_PS + 100 * US_PS)
    assert not flow.state.in_recovery
    assert flow.state.window_bytes == 150_000.0
