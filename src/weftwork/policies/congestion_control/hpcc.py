"""HPCC: the sender sets window and rate from telemetry of switches (INT).

Every switch of the path writes into packets.
Source: Li et al., SIGCOMM 2019, doi:10.1145/3341302.3342085, algorithm 1; the defaults are those of the authors' own
simulations, github.com/alibaba-edu/High-Precision-Congestion-Control (HPCC-ns3), scaled to the line rate.
Leaves out: what a packed header loses (units of 80 and 128 bytes, clocks that wrap after 16.8 ms); one reference for
each hop and reactions to queues alone, which HPCC-ns3 has (MULTI_RATE, SAMPLE_FEEDBACK) and its authors' runs switch
off; any reaction to a loss, which the paper leaves to flow control.

A path is known by its ports. On another path the sender forgets what it knew, as with the paper's path id: where every
packet takes a path of its own, two ACKs in a row seldom tell of the same ports and the window stays. An ACK that tells
nothing newer of the first switch (a duplicate, or one overtaken) is passed over.
"""

from __future__ import annotations

from weftwork.policies.interface import HOPS, CongestionControl, Kind, Signal, row
from weftwork.policies.parts.int_memory import (
    PS_PER_BYTE_SECOND,
    HopState,
    knows_path,
    remember,
    round_bytes,
    round_ps,
)

__all__ = ["PLUGIN", "Params", "State", "step"]

LEAST_LOAD = 1e-9  # chosen: keeps the quotient finite; the line rate bounds the window long before


class Params:
    """Parameters of HPCC.

    The additive increase is given in one of three ways: for so many flows, in bytes, or as a rate.
    """

    eta: float = row(
        default=0.95,
        minimum=0.1,
        maximum=1,
        source="SIGCOMM 2019, as the authors state it with their results (hpcc-group.github.io); HPCC-ns3, run.py",
        text="Load of the busiest link that the sender aims at.",
    )
    stages: int = row(
        default=0,
        minimum=0,
        source="0: HPCC-ns3, run.py, and the paper's simulations; 5: its text, a typo say its authors (hpcc-group)",
        text="Additive steps in a row, one per round trip, before the window follows a load below eta too.",
    )
    expected_flows: int = row(
        default=0,
        minimum=0,
        source="SIGCOMM 2019, section 3.3 (N), unverified: increase = line rate x T x (1 - eta) / N",
        text="Flows for which the load rises to 1 in balance; sets the additive increase. 0: the next two do.",
    )
    increase_bytes: int = row(
        default=0,
        minimum=0,
        source="0: HPCC-ns3 gives a rate; 80 B: SIGCOMM 2019, section 5.1 (W_AI), unverified",
        text="Additive increase of the window; 0: ai_rate_bps x T.",
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
        source="HPCC-ns3, run.py (MIN_RATE 1000Mb/s), at every line rate; rdma-hw.cc: 100 Mb/s; the paper has none",
        text="The rate never falls below this; it limits an incast to line rate / this many senders.",
    )
    reacts_to_every_ack: bool = row(
        default=True,
        source="SIGCOMM 2019, algorithm 1; HPCC-ns3, FAST_REACT 1",
        text="Every ACK moves the window from its reference; if false, once in a round trip.",
    )
    fabric_rtt: bool = row(
        default=True,
        source="HPCC-ns3, run.py (GLOBAL_T 1); SIGCOMM 2019, section 3.2: one T for the network, unverified",
        text="T is the longest base RTT of the fabric; if false, that of the flow's own path.",
    )


class State(HopState):
    """One sending queue pair: telemetry of the last ACK, load, reference window.

    The telemetry is that of each hop.
    """

    load: float = 1.0  # U: of the busiest hop, smoothed over T
    reference_bytes: float  # W_c
    stage: int  # incStage
    update_seq: int  # lastUpdateSeq: the reference moves with the first ACK of a packet sent after it last did


