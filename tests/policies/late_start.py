"""A control that lets nothing go before its timer has opened the window. For tests of timers alone.

Source: chosen: the smallest control that stands still if its timer is lost.
Leaves out: any sense.
"""

from __future__ import annotations

from weftwork.policies.interface import NO_WINDOW_BYTES, CongestionControl, Kind, SenderState, Signal, row


class Params:
    timer_ps: int = row(default="40us", minimum=1, source="chosen: after the failover", text="After the first message.")


class State(SenderState):
    """Nothing beyond what the NIC obeys."""


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.START:
        state.window_bytes = 0.0
        state.timer_at_ps[0] = signal.now_ps + params.timer_ps
    elif signal.kind == Kind.TIMER:
        state.window_bytes = NO_WINDOW_BYTES


PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset(), source="none")
