"""PowerTCP, by round-trip times and by telemetry, against its equations by hand and what they come to on one link."""

from typing import Any

import numpy as np
import pytest
from helpers.both import both
from helpers.long_flows import (
    FRAME_BYTES,
    LINE_BPS,
    MTU_BYTES,
    base_rtt_ps,
    long_flows,
    pipe_bytes,
    queue_port,
    samples,
    watched,
)

from weftwork.base.clock import MS_PS, US_PS
from weftwork.engine.instants import Fault
from weftwork.policies.interface import Kind
from weftwork.policies.load import load

RTT_PS = 8 * US_PS
FULL_BYTES = 100_000.0  # 100 Gb/s for 8 us
BETA_BYTES = 10_000.0  # for ten flows


class Sender:
    """One queue pair; `control` is powertcp or powertcp-int, and its path has one switch."""

    def __init__(self, control: str = "powertcp", **parameters: Any) -> None:
        variant = parameters.pop("variant", "paper")
        self.policy = load("congestion_control", control, parameters, variant)
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.signal.line_rate_bps = LINE_BPS
        self.signal.fabric_base_rtt_ps = RTT_PS
        self.signal.base_rtt_ps = RTT_PS if control == "powertcp" else RTT_PS // 2
        self.signal.mtu_bytes = MTU_BYTES
        self.tell(Kind.START)
        self.signal.hops = 1
        self.signal.hop_rate_bps[0] = LINE_BPS
        self.signal.bytes = MTU_BYTES

    def tell(self, kind: Kind) -> None:
        self.signal.kind = int(kind)
        self.policy.call_step(self.state, self.signal)

    def timed(self, seq: int, next_seq: int, gap_us: int, rtt_us: int) -> None:
        """An ACK so long after the last one, with this round trip."""
        self.signal.seq, self.signal.next_seq = seq, next_seq
        self.signal.now_ps += gap_us * US_PS
        self.signal.rtt_ps = rtt_us * US_PS
        self.tell(Kind.ACK)

    def told(self, seq: int, next_seq: int, gap_us: int, sent_bytes: int, queue_bytes: int) -> None:
        """An ACK with time and bytes of the switch since the last one, and its queue now."""
        self.signal.seq, self.signal.next_seq = seq, next_seq
        self.signal.hop_at_ps[0] += gap_us * US_PS
        self.signal.hop_tx_bytes[0] += sent_bytes
        self.signal.hop_queue_bytes[0] = queue_bytes
        self.tell(Kind.ACK)

    @property
    def window_bytes(self) -> float:
        """Without the packet that may start while there is room."""
        return self.state.window_bytes - MTU_BYTES


@pytest.mark.parametrize("control", ["powertcp", "powertcp-int"])
def test_it_starts_with_all_that_the_line_carries_in_a_round_trip(control: str) -> None:
    sender = Sender(control)
    assert (sender.window_bytes, sender.state.rate_bps) == (FULL_BYTES, LINE_BPS)
    if control == "powertcp-int":
        assert Sender(control, fabric_rtt=False).window_bytes == FULL_BYTES / 2


def test_power_is_slope_and_one_times_the_round_trip_smoothed_over_the_base() -> None:
    sender = Sender()
    sender.timed(1, 50, 10, 12)
    assert (sender.window_bytes, sender.state.power, sender.state.update_seq) == (FULL_BYTES, 1.0, 50)
    sender.timed(2, 51, 2, 13)  # 1 us more in 2 us
    power = 0.75 + 0.25 * (0.5 + 1) * 13 / 8
    assert sender.state.power == pytest.approx(power, rel=1e-12)
    assert sender.window_bytes == FULL_BYTES  # not a round trip since
    sender.timed(51, 90, 2, 13)
    power = 0.75 * power + 0.25 * 13 / 8
    window = 0.9 * (FULL_BYTES / power + BETA_BYTES) + 0.1 * FULL_BYTES
    assert sender.state.power == pytest.approx(power, rel=1e-12)
    assert sender.window_bytes == pytest.approx(window, rel=1e-12)
    assert sender.state.rate_bps == pytest.approx(window * 8e12 / RTT_PS, rel=1e-12)
    assert (sender.state.reference_bytes, sender.state.update_seq) == (sender.window_bytes, 90)


def test_a_falling_round_trip_counts_for_half_a_power_at_least() -> None:
    sender = Sender()
    sender.timed(1, 50, 10, 40)
    sender.timed(51, 90, 8, 16)  # 24 us less in 8 us
    assert sender.state.power == pytest.approx(0.5 * 16 / 8, rel=1e-12)


