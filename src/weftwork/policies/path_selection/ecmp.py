"""ECMP: a queue pair keeps one entropy, so switches hash it to one path.

Source: the RoCEv2 source port is constant per queue pair (Linux, ib_verbs.h, rdma_flow_label_to_udp_sport).
Leaves out: several queue pairs per connection, which is the transport's to open.
"""

from __future__ import annotations

from weftwork.policies.interface import PathSelection, PathState, Signal

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """No parameters."""


class State(PathState):
    """No state besides the entropy."""


def step(params: Params, state: State, signal: Signal) -> None:
    """Keep the entropy that the NIC has set."""


PLUGIN = PathSelection(
    params=Params,
    state=State,
    step=step,
    per="message",
    reorders="never",
    spreads="constant",
    source="RFC 2992; Linux rdma_flow_label_to_udp_sport",
)
