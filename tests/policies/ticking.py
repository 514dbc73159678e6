"""A control whose timer fires for ever and changes nothing. For tests of what ends a run, not for results.

Source: chosen: as DCQCN's timers, without its rate. Leaves out: any sense.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, SenderState, Signal, row


class Params:
    every_ps: int = row(default="5us", minimum=1, source="chosen: some round trips", text="Time between two timers.")


class State(SenderState):
    ticks: int


def step(params: Params, state: State, signal: Signal) -> None:
    state.ticks += 1
    state.timer_at_ps[0] = signal.now_ps + params.every_ps


PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset(), source="none")
