"""UGAL-L on a dragonfly: the first router sends a packet by another group where its own queues say that this is faster.

Source: Kim et al., ISCA 2008, doi:10.1109/ISCA.2008.19, section 4.2; Singh, PhD thesis, Stanford 2005: minimal if
q_min H_min <= q_val H_val + bias. The channel is the number of global hops before, so that channels rise in the order
local 0, global 0, local 1, global 1 and so on, and no packets wait for each other in a circle. A shortest path has at
most three hops, all of which may be global; one detour before it makes four channels.
Leaves out: detours over global links of other routers of the group, and the second thoughts of PAR.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal, row

CHANNELS = 4
MINIMAL = 1  # phases, in the packet's word
DETOUR = 2
MOST = 1 << 62


class Params:
    first_global: int = row(
        default=5,
        minimum=1,
        source="chosen: 2 hosts and 3 local links",
        text="Local index of a router's first global port.",
    )
    bias_bytes: int = row(
        default=0,
        minimum=0,
        source="chosen: none, as the paper",
        text="Bytes by which a detour has to be better, times hops.",
    )


class State:
    """None."""


def cost(candidate: Candidate) -> int:
    """Queue of the port times hops."""
    return candidate.queue_bytes * candidate.hops_left


def shortest(signal: PortSignal, candidates: list[Candidate]) -> int:
    """Give the minimal candidate with the least queue; where none is up, any."""
    best = signal.draw % signal.candidates
    least = MOST
    for i in range(signal.candidates):
        j = (i + signal.draw) % signal.candidates
        if candidates[j].minimal == 1 and cost(candidates[j]) < least:
            least = cost(candidates[j])
            best = j
    return best


def another(params: Params, signal: PortSignal, candidates: list[Candidate]) -> int:
    """Give one of the global ports that are on no shortest path, at random; -1: there is none."""
    count = 0
    for i in range(signal.candidates):
        if candidates[i].minimal == 0 and candidates[i].port >= params.first_global:
            count += 1
    if count == 0:
        return -1
    wanted = (signal.draw >> 20) % count
    found = -1
    for i in range(signal.candidates):
        if candidates[i].minimal == 0 and candidates[i].port >= params.first_global:
            if wanted == 0:
                found = i
            wanted -= 1
    return found


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    if signal.in_port >= params.first_global:
        signal.virtual_channel = min(signal.virtual_channel + 1, CHANNELS - 1)
    signal.choice = shortest(signal, candidates)
    if signal.word == 0:
        signal.word = MINIMAL
        other = another(params, signal, candidates)
        if other >= 0 and cost(candidates[signal.choice]) > cost(candidates[other]) + params.bias_bytes:
            signal.choice = other
            signal.word = DETOUR


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    always=True,
    virtual_channels=CHANNELS,
    reorders="always",
    needs=frozenset({"queue", "hops-left", "non-minimal", "reorder-tolerance"}),
    source="doi:10.1109/ISCA.2008.19",
)
