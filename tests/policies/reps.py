"""REPS, small: entropies whose packets came back unmarked are used again. For tests of the interface, not for results.

Source: Le et al., EuroSys 2026, arXiv:2407.21625; uet-htsim, htsim/sim/buffer_reps.cpp.
Leaves out: trimming on the last hop.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Kind, PathSelection, PathState, Signal, array, row

RING = 8


class Params:
    entropies: int = row(default=65_536, minimum=1, maximum=65_536, source="arXiv:2407.21625", text="Paths drawn from.")
    freeze_ps: int = row(default="10ms", minimum=0, source="buffer_reps.cpp", text="Time frozen after a timeout.")
    explore: int = row(default=16, minimum=0, source="buffer_reps.cpp", text="Random packets after it.")


class State(PathState):
    ring: list[int] = array(RING)
    valid: list[int] = array(RING)
    head: int
    filled: int
    fresh: int
    turn: int
    exploring: int
    frozen_until_at_ps: int = OFF


def step(params: Params, state: State, signal: Signal) -> None:
    if state.frozen_until_at_ps != OFF and signal.now_ps >= state.frozen_until_at_ps:
        state.frozen_until_at_ps = OFF
        state.filled = 0
        state.fresh = 0
        state.head = 0
        for i in range(RING):
            state.valid[i] = 0
        state.exploring = params.explore
    if signal.kind == Kind.ACK:
        if signal.ecn == 0:
            keep(state, signal.entropy)
    elif signal.kind == Kind.TIMEOUT:
        if state.frozen_until_at_ps == OFF and state.exploring == 0:
            state.frozen_until_at_ps = signal.now_ps + params.freeze_ps
    elif signal.kind == Kind.SEND:
        choose(params, state, signal)


def keep(state: State, entropy: int) -> None:
    if state.valid[state.head] == 0:
        state.fresh += 1
    state.ring[state.head] = entropy
    state.valid[state.head] = 1
    state.head = (state.head + 1) % RING
    state.filled = min(state.filled + 1, RING)


def choose(params: Params, state: State, signal: Signal) -> None:
    state.entropy = signal.draw % params.entropies
    if state.exploring > 0:
        state.exploring -= 1
    elif state.frozen_until_at_ps != OFF and state.filled > 0:
        state.entropy = state.ring[state.turn % state.filled]
        state.turn += 1
    elif state.fresh > 0:
        oldest = (state.head - state.fresh) % RING
        for _ in range(RING):  # one of them is valid
            if state.valid[oldest] != 0:
                break
            oldest = (oldest + 1) % RING
        state.entropy = state.ring[oldest]
        state.valid[oldest] = 0
        state.fresh -= 1


PLUGIN = PathSelection(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK, Kind.TIMEOUT}),
    needs=frozenset({"ecn", "entropy", "reorder-tolerance"}),
    source="arXiv:2407.21625",
)
