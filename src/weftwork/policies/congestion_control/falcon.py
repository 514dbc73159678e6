"""Falcon: Swift on fabric delay, and a window by NIC buffer fill.

The buffer is that of the receiving NIC.
Source: OCP-NET-Falcon 0.9, section 10.3, and google/isekai, Google's simulator of it: rue/algorithm/swift.h and
swift.cc (law and constants), common/default_config_generator.cc (first windows).
Leaves out: the fill of the NIC's buffer in acknowledgements, which no transport here carries: the delay in the
receiving host stands for it; requests, which alone count against that window there; resource NACKs, PLB and the four
paths of the second generation; the clock of 131 ns, windows in fixed point, and the time that the rate engine takes.

A window may be below 1. Then one packet is in flight, and the next leaves an RTT / window after the one before.
"""

from __future__ import annotations

import math

from weftwork.policies.interface import OFF, CongestionControl, Kind, SenderState, Signal, row

__all__ = ["PLUGIN", "Params", "State", "step"]

PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second
LEVELS = 32  # OCP-NET-Falcon 0.9, section 10.3: the level of the receive buffer has 5 bits


class Params:
    """Parameters of Falcon.

    Windows are in packets of the MTU; nothing scales with the line rate, as in isekai.
    """

    increase_packets: float = row(
        default=1.0,
        minimum=0,
        source="isekai, swift.cc (fabric_additive_increment_factor)",
        text="Growth of the fabric window in a round trip.",
    )
    decrease: float = row(
        default=0.8,
        minimum=0,
        maximum=1,
        source="isekai, swift.cc (fabric_multiplicative_decrease_factor)",
        text="Part of the relative excess of the delay by which the fabric window is cut.",
    )
    max_decrease: float = row(
        default=0.5,
        minimum=0,
        maximum=0.99,
        source="isekai, swift.cc (max_fabric_multiplicative_decrease)",
        text="Largest part of the fabric window that a cut takes.",
    )
    base_target_ps: int = row(
        default="25us",
        minimum=1,
        source="isekai, swift.cc (fabric_base_delay 191 x 131.072 ns)",
        text="Target of the fabric's delay on a path without switches; it must exceed the empty path's.",
    )
    base_target_rtts: float = row(
        default=1.25,
        minimum=0,
        source="chosen: a target below the RTT of the empty path would starve a flow; 0: isekai",
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
        source="isekai, swift.cc (max_flow_scaling)",
        text="Most that a small window adds to the target; 0: windows do not scale it.",
    )
    scaling_min_packets: float = row(
        default=0.1,
        minimum=0.001,
        source="isekai, swift.cc (min_flow_scaling_window)",
        text="Window at and below which the target has all of it.",
    )
    scaling_max_packets: float = row(
        default=256.0,
        minimum=0.002,
        source="isekai, swift.cc (max_flow_scaling_window)",
        text="Window at and above which the target has none of it; larger than the other.",
    )
    old_delay_weight: float = row(
        default=0.0,
        minimum=0,
        maximum=0.99,
        source="isekai, swift.cc (delay_smoothing_alpha)",
        text="Weight of the old value in the smoothed delay that is held to the target; 0: the last delay.",
    )
    initial_packets: float = row(
        default=32.0,
        minimum=0.001,
        source="isekai, default_config_generator.cc, Gen1Falcon (initial_fcwnd); swift.h (kInitialFlowFcwnd)",
        text="Fabric window at first.",
    )
    min_packets: float = row(
        default=0.01,
        minimum=0.0001,
        source="isekai, swift.cc (min_fabric_congestion_window)",
        text="Smallest fabric window.",
    )
    max_packets: float = row(
        default=256.0,
        minimum=1,
        source="isekai, swift.cc (max_fabric_congestion_window)",
        text="Largest fabric window.",
    )
    sequence_packets: int = row(
        default=128,
        minimum=0,
        source="OCP-NET-Falcon 0.9: bitmaps of 128 data packets; 0: no such bound",
        text="Packets in flight at most, whatever the windows say; 128 of 4,096 bytes are a path of 10 us at 400 Gb/s.",
    )
    loss_cuts: bool = row(
        default=False,
        source="isekai, swift.cc (max_decrease_on_eack_nack_drop)",
        text="A loss that the receiver tells of cuts the fabric window as far as a cut goes, once in a round trip.",
    )
    each_timeout_cuts: bool = row(
        default=False,
        source="false: isekai, swift.h, the first of a row; true: OCP-NET-Falcon 0.9, section 10.3",
        text="Every timeout below the limit cuts the fabric window as far as a cut goes; if false, the first in a row.",
    )
    timeout_limit: int = row(
        default=3,
        minimum=1,
        source="isekai, swift.cc (retransmit_limit)",
        text="Timeouts in a row that leave the smallest fabric window.",
    )
    nic_increase_packets: float = row(
        default=1.0,
        minimum=0,
        source="isekai, swift.cc (nic_additive_increment_factor)",
        text="Growth of the NIC's window.",
    )
    nic_decrease: float = row(
        default=0.8,
        minimum=0,
        maximum=1,
        source="isekai, swift.cc (nic_multiplicative_decrease_factor)",
        text="Part of the relative excess of the buffer's level by which the NIC's window is cut.",
    )
    nic_max_decrease: float = row(
        default=0.5,
        minimum=0,
        maximum=0.99,
        source="isekai, swift.cc (max_nic_multiplicative_decrease)",
        text="Largest part of the NIC's window that a cut takes.",
    )
    nic_target_level: int = row(
        default=15,
        minimum=0,
        maximum=31,
        source="isekai, swift.cc (target_rx_buffer_level)",
        text="Level of the receiving NIC's buffer, of 0 to 31, below which the NIC's window grows.",
    )
    nic_full_ps: int = row(
        default="40us",
        minimum=1,
        source="chosen: 2 MB, the receive buffer of a plain NIC, at 400 Gb/s",
        text="Delay in the receiving host that stands for a full buffer.",
    )
    nic_initial_packets: float = row(
        default=64.0,
        minimum=1,
        source="isekai, default_config_generator.cc, Gen1Falcon (initial_ncwnd)",
        text="The NIC's window at first.",
    )
    nic_min_packets: float = row(
        default=1.0,
        minimum=0.001,
        source="isekai, swift.cc (min_nic_congestion_window)",
        text="Smallest window of the NIC.",
    )
    nic_max_packets: float = row(
        default=256.0,
        minimum=1,
        source="isekai, swift.cc (max_nic_congestion_window)",
        text="Largest window of the NIC.",
    )
    nic_each_ack: bool = row(
        default=False,
        source="false: isekai, swift.h, first generation; true: the second one (Event_BNA)",
        text="The NIC's window grows with every ACK and has fractions; if false, once in a round trip or after a cut.",
    )
    old_rtt_weight: float = row(
        default=0.75,
        minimum=0,
        maximum=0.99,
        source="isekai, swift.cc (rtt_smoothing_alpha)",
        text="Weight of the old value in the smoothed RTT.",
    )
    first_rtt_ps: int = row(
        default="25us",
        minimum=1,
        source="isekai, swift.h (kInitialFlowRttState)",
        text="Smoothed RTT before the first is known.",
    )
    timeout_rtts: float = row(
        default=2.0,
        minimum=1,
        source="isekai, swift.cc (retransmit_timeout_scalar)",
        text="Smoothed RTTs of a timeout.",
    )
    min_timeout_ps: int = row(
        default="1ms",
        minimum=1,
        source="isekai, swift.cc (min_retransmit_timeout)",
        text="Shortest timeout.",
    )


