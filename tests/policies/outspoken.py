"""A control that hears all and whose receiver asks for all that it may. For tests of the interface, not for results.

Source: chosen: no published control uses every field, a CNP, an ACK of its own, credits and timers at once.
Leaves out: any sense.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, ReceiverState, SenderState, Signal, row


class Params:
    every: int = row(default=3, minimum=1, source="chosen: odd", text="Packets between two remarks.")
    timer_ps: int = row(default="2us", minimum=1, source="chosen: about a round trip", text="Time to a late remark.")


class State(SenderState):
    heard: int


class Receiver(ReceiverState):
    packets: int


class Shared:
    packets: int


def blend(signal: Signal) -> int:
    """Fold every field into a small number, so that none can be wrong unseen."""
    total = signal.kind + signal.bytes + 3 * signal.ecn + 5 * signal.seq + 7 * signal.next_seq + 11 * signal.entropy
    total += 13 * signal.timer + signal.now_ps % 1009 + 17 * (signal.rtt_ps % 1013) + 19 * (signal.host_delay_ps % 1019)
    total += 23 * (signal.fabric_delay_ps % 1021) + signal.line_rate_bps % 1031 + signal.base_rtt_ps % 1033
    total += signal.mtu_bytes + 29 * (signal.inflight_bytes % 1039) + 31 * (signal.backlog_bytes % 1049) + signal.hops
    for i in range(min(signal.hops, 8)):
        total += 37 * (signal.hop_queue_bytes[i] % 1051) + 41 * (signal.hop_tx_bytes[i] % 1061)
        total += 43 * (signal.hop_rate_bps[i] % 1063) + signal.hop_at_ps[i] % 1069
    return total


def step(params: Params, state: State, signal: Signal) -> None:
    state.heard = (state.heard + blend(signal)) % 9973
    state.window_bytes = (2.0 + state.heard % 7) * signal.mtu_bytes
    state.rate_bps = signal.line_rate_bps * (0.3 + (state.heard % 11) / 10.0)
    if signal.kind == Kind.NAK or signal.kind == Kind.TIMEOUT:  # noqa: PLR1714 - 'in' does not compile
        state.timer_at_ps[0] = signal.now_ps + params.timer_ps
    elif signal.kind == Kind.TIMER:
        if signal.timer == 0:
            state.timer_at_ps[1] = signal.now_ps  # in the agenda of this instant
    else:
        state.timer_at_ps[2] = signal.now_ps + params.timer_ps * (1 + state.heard % 3)
        if state.heard % 4 == 0:
            state.timer_at_ps[2] = OFF


def receive(params: Params, state: Receiver, shared: Shared, signal: Signal) -> None:
    if signal.kind == Kind.TIMER:
        state.send_ack = 1
        state.send_cnp = 1
    else:
        state.packets += 1
        shared.packets = (shared.packets + blend(signal)) % 9973
        turn = (state.packets + shared.packets) % params.every
        if turn == 0:
            state.send_ack = 1
        elif turn == 1:
            state.credit_bytes += signal.bytes + 1
            state.timer_at_ps[3] = signal.now_ps + params.timer_ps


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.RESUME, Kind.SEND, Kind.ACK, Kind.CNP, Kind.NAK, Kind.TIMEOUT, Kind.CREDIT}),
    receiver_state=Receiver,
    receive=receive,
    shared_state=Shared,
    needs=frozenset({"telemetry", "rtt", "entropy"}),
    source="none",
)
