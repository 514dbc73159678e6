"""NSCC: the sender's congestion control of Ultra Ethernet, by marks and delay together, and by packets that were cut.

Source: UEC specification 1.0.3, section 3.6.13, table 3-82, as ultraethernet/uet-htsim, htsim/sim/uec.cpp, has it.
Bytes are counted as the signals tell that they have arrived, beyond gaps too (SACK).
Leaves out: the receiver's penalty (rcv_cwnd_pend), SLEEK, and RTTs of packets that were sent twice being left aside
(an ACK echoes the send time of the copy that arrived).
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, SenderState, Signal, row

SCALE_BYTES = 150_000.0  # 100 Gb/s x 12 us: section 3.6.13, what the gains are meant for
SCALE_PS = 12e6
NEAR_PS = 1_000_000.0  # uec.cpp: a delay below 1 us is none


class Params:
    largest: float = row(default=1.5, minimum=0.1, source="table 3-82", text="Largest window, and the first, in BDPs.")
    target: float = row(default=0.75, minimum=0.01, source="uec.cpp, with trimming", text="Target delay in base RTTs.")
    decrease: float = row(default=0.8, minimum=0, maximum=1, source="table 3-82, gamma", text="Gain of a cut.")
    max_cut: float = row(default=0.5, minimum=0, maximum=1, source="table 3-82", text="Least part that a cut leaves.")
    delay_gain: float = row(default=0.0125, minimum=0.0001, maximum=1, source="uec.cpp", text="Of the average delay.")
    proportional: float = row(default=4, minimum=0, source="table 3-82, alpha", text="Packets per RTT at no delay.")
    fair: float = row(default=5, minimum=0, source="table 3-82, fi", text="Packets per RTT of the fair increase.")
    fast: float = row(default=0.25, minimum=0, source="table 3-82, fi_scale", text="Window per byte, fast increase.")
    steady: float = row(default=0.15, minimum=0, source="table 3-82, eta", text="Packets per RTT in any case.")
    quick_part: float = row(default=8, minimum=1, source="uec.cpp, gate 3", text="Quick adapt below largest / this.")
    quick_delay: float = row(default=4, minimum=0, source="uec.cpp", text="Delay for quick adapt, in targets.")
    adjust_packets: int = row(default=8, minimum=1, source="table 3-82", text="Arrivals between two adjustments.")
    with_credit: bool = row(
        default=False, source="uec.cpp", text="Whether receivers' credit minds cuts at the last hop."
    )


class State(SenderState):
    cwnd_bytes: float
    increase: float  # bytes times bytes, divided by the window when it is put into effect
    since_adjusted: float
    achieved: float  # bytes that have arrived in this period of quick adapt
    delay_ps: float  # average
    least_ps: int  # RTT
    cut_at_ps: int = OFF
    adjusted_at_ps: int
    steady_at_ps: int
    period_ends_at_ps: int
    is_alarmed: bool  # a cut packet or a loss in this period
    ignored: float  # bytes of which the feedback is still to be ignored
    calm: float  # bytes that arrived without delay, in a row


def network_ps(signal: Signal) -> float:
    """Give the base RTT of the whole network, T."""
    return float(max(signal.fabric_base_rtt_ps, signal.base_rtt_ps, 1))


def bdp_bytes(signal: Signal) -> float:
    return float(signal.line_rate_bps) * network_ps(signal) / 8e12


def average(params: Params, state: State, sample_ps: float) -> None:
    state.delay_ps += params.delay_gain * (sample_ps - state.delay_ps)


def adapt(params: Params, state: State, signal: Signal, late_ps: float) -> bool:
    """Quick adapt: after a bad period the window is what has arrived in it."""
    target_ps = params.target * network_ps(signal)
    if signal.now_ps < state.period_ends_at_ps:
        return False
    is_bad = late_ps > params.quick_delay * target_ps or bool(state.is_alarmed)
    acts = is_bad and state.achieved < params.largest * bdp_bytes(signal) / params.quick_part
    if acts:
        state.cwnd_bytes = max(state.achieved, float(signal.mtu_bytes))
        state.ignored = float(signal.inflight_bytes)
        state.increase = 0.0
    state.is_alarmed = False
    state.achieved = 0.0
    state.period_ends_at_ps = signal.now_ps + int(network_ps(signal) + target_ps)
    return acts


def fulfil(params: Params, state: State, signal: Signal) -> None:
    """Put what was gathered into the window, every few packets or once in a round trip."""
    period_ps = int(network_ps(signal))
    few = state.since_adjusted <= params.adjust_packets * signal.mtu_bytes
    if few and signal.now_ps - state.adjusted_at_ps <= period_ps:
        return
    state.cwnd_bytes += state.increase / state.cwnd_bytes
    state.increase = 0.0
    state.since_adjusted = 0.0
    state.adjusted_at_ps = signal.now_ps
    if signal.now_ps - state.steady_at_ps > period_ps:
        state.cwnd_bytes += params.steady * signal.mtu_bytes * bdp_bytes(signal) / SCALE_BYTES
        state.steady_at_ps = signal.now_ps


def may_cut(state: State, signal: Signal) -> bool:
    return state.cut_at_ps == OFF or float(signal.now_ps - state.cut_at_ps) > network_ps(signal)


def quadrant(params: Params, state: State, signal: Signal, late_ps: float) -> None:
    """Mark or none, delay below the target or not: four answers (section 3.6.13)."""
    arrived = float(signal.arrived_bytes)
    mtu = float(signal.mtu_bytes)
    target_ps = params.target * network_ps(signal)
    a = bdp_bytes(signal) / SCALE_BYTES
    if late_ps >= NEAR_PS or signal.ecn == 1:
        state.calm = 0.0
    if signal.ecn == 0 and late_ps >= target_ps:
        state.increase += params.fair * mtu * a * arrived
    elif signal.ecn == 0:
        state.calm += arrived
        if state.calm > state.cwnd_bytes:
            state.cwnd_bytes += arrived * params.fast * a
        else:
            b = target_ps / SCALE_PS
            state.increase += params.proportional * mtu * a * b * arrived * (target_ps - late_ps) / target_ps
    elif late_ps >= target_ps and state.delay_ps > target_ps and may_cut(state, signal):
        left = 1.0 - params.decrease * (state.delay_ps - target_ps) / state.delay_ps
        state.cwnd_bytes = state.cwnd_bytes * max(left, params.max_cut)
        state.cut_at_ps = signal.now_ps


def acknowledge(params: Params, state: State, signal: Signal) -> None:
    if signal.lost_bytes > 0:
        lose(state, signal)
    if signal.arrived_bytes == 0:
        return
    late_ps = state.delay_ps
    if signal.rtt_ps > 0:
        state.least_ps = min(state.least_ps, signal.rtt_ps)
        late_ps = float(signal.rtt_ps - state.least_ps)
    is_odd = signal.ecn == 0 and late_ps > params.target * network_ps(signal)  # long, and no switch has marked it
    average(params, state, 0.25 * network_ps(signal) if is_odd else late_ps)
    state.achieved += signal.arrived_bytes
    state.since_adjusted += signal.arrived_bytes
    if adapt(params, state, signal, late_ps):
        return
    was_ignored = state.ignored > 0.0
    state.ignored = max(state.ignored - signal.arrived_bytes, 0.0)
    if not (was_ignored and signal.ecn == 1):
        quadrant(params, state, signal, late_ps)
        fulfil(params, state, signal)


def lose(state: State, signal: Signal) -> None:
    state.is_alarmed = True
    state.cwnd_bytes = max(state.cwnd_bytes - signal.lost_bytes, float(signal.mtu_bytes))


def trim(params: Params, state: State, signal: Signal) -> None:
    if params.with_credit and signal.last_hop == 1:
        return
    average(params, state, network_ps(signal))
    state.is_alarmed = True
    if adapt(params, state, signal, 0.0):
        return
    if state.ignored > 0.0:
        state.ignored = max(state.ignored - signal.lost_bytes, 0.0)
    else:
        state.cwnd_bytes -= signal.lost_bytes


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.START:
        state.cwnd_bytes = params.largest * bdp_bytes(signal)
        state.least_ps = signal.base_rtt_ps
        state.adjusted_at_ps = signal.now_ps
        state.steady_at_ps = signal.now_ps
        state.period_ends_at_ps = signal.now_ps + int((1.0 + params.target) * network_ps(signal))
    elif signal.kind == Kind.ACK:
        acknowledge(params, state, signal)
    elif signal.kind == Kind.TRIM:
        trim(params, state, signal)
    elif signal.kind == Kind.TIMEOUT:
        lose(state, signal)
    most_bytes = max(params.largest * bdp_bytes(signal), float(signal.mtu_bytes))
    state.cwnd_bytes = min(max(state.cwnd_bytes, float(signal.mtu_bytes)), most_bytes)
    state.window_bytes = state.cwnd_bytes


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK, Kind.TRIM, Kind.TIMEOUT}),
    needs=frozenset({"ecn", "rtt", "trimming"}),
    variants={"with-credit": {"with_credit": True}},
    source="UEC specification 1.0.3, section 3.6.13",
)
