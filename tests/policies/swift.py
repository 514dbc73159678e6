"""Swift: a target delay for the fabric and one for the receiving host, each with its window; the smaller one holds.

Source: Kumar et al., SIGCOMM 2020, doi:10.1145/3387514.3406591, sections 3.1 to 3.6; constants of google/isekai
(Falcon's simulator) and OCP-NET-Falcon 0.9, section 10.3, where the paper gives none.
Leaves out: loss recovery, which is the transport's, and the delay of the sending host.
"""

from __future__ import annotations

import math

from weftwork.policies.interface import OFF, CongestionControl, Kind, SenderState, Signal, row


class Params:
    increase: float = row(default=1, minimum=0, source="isekai, ai", text="Packets per round trip.")
    gain: float = row(default=0.8, minimum=0, source="isekai, beta", text="Of the relative excess of the delay.")
    max_decrease: float = row(default=0.5, minimum=0, maximum=0.99, source="isekai, mdf", text="Largest cut.")
    base_target_ps: int = row(default="25us", minimum=0, source="isekai", text="Target of a path without switches.")
    hop_target_ps: int = row(default="1us", minimum=0, source="isekai", text="Target of each switch on the way.")
    host_target_ps: int = row(default="25us", minimum=1, source="chosen: as base_target", text="Target in the host.")
    scaling_ps: int = row(default="100us", minimum=0, source="isekai", text="Most that a small window adds.")
    scaling_min: float = row(default=0.1, minimum=0.001, source="isekai", text="Window that gets all of it, packets.")
    scaling_max: float = row(default=256, minimum=1, source="isekai", text="Window that gets none of it, packets.")
    initial: float = row(default=32, minimum=0.001, source="isekai", text="First windows, packets.")
    smallest: float = row(default=0.01, minimum=0.0001, source="isekai", text="Smallest windows, packets.")
    largest: float = row(default=256, minimum=1, source="isekai", text="Largest windows, packets.")
    reset_after: int = row(default=3, minimum=1, source="isekai", text="Timeouts in a row that end in the smallest.")
    old_rtt: float = row(default=0.75, minimum=0, maximum=1, source="isekai", text="Weight of the old smoothed RTT.")
    timeout_rtts: float = row(default=2, minimum=1, source="isekai", text="Smoothed RTTs of a timeout.")
    min_timeout_ps: int = row(default="1ms", minimum=1, source="isekai", text="Smallest timeout, and the first.")


class State(SenderState):
    fabric_window: float  # packets
    host_window: float
    fabric_cut_at_ps: int = OFF
    host_cut_at_ps: int = OFF
    rtt_ps: int
    smoothed_ps: float
    timeouts: int


def target_ps(params: Params, state: State, hops: int) -> float:
    """Give the fabric's target: base, hops, and more for small windows (section 3.5)."""
    top = 1.0 / math.sqrt(params.scaling_min)
    low = 1.0 / math.sqrt(params.scaling_max)
    share = (1.0 / math.sqrt(state.fabric_window) - low) / max(top - low, 1e-9)
    scaled = float(params.scaling_ps) * min(max(share, 0.0), 1.0)
    return float(params.base_target_ps) + float(params.hop_target_ps * hops) + scaled


def grown(params: Params, window: float, packets: float) -> float:
    return window + params.increase * packets / max(window, 1.0)


def cut(params: Params, window: float, delay_ps: float, goal_ps: float) -> float:
    return window * max(1.0 - params.gain * (delay_ps - goal_ps) / delay_ps, 1.0 - params.max_decrease)


def may_cut(last_at_ps: int, signal: Signal, rtt_ps: int) -> bool:
    return last_at_ps == OFF or signal.now_ps - last_at_ps >= rtt_ps


def measure(params: Params, state: State, signal: Signal) -> None:
    if state.smoothed_ps == 0.0:
        state.smoothed_ps = float(signal.rtt_ps)
    state.smoothed_ps = params.old_rtt * state.smoothed_ps + (1.0 - params.old_rtt) * signal.rtt_ps
    state.rtt_ps = signal.rtt_ps
    state.timeout_ps = max(int(params.timeout_rtts * state.smoothed_ps), params.min_timeout_ps)


def acknowledge(params: Params, state: State, signal: Signal) -> None:
    packets = float(signal.arrived_bytes) / signal.mtu_bytes
    goal_ps = target_ps(params, state, signal.hops)
    delay_ps = float(signal.fabric_delay_ps)
    if delay_ps < goal_ps:
        state.fabric_window = grown(params, state.fabric_window, packets)
    elif may_cut(state.fabric_cut_at_ps, signal, signal.rtt_ps):
        state.fabric_window = cut(params, state.fabric_window, delay_ps, goal_ps)
        state.fabric_cut_at_ps = signal.now_ps
    host_goal_ps = float(params.host_target_ps)
    host_ps = float(signal.host_delay_ps)
    if host_ps < host_goal_ps:
        state.host_window = grown(params, state.host_window, packets)
    elif may_cut(state.host_cut_at_ps, signal, signal.rtt_ps):
        state.host_window = cut(params, state.host_window, host_ps, host_goal_ps)
        state.host_cut_at_ps = signal.now_ps


def lose(params: Params, state: State, signal: Signal) -> None:
    """Cut once in a round trip; the smallest window after several timeouts (section 3.4)."""
    if signal.kind == Kind.TIMEOUT:
        state.timeouts += 1
    if state.timeouts >= params.reset_after:
        state.fabric_window = params.smallest
    elif may_cut(state.fabric_cut_at_ps, signal, state.rtt_ps):
        state.fabric_window = state.fabric_window * (1.0 - params.max_decrease)
        state.fabric_cut_at_ps = signal.now_ps


def obey(params: Params, state: State, signal: Signal) -> None:
    """Set window and rate: below one packet it is one packet in flight, and rtt / window from one to the next."""
    state.fabric_window = min(max(state.fabric_window, params.smallest), params.largest)
    state.host_window = min(max(state.host_window, params.smallest), params.largest)
    window = min(state.fabric_window, state.host_window)
    state.window_bytes = max(window, 1.0) * signal.mtu_bytes
    state.rate_bps = float(signal.line_rate_bps)
    if window < 1.0:
        paced_bps = window * signal.mtu_bytes * 8e12 / float(max(state.rtt_ps, signal.base_rtt_ps, 1))
        state.rate_bps = min(paced_bps, state.rate_bps)


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.START:
        state.fabric_window = params.initial
        state.host_window = params.initial
        state.rtt_ps = signal.base_rtt_ps
        state.timeout_ps = params.min_timeout_ps
    elif signal.kind == Kind.ACK:
        if signal.arrived_bytes > 0:
            state.timeouts = 0
        if signal.rtt_ps > 0:
            measure(params, state, signal)
            acknowledge(params, state, signal)
    elif signal.kind == Kind.NAK or signal.kind == Kind.TIMEOUT:  # noqa: PLR1714 - 'in' does not compile
        lose(params, state, signal)
    obey(params, state, signal)


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK, Kind.NAK, Kind.TIMEOUT}),
    moves_departures=True,
    needs=frozenset({"rtt"}),
    source="doi:10.1145/3387514.3406591",
)
