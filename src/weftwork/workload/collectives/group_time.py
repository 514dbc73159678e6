"""Collectives over the groups of a network, such as a dragonfly's: rates of the groups, and the fastest way over them.

Ways are those of algorithms that offer a closed form over groups (`Algorithm.over_groups`).
Leaves out: the closed forms themselves, which are parts of the algorithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weftwork.spec.fabric import HOST
from weftwork.spec.scenario.choices import ALGORITHMS
from weftwork.workload.collectives.closed_form import Method, latencies
from weftwork.workload.collectives.crossed import crossed
from weftwork.workload.collectives.group_form import GroupRates
from weftwork.workload.collectives.protocols import software

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Placement
    from weftwork.workload.collectives.closed_form import GroupShape
    from weftwork.workload.collectives.figures import CollectiveFigures

__all__ = ["GroupMethod", "GroupRates", "chosen_over_groups", "group_ranks", "group_rates"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupMethod:
    """An algorithm over groups with its keys, and an NCCL protocol.

    Attributes
    ----------
    algorithm : of the catalogue, or the file of a user's own
    options : its keys of the scenario
    protocol : of NCCL, or ``none``
    """

    algorithm: str
    options: Mapping[str, str]
    protocol: str


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
    links = fabric.links
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
    path = crossed(fabric, placement)
    return GroupRates(
        members=members,
        groups=groups,
        host_bps=payload_share * placement.nics.shape[1] * path.link_bps,
        local_bps=payload_share * 2 * float(links["rate_bps"][is_local].sum()) / groups,
        pair_bps=payload_share * pair_bps,
        end_latency_ps=2 * path.to_leaf_ps + path.forwarding_ps + path.nic_ps,
        hop_latency_ps=int(links["delay_ps"][is_own].max()) + path.forwarding_ps,
    )


def chosen_over_groups(
    operation: str,
    size_bytes: int,
    rates: GroupRates,
    group: GroupShape,
    figures: CollectiveFigures,
    *,
    protocols: Sequence[str],
    latency_scale: float = 1.0,
    own: Sequence[str] = (),
) -> tuple[GroupMethod, float]:
    """The fastest way over groups by the closed forms, and its time; of equal ways the first.

    Parameters
    ----------
    operation : all-reduce, reduce-scatter or all-gather
    size_bytes : as nccl-tests counts it
    rates : of the groups
    group, figures : as for `closed_form.alone`, for the latencies of software
    protocols : of NCCL, or ``none`` for a network without software
    latency_scale : of all latencies of software
    own : files with algorithms of a user's own
    """
    offers = {**ALGORITHMS, **{label: ALGORITHMS.load(label) for label in own}}
    forms = {name: offer.over_groups for name, offer in offers.items() if offer.over_groups is not None}
    found = []
    for algorithm, form in forms.items():
        for protocol in protocols:
            wire_bytes, step_ps, base_ps = float(size_bytes), 0.0, 0.0
            if protocol != "none":
                asked = Method(algorithm=algorithm, protocol=protocol)
                taken = latencies(asked, operation, group, size_bytes, figures)
                step_ps, base_ps = latency_scale * taken.step_latency_ps, latency_scale * taken.base_latency_ps
                wire_bytes = size_bytes / software(protocol, algorithm).protocol_efficiency
            for way in form.ways:
                time_ps = form.time_ps(operation, way, wire_bytes, rates, step_ps, base_ps)
                found.append((GroupMethod(algorithm=algorithm, options=way, protocol=protocol), time_ps))
    return min(found, key=lambda one: one[1])
