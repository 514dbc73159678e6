"""Mixed: reuses good entropies and skips bad ones.

It is the default of the Ultra Ethernet reference model.
Source: github.com/ultraethernet/uet-htsim, htsim/sim/uec_mp.cpp: UecMpMixed, which asks UecMpRepsLegacy and then
UecMpBitmap. An entropy that came back without a mark is taken again, first in first out. Without one the entropies are
walked in turns, in an order that changes every round; one with a penalty is passed over, and the first that a packet
meets loses one of it.
Leaves out: more than 256 entropies, and good ones beyond the newest 256 (there the list has no end). A timeout is held
against the entropy of the oldest packet, which uet-htsim does not know; it takes its last one.
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
    good_every: int = row(
        default=4,
        minimum=1,
        source="uec.cpp, UecSink::_bytes_unacked_threshold 16,384: a clean answer comes for every fourth packet",
        text="ACKs without a mark per reused entropy: the entropy of one such ACK is used again.",
    )
    mark_penalty: int = row(default=1, minimum=0, maximum=15, source="UecMpBitmap::processEv", text="For a mark.")
    trim_penalty: int = row(
        default=4, minimum=0, maximum=15, source="UecMpBitmap::processEv", text="For a packet cut before the last hop."
    )
    most_penalty: int = row(
        default=15, minimum=1, maximum=255, source="UecMpBitmap, _max_penalty", text="The most, and for a timeout."
    )


class State(PathState):
    """Good entropies in a ring, and a penalty for each entropy."""

    good: list[int] = array(MOST)
    first: int
    held: int
    clean: int  # answers without a mark since one was kept
    penalty: list[int] = array(MOST)
    turn: int  # place in the round
    mask: int  # which makes the order of the round


def step(params: Params, state: State, signal: Signal) -> None:
    """Learn from an ACK, or choose for the next departing packet."""
    if signal.kind == Kind.SEND:
        choose(params, state, signal)
    elif signal.kind == Kind.ACK:
        if signal.ecn == 1:
            punish(params, state, signal, params.mark_penalty)
        elif signal.hops > 0:  # caused by a packet, so that it tells of an entropy
            keep(params, state, signal)
    elif signal.kind == Kind.TRIM:
        if signal.last_hop == 1:  # the way was good as far as there was one to choose
            keep(params, state, signal)
        else:
            punish(params, state, signal, params.trim_penalty)
    elif signal.kind == Kind.TIMEOUT:
        punish(params, state, signal, params.most_penalty)


def punish(params: Params, state: State, signal: Signal, penalty: int) -> None:
    """Add a penalty to an entropy."""
    place = signal.entropy % params.paths
    state.penalty[place] = min(state.penalty[place] + penalty, params.most_penalty)


def keep(params: Params, state: State, signal: Signal) -> None:
    """Queue a good entropy for reuse, up to a few of them."""
    state.clean += 1
    if state.clean < params.good_every:
        return
    state.clean = 0
    state.good[(state.first + state.held) % MOST] = signal.entropy
    if state.held < MOST:
        state.held += 1
    else:
        state.first = (state.first + 1) % MOST


def choose(params: Params, state: State, signal: Signal) -> None:
    """Take the oldest good entropy, else the round's next without a penalty."""
    if state.held > 0:
        state.entropy = state.good[state.first]
        state.first = (state.first + 1) % MOST
        state.held -= 1
        return
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
    source="uet-htsim, htsim/sim/uec_mp.cpp, UecMpMixed",
    variants={
        "uet-htsim": {},
        # An answer for every packet, as the runs of the published tables had under NSCC: main_uec.cpp of that time.
        "every-answer": {"good_every": 1},
    },
)
