"""A control whose timer stops it for good, unless the retransmission timer comes first. For tests of the order alone.

Source: chosen: the smallest control that tells which of two timers of one instant was first.
Leaves out: any sense.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, SenderState, Signal, row


class Params:
    timer_ps: int = row(
        default="10us", minimum=1, source="chosen: that of the transport", text="After a packet's start."
    )


class State(SenderState):
    """Nothing beyond what the NIC obeys."""


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.SEND:
        state.timer_at_ps[0] = signal.now_ps + params.timer_ps
    elif signal.kind == Kind.TIMEOUT:
        state.timer_at_ps[0] = OFF
    elif signal.kind == Kind.TIMER:
        state.window_bytes = 0.0


PLUGIN = CongestionControl(
    params=Params, state=State, step=step, signals=frozenset({Kind.SEND, Kind.TIMEOUT}), source="none"
)
