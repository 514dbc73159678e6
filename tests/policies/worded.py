"""Worded: every packet leaves its first switch with a given word, which chooses its layer from the next one on.

Source: none, of the tests' own.
Leaves out: whatever a port selection is for.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal, row

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """What every packet takes with it."""

    word: int = row(default=0, source="a test", text="Word of every packet.")


class State:
    """None."""


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Write the word and take the first candidate."""
    signal.word = params.word
    signal.choice = 0


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    always=True,
    layer_by_word=True,
    source="the tests' own",
)
