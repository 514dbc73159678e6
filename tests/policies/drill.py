"""DRILL(d, k): of d ports drawn at random and k that were best before, each packet takes the one with the least queue.

Source: Ghorbani et al., SIGCOMM 2017, doi:10.1145/3098822.3098839: d = 2, k = 1; conweave-ns3, drill: ports are
remembered for each destination.
Leaves out: classes of unequal paths after failures, and the shim that restores order at the host.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, array, row

EDGES = 256  # chosen: destinations that share an entry share the memory of a port, no more
MOST_DRAWS = 4


class Params:
    draws: int = row(default=2, minimum=1, maximum=MOST_DRAWS, source="section 3.2.1", text="Ports drawn: d.")


class State:
    best_port: list[int] = array(EDGES, OFF)


def load(candidate: Candidate) -> float:
    """Time that the queue takes to drain."""
    return float(candidate.queue_bytes) / candidate.rate_bps


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    bits = signal.draw
    choice = bits % signal.candidates
    for _ in range(params.draws - 1):
        bits = bits >> 14
        drawn = bits % signal.candidates
        if load(candidates[drawn]) < load(candidates[choice]):
            choice = drawn
    entry = signal.to_edge % EDGES
    for i in range(signal.candidates):
        if candidates[i].port == state.best_port[entry] and load(candidates[i]) < load(candidates[choice]):
            choice = i
    state.best_port[entry] = candidates[choice].port
    signal.choice = choice


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    reorders="always",
    spreads="evenly",
    needs=frozenset({"queue", "reorder-tolerance"}),
    source="doi:10.1145/3098822.3098839",
)
