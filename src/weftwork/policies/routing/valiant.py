"""Valiant: every packet first goes to an intermediate switch drawn at random, so that no traffic pattern is a bad one.

Between groups of a dragonfly the intermediate is a group: the detour ends at the first switch of the group.
Source: Valiant, SIAM Journal on Computing 11(2), 1982, doi:10.1137/0211027; in a dragonfly Kim et al., ISCA 2008,
doi:10.1109/ISCA.2008.19, section 4.1.
Leaves out: detours of packets within a switch, or within a group where intermediates are groups.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, row
from weftwork.policies.parts.port_choice import AMONG_EQUALS, choice_of

__all__ = ["PLUGIN", "Params", "State", "step"]

TO_VIA = 1  # parts of the way, in the packet's word
TO_RECEIVER = 2


class Params:
    """How the intermediate and one of several equal ports are chosen."""

    among: int = AMONG_EQUALS
    by_packet: bool = row(
        default=False,
        source="Valiant 1982: yes; chosen: off where transport.port_selection keeps packets in order",
        text="Every packet has an intermediate of its own; else a queue pair keeps one.",
    )
    by_group: bool = row(
        default=False,
        source="Kim et al., ISCA 2008, section 4.1, in networks of groups",
        text="A detour ends at the first switch of the intermediate's group.",
    )


class State:
    """None."""


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Draw the intermediate at the first switch, and turn at it."""
    turns = 0
    if signal.word == 0:
        signal.word = TO_RECEIVER
        drawn = signal.detour if params.by_packet else signal.queue_pair_detour
        if drawn != OFF:
            signal.word = TO_VIA
            signal.via = drawn
            return  # the candidates towards it are offered next
    elif signal.word == TO_VIA and signal.via != OFF and params.by_group and signal.group == signal.via_group:
        signal.via = OFF
        return
    elif signal.word == TO_VIA and signal.via == OFF:
        signal.word = TO_RECEIVER
        turns = 0 if params.by_group else 1
    signal.choice = choice_of(params, signal, candidates)
    signal.virtual_channel = candidates[signal.choice].turn_channel if turns else candidates[signal.choice].channel


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    always=True,
    spreads="hash",
    needs=frozenset({"channel", "detour"}),
    source="doi:10.1137/0211027; doi:10.1109/ISCA.2008.19",
)
