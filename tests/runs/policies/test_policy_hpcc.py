"""HPCC against its equations, worked out by hand, and against what they come to on one link."""

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
from weftwork.policies.interface import Kind
from weftwork.policies.load import load

T_PS = 8 * US_PS
FULL_BYTES = 100_000.0  # 100 Gb/s for 8 us
INCREASE_BYTES = 40.0  # 10 Mb/s x 100 / 25 for 8 us
OWN_RTT_PS = 4 * US_PS


class Sender:
    """One queue pair behind one or more switches."""

    def __init__(self, hops: int = 1, **parameters: Any) -> None:
        variant = parameters.pop("variant", None)
        self.policy = load("congestion_control", "hpcc", parameters, variant)
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.signal.line_rate_bps = LINE_BPS
        self.signal.fabric_base_rtt_ps = T_PS
        self.signal.base_rtt_ps = OWN_RTT_PS
        self.signal.mtu_bytes = MTU_BYTES
        self.signal.hops = hops
        for hop in range(hops):
            self.signal.hop_rate_bps[hop] = LINE_BPS
            self.signal.hop_port[hop] = 7 + hop
        self.tell(Kind.START)

    def tell(self, kind: Kind) -> None:
        self.signal.kind = int(kind)
        self.policy.call_step(self.state, self.signal)

    def ack(self, seq: int, next_seq: int, *hops: tuple[int, int, int]) -> None:
        """An ACK; of each hop microseconds and bytes sent since the last one, and the queue now."""
        self.signal.seq, self.signal.next_seq = seq, next_seq
        for hop, (gap_us, sent_bytes, queue_bytes) in enumerate(hops):
            self.signal.hop_at_ps[hop] += gap_us * US_PS
            self.signal.hop_tx_bytes[hop] += sent_bytes
            self.signal.hop_queue_bytes[hop] = queue_bytes
        self.tell(Kind.ACK)

    @property
    def window_bytes(self) -> float:
        """Without the packet that may start while there is room."""
        return self.state.window_bytes - MTU_BYTES


def test_it_starts_with_all_that_the_line_carries_in_the_longest_round_trip() -> None:
    sender = Sender()
    assert (sender.window_bytes, sender.state.rate_bps) == (FULL_BYTES, LINE_BPS)
    own = Sender(fabric_rtt=False)
    assert (own.window_bytes, own.state.rate_bps) == (FULL_BYTES / 2, LINE_BPS)


def test_the_first_ack_is_only_remembered() -> None:
    sender = Sender()
    sender.ack(1, 50, (3, 25_000, 20_000))
    assert (sender.window_bytes, sender.state.load, sender.state.update_seq) == (FULL_BYTES, 1.0, 50)


def test_an_ack_moves_the_window_and_the_first_of_a_round_trip_the_reference() -> None:
    sender = Sender()
    sender.ack(1, 50, (1, 0, 30_000))
    sender.ack(2, 51, (2, 25_000, 20_000))  # the link is full, and 0.2 of a round trip waits: the smaller of the queues
    load_now = 0.75 * 1.0 + 0.25 * 1.2
    window = FULL_BYTES / (load_now / 0.95) + INCREASE_BYTES
    assert sender.state.load == pytest.approx(load_now, rel=1e-12)
    assert sender.window_bytes == pytest.approx(window, rel=1e-12)
    assert sender.state.rate_bps == pytest.approx(window * 8e12 / T_PS, rel=1e-12)
    assert (sender.state.reference_bytes, sender.state.update_seq) == (FULL_BYTES, 50)
    sender.ack(51, 90, (2, 25_000, 20_000))
    load_now = 0.75 * load_now + 0.25 * 1.2
    assert sender.state.reference_bytes == sender.window_bytes
    assert sender.window_bytes == pytest.approx(FULL_BYTES * 0.95 / load_now + INCREASE_BYTES, rel=1e-12)
    assert sender.state.update_seq == 90


def test_the_busiest_hop_counts_over_the_time_of_its_own_clock() -> None:
    sender = Sender(hops=3)
    sender.signal.hop_rate_bps[2] = 2 * LINE_BPS
    sender.ack(1, 50, (1, 0, 0), (1, 0, 9_000), (1, 0, 0))
    # 0.5; 0.5 and a queue of 0.05; a full link of 400 Gb/s would be 1, but this one carried half of 200 Gb/s.
    sender.ack(2, 51, (4, 25_000, 90_000), (2, 12_500, 5_000), (4, 50_000, 0))
    assert sender.state.load == pytest.approx(0.75 + 0.25 * 0.55, rel=1e-12)


