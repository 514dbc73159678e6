"""PCC Vivace: intervals, utility and decisions by hand, then flows that share a link."""

import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.both import both
from helpers.tiny import Message, packet_input_of, sends, star
from helpers.watched import watch

from weftwork.base.clock import MS_PS, US_PS
from weftwork.policies.congestion_control import vivace
from weftwork.policies.interface import OFF, Kind
from weftwork.policies.load import LoadedPolicy, load
from weftwork.spec.device import Ecn, Switch
from weftwork.spec.transport import Transport

LINE_BPS = 100_000_000_000
UNIT_BPS = 100e6  # a megabit per second at 1 Gb/s
MTU_BYTES = 4096
BASE_RTT_PS = 20 * US_PS
STARTING, LEARNING = 0, 1
BOTTLENECK_BPS = 50_000_000_000
DEEP = Switch(
    forwarding_latency_ps=0, buffer_bytes=200_000_000, alpha=8.0, ecn=Ecn(kmin_bytes=60_000_000, kmax_bytes=60_000_000)
)
Rtt = Callable[[int, float], int]  # of a packet, by the instant at which it leaves and the rate then


class Flow:
    """One queue pair on a path whose RTT is a function; packets leave at the rate that the step sets."""

    def __init__(self, **parameters: Any) -> None:
        variant = parameters.pop("variant", None)
        self.policy: LoadedPolicy = load("congestion_control", "vivace", parameters, variant)
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.signal.line_rate_bps, self.signal.mtu_bytes, self.signal.base_rtt_ps = LINE_BPS, MTU_BYTES, BASE_RTT_PS
        self.next_ps = 0
        self.acks: list[tuple[int, int]] = []
        self.tell(Kind.START, now_ps=0)

    def tell(self, kind: Kind, **fields: int) -> None:
        self.signal.kind = int(kind)
        for name, value in fields.items():
            setattr(self.signal, name, value)
        self.policy.call_step(self.state, self.signal)

    def event(self, rtt: Rtt, lost_bytes: int = 0) -> None:
        """The next departure or ACK, whichever comes first."""
        if self.acks and self.acks[0][0] <= self.next_ps:
            at_ps, sent_ps = heapq.heappop(self.acks)
            told = {"bytes": MTU_BYTES, "arrived_bytes": MTU_BYTES, "lost_bytes": lost_bytes}
            self.tell(Kind.ACK, now_ps=at_ps, rtt_ps=at_ps - sent_ps, **told)
            return
        at_ps = self.next_ps
        self.tell(Kind.SEND, now_ps=at_ps, bytes=MTU_BYTES, entropy=50_000)
        heapq.heappush(self.acks, (at_ps + rtt(at_ps, self.state.rate_bps), at_ps))
        self.next_ps = at_ps + int(MTU_BYTES * 8e12 / self.state.rate_bps)

    def decision(self, rtt: Rtt, lost_bytes: Callable[[], int] | None = None) -> list[float]:
        """Run until the intervals are judged; the rates that were used, in their order."""
        rates: list[float] = []
        began = False
        for _ in range(100_000):
            before = self.state.began_at_ps[0] != OFF
            self.event(rtt, lost_bytes() if lost_bytes else 0)
            began = began or before
            if not rates or rates[-1] != self.state.rate_bps:
                rates.append(self.state.rate_bps)
            if began and self.state.began_at_ps[0] == OFF:
                return rates
        raise AssertionError("no decision was made")


def flat(_sent_ps: int, _rate_bps: float) -> int:
    return BASE_RTT_PS


def rising(per_second: float) -> Rtt:
    """An RTT that grows with the instant of departure, whatever the rate."""
    return lambda sent_ps, _rate_bps: BASE_RTT_PS + int(sent_ps * per_second)


class Queue:
    """A bottleneck whose queue grows where the flow sends more than it carries."""

    def __init__(self, capacity_bps: float) -> None:
        self.capacity_bps = capacity_bps
        self.free_ps = 0

    def __call__(self, sent_ps: int, _rate_bps: float) -> int:
        self.free_ps = max(self.free_ps, sent_ps) + int(MTU_BYTES * 8e12 / self.capacity_bps)
        return BASE_RTT_PS + self.free_ps - sent_ps


def learner(base_bps: float = 10e9, **parameters: Any) -> Flow:
    flow = Flow(**parameters)
    flow.state.mode, flow.state.base_bps, flow.state.rate_bps = LEARNING, base_bps, base_bps
    return flow


