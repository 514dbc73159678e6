"""A control that halves its rate whenever it hears of a loss, and never raises it. For tests of how often it hears.

Source: chosen: the smallest control by which one can count.
Leaves out: any sense.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, row


class Params:
    factor: float = row(default=0.5, minimum=0.01, maximum=1, source="chosen: exact", text="Of the rate.")


class State(SenderState):
    """Nothing beyond what the NIC obeys."""


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.NAK:
        state.rate_bps *= params.factor


PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset({Kind.NAK}), source="none")