class State(SenderState):
    """One sending queue pair."""

    fabric_packets: float  # window
    nic_packets: float  # window
    fabric_mark_at_ps: int = OFF  # of the last cut
    nic_mark_at_ps: int = OFF  # of the last change
    nic_was_cut: bool  # by the last change
    target_ps: float  # of the fabric, at the last acknowledgement
    level: int  # of the receiving NIC's buffer, at the last acknowledgement
    delay_ps: float  # smoothed
    last_rtt_ps: float
    smoothed_rtt_ps: float
    timeouts: int  # in a row


def step(params: Params, state: State, signal: Signal) -> None:
    """Update both windows; the NIC obeys the smaller window."""
    if signal.kind == Kind.START:
        state.fabric_packets = within(params.initial_packets, params.min_packets, params.max_packets)
        state.nic_packets = within(params.nic_initial_packets, params.nic_min_packets, params.nic_max_packets)
        state.smoothed_rtt_ps = float(params.first_rtt_ps)
        state.last_rtt_ps = state.smoothed_rtt_ps
    elif signal.kind == Kind.ACK:
        if signal.arrived_bytes > 0:
            state.timeouts = 0
        if signal.rtt_ps > 0:
            measure(params, state, signal)
            follow_fabric(params, state, signal)
            follow_nic(params, state, signal)
    elif signal.kind == Kind.NAK:
        if params.loss_cuts and has_passed(state.fabric_mark_at_ps, signal.now_ps, state.last_rtt_ps):
            set_fabric(params, state, signal, state.fabric_packets * (1.0 - params.max_decrease))
    elif signal.kind == Kind.TIMEOUT:
        state.timeouts += 1
        if has_passed(state.fabric_mark_at_ps, signal.now_ps, state.smoothed_rtt_ps):
            if state.timeouts >= params.timeout_limit:
                set_fabric(params, state, signal, params.min_packets)
            elif state.timeouts == 1 or params.each_timeout_cuts:
                set_fabric(params, state, signal, state.fabric_packets * (1.0 - params.max_decrease))
    obey(params, state, signal)


