"""No congestion control: a flow sends at line rate, and only flow control holds it back.

Source: RoCEv2 with DCQCN off, as at 400 Gb/s in Gangidi et al., SIGCOMM 2024, doi:10.1145/3651890.3672233.
Leaves out: everything.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, SenderState, Signal

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """None."""


class State(SenderState):
    """Nothing beyond what the NIC obeys."""


def step(params: Params, state: State, signal: Signal) -> None:
    """Leave line rate and no window, as the NIC has set them."""


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset(),
    source="Gangidi et al., SIGCOMM 2024, doi:10.1145/3651890.3672233 (DCQCN off)",
)
