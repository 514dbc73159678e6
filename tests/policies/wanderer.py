"""A path selection with timers that hears all. For tests of the interface, not for results.

Source: chosen: no published selection uses every signal and every timer.
Leaves out: any sense.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Kind, PathSelection, PathState, Signal, row


class Params:
    entropies: int = row(default=300, minimum=1, maximum=65_536, source="chosen: a few", text="Paths drawn from.")
    timer_ps: int = row(default="3us", minimum=1, source="chosen: about a round trip", text="Time on one path.")


class State(PathState):
    heard: int
    home: int


def step(params: Params, state: State, signal: Signal) -> None:
    total = signal.kind + signal.bytes + 3 * signal.ecn + 5 * signal.seq + 7 * signal.next_seq + 11 * signal.entropy
    total += signal.now_ps % 1009 + 17 * (signal.rtt_ps % 1013) + 19 * (signal.arrived_bytes % 1019) + signal.timer
    total += 23 * (signal.lost_bytes % 1021) + 29 * (signal.inflight_bytes % 1039) + 31 * signal.hops
    total += 37 * signal.completed_messages + 41 * signal.last_hop + 43 * (signal.marked_bytes % 1049)
    state.heard = (state.heard + total) % 9973
    if signal.kind == Kind.SEND:
        if state.timer_at_ps[3] == OFF:
            state.timer_at_ps[3] = signal.now_ps + params.timer_ps
            state.home = (state.heard + signal.draw) % params.entropies
        state.entropy = state.home
    elif signal.kind == Kind.TIMER:
        state.home = (state.home + signal.timer) % params.entropies
        if signal.timer == 3:
            state.timer_at_ps[0] = signal.now_ps
    elif signal.kind == Kind.START or signal.kind == Kind.RESUME:  # noqa: PLR1714 - 'in' does not compile
        state.timer_at_ps[1] = signal.now_ps + 2 * params.timer_ps
    elif signal.kind == Kind.TRIM or signal.kind == Kind.TIMEOUT:  # noqa: PLR1714
        state.home = (signal.entropy + 1) % params.entropies


PLUGIN = PathSelection(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.START, Kind.RESUME, Kind.ACK, Kind.NAK, Kind.TRIM, Kind.TIMEOUT}),
    reorders="on-move",
    needs=frozenset({"rtt", "entropy"}),
    source="none",
)
