"""Reno: slow start, congestion avoidance, and half the window at a loss.

Source: RFC 5681, sections 3.1 and 3.2; RFC 3465 (two packets per ACK in slow start); RFC 6928 (first window). In
recovery, until what was sent before the loss is acknowledged (RFC 6582), the window stays.
Leaves out: a timeout of its own (cubic.py has it), PRR, delayed ACKs, inflation of the window in recovery.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, row


class Params:
    initial: float = row(default=10, minimum=1, source="RFC 6928", text="First window, packets.")


class State(SenderState):
    window: float  # packets
    threshold: float = 1e15  # slow start below
    high_seq: int
    recover_seq: int
    in_recovery: bool


def acknowledge(state: State, signal: Signal) -> None:
    if signal.seq >= state.recover_seq:
        state.in_recovery = False
    flight_bytes = signal.inflight_bytes + signal.arrived_bytes + signal.mtu_bytes
    if state.in_recovery or signal.arrived_bytes == 0 or flight_bytes < state.window_bytes:
        return  # the last one: the window did not hold the sender back (RFC 9293, 3.8.6)
    packets = float(signal.arrived_bytes) / signal.mtu_bytes
    if state.window < state.threshold:
        state.window += min(packets, 2.0)
    else:
        state.window += packets / state.window


def half_the_flight(signal: Signal) -> float:
    """Half of what was in flight before the loss, at least two packets (equation 4)."""
    return max(float(signal.inflight_bytes + signal.lost_bytes) / signal.mtu_bytes / 2.0, 2.0)


def step(params: Params, state: State, signal: Signal) -> None:
    state.high_seq = max(state.high_seq, signal.next_seq)
    if signal.kind == Kind.START:
        state.window = params.initial
    elif signal.kind == Kind.ACK:
        acknowledge(state, signal)
    elif signal.kind == Kind.NAK and not state.in_recovery:
        state.threshold = half_the_flight(signal)
        state.window = state.threshold
        state.in_recovery = True
        state.recover_seq = state.high_seq
    elif signal.kind == Kind.TIMEOUT:
        state.threshold = half_the_flight(signal)
        state.window = 1.0
        state.in_recovery = False
    state.window_bytes = state.window * signal.mtu_bytes


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.SEND, Kind.ACK, Kind.NAK, Kind.TIMEOUT}),
    source="RFC 5681",
)
