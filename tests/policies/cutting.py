"""A control that cuts its window to a part whenever it hears of a loss. For tests of what a window holds back.

Source: chosen: the smallest control after which less fits than was in flight.
Leaves out: any growth.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, row


class Params:
    packets: int = row(default=16, minimum=1, maximum=1_000, source="chosen: a few", text="Of the first window.")
    factor: float = row(default=0.5, minimum=0.01, maximum=1, source="chosen: exact", text="Of the window.")


class State(SenderState):
    """Nothing beyond what the NIC obeys."""


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.START:
        state.window_bytes = float(params.packets * signal.mtu_bytes)
    elif signal.kind == Kind.NAK:
        state.window_bytes = max(params.factor * state.window_bytes, float(signal.mtu_bytes))


PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset({Kind.NAK}), source="none")