def test_it_starts_with_a_part_of_the_line_rate_and_a_window_of_two_products() -> None:
    flow = Flow(initial_fraction=0.5)
    assert (flow.state.rate_bps, flow.state.mode) == (LINE_BPS / 2, STARTING)
    assert flow.state.window_bytes == 2.0 * 50e9 * BASE_RTT_PS / 8e12
    assert Flow().state.window_bytes == 20_000  # 4 Gb/s x 20 us are 10,000 B
    assert Flow(initial_fraction=0.001).state.window_bytes == 4 * MTU_BYTES


def test_no_rate_is_below_two_packets_in_an_rtt_or_a_hundredth_of_the_line() -> None:
    flow = Flow(initial_fraction=0.0001)
    assert flow.state.rate_bps == LINE_BPS / 100  # two packets in 20 us would be 3.3 Gb/s
    flow.state.smoothed_rtt_ps = float(MS_PS)
    assert vivace.within(flow.state, 1.0, flow.signal) == 2 * MTU_BYTES * 8e12 / MS_PS


def test_the_rate_doubles_while_utility_rises_and_the_line_rate_ends_that() -> None:
    flow = Flow()
    for wanted in (8e9, 16e9, 32e9, 64e9, 100e9):
        flow.decision(flat)
        assert (flow.state.base_bps, flow.state.mode) == (wanted, STARTING)
    flow.decision(flat)
    assert (flow.state.base_bps, flow.state.mode) == (100e9, LEARNING)


def test_a_queue_that_grows_ends_the_start_at_the_rate_before() -> None:
    flow, queue = Flow(), Queue(20e9)
    for wanted in (8e9, 16e9, 32e9):
        flow.decision(queue)
        assert flow.state.base_bps == wanted
    flow.decision(queue)
    assert (flow.state.base_bps, flow.state.mode) == (16e9, LEARNING)


def test_a_utility_that_falls_and_is_positive_ends_the_start_too() -> None:
    """At 64 Gb/s the RTT grows by 2.2 s in a second: 640^0.9 - 0.2 x 640 x 2.2 is below 320^0.9 - 0.2 x 320 x 0.6."""
    flow, queue = Flow(rtt_coefficient=0.2), Queue(20e9)
    for _ in range(8):
        flow.decision(queue)
        if flow.state.mode == LEARNING:
            break
    assert (flow.state.mode, flow.state.last_utility > 0.0) == (LEARNING, True)
    assert flow.state.base_bps == 32e9


def test_an_interval_lasts_fifty_packets_or_an_rtt() -> None:
    slow, fast = learner(1e9), learner(90e9, probe_step=0.01)
    for flow in (slow, fast):
        flow.event(flat)
    assert slow.state.due_at_ps[0] == int(50 * MTU_BYTES * 8e12 / slow.state.rate_bps)
    assert fast.state.due_at_ps[0] == BASE_RTT_PS


def test_a_decision_tries_a_rate_above_and_one_below_and_then_waits() -> None:
    flow = learner()
    rates = flow.decision(flat)
    assert sorted(rates[:2]) == pytest.approx([9.5e9, 10.5e9])
    assert rates[2] == 10e9
    orders = {flow.decision(flat)[0] > flow.state.base_bps for _ in range(8)}
    assert orders == {True, False}  # by lot


def test_without_congestion_the_step_is_the_slope_of_the_power() -> None:
    flow = learner()
    flow.decision(flat)
    slope = (105.0**0.9 - 95.0**0.9) / 10.0
    assert flow.state.base_bps == pytest.approx(10e9 + slope * UNIT_BPS)


def test_units_follow_the_line_rate_unless_they_are_absolute() -> None:
    flow = learner(scale_rate_bps=0)
    flow.decision(flat)
    slope = (10_500.0**0.9 - 9_500.0**0.9) / 1_000.0
    assert flow.state.base_bps == pytest.approx(10e9 + slope * 1e6)


def test_an_rtt_that_grows_all_the_time_is_a_reason_to_slow_down() -> None:
    """Both intervals see the slope g, so that the utility gradient is that of x^t - b g x."""
    flow = learner(conversion=0.01)
    flow.decision(rising(0.02))
    slope = (105.0**0.9 - 95.0**0.9) / 10.0 - 900.0 * 0.02
    assert flow.state.base_bps == pytest.approx(10e9 + 0.01 * slope * UNIT_BPS, rel=1e-6)


