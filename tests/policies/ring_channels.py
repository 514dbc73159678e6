"""Channels on a ring: a packet that has come by the last link of the ring goes on in the second channel.

Source: Dally and Seitz, IEEE Trans. Comput. C-36(5), 1987, doi:10.1109/TC.1987.1676939: without a circle of channels
there is no deadlock. With ``everywhere`` a packet changes its channel at every switch, which closes a longer circle.
Leaves out: rings whose last switch is not the one that a parameter names.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal, row


class Params:
    first: int = row(default=0, source="a test", text="Node of the first switch of the ring.")
    last: int = row(default=0, source="a test", text="Node of the last one.")
    everywhere: int = row(default=0, minimum=0, maximum=1, source="a test", text="1: it changes at every switch.")


class State:
    changed: int


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Keep the first candidate; the word tells the switch before this one."""
    signal.choice = 0
    if params.everywhere == 1:
        signal.virtual_channel = 1 - signal.virtual_channel
        state.changed += 1
    elif signal.node == params.first and signal.word == params.last:
        signal.virtual_channel = 1
        state.changed += candidates[0].minimal
    signal.word = signal.node


PLUGIN = PortSelection(
    params=Params, state=State, step=step, always=True, virtual_channels=2, source="doi:10.1109/TC.1987.1676939"
)
