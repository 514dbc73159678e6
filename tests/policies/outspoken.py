"""A control whose receiver asks for all that a receiver may ask for. For tests of the interface, not for results.

Source: chosen: no published control uses a CNP, an ACK of its own, credits and timers at once.
Leaves out: any sense.
"""

from __future__ import annotations

from weft.policies.interface import OFF, CongestionControl, Kind, ReceiverState, SenderState, Signal, row


class Params:
    every: int = row(default=3, minimum=1, source="chosen: odd", text="Packets between two remarks.")
    timer_ps: int = row(default="2us", minimum=1, source="chosen: about a round trip", text="Time to a late remark.")


class State(SenderState):
    heard: int


class Receiver(ReceiverState):
    packets: int


class Shared:
    packets: int


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.START:
        state.rate_bps = 0.75 * signal.line_rate_bps
        state.window_bytes = 8.0 * signal.mtu_bytes
    elif signal.kind == Kind.TIMER:
        state.window_bytes = 8.0 * signal.mtu_bytes
        if signal.timer == 0:
            state.timer_at_ps[1] = signal.now_ps  # in the agenda of this instant
    elif signal.kind == Kind.NAK or signal.kind == Kind.TIMEOUT:  # noqa: PLR1714 - 'in' does not compile
        state.window_bytes = 2.0 * signal.mtu_bytes
        state.timer_at_ps[0] = signal.now_ps + params.timer_ps
    else:
        state.heard += 1
        state.window_bytes = (2.0 + state.heard % 5) * signal.mtu_bytes
        state.timer_at_ps[2] = signal.now_ps + params.timer_ps * (1 + state.heard % 3)
        if state.heard % 4 == 0:
            state.timer_at_ps[2] = OFF


def receive(params: Params, state: Receiver, shared: Shared, signal: Signal) -> None:
    if signal.kind == Kind.TIMER:
        state.send_ack = 1
        state.send_cnp = 1
    else:
        state.packets += 1
        shared.packets += 1
        turn = (state.packets + shared.packets) % params.every
        if turn == 0:
            state.send_ack = 1
        elif turn == 1:
            state.credit_bytes = signal.bytes + 1
            state.timer_at_ps[3] = signal.now_ps + params.timer_ps


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.RESUME, Kind.SEND, Kind.ACK, Kind.CNP, Kind.NAK, Kind.TIMEOUT, Kind.CREDIT}),
    receiver_state=Receiver,
    receive=receive,
    shared_state=Shared,
    source="none",
)
