"""RCCC, small: the receiver paces credits over all its senders. For tests of the interface, not for results.

Source: uet-htsim, htsim/sim/uec.cpp (receiver credits); Ultra Ethernet specification 1.0, section 3.6.14.
Leaves out: the sender's advertised backlog, requests to send, idle lists, oversubscription control.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, ReceiverState, SenderState, Signal, row


class Params:
    speculative: float = row(default=1.5, minimum=0.1, source="uec.cpp", text="BDPs that may be sent uncredited.")
    credit_packets: int = row(default=4, minimum=1, source="uec.cpp", text="Packets per grant.")
    share: float = row(default=0.99, minimum=0.1, maximum=1, source="uec.cpp", text="Part of the line rate granted.")


class State(SenderState):
    allowed_bytes: float
    acked_bytes: float


class Receiver(ReceiverState):
    owed_bytes: int
    active: bool


class Shared:
    next_grant_at_ps: int
    active: int


def step(params: Params, state: State, signal: Signal) -> None:
    path_bytes = float(signal.line_rate_bps) * float(signal.base_rtt_ps) / 8e12
    if signal.kind == Kind.START:
        state.allowed_bytes = params.speculative * path_bytes + signal.mtu_bytes
    elif signal.kind == Kind.CREDIT:
        state.allowed_bytes += signal.bytes
    elif signal.kind == Kind.ACK:
        state.acked_bytes += signal.bytes
    # What may be in flight is what was allowed since the start, less what has arrived.
    state.window_bytes = max(state.allowed_bytes - state.acked_bytes, float(signal.mtu_bytes))


def receive(params: Params, state: Receiver, shared: Shared, signal: Signal) -> None:
    if signal.kind == Kind.DATA:
        state.owed_bytes += signal.bytes
        if not state.active:
            state.active = True
            shared.active += 1
        if state.timer_at_ps[0] == OFF:
            state.timer_at_ps[0] = grant_at(params, shared, signal)
    elif signal.kind == Kind.TIMER and state.owed_bytes > 0:
        granted_bytes = min(state.owed_bytes, params.credit_packets * signal.mtu_bytes)
        state.credit_bytes += granted_bytes
        state.owed_bytes -= granted_bytes
        state.timer_at_ps[0] = OFF
        if state.owed_bytes > 0:
            state.timer_at_ps[0] = grant_at(params, shared, signal)
        else:
            state.active = False
            shared.active -= 1


def grant_at(params: Params, shared: Shared, signal: Signal) -> int:
    """Take the next turn of the NIC's one pacer."""
    grant_bits = 8.0 * params.credit_packets * signal.mtu_bytes
    gap_ps = int(grant_bits * 1e12 / (params.share * signal.line_rate_bps))
    shared.next_grant_at_ps = max(shared.next_grant_at_ps, signal.now_ps) + max(gap_ps, 1)
    return shared.next_grant_at_ps


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.CREDIT, Kind.ACK}),
    receiver_state=Receiver,
    receive=receive,
    shared_state=Shared,
    source="uet-htsim, htsim/sim/uec.cpp",
)