def test_more_than_a_round_trip_without_an_ack_counts_as_one() -> None:
    sender = Sender()
    sender.ack(1, 50, (1, 0, 0))
    sender.ack(2, 51, (80, 500_000, 0))
    assert sender.state.load == pytest.approx(0.5, rel=1e-12)


def test_below_eta_the_window_follows_the_load_at_once_or_after_so_many_steps() -> None:
    quick, paper = Sender(), Sender(variant="paper")
    for sender in (quick, paper):
        sender.state.reference_bytes = 10_000.0
        sender.ack(1, 50, (1, 0, 0))
    seq = 50
    for step in range(5):
        seq += 1
        paper.ack(seq, seq, (8, 50_000, 0))  # half of the link for a whole round trip
        assert paper.window_bytes == 10_000 + 80 * (step + 1)
        assert paper.state.stage == step + 1
    paper.ack(seq + 1, seq + 1, (8, 50_000, 0))
    assert paper.window_bytes == pytest.approx(10_400 / (0.5 / 0.95) + 80, rel=1e-12)
    assert paper.state.stage == 0
    quick.ack(51, 51, (8, 50_000, 0))
    assert quick.window_bytes == pytest.approx(10_000 / (0.5 / 0.95) + INCREASE_BYTES, rel=1e-12)


def test_a_load_above_eta_ends_the_additive_steps() -> None:
    sender = Sender(variant="paper")
    sender.ack(1, 50, (1, 0, 0))
    sender.ack(51, 51, (8, 50_000, 0))
    assert sender.state.stage == 1
    sender.ack(52, 52, (8, 100_000, 0))
    assert sender.state.stage == 0
    assert sender.window_bytes == pytest.approx(FULL_BYTES * 0.95 + 80, rel=1e-12)


def test_steps_between_two_round_trips_do_not_count() -> None:
    sender = Sender(variant="paper")
    sender.state.reference_bytes = 10_000.0
    sender.ack(1, 50, (1, 0, 0))
    for seq in range(2, 20):
        sender.ack(seq, 60, (1, 2_000, 0))
    assert sender.state.stage == 0
    assert sender.state.load < 0.95
    assert sender.window_bytes == 10_080


def test_the_window_stays_between_its_floor_and_the_line_rate() -> None:
    sender = Sender()
    sender.ack(1, 1, (1, 0, 0))
    for seq in range(2, 40):
        sender.ack(seq, seq, (8, 100_000, 10_000_000))
    assert sender.state.rate_bps == 1e9
    assert sender.window_bytes == FULL_BYTES / 100
    for seq in range(40, 80):
        sender.ack(seq, seq, (8, 1_000, 0))
    assert sender.state.rate_bps == LINE_BPS
    assert sender.window_bytes == FULL_BYTES


@pytest.mark.parametrize(
    ("parameters", "bytes_per_round"),
    [
        ({}, 40), ({"scale_rate_bps": 0}, 10), ({"ai_rate_bps": "50Mbps", "scale_rate_bps": 0}, 50),
        ({"increase_bytes": 80}, 80), ({"expected_flows": 10}, 500), ({"expected_flows": 10, "eta": 0.99}, 100),
        ({"fabric_rtt": False}, 20),
    ],
)  # fmt: skip
def test_the_increase_is_a_rate_or_bytes_or_for_so_many_flows(
    parameters: dict[str, Any], bytes_per_round: float
) -> None:
    sender = Sender(stages=5, **parameters)
    sender.state.reference_bytes = 10_000.0
    sender.state.load = 0.1
    sender.ack(1, 50, (1, 0, 0))
    sender.ack(51, 51, (1, 100, 0))
    assert sender.window_bytes == pytest.approx(10_000 + bytes_per_round, rel=1e-12)


def test_without_fast_reaction_only_the_first_ack_of_a_round_trip_counts() -> None:
    sender = Sender(reacts_to_every_ack=False)
    sender.ack(1, 50, (1, 0, 0))
    sender.ack(30, 80, (2, 25_000, 90_000))
    assert (sender.window_bytes, sender.state.load) == (FULL_BYTES, 1.0)
    sender.ack(51, 90, (2, 25_000, 0))
    assert sender.state.load == pytest.approx(0.5 + 0.5 * 1.0, rel=1e-12)  # 50 kB in 4 us since the ACK that counted
    assert sender.window_bytes == pytest.approx(FULL_BYTES * 0.95 + INCREASE_BYTES, rel=1e-12)


def test_another_path_is_learnt_anew() -> None:
    sender = Sender()
    sender.ack(1, 50, (1, 0, 0))
    sender.signal.hop_port[0] = 9
    sender.ack(51, 90, (2, 10**9, 10**6))
    assert (sender.window_bytes, sender.state.load) == (FULL_BYTES, 1.0)
    sender.ack(52, 91, (2, 12_500, 0))
    assert sender.state.load == pytest.approx(0.75 + 0.25 * 0.5, rel=1e-12)
    sender.signal.hops = 2
    before = sender.state.load
    sender.ack(53, 92, (2, 12_500, 0), (2, 0, 0))
    assert sender.state.load == before


