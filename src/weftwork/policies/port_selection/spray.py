"""Random spraying at the switch: every packet leaves by a random port.

The draw is among the ports that are up.
Source: Dixit et al., INFOCOM 2013, doi:10.1109/INFCOM.2013.6567015 (random packet spraying).
Leaves out: any look at queues. The receiver has to stand reordering.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """No parameters."""


class State:
    """No state."""


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Choose a port at random."""
    signal.choice = signal.draw % signal.candidates


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    reorders="always",
    spreads="evenly",
    needs=frozenset({"reorder-tolerance"}),
    source="Dixit et al., INFOCOM 2013, doi:10.1109/INFCOM.2013.6567015",
)
