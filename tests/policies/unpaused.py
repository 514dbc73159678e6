"""Unpaused: the first candidate that is not paused, else the first.

Source: none, of the tests' own: it reads `paused`.
Leaves out: whatever a port selection is for.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """None."""


class State:
    """None."""


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Pass over those that are paused."""
    signal.choice = 0
    for index in range(signal.candidates):
        if candidates[index].paused == 0:
            signal.choice = index
            break


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    reorders="always",
    spreads="evenly",
    needs=frozenset({"queue", "reorder-tolerance"}),
    source="the tests' own",
)
