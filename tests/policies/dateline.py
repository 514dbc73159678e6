"""Dateline: a packet that has gone round the end of a ring of switches goes on in the second virtual channel.

Source: Dally and Seitz, IEEE Transactions on Computers C-36(5), 1987, doi:10.1109/TC.1987.1676939.
Leaves out: more than one dimension. Switches have to be numbered round the ring, and each has hosts.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal


class Params:
    """None."""


class State:
    """None."""


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Choose by hash; the word tells of the switch before this one, from 1."""
    signal.choice = signal.hash % signal.candidates
    if signal.word > 0 and abs(signal.word - 1 - signal.edge) > 1:
        signal.virtual_channel = 1  # neighbours differ by one but for the last switch and the first
    signal.word = signal.edge + 1


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    always=True,
    virtual_channels=2,
    spreads="hash",
    source="doi:10.1109/TC.1987.1676939",
)
