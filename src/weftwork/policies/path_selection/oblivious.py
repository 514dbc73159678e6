"""Oblivious spraying: a NIC walks all entropies in a new random order each round.

Source: github.com/ultraethernet/uet-htsim, htsim/sim/uec_mp.cpp, UecMpOblivious: entropy = (i++ xor x) mod paths.
Leaves out: any feedback. The receiver has to stand reordering.
"""

from __future__ import annotations

from weftwork.policies.interface import Kind, PathSelection, PathState, Signal, row

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """Number of paths."""

    paths: int = row(
        default=64,
        minimum=1,
        maximum=65_536,
        source="uet-htsim, main_uec.cpp, default",
        text="Entropies in a round; a power of two gives every entropy the same share.",
    )


class State(PathState):
    """Place in the round and its order."""

    sent: int
    mask: int


def step(params: Params, state: State, signal: Signal) -> None:
    """Take the next entropy; draw another order at the start of a round."""
    if signal.kind == Kind.SEND:
        place = state.sent % params.paths
        if place == 0:
            state.mask = signal.draw % 65_536
        state.entropy = (place ^ state.mask) % params.paths
        state.sent += 1


PLUGIN = PathSelection(
    params=Params,
    state=State,
    step=step,
    spreads="evenly",
    reply_entropy="echoed",
    needs=frozenset({"reorder-tolerance"}),
    source="uet-htsim, htsim/sim/uec_mp.cpp, UecMpOblivious",
)
