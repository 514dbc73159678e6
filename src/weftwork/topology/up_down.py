"""Flows without valleys between halves of a fabric, or two leaves.

Routes go up and then down. Every switch is there twice, once for what climbs and once for what descends, so that a
max-flow cannot turn upwards again. That network has no circles, and the flow of 65,536 hosts takes some hundredths of a
second.
Source: Ford and Fulkerson, 1956; up*/down* as in `weftwork.topology.valleys`. Disjoint paths: Menger, 1927.
Leaves out: what a hash makes of the paths. Where switches of one tier are linked, flows take any path.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.fabric import HOST, Fabric
from weftwork.topology.measures import MOST, Bisection
from weftwork.topology.valleys import is_tiered

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["DisjointPaths", "UpDown", "disjoint_paths"]

ALL_WORK = 20_000_000  # chosen: pairs of leaves x links, some seconds of max-flows


@dataclass(frozen=True, kw_only=True, slots=True)
class DisjointPaths:
    """The two leaves with the fewest disjoint paths.

    These paths have no valley, and share no cable in one direction.

    Attributes
    ----------
    paths : how many; 0 where a pair has none
    source, target : the leaves
    pairs : how many pairs were looked at
    """

    paths: int
    source: str
    target: str
    pairs: int


class UpDown:
    """The flow network of a fabric.

    It is laid out once; each flow has its own links that are up.

    Attributes
    ----------
    between : shape (links,), whether a link joins two switches
    """

    def __init__(self, fabric: Fabric) -> None:
        links, is_host = fabric.links, fabric.node_kind == HOST
        a, b = links["a"].astype(np.int64), links["b"].astype(np.int64)
        swap = fabric.node_tier[a] > fabric.node_tier[b]
        self._low, self._high = np.where(swap, b, a), np.where(swap, a, b)
        self.between = ~is_host[a] & ~is_host[b]
        self._is_tiered = is_tiered(fabric)
        self._count = len(fabric.node_names)
        self._rate = links["rate_bps"]
        self._switches = np.flatnonzero(~is_host)
        half = len(fabric.hosts) // 2
        side = np.zeros(self._count, np.int64)
        side[fabric.hosts[:half]], side[fabric.hosts[half:]] = 1, 2
        self._side_a, self._side_b = side[a], side[b]
        self._a, self._b = a, b

    def bisection(self, link_up: NDArray[np.bool_]) -> Bisection:
        """Largest flow between two halves of the hosts, without valleys.

        It goes from the first half to the second, as in `weftwork.topology.measures.bisection`.

        Parameters
        ----------
        link_up : shape (links,)
        """
        from scipy.sparse.csgraph import maximum_flow

        source, sink = 2 * self._count, 2 * self._count + 1
        a, b, side_a, side_b = self._a, self._b, self._side_a, self._side_b
        tails, heads, rates = self._switch_edges(link_up, self._rate)
        sends = int(self._rate[link_up & (side_a == 1)].sum() + self._rate[link_up & (side_b == 1)].sum())
        receives = int(self._rate[link_up & (side_a == 2)].sum() + self._rate[link_up & (side_b == 2)].sum())
        for host_side, other_side, switch in ((side_a, side_b, b), (side_b, side_a, a)):
            out, back = link_up & (host_side == 1), link_up & (host_side == 2)
            to_switch, from_switch = out & (other_side == 0), back & (other_side == 0)
            wire = out & (other_side == 2)
            tails += [_same(source, to_switch), self._down(switch[from_switch]), _same(source, wire)]
            heads += [switch[to_switch], _same(sink, from_switch), _same(sink, wire)]
            rates += [self._rate[to_switch], self._rate[from_switch], self._rate[wire]]
        total = min(sends, receives)
        if not total:
            return Bisection(rate_bps=0, hosts_bps=0, method="no host of one half can send")
        graph, unit, is_exact = self._graph(tails, heads, rates, total)
        rate_bps = int(maximum_flow(graph, source, sink).flow_value) * unit
        method = "max-flow without valleys" if self._is_tiered else "max-flow"
        if not is_exact:
            method += f", capacities rounded down to multiples of {unit:,} bit/s"
        return Bisection(rate_bps=rate_bps, hosts_bps=total, method=method)

    def cables(self, link_up: NDArray[np.bool_]) -> tuple[csr_array, int]:
        """The flow network with one path per cable and direction.

        The second result is the number of paths that its unit means.
        """
        tails, heads, ones = self._switch_edges(link_up, np.ones(len(link_up), np.int64))
        graph, unit, _ = self._graph(tails, heads, ones, int(link_up.sum()) + 1)
        return graph, unit

    def _down(self, switch: NDArray[np.int64]) -> NDArray[np.int64]:
        return switch + self._count if self._is_tiered else switch

    def _switch_edges(
        self, link_up: NDArray[np.bool_], rate: NDArray[np.int64]
    ) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]], list[NDArray[np.int64]]]:
        kept = self.between & link_up
        low, high, rates = self._low[kept], self._high[kept], rate[kept]
        tails, heads = [low, self._down(high)], [high, self._down(low)]
        all_rates = [rates, rates]
        if self._is_tiered:  # a switch turns what climbs into what descends
            tails.append(self._switches)
            heads.append(self._down(self._switches))
            all_rates.append(np.full(len(self._switches), np.iinfo(np.int64).max))
        return tails, heads, all_rates

    def _graph(
        self,
        tails: list[NDArray[np.int64]],
        heads: list[NDArray[np.int64]],
        rates: list[NDArray[np.int64]],
        total: int,
    ) -> tuple[csr_array, int, bool]:
        """Capacities in the largest common unit.

        SciPy's max-flow counts in 32 bits.
        """
        from scipy.sparse import csr_array

        tail, head = np.concatenate(tails), np.concatenate(heads)
        rate = np.minimum(np.concatenate(rates), total)  # no link needs more than all that is sent
        size = 2 * self._count + 2
        key, inverse = np.unique(tail * size + head, return_inverse=True)
        capacity = np.zeros(len(key), np.int64)
        np.add.at(capacity, inverse, rate)
        capacity = np.minimum(capacity, total)
        unit = int(np.gcd.reduce(np.append(capacity, total))) or 1
        is_exact = total // unit <= MOST
        if not is_exact:
            unit = -(-total // MOST)
        graph = csr_array(((capacity // unit).astype(np.int32), (key // size, key % size)), shape=(size, size))
        return graph, unit, is_exact


def _same(node: int, links: NDArray[np.bool_]) -> NDArray[np.int64]:
    """An array with the same node for each link."""
    return np.full(int(links.sum()), node, np.int64)


def disjoint_paths(
    fabric: Fabric, link_up: NDArray[np.bool_], leaves: NDArray[np.int64]
) -> tuple[DisjointPaths, DisjointPaths] | None:
    """Find the two leaves with the fewest disjoint paths.

    It is done with all links and with those that are up.

    Parameters
    ----------
    fabric : whose switches
    link_up : shape (links,)
    leaves : switches whose pairs are looked at; a pair that the whole fabric does not join is left out

    Returns
    -------
    before and after; None where no pair is joined, switches of one tier are linked, or the pairs are too many
    """
    from scipy.sparse.csgraph import maximum_flow

    pairs = len(leaves) * (len(leaves) - 1) // 2
    network = UpDown(fabric)
    if not is_tiered(fabric) or not pairs or pairs * int(network.between.sum()) > ALL_WORK:
        return None
    graphs = [network.cables(up) for up in (np.ones_like(link_up), link_up)]
    found: list[list[tuple[int, int, int]]] = [[], []]
    for one, other in combinations(leaves.tolist(), 2):
        before, after = (
            int(maximum_flow(graph, one, other + len(fabric.node_names)).flow_value) * unit for graph, unit in graphs
        )
        if before:
            found[0].append((before, one, other))
            found[1].append((after, one, other))
    if not found[0]:
        return None
    names = fabric.node_names
    fewest = [min(rows) for rows in found]
    first, then = (
        DisjointPaths(paths=paths, source=names[one], target=names[other], pairs=len(found[0]))
        for paths, one, other in fewest
    )
    return first, then
