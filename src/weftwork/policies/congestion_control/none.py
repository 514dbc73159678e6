"""No congestion control: flows send at line rate, limited by flow control only.

Source: RoCEv2 with DCQCN off, as at 400 Gb/s in Gangidi et al., SIGCOMM 2024, doi:10.1145/3651890.3672233.
Leaves out: everything.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, SenderState, Signal

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """No parameters."""


class State(SenderState):
    """No state besides rate and window."""


def step(params: Params, state: State, signal: Signal) -> None:
    """Keep line rate and no window, as the NIC has set them."""


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset(),
    source="Gangidi et al., SIGCOMM 2024, doi:10.1145/3651890.3672233 (DCQCN off)",
)
