"""CUBIC: a window that grows as the cube of the time since the last loss, with a timeout of its own.

Source: RFC 9438, sections 4.2 to 4.8 (window in packets, time in seconds); RFC 6298, section 2, for the timeout;
RFC 5681 for slow start. In recovery, until what was sent before the loss is acknowledged, the window stays.
Leaves out: HyStart++, PRR, RACK and TLP, spurious losses, ECN. The cut takes the window, not the flight size.
"""

from __future__ import annotations

import math

from weftwork.policies.interface import OFF, CongestionControl, Kind, SenderState, Signal, row


class Params:
    initial: float = row(default=10, minimum=1, source="RFC 6928", text="First window, packets.")
    beta: float = row(default=0.7, minimum=0.1, maximum=0.99, source="RFC 9438, 4.6", text="Part that a cut leaves.")
    c: float = row(default=0.4, minimum=0.0001, source="RFC 9438, section 5", text="C, packets per cubic second.")
    fast_convergence: bool = row(default=True, source="RFC 9438, 4.7", text="Whether a flow in decline gives way.")
    first_timeout_ps: int = row(default="1s", minimum=1, source="RFC 6298, 2.1", text="Timeout before the first RTT.")
    min_timeout_ps: int = row(default="200ms", minimum=1, source="Linux, TCP_RTO_MIN", text="Smallest timeout.")
    max_timeout_ps: int = row(default="60s", minimum=1, source="RFC 6298, 2.5", text="Largest timeout.")


class State(SenderState):
    window: float  # packets
    threshold: float = 1e15  # slow start below
    high_seq: int
    recover_seq: int
    in_recovery: bool
    before: float  # window before the last cut
    peak: float  # W_max; 0: the epoch begins at it
    k_s: float
    estimate: float  # W_est
    epoch_at_ps: int = OFF
    smoothed_ps: float
    variation_ps: float


def measure(params: Params, state: State, signal: Signal) -> None:
    """SRTT, RTTVAR and RTO; a new sample ends the doubling (RFC 6298, 2.2 to 2.4 and 5.7)."""
    rtt_ps = float(signal.rtt_ps)
    if state.smoothed_ps == 0.0:
        state.smoothed_ps = rtt_ps
        state.variation_ps = rtt_ps / 2.0
    else:
        state.variation_ps = 0.75 * state.variation_ps + 0.25 * abs(state.smoothed_ps - rtt_ps)
        state.smoothed_ps = 0.875 * state.smoothed_ps + 0.125 * rtt_ps
    timeout_ps = int(state.smoothed_ps + 4.0 * state.variation_ps)
    state.timeout_ps = min(max(timeout_ps, params.min_timeout_ps), params.max_timeout_ps)


def begin(params: Params, state: State, signal: Signal) -> None:
    """Begin an epoch of congestion avoidance."""
    state.epoch_at_ps = signal.now_ps
    state.estimate = state.window
    state.k_s = 0.0
    if state.peak > state.window:
        state.k_s = math.exp(math.log((state.peak - state.window) / params.c) / 3.0)
    else:
        state.peak = state.window


def cubic(params: Params, state: State, time_s: float) -> float:
    off_s = time_s - state.k_s
    return params.c * off_s * off_s * off_s + state.peak  # figure 1


def avoid(params: Params, state: State, signal: Signal, packets: float) -> None:
    """Congestion avoidance: the cube, or Reno's window where that is larger (sections 4.2 to 4.5)."""
    if state.epoch_at_ps == OFF:
        begin(params, state, signal)
    time_s = float(signal.now_ps - state.epoch_at_ps) / 1e12
    alpha = 3.0 * (1.0 - params.beta) / (1.0 + params.beta) if state.estimate < state.before else 1.0
    state.estimate += alpha * packets / state.window
    if cubic(params, state, time_s) < state.estimate:
        state.window = max(state.window, state.estimate)
        return
    later = cubic(params, state, time_s + state.smoothed_ps / 1e12)
    target = min(max(later, state.window), 1.5 * state.window)
    state.window += (target - state.window) / state.window * packets


def cut(params: Params, state: State) -> None:
    state.before = state.window
    is_declining = params.fast_convergence and state.window < state.peak
    state.peak = state.window * (1.0 + params.beta) / 2.0 if is_declining else state.window
    state.threshold = max(state.window * params.beta, 2.0)
    state.epoch_at_ps = OFF


def acknowledge(params: Params, state: State, signal: Signal) -> None:
    if signal.rtt_ps > 0:
        measure(params, state, signal)
    if signal.seq >= state.recover_seq:
        state.in_recovery = False
    flight_bytes = signal.inflight_bytes + signal.arrived_bytes + signal.mtu_bytes
    if state.in_recovery or signal.arrived_bytes == 0 or flight_bytes < state.window_bytes:
        return  # the last one: the window did not hold the sender back (section 5.8)
    packets = float(signal.arrived_bytes) / signal.mtu_bytes
    if state.window < state.threshold:
        state.window += packets
    else:
        avoid(params, state, signal, packets)


def step(params: Params, state: State, signal: Signal) -> None:
    state.high_seq = max(state.high_seq, signal.next_seq)
    if signal.kind == Kind.START:
        state.window = params.initial
        state.timeout_ps = params.first_timeout_ps
    elif signal.kind == Kind.ACK:
        acknowledge(params, state, signal)
    elif signal.kind == Kind.NAK and not state.in_recovery:
        cut(params, state)
        state.window = state.threshold
        state.in_recovery = True
        state.recover_seq = state.high_seq
    elif signal.kind == Kind.TIMEOUT:
        cut(params, state)
        state.peak = 0.0  # K = 0 and W_max the window where avoidance begins (section 4.8)
        state.window = 1.0
        state.in_recovery = False
        state.timeout_ps = min(2 * state.timeout_ps, params.max_timeout_ps)  # RFC 6298, 5.5
    state.window_bytes = state.window * signal.mtu_bytes


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.SEND, Kind.ACK, Kind.NAK, Kind.TIMEOUT}),
    needs=frozenset({"rtt"}),
    source="RFC 9438",
)
