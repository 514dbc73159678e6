"""A control that sends at one rate from its first packet on. For tests of pacing alone.

Source: chosen: the smallest control whose gaps between packets can be worked out on paper.
Leaves out: any reaction.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, row


class Params:
    sent_bps: int = row(default=70_000_000_000, minimum=1, source="chosen: divides no frame", text="Rate of a flow.")


class State(SenderState):
    """Nothing beyond what the NIC obeys."""


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.START:
        state.rate_bps = float(params.sent_bps)


PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset(), source="none")
