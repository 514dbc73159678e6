"""DCTCP: Reno whose window falls once in a window of data by half the share of bytes that were marked.

Source: RFC 8257, section 3.3; Linux, tcp_dctcp.c: alpha is 1 at first, g is 1 / 16. Switches mark above one threshold
(kmin = kmax, pmax = 1). The ACK tells exactly how many bytes were marked, so that no state of CE has to be sent.
Leaves out: a timeout of its own (cubic.py has it) and everything else that reno.py leaves out.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, row


class Params:
    initial: float = row(default=10, minimum=1, source="RFC 6928", text="First window, packets.")
    gain: float = row(default=0.0625, minimum=0.001, maximum=1, source="RFC 8257, 4.2", text="Of the newest share: g.")


class State(SenderState):
    window: float  # packets
    threshold: float = 1e15  # slow start below
    high_seq: int
    recover_seq: int
    in_recovery: bool
    alpha: float = 1.0
    arrived: int  # payload in this window of data
    marked: int
    window_seq: int  # where it ends


def look(params: Params, state: State, signal: Signal) -> None:
    """Count marks; at the end of a window of data learn from them."""
    state.arrived += signal.arrived_bytes
    state.marked += signal.marked_bytes
    if signal.seq < state.window_seq or state.arrived == 0:
        return
    share = min(float(state.marked) / state.arrived, 1.0)
    state.alpha = (1.0 - params.gain) * state.alpha + params.gain * share
    if state.marked > 0 and not state.in_recovery:
        state.window = max(state.window * (1.0 - state.alpha / 2.0), 2.0)
        state.threshold = state.window
    state.arrived = 0
    state.marked = 0
    state.window_seq = signal.next_seq


def grow(state: State, signal: Signal) -> None:
    """Reno's growth (RFC 5681), where the window has held the sender back."""
    flight_bytes = signal.inflight_bytes + signal.arrived_bytes + signal.mtu_bytes
    if state.in_recovery or signal.arrived_bytes == 0 or flight_bytes < state.window_bytes:
        return
    packets = float(signal.arrived_bytes) / signal.mtu_bytes
    if state.window < state.threshold:
        state.window += min(packets, 2.0)
    else:
        state.window += packets / state.window


def step(params: Params, state: State, signal: Signal) -> None:
    state.high_seq = max(state.high_seq, signal.next_seq)
    if signal.kind == Kind.START:
        state.window = params.initial
    elif signal.kind == Kind.ACK:
        if signal.seq >= state.recover_seq:
            state.in_recovery = False
        look(params, state, signal)
        grow(state, signal)
    elif signal.kind == Kind.NAK and not state.in_recovery:
        state.threshold = max(state.window / 2.0, 2.0)  # section 3.5: losses as without DCTCP
        state.window = state.threshold
        state.in_recovery = True
        state.recover_seq = state.high_seq
    elif signal.kind == Kind.TIMEOUT:
        state.threshold = max(state.window / 2.0, 2.0)
        state.window = 1.0
        state.in_recovery = False
    state.window_bytes = state.window * signal.mtu_bytes


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.SEND, Kind.ACK, Kind.NAK, Kind.TIMEOUT}),
    needs=frozenset({"ecn"}),
    source="RFC 8257",
)
