"""Valiant: every packet goes by a switch drawn at random, so that no pattern of traffic is a bad one.

Source: Valiant, SIAM Journal on Computing 11(2), 1982, doi:10.1137/0211027; Dally and Towles, Principles and Practices
of Interconnection Networks, 2004, section 10.1. A channel for each of the two phases.
Leaves out: deadlocks within a phase, of which each has to be free by itself, as in a full mesh, where it is one hop.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal

TO_VIA = 1  # phases, in the packet's word
TO_RECEIVER = 2


class Params:
    """None."""


class State:
    """None."""


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Draw the switch at the first one; go on in the second channel from there."""
    if signal.word == 0:
        signal.word = TO_RECEIVER
        if signal.edges > 1 and signal.edge >= 0:
            signal.via = (signal.edge + 1 + signal.draw % (signal.edges - 1)) % signal.edges
            signal.word = TO_VIA
    elif signal.word == TO_VIA and signal.via == OFF:
        signal.virtual_channel = 1
        signal.word = TO_RECEIVER
    signal.choice = (signal.draw >> 20) % signal.candidates


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    always=True,
    virtual_channels=2,
    reorders="always",
    needs=frozenset({"reorder-tolerance"}),
    source="doi:10.1137/0211027",
)
