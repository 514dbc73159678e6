"""NSCC, Ultra Ethernet: a window moved by marks, delay and trimmed packets.

Marks and delay act together; trimmed packets act at once.
Source: UEC specification 1.0.3, section 3.6.13 and table 3-82, as ultraethernet/uet-htsim (htsim/sim/uec.cpp) and a
public ns-3 model of it quote them; the specification itself was not read. What they say apart is told at each row.
Leaves out: the receiver's penalty (rcv_cwnd_pend), SLEEK, and leaving the RTTs of packets aside that were sent twice
(an echo tells when the copy was sent that has arrived). Windows count payload, those of uet-htsim frames: 1.5 % more.
Without trimming it runs where packets could be cut and queues are too long for it (``no-trimming``).

An ACK tells sender and receiver's state in bytes. Where each packet is answered, as selective repeat answers what comes
early, answers without a mark are taken together (`gather_packets`), as an Ultra Ethernet receiver sends them.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, SenderState, Signal, row

__all__ = ["PLUGIN", "Params", "State", "step"]

PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second
SCALE_BYTES = 150_000.0  # section 3.6.13.3: the constants are meant for 100 Gb/s x 12 us
SCALE_PS = 12e6
FAR_RTTS = 0.25  # uec.cpp, update_delay: what a long delay without a mark counts as, in base RTTs


class Params:
    """Parameters of NSCC.

    T is the longest base RTT of the fabric; a BDP is line rate x T, and a = BDP / 150,000 B.
    """

    largest_bdps: float = row(
        default=1.5,
        minimum=0.1,
        source="table 3-82, MaxWnd",
        text="Largest window, in BDPs of the least RTT seen.",
    )
    target_rtts: float = row(
        default=0.75,
        minimum=0.01,
        source="section 3.6.13.3, target_qdelay: 0.75 where switches trim, else 1",
        text="Target of the queueing delay, in T.",
    )
    alpha: float = row(
        default=4.0,
        minimum=0,
        source="section 3.6.13.3, alpha",
        text="Proportional increase: full packets x a x target / 12 us that a round trip adds without any delay.",
    )
    fair_packets: float = row(
        default=5.0, minimum=0, source="table 3-82, fi", text="Fair increase: full packets x a that a round trip adds."
    )
    fast_share: float = row(
        default=0.25,
        minimum=0,
        source="table 3-82, fi_scale",
        text="Fast increase: bytes x a for each byte that arrives after a whole window without delay.",
    )
    near_ps: int = row(
        default="1us",
        minimum=0,
        source="uec.cpp, fast_increase; the specification says about 0",
        text="A shorter queueing delay is none.",
    )
    eta_packets: float = row(
        default=0.15,
        minimum=0,
        source="table 3-82, eta",
        text="Full packets x a that are added once in T.",
    )
    gamma: float = row(
        default=0.8, minimum=0, maximum=1, source="table 3-82, gamma", text="Gain of the multiplicative decrease."
    )
    least_factor: float = row(
        default=0.5, minimum=0, maximum=1, source="table 3-82, max_md_jump", text="Least factor of one decrease."
    )
    delay_gain: float = row(
        default=0.0125,
        minimum=0.0001,
        maximum=1,
        source="uec.cpp, _delay_alpha; the specification averages over a base RTT",
        text="Weight of the newest delay in their average.",
    )
    adapt_part: float = row(
        default=8.0,
        minimum=1,
        source="table 3-82, qa_gate 3",
        text="Quick adapt acts if the bytes arrived in its period are below the largest window divided by this.",
    )
    adapt_targets: float = row(
        default=4.0,
        minimum=0,
        source="4: uec.cpp, qa_threshold, and the specification without trimming; 0: the specification with it",
        text="Delay from which quick adapt acts without a cut packet, in targets; 0: none.",
    )
    adjust_packets: int = row(
        default=8,
        minimum=1,
        source="table 3-82, adjust_bytes_threshold",
        text="Full packets that arrive between two changes of the window; after T a change comes anyway.",
    )
    gather_packets: int = row(
        default=4,
        minimum=1,
        source="uec.cpp, UecSink::_bytes_unacked_threshold 16,384",
        text="Full packets that one ACK without a mark covers.",
    )
    first_window_bytes: int = row(
        default=0, minimum=0, source="0: table 3-82; main_uec.cpp, -cwnd", text="First window; 0: the largest."
    )
    with_credit: bool = row(
        default=False,
        source="uec.cpp, updateCwndOnNack_NSCC: _receiver_based_cc",
        text="Receivers' credit minds packets cut at the last hop, and the window does not.",
    )


class State(SenderState):
    """One sending queue pair, with names of uec.cpp in parentheses."""

    cwnd_bytes: float
    gained: float  # (inc_bytes) bytes x bytes, divided by the window when it is put into effect
    since_adjusted_bytes: float  # (received_bytes)
    achieved_bytes: float  # that have arrived in this period of quick adapt
    gathered_bytes: float
    delay_ps: float  # (avg_delay)
    least_rtt_ps: int  # (base_rtt)
    decreased_at_ps: int = OFF
    adjusted_at_ps: int
    period_ends_at_ps: int = OFF
    is_alarmed: bool  # (trigger_qa) a packet was cut since quick adapt acted last
    to_ignore_bytes: float
    ignored_bytes: float
    near_bytes: float  # (fi_count)
    is_fast: bool  # (increase)


def step(params: Params, state: State, signal: Signal) -> None:
    """React to one signal and keep the window in its limits.

    The limits are a packet and the largest window.
    """
    if signal.kind == Kind.START:
        state.least_rtt_ps = max(signal.fabric_base_rtt_ps, signal.base_rtt_ps, 1)
        state.cwnd_bytes = largest_bytes(params, state, signal)
        if params.first_window_bytes > 0:
            state.cwnd_bytes = float(params.first_window_bytes)
        state.adjusted_at_ps = signal.now_ps
    elif signal.kind == Kind.ACK:
        gather(params, state, signal)
    elif signal.kind == Kind.TRIM:
        trim(params, state, signal)
    elif signal.kind == Kind.TIMEOUT:
        state.cwnd_bytes -= signal.lost_bytes
    bound(params, state, signal)
    state.window_bytes = state.cwnd_bytes


def network_ps(signal: Signal) -> float:
    """Return T, the base RTT of the whole network."""
    return float(max(signal.fabric_base_rtt_ps, signal.base_rtt_ps, 1))


def scale(signal: Signal) -> float:
    """Return a, the size of this network relative to the reference network.

    The constants are meant for the reference network.
    """
    return float(signal.line_rate_bps) * network_ps(signal) / PS_PER_BYTE_SECOND / SCALE_BYTES


def largest_bytes(params: Params, state: State, signal: Signal) -> float:
    """Return the largest window, a number of BDPs of the least RTT."""
    return params.largest_bdps * float(signal.line_rate_bps) * float(state.least_rtt_ps) / PS_PER_BYTE_SECOND


def bound(params: Params, state: State, signal: Signal) -> None:
    """Keep the window between a packet and the largest."""
    mtu_bytes = float(signal.mtu_bytes)
    state.cwnd_bytes = max(min(state.cwnd_bytes, largest_bytes(params, state, signal)), mtu_bytes)


def gather(params: Params, state: State, signal: Signal) -> None:
    """Count arrivals; react to a mark at once, else every few packets."""
    if signal.rtt_ps > 0:
        state.least_rtt_ps = min(state.least_rtt_ps, signal.rtt_ps)
    state.gathered_bytes += signal.arrived_bytes
    enough_bytes = params.gather_packets * signal.mtu_bytes
    if signal.ecn == 1 or state.gathered_bytes >= enough_bytes or signal.backlog_bytes + signal.inflight_bytes == 0:
        arrived_bytes = state.gathered_bytes
        state.gathered_bytes = 0.0
        acknowledge(params, state, signal, arrived_bytes)


def acknowledge(params: Params, state: State, signal: Signal, arrived_bytes: float) -> None:
    """Take an ACK: average delay, quick adapt, then one of four reactions.

    Bytes gathered before are then put into effect.
    """
    target_ps = params.target_rtts * network_ps(signal)
    state.achieved_bytes += arrived_bytes
    state.since_adjusted_bytes += arrived_bytes
    state.ignored_bytes += arrived_bytes
    late_ps = state.delay_ps
    if signal.rtt_ps > 0:
        late_ps = float(signal.rtt_ps - state.least_rtt_ps)
        is_odd = signal.ecn == 0 and late_ps > target_ps  # long, and no switch has marked it
        average(params, state, FAR_RTTS * float(state.least_rtt_ps) if is_odd else late_ps)
    if adapt(params, state, signal, late_ps):
        return
    if signal.ecn == 0 and late_ps >= target_ps:
        state.gained += params.fair_packets * float(signal.mtu_bytes) * scale(signal) * arrived_bytes
    elif signal.ecn == 0:
        increase(params, state, signal, late_ps, arrived_bytes)
    elif late_ps >= target_ps:
        decrease(params, state, signal)
    bound(params, state, signal)
    adjust(params, state, signal)


def average(params: Params, state: State, sample_ps: float) -> None:
    """Move the average delay towards a sample."""
    state.delay_ps = params.delay_gain * sample_ps + (1.0 - params.delay_gain) * state.delay_ps


def increase(params: Params, state: State, signal: Signal, late_ps: float, arrived_bytes: float) -> None:
    """Grow fast after a window without delay, else towards the target."""
    is_near = late_ps < float(params.near_ps)
    state.near_bytes = state.near_bytes + arrived_bytes if is_near else 0.0
    state.is_fast = is_near and (state.is_fast or state.near_bytes > state.cwnd_bytes)
    if state.is_fast:
        state.cwnd_bytes += params.fast_share * scale(signal) * arrived_bytes
    else:
        target_ps = params.target_rtts * network_ps(signal)
        most = params.alpha * float(signal.mtu_bytes) * scale(signal) * target_ps / SCALE_PS
        state.gained += most * (target_ps - late_ps) / target_ps * arrived_bytes


def decrease(params: Params, state: State, signal: Signal) -> None:
    """Cut by the excess of the average delay over the target.

    It cuts once in a base RTT.
    """
    state.is_fast = False
    state.near_bytes = 0.0
    target_ps = params.target_rtts * network_ps(signal)
    is_time = state.decreased_at_ps == OFF or signal.now_ps - state.decreased_at_ps > state.least_rtt_ps
    if state.delay_ps > target_ps and is_time:
        factor = 1.0 - params.gamma * (state.delay_ps - target_ps) / state.delay_ps
        state.cwnd_bytes = state.cwnd_bytes * max(factor, params.least_factor)
        state.decreased_at_ps = signal.now_ps


def adjust(params: Params, state: State, signal: Signal) -> None:
    """Apply gathered growth every few packets or once in T.

    A small growth follows in any case.
    """
    since_ps = float(signal.now_ps - state.adjusted_at_ps)
    period_ps = network_ps(signal)
    if state.since_adjusted_bytes > float(params.adjust_packets * signal.mtu_bytes) or since_ps > period_ps:
        state.cwnd_bytes += state.gained / state.cwnd_bytes
        if since_ps >= period_ps:
            state.cwnd_bytes += params.eta_packets * float(signal.mtu_bytes) * scale(signal)
            state.adjusted_at_ps = signal.now_ps
        state.gained = 0.0
        state.since_adjusted_bytes = 0.0


def adapt(params: Params, state: State, signal: Signal, late_ps: float) -> bool:
    """Quick adapt: after a bad period the window is the arrived payload.

    Marks of packets in flight are then ignored as old.
    """
    is_cut = signal.kind == Kind.TRIM
    target_ps = params.target_rtts * network_ps(signal)
    is_done = False
    if (is_cut or signal.ecn == 1) and state.ignored_bytes < state.to_ignore_bytes:
        is_done = True
    elif signal.now_ps > state.period_ends_at_ps:
        is_late = params.adapt_targets > 0.0 and late_ps > params.adapt_targets * target_ps
        is_low = state.achieved_bytes < largest_bytes(params, state, signal) / params.adapt_part
        if state.period_ends_at_ps != OFF and (state.is_alarmed or is_late) and is_low:
            state.cwnd_bytes = max(state.achieved_bytes, float(signal.mtu_bytes))
            state.to_ignore_bytes = float(signal.inflight_bytes + (signal.lost_bytes if is_cut else 0))
            state.ignored_bytes = 0.0
            state.is_alarmed = False
            is_done = True
        state.achieved_bytes = 0.0
        state.period_ends_at_ps = signal.now_ps + state.least_rtt_ps + int(target_ps)
    if is_done:
        state.gained = 0.0
        state.since_adjusted_bytes = 0.0
    return is_done


def trim(params: Params, state: State, signal: Signal) -> None:
    """Take a trimmed packet: delay T, quick adapt, or a smaller window.

    The window shrinks by the packet.
    """
    if signal.rtt_ps > 0:
        state.least_rtt_ps = min(state.least_rtt_ps, signal.rtt_ps)
    state.ignored_bytes += signal.lost_bytes
    average(params, state, network_ps(signal))
    state.is_alarmed = True
    is_done = adapt(params, state, signal, 0.0)
    if not is_done and not (params.with_credit and signal.last_hop == 1):
        state.cwnd_bytes -= signal.lost_bytes


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK, Kind.TRIM, Kind.TIMEOUT}),
    needs=frozenset({"ecn", "rtt", "trimming"}),
    source="UEC specification 1.0.3, section 3.6.13, table 3-82, as quoted in ultraethernet/uet-htsim",
    variants={
        # The defaults above: uet-htsim, htsim/sim/uec.cpp and main_uec.cpp, where switches trim.
        "uet-htsim": {},
        # The same where trimming is off: initNsccParams, trimming_enabled false.
        "no-trimming": {"target_rtts": 1.0},
        # Where RCCC is on too, which minds the last hop.
        "with-credit": {"with_credit": True},
        # Section 3.6.13.3 where switches trim, as the ns-3 model quotes it: only cut packets let quick adapt act.
        "table-3-82": {"adapt_targets": 0.0},
    },
)
