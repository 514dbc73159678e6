"""theta-PowerTCP: the window follows power, measured from round-trip times.

Power is delay times its slope.
Source: Addanki, Michel and Schmid, PowerTCP, NSDI 2022, arXiv:2112.14309, algorithm 2 and theorem 3; constants of the
authors' github.com/inet-tub/powertcp-linux and github.com/inet-tub/ns3-datacenter. With telemetry: `powertcp-int`.
Leaves out: reactions to losses, which the paper leaves to its transport; learning the base RTT, which the sender knows.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, SenderState, Signal, row

__all__ = ["PLUGIN", "Params", "State", "step"]

PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second
NO_POWER = 1 / 65_536  # powertcp-linux, powertcp_defs.h: the unit of its power; less than that moves nothing


class Params:
    """Parameters of theta-PowerTCP.

    The additive increase is that of so many flows, or a rate.
    """

    gamma: float = row(
        default=0.9,
        minimum=0.01,
        maximum=1,
        source="powertcp-linux, powertcp_defs.h (921 / 1024 ~ 0.9); NSDI 2022: 0.9, unverified",
        text="Weight of the new window beside the old one.",
    )
    expected_flows: int = row(
        default=10,
        minimum=0,
        source="powertcp-linux, powertcp_defs.h; NSDI 2022: beta = line rate x tau / N, without a number",
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
    tau_factor: float = row(
        default=1.0,
        minimum=1,
        source="1: NSDI 2022, algorithm 2; 1.05: ns3-datacenter, rdma-hw.cc",
        text="The round trip to which power is held, in base RTTs of the path.",
    )
    least_current: float = row(
        default=0.5,
        minimum=0,
        maximum=1,
        source="0.5: ns3-datacenter, rdma-hw.cc; 0: powertcp-linux, powertcp_impl.c; NSDI 2022 does not say",
        text="The slope of the RTT, and 1, is at least this.",
    )
    measures_every_ack: bool = row(
        default=True,
        source="NSDI 2022, algorithm 2, unverified; ns3-datacenter; false: powertcp-linux",
        text="Whether every ACK measures the slope; if false, one ACK in a round trip does.",
    )
    reacts_to_every_ack: bool = row(
        default=False,
        source="false: NSDI 2022, algorithm 2, and powertcp-linux; true: ns3-datacenter",
        text="Every ACK moves the window from its reference; if false, once in a round trip.",
    )
    min_rate_bps: int = row(
        default="100Mbps",
        minimum=1000,
        source="ns3-datacenter, config-fairness.txt (MIN_RATE 100Mb/s); the paper has none",
        text="The rate never falls below this.",
    )


class State(SenderState):
    """One sending queue pair: the last ACK, the smoothed power, and the reference window."""

    last_at_ps: int = OFF
    last_rtt_ps: int
    power: float = 1.0  # smoothed, 1 in balance
    reference_bytes: float
    update_seq: int  # the reference moves with the first ACK of a packet sent after it last did


def step(params: Params, state: State, signal: Signal) -> None:
    """Sending NIC: start with line rate x base RTT, then follow RTTs."""
    if signal.kind == Kind.START:
        state.reference_bytes = full_bytes(signal)
        obey(state, signal, state.reference_bytes)
    elif signal.kind == Kind.ACK and signal.bytes > 0 and signal.rtt_ps > 0:
        is_due = signal.seq > state.update_seq
        if state.last_at_ps == OFF:
            remember(state, signal)
            state.update_seq = signal.next_seq
        elif signal.now_ps > state.last_at_ps and (is_due or params.measures_every_ack):
            measure(params, state, signal)
            remember(state, signal)
            if state.power >= NO_POWER and (is_due or params.reacts_to_every_ack):
                react(params, state, signal)


def base_ps(signal: Signal) -> float:
    """Base RTT of the path.

    A pair without a route at time 0 has none.
    """
    return float(max(signal.base_rtt_ps, 1))


def full_bytes(signal: Signal) -> float:
    """Line rate x base RTT, the largest window."""
    return float(signal.line_rate_bps) * base_ps(signal) / PS_PER_BYTE_SECOND


def remember(state: State, signal: Signal) -> None:
    """Store instant and RTT of this ACK."""
    state.last_at_ps = signal.now_ps
    state.last_rtt_ps = signal.rtt_ps


def measure(params: Params, state: State, signal: Signal) -> None:
    """NormPower: (slope of the RTT + 1) x RTT / tau, smoothed.

    The smoothing is by the part of tau that the power was measured over.
    """
    gap_ps = signal.now_ps - state.last_at_ps
    current = (signal.rtt_ps - state.last_rtt_ps) / gap_ps + 1.0
    tau_ps = params.tau_factor * base_ps(signal)
    power = max(current, params.least_current) * signal.rtt_ps / tau_ps
    share = min(gap_ps / base_ps(signal), 1.0)
    state.power = (1.0 - share) * state.power + share * power


def react(params: Params, state: State, signal: Signal) -> None:
    """UpdateWindow: the control law of the paper.

    The reference follows once in a round trip.
    """
    aim_bytes = state.reference_bytes / state.power + beta_bytes(params, signal)
    window_bytes = params.gamma * aim_bytes + (1.0 - params.gamma) * state.reference_bytes
    least_bps = min(float(params.min_rate_bps), float(signal.line_rate_bps))
    least_bytes = least_bps * base_ps(signal) / PS_PER_BYTE_SECOND
    window_bytes = min(max(window_bytes, least_bytes), full_bytes(signal))
    if signal.seq > state.update_seq:
        state.reference_bytes = window_bytes
        state.update_seq = max(signal.next_seq, state.update_seq)
    obey(state, signal, window_bytes)


def beta_bytes(params: Params, signal: Signal) -> float:
    """Additive increase of the window in a round trip.

    In balance each flow keeps this much of the queue.
    """
    if params.expected_flows > 0:
        return full_bytes(signal) / params.expected_flows
    scale = float(signal.line_rate_bps) / params.scale_rate_bps if params.scale_rate_bps > 0 else 1.0
    return scale * params.beta_rate_bps * base_ps(signal) / PS_PER_BYTE_SECOND


def obey(state: State, signal: Signal, window_bytes: float) -> None:
    """Pace the window over the base RTT.

    A packet may start while less than the window is in flight.
    """
    state.window_bytes = window_bytes + signal.mtu_bytes
    rate_bps = window_bytes * PS_PER_BYTE_SECOND / base_ps(signal)
    state.rate_bps = min(rate_bps, float(signal.line_rate_bps))


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK}),
    moves_departures=True,  # ns3-datacenter, rdma-hw.cc, ChangeRate
    needs=frozenset({"rtt"}),
    source="Addanki et al., NSDI 2022, arXiv:2112.14309",
    variants={
        # The defaults above.
        "paper": {},
        # github.com/inet-tub/powertcp-linux, powertcp_impl.c, rttptcp: it looks once in a round trip.
        "linux": {"gamma": 921 / 1024, "measures_every_ack": False, "least_current": 0.0, "min_rate_bps": 1000},
        # github.com/inet-tub/ns3-datacenter, rdma-hw.cc, UpdateRatePower with PowerTCPdelay.
        "ns3-repo": {
            "gamma": 0.7,
            "expected_flows": 0,
            "scale_rate_bps": 0,
            "tau_factor": 1.05,
            "reacts_to_every_ack": True,
        },
    },
)
