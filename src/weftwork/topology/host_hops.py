"""Distances and disjoint paths of a fabric whose hosts forward.

A host hop leads from a host over switches to the next host. Paths are disjoint if they share no node but their ends.
Source: Guo et al., BCube, SIGCOMM 2009, doi:10.1145/1592568.1592577, section 3 (parallel paths).
Leaves out: fabrics whose switches alone forward (`weftwork.topology.measures`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.fabric import HOST
from weftwork.topology.reach import networks_of_links

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from weftwork.spec.fabric import Fabric

__all__ = ["HostHops", "host_hops"]

WORK: Final = 20_000_000  # chosen: visits of links in the search for distances, about a second
ENDS: Final = 8  # chosen: hosts, of whose 28 pairs disjoint paths are counted


@dataclass(frozen=True, kw_only=True, slots=True)
class HostHops:
    """Distances in host hops, and disjoint paths.

    Attributes
    ----------
    pairs : pairs of a source and another host, by host hops from 1
    sources : hosts from which distances were searched, evenly spaced; all of them if the fabric is small
    disjoint_min, disjoint_max : disjoint paths of the pairs that were counted
    pairs_counted : number of these pairs
    """

    pairs: tuple[int, ...]
    sources: int
    disjoint_min: int
    disjoint_max: int
    pairs_counted: int

    @property
    def diameter(self) -> int:
        """Host hops between the two hosts that are farthest apart."""
        return len(self.pairs)


def host_hops(fabric: Fabric) -> HostHops:
    """Measure distances and disjoint paths, if hosts forward.

    Parameters
    ----------
    fabric : connected, of two hosts or more
    """
    hosts = fabric.hosts
    sources = hosts[_spaced(len(hosts), max(1, WORK // (2 * len(fabric.links))))]
    distance = _distances(fabric, sources)
    ends = hosts[_spaced(len(hosts), ENDS)]
    graph = _split(fabric)
    counts = [_disjoint(graph, len(fabric.node_names), a, b) for a, b in combinations(ends.tolist(), 2)]
    return HostHops(
        pairs=tuple(np.bincount(distance.ravel().astype(np.int64))[1:].tolist()),
        sources=len(sources),
        disjoint_min=min(counts, default=0),
        disjoint_max=max(counts, default=0),
        pairs_counted=len(counts),
    )


def _spaced(count: int, most: int) -> NDArray[np.int64]:
    """Numbers below a count, at most so many, evenly spaced."""
    step = min(count, most)
    return np.arange(step) * count // step


def _distances(fabric: Fabric, sources: NDArray[np.int64]) -> NDArray[np.float64]:
    """Host hops from some hosts to all hosts.

    Returns
    -------
    shape (sources, hosts)
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    network = networks_of_links(fabric, np.ones(len(fabric.links), np.bool_))
    nodes, networks = len(fabric.node_names), int(network.max()) + 1
    ends = np.concatenate([fabric.links["a"], fabric.links["b"]]).astype(np.int64)
    both = np.concatenate([network, network])
    on_host = fabric.node_kind[ends] == HOST
    count = nodes + networks
    graph = coo_array(
        (np.ones(int(on_host.sum())), (ends[on_host], nodes + both[on_host])), shape=(count, count)
    ).tocsr()
    found: NDArray[np.float64] = shortest_path(graph, directed=False, unweighted=True, indices=sources)[:, fabric.hosts]
    return found / 2


def _split(fabric: Fabric) -> csr_array:
    """The graph of the fabric, each node in two halves with a capacity of one path between them."""
    from scipy.sparse import csr_array

    nodes = len(fabric.node_names)
    a, b = fabric.links["a"].astype(np.int64), fabric.links["b"].astype(np.int64)
    inner = np.arange(nodes)
    tail, head = np.concatenate([inner, nodes + a, nodes + b]), np.concatenate([nodes + inner, b, a])
    key = np.unique(tail * 2 * nodes + head)  # parallel links are one
    return csr_array(
        (np.ones(len(key), np.int32), (key // (2 * nodes), key % (2 * nodes))), shape=(2 * nodes, 2 * nodes)
    )


def _disjoint(graph: csr_array, nodes: int, a: int, b: int) -> int:
    """Disjoint paths from one host to another."""
    from scipy.sparse.csgraph import maximum_flow

    return int(maximum_flow(graph, nodes + a, b).flow_value)
