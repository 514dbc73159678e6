"""Swift: separate delay targets and windows for fabric and receiving host.

Source: Kumar et al., SIGCOMM 2020, doi:10.1145/3387514.3406591, sections 3.1 to 3.6. The paper's constants were not at
hand: the defaults are those of google/isekai, Google's simulator of Falcon, whose comments take them from Swift.
Leaves out: loss recovery, which is the transport's; the delay of the sending host, and with it the part of the
endpoint delay that Swift measures there; the average over endpoint delays, whose weight is not public.

A window is in packets and may be below 1. Then one packet is in flight, and the next leaves an RTT / window after the
one before. Frames are paced by their bytes on the wire, so that the gap is longer by the share of the headers.
"""

from __future__ import annotations

import math

from weftwork.policies.interface import OFF, CongestionControl, Kind, SenderState, Signal, row

__all__ = ["PLUGIN", "Params", "State", "step"]

PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second
MOST_DOUBLINGS = 6  # chosen: 64 times the timeout, as TCP stops at a minute (RFC 6298, section 2.5)


class Params:
    """Parameters of Swift.

    Windows are in packets of the MTU; nothing scales with the line rate, as in all public code.
    """

    increase_packets: float = row(
        default=1.0,
        minimum=0,
        source="isekai, swift.cc (fabric_additive_increment_factor); csg-htsim, swift.cpp (ai)",
        text="Growth of a window in a round trip.",
    )
    decrease: float = row(
        default=0.8,
        minimum=0,
        maximum=1,
        source="isekai, swift.cc (fabric_multiplicative_decrease_factor); csg-htsim, swift.cpp (beta)",
        text="Part of the relative excess of the delay by which a window is cut.",
    )
    max_decrease: float = row(
        default=0.5,
        minimum=0,
        maximum=0.99,
        source="isekai, swift.cc (max_fabric_multiplicative_decrease); csg-htsim, swift.cpp (max_mdf)",
        text="Largest part of a window that a cut takes.",
    )
    base_target_ps: int = row(
        default="25us",
        minimum=0,
        source="isekai, swift.cc (fabric_base_delay); csg-htsim, swift.cpp: 20 us",
        text="Target of the fabric's delay on a path without switches; it must exceed the empty path's.",
    )
    base_target_rtts: float = row(
        default=1.25,
        minimum=0,
        source="chosen: a target below the RTT of the empty path would starve a flow; 0: SIGCOMM 2020",
        text="Lower limit of the target before flow scaling, in base RTTs of the path.",
    )
    hop_target_ps: int = row(
        default="1us",
        minimum=0,
        source="isekai, swift.cc (topo_scaling_per_hop)",
        text="Addition to the target for each switch on the path.",
    )
    scaling_ps: int = row(
        default="100us",
        minimum=0,
        source="isekai, swift.cc (max_flow_scaling); csg-htsim, swift.cpp (fs_range)",
        text="Most that a small window adds to the target; 0: windows do not scale it.",
    )
    scaling_min_packets: float = row(
        default=0.1,
        minimum=0.001,
        source="isekai, swift.cc (min_flow_scaling_window); csg-htsim, swift.cpp (fs_min_cwnd)",
        text="Window at and below which the target has all of it.",
    )
    scaling_max_packets: float = row(
        default=256.0,
        minimum=0.002,
        source="isekai, swift.cc (max_flow_scaling_window); csg-htsim, swift.cpp (fs_max_cwnd): 100",
        text="Window at and above which the target has none of it; larger than the other.",
    )
    host_target_ps: int = row(
        default="25us",
        minimum=1,
        source="chosen: as the base target of the fabric; SIGCOMM 2020 has one, its value is not public",
        text="Target of the delay in the receiving host.",
    )
    initial_packets: float = row(
        default=32.0,
        minimum=0.0001,
        source="isekai, swift.h (kInitialFlowFcwnd); csg-htsim, swift.cpp: 12, taken for bytes there",
        text="Both windows at first.",
    )
    min_packets: float = row(
        default=0.01,
        minimum=0.0001,
        source="isekai, swift.cc (min_fabric_congestion_window)",
        text="Smallest window.",
    )
    max_packets: float = row(
        default=256.0,
        minimum=1,
        source="isekai, swift.cc (max_fabric_congestion_window)",
        text="Largest window; a flow fills no path of more packets than this.",
    )
    reset_after: int = row(
        default=3,
        minimum=1,
        source="isekai, swift.cc (retransmit_limit); csg-htsim, swift.cpp: 5",
        text="Timeouts in a row that leave the smallest fabric window.",
    )
    old_rtt_weight: float = row(
        default=0.75,
        minimum=0,
        maximum=1,
        source="isekai, swift.cc (rtt_smoothing_alpha); csg-htsim, swift.cpp: 7/8",
        text="Weight of the old value in the smoothed RTT, which makes the timeout.",
    )
    timeout_rtts: float = row(
        default=2.0,
        minimum=1,
        source="isekai, swift.cc (retransmit_timeout_scalar)",
        text="Smoothed RTTs of a timeout; it doubles with each in a row, as in csg-htsim.",
    )
    min_timeout_ps: int = row(
        default="1ms",
        minimum=1,
        source="isekai, swift.cc (min_retransmit_timeout); csg-htsim, swift.cpp: 100 us",
        text="Shortest timeout.",
    )
    first_timeout_ps: int = row(
        default="1ms",
        minimum=1,
        source="isekai, swift.cc (min_retransmit_timeout); csg-htsim, swift.cpp",
        text="Timeout before the first RTT is known.",
    )


