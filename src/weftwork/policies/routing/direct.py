"""Direct: a packet goes on by the routes of its table, in the virtual channel that routing gives it.

The table decides what this is: minimal routing over all shortest paths, dimension order, or one of k paths.
Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004, sections 8.4 and 14.2.
Leaves out: detours. With ``among`` 2 the port is the one with the shortest queue, as minimal adaptive routing has it.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal
from weftwork.policies.parts.port_choice import AMONG_EQUALS, choice_of

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """How one of several equal ports is chosen."""

    among: int = AMONG_EQUALS


class State:
    """None."""


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
