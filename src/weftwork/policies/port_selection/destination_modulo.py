"""Destination modulo (d-mod-k): the destination alone chooses the port.

All packets to a host take one path down. A tier takes one digit of the destination's number, so that the hosts of a
leaf spread over all spines, and the leaves of a block over all cores; a shift permutation of a full fat tree then meets
nobody.
Source: Zahavi, J. Parallel Distrib. Comput. 2012, Fat-tree routing and node ordering providing contention free traffic
for MPI global collectives.
Leaves out: balance after a fault: the ports that are left are counted anew, and neighbours share one.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """No parameters."""


class State:
    """No state."""


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Choose the destination's digit of this tier, modulo the number of candidates."""
    signal.choice = signal.destination // signal.stride % signal.candidates


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    waits_for_routes=True,
    spreads="destination",
    source="Zahavi, J. Parallel Distrib. Comput. 2012",
)
