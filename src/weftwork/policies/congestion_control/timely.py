"""TIMELY: the sender sets its rate by the slope of the RTT.

The variant `patched` has one fixed point.
Source: Mittal et al., SIGCOMM 2015, doi:10.1145/2785956.2787510, algorithm 1, and the code of its authors; the patch is
that of Zhu et al., CoNEXT 2016, doi:10.1145/2999572.2999593. The defaults are those that the authors of HPCC ran.
Leaves out: the start at line rate / (live flows of the sender + 1), since a queue pair does not know the others; what
the sending host adds to the round-trip time, which is that of the last packet of a segment, from its NIC and back.

The thresholds are times and do not scale with the line rate or the fabric, as in all public code: on a path whose
round trip with its queues stays below ``low_ps``, TIMELY only rises.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, row

__all__ = ["PLUGIN", "Params", "State", "step"]

PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second


class Params:
    """Rates of increase are those at ``scale_rate_bps``; absolute if it is 0."""

    newest_weight: float = row(
        default=0.875,
        minimum=0,
        maximum=1,
        source="HPCC-ns3, rdma-hw.cc (TimelyAlpha); ns3-rdma, timely-sender.cc; 0.02: the authors' timely-code-snippet",
        text="Weight of the newest difference of two RTTs in their mean.",
    )
    decrease: float = row(
        default=0.8,
        minimum=0,
        maximum=1,
        source="SIGCOMM 2015, algorithm 1 (beta), by the authors' timely-code-snippet; HPCC-ns3, rdma-hw.cc",
        text="Gain of a decrease, by the slope or above the upper threshold.",
    )
    patched: bool = row(
        default=False,
        source="false: SIGCOMM 2015, algorithm 1; true: CoNEXT 2016, algorithm 2",
        text="Between the thresholds the RTT itself decides, too, by a weight that goes with the slope.",
    )
    patched_decrease: float = row(
        default=0.008,
        minimum=0,
        maximum=1,
        source="jitupadhye-zz/rdma, fluidmodel/timely/timely-fixed.m (beta): the authors' own fluid model",
        text="Gain of the patched decrease between the thresholds.",
    )
    rises_at_zero: bool = row(
        default=True,
        source="true: HPCC-ns3, rdma-hw.cc, and the authors' timely-code-snippet; false: ns3-rdma, timely-sender.cc",
        text="A slope of exactly 0 raises the rate; if false, it leaves the rate as it is.",
    )
    increase_rate_bps: int = row(
        default="10Mbps",
        minimum=0,
        source="HPCC-ns3, simulation/run.py: 10 Mb/s x C / 10G; ns3-rdma, timely-sender.cc (Delta)",
        text="Additive increase.",
    )
    hyper_rate_bps: int = row(
        default="50Mbps",
        minimum=0,
        source="HPCC-ns3, simulation/run.py: 50 Mb/s x C / 10G; the authors' timely-code-snippet: 5 x the increase",
        text="Hyper-active increase (HAI).",
    )
    hyper_after: int = row(
        default=5,
        minimum=0,
        source="HPCC-ns3, rdma-hw.cc; the authors' timely-code-snippet; ns3-rdma has none: 0",
        text="Steps in a row that rise before the hyper-active increase; 0: there is none.",
    )
    hyper_anywhere: bool = row(
        default=True,
        source="true: HPCC-ns3, rdma-hw.cc; false: the authors' timely-code-snippet",
        text="Every rise counts and may be hyper-active; if false, differences below 0, and rises by the slope alone.",
    )
    low_ps: int = row(
        default="50us",
        minimum=1,
        source="HPCC-ns3, rdma-hw.cc; ns3-rdma, timely-sender.cc; the authors' timely-code-snippet, for 64 KB segments",
        text="RTT below which the rate rises; the patch takes it for the RTT that it aims at.",
    )
    high_ps: int = row(
        default="500us",
        minimum=1,
        source="HPCC-ns3, rdma-hw.cc; ns3-rdma, timely-sender.cc; 1 ms: the authors' timely-code-snippet",
        text="RTT above which the rate falls.",
    )
    min_rtt_ps: int = row(
        default="20us",
        minimum=1,
        source="HPCC-ns3, rdma-hw.cc (TimelyMinRtt); ns3-rdma, timely-sender.cc",
        text="RTT by which differences are divided to be a slope.",
    )
    segment_bytes: int = row(
        default=0,
        minimum=0,
        source="0: HPCC-ns3, rdma-hw.cc; ns3-rdma, timely-sender.cc (BurstSize): 16,000",
        text="Payload that leaves back to back and is one step of the rate; 0: packets are paced, a step a round trip.",
    )
    without_serialisation: bool = row(
        default=False,
        source="true: SIGCOMM 2015, section 3 (RTT less segment / NIC rate); false: HPCC-ns3, rdma-hw.cc",
        text="The RTT does not count the packet's own time on the first link.",
    )
    step_by_time: bool = row(
        default=False,
        source="true: the authors' timely-code-snippet (delta_factor); false: HPCC-ns3, ns3-rdma",
        text="A step sooner than min_rtt_ps after the one before is as much smaller.",
    )
    least_factor: float = row(
        default=0.0,
        minimum=0,
        maximum=1,
        source="0: HPCC-ns3, rdma-hw.cc; 0.5: the authors' timely-code-snippet",
        text="A step leaves at least this part of the rate.",
    )
    start_fraction: float = row(
        default=1.0,
        minimum=0.0001,
        maximum=1,
        source="1: HPCC-ns3, and eRPC with the authors' timely-code-snippet; 0.1: ns3-rdma (1 Gb/s of 10)",
        text="First rate, as a part of the line rate.",
    )
    max_fraction: float = row(
        default=1.0,
        minimum=0.0001,
        maximum=1,
        source="1: HPCC-ns3, rdma-hw.cc; 0.96: ns3-rdma, timely-sender.cc (MaxRateMultiple)",
        text="Highest rate, as a part of the line rate.",
    )
    min_fraction: float = row(
        default=0.0,
        minimum=0,
        maximum=1,
        source="0: HPCC-ns3; 0.01: ns3-rdma, timely-sender.cc; 0.001: eRPC (5 MB/s of 5 GB/s)",
        text="Lowest rate, as a part of the line rate.",
    )
    min_rate_bps: int = row(
        default="1Gbps",
        minimum=1000,
        source="HPCC-ns3, simulation/run.py (MIN_RATE 1000Mb/s), at every line rate",
        text="The rate is never cut below this either.",
    )
    scale_rate_bps: int = row(
        default="10Gbps",
        minimum=0,
        source="HPCC-ns3, simulation/run.py: rates x line rate / 10 Gb/s",
        text="Line rate at which the two increases are meant; at other rates they scale. 0: they do not.",
    )
    window_bdps: float = row(
        default=0.0,
        minimum=0,
        source="0: SIGCOMM 2015, no window; 1: HPCC-ns3, run.py, TIMELY+win",
        text="Payload in flight at most, in line rate x base RTT of the path, and a packet; 0: no window.",
    )
    window_follows_rate: bool = row(
        default=True,
        source="HPCC-ns3, rdma-queue-pair.cc, GetWin with VAR_WIN 1: W x R / R_max",
        text="The window shrinks with the rate, W x rate / line rate, to a packet at least.",
    )


class State(SenderState):
    """One sending queue pair."""

    last_rtt_ps: float  # of the step before; 0: there was none
    difference_ps: float  # mean of the differences of RTTs
    rises: int  # in a row
    last_step_at_ps: int
    next_step_seq: int  # steps of a round trip: the next one is due above this number
    segment_done_bytes: int  # steps of a segment: payload of it that has arrived


def step(params: Params, state: State, signal: Signal) -> None:
    """Set rate, segment and window of the sender."""
    if signal.kind == Kind.START:
        state.segment_bytes = params.segment_bytes
        state.rate_bps = within(params, params.start_fraction * signal.line_rate_bps, float(signal.line_rate_bps))
    elif signal.kind == Kind.ACK and signal.rtt_ps > 0 and is_due(params, state, signal):
        rtt_ps = float(signal.rtt_ps)
        if params.without_serialisation:
            rtt_ps = max(rtt_ps - signal.mtu_bytes * PS_PER_BYTE_SECOND / signal.line_rate_bps, 1.0)
        if state.last_rtt_ps > 0.0:
            react(params, state, signal, rtt_ps)
        state.last_rtt_ps = rtt_ps
        state.last_step_at_ps = signal.now_ps
    if params.window_bdps > 0.0:
        set_window(params, state, signal)


def is_due(params: Params, state: State, signal: Signal) -> bool:
    """Whether an acknowledgement ends a segment or a round trip.

    A round trip ends with an ACK of data that was sent after the last step.
    """
    due = False
    if params.segment_bytes > 0:
        state.segment_done_bytes += signal.arrived_bytes
        due = state.segment_done_bytes >= params.segment_bytes
        if due:
            state.segment_done_bytes = 0
    elif signal.seq > state.next_step_seq:
        state.next_step_seq = signal.next_seq
        due = True
    return due


def react(params: Params, state: State, signal: Signal, rtt_ps: float) -> None:
    """One step of the rate (algorithm 1, or algorithm 2 of the patch)."""
    line_bps = float(signal.line_rate_bps)
    rate_bps = min(state.rate_bps, line_bps)
    newest_ps = rtt_ps - state.last_rtt_ps
    state.difference_ps = (1.0 - params.newest_weight) * state.difference_ps + params.newest_weight * newest_ps
    slope = state.difference_ps / params.min_rtt_ps
    if not params.hyper_anywhere:
        state.rises = state.rises + 1 if newest_ps < 0.0 else 0
    new_bps = rate_bps
    if rtt_ps < params.low_ps:
        new_bps = rate_bps + increase_bps(params, line_bps, state.rises if params.hyper_anywhere else 0)
    elif rtt_ps > params.high_ps:
        new_bps = rate_bps * (1.0 - params.decrease * (1.0 - params.high_ps / rtt_ps))
    elif params.patched:
        weight = min(max(2.0 * slope + 0.5, 0.0), 1.0)
        excess = (rtt_ps - params.low_ps) / params.low_ps
        new_bps = rate_bps * (1.0 - params.patched_decrease * weight * excess)
        new_bps += (1.0 - weight) * scaled(params, line_bps, float(params.increase_rate_bps))
    elif slope < 0.0 or (slope <= 0.0 and params.rises_at_zero):
        new_bps = rate_bps + increase_bps(params, line_bps, state.rises)
    else:
        new_bps = rate_bps * max(1.0 - params.decrease * slope, 0.0)
    if params.hyper_anywhere:
        state.rises = state.rises + 1 if new_bps > rate_bps else 0
    if params.step_by_time:
        elapsed_ps = float(signal.now_ps - state.last_step_at_ps)
        new_bps = rate_bps + min(elapsed_ps / params.min_rtt_ps, 1.0) * (new_bps - rate_bps)
    state.rate_bps = within(params, max(new_bps, params.least_factor * rate_bps), line_bps)


def increase_bps(params: Params, line_bps: float, rises: int) -> float:
    """The additive increase, or hyper-active increase after several rises."""
    hurries = params.hyper_after > 0 and rises >= params.hyper_after
    return scaled(params, line_bps, float(params.hyper_rate_bps if hurries else params.increase_rate_bps))


def scaled(params: Params, line_bps: float, rate_bps: float) -> float:
    """A rate of increase at this line rate."""
    return rate_bps * line_bps / params.scale_rate_bps if params.scale_rate_bps > 0 else rate_bps


def within(params: Params, rate_bps: float, line_bps: float) -> float:
    """A rate between the limits.

    The upper limit counts first where they cross.
    """
    floor_bps = max(params.min_fraction * line_bps, float(params.min_rate_bps))
    return min(max(rate_bps, floor_bps), params.max_fraction * line_bps)


def set_window(params: Params, state: State, signal: Signal) -> None:
    """Allow some bandwidth-delay products in flight.

    They are computed at line rate or at the present rate.
    """
    line_bps = float(signal.line_rate_bps)
    full_bytes = params.window_bdps * line_bps * float(signal.base_rtt_ps) / PS_PER_BYTE_SECOND + signal.mtu_bytes
    if params.window_follows_rate:
        state.window_bytes = max(full_bytes * state.rate_bps / line_bps, float(signal.mtu_bytes))
    else:
        state.window_bytes = full_bytes


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK}),
    needs=frozenset({"rtt"}),
    source="Mittal et al., SIGCOMM 2015, doi:10.1145/2785956.2787510",
    variants={
        # The defaults above: `timely` of github.com/alibaba-edu/High-Precision-Congestion-Control, simulation/run.py.
        "hpcc-repo": {},
        # TIMELY+win of the HPCC paper, `timely_vwin` there: the same with a window.
        "hpcc-repo-window": {"window_bdps": 1.0},
        # The code that the authors of the paper published (timely-code-snippet.cc), as eRPC runs it: a step for each
        # 64 KB, an increase of 10 Mb/s at 10 Gb/s. minRTT is the fabric's to say; 20 us as elsewhere.
        "paper": {
            "newest_weight": 0.02,
            "hyper_anywhere": False,
            "high_ps": "1ms",
            "segment_bytes": 64_000,
            "without_serialisation": True,
            "step_by_time": True,
            "least_factor": 0.5,
            "min_fraction": 0.001,
            "min_rate_bps": 1000,
        },
        # github.com/bobzhuyb/ns3-rdma, timely-sender.cc, by the authors of the patch.
        "zhu-repo": {
            "rises_at_zero": False,
            "hyper_after": 0,
            "segment_bytes": 16_000,
            "without_serialisation": True,
            "start_fraction": 0.1,
            "max_fraction": 0.96,
            "min_fraction": 0.01,
            "min_rate_bps": 1000,
        },
        # The patch, with the rest as in zhu-repo; at 10 Gb/s it is the set of the authors' fluid model.
        "patched": {
            "patched": True,
            "hyper_after": 0,
            "segment_bytes": 16_000,
            "without_serialisation": True,
            "start_fraction": 0.1,
            "max_fraction": 1.0,
            "min_fraction": 0.01,
            "min_rate_bps": 1000,
        },
    },
)
