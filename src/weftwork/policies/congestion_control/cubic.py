"""CUBIC: the window grows as a cube of time since the last loss.

It never grows more slowly than Reno's.
Source: RFC 9438, sections 4.2 to 4.8; Linux, net/ipv4/tcp_cubic.c 2.3 (HyStart, and what each row says); RFC 6298
(timeout); RFC 6582 and RFC 6675 (one cut per window of data, SACK); RFC 5681 and RFC 6928 (slow start).
Leaves out: the handshake; delayed ACKs beyond the transport's `ack_every`; HyStart++; PRR, RACK and tail-loss probes;
ECN; packets that were cut; spurious losses; Linux's clock of a millisecond.

Windows count packets of `mtu` payload, time is in seconds. Recovery, lost packets and timeout are those of reno.py. At
the round trips of a data centre the cube is flat for milliseconds, and the window is Reno's with a smaller cut.
"""

from __future__ import annotations

import math

from weftwork.policies.interface import OFF, CongestionControl, Kind, Signal, row
from weftwork.policies.parts.retransmission_timer import (
    FIRST_TIMEOUT,
    MAX_TIMEOUT,
    MIN_TIMEOUT,
    TIMEOUT_ABOVE_RTT,
    measure,
)
from weftwork.policies.parts.tcp_window import (
    FEWEST,
    IDLE_RESTART,
    INITIAL_BYTES,
    INITIAL_PACKETS,
    SLOW_START_PACKETS,
    WindowState,
    acknowledge,
    begin,
    collapse,
    enter_recovery,
    first_window,
    is_filled,
    is_loss_new,
    slow_start,
)

__all__ = ["PLUGIN", "Params", "State", "step"]

PS_PER_S = 1e12
LARGEST_STEP = 1.5  # RFC 9438, section 4.2: the target is at most half as much again as the window
FEWEST_ACKS = 2.0  # Linux, tcp_cubic.c: the same, as ACKs for one packet
ACKS_BEFORE_LOSS = 20.0  # Linux, tcp_cubic.c: as long as there is no peak, a twentieth in a round trip at least
ACKS_ON_PLATEAU = 100.0  # Linux, tcp_cubic.c: above the cube, a packet in a hundred round trips
TRAIN_GAP_PS = 2_000_000_000  # Linux, tcp_cubic.c, hystart_ack_delta_us: ACKs of one train are at most 2 ms apart
ROUND_SAMPLES = 8  # Linux, tcp_cubic.c, HYSTART_MIN_SAMPLES
LEAST_RISE_PS = 4_000_000_000.0  # Linux, tcp_cubic.c, HYSTART_DELAY_MIN
MOST_RISE_PS = 16_000_000_000.0  # Linux, tcp_cubic.c, HYSTART_DELAY_MAX


class Params:
    """Windows in packets and a cube in seconds; neither needs a scale."""

    beta: float = row(
        default=717 / 1024,
        minimum=0.1,
        maximum=0.99,
        source="Linux, tcp_cubic.c: 717 / 1024; RFC 9438, section 4.6: 0.7",
        text="Part of the window that a cut leaves.",
    )
    c: float = row(
        default=0.4, minimum=0.0001, source="RFC 9438, section 5", text="C of the cube, packets per cubic second."
    )
    fast_convergence: bool = row(
        default=True,
        source="RFC 9438, section 4.7",
        text="A flow that is cut below its last peak aims lower than this peak.",
    )
    reno_alpha_rises: bool = row(
        default=False,
        source="false: Linux, tcp_cubic.c; true: RFC 9438, section 4.3",
        text="Above the window before the last cut, the estimate of Reno's window grows by a whole packet.",
    )
    whole_windows: bool = row(
        default=True,
        source="true: Linux, tcp_cubic.c; false: RFC 9438",
        text="Window, peak and cube are rounded down to packets; the window then is at its peak a second early.",
    )
    hystart: bool = row(
        default=True,
        source="true: Linux, tcp_cubic.c; false: RFC 9438, section 4.10, wants HyStart++, which is left out",
        text="Slow start ends when ACKs or delays of a round trip say that the path is full.",
    )
    hystart_packets: float = row(
        default=16.0, minimum=1, source="Linux, tcp_cubic.c, hystart_low_window", text="HyStart looks from this window."
    )
    initial_packets: float = INITIAL_PACKETS
    initial_bytes: int = INITIAL_BYTES
    slow_start_packets: float = SLOW_START_PACKETS
    cut_takes_flight: bool = row(
        default=False,
        source="false: Linux, tcp_cubic.c; true: RFC 9438, section 4.6",
        text="Whether a loss cuts unacknowledged bytes by beta; if false, it cuts the window.",
    )
    idle_restart: bool = IDLE_RESTART
    first_timeout_ps: int = FIRST_TIMEOUT
    min_timeout_ps: int = MIN_TIMEOUT
    timeout_above_rtt: bool = TIMEOUT_ABOVE_RTT
    max_timeout_ps: int = MAX_TIMEOUT


