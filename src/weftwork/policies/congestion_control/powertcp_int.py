"""PowerTCP: the window follows the power of the busiest switch (INT).

Power is arrival rate times queue and pipe.
Source: Addanki, Michel and Schmid, PowerTCP, NSDI 2022, arXiv:2112.14309, algorithm 1 and theorem 1; constants of the
authors' github.com/inet-tub/powertcp-linux and github.com/inet-tub/ns3-datacenter. Without telemetry: `powertcp`.
Leaves out: what a packed header loses; reactions to losses, which the paper leaves to its transport; powertcp-linux's
mixing of the new window with the present one, where ns3-datacenter takes the reference.

A path is known by its ports; on another path the sender forgets what it knew. An ACK that tells nothing newer of the
first switch is passed over.
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

NO_POWER = 1 / 65_536  # powertcp-linux, powertcp_defs.h: the unit of its power; less than that moves nothing


class Params:
    """Parameters of PowerTCP.

    The additive increase is that of so many flows, or a rate.
    """

    gamma: float = row(
        default=0.9,
        minimum=0.01,
        maximum=1,
        source="ns3-datacenter, rdma-hw.cc; powertcp-linux, powertcp_defs.h (921 / 1024); NSDI 2022: 0.9, unverified",
        text="Weight of the new window beside the old one.",
    )
    expected_flows: int = row(
        default=0,
        minimum=0,
        source="0: ns3-datacenter gives a rate; NSDI 2022: beta = line rate x tau / N; 10: powertcp-linux",
        text="Flows that share a NIC (N): the additive increase is line rate x tau / N. 0: beta_rate_bps is.",
    )
    beta_rate_bps: int = row(
        default="150Mbps",
        minimum=0,
        source="ns3-datacenter, rdma-hw.cc",
        text="Additive increase in a round trip, as a rate.",
    )
    scale_rate_bps: int = row(
        default="25Gbps",
        minimum=0,
        source="chosen: the hosts of ns3-datacenter have 25 Gb/s; there the increase is absolute",
        text="Line rate at which beta_rate_bps is meant; at other rates it scales. 0: it does not.",
    )
    eta: float = row(
        default=0.95,
        minimum=0.1,
        maximum=1,
        source="0.95: ns3-datacenter, rdma-hw.cc (U_TARGET); 1: NSDI 2022, algorithm 1",
        text="Power that the sender aims at, 1 being a full link and no queue.",
    )
    min_rate_bps: int = row(
        default="100Mbps",
        minimum=1000,
        source="ns3-datacenter, config-fairness.txt (MIN_RATE 100Mb/s); the paper has none",
        text="The rate never falls below this.",
    )
    fabric_rtt: bool = row(
        default=True,
        source="ns3-datacenter, config-fairness.txt (GLOBAL_T 1); NSDI 2022: one tau, unverified",
        text="tau is the longest base RTT of the fabric; if false, that of the flow's own path.",
    )


class State(HopState):
    """One sending queue pair: telemetry of the last ACK, power and windows.

    The telemetry is that of each hop; the power is smoothed.
    """

    power: float = 1.0  # smoothed, 1 in balance
    reference_bytes: float  # cwnd_old
    update_seq: int  # the reference moves with the first ACK of a packet sent after it last did


def step(params: Params, state: State, signal: Signal) -> None:
    """Sending NIC: start with line rate x tau, then follow the ACKs."""
    if signal.kind == Kind.START:
        state.reference_bytes = round_bytes(params, signal)
        obey(params, state, signal, state.reference_bytes)
    elif signal.kind == Kind.ACK and 0 < signal.hops <= HOPS:
        if not knows_path(state, signal):
            remember(state, signal)
            if state.update_seq == 0:
                state.update_seq = signal.next_seq
        elif signal.hop_at_ps[0] > state.last_at_ps[0]:
            measure(params, state, signal)
            remember(state, signal)
            if state.power >= NO_POWER:
                react(params, state, signal)


def measure(params: Params, state: State, signal: Signal) -> None:
    """NormPower: arrival rate x (queue + pipe) of the busiest hop.

    It is smoothed by the part of tau that it was measured over.
    """
    round_trip_ps = round_ps(params, signal)
    highest = 0.0
    over_ps = 0
    for i in range(signal.hops):
        gap_ps = signal.hop_at_ps[i] - state.last_at_ps[i]
        if gap_ps > 0:
            byte_ps = PS_PER_BYTE_SECOND / float(signal.hop_rate_bps[i])
            grown_bytes = float(signal.hop_queue_bytes[i] - state.last_queue_bytes[i])
            sent_bytes = float(signal.hop_tx_bytes[i] - state.last_tx_bytes[i])
            current = (grown_bytes + sent_bytes) * byte_ps / gap_ps
            voltage = float(signal.hop_queue_bytes[i]) * byte_ps / round_trip_ps + 1.0
            if current * voltage > highest:
                highest = current * voltage
                over_ps = gap_ps
    share = min(float(over_ps) / round_trip_ps, 1.0)
    state.power = (1.0 - share) * state.power + share * highest


def react(params: Params, state: State, signal: Signal) -> None:
    """UpdateWindow: the control law of the paper.

    The reference follows once in a round trip.
    """
    aim_bytes = state.reference_bytes * params.eta / state.power + beta_bytes(params, signal)
    window_bytes = params.gamma * aim_bytes + (1.0 - params.gamma) * state.reference_bytes
    least_bps = min(float(params.min_rate_bps), float(signal.line_rate_bps))
    least_bytes = least_bps * round_ps(params, signal) / PS_PER_BYTE_SECOND
    window_bytes = min(max(window_bytes, least_bytes), round_bytes(params, signal))
    if signal.seq > state.update_seq:
        state.reference_bytes = window_bytes
        state.update_seq = max(signal.next_seq, state.update_seq)
    obey(params, state, signal, window_bytes)


def beta_bytes(params: Params, signal: Signal) -> float:
    """Additive increase of the window.

    In balance each flow keeps this much of the queue.
    """
    if params.expected_flows > 0:
        return round_bytes(params, signal) / params.expected_flows
    scale = float(signal.line_rate_bps) / params.scale_rate_bps if params.scale_rate_bps > 0 else 1.0
    return scale * params.beta_rate_bps * round_ps(params, signal) / PS_PER_BYTE_SECOND


def obey(params: Params, state: State, signal: Signal, window_bytes: float) -> None:
    """Pace the window over tau.

    A packet may start while less than the window is in flight.
    """
    state.window_bytes = window_bytes + signal.mtu_bytes
    rate_bps = window_bytes * PS_PER_BYTE_SECOND / round_ps(params, signal)
    state.rate_bps = min(rate_bps, float(signal.line_rate_bps))


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK}),
    moves_departures=True,  # ns3-datacenter, rdma-hw.cc, ChangeRate
    needs=frozenset({"telemetry"}),
    source="Addanki et al., NSDI 2022, arXiv:2112.14309",
    variants={
        # The defaults above: github.com/inet-tub/ns3-datacenter, rdma-hw.cc, UpdateRatePower without PowerTCPdelay.
        "ns3-repo": {},
        # Power is held to 1 and the increase is line rate x tau / N, as the paper states them.
        "paper": {"eta": 1.0, "expected_flows": 10},
    },
)
