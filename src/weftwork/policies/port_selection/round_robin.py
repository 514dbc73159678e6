"""Round robin: a switch's packets use all ports alternately.

The order is drawn again after a number of turns.
Source: github.com/ultraethernet/uet-htsim, htsim/sim/datacenter/fat_tree_switch.cpp, strategy RR: a pointer over the
ports, a random permutation after each turn, packets below 128 B by their hash.
Leaves out: strategy RR_ECMP, which does so at the leaves alone and hashes above them. There the first turn goes in the
order of the ports, here every turn is drawn.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal, array, row

__all__ = ["PLUGIN", "Params", "State", "step"]

GROUPS = 4  # chosen: group sizes of a switch with an order each; towards destinations cut off by a fault they differ
MEMBERS = 512  # chosen: more ports than a switch has; a larger group is drawn from, as in `spray`


class Params:
    """Turns between draws of the order, and the limit of small packets."""

    turns: int = row(
        default=1,
        minimum=1,
        maximum=1_000_000,
        source="uet-htsim, fat_tree_switch.cpp, RR (5 in RR_ECMP)",
        text="Turns over all ports between two draws of their order.",
    )
    small_bytes: int = row(
        default=128,
        minimum=0,
        source="uet-htsim, fat_tree_switch.cpp, RR",
        text="Packets smaller than this go by their hash and leave the turn alone.",
    )


class State:
    """The order of each group, and the switch's place in it."""

    order: list[int] = array(GROUPS * MEMBERS)
    members: list[int] = array(GROUPS)
    taken: list[int] = array(GROUPS)  # since the order was last drawn


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Take the next port; draw a new order's ports in its first turn.

    The draw is among the ports that the turn has not taken.
    """
    count = signal.candidates
    if signal.bytes < params.small_bytes:
        signal.choice = signal.hash % count
        return
    if count > MEMBERS:
        signal.choice = signal.draw % count
        return
    group = count % GROUPS
    first = group * MEMBERS
    if state.members[group] != count:
        state.members[group] = count
        state.taken[group] = 0
        for i in range(count):
            state.order[first + i] = i
    taken = state.taken[group]
    place = first + taken % count
    if taken < count:
        other = place + signal.draw % (count - taken)
        drawn = state.order[other]
        state.order[other] = state.order[place]
        state.order[place] = drawn
    signal.choice = state.order[place]
    state.taken[group] = (taken + 1) % (count * params.turns)


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    reorders="always",
    spreads="evenly",
    needs=frozenset({"reorder-tolerance"}),
    variants={
        # The defaults above.
        "uet": {},
    },
    source="uet-htsim, htsim/sim/datacenter/fat_tree_switch.cpp, RR",
)
