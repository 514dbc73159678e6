"""Least loaded: every packet leaves by the port whose queue drains first.

Source: github.com/ultraethernet/uet-htsim, htsim/sim, ADAPTIVE switch strategy, with the queue as its key.
Leaves out: quantised or delayed readings; the queue is exact at this instant. The receiver has to stand reordering.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """No parameters."""


class State:
    """No state."""


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Choose the least queue bytes / rate.

    Ties go to the first port after a random start.
    """
    start = signal.draw % signal.candidates
    signal.choice = start
    least = -1.0
    for offset in range(signal.candidates):
        index = (start + offset) % signal.candidates
        load = float(candidates[index].queue_bytes) / candidates[index].rate_bps
        if least < 0.0 or load < least:
            least = load
            signal.choice = index


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    reorders="always",
    spreads="evenly",
    needs=frozenset({"queue", "reorder-tolerance"}),
    source="uet-htsim, htsim/sim, ADAPTIVE switch strategy",
)