def test_in_linux_no_power_moves_nothing_and_one_round_trip_gives_one_slope() -> None:
    sender = Sender(variant="linux")
    sender.timed(1, 50, 10, 40)
    sender.timed(20, 60, 4, 60)
    assert (sender.state.power, sender.window_bytes) == (1.0, FULL_BYTES)
    sender.timed(51, 90, 4, 16)  # 24 us less in 8 us
    assert (sender.state.power, sender.window_bytes, sender.state.update_seq) == (0.0, FULL_BYTES, 50)
    sender.timed(52, 90, 8, 16)
    assert sender.state.power == pytest.approx(2.0, rel=1e-12)
    gamma = 921 / 1024
    window = gamma * (FULL_BYTES / 2 + BETA_BYTES) + (1 - gamma) * FULL_BYTES
    assert sender.window_bytes == pytest.approx(window, rel=1e-12)


def test_in_the_authors_simulator_every_ack_moves_the_window_from_its_reference() -> None:
    sender = Sender(variant="ns3-repo")
    sender.timed(1, 50, 10, 12)
    beta = 150e6 * 8e-6 / 8
    power = 1.0
    for seq in (2, 3):
        sender.timed(seq, 51, 2, 12)
        power = 0.75 * power + 0.25 * 12 / (1.05 * 8)
        window = 0.7 * (FULL_BYTES / power + beta) + 0.3 * FULL_BYTES
        assert sender.window_bytes == pytest.approx(window, rel=1e-12)
        assert sender.state.reference_bytes == FULL_BYTES
    sender.timed(51, 90, 2, 12)
    assert sender.state.reference_bytes == sender.window_bytes


@pytest.mark.parametrize(
    ("parameters", "beta_bytes"),
    [({}, 10_000), ({"expected_flows": 50}, 2_000), ({"expected_flows": 0}, 600),
     ({"expected_flows": 0, "scale_rate_bps": 0}, 150)],
)  # fmt: skip
@pytest.mark.parametrize("control", ["powertcp", "powertcp-int"])
def test_beta_is_a_share_of_the_pipe_or_a_rate(control: str, parameters: dict[str, Any], beta_bytes: float) -> None:
    sender = Sender(control, **parameters)
    sender.state.reference_bytes = 20_000.0
    for seq, sent_bytes in ((1, 0), (61, 100_000)):
        if control == "powertcp":
            sender.timed(seq, 60, 8, 8)
        else:
            sender.told(seq, 60, 8, sent_bytes, 0)
    assert sender.state.power == 1.0
    assert sender.window_bytes == pytest.approx(20_000 + 0.9 * beta_bytes, rel=1e-12)


def test_with_telemetry_power_is_what_arrives_times_queue_and_pipe() -> None:
    sender = Sender("powertcp-int")
    sender.told(1, 50, 1, 0, 10_000)
    assert (sender.window_bytes, sender.state.update_seq) == (FULL_BYTES, 50)
    sender.told(2, 51, 2, 10_000, 50_000)  # 50 kB have arrived in 2 us, twice what the link carries
    power = 0.75 + 0.25 * 2.0 * 1.5
    window = 0.9 * (FULL_BYTES / power + BETA_BYTES) + 0.1 * FULL_BYTES
    assert sender.state.power == pytest.approx(power, rel=1e-12)
    assert sender.window_bytes == pytest.approx(window, rel=1e-12)
    assert sender.state.reference_bytes == FULL_BYTES
    sender.told(51, 90, 2, 25_000, 40_000)
    power = 0.75 * power + 0.25 * 0.6 * 1.4
    assert sender.state.power == pytest.approx(power, rel=1e-12)
    assert sender.state.reference_bytes == sender.window_bytes
    before = repr(sender.state)
    sender.told(91, 120, 0, 0, 0)  # nothing newer
    assert repr(sender.state) == before


def test_with_telemetry_the_busiest_hop_counts_and_eta_is_the_power_aimed_at() -> None:
    sender = Sender("powertcp-int", eta=0.8)
    sender.signal.hops = 2
    sender.signal.hop_rate_bps[1] = LINE_BPS // 4
    sender.told(1, 50, 1, 0, 0)
    sender.signal.hop_at_ps[1] += 4 * US_PS
    sender.signal.hop_tx_bytes[1] += 12_500  # all that 25 Gb/s carry in 4 us
    sender.told(2, 51, 2, 20_000, 0)
    assert sender.state.power == pytest.approx(1.0, rel=1e-12)
    assert sender.window_bytes == pytest.approx(0.9 * (0.8 * FULL_BYTES + BETA_BYTES) + 0.1 * FULL_BYTES, rel=1e-12)


def test_with_telemetry_another_path_is_learnt_anew() -> None:
    sender = Sender("powertcp-int")
    sender.told(1, 50, 1, 0, 0)
    sender.signal.hop_port[0] = 9
    sender.told(51, 90, 2, 10**9, 10**6)
    assert (sender.window_bytes, sender.state.power) == (FULL_BYTES, 1.0)


