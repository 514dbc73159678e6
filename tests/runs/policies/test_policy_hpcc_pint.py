"""HPCC-PINT against its equations, worked out by hand, and against what they come to on one link."""

from typing import Any

import numpy as np
import pytest
from helpers.both import both
from helpers.long_flows import FRAME_BYTES, LINE_BPS, MTU_BYTES, long_flows, pipe_bytes, queue_port, samples, watched
from helpers.tiny import Message, sends, wired

from weftwork.base.clock import MS_PS, US_PS
from weftwork.engine.lower import lower
from weftwork.engine.settings import EngineSettings
from weftwork.policies.interface import Kind
from weftwork.policies.load import load
from weftwork.spec.device import Switch
from weftwork.spec.transport import Transport

T_PS = 8 * US_PS
FULL_BYTES = 100_000.0  # 100 Gb/s for 8 us
INCREASE_BYTES = 40.0  # 10 Mb/s x 100 / 25 for 8 us


class Sender:
    """One queue pair."""

    def __init__(self, **parameters: Any) -> None:
        self.policy = load("congestion_control", "hpcc-pint", parameters)
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.signal.line_rate_bps = LINE_BPS
        self.signal.fabric_base_rtt_ps = T_PS
        self.signal.base_rtt_ps = T_PS // 2
        self.signal.mtu_bytes = self.signal.bytes = MTU_BYTES
        self.tell(Kind.START)

    def tell(self, kind: Kind) -> None:
        self.signal.kind = int(kind)
        self.policy.call_step(self.state, self.signal)

    def ack(self, seq: int, next_seq: int, path_load: float) -> None:
        self.signal.seq, self.signal.next_seq, self.signal.path_load = seq, next_seq, path_load
        self.tell(Kind.ACK)

    @property
    def window_bytes(self) -> float:
        """Without the packet that may start while there is room."""
        return self.state.window_bytes - MTU_BYTES


def test_it_starts_with_all_that_the_line_carries_and_the_first_ack_only_begins_a_round_trip() -> None:
    sender = Sender()
    assert (sender.window_bytes, sender.state.rate_bps) == (FULL_BYTES, LINE_BPS)
    sender.ack(1, 50, 4.0)
    assert (sender.window_bytes, sender.state.update_seq) == (FULL_BYTES, 50)


def test_every_ack_moves_the_window_and_the_first_of_a_round_trip_the_reference() -> None:
    sender = Sender()
    sender.ack(1, 50, 1.0)
    sender.ack(2, 51, 1.9)
    assert sender.window_bytes == pytest.approx(FULL_BYTES / 2 + INCREASE_BYTES, rel=1e-12)
    assert sender.state.rate_bps == pytest.approx(sender.window_bytes * 8e12 / T_PS, rel=1e-12)
    assert sender.state.reference_bytes == FULL_BYTES
    sender.ack(51, 90, 1.9)
    assert sender.state.reference_bytes == sender.window_bytes
    sender.ack(52, 91, 0.475)  # below eta it follows at once
    assert sender.window_bytes == FULL_BYTES
    assert sender.state.update_seq == 90


def test_additive_steps_come_first_where_there_are_some() -> None:
    sender = Sender(stages=2, expected_flows=10)
    sender.state.reference_bytes = 10_000.0
    windows = []
    for seq in range(1, 5):
        sender.ack(seq, seq, 0.475)
        windows.append(sender.window_bytes)
    assert windows[1:] == pytest.approx([10_500, 11_000, 22_500], rel=1e-12)


def test_the_window_stays_above_its_floor_and_an_ack_without_a_load_moves_nothing() -> None:
    sender = Sender()
    for seq in range(1, 20):
        sender.ack(seq, seq, 100.0)
    assert sender.state.rate_bps == 1e9
    before = repr(sender.state)
    sender.ack(30, 30, 0.0)
    sender.signal.bytes = 0
    sender.ack(30, 30, 100.0)
    assert repr(sender.state) == before


@pytest.mark.parametrize("variant", ["hpcc-repo", "hpcc-group"])
def test_both_engines_agree(variant: str) -> None:
    outcome = both(long_flows("hpcc-pint", [0, 30 * US_PS], 90 * US_PS, variant=variant))
    assert outcome.counters["acks_sent"] > 500


@pytest.mark.parametrize("flows", [1, 4])
def test_the_link_is_loaded_to_eta_and_the_queue_is_short(flows: int) -> None:
    """A code is up to a twentieth above or below the load, and right on average."""
    plans = [long_flows("hpcc-pint", [0] * flows, until_ps) for until_ps in (MS_PS, 2 * MS_PS)]
    port = queue_port(plans[0])
    first, second = (watched(engine_input, US_PS) for engine_input in plans)
    sent_bytes = int(second.ports["bytes"][port] - first.ports["bytes"][port])
    assert sent_bytes * 8e12 / MS_PS / LINE_BPS == pytest.approx(0.95, abs=0.02)
    queue = samples(second, "queue_bytes", port)[1_000:]
    assert queue.mean() < flows * FRAME_BYTES


def test_frames_are_one_byte_longer_instead_of_ten() -> None:
    transports = [long_flows(control, [0], US_PS).transport for control in ("none", "hpcc-pint", "hpcc")]
    there = [transport.data_overhead_bytes + transport.telemetry_bytes for transport in transports]
    assert [size - there[0] for size in there] == [0, 1, 2]
    assert [transport.telemetry_hop_bytes for transport in transports] == [0, 0, 8]
    assert [transport.echo_bytes for transport in transports] == [0, 1, 0]


def test_the_queue_of_an_incast_drains() -> None:
    engine_input = long_flows("hpcc-pint", [0] * 16, MS_PS)
    queue = samples(watched(engine_input, US_PS), "queue_bytes", queue_port(engine_input))
    assert queue.max() > 14 * pipe_bytes(engine_input)
    assert np.median(queue[300:]) <= 16 * FRAME_BYTES


def test_the_busiest_port_counts_wherever_it_is_on_the_path() -> None:
    """Two flows meet between the switches; to each receiver goes one."""
    fabric = wired(
        [(0, 4), (1, 4), (2, 5), (3, 5), (4, 5)],
        hosts=4,
        switch=Switch(telemetry=True, forwarding_latency_ps=0),
        rates_bps=[LINE_BPS] * 5,
        delays_ps=[US_PS] * 5,
    )
    messages = [Message(source=flow, destination=2 + flow, size_bytes=10**9) for flow in range(2)]
    engine_input = lower(
        fabric=fabric,
        job=sends(4, messages),
        transport=Transport(mtu_bytes=MTU_BYTES),
        congestion_control=load("congestion_control", "hpcc-pint"),
        settings=EngineSettings(port_selection=load("port_selection", "ecmp"), until_ps=80 * US_PS),
    )
    outcome = both(engine_input)
    node_of = engine_input.port_node
    (between,) = np.flatnonzero((node_of == 4) & (node_of[engine_input.port_peer] == 5))
    sent_bytes = int(outcome.ports["bytes"][between])
    assert sent_bytes * 8e12 / (80 * US_PS) / LINE_BPS == pytest.approx(0.92, abs=0.04)
    assert outcome.ports["pauses_sent"].sum() == 0
