"""A fabric after losses: its connections and bandwidth.

Names are those of `weftwork.topology.lost_names`.
Source: bisection and the flow between two hosts are max-flows, as in `weftwork.topology.measures`; routes that stay
legal under PFC as in `weftwork.topology.valleys`.
Leaves out: how long routes take to know of it, and what a hash makes of the paths that are left; a run says that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.fabric import HOST, Fabric
from weftwork.spec.rails import ports_of_gpu
from weftwork.topology.lost_names import find_lost
from weftwork.topology.measures import Bisection, PathLength, bisection, host_kinds, path_sample, paths
from weftwork.topology.reach import Reach, rails_of, reach
from weftwork.topology.up_down import DisjointPaths, UpDown, disjoint_paths
from weftwork.topology.valleys import Valleys, is_tiered, leaves_left, valleys

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Loss", "RailLoss", "WorstPair", "find_lost", "lose", "measure_loss"]

MOST_WORK = (
    2_000_000  # chosen: links x max-flows, some ten seconds; beyond it the flows of rails and pairs are left out
)
ALL_WORK = 300_000  # chosen: hosts squared x links, about a second of max-flows


@dataclass(frozen=True, kw_only=True, slots=True)
class RailLoss:
    """One rail before and after a loss.

    A rail is the NIC ports that share a switch in every server.

    Attributes
    ----------
    ports : numbers within a server
    hosts_before, hosts_after : servers with at least one of these ports linked
    before, after : what the first half of the servers can send to the second half by these ports alone
    """

    ports: tuple[int, ...]
    hosts_before: int
    hosts_after: int
    before: Bisection
    after: Bisection


@dataclass(frozen=True, kw_only=True, slots=True)
class WorstPair:
    """The two hosts with the smallest flow between them.

    The flow is one way, of hosts that reach each other.

    Attributes
    ----------
    rate_bps, source, target : the flow, and between whom
    pairs : how many pairs were looked at
    is_all : whether those are all pairs; else hosts that look alike stand for each other
    """

    rate_bps: int
    source: str
    target: str
    pairs: int
    is_all: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss:
    """Effects of a loss.

    Attributes
    ----------
    names : as they were asked for
    nodes, links : names that are gone; links of lost nodes are not listed
    links_lost : all links that are gone
    before, after : who reaches whom
    bisection_before, bisection_after : see `weftwork.topology.measures.Bisection`
    paths_before, paths_after : shortest paths of pairs of NIC ports, by hops
    rails : by rail, where there are several; empty where the fabric is too large
    worst_before, worst_after : None where no two hosts reach each other or the fabric is too large
    gpus_with_less : GPUs that have lost some of their NIC ports, but not all
    gpus_without : GPUs that have lost all of them, and whose server is not lost
    legal_before, legal_after : bisection over paths without a valley; None where switches of one tier are linked
    valleys_before, valleys_after : pairs of the leaves that keep a host, by whether they have such a path and whether
        their shortest routes, which engines use, are all of that kind; None likewise
    disjoint_before, disjoint_after : the two leaves with the fewest disjoint paths without a valley; None likewise, and
        where the pairs are too many
    """

    names: tuple[str, ...]
    nodes: tuple[str, ...]
    links: tuple[str, ...]
    links_lost: int
    before: Reach
    after: Reach
    bisection_before: Bisection
    bisection_after: Bisection
    paths_before: tuple[PathLength, ...]
    paths_after: tuple[PathLength, ...]
    rails: tuple[RailLoss, ...]
    worst_before: WorstPair | None
    worst_after: WorstPair | None
    gpus_with_less: int
    gpus_without: int
    legal_before: Bisection | None
    legal_after: Bisection | None
    valleys_before: Valleys | None
    valleys_after: Valleys | None
    disjoint_before: DisjointPaths | None
    disjoint_after: DisjointPaths | None


def lose(fabric: Fabric, lost_links: NDArray[np.bool_]) -> Fabric:
    """The fabric without some links.

    Its nodes stay, with fewer ports or none.
    """
    kept = ~lost_links
    # in order, since names that are made when asked for cost twice as much one by one
    direct = None if fabric.direct is None else fabric.direct.without(kept)
    names = tuple(compress(fabric.link_names, kept.tolist()))
    return replace(fabric, links=fabric.links[kept], link_names=names, direct=direct)


def measure_loss(fabric: Fabric, names: Sequence[str]) -> Loss:
    """Measure the effects of a loss.

    Parameters
    ----------
    fabric : as it was
    names : see `weftwork.topology.lost_names`

    Raises
    ------
    ConfigError : names that the fabric does not have
    """
    lost_nodes, lost_links = find_lost(fabric, names)
    left = lose(fabric, lost_links)
    own_links = lost_links & ~(lost_nodes[fabric.links["a"]] | lost_nodes[fabric.links["b"]])
    less, without = _gpus_hit(fabric, lost_nodes, lost_links)
    groups = rails_of(fabric)
    kinds, kinds_left = (len(np.unique(host_kinds(one))) for one in (fabric, left))
    flows = 2 * len(groups) + max(2 * (kinds + int(lost_links.any())) ** 2, kinds**2 + kinds_left**2)
    fits = flows * len(fabric.links) <= MOST_WORK
    whole_up = np.ones(len(fabric.links), np.bool_)
    network = UpDown(fabric) if is_tiered(fabric) else None
    leaves = leaves_left(fabric, ~lost_links)
    disjoint = disjoint_paths(fabric, ~lost_links, leaves)
    return Loss(
        names=tuple(names),
        nodes=tuple(fabric.node_names[index] for index in np.flatnonzero(lost_nodes).tolist()),
        links=tuple(fabric.link_names[index] for index in np.flatnonzero(own_links).tolist()),
        links_lost=int(lost_links.sum()),
        before=reach(fabric),
        after=reach(fabric, ~lost_links),
        bisection_before=bisection(fabric),
        bisection_after=bisection(left),
        paths_before=paths(fabric, sample=path_sample(fabric)),
        paths_after=paths(left, sample=path_sample(fabric)),
        rails=tuple(_rail(fabric, lost_links, ports) for ports in groups) if fits and len(groups) > 1 else (),
        worst_before=worst_pair(fabric) if fits else None,
        worst_after=worst_pair(left) if fits else None,
        gpus_with_less=less,
        gpus_without=without,
        legal_before=None if network is None else network.bisection(whole_up),
        legal_after=None if network is None else network.bisection(~lost_links),
        valleys_before=valleys(fabric, whole_up, leaves),
        valleys_after=valleys(fabric, ~lost_links, leaves),
        disjoint_before=None if disjoint is None else disjoint[0],
        disjoint_after=None if disjoint is None else disjoint[1],
    )


def _gpus_hit(fabric: Fabric, lost_nodes: NDArray[np.bool_], lost_links: NDArray[np.bool_]) -> tuple[int, int]:
    """GPUs that have lost some NIC ports, and GPUs that have lost all.

    Only servers that are still there count.
    """
    hit = fabric.links[lost_links]
    ends = np.unique(np.concatenate([hit["a"], hit["b"]]))
    less = without = 0
    base = fabric.ports.base
    for node in ends[(fabric.node_kind[ends] == HOST) & ~lost_nodes[ends]].tolist():
        gone = lost_links[fabric.ports.link[base[node] : base[node + 1]]]
        gpus = fabric.server(node).gpus
        for gpu in range(gpus):
            own = gone[list(ports_of_gpu(len(gone), gpus, gpu))]
            less += bool(own.any() and not own.all())
            without += bool(own.all())
    return less, without


def _rail(fabric: Fabric, lost_links: NDArray[np.bool_], ports: NDArray[np.int64]) -> RailLoss:
    """Bandwidth of one rail, without the hosts' links of other ports."""
    mine = np.zeros(len(fabric.links), np.bool_)
    rail_links = fabric.ports.link[(fabric.ports.base[fabric.hosts][:, None] + ports[None]).ravel()]
    to_host = (fabric.node_kind[fabric.links["a"]] == HOST) | (fabric.node_kind[fabric.links["b"]] == HOST)
    mine[rail_links] = True
    others = to_host & ~mine
    ends = [np.unique(fabric.ports.node[np.isin(fabric.ports.link, rail_links[keep])]) for keep in
            (np.ones(len(rail_links), np.bool_), ~lost_links[rail_links])]  # fmt: skip
    hosts = [int((fabric.node_kind[nodes] == HOST).sum()) for nodes in ends]
    return RailLoss(
        ports=tuple(ports.tolist()),
        hosts_before=hosts[0],
        hosts_after=hosts[1],
        before=bisection(lose(fabric, others)),
        after=bisection(lose(fabric, others | lost_links)),
    )