@pytest.mark.parametrize("control", ["powertcp", "powertcp-int"])
def test_the_window_stays_between_its_floor_and_the_line_rate(control: str) -> None:
    crowded, alone = Sender(control, expected_flows=0, beta_rate_bps=1_000_000, scale_rate_bps=0), Sender(control)
    for seq in range(1, 30):
        if control == "powertcp":
            crowded.timed(seq, seq, 8, 8_000)
            alone.timed(seq, seq, 8, 8)
        else:
            crowded.told(seq, seq, 8, 100_000, 10**8)
            alone.told(seq, seq, 8, 100_000, 0)
    assert crowded.state.rate_bps == 100e6
    assert (alone.state.rate_bps, alone.window_bytes) == (LINE_BPS, FULL_BYTES)


@pytest.mark.parametrize(
    ("control", "variant"),
    [("powertcp", "paper"), ("powertcp", "linux"), ("powertcp", "ns3-repo"), ("powertcp-int", "paper"),
     ("powertcp-int", "ns3-repo")],
)  # fmt: skip
def test_both_engines_agree(control: str, variant: str) -> None:
    outcome = both(long_flows(control, [0, 30 * US_PS], 70 * US_PS, variant=variant))
    assert outcome.counters["acks_sent"] > 400


@pytest.mark.parametrize(
    ("control", "variant", "flows"),
    [("powertcp", "paper", 2), ("powertcp", "paper", 8), ("powertcp", "linux", 4), ("powertcp", "paper", 16),
     ("powertcp-int", "paper", 4), ("powertcp-int", "paper", 8)],
)  # fmt: skip
def test_in_balance_the_windows_are_the_pipe_and_all_betas(control: str, variant: str, flows: int) -> None:
    """Power is 1 + queue / pipe, and w = w / power + beta for each: the queue is the sum of the betas.

    A packet of each flow at most is above its window, and half of it on average.
    """
    engine_input = long_flows(control, [0] * flows, 3 * MS_PS, variant=variant)
    outcome = watched(engine_input, US_PS)
    pipe = pipe_bytes(engine_input)
    queue = samples(outcome, "queue_bytes", queue_port(engine_input))[1_500:]
    windows = sum(samples(outcome, "window_bytes", flow)[1_500:].mean() - MTU_BYTES for flow in range(flows))
    payload_share = MTU_BYTES / FRAME_BYTES
    assert 0 < queue.mean() - flows * pipe / 10 < flows * FRAME_BYTES
    assert windows == pytest.approx(payload_share * pipe * (1 + flows / 10), abs=flows * MTU_BYTES)


def test_two_flows_become_alike_within_tens_of_round_trips() -> None:
    """Differences shrink by gamma / power + 1 - gamma: with eight betas of a tenth of the pipe by half a trip."""
    engine_input = long_flows("powertcp", [0] * 7 + [400 * US_PS], 2 * MS_PS)
    outcome = watched(engine_input, 10 * US_PS, "reference_bytes")
    ends = [samples(outcome, 0, flow)[-50:].mean() for flow in range(8)]
    assert sum(ends) ** 2 / (8 * sum(end**2 for end in ends)) > 0.99
    late = samples(outcome, 0, 7)
    assert late[0] == pytest.approx(pipe_bytes(engine_input), rel=0.01)
    assert late[25] < 1.5 * ends[0]  # 250 us, some 30 round trips with the queue


def test_it_follows_a_step_of_the_bandwidth_within_some_round_trips() -> None:
    """The receiver's link falls to a quarter and comes back: each time pipe and betas are all that is in flight."""
    slow = Fault(at_ps=MS_PS, event="degrade", link=2, rate_bps=LINE_BPS // 4)
    fast = Fault(at_ps=2 * MS_PS, event="degrade", link=2, rate_bps=LINE_BPS)
    engine_input = long_flows("powertcp", [0, 0], 3 * MS_PS, faults=(slow, fast))
    outcome = watched(engine_input, US_PS, "reference_bytes")
    pipe = pipe_bytes(engine_input)
    queue = samples(outcome, "queue_bytes", queue_port(engine_input)) / pipe
    windows = np.sum([samples(outcome, 0, flow) for flow in range(2)], axis=0) / pipe
    payload_share = MTU_BYTES / FRAME_BYTES
    settled_us = int(25 * base_rtt_ps(engine_input) / US_PS)
    for since_us, until_us, part in ((0, 1_000, 1.0), (1_000, 2_000, 0.25), (2_000, 3_000, 1.0)):
        for values, wanted in ((queue, 0.2), (windows, payload_share * (part + 0.2))):
            assert np.abs(values[since_us + settled_us : until_us] - wanted).max() < 0.06
