"""Static measures of a fabric: counts, bisection, hops, path diversity, delay.

They are known before a packet is sent.
Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 3.1 (bisection, diameter,
path diversity). Reduction by symmetry: Grohe, Kersting, Mladenov and Selman, ESA 2014,
doi:10.1007/978-3-662-44777-2_42.
Leaves out: what a routing or a hash makes of the paths; bisection here is what the best routing could carry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weftwork.base.grammar import plural
from weftwork.spec.fabric import HOST, Fabric
from weftwork.topology.channel_loads import DesignedCut, UniformTraffic, designed_cut, uniform_traffic
from weftwork.topology.oversubscription import oversubscription_by_tier
from weftwork.topology.routing import attachments, search, switch_distances

__all__ = [
    "Bisection",
    "Counts",
    "Measures",
    "PathLength",
    "bisection",
    "counts",
    "host_kinds",
    "measure",
    "path_sample",
    "paths",
]

WORK = 20_000_000  # chosen: port visits per level of the search over paths, about a second
HOPS_OF_TREES = 6  # chosen: three tiers
MOST = 2**31 - 1  # SciPy's max-flow counts in 32 bits


@dataclass(frozen=True, kw_only=True, slots=True)
class Bisection:
    """Bandwidth from the first half of the hosts to the second half.

    It counts one way.

    Attributes
    ----------
    rate_bps : the largest flow between the halves
    hosts_bps : what the links of the smaller half's hosts could carry
    method : how it was computed, for people
    """

    rate_bps: int
    hosts_bps: int
    method: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PathLength:
    """The pairs of host ports at one distance in hops.

    Attributes
    ----------
    hops : links from host to host
    share : of all pairs, also of those that cannot reach each other, such as ports on separate planes
    paths_min, paths_median, paths_max : shortest paths of a pair; parallel links count
    rtt_min_ps, rtt_max_ps : there and back over the quickest shortest path: propagation, forwarding and receive
        latency, without serialisation
    """

    hops: int
    share: float
    paths_min: int
    paths_median: float
    paths_max: int
    rtt_min_ps: int
    rtt_max_ps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Measures:
    """A fabric in numbers.

    Attributes
    ----------
    hosts, switches, host_links, switch_links : counts; a switch link joins two switches
    switches_by_tier : tier to count
    oversubscription_by_tier : tier to bandwidth down divided by bandwidth up, the largest of any switch of the tier
        that has links up; links within a tier count for neither
    bisection : see `Bisection`
    diameter_hops : links between the two host ports that are farthest apart, of those that reach each other
    paths : by hops, ascending
    sample : how many of ``attachments`` destinations the paths were counted for, evenly spaced
    uniform, cut : of a direct network: uniform traffic over shortest paths, and links between its halves; None: a tree
    """

    hosts: int
    switches: int
    host_links: int
    switch_links: int
    switches_by_tier: dict[int, int]
    oversubscription_by_tier: dict[int, float]
    bisection: Bisection
    diameter_hops: int
    paths: tuple[PathLength, ...]
    sample: int
    attachments: int
    uniform: UniformTraffic | None = None
    cut: DesignedCut | None = None


def measure(fabric: Fabric) -> Measures:
    """All measures of a fabric.

    In the largest fabrics, paths are counted for a sample of the destinations.
    """
    is_switch = fabric.node_kind != HOST
    a, b = fabric.links["a"], fabric.links["b"]
    between = is_switch[a] & is_switch[b]
    tiers, numbers = np.unique(fabric.node_tier[is_switch], return_counts=True)
    attach_node = attachments(fabric)[0]
    width = len(attach_node)
    diameter = _diameter(fabric, attach_node)
    sample = path_sample(fabric, hops=diameter)
    return Measures(
        hosts=len(fabric.hosts),
        switches=int(is_switch.sum()),
        host_links=int((~between).sum()),
        switch_links=int(between.sum()),
        switches_by_tier=dict(zip(tiers.tolist(), numbers.tolist(), strict=True)),
        oversubscription_by_tier=oversubscription_by_tier(fabric),
        bisection=bisection(fabric),
        diameter_hops=diameter,
        paths=paths(fabric, sample=sample),
        sample=sample,
        attachments=width,
        uniform=uniform_traffic(fabric),
        cut=designed_cut(fabric),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """Numbers of a fabric that need no count of paths; see `Measures`."""

    switches: int
    host_links: int
    switch_links: int
    diameter_hops: int


def counts(fabric: Fabric) -> Counts:
    """Numbers of switches and links, and the diameter."""
    is_switch = fabric.node_kind != HOST
    between = is_switch[fabric.links["a"]] & is_switch[fabric.links["b"]]
    return Counts(
        switches=int(is_switch.sum()), host_links=int((~between).sum()), switch_links=int(between.sum()),
        diameter_hops=_diameter(fabric, attachments(fabric)[0]),
    )  # fmt: skip


def path_sample(fabric: Fabric, *, hops: int = 0) -> int:
    """Number of destinations (attachments) whose paths are counted.

    It is all, or as many as take some seconds.

    Parameters
    ----------
    fabric : whose destinations
    hops : of its longest path, where it is known; beyond those of a tree, fewer destinations are counted
    """
    width = len(attachments(fabric)[0])
    work = WORK * HOPS_OF_TREES // max(hops, HOPS_OF_TREES)
    return int(min(width, max(1, work // max(len(fabric.ports.node), 1))))


def _diameter(fabric: Fabric, attach_node: NDArray[np.int32]) -> int:
    """Two host links plus switch links between the farthest attachments."""
    farthest = 0
    for hops, (owners, reached) in enumerate(search(fabric, fabric.links_at_start, attach_node), start=1):
        if reached[np.isin(owners, attach_node)].any():
            farthest = hops
    wires_only = bool((fabric.node_kind[attach_node] == HOST).all())
    return 1 if wires_only else farthest + 2


def bisection(fabric: Fabric) -> Bisection:
    """Largest flow from the first half of the hosts to the second half.

    Halves are in the order of the hosts. Nodes that no chain of neighbours tells apart are merged first: spreading a
    flow evenly over equal nodes changes neither its size nor any limit, so that the flow over the merged kinds is that
    of the fabric. A fat tree becomes a chain of kinds, and the result its closed form.

    Notes
    -----
    Hosts do not forward: those of the first half only send, those of the second half only receive. If the fabric says
    that hosts forward, they also pass on flows of others.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    hosts, ports, links = fabric.hosts, fabric.ports, fabric.links
    if not len(links):
        return Bisection(rate_bps=0, hosts_bps=0, method="there are no links")
    half = len(hosts) // 2
    side = np.zeros(len(fabric.node_names), np.int64)
    side[hosts[:half]], side[hosts[half:]] = 1, 2
    rate = links["rate_bps"][ports.link]
    label = _node_kinds(ports.node, ports.node[ports.peer], rate, side)
    kinds = int(label.max()) + 1
    tail, head = ports.node, ports.node[ports.peer]
    kept = ((side[head] != 1) & (side[tail] != 2)) | fabric.hosts_forward
    source, sink = kinds, kinds + 1
    sends, receives = side[tail] == 1, side[head] == 2
    edges = np.concatenate([
        np.stack([label[tail[kept]], label[head[kept]]]),
        np.stack([np.full(int(sends.sum()), source), label[tail[sends]]]),
        np.stack([label[head[receives]], np.full(int(receives.sum()), sink)]),
    ], axis=1)  # fmt: skip
    weight = np.concatenate([rate[kept], rate[sends], rate[receives]])
    total = min(int(rate[sends].sum()), int(rate[receives].sum()))
    inside = edges[0] != edges[1]
    key, inverse = np.unique(edges[0, inside] * (kinds + 2) + edges[1, inside], return_inverse=True)
    capacity = np.zeros(len(key), np.int64)
    np.add.at(capacity, inverse, weight[inside])
    capacity = np.minimum(capacity, total)  # no link needs more than all that is sent
    unit = int(np.gcd.reduce(np.append(capacity, total))) or 1
    exact = total // unit <= MOST
    if not exact:
        unit = -(-total // MOST)
    graph = csr_array(
        ((capacity // unit).astype(np.int32), (key // (kinds + 2), key % (kinds + 2))),
        shape=(kinds + 2, kinds + 2),
    )
    flow = int(maximum_flow(graph, source, sink).flow_value) * unit if total else 0
    method = (
        f"max-flow over {plural(kinds, 'kind')} of equal nodes of {len(side):,}" if kinds < len(side) else "max-flow"
    )
    if not exact:
        method += f", capacities rounded down to multiples of {unit:,} bit/s"
    return Bisection(rate_bps=flow, hosts_bps=total, method=method)


def host_kinds(fabric: Fabric, *, apart: int | None = None) -> NDArray[np.int64]:
    """Class of every host.

    Hosts of one class have equal bandwidth to every class of nodes.

    Parameters
    ----------
    fabric : whose hosts
    apart : a node that is told apart from all others, so that kinds say how nodes lie towards it

    Returns
    -------
    shape (hosts,)
    """
    ports = fabric.ports
    hosts = fabric.hosts
    label: NDArray[np.int64] = (fabric.node_kind == HOST).astype(np.int64)
    if apart is not None:
        label[apart] = 2
    if len(ports.node):
        rate = fabric.links["rate_bps"][ports.link]
        label = _node_kinds(ports.node, ports.node[ports.peer], rate, label)
    kinds: NDArray[np.int64] = label[hosts]
    return kinds


def _node_kinds(
    node: NDArray[np.int32], peer: NDArray[np.int32], rate_bps: NDArray[np.int64], label: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Refine labels until classes have equal bandwidths (colour refinement).

    Nodes of one class then have equal bandwidth to every class. Sums of hashes of the neighbours' labels stand for the
    multisets; 64 bits keep different ones apart.
    """
    owners, starts = np.unique(node, return_index=True)
    found = len(np.unique(label))
    while True:
        mixed = _hash(label.astype(np.uint64))
        signature = _hash(mixed + np.uint64(1))
        signature[owners] += np.add.reduceat(_hash(mixed[peer] ^ rate_bps.astype(np.uint64)), starts)
        _, label = np.unique(signature, return_inverse=True)
        now = int(label.max()) + 1
        if now == found:
            return label.astype(np.int64)
        found = now


def _hash(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, doi:10.1145/2660193.2660195)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def paths(fabric: Fabric, *, sample: int | None = None) -> tuple[PathLength, ...]:
    """Shortest paths between host ports, by hops.

    Parameters
    ----------
    fabric : whose hosts
    sample : destinations (attachments) to look at, evenly spaced; by default all
    """
    attach_node, attach_of_port = attachments(fabric)
    width = len(attach_node)
    if not width:
        return ()
    step = width if sample is None else min(sample, width)
    columns = np.arange(step) * width // step
    distance = switch_distances(fabric, fabric.links_at_start, attach_node[columns])
    count, quickest = _levels(fabric, attach_node[columns], distance)
    # the ends of a round trip: the host's link twice, and its NIC once
    ports = fabric.ports
    endpoint = np.flatnonzero(attach_of_port >= 0)
    receive = np.array([nic.receive_latency_ps for nic in fabric.nics], np.int64)
    end_ps = 2 * fabric.links["delay_ps"][ports.link[endpoint]] + receive[fabric.node_device[ports.node[endpoint]]]
    order = np.lexsort((end_ps, attach_of_port[endpoint]))
    end_ps, begin = end_ps[order], np.searchsorted(attach_of_port[endpoint][order], np.arange(width + 1))
    hosts = np.diff(begin)
    low, high = end_ps[begin[:-1]], end_ps[begin[1:] - 1]
    rows = distance[attach_node]  # shape (attachments, columns)
    pairs = hosts[:, None] * hosts[None, columns]
    itself = (columns, np.arange(step))
    pairs[itself] -= hosts[columns]  # a port is no pair with itself
    fastest = 2 * quickest[attach_node] + low[:, None] + low[None, columns]
    slowest = 2 * quickest[attach_node] + high[:, None] + high[None, columns]
    several = hosts[columns] > 1
    begins, ends = begin[columns[several]], begin[columns[several] + 1]
    at = (columns[several], np.arange(step)[several])
    fastest[at] = 2 * quickest[attach_node][at] + end_ps[begins] + end_ps[begins + 1]
    slowest[at] = 2 * quickest[attach_node][at] + end_ps[ends - 1] + end_ps[ends - 2]
    reached = (rows >= 0) & (pairs > 0)
    total = _pairs(fabric) * hosts[columns].sum() / hosts.sum()
    lengths = []
    for hops in np.unique(rows[reached]).tolist():
        here = reached & (rows == hops)
        lengths.append(
            PathLength(
                hops=hops + 2,
                share=float(pairs[here].sum() / total),
                paths_min=int(count[attach_node][here].min()),
                paths_median=_median(count[attach_node][here], pairs[here]),
                paths_max=int(count[attach_node][here].max()),
                rtt_min_ps=int(fastest[here].min()),
                rtt_max_ps=int(slowest[here].max()),
            )
        )
    wires = _wires(fabric)
    return tuple(lengths) if wires is None else (wires, *lengths)


def _pairs(fabric: Fabric) -> int:
    """Ordered pairs of different host ports."""
    count = int((fabric.node_kind[fabric.ports.node] == HOST).sum())
    return count * (count - 1)


def _wires(fabric: Fabric) -> PathLength | None:
    """Pairs of hosts on one wire, at a distance of one hop.

    None without such pairs.
    """
    links = fabric.links
    between = (fabric.node_kind[links["a"]] == HOST) & (fabric.node_kind[links["b"]] == HOST)
    if not between.any():
        return None
    receive = np.array([nic.receive_latency_ps for nic in fabric.nics], np.int64)
    wires = links[between]
    ends_ps = receive[fabric.node_device[wires["a"]]] + receive[fabric.node_device[wires["b"]]]
    rtt_ps = 2 * wires["delay_ps"] + ends_ps
    return PathLength(
        hops=1, share=2 * len(wires) / _pairs(fabric), paths_min=1, paths_median=1.0, paths_max=1,
        rtt_min_ps=int(rtt_ps.min()), rtt_max_ps=int(rtt_ps.max()),
    )  # fmt: skip


def _levels(
    fabric: Fabric, targets: NDArray[np.int32], distance: NDArray[np.int16]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Number of shortest paths to each target, and the shortest delay.

    They are computed by levels outwards; the shape is (nodes, targets).
    """
    from scipy.sparse import coo_array

    ports, nodes = fabric.ports, len(fabric.node_names)
    is_switch = fabric.node_kind != HOST
    peer = ports.node[ports.peer]
    usable = is_switch[ports.node] & is_switch[peer]
    node, peer, link = ports.node[usable], peer[usable], ports.link[usable]
    adjacency = coo_array((np.ones(len(node)), (node, peer)), shape=(nodes, nodes)).tocsr()
    forwarding = np.array([switch.forwarding_latency_ps for switch in fabric.switches] or [0], np.int64)
    own_ps = np.where(is_switch, forwarding[np.where(is_switch, fabric.node_device, 0)], 0)
    count = np.zeros(distance.shape)
    quickest = np.zeros(distance.shape, np.int64)
    columns = np.arange(len(targets))
    count[targets, columns] = 1
    quickest[targets, columns] = own_ps[targets]
    owners, starts = np.unique(node, return_index=True)
    never = np.int64(2**62)
    delay_ps = fabric.links["delay_ps"][link]
    for hops in range(1, int(distance.max(initial=0)) + 1):
        before, now = distance == hops - 1, distance == hops
        count += np.where(now, adjacency @ np.where(before, count, 0), 0)
        through = np.where(before[peer], quickest[peer], never) + delay_ps[:, None]
        best = np.minimum.reduceat(through, starts, axis=0) + own_ps[owners, None]
        quickest[owners] = np.where(now[owners], best, quickest[owners])
    return count, quickest


def _median(values: NDArray[np.float64], weights: NDArray[np.int64]) -> float:
    """The weighted median: half of the weight is at or below it."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])