def measure(params: Params, state: State, signal: Signal) -> None:
    """Keep RTT, smoothed RTT, smoothed delay and receiver buffer level."""
    rtt_ps = float(signal.rtt_ps)
    state.smoothed_rtt_ps = params.old_rtt_weight * state.smoothed_rtt_ps + (1.0 - params.old_rtt_weight) * rtt_ps
    state.last_rtt_ps = rtt_ps
    weight = params.old_delay_weight if state.delay_ps > 0.0 else 0.0
    state.delay_ps = weight * state.delay_ps + (1.0 - weight) * signal.fabric_delay_ps
    state.level = min(signal.host_delay_ps * LEVELS // params.nic_full_ps, LEVELS - 1)


def fabric_target_ps(params: Params, window: float, signal: Signal) -> float:
    """Target of the fabric's delay: base, switches, and small-window term."""
    most = 1.0 / math.sqrt(params.scaling_min_packets)
    least = 1.0 / math.sqrt(params.scaling_max_packets)
    share = (1.0 / math.sqrt(window) - least) / max(most - least, 1e-9)
    path_ps = float(params.base_target_ps) + float(params.hop_target_ps * signal.hops)
    path_ps = max(path_ps, params.base_target_rtts * signal.base_rtt_ps)
    return path_ps + params.scaling_ps * min(max(share, 0.0), 1.0)


def follow_fabric(params: Params, state: State, signal: Signal) -> None:
    """Grow below the target; else cut at most once per round trip."""
    window = state.fabric_packets
    state.target_ps = fabric_target_ps(params, window, signal)
    if state.delay_ps < state.target_ps:
        packets = float(signal.arrived_bytes) / signal.mtu_bytes
        set_fabric(params, state, signal, window + params.increase_packets * packets / max(window, 1.0))
    elif has_passed(state.fabric_mark_at_ps, signal.now_ps, state.last_rtt_ps):
        excess = (state.delay_ps - state.target_ps) / state.delay_ps
        set_fabric(params, state, signal, window * (1.0 - min(params.decrease * excess, params.max_decrease)))


def set_fabric(params: Params, state: State, signal: Signal, window: float) -> None:
    """Set the fabric window within its limits.

    A cut begins a round trip without another cut, and so does the smallest window.
    """
    new = within(window, params.min_packets, params.max_packets)
    if new < state.fabric_packets or new <= params.min_packets:
        state.fabric_mark_at_ps = signal.now_ps
    state.fabric_packets = new


def follow_nic(params: Params, state: State, signal: Signal) -> None:
    """Grow below the target level, else cut, once per round trip.

    Growth may follow a cut at once. Isekai's first generation also begins a round trip at every acknowledgement that
    finds the largest window, which then is never cut while acknowledgements come sooner than that. Not so here.
    """
    old = state.nic_packets
    new = old
    has_time = has_passed(state.nic_mark_at_ps, signal.now_ps, state.last_rtt_ps)
    if state.level >= params.nic_target_level:
        if has_time:
            excess = float(state.level - params.nic_target_level) / max(state.level, 1)
            new = old * (1.0 - min(params.nic_decrease * excess, params.nic_max_decrease))
    elif signal.arrived_bytes > 0 and (has_time or state.nic_was_cut or params.nic_each_ack):
        new = old + params.nic_increase_packets
    if not params.nic_each_ack:
        new = float(math.floor(new + 0.5))
    new = within(new, params.nic_min_packets, params.nic_max_packets)
    if new < old or new <= params.nic_min_packets:
        state.nic_mark_at_ps = signal.now_ps
        state.nic_was_cut = True
    elif new > old and not params.nic_each_ack:
        state.nic_mark_at_ps = signal.now_ps
        state.nic_was_cut = False
    state.nic_packets = new


def has_passed(last_at_ps: int, now_ps: int, rtt_ps: float) -> bool:
    """Whether a round trip has passed."""
    return last_at_ps == OFF or float(now_ps - last_at_ps) >= rtt_ps


def within(value: float, lowest: float, highest: float) -> float:
    """A value between two limits."""
    return min(max(value, lowest), highest)


def obey(params: Params, state: State, signal: Signal) -> None:
    """Set window, rate and timeout.

    Below a packet, one packet is in flight, with an RTT / window between two packets.
    """
    window = min(state.fabric_packets, state.nic_packets)
    if params.sequence_packets > 0:
        window = min(window, float(params.sequence_packets))
    line_bps = float(signal.line_rate_bps)
    state.window_bytes = max(window, 1.0) * signal.mtu_bytes
    state.rate_bps = line_bps
    if window < 1.0:
        paced_bps = window * signal.mtu_bytes * PS_PER_BYTE_SECOND / state.last_rtt_ps
        state.rate_bps = min(paced_bps, line_bps)
    state.timeout_ps = max(int(params.timeout_rtts * state.smoothed_rtt_ps), params.min_timeout_ps)


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK, Kind.NAK, Kind.TIMEOUT}),
    moves_departures=True,
    needs=frozenset({"rtt"}),
    source="OCP-NET-Falcon 0.9, section 10.3; github.com/google/isekai",
    variants={
        # The defaults above: the first generation, as isekai has it.
        "isekai": {},
        # The second generation, as isekai has it, on one path: windows of the NIC as those of the fabric.
        "isekai-gen2": {"nic_each_ack": True},
        # Where the text of the specification differs from isekai.
        "spec": {"each_timeout_cuts": True},
    },
)
