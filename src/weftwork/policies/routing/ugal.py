"""UGAL: the first switch sends a packet round by an intermediate where its own queues say that this is faster.

A packet goes minimally if q_min H_min <= q_detour H_detour + bias: the queue of the port times the hops of the way, of
the shortest path against a way by one intermediate drawn at random.
Source: Singh, Load-Balanced Routing in Interconnection Networks, PhD thesis, Stanford 2005 (UGAL-L, local queues); in a
dragonfly Kim et al., ISCA 2008, doi:10.1109/ISCA.2008.19, section 4.2.
Leaves out: UGAL-G, which knows all queues. Queues count bytes of the packet's own channel; rates are taken alike.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, row

__all__ = ["PLUGIN", "Params", "State", "shortest_queue", "step"]

TO_VIA = 1  # parts of the way, in the packet's word
TO_RECEIVER = 2
ASKED = 3  # and above: it is asked for the way to the intermediate; the rest is the cost of the shortest path


class Params:
    """What makes a detour worth its hops."""

    bias_bytes: int = row(
        default=0,
        minimum=0,
        source="chosen: none, as Kim et al., ISCA 2008",
        text="Bytes times hops by which a detour has to be better.",
    )
    by_group: bool = row(
        default=False,
        source="Kim et al., ISCA 2008, section 4.1, in networks of groups",
        text="A detour ends at the first switch of the intermediate's group.",
    )


class State:
    """None."""


def shortest_queue(signal: PortSignal, candidates: list[Candidate]) -> int:
    """Index of the candidate with the shortest queue, ties at random."""
    first = (signal.draw >> 30) % signal.candidates
    best = first
    for i in range(signal.candidates):
        j = (first + i) % signal.candidates
        if candidates[j].queue_bytes < candidates[best].queue_bytes:
            best = j
    return best


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Compare both ways at the first switch, and turn at the intermediate."""
    turns = 0
    best = shortest_queue(signal, candidates)
    if signal.word == 0:
        signal.word = TO_RECEIVER
        if signal.detour != OFF:
            signal.word = ASKED + candidates[best].queue_bytes * candidates[best].hops_left
            signal.via = signal.detour
            return  # the candidates towards it are offered next
    elif signal.word >= ASKED:
        hops = candidates[best].hops_left + signal.hops_after_via
        is_minimal = signal.via == OFF or signal.word - ASKED <= candidates[best].queue_bytes * hops + params.bias_bytes
        signal.word = TO_RECEIVER if is_minimal else TO_VIA
        if is_minimal and signal.via != OFF:
            signal.via = OFF
            return
    elif signal.word == TO_VIA and signal.via != OFF and params.by_group and signal.group == signal.via_group:
        signal.via = OFF
        return
    elif signal.word == TO_VIA and signal.via == OFF:
        signal.word = TO_RECEIVER
        turns = 0 if params.by_group else 1
    signal.choice = best
    signal.virtual_channel = candidates[best].turn_channel if turns else candidates[best].channel


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    always=True,
    reorders="always",
    needs=frozenset({"channel", "detour", "queue", "hops-left", "reorder-tolerance"}),
    source="Singh, PhD thesis, Stanford 2005; doi:10.1109/ISCA.2008.19, section 4.2",
)
