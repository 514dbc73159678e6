"""HPCC-PINT: HPCC with one byte for the load of the busiest switch.

The byte replaces telemetry; the load is smoothed.
Source: Ben Basat et al., PINT, SIGCOMM 2020, doi:10.1145/3387514.3405894, and HPCC, SIGCOMM 2019,
doi:10.1145/3341302.3342085; github.com/alibaba-edu/High-Precision-Congestion-Control (HPCC-ns3), rdma-hw.cc,
UpdateRateHpPint, whose authors run it as `hpccPint`. How switches measure: docs/models/packet-engine.md, Path load.
Leaves out: reactions to a part of the ACKs (PINT_PROB, 1 in the authors' runs); any reaction to a loss.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, row

__all__ = ["PLUGIN", "Params", "State", "step"]

PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second


class Params:
    """The parameters of `hpcc`."""

    eta: float = row(
        default=0.95,
        minimum=0.1,
        maximum=1,
        source="HPCC-ns3, run.py (utgt 95); 0.99: hpcc-group.github.io, settings",
        text="Load of the busiest link that the sender aims at.",
    )
    stages: int = row(
        default=0,
        minimum=0,
        source="HPCC-ns3, run.py (mi 0)",
        text="Additive steps in a row, one per round trip, before the window follows a load below eta too.",
    )
    expected_flows: int = row(
        default=0,
        minimum=0,
        source="SIGCOMM 2019, section 3.3 (N), unverified: increase = line rate x T x (1 - eta) / N",
        text="Flows for which the load rises to 1 in balance; sets the additive increase. 0: ai_rate_bps does.",
    )
    ai_rate_bps: int = row(
        default="10Mbps",
        minimum=0,
        source="HPCC-ns3, run.py: 10 Mb/s x C / 25G",
        text="Additive increase of the rate in a round trip.",
    )
    scale_rate_bps: int = row(
        default="25Gbps",
        minimum=0,
        source="HPCC-ns3, run.py: the increase x line rate / 25 Gb/s",
        text="Line rate at which ai_rate_bps is meant; at other rates it scales. 0: it does not.",
    )
    min_rate_bps: int = row(
        default="1Gbps",
        minimum=1000,
        source="HPCC-ns3, run.py (MIN_RATE 1000Mb/s), at every line rate; rdma-hw.cc: 100 Mb/s",
        text="The rate never falls below this; it limits an incast to line rate / this many senders.",
    )


class State(SenderState):
    """One sending queue pair."""

    reference_bytes: float  # W_c
    stage: int  # incStage
    update_seq: int  # lastUpdateSeq: the reference moves with the first ACK of a packet sent after it last did


def step(params: Params, state: State, signal: Signal) -> None:
    """Sending NIC: start with line rate x T, then follow the ACKs.

    The first ACK only begins a round trip.
    """
    if signal.kind == Kind.START:
        state.reference_bytes = full_bytes(signal)
        obey(state, signal, state.reference_bytes)
    elif signal.kind == Kind.ACK and signal.bytes > 0 and signal.path_load > 0.0:
        if state.update_seq == 0:
            state.update_seq = signal.next_seq
        else:
            react(params, state, signal)


def rtt_ps(signal: Signal) -> float:
    """T, the longest base RTT of the fabric.

    Switches smooth over T too.
    """
    return float(max(signal.fabric_base_rtt_ps, signal.base_rtt_ps, 1))


def full_bytes(signal: Signal) -> float:
    """W_init: bytes on the line in T."""
    return float(signal.line_rate_bps) * rtt_ps(signal) / PS_PER_BYTE_SECOND


def react(params: Params, state: State, signal: Signal) -> None:
    """ComputeWind of HPCC, with the load carried by the packet."""
    ratio = signal.path_load / params.eta
    if ratio >= 1.0 or state.stage >= params.stages:
        window_bytes = state.reference_bytes / ratio + increase_bytes(params, signal)
        stage = 0
    else:
        window_bytes = state.reference_bytes + increase_bytes(params, signal)
        stage = state.stage + 1
    least_bps = min(float(params.min_rate_bps), float(signal.line_rate_bps))
    least_bytes = least_bps * rtt_ps(signal) / PS_PER_BYTE_SECOND
    window_bytes = min(max(window_bytes, least_bytes), full_bytes(signal))
    if signal.seq > state.update_seq:
        state.reference_bytes = window_bytes
        state.stage = stage
        state.update_seq = max(signal.next_seq, state.update_seq)
    obey(state, signal, window_bytes)


def increase_bytes(params: Params, signal: Signal) -> float:
    """W_ai, the growth of a window in T at any load."""
    if params.expected_flows > 0:
        return full_bytes(signal) * (1.0 - params.eta) / params.expected_flows
    scale = float(signal.line_rate_bps) / params.scale_rate_bps if params.scale_rate_bps > 0 else 1.0
    return scale * params.ai_rate_bps * rtt_ps(signal) / PS_PER_BYTE_SECOND


def obey(state: State, signal: Signal, window_bytes: float) -> None:
    """Pace the window over T.

    A packet may start while less than the window is in flight (HPCC-ns3, IsWinBound).
    """
    state.window_bytes = window_bytes + signal.mtu_bytes
    rate_bps = window_bytes * PS_PER_BYTE_SECOND / rtt_ps(signal)
    state.rate_bps = min(rate_bps, float(signal.line_rate_bps))


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK}),
    moves_departures=True,  # HPCC-ns3, rdma-hw.cc, ChangeRate
    needs=frozenset({"path-load"}),
    source="Ben Basat et al., SIGCOMM 2020, doi:10.1145/3387514.3405894",
    variants={
        # The defaults above: `hpccPint` of HPCC-ns3, simulation/run.py.
        "hpcc-repo": {},
        # What the authors take since (hpcc-group.github.io, results, settings).
        "hpcc-group": {"eta": 0.99},
    },
)
