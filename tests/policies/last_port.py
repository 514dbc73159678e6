"""Takes the last port that is up, whatever the flow.

Source: none. Leaves out: any spreading.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """None."""


class State:
    """None."""


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Choose the last candidate that is up."""
    for index in range(signal.candidates):
        if candidates[index].up == 1:
            signal.choice = index


PLUGIN = PortSelection(params=Params, state=State, step=step, source="none")
