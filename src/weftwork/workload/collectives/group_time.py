"""Closed-form time of a collective over the groups of a network, such as a dragonfly's.

Phases follow each other: reduce-scatter in the group, exchange across groups, all-gather in the group. Each takes its
steps times a latency, and the bytes of its busiest links.
Source: the file of `hierarchical`; Cho et al., BlueConnect, MLSys 2019.
Leaves out: local links on the way to the link of another group, of which a balanced network has enough; other traffic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.spec.fabric import HOST
from weftwork.workload.collectives.closed_form import Method, latencies
from weftwork.workload.collectives.protocols import software

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Placement
    from weftwork.workload.collectives.closed_form import GroupShape
    from weftwork.workload.collectives.figures import CollectiveFigures

__all__ = ["GroupMethod", "GroupRates", "chosen_over_groups", "group_ranks", "group_rates", "group_time_ps"]

_LOOPS: Final = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1}
LOCAL_LINKS, GLOBAL_LINKS = 1, 3  # of the longest shortest path in a group of all-to-all links, and between two


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupMethod:
    """Keys of `hierarchical` over groups, and an NCCL protocol."""

    within: str
    across: str
    protocol: str

    @property
    def options(self) -> dict[str, str]:
        """Keys of the scenario."""
        return {"level": "group", "within": self.within, "across": self.across}


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


def group_ranks(fabric: Fabric, placement: Placement) -> int:
    """Number of consecutive ranks in one group or pod of the fabric.

    1 if the ranks are not whole blocks of equal length, each of another group, or the fabric has no groups.

    Parameters
    ----------
    fabric, placement : of the job
    """
    if fabric.node_pod is None:
        return 1
    group = fabric.node_pod[fabric.hosts[placement.host]]
    begins = np.flatnonzero(np.diff(group, prepend=-2))
    lengths = np.diff(begins, append=len(group))
    is_regular = len(np.unique(lengths)) == 1 and len(np.unique(group)) == len(begins) and (group >= 0).all()
    return int(lengths[0]) if is_regular else 1


def group_rates(fabric: Fabric, placement: Placement, members: int, *, payload_share: float = 1.0) -> GroupRates | None:
    """Rates of the groups of a job; None where links do not join all pairs of groups.

    Parameters
    ----------
    fabric, placement : of the job
    members : GPUs of a group, as of `group_ranks`
    payload_share : of the bytes on a link that are data
    """
    pod = fabric.node_pod
    if pod is None:
        return None
    links, ports = fabric.links, fabric.ports
    is_host = fabric.node_kind == HOST
    is_inner = ~is_host[links["a"]] & ~is_host[links["b"]]
    one, other = (pod[links[end]] for end in ("a", "b"))
    own = np.unique(pod[fabric.hosts[placement.host]])
    is_own = is_inner & np.isin(one, own) & np.isin(other, own)
    is_local, is_global = is_own & (one == other), is_own & (one != other)
    groups = len(own)
    at = np.searchsorted(own, np.stack([one[is_global], other[is_global]]))
    pairs = np.zeros((groups, groups))
    np.add.at(pairs, (at.min(axis=0), at.max(axis=0)), links["rate_bps"][is_global])
    pair_bps = float(pairs[np.triu_indices(groups, 1)].min(initial=np.inf))
    if groups < 2 or pair_bps == 0:
        return None
    node = fabric.hosts[placement.host]
    port_bps = int(links["rate_bps"][ports.link[ports.base[node][:, None] + placement.nics]].min())
    nic = fabric.nics[int(fabric.node_device[node[0]])]
    forwarding_ps = max((switch.forwarding_latency_ps for switch in fabric.switches), default=0)
    ends = is_host[links["a"]] | is_host[links["b"]]
    return GroupRates(
        members=members,
        groups=groups,
        host_bps=payload_share * placement.nics.shape[1] * port_bps,
        local_bps=payload_share * 2 * float(links["rate_bps"][is_local].sum()) / groups,
        pair_bps=payload_share * pair_bps,
        end_latency_ps=2 * int(links["delay_ps"][ends].max())
        + forwarding_ps
        + nic.receive_latency_ps
        + nic.pcie_latency_ps,
        hop_latency_ps=int(links["delay_ps"][is_inner].max()) + forwarding_ps,
    )


def group_time_ps(
    operation: str,
    within: str,
    across: str,
    wire_bytes: float,
    rates: GroupRates,
    *,
    step_latency_ps: float = 0.0,
    base_latency_ps: float = 0.0,
) -> float:
    """Time of `hierarchical` over groups.

    Parameters
    ----------
    operation : all-reduce, reduce-scatter or all-gather
    within, across : ``ring`` or ``direct``
    wire_bytes : of the buffer as the protocol sends it
    rates : of the groups
    step_latency_ps, base_latency_ps : of the software
    """
    members, groups = rates.members, rates.groups
    local_ps, global_ps = (
        rates.end_latency_ps + links * rates.hop_latency_ps + step_latency_ps for links in (LOCAL_LINKS, GLOBAL_LINKS)
    )

    def busy_ps(*loads: tuple[float, float]) -> float:
        return 8 * SECOND_PS * max(size / bps if size else 0.0 for size, bps in loads)

    piece = wire_bytes / members
    if members == 1:
        inside_ps = 0.0
    elif within == "direct":
        each = (members - 1) * piece
        inside_ps = local_ps + busy_ps((each, rates.host_bps), (members * each, rates.local_bps or rates.host_bps))
    else:
        inside_ps = (members - 1) * (local_ps + busy_ps((piece, rates.host_bps)))
    part = piece / groups
    if across == "direct":
        across_ps = global_ps + busy_ps(((groups - 1) * part, rates.host_bps), (members * part, rates.pair_bps))
    else:
        across_ps = (groups - 1) * (global_ps + busy_ps((part, rates.host_bps), (members * part, rates.pair_bps)))
    return base_latency_ps + _LOOPS[operation] * (inside_ps + across_ps)


def chosen_over_groups(
    operation: str,
    size_bytes: int,
    rates: GroupRates,
    group: GroupShape,
    figures: CollectiveFigures,
    *,
    protocols: Sequence[str],
    latency_scale: float = 1.0,
) -> tuple[GroupMethod, float]:
    """The fastest way of `hierarchical` over groups, and its time.

    Parameters
    ----------
    operation : all-reduce, reduce-scatter or all-gather
    size_bytes : as nccl-tests counts it
    rates : of the groups
    group, figures : as for `closed_form.alone`, for the latencies of software
    protocols : of NCCL, or ``none`` for a network without software
    latency_scale : of all latencies of software
    """
    found = []
    for protocol in protocols:
        wire_bytes, step_ps, base_ps = float(size_bytes), 0.0, 0.0
        if protocol != "none":
            taken = latencies(
                Method(algorithm="hierarchical", protocol=protocol), operation, group, size_bytes, figures
            )
            step_ps, base_ps = latency_scale * taken.step_latency_ps, latency_scale * taken.base_latency_ps
            wire_bytes = size_bytes / software(protocol, "hierarchical").protocol_efficiency
        for within in ("direct", "ring"):
            for across in ("direct", "ring"):
                time_ps = group_time_ps(
                    operation, within, across, wire_bytes, rates, step_latency_ps=step_ps, base_latency_ps=base_ps
                )
                found.append((GroupMethod(within=within, across=across, protocol=protocol), time_ps))
    return min(found, key=lambda one: one[1])
