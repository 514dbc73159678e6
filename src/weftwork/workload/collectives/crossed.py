"""Switches, links and NICs that messages between the GPUs of a job cross.

A closed form takes the slowest of them. A slow switch that no message crosses changes nothing.
In a tree the switches are those above the leaves of the job, up to the tier that joins them. In a direct network they
are those on shortest paths between the switches of the job.
Leaves out: which of equal paths a message takes, and groups inside a job: the slowest group of a job is waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.spec.fabric import HOST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Placement

__all__ = ["Crossed", "crossed", "crossed_switches", "own_switches", "slowest_forwarding_ps"]

_GLOBAL_LENGTH: Final = 64.0  # chosen: of a link between groups; longer than any way inside them, as routes have it
_MOST_WORK: Final = 20_000_000  # chosen: pairs of switches times switches; numpy takes some tenths of a second


@dataclass(frozen=True, kw_only=True, slots=True)
class Crossed:
    """The slowest of what messages of a job cross.

    Attributes
    ----------
    link_bps : rate of the link of a NIC port
    port_bps : the same, or that of the host interface behind it if that is slower
    to_leaf_ps : propagation of the longest cable between a host and its switch
    to_host_ps : propagation of the longest cable between two hosts
    forwarding_ps : of a switch
    nic_ps : that a receiving NIC takes
    """

    link_bps: int
    port_bps: int
    to_leaf_ps: int
    to_host_ps: int
    forwarding_ps: int
    nic_ps: int


def crossed(fabric: Fabric, placement: Placement) -> Crossed:
    """The slowest of what messages of a job cross.

    Parameters
    ----------
    fabric, placement : of the job
    """
    used = _used_ports(fabric, placement)
    ports, links = fabric.ports, fabric.links
    link = ports.link[used]
    to_host = fabric.node_kind[ports.node[ports.peer[used]]] == HOST
    delay_ps = links["delay_ps"][link]
    nics = [fabric.nics[index] for index in np.unique(fabric.node_device[fabric.hosts[placement.host]]).tolist()]
    pcie_bps = min((nic.pcie_rate_bps for nic in nics if nic.pcie_rate_bps), default=None)
    link_bps = int(links["rate_bps"][link].min())
    return Crossed(
        link_bps=link_bps,
        port_bps=link_bps if pcie_bps is None else min(link_bps, pcie_bps),
        to_leaf_ps=int(delay_ps[~to_host].max(initial=0)),
        to_host_ps=int(delay_ps[to_host].max(initial=0)),
        forwarding_ps=_forwarding_ps(fabric, placement),
        nic_ps=max((nic.receive_latency_ps + nic.pcie_latency_ps for nic in nics), default=0),
    )


def _forwarding_ps(fabric: Fabric, placement: Placement) -> int:
    """Forwarding latency of the slowest switch that messages of a job cross."""
    if len({switch.forwarding_latency_ps for switch in fabric.switches}) > 1:
        return slowest_forwarding_ps(fabric, crossed_switches(fabric, placement))
    return slowest_forwarding_ps(fabric, own_switches(fabric, placement)[:1])  # all are alike: no path is looked for


def slowest_forwarding_ps(fabric: Fabric, switches: NDArray[np.int64]) -> int:
    """Forwarding latency of the slowest of some switches; 0 for none.

    Parameters
    ----------
    fabric : that has them
    switches : node indices
    """
    devices = np.unique(fabric.node_device[switches]).tolist()
    return max((fabric.switches[index].forwarding_latency_ps for index in devices), default=0)


def own_switches(fabric: Fabric, placement: Placement) -> NDArray[np.int64]:
    """Node indices of the switches on which NIC ports of a job hang.

    Parameters
    ----------
    fabric, placement : of the job
    """
    ports = fabric.ports
    ends = ports.node[ports.peer[_used_ports(fabric, placement)]]
    return np.unique(ends[fabric.node_kind[ends] != HOST]).astype(np.int64)


def crossed_switches(fabric: Fabric, placement: Placement) -> NDArray[np.int64]:
    """Node indices of the switches that messages of a job cross.

    Parameters
    ----------
    fabric, placement : of the job
    """
    leaves = own_switches(fabric, placement)
    if len(leaves) < 2:
        return leaves
    return _above(fabric, leaves) if fabric.direct is None else _between(fabric, leaves)


def _used_ports(fabric: Fabric, placement: Placement) -> NDArray[np.int64]:
    """Ports of the NICs of a job, each once."""
    is_gpu = np.ones(len(placement.host), bool) if placement.gpu is None else placement.gpu >= 0
    base = fabric.ports.base[fabric.hosts[placement.host[is_gpu]]]
    return np.unique(base[:, None] + placement.nics[is_gpu])


def _above(fabric: Fabric, leaves: NDArray[np.int64]) -> NDArray[np.int64]:
    """Leaves of a tree and the switches above them, up to the tier that joins those leaves that any tier joins."""
    links, tier, kind = fabric.links, fabric.node_tier, fabric.node_kind
    is_inner = (kind[links["a"]] != HOST) & (kind[links["b"]] != HOST)
    a, b = links["a"][is_inner], links["b"][is_inner]
    low, high = np.where(tier[a] <= tier[b], a, b), np.where(tier[a] <= tier[b], b, a)
    levels = np.unique(tier[high]).tolist()
    is_leaf = np.isin(np.arange(len(kind)), leaves)
    every = is_leaf.copy()
    for level in levels:
        every[high[every[low] & (tier[high] == level)]] = True
    whole = _leaves_joined(low, high, every, leaves)
    reached = is_leaf
    for level in levels:
        lacks = reached & (_leaves_joined(low, high, reached, leaves) < whole)
        reached[high[lacks[low] & (tier[high] == level)]] = True
    return np.flatnonzero(reached)


def _leaves_joined(
    low: NDArray[np.int32], high: NDArray[np.int32], is_reached: NDArray[np.bool_], leaves: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Number of leaves that links between reached switches join with each switch. Shape (nodes,)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    is_used, count = is_reached[low] & is_reached[high], len(is_reached)
    graph = csr_array((np.ones(is_used.sum()), (low[is_used], high[is_used])), shape=(count, count))
    _, network = connected_components(graph, directed=False)
    joined: NDArray[np.int64] = np.bincount(network[leaves], minlength=count)[network]
    return joined


def _between(fabric: Fabric, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Switches on shortest paths between switches of a direct network.

    Where there are too many pairs it is all switches, or those of the same groups.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    is_switch = fabric.node_kind != HOST
    every = np.flatnonzero(is_switch)
    if len(own) ** 2 * len(every) > _MOST_WORK:
        return every if fabric.node_pod is None else every[np.isin(fabric.node_pod[every], fabric.node_pod[own])]
    a, b = fabric.links["a"], fabric.links["b"]
    is_inner = is_switch[a] & is_switch[b]
    count = len(fabric.node_kind)
    is_global = np.zeros(len(a), bool) if fabric.direct is None else fabric.direct.is_global
    length = np.where(is_global, _GLOBAL_LENGTH, 1.0)[is_inner]
    ends = np.sort(np.stack([a[is_inner], b[is_inner]]), axis=0)
    _, first = np.unique(ends, axis=1, return_index=True)  # parallel links are alike
    graph = csr_array((length[first], tuple(ends[:, first])), shape=(count, count))
    hops = dijkstra(graph, directed=False, indices=own)
    is_on_path = np.zeros(count, bool)
    for place in range(len(own)):
        shortest = hops[place, own]
        both = hops[place][None, :] + hops
        is_on_path |= ((both == shortest[:, None]) & np.isfinite(both)).any(axis=0)
    return np.flatnonzero(is_on_path & is_switch)