class State(SenderState):
    """One sending queue pair."""

    fabric_packets: float  # window
    host_packets: float  # window
    fabric_cut_at_ps: int = OFF
    host_cut_at_ps: int = OFF
    target_ps: float  # of the fabric, at the last acknowledgement
    last_rtt_ps: float
    smoothed_rtt_ps: float
    timeouts: int  # in a row


def step(params: Params, state: State, signal: Signal) -> None:
    """Update both windows; the NIC obeys the smaller window."""
    if signal.kind == Kind.START:
        state.fabric_packets = min(max(params.initial_packets, params.min_packets), params.max_packets)
        state.host_packets = state.fabric_packets
        state.last_rtt_ps = float(signal.base_rtt_ps)
    elif signal.kind == Kind.ACK:
        if signal.arrived_bytes > 0:
            state.timeouts = 0
        if signal.rtt_ps > 0:
            measure(params, state, signal)
            follow_fabric(params, state, signal)
            follow_host(params, state, signal)
    elif signal.kind == Kind.NAK:
        state.timeouts = 0
        lose(params, state, signal)
    elif signal.kind == Kind.TIMEOUT:
        state.timeouts += 1
        if state.timeouts >= params.reset_after:
            state.fabric_packets = params.min_packets
        else:
            lose(params, state, signal)
    obey(params, state, signal)


def measure(params: Params, state: State, signal: Signal) -> None:
    """Keep the last RTT and the smoothed RTT."""
    rtt_ps = float(signal.rtt_ps)
    if state.smoothed_rtt_ps > 0.0:
        weight = params.old_rtt_weight
        state.smoothed_rtt_ps = weight * state.smoothed_rtt_ps + (1.0 - weight) * rtt_ps
    else:
        state.smoothed_rtt_ps = rtt_ps
    state.last_rtt_ps = rtt_ps


def fabric_target_ps(params: Params, window: float, signal: Signal) -> float:
    """Target of the fabric's delay: base, switches, and small-window term (section 3.5)."""
    path_ps = float(params.base_target_ps) + float(params.hop_target_ps * signal.hops)
    most = 1.0 / math.sqrt(params.scaling_min_packets)
    least = 1.0 / math.sqrt(params.scaling_max_packets)
    share = (1.0 / math.sqrt(window) - least) / max(most - least, 1e-9)
    scaling_ps = params.scaling_ps * min(max(share, 0.0), 1.0)
    return max(path_ps, params.base_target_rtts * signal.base_rtt_ps) + scaling_ps


