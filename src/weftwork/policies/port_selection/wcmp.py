"""WCMP: a hash of header fields chooses ports in proportion to weights.

Source: Zhou et al., EuroSys 2014, doi:10.1145/2592798.2592803, section 2: an entry for each unit of weight, hash modulo
their number. Weights come from routing: the capacity behind each port, computed again when routes are.
Leaves out: reducing weights to the size of a switch's table (section 5), weights set by hand, and rates that a fault
has lowered without taking a link down.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """No parameters."""


class State:
    """No state."""


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Choose the candidate whose part of the weights contains the hash."""
    total = 0
    for i in range(signal.candidates):
        total += candidates[i].weight
    place = signal.hash % total
    chosen = 0
    for i in range(signal.candidates):
        if place >= 0 and place < candidates[i].weight:
            chosen = i
        place -= candidates[i].weight
    signal.choice = chosen


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    waits_for_routes=True,
    spreads="weighted-hash",
    needs=frozenset({"weight"}),
    source="Zhou et al., EuroSys 2014, doi:10.1145/2592798.2592803, section 2",
)
