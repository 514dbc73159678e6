"""TIMELY: a rate that follows the slope of the RTT, one step for each segment that has arrived.

Source: Mittal et al., SIGCOMM 2015, doi:10.1145/2785956.2787510, algorithm 1; `patched`: Zhu et al., CoNEXT 2016,
doi:10.1145/2999572.2999593; constants of bobzhuyb/ns3-rdma, branch timely, and of HPCC's simulator.
Leaves out: the RTT of a whole segment; that of its last packet stands for it, whose send time the ACK echoes.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, row


class Params:
    newest: float = row(default=0.875, minimum=0.01, maximum=1, source="ns3-rdma", text="Weight of the last change.")
    decrease: float = row(default=0.8, minimum=0, maximum=1, source="ns3-rdma", text="Decrease: b.")
    patched: bool = row(default=False, source="CoNEXT 2016", text="Whether the law between the two limits is patched.")
    patched_decrease: float = row(default=0.008, minimum=0, maximum=1, source="CoNEXT 2016", text="Its decrease: b.")
    increase_bps: int = row(default="10Mbps", minimum=1, source="ns3-rdma", text="Increase at 10 Gb/s, scaled by rate.")
    low_ps: int = row(default="50us", minimum=1, source="ns3-rdma", text="RTT below which the rate only rises.")
    high_ps: int = row(default="500us", minimum=1, source="ns3-rdma", text="RTT above which it only falls.")
    normal_ps: int = row(default="20us", minimum=1, source="ns3-rdma, minRTT", text="RTT by which changes are divided.")
    hurry_after: int = row(default=5, minimum=1, source="algorithm 1, N", text="Steps until the increase is 5 times.")
    burst_bytes: int = row(default=16_000, minimum=0, source="ns3-rdma", text="Segment that leaves back to back.")
    smallest: float = row(
        default=0.01, minimum=0.0001, maximum=1, source="ns3-rdma", text="Least part of the line rate."
    )


class State(SenderState):
    last_ps: int
    change_ps: float
    calm: int  # steps in a row without a rise of the RTT
    arrived: int  # payload of the segment that is under way


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.START:
        state.segment_bytes = params.burst_bytes
    elif signal.kind == Kind.ACK and signal.arrived_bytes > 0:
        state.arrived += signal.arrived_bytes
        if state.arrived >= params.burst_bytes and signal.rtt_ps > 0:
            state.arrived = 0
            if state.last_ps > 0:
                react(params, state, signal)
            state.last_ps = signal.rtt_ps


def react(params: Params, state: State, signal: Signal) -> None:
    line_bps = float(signal.line_rate_bps)
    rtt_ps = float(signal.rtt_ps)
    state.change_ps = (1.0 - params.newest) * state.change_ps + params.newest * (rtt_ps - state.last_ps)
    slope = state.change_ps / params.normal_ps
    step_bps = params.increase_bps * line_bps / 1e10
    faster_bps = state.rate_bps + step_bps * (5.0 if state.calm >= params.hurry_after else 1.0)
    rate_bps = state.rate_bps
    if rtt_ps < params.low_ps:
        rate_bps = faster_bps
    elif rtt_ps > params.high_ps:
        rate_bps = rate_bps * (1.0 - params.decrease * (1.0 - params.high_ps / rtt_ps))
        state.calm = 0
    elif params.patched:
        weight = min(max(2.0 * slope + 0.5, 0.0), 1.0)
        excess = (rtt_ps - params.low_ps) / params.low_ps
        rate_bps = step_bps * (1.0 - weight) + rate_bps * (1.0 - params.patched_decrease * weight * excess)
    elif slope <= 0.0:
        state.calm += 1
        rate_bps = faster_bps
    else:
        state.calm = 0
        rate_bps = rate_bps * (1.0 - params.decrease * slope)
    state.rate_bps = min(max(rate_bps, params.smallest * line_bps), line_bps)


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK}),
    needs=frozenset({"rtt"}),
    variants={"patched": {"patched": True}},
    source="doi:10.1145/2785956.2787510",
)
