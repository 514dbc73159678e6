"""A control that says all that it may, at both ends, and hears all. For tests of the interface, not for results.

Source: chosen: no published control has requests, credit, segments, moved departures and its own timeout at once.
Leaves out: any sense.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, ReceiverState, SenderState, Signal, row


class Params:
    every: int = row(default=3, minimum=1, source="chosen: odd", text="Packets between two remarks.")
    timer_ps: int = row(default="2us", minimum=1, source="chosen: about a round trip", text="Time to a late remark.")
    timeout_ps: int = row(default="50us", minimum=0, source="chosen: some round trips", text="Least own timeout.")


class State(SenderState):
    heard: int


class Receiver(ReceiverState):
    heard: int
    packets: int


class Shared:
    packets: int


def blend(signal: Signal) -> int:
    """Fold every field into a small number, so that none can be wrong unseen."""
    total = signal.kind + signal.bytes + 3 * signal.ecn + 5 * signal.seq + 7 * signal.next_seq + 11 * signal.entropy
    total += 13 * signal.timer + signal.now_ps % 1009 + 17 * (signal.rtt_ps % 1013) + 19 * (signal.host_delay_ps % 1019)
    total += 23 * (signal.fabric_delay_ps % 1021) + signal.line_rate_bps % 1031 + signal.base_rtt_ps % 1033
    total += signal.mtu_bytes + 29 * (signal.inflight_bytes % 1039) + 31 * (signal.backlog_bytes % 1049)
    total += 37 * (signal.arrived_bytes % 1051) + 41 * (signal.marked_bytes % 1061) + 43 * (signal.lost_bytes % 1063)
    total += 47 * signal.completed_messages + 53 * signal.last_hop + 59 * (signal.request_bytes % 1069)
    return total + signal.fabric_base_rtt_ps % 1087 + 61 * signal.hops


def step(params: Params, state: State, signal: Signal) -> None:
    state.heard = (state.heard + blend(signal)) % 9973
    state.window_bytes = (2.0 + state.heard % 9) * signal.mtu_bytes
    state.rate_bps = signal.line_rate_bps * (0.2 + (state.heard % 13) / 12.0)
    state.timeout_ps = params.timeout_ps * (state.heard % 4)
    state.segment_bytes = signal.mtu_bytes * (state.heard % 5)
    state.request_bytes = signal.backlog_bytes + state.heard % 7
    if signal.kind == Kind.TIMER:
        state.send_request = 1
        if signal.timer == 0:
            state.timer_at_ps[1] = signal.now_ps  # in the agenda of this instant
    elif signal.kind == Kind.TRIM or signal.kind == Kind.TIMEOUT:  # noqa: PLR1714 - 'in' does not compile
        state.timer_at_ps[0] = signal.now_ps + params.timer_ps
    else:
        state.timer_at_ps[2] = signal.now_ps + params.timer_ps * (1 + state.heard % 3)
        if state.heard % 3 == 0:
            state.timer_at_ps[2] = OFF


def receive(params: Params, state: Receiver, shared: Shared, signal: Signal) -> None:
    state.heard = (state.heard + blend(signal)) % 9973
    if signal.kind == Kind.TIMER:
        state.send_ack = state.heard % 2
        state.send_credit = 1
    else:
        state.packets += 1
        shared.packets = (shared.packets + state.heard) % 9973
        turn = (state.packets + shared.packets) % params.every
        if turn == 0:
            state.send_ack = 1
            state.send_cnp = state.heard % 2
        elif turn == 1:
            state.credit_bytes += signal.request_bytes % 4_096 + state.heard % 3
            state.timer_at_ps[3] = signal.now_ps + params.timer_ps


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.RESUME, Kind.SEND, Kind.ACK, Kind.CNP, Kind.NAK, Kind.TRIM, Kind.TIMEOUT, Kind.CREDIT}),
    receiver_state=Receiver,
    receive=receive,
    shared_state=Shared,
    moves_departures=True,
    needs=frozenset({"rtt", "entropy", "request"}),
    source="none",
)