class State(WindowState):
    """One sending queue pair; windows in packets."""

    least_rtt_ps: float  # 0: not known
    epoch_at_ps: int = OFF  # when this congestion avoidance began
    before: float  # cwnd_prior
    peak: float  # W_max; 0: no loss yet, or none since a timeout
    k_s: float
    origin: float  # the cube's plateau
    estimate: float  # W_est, what Reno would have
    round_seq: int  # HyStart: where this round trip ends
    round_at_ps: int
    train_at_ps: int  # last ACK of the train
    round_rtt_ps: float
    samples: int
    is_found: bool  # HyStart has ended slow start


def step(params: Params, state: State, signal: Signal) -> None:
    """Set the window and the timeout."""
    state.high_seq = max(state.high_seq, signal.next_seq)
    if signal.kind == Kind.START:
        start(params, state, signal)
    elif signal.kind == Kind.RESUME:
        resume(params, state, signal)
    elif signal.kind == Kind.SEND:
        state.sent_at_ps = signal.now_ps
    elif signal.kind == Kind.ACK:
        react(params, state, signal)
    elif signal.kind == Kind.NAK:
        lose(params, state, signal)
    elif signal.kind == Kind.TIMEOUT:
        time_out(params, state, signal)
    state.window_bytes = state.window * signal.mtu_bytes


def start(params: Params, state: State, signal: Signal) -> None:
    """Begin with the first window and the RTT of an empty path.

    A handshake would have measured this RTT.
    """
    begin(params, state, signal)
    begin_round(state, signal)


def resume(params: Params, state: State, signal: Signal) -> None:
    """Leave silence out of the cube's time (section 5.8).

    After a long silence begin again (RFC 5681, section 4.1).
    """
    if state.sent_at_ps == OFF:
        return
    idle_ps = signal.now_ps - state.sent_at_ps
    if state.epoch_at_ps != OFF:
        state.epoch_at_ps += idle_ps
    if params.idle_restart and idle_ps > state.timeout_ps:
        state.window = min(state.window, first_window(params, signal))


def react(params: Params, state: State, signal: Signal) -> None:
    """Count arrivals and losses; grow if nothing holds the sender back.

    Recovery or the sender itself may hold it back.
    """
    acknowledge(state, signal)
    if signal.rtt_ps > 0:
        measure(params, state, float(signal.rtt_ps))
        look(params, state, signal)
    if signal.lost_bytes > 0:
        lose(params, state, signal)
    elif not state.in_recovery and signal.arrived_bytes > 0 and is_filled(state, signal):
        grow(params, state, signal, float(signal.arrived_bytes) / signal.mtu_bytes)


def look(params: Params, state: State, signal: Signal) -> None:
    """Keep the least RTT, and end slow start by HyStart (Linux, tcp_cubic.c).

    HyStart looks for a long train of ACKs or a risen RTT.
    """
    rtt_ps = float(signal.rtt_ps)
    if state.least_rtt_ps == 0.0 or rtt_ps < state.least_rtt_ps:
        state.least_rtt_ps = rtt_ps
    is_slow = state.window < state.threshold and not state.in_recovery
    if not params.hystart or state.is_found or not is_slow or state.window < params.hystart_packets:
        return
    if signal.seq > state.round_seq:
        begin_round(state, signal)
    if signal.now_ps - state.train_at_ps <= TRAIN_GAP_PS:
        state.train_at_ps = signal.now_ps
        state.is_found = float(signal.now_ps - state.round_at_ps) > state.least_rtt_ps / 2.0
    if state.round_rtt_ps == 0.0 or rtt_ps < state.round_rtt_ps:
        state.round_rtt_ps = rtt_ps
    rise_ps = min(max(state.least_rtt_ps / 8.0, LEAST_RISE_PS), MOST_RISE_PS)
    if state.samples < ROUND_SAMPLES:
        state.samples += 1
    elif state.round_rtt_ps > state.least_rtt_ps + rise_ps:
        state.is_found = True
    if state.is_found:
        state.threshold = state.window


def begin_round(state: State, signal: Signal) -> None:
    """Begin a round trip of HyStart."""
    state.round_at_ps = signal.now_ps
    state.train_at_ps = signal.now_ps
    state.round_seq = state.high_seq
    state.round_rtt_ps = 0.0
    state.samples = 0


