"""Random spraying at the NIC: every packet has a random entropy.

Source: oblivious packet spraying; Le et al., REPS, EuroSys 2026, arXiv:2407.21625, whose baseline it is.
Leaves out: any feedback. The receiver has to stand reordering.
"""

from __future__ import annotations

from weftwork.policies.interface import PathSelection, PathState, Signal, row

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """Number of entropies."""

    entropies: int = row(
        default=65_536,
        minimum=1,
        maximum=65_536,
        source="arXiv:2407.21625: with fewer than 256 on 32 uplinks more than 10 % imbalance remains",
        text="Entropies 0 to this number - 1 are drawn with equal chance.",
    )


class State(PathState):
    """No state besides the entropy."""


def step(params: Params, state: State, signal: Signal) -> None:
    """Draw an entropy for the next departing packet."""
    state.entropy = signal.draw % params.entropies


PLUGIN = PathSelection(
    params=Params,
    state=State,
    step=step,
    spreads="evenly",
    reply_entropy="echoed",
    needs=frozenset({"reorder-tolerance"}),
    source="arXiv:2407.21625, baseline OPS",
)