def test_old_news_and_acks_without_telemetry_move_nothing() -> None:
    sender = Sender()
    sender.ack(1, 50, (1, 0, 0))
    sender.ack(51, 90, (2, 25_000, 20_000))
    before = repr(sender.state)
    sender.ack(91, 120, (0, 0, 0))
    sender.ack(91, 120, (-1, 0, 0))
    sender.signal.hops = 0
    sender.ack(91, 120)
    assert repr(sender.state) == before


@pytest.mark.parametrize("variant", ["hpcc-repo", "hpcc-group", "paper"])
def test_both_engines_agree(variant: str) -> None:
    outcome = both(long_flows("hpcc", [0, 30 * US_PS], 90 * US_PS, variant=variant))
    assert outcome.counters["acks_sent"] > 500


@pytest.mark.parametrize("eta", [0.9, 0.95])
def test_one_flow_holds_the_link_at_eta_and_an_empty_queue(eta: float) -> None:
    plans = [long_flows("hpcc", [0], until_ps, eta=eta) for until_ps in (MS_PS, 2 * MS_PS)]
    port = queue_port(plans[0])
    first, second = (watched(engine_input, US_PS) for engine_input in plans)
    sent_bytes = int(second.ports["bytes"][port] - first.ports["bytes"][port])
    assert sent_bytes * 8e12 / MS_PS / LINE_BPS == pytest.approx(eta, abs=0.003)
    assert samples(second, "queue_bytes", port)[200:].max() <= FRAME_BYTES


@pytest.mark.parametrize(("flows", "expected"), [(2, 2), (4, 8), (8, 8), (8, 16)])
def test_in_balance_the_load_is_eta_and_the_increase_of_all_flows(flows: int, expected: int) -> None:
    """W = W eta / U + W_ai, summed over flows that fill U of the pipe: U = eta + n W_ai / pipe."""
    engine_input = long_flows("hpcc", [0] * flows, 2 * MS_PS, expected_flows=expected)
    outcome = watched(engine_input, US_PS, "load")
    loads = np.concatenate([samples(outcome, 0, flow)[1_000:] for flow in range(flows)])
    assert loads.mean() == pytest.approx(0.95 + flows * 0.05 / expected, abs=0.005)
    queue = samples(outcome, "queue_bytes", queue_port(engine_input))[1_000:]
    assert queue.mean() < 0.1 * pipe_bytes(engine_input)


def late_flow(expected_flows: int) -> list[float]:
    """By how much the reference of an eighth flow, at line rate at first, exceeds the others', by round trips."""
    engine_input = long_flows("hpcc", [0] * 7 + [400 * US_PS], MS_PS, expected_flows=expected_flows)
    outcome = watched(engine_input, base_rtt_ps(engine_input), "reference_bytes")
    late = samples(outcome, 0, 7)
    others = np.mean([samples(outcome, 0, flow)[-len(late) :] for flow in range(7)], axis=0)
    excess: list[float] = ((late - others) / pipe_bytes(engine_input)).tolist()
    return excess


def test_flows_become_alike_at_the_pace_that_the_increase_gives() -> None:
    """Their difference shrinks by eta / U in each round trip, which a queue makes a little longer than T."""
    quick, slow = late_flow(8), late_flow(32)
    assert quick[10] > 0.15
    pace = (quick[40] / quick[10]) ** (1 / 30)
    assert 0.95 <= pace <= 0.97
    assert quick[100] < 0.02
    assert (slow[40] / slow[10]) ** (1 / 30) > 0.987
    assert slow[100] > 0.15


@pytest.mark.parametrize("flows", [4, 16])
def test_the_queue_of_an_incast_is_gone_some_round_trips_after_the_link_could_have_sent_it(flows: int) -> None:
    engine_input = long_flows("hpcc", [0] * flows, MS_PS // 2)
    port = queue_port(engine_input)
    queue = samples(watched(engine_input, US_PS), "queue_bytes", port)
    peak = queue.max()
    assert peak > (flows - 1) * 0.9 * pipe_bytes(engine_input)  # what windows of line rate x T leave
    round_us = base_rtt_ps(engine_input) / US_PS
    gone_us = float(np.argmax((np.arange(len(queue)) > queue.argmax()) & (queue <= flows * FRAME_BYTES)))
    assert gone_us - peak * 8e6 / LINE_BPS < 10 * round_us
    assert queue[int(gone_us) + 50 :].max() <= flows * FRAME_BYTES
