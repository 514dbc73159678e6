"""UGAL and PAR: a packet goes round by an intermediate where the queues of a switch say that this is faster.

It goes minimally if q_min H_min <= q_detour H_detour + bias: the queue of the port times the hops of the way, of the
shortest path against a way by one intermediate drawn at random. UGAL asks at the first switch. PAR asks again at each
further switch of the first group: a switch that holds the global link sees its queue, which the first one does not. A
second thought takes one more local hop and one more virtual channel.
Source: Singh, Load-Balanced Routing in Interconnection Networks, PhD thesis, Stanford 2005 (UGAL-L, local queues); in a
dragonfly Kim et al., ISCA 2008, doi:10.1109/ISCA.2008.19, section 4.2; Jiang, Kim and Dally, ISCA 2009,
doi:10.1145/1555754.1555783 (progressive adaptive routing).
Leaves out: UGAL-G, which knows all queues. Queues count bytes of the packet's own channel; rates are taken alike.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, row
from weftwork.policies.parts.port_choice import shortest_queue

__all__ = ["PLUGIN", "Params", "State", "step"]

TO_VIA = 1  # parts of the way, in the packet's word; below 0: minimal so far, by what this switch says
TO_RECEIVER = 2
AGAIN = 1  # of the words from ASKED on, the last bit: it is not the first switch
ASKED = 4  # and above: it is asked for the way to the intermediate; half of the rest is the cost of the shortest path


class Params:
    """What makes a detour worth its hops, and where it ends."""

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
    rethinks: bool = row(
        default=False,
        source="Jiang, Kim and Dally, ISCA 2009: PAR",
        text="A packet on its shortest path asks again at later switches of its first group.",
    )


class State:
    """None."""


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Compare both ways where the packet asks, and turn at the intermediate."""
    turns = 0
    best = shortest_queue(signal, candidates)
    if signal.word >= ASKED:
        hops = candidates[best].hops_left + signal.hops_after_via
        cost = (signal.word - ASKED) // 2
        is_minimal = signal.via == OFF or cost <= candidates[best].queue_bytes * hops + params.bias_bytes
        turns = 0 if is_minimal else (signal.word & AGAIN)
        kept = -1 - signal.node if params.rethinks else TO_RECEIVER
        signal.word = kept if is_minimal else TO_VIA
        if is_minimal and signal.via != OFF:
            signal.via = OFF
            return
    elif signal.word == TO_VIA and signal.via != OFF and params.by_group and signal.group == signal.via_group:
        signal.via = OFF
        return
    elif signal.word == TO_VIA and signal.via == OFF:
        signal.word = TO_RECEIVER
        turns = 0 if params.by_group else 1
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
    source="Singh, PhD thesis, Stanford 2005; doi:10.1109/ISCA.2008.19, section 4.2; doi:10.1145/1555754.1555783",
)
