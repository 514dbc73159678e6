"""The closed form of an algorithm over the groups of a network: a part of the algorithm's record.

An algorithm says by which of its keys it goes over groups, and how long a way takes;
`weftwork.workload.collectives.group_time` tells the rates, and `auto` takes the fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["GroupForm", "GroupRates"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupRates:
    """Groups of a job with the rates of its links.

    Attributes
    ----------
    members, groups : GPUs of a group, groups of the job
    host_bps : of all NIC ports of a GPU
    local_bps : of all links between the switches of a group, both directions added
    pair_bps : from one group to another, in each direction
    end_latency_ps, hop_latency_ps : of a message besides its links between switches, and of each of those
    """

    members: int
    groups: int
    host_bps: float
    local_bps: float
    pair_bps: float
    end_latency_ps: int
    hop_latency_ps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupForm:
    """The closed form of an algorithm over groups.

    Parameters
    ----------
    ways : its keys of the scenario, each way of going over groups
    time_ps : of an all-reduce, reduce-scatter or all-gather by a way: from the operation, the keys, the bytes of the
        buffer as the protocol sends it, the rates of the groups, and the latencies of software, of a step and before
        the first byte
    """

    ways: Sequence[Mapping[str, str]]
    time_ps: Callable[[str, Mapping[str, str], float, GroupRates, float, float], float]