def grow(params: Params, state: State, signal: Signal, packets: float) -> None:
    """Slow start, or congestion avoidance (sections 4.2 to 4.5)."""
    if slow_start(params, state, packets):
        return
    if state.epoch_at_ps == OFF:
        begin_epoch(params, state, signal)
    time_s = float(signal.now_ps - state.epoch_at_ps) / PS_PER_S
    alpha = 3.0 * (1.0 - params.beta) / (1.0 + params.beta)
    if params.reno_alpha_rises and state.estimate >= state.before:
        alpha = 1.0
    state.estimate += alpha * packets / whole(params, state.window)
    if params.whole_windows:
        avoid_by_counting(params, state, packets, time_s)
    else:
        avoid(params, state, packets, time_s)


def avoid(params: Params, state: State, packets: float, time_s: float) -> None:
    """Follow the cube, or Reno if Reno is faster (sections 4.3 to 4.5).

    The cube is taken a round trip ahead.
    """
    if cube(params, state, time_s) < state.estimate:
        state.window = max(state.estimate, state.window)
        return
    ahead = cube(params, state, time_s + state.smoothed_ps / PS_PER_S)
    target = min(max(ahead, state.window), LARGEST_STEP * state.window)
    state.window += (target - state.window) / state.window * packets


def avoid_by_counting(params: Params, state: State, packets: float, time_s: float) -> None:
    """Count ACKs to grow by one packet (Linux, tcp_cubic.c, bictcp_update)."""
    window = float(math.floor(state.window))
    gap = cube(params, state, time_s + state.least_rtt_ps / PS_PER_S) - window
    acks = float(math.floor(window / gap)) if gap > 0.0 else ACKS_ON_PLATEAU * window
    if state.peak == 0.0:
        acks = min(acks, ACKS_BEFORE_LOSS)
    behind = float(math.floor(state.estimate)) - window
    if behind > 0.0:
        acks = min(acks, float(math.floor(window / behind)))
    state.window += packets / max(acks, FEWEST_ACKS)


def whole(params: Params, packets: float) -> float:
    """Round down if windows are whole numbers."""
    return float(math.floor(packets)) if params.whole_windows else packets


def begin_epoch(params: Params, state: State, signal: Signal) -> None:
    """Begin congestion avoidance and compute K (figure 2).

    K is the time at which the cube is at the last peak again.
    """
    window = whole(params, state.window)
    state.epoch_at_ps = signal.now_ps
    state.estimate = window
    state.k_s = 0.0
    state.origin = window
    if state.peak > window:
        state.k_s = math.exp(math.log((state.peak - window) / params.c) / 3.0)
        state.origin = state.peak


def cube(params: Params, state: State, time_s: float) -> float:
    """W_cubic (figure 1), with a rounded distance from the plateau."""
    off_s = abs(time_s - state.k_s)
    distance = whole(params, params.c * off_s * off_s * off_s)
    return state.origin - distance if time_s < state.k_s else state.origin + distance


def cut(params: Params, state: State) -> None:
    """Remember the peak and lower the threshold (sections 4.6 and 4.7)."""
    window = whole(params, state.window)
    state.before = window
    is_declining = params.fast_convergence and window < state.peak
    state.peak = whole(params, window * (1.0 + params.beta) / 2.0) if is_declining else window
    before = float(state.high_seq - state.acked_seq) if params.cut_takes_flight else window
    state.threshold = max(whole(params, before * params.beta), FEWEST)
    state.epoch_at_ps = OFF


def lose(params: Params, state: State, signal: Signal) -> None:
    """Cut once per window of data (RFC 6582, RFC 6675).

    The window holds until all of the data is acknowledged.
    """
    if is_loss_new(state, signal):
        cut(params, state)
        enter_recovery(state)


def time_out(params: Params, state: State, signal: Signal) -> None:
    """Fall to one packet, forget the peak, and double the timeout.

    Source: section 4.8; RFC 6298, section 5.5.
    """
    if state.timeouts == 0:  # RFC 5681, section 3.1: what is lost again does not lower the threshold again
        cut(params, state)
    state.peak = 0.0
    state.least_rtt_ps = 0.0
    state.is_found = False
    collapse(params, state)
    begin_round(state, signal)


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.RESUME, Kind.SEND, Kind.ACK, Kind.NAK, Kind.TIMEOUT}),
    is_loss_based=True,
    needs=frozenset({"rtt"}),
    source="RFC 9438; Linux, net/ipv4/tcp_cubic.c 2.3",
    variants={
        # What hosts run: the defaults above.
        "linux": {},
        # The letter of the standard.
        "rfc-9438": {
            "beta": 0.7,
            "reno_alpha_rises": True,
            "whole_windows": False,
            "hystart": False,
            "initial_bytes": 14_600,
            "slow_start_packets": 2.0,
            "cut_takes_flight": True,
            "min_timeout_ps": "1s",
            "timeout_above_rtt": False,
            "max_timeout_ps": "60s",
        },
    },
)
