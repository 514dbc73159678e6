"""PAR: as UGAL, and a packet on its shortest path may think again at each further switch of its own group.

A switch that holds the global link sees its queue, which the first switch does not. A second thought takes one more
local hop and one more virtual channel.
Source: Jiang, Kim and Dally, Indirect Adaptive Routing on Large Scale Interconnection Networks, ISCA 2009,
doi:10.1145/1555754.1555783 (progressive adaptive routing).
Leaves out: networks without groups. Queues count bytes of the packet's own virtual channel; rates are taken alike.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, row

__all__ = ["PLUGIN", "Params", "State", "shortest_queue", "step"]

TO_VIA = 1  # parts of the way, in the packet's word
TO_RECEIVER = 2
AGAIN = 1  # of the words from ASKED on, the last bit: it is not the first switch
ASKED = 4  # and above: it is asked for the way to the intermediate; half of the rest is the cost of the shortest path


class Params:
    """What makes a detour worth its hops."""

    bias_bytes: int = row(
        default=0,
        minimum=0,
        source="chosen: none, as for UGAL",
        text="Bytes times hops by which a detour has to be better.",
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
    """Compare both ways at every switch of the sender's group until a detour begins."""
    turns = 0
    best = shortest_queue(signal, candidates)
    if signal.word >= ASKED:
        hops = candidates[best].hops_left + signal.hops_after_via
        cost = (signal.word - ASKED) // 2
        is_minimal = signal.via == OFF or cost <= candidates[best].queue_bytes * hops + params.bias_bytes
        turns = 0 if is_minimal else (signal.word & AGAIN)
        signal.word = -1 - signal.node if is_minimal else TO_VIA  # below 0: minimal so far, by what this switch says
        if is_minimal and signal.via != OFF:
            signal.via = OFF
            return
    elif signal.word == TO_VIA and signal.via != OFF and signal.group == signal.via_group:
        signal.via = OFF
        signal.word = TO_RECEIVER
        return
    elif signal.word == TO_VIA and signal.via == OFF:
        signal.word = TO_RECEIVER
    elif signal.word <= 0 and signal.word != -1 - signal.node:
        again = 0 if signal.word == 0 else AGAIN
        signal.word = TO_RECEIVER
        if signal.group == signal.from_group and signal.detour != OFF:
            signal.word = ASKED + 2 * candidates[best].queue_bytes * candidates[best].hops_left + again
            signal.via = signal.detour
            return  # the candidates towards it are offered next
    signal.choice = best
    signal.virtual_channel = candidates[best].turn_channel if turns else candidates[best].channel


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    always=True,
    reorders="always",
    needs=frozenset({"channel", "detour", "queue", "hops-left", "reorder-tolerance"}),
    source="doi:10.1145/1555754.1555783",
)
