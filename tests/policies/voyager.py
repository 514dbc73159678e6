"""A port selection that goes every way that it may, and sees all. For tests of the interface, not for results.

Source: chosen: no published selection uses words, virtual channels, intermediate switches and detours at once.
Leaves out: any sense. A packet makes at most two detours, so that each one arrives.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, row


class Params:
    every: int = row(default=5, minimum=1, source="chosen: odd", text="One packet in so many goes another way.")


class State:
    heard: int


class Port:
    chosen: int
    delivered: int


def blend(signal: PortSignal) -> int:
    """Fold every field of the packet and the switch into a small number."""
    total = signal.hash % 1009 + 3 * (signal.draw % 1013) + 5 * signal.bytes + 7 * signal.is_data + 11 * signal.node
    total += 13 * signal.tier + 17 * signal.group + 19 * signal.in_port + 23 * signal.ports + 29 * signal.hops
    total += 31 * (signal.queue_pair_hash % 1019) + 37 * signal.edge + 41 * signal.from_edge + 43 * signal.to_edge
    total += 47 * signal.edges + 53 * signal.delivered + 59 * signal.virtual_channel + 61 * (signal.word % 1021)
    return total + 67 * signal.via + signal.destination + signal.stride + signal.now_ps % 1031


def cost(candidate: Candidate) -> float:
    """Queue, way and pause in one number."""
    load = float(candidate.queue_bytes) / float(candidate.rate_bps)
    return load + 1e-7 * candidate.hops_left + 1e-6 * candidate.paused


def step(params: Params, state: State, ports: list[Port], signal: PortSignal, candidates: list[Candidate]) -> None:
    state.heard = (state.heard + blend(signal)) % 9973
    detours = signal.word % 4
    if detours < 2 and signal.delivered == 0 and signal.via == OFF and state.heard % params.every == 0:
        signal.via = (signal.draw % 1_009) % signal.edges
        detours += 1
    best = 0
    least = 1e30
    for i in range(signal.candidates):
        j = (i + signal.draw) % signal.candidates
        load = cost(candidates[j]) + 1e-9 * ((ports[candidates[j].port].chosen + candidates[j].weight) % 7)
        if candidates[j].minimal == 0 and (detours >= 2 or signal.via != OFF or state.heard % params.every != 1):
            load += 1e3
        if load < least:
            least = load
            best = j
    signal.choice = best
    if candidates[best].minimal == 0:
        detours += 1
    ports[candidates[best].port].chosen += 1
    ports[candidates[best].port].delivered += signal.delivered
    signal.word = 4 * (state.heard + signal.word // 4 % 997) + min(detours, 2)
    if signal.hops > 0 and state.heard % 2 == 0:
        signal.virtual_channel = 1


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    port_state=Port,
    always=True,
    at_delivery=True,
    virtual_channels=2,
    reorders="always",
    needs=frozenset({"queue", "hops-left", "non-minimal", "reorder-tolerance"}),
    source="none",
)
