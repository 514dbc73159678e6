"""Direct: a packet goes on by the routes of its table, in the virtual channel that routing gives it.

The table decides what this is: minimal routing over all shortest paths, dimension order, or one of k paths.
Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004, sections 8.4 and 14.2.
Leaves out: detours. With ``among`` 2 the port is the one with the shortest queue, as minimal adaptive routing has it.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal, row

__all__ = ["PLUGIN", "Params", "State", "choice_of", "step"]

SPRAY = 1
LEAST_QUEUE = 2


class Params:
    """How one of several equal ports is chosen."""

    among: int = row(
        default=0,
        minimum=0,
        maximum=2,
        source="chosen: as transport.port_selection says",
        text="Among equal ports: 0 by the switch's hash, 1 at random for every packet, 2 the shortest queue.",
    )


class State:
    """None."""


def choice_of(params: Params, signal: PortSignal, candidates: list[Candidate]) -> int:
    """Index of the candidate, by hash, at random, or with the shortest queue, ties at random."""
    first = (signal.draw >> 30) % signal.candidates
    if params.among == SPRAY:
        return first
    if params.among != LEAST_QUEUE:
        return signal.hash % signal.candidates
    best = first
    for i in range(signal.candidates):
        j = (first + i) % signal.candidates
        if candidates[j].queue_bytes < candidates[best].queue_bytes:
            best = j
    return best


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Choose a port, and take the channel behind it."""
    signal.choice = choice_of(params, signal, candidates)
    signal.virtual_channel = candidates[signal.choice].channel


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    always=True,
    spreads="hash",
    needs=frozenset({"channel"}),
    source="Dally and Towles, Principles and Practices of Interconnection Networks, 2004, sections 8.4 and 14.2",
)
