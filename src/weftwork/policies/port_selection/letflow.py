"""LetFlow: each new flowlet leaves by a random port.

A flowlet is the packets behind a pause of a flow. A pause longer than the difference between path delays keeps order.
Flows on slow paths pause more often and so move more often, which balances without any look at load.
Source: Vanini et al., NSDI 2017 (LetFlow); github.com/conweave-project/conweave-ns3, letflow-routing.cc, for the gap.
Leaves out: the age bit, which ends flowlets after one to two gaps; ageing of entries, which only frees memory there.
There the first leaf draws the whole path; here each switch with a choice keeps flowlets of its own.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, array, row

__all__ = ["PLUGIN", "Params", "State", "step"]

ENTRIES = 1_024  # chosen: 32 flows on each of 32 ports; flows that share an entry share its pauses and its port


class Params:
    """The pause."""

    gap_ps: int = row(
        default="100us",
        minimum=0,
        source="conweave-ns3, scratch/network-load-balance.cc, letflow_flowletTimeout",
        text="Pause of a flow after which its next packet starts a new flowlet.",
    )


class State:
    """A flowlet by the hash of its packets."""

    last_at_ps: list[int] = array(ENTRIES, OFF)
    place: list[int] = array(ENTRIES)  # among the candidates
    port: list[int] = array(ENTRIES)


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Stay on the flowlet's port while it is up.

    A new flowlet takes a random port.
    """
    entry = signal.hash % ENTRIES
    place = state.place[entry]
    is_new = state.last_at_ps[entry] == OFF or signal.now_ps - state.last_at_ps[entry] > params.gap_ps
    if is_new or place >= signal.candidates or candidates[place].port != state.port[entry]:
        place = signal.draw % signal.candidates
        state.place[entry] = place
        state.port[entry] = candidates[place].port
    state.last_at_ps[entry] = signal.now_ps
    signal.choice = place


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    reorders="on-move",
    variants={
        # The defaults above.
        "conweave-ns3": {},
        # Unverified: the gap of the paper's testbed of 10 Gb/s, from memory; the paper could not be read.
        "paper": {"gap_ps": "500us"},
    },
    source="Vanini et al., NSDI 2017 (LetFlow)",
)
