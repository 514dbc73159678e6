"""Flowlets: after a pause a flow of a switch may leave by another port. A policy with a large state, for `rows`.

Source: Vanini et al., NSDI 2017 (LetFlow), section 3: a table of flowlets by hash, and a random choice for each.
Leaves out: ageing by a clock of the table; an entry remembers the instant of its last packet.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, array, row

ENTRIES = 16_384  # chosen: 256 KiB of state for each switch, which would show if each packet cost time by its size


class Params:
    """The pause that ends a flowlet."""

    gap_ps: int = row(
        default="100us",
        minimum=0,
        source="chosen: longer than most gaps of a paced flow",
        text="Pause of a flow after which its next packet may take another port.",
    )


class State:
    """The table of a switch: when each entry saw its last packet, and where that went."""

    last_at_ps: list[int] = array(ENTRIES, OFF)
    port: list[int] = array(ENTRIES)


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Keep the port of a flowlet that goes on; draw one for each new flowlet."""
    entry = signal.hash % ENTRIES
    is_new = state.last_at_ps[entry] == OFF or signal.now_ps - state.last_at_ps[entry] > params.gap_ps
    if is_new or state.port[entry] >= signal.candidates:
        state.port[entry] = signal.draw % signal.candidates
    state.last_at_ps[entry] = signal.now_ps
    signal.choice = state.port[entry]


PLUGIN = PortSelection(
    params=Params, state=State, step=step, reorders="on-move", source="Vanini et al., NSDI 2017 (LetFlow)"
)
