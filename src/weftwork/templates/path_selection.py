"""Recycled paths: a NIC reuses paths whose last packet met no congestion.

Otherwise it draws another path. Weftwork calls `step` at the NIC before each packet (SEND) and at each acknowledgement
(ACK). The step writes ``state.entropy``, which the packet carries as its UDP source port; switches hash it, so another
entropy usually takes another path. docs/models/writing-a-policy.md lists what a step may use.

    weftwork run path_selection.yaml    simulates 16 hosts that send over four spines
    weftwork test path_selection.py     checks the rules that every path selection keeps

Source: Le et al., REPS, EuroSys 2026, arXiv:2407.21625, section 3, much shortened.
Leaves out: what REPS does when packets are lost. The receiver must tolerate reordering.
"""

from __future__ import annotations

from weftwork.policies.interface import Kind, PathSelection, PathState, Signal, array, row

PLACES = 8  # chosen: as in REPS; one entropy for each packet that is soon acknowledged


class Params:
    """Parameters that a scenario may set.

    For example ``path_selection: {file: ./path_selection.py, entropies: 256}``.
    """

    entropies: int = row(
        default=65_536,
        minimum=1,
        maximum=65_536,
        source="arXiv:2407.21625",
        text="New ones are drawn below this number.",
    )


class State(PathState):
    """State of one queue pair.

    `PathState` already has ``entropy`` and timers.
    """

    good: list[int] = array(PLACES)  # entropies that came back without a mark; a stack
    count: int


def step(params: Params, state: State, signal: Signal) -> None:
    """Keep the entropy of an unmarked packet, and reuse the newest."""
    if signal.kind == Kind.ACK:
        if signal.ecn == 0 and state.count < PLACES:
            state.good[state.count] = signal.entropy
            state.count += 1
    elif signal.kind == Kind.SEND:
        if state.count > 0:
            state.count -= 1
            state.entropy = state.good[state.count]
        else:
            state.entropy = signal.draw % params.entropies  # 62 random bits that belong to this packet alone


PLUGIN = PathSelection(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK}),  # besides SEND and TIMER; NAK, TIMEOUT and others could be named, too
    reorders="always",  # packets of one queue pair overtake each other
    spreads="evenly",  # what the flow engine takes it for, where no packet is simulated
    needs=frozenset({"ecn", "entropy", "reorder-tolerance"}),  # without "entropy" that of an ACK is 0
    interface=1,  # version of what a step sees and writes: docs/models/policy-interface.md
    source="arXiv:2407.21625, section 3",
)