@pytest.mark.parametrize(("per_second", "counts"), [(0.009, False), (-0.009, False), (0.011, True), (-0.011, True)])
def test_a_small_rtt_gradient_is_noise(per_second: float, *, counts: bool) -> None:
    flow = learner(conversion=0.01)
    flow.decision(lambda sent_ps, _rate_bps: 10 * BASE_RTT_PS + int(sent_ps * per_second))
    free = 10e9 + 0.01 * (105.0**0.9 - 95.0**0.9) / 10.0 * UNIT_BPS
    assert (flow.state.base_bps != pytest.approx(free)) is counts


def test_the_loss_variant_does_not_look_at_the_rtt() -> None:
    flow = learner(variant="loss")
    flow.decision(rising(0.5))
    assert flow.state.base_bps > 10e9


def counted(flow: Flow, lost: tuple[int, int], arrived: int = 100 * MTU_BYTES) -> None:
    """Two intervals that are over: the first with the higher rate, and so many packets lost of each."""
    for index in range(2):
        flow.state.interval_bps[index] = (10.5e9, 9.5e9)[index]
        flow.state.arrived_bytes[index] = arrived - lost[index] * MTU_BYTES
        flow.state.lost_bytes[index] = lost[index] * MTU_BYTES


def test_losses_count_with_their_share_of_the_bytes() -> None:
    flow = learner(conversion=0.01)
    counted(flow, (10, 2))
    vivace.learn(flow.policy.params, flow.state, flow.signal)
    high = 105.0**0.9 - 11.35 * 105.0 * 0.10
    low = 95.0**0.9 - 11.35 * 95.0 * 0.02
    assert flow.state.base_bps == pytest.approx(10e9 + 0.01 * (high - low) / 10.0 * UNIT_BPS)


def test_where_the_higher_rate_has_lost_less_it_looks_twice() -> None:
    flow = learner()
    for wanted in (True, False):
        counted(flow, (2, 10))
        vivace.learn(flow.policy.params, flow.state, flow.signal)
        assert (flow.state.base_bps == 10e9) is wanted


def test_the_amplifier_counts_steps_in_one_direction() -> None:
    flow = learner()
    assert [vivace.amplified(flow.state, 1.0) for _ in range(6)] == [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]
    assert [vivace.amplified(flow.state, -1.0) for _ in range(4)] == [1.0, 2.0, 3.0, 5.0]
    assert vivace.amplified(flow.state, 0.0) == 1.0
    assert vivace.amplified(flow.state, 1.0) == 1.0


def test_the_boundary_grows_while_it_cuts_and_falls_back_to_what_is_needed() -> None:
    flow = learner()
    params = flow.policy.params
    cut = [vivace.bounded(params, flow.state, 90e9) / 10e9 for _ in range(3)]
    assert cut == pytest.approx([0.05, 0.15, 0.25])
    assert flow.state.cuts == 3
    assert vivace.bounded(params, flow.state, 1.2e9) == 1.2e9  # 12 % needs a bound of 15 %
    assert flow.state.cuts == 1
    assert vivace.bounded(params, flow.state, 0.1e9) == 0.1e9
    assert flow.state.cuts == 0
    vivace.bounded(params, flow.state, 90e9)
    assert vivace.bounded(params, flow.state, -90e9) == pytest.approx(-0.05 * 10e9)  # another direction begins anew
    assert flow.state.cuts == -1


def test_the_slope_of_the_rtt_is_that_of_least_squares() -> None:
    flow = learner()
    flow.event(flat)
    times_us, rtts_us = [0.0, 1.0, 3.0, 7.0, 8.0], [20.0, 21.0, 22.5, 30.0, 28.0]
    for time_us, rtt_us in zip(times_us, rtts_us, strict=True):
        now_ps = int((time_us + rtt_us) * US_PS)
        told = {"rtt_ps": int(rtt_us * US_PS), "arrived_bytes": MTU_BYTES, "lost_bytes": 0}
        flow.tell(Kind.ACK, now_ps=now_ps, **told)
    wanted = float(np.polyfit(times_us, rtts_us, 1)[0])
    assert vivace.rtt_gradient(flow.policy.params, flow.state, 0) == pytest.approx(wanted)


