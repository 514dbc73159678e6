"""A port selection that uses all of its interface. For tests of the interface, not for results.

Source: chosen: no published selection uses every field. The first switch may send a packet by way of another edge and
begins a new virtual channel there, as Valiant routing does: Valiant, SIAM J. Comput. 11(2), 1982, doi:10.1137/0211027.
Leaves out: any sense.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, row


class Params:
    detours: int = row(default=3, minimum=1, maximum=1_000, source="chosen: some", text="Every so many packets go.")


class State:
    heard: int


class PortState:
    bytes: int


def step(params: Params, state: State, ports: list[PortState], signal: PortSignal, candidates: list[Candidate]) -> None:
    """Take a candidate by a sum over all that is told; leave a trace of it in the packet and at the port."""
    total = signal.now_ps % 1009 + 3 * (signal.hash % 1013) + 5 * (signal.draw % 1019) + 7 * signal.bytes
    total += 11 * signal.is_data + 13 * signal.destination + 17 * signal.stride + 19 * signal.node + 23 * signal.tier
    total += 29 * signal.group + 31 * signal.in_port + 37 * signal.ports + 41 * signal.hops + 43 * signal.delivered
    total += 47 * (signal.queue_pair_hash % 1021) + 53 * signal.edge + 59 * signal.from_edge + 61 * signal.to_edge
    total += 67 * signal.edges + 71 * signal.virtual_channel + 73 * (signal.word % 1031) + 79 * signal.via
    for index in range(signal.candidates):
        port = candidates[index].port
        total += (index + 1) * (candidates[index].queue_bytes % 1049 + candidates[index].rate_bps % 1033)
        total += (index + 1) * (83 * port + ports[port].bytes % 1039)
        total += (index + 2) * (89 * candidates[index].weight + 97 * candidates[index].paused)
        total += (index + 3) * (101 * candidates[index].hops_left + 103 * candidates[index].minimal)
    state.heard = (state.heard + total) % 9973
    signal.choice = state.heard % signal.candidates
    if candidates[signal.choice].minimal == 0 and signal.word > 1:
        signal.choice = 0  # so that no packet strays for ever
    if signal.word == 0 and signal.edge == signal.from_edge != signal.to_edge and signal.draw % params.detours == 0:
        away = signal.draw // params.detours % signal.edges
        if away != signal.edge:
            signal.via = away
    if signal.via == OFF and signal.word > 0:
        signal.virtual_channel = 1
    signal.word += 1
    ports[candidates[signal.choice].port].bytes += signal.bytes


PLUGIN = PortSelection(
    params=Params,
    state=State,
    port_state=PortState,
    step=step,
    always=True,
    at_delivery=True,
    virtual_channels=2,
    reorders="always",
    needs=frozenset({"queue", "hops-left", "non-minimal", "reorder-tolerance"}),
    source="none",
)