def worst_pair(fabric: Fabric) -> WorstPair | None:
    """The two hosts with the smallest flow between them.

    In a small fabric all pairs are looked at. In others one host of every class of equal hosts is a source in turn;
    seen from it the kinds are split again, and one host of each is the target of a max-flow. That is exact where
    hosts that look alike are alike, as in all fabrics that Weftwork builds.
    """
    from scipy.sparse.csgraph import maximum_flow

    hosts = fabric.hosts
    is_all = len(hosts) ** 2 * len(fabric.links) <= ALL_WORK
    graph, unit = _graph(fabric)
    pairs = 0
    worst: tuple[int, int, int] | None = None
    for source in (hosts if is_all else _first_of_each(hosts, host_kinds(fabric))).tolist():
        targets = hosts if is_all else _first_of_each(hosts, host_kinds(fabric, apart=source))
        for target in targets.tolist():
            if source == target:
                continue
            pairs += 1
            rate = int(maximum_flow(graph, source, len(fabric.node_names) + target).flow_value) * unit
            if rate and (worst is None or rate < worst[0]):
                worst = (rate, source, target)
    if worst is None:
        return None
    names = fabric.node_names
    return WorstPair(rate_bps=worst[0], source=names[worst[1]], target=names[worst[2]], pairs=pairs, is_all=is_all)


def _first_of_each(hosts: NDArray[np.int64], kinds: NDArray[np.int64]) -> NDArray[np.int64]:
    return hosts[np.unique(kinds, return_index=True)[1]]


def _graph(fabric: Fabric) -> tuple[csr_array, int]:
    """Capacities in units of their greatest common divisor.

    Hosts send from their node and receive at a second node.
    """
    from scipy.sparse import csr_array

    count, ports = len(fabric.node_names), fabric.ports
    rate = fabric.links["rate_bps"][ports.link]
    unit = int(np.gcd.reduce(rate)) if len(rate) else 1
    head = ports.node[ports.peer].astype(np.int64)
    head = np.where(fabric.node_kind[head] == HOST, head + count, head)
    units = np.minimum(rate // unit, 2**31 - 1).astype(np.int32)
    return csr_array((units, (ports.node.astype(np.int64), head)), shape=(2 * count, 2 * count)), unit