def test_acks_and_losses_of_packets_from_before_belong_to_no_interval() -> None:
    flow = learner()
    flow.next_ps = 100 * US_PS
    flow.event(flat)
    flow.tell(Kind.ACK, now_ps=110 * US_PS, rtt_ps=20 * US_PS, arrived_bytes=MTU_BYTES, lost_bytes=MTU_BYTES)
    assert (list(flow.state.arrived_bytes), list(flow.state.lost_bytes)) == ([0, 0], [0, 0])
    flow.tell(Kind.ACK, now_ps=121 * US_PS, rtt_ps=20 * US_PS, arrived_bytes=MTU_BYTES, lost_bytes=MTU_BYTES)
    flow.tell(Kind.NAK, now_ps=121 * US_PS, lost_bytes=MTU_BYTES)  # tells the same loss
    assert (flow.state.arrived_bytes[0], flow.state.lost_bytes[0]) == (MTU_BYTES, MTU_BYTES)


def test_idle_time_forgets_the_intervals_and_keeps_the_rate() -> None:
    flow = learner()
    for _ in range(20):
        flow.event(flat)
    assert flow.state.began_at_ps[0] != OFF
    flow.tell(Kind.RESUME, now_ps=MS_PS)
    assert (flow.state.began_at_ps[0], flow.state.base_bps, flow.state.rate_bps) == (OFF, 10e9, 10e9)


def test_a_timeout_halves_the_rate_and_ends_the_start() -> None:
    flow = Flow(initial_fraction=0.2)
    flow.tell(Kind.TIMEOUT, now_ps=MS_PS, lost_bytes=MTU_BYTES)
    assert (flow.state.base_bps, flow.state.rate_bps, flow.state.mode) == (10e9, 10e9, LEARNING)


def test_behind_a_bottleneck_the_rate_stays_near_it() -> None:
    flow, queue = learner(18e9), Queue(20e9)
    rates = []
    for _ in range(150):
        flow.decision(queue)
        rates.append(flow.state.base_bps)
    settled = rates[50:]
    assert 0.8 * 20e9 < sum(settled) / len(settled) < 20e9
    assert max(settled) < 1.1 * 20e9
    assert math.isfinite(min(settled))


@pytest.mark.parametrize("flows", [2, 3])
def test_flows_share_fairly_with_a_short_queue(flows: int) -> None:
    """They start 4 ms apart in a buffer of 200 MB; a product is 125 kB."""
    seen = watch(
        "vivace", flows, 30 * MS_PS, switch=DEEP, delay_ps=5 * US_PS, bottleneck_bps=BOTTLENECK_BPS,
        starts_ps=tuple(4 * MS_PS * flow for flow in range(flows)),
    )  # fmt: skip
    settled_ps = 18 * MS_PS
    assert seen.jain(settled_ps) > 0.97
    assert sum(seen.goodputs_bps(settled_ps)) > 0.85 * BOTTLENECK_BPS
    queue = seen.values("queue_bytes", since_ps=settled_ps)
    assert float(queue.mean()) < 20_000
    assert float(np.percentile(queue, 95)) < 60_000


def test_without_the_rtt_the_same_flows_fill_the_buffer() -> None:
    seen = watch(
        "vivace", 2, 12 * MS_PS, variant="loss", switch=DEEP, delay_ps=5 * US_PS, bottleneck_bps=BOTTLENECK_BPS
    )
    assert float(seen.values("queue_bytes", since_ps=8 * MS_PS).min()) > 1_000_000


@pytest.mark.parametrize("variant", ["latency", "loss"])
@pytest.mark.parametrize("recovery", ["go-back-n", "selective-repeat"])
def test_both_engines_agree_where_packets_are_lost(recovery: str, variant: str) -> None:
    shallow = Switch(buffer_bytes=150_000)
    messages = [Message(source=source, destination=3, size_bytes=600_000, at_ps=source) for source in range(3)]
    transport = Transport(recovery=recovery, lossless_priorities=(), retransmission_timeout_ps=MS_PS, retry_limit=100)
    control = load("congestion_control", "vivace", {"initial_fraction": 0.8}, variant)
    outcome = both(
        packet_input_of(star(4, switch=shallow), sends(4, messages), transport=transport, congestion_control=control)
    )
    assert outcome.counters["drop_egress_threshold"] > 0
    assert (outcome.messages["delivered_at_ps"] > 0).all()
