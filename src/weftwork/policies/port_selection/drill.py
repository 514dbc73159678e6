"""DRILL(d, k): the shortest queue of d random and k remembered ports.

Each packet chooses; the k ports were the best before.
Source: Ghorbani et al., SIGCOMM 2017, doi:10.1145/3098822.3098839; github.com/conweave-project/conweave-ns3,
switch-node.cc, DoLbDrill: control packets go by their hash.
Leaves out: classes of unequal paths after failures; the shim that restores order at the host; k above 1, and engines of
a switch that decide apart. conweave-ns3 draws d different ports and lets the remembered port win a tie. Here the d
draws may coincide, as in the paper, and a drawn port wins, since an idle switch would else stay on one port.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, array, row

__all__ = ["PLUGIN", "Params", "State", "load", "step"]

EDGES = 256  # chosen: destination switches that share an entry share the memory of a port, no more
MOST_DRAWS = 4  # chosen: each takes 14 of the packet's 62 random bits


class Params:
    """Number of sampled ports."""

    draws: int = row(
        default=2,
        minimum=1,
        maximum=MOST_DRAWS,
        source="conweave-ns3, switch-node.cc, m_drill_candidate; unverified: the paper recommends the same",
        text="Ports drawn for each packet: d.",
    )
    remembered: int = row(
        default=1,
        minimum=0,
        maximum=1,
        source="conweave-ns3, switch-node.cc, m_previousBestInterfaceMap; unverified: the paper recommends the same",
        text="Best ports kept from the packet before to the same switch: k. With 0 this is the power of d choices.",
    )


class State:
    """The best port by destination switch."""

    best_port: list[int] = array(EDGES, OFF)


def load(candidate: Candidate) -> float:
    """Drain time of the queue."""
    return float(candidate.queue_bytes) / candidate.rate_bps


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Choose the shortest queue among sampled ports and the remembered port."""
    if signal.is_data == 0:
        signal.choice = signal.hash % signal.candidates
        return
    bits = signal.draw
    choice = bits % signal.candidates
    for _ in range(params.draws - 1):
        bits = bits >> 14
        drawn = bits % signal.candidates
        if load(candidates[drawn]) < load(candidates[choice]):
            choice = drawn
    if params.remembered == 1:
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
    variants={
        # The defaults above: DRILL(2, 1).
        "conweave-ns3": {},
        # Two ports drawn, none remembered; uet-htsim has it as adaptive_route_p2c.
        "power-of-two": {"remembered": 0},
    },
    source="doi:10.1145/3098822.3098839",
)