def step(params: Params, state: State, signal: Signal) -> None:
    """Sending NIC: start with line rate x T, then follow the ACKs."""
    if signal.kind == Kind.START:
        state.reference_bytes = round_bytes(params, signal)
        obey(params, state, signal, state.reference_bytes)
    elif signal.kind == Kind.ACK and 0 < signal.hops <= HOPS:
        is_due = signal.seq > state.update_seq
        if not knows_path(state, signal):
            remember(state, signal)
            if state.update_seq == 0:
                state.update_seq = signal.next_seq
        elif signal.hop_at_ps[0] > state.last_at_ps[0] and (is_due or params.reacts_to_every_ack):
            measure(params, state, signal)
            remember(state, signal)
            react(params, state, signal)


def measure(params: Params, state: State, signal: Signal) -> None:
    """MeasureInflight: smoothed load of the busiest hop.

    The smoothing is by the part of T that the load was measured over.
    """
    round_trip_ps = round_ps(params, signal)
    highest = 0.0
    over_ps = 0
    for i in range(signal.hops):
        gap_ps = signal.hop_at_ps[i] - state.last_at_ps[i]
        if gap_ps > 0:
            rate_bps = float(signal.hop_rate_bps[i])
            queue_bytes = float(min(signal.hop_queue_bytes[i], state.last_queue_bytes[i]))
            sent_bytes = float(signal.hop_tx_bytes[i] - state.last_tx_bytes[i])
            load = (queue_bytes / round_trip_ps + sent_bytes / gap_ps) * PS_PER_BYTE_SECOND / rate_bps
            if load > highest:
                highest = load
                over_ps = gap_ps
    share = min(float(over_ps) / round_trip_ps, 1.0)
    state.load = (1.0 - share) * state.load + share * highest


def react(params: Params, state: State, signal: Signal) -> None:
    """ComputeWind: move the window from its reference.

    The reference follows once in a round trip.
    """
    ratio = state.load / params.eta
    if ratio >= 1.0 or state.stage >= params.stages:
        window_bytes = state.reference_bytes / max(ratio, LEAST_LOAD) + increase_bytes(params, signal)
        stage = 0
    else:
        window_bytes = state.reference_bytes + increase_bytes(params, signal)
        stage = state.stage + 1
    least_bps = min(float(params.min_rate_bps), float(signal.line_rate_bps))
    least_bytes = least_bps * round_ps(params, signal) / PS_PER_BYTE_SECOND
    window_bytes = min(max(window_bytes, least_bytes), round_bytes(params, signal))
    if signal.seq > state.update_seq:
        state.reference_bytes = window_bytes
        state.stage = stage
        state.update_seq = max(signal.next_seq, state.update_seq)
    obey(params, state, signal, window_bytes)


def increase_bytes(params: Params, signal: Signal) -> float:
    """W_ai, the growth of a window in T at any load."""
    if params.expected_flows > 0:
        return round_bytes(params, signal) * (1.0 - params.eta) / params.expected_flows
    if params.increase_bytes > 0:
        return float(params.increase_bytes)
    scale = float(signal.line_rate_bps) / params.scale_rate_bps if params.scale_rate_bps > 0 else 1.0
    return scale * params.ai_rate_bps * round_ps(params, signal) / PS_PER_BYTE_SECOND


def obey(params: Params, state: State, signal: Signal, window_bytes: float) -> None:
    """Pace the window over T.

    A packet may start while less than the window is in flight (HPCC-ns3, IsWinBound).
    """
    state.window_bytes = window_bytes + signal.mtu_bytes
    rate_bps = window_bytes * PS_PER_BYTE_SECOND / round_ps(params, signal)
    state.rate_bps = min(rate_bps, float(signal.line_rate_bps))


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK}),
    moves_departures=True,  # HPCC-ns3, rdma-hw.cc, ChangeRate
    needs=frozenset({"telemetry"}),
    source="Li et al., SIGCOMM 2019, doi:10.1145/3341302.3342085",
    variants={
        # The defaults above: `hp` of HPCC-ns3, simulation/run.py.
        "hpcc-repo": {},
        # What the authors take since (hpcc-group.github.io, results, settings).
        "hpcc-group": {"eta": 0.99},
        # The text of the paper: additive steps below eta, and W_AI for its network at 100 Gb/s with a T of 13 us.
        "paper": {"stages": 5, "increase_bytes": 80, "min_rate_bps": 1000},
    },
)