def follow_fabric(params: Params, state: State, signal: Signal) -> None:
    """Grow below the target; else cut once per round trip (algorithm 1)."""
    delay_ps = float(signal.fabric_delay_ps)
    state.target_ps = fabric_target_ps(params, state.fabric_packets, signal)
    if delay_ps < state.target_ps:
        state.fabric_packets = grown(params, state.fabric_packets, signal)
    elif may_cut(state.fabric_cut_at_ps, signal.now_ps, state.last_rtt_ps):
        state.fabric_packets = cut(params, state.fabric_packets, delay_ps, state.target_ps)
        state.fabric_cut_at_ps = signal.now_ps


def follow_host(params: Params, state: State, signal: Signal) -> None:
    """Follow the delay of the receiving host likewise (section 3.2)."""
    delay_ps = float(signal.host_delay_ps)
    target_ps = float(params.host_target_ps)
    if delay_ps < target_ps:
        state.host_packets = grown(params, state.host_packets, signal)
    elif may_cut(state.host_cut_at_ps, signal.now_ps, state.last_rtt_ps):
        state.host_packets = cut(params, state.host_packets, delay_ps, target_ps)
        state.host_cut_at_ps = signal.now_ps


def grown(params: Params, window: float, signal: Signal) -> float:
    """A grown window: one packet more per round trip, at any size."""
    packets = float(signal.arrived_bytes) / signal.mtu_bytes
    return min(window + params.increase_packets * packets / max(window, 1.0), params.max_packets)


def cut(params: Params, window: float, delay_ps: float, target_ps: float) -> float:
    """A window that was cut for a delay above its target."""
    excess = (delay_ps - target_ps) / delay_ps
    return max(window * max(1.0 - params.decrease * excess, 1.0 - params.max_decrease), params.min_packets)


def may_cut(last_at_ps: int, now_ps: int, rtt_ps: float) -> bool:
    """Whether a round trip has passed since the last cut."""
    return last_at_ps == OFF or float(now_ps - last_at_ps) >= rtt_ps


def lose(params: Params, state: State, signal: Signal) -> None:
    """Cut the fabric window by the largest cut, once per round trip (section 3.4)."""
    if may_cut(state.fabric_cut_at_ps, signal.now_ps, state.last_rtt_ps):
        state.fabric_packets = max(state.fabric_packets * (1.0 - params.max_decrease), params.min_packets)
        state.fabric_cut_at_ps = signal.now_ps


def obey(params: Params, state: State, signal: Signal) -> None:
    """Set window, rate and timeout.

    Below a packet, one packet is in flight, with an RTT / window between two packets.
    """
    window = min(state.fabric_packets, state.host_packets)
    line_bps = float(signal.line_rate_bps)
    state.window_bytes = max(window, 1.0) * signal.mtu_bytes
    state.rate_bps = line_bps
    if window < 1.0:
        paced_bps = window * signal.mtu_bytes * PS_PER_BYTE_SECOND / max(state.last_rtt_ps, 1.0)
        state.rate_bps = min(paced_bps, line_bps)
    timeout_ps = params.first_timeout_ps
    if state.smoothed_rtt_ps > 0.0:
        timeout_ps = max(int(params.timeout_rtts * state.smoothed_rtt_ps), params.min_timeout_ps)
    for _ in range(min(state.timeouts, MOST_DOUBLINGS)):
        timeout_ps += timeout_ps
    state.timeout_ps = timeout_ps


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK, Kind.NAK, Kind.TIMEOUT}),
    moves_departures=True,
    needs=frozenset({"rtt"}),
    source="Kumar et al., SIGCOMM 2020, doi:10.1145/3387514.3406591",
    variants={
        # The defaults above: github.com/google/isekai, rue/algorithm/swift.cc and swift.h.
        "isekai": {},
        # github.com/Broadcom/csg-htsim, sim/swift.cpp, whose author calls constants guesses; its first and smallest
        # windows are packets here (12, and 10 bytes of 4,096), since taking them for bytes is a mistake there.
        "htsim": {
            "base_target_ps": "20us",
            "base_target_rtts": 0.0,
            "hop_target_ps": 3_053_435,  # 20 us / 6.55
            "scaling_max_packets": 100.0,
            "initial_packets": 12.0,
            "min_packets": 0.0024,
            "max_packets": 1000.0,
            "reset_after": 5,
            "old_rtt_weight": 0.875,
            "min_timeout_ps": "100us",
        },
    },
)
