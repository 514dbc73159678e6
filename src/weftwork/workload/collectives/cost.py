"""Cost of a collective as one operation: overhead, bytes, efficiencies.

The operation is `weftwork.spec.job.Collect`. The operation takes as long, alone, as the closed form (`closed_form`)
says of the method that NCCL takes (`tuner`). What the busiest link carries becomes bytes with an efficiency, which
contend with others; the rest of the time is overhead.
Leaves out: SHARP in a fabric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from weftwork.base.clock import SECOND_PS, whole_ps
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.training import Software
from weftwork.workload.collectives.closed_form import OPERATIONS, GroupShape, Method
from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.collectives.tuner import chosen

__all__ = ["CollectiveCost", "collective_cost"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectiveCost:
    """Fields of a `Collect` by name, its method, and its time alone.

    A method of None means that nothing crosses a link. ``path_ps`` is the latency of its path, which engines add by
    themselves.
    """

    overhead_ps: int
    amount_bytes: int
    pattern: Literal["ring", "all-to-all"]
    local_efficiency: float
    network_efficiency: float
    method: Method | None
    alone_ps: int
    path_ps: int


def collective_cost(
    operation: str,
    *,
    members: int,
    per_domain: int,
    domain_gpus: int,
    size_bytes: float,
    figures: CollectiveFigures,
    software: Software,
) -> CollectiveCost:
    """Cost of one collective operation of a group.

    The group has the machine to itself, or shares it with similar groups.

    Parameters
    ----------
    operation : all-reduce, all-gather, reduce-scatter or all-to-all
    members : of the group, at least one
    per_domain : members that share an NVLink domain, where most do
    domain_gpus : of one NVLink domain
    size_bytes : as nccl-tests counts it: the whole buffer, also of an all-gather or reduce-scatter
    figures : of the servers
    software : whose efficiency of the network and scale of latencies hold

    Raises
    ------
    ConfigError : no such operation, or no members
    """
    _check(operation, members, per_domain)
    pattern: Literal["ring", "all-to-all"] = "all-to-all" if operation == "all-to-all" else "ring"
    if members == 1 or size_bytes <= 0:
        return CollectiveCost(
            overhead_ps=0, amount_bytes=0, pattern=pattern, local_efficiency=1.0, network_efficiency=1.0, method=None,
            alone_ps=0, path_ps=figures.nvlink_latency_ps,
        )  # fmt: skip
    group = GroupShape(members=members, per_domain=per_domain, domain_gpus=domain_gpus)
    share = min(software.network_efficiency, figures.network_share)
    found = chosen(
        operation, group, size_bytes, figures, network_efficiency=share, latency_scale=software.latency_scale
    )
    rounds = 2 if operation == "all-reduce" else 1
    bus_bytes = rounds * (members - 1) / members * size_bytes
    is_far = group.domains > 1
    if pattern == "ring":
        near = bus_bytes * (1 - 1 / per_domain) if is_far else bus_bytes
        far = bus_bytes / per_domain if is_far else 0.0
    else:
        near, far = size_bytes * (per_domain - 1) / members, size_bytes * (members - per_domain) / members
    nic_bps = figures.network_rate_bps * figures.payload_share * share
    busy_ps = 8 * SECOND_PS * max(found.local_bytes / figures.nvlink_rate_bps, found.network_bytes / nic_bps)
    path_ps = figures.network_latency_ps if is_far else figures.nvlink_latency_ps
    return CollectiveCost(
        overhead_ps=max(0, whole_ps(found.time_ps - busy_ps - path_ps)),
        amount_bytes=round(size_bytes if pattern == "all-to-all" else bus_bytes),
        pattern=pattern,
        local_efficiency=near / found.local_bytes if near and found.local_bytes else 1.0,
        network_efficiency=share * far / found.network_bytes
        if far and found.network_bytes
        else share
        if is_far
        else 1.0,
        method=found.method,
        alone_ps=whole_ps(found.time_ps),
        path_ps=path_ps,
    )


def _check(operation: str, members: int, per_domain: int) -> None:
    mistakes = []
    if operation not in OPERATIONS:
        text = f"found '{operation}', wanted {', '.join(OPERATIONS)}"
        mistakes.append(Mistake(path="collective.operation", text=text))
    if not 1 <= per_domain <= members:
        text = f"found {per_domain} of {plural(members, 'member')} in an NVLink domain, wanted 1 to {members}"
        mistakes.append(Mistake(path="collective.members", text=text))
    if mistakes:
        raise ConfigError("collective", mistakes)
