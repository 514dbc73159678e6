"""Bitmap: a NIC walks its entropies in rounds and skips penalised ones.

Source: github.com/ultraethernet/uet-htsim, htsim/sim/uec_mp.cpp, UecMpBitmap. The order of the walk changes every
round. A mark costs an entropy a penalty of 1, a packet cut before the last hop 4, a timeout 15. The first entropy with
a penalty that a packet meets loses one of it.
Leaves out: more than 256 entropies, and the upper bits of an entropy, which are random there. A timeout is held against
the entropy of the oldest packet, which uet-htsim does not know; it takes its last one.
"""

from __future__ import annotations

from weftwork.policies.interface import Kind, PathSelection, PathState, Signal, array, row

__all__ = ["PLUGIN", "Params", "State", "step"]

MOST = 256  # chosen: the largest power of two of the published runs is 128


class Params:
    """Number of entropies, and penalties of bad ones."""

    paths: int = row(
        default=64,
        minimum=1,
        maximum=256,
        source="uet-htsim, main_uec.cpp, path_entropy_size",
        text="Entropies in a round; a power of two gives every entropy the same share.",
    )
    mark_penalty: int = row(default=1, minimum=0, maximum=15, source="UecMpBitmap::processEv", text="For a mark.")
    trim_penalty: int = row(
        default=4, minimum=0, maximum=15, source="UecMpBitmap::processEv", text="For a packet cut before the last hop."
    )
    most_penalty: int = row(
        default=15, minimum=1, maximum=255, source="UecMpBitmap, _max_penalty", text="The most, and for a timeout."
    )


class State(PathState):
    """A penalty for each entropy, and the place in the round."""

    penalty: list[int] = array(MOST)
    turn: int
    mask: int  # which makes the order of the round


def step(params: Params, state: State, signal: Signal) -> None:
    """Learn from an ACK, or choose for the next departing packet."""
    if signal.kind == Kind.SEND:
        choose(params, state, signal)
    elif signal.kind == Kind.ACK and signal.ecn == 1:
        punish(params, state, signal, params.mark_penalty)
    elif signal.kind == Kind.TRIM and signal.last_hop == 0:  # no other path would help at the last hop
        punish(params, state, signal, params.trim_penalty)
    elif signal.kind == Kind.TIMEOUT:
        punish(params, state, signal, params.most_penalty)


def punish(params: Params, state: State, signal: Signal, penalty: int) -> None:
    """Add a penalty to an entropy."""
    place = signal.entropy % params.paths
    state.penalty[place] = min(state.penalty[place] + penalty, params.most_penalty)


def choose(params: Params, state: State, signal: Signal) -> None:
    """Take the round's next entropy without a penalty."""
    if state.turn == 0:
        state.mask = signal.draw % 65_536
    place = (state.turn ^ state.mask) % params.paths
    if state.penalty[place] > 0:
        state.penalty[place] -= 1
        for _ in range(params.paths):
            turn_on(params, state, signal)
            place = (state.turn ^ state.mask) % params.paths
            if state.penalty[place] == 0:
                break
    state.entropy = place
    turn_on(params, state, signal)


def turn_on(params: Params, state: State, signal: Signal) -> None:
    """Go one place on; each new round has another order."""
    state.turn += 1
    if state.turn >= params.paths:
        state.turn = 0
        state.mask = signal.draw // 65_536 % 65_536


PLUGIN = PathSelection(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK, Kind.TRIM, Kind.TIMEOUT}),
    reply_entropy="echoed",
    needs=frozenset({"ecn", "entropy", "reorder-tolerance", "trimming"}),
    source="uet-htsim, htsim/sim/uec_mp.cpp, UecMpBitmap",
    variants={"uet-htsim": {}},
)
