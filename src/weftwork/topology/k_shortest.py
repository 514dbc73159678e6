"""The k shortest simple paths between two switches.

Length is counted in hops over links that are up. A depth-first search by growing length, cut off where the rest is
longer than the length allows. Of equally long paths, those are taken that come first when each switch's ports are
turned by a hash of the pair and the switch: always the same, and others for another pair. Parallel links are different
paths.
Source: Singla et al., NSDI 2012, Jellyfish, section 5: k-shortest-path routing.
Leaves out: rates and delays; paths that share no link.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.random import mix
from weftwork.spec.fabric import HOST, Fabric

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["KShortest"]

PATIENCE: Final = 4_096  # chosen: steps; beyond, a search round the path so far is cheaper than what it prunes


class KShortest:
    """Finds paths over the switches of a fabric."""

    def __init__(self, fabric: Fabric, link_up: NDArray[np.bool_]) -> None:
        """List the switches behind the ports of each switch.

        Parameters
        ----------
        fabric : whose links
        link_up : shape (links,), which of them work
        """
        ports = fabric.ports
        is_switch = fabric.node_kind != HOST
        peer_node = ports.node[ports.peer]
        self._next: list[list[tuple[int, int]]] = [[] for _ in fabric.node_kind]  # by node: port, and node behind it
        for port in np.flatnonzero(link_up[ports.link] & is_switch[ports.node] & is_switch[peer_node]).tolist():
            self._next[ports.node[port]].append((port, int(peer_node[port])))

    def paths(self, source: int, goal: int, distance: Sequence[int], count: int) -> list[tuple[int, ...]]:
        """Find the shortest paths.

        Parameters
        ----------
        source, goal : nodes, two different switches
        distance : by node, hops to the goal; -1 where there is no path
        count : how many paths

        Returns
        -------
        the ports of each path, the shortest first; fewer where there are no more
        """
        search = _Search(self._next, source, goal, distance)
        found: list[tuple[int, ...]] = []
        length: int | None = distance[source] if distance[source] > 0 else None
        while length is not None and len(found) < count:
            for path in search.of_length(length):
                found.append(path)
                if len(found) == count:
                    break
            length = search.next_length
        return found

    def shortest(
        self, source: int, goal: int, distance: Sequence[int], most: int, allowed: Container[int] | None = None
    ) -> list[tuple[int, ...]]:
        """Find only the paths of least length.

        Parameters
        ----------
        source, goal, distance : as of `paths`
        most : how many paths
        allowed : ports that paths may leave their switches by, with distances by these; None: all

        Returns
        -------
        the ports of each path; fewer where there are no more
        """
        if distance[source] <= 0:
            return []
        search = _Search(self._next, source, goal, distance, allowed)
        return list(islice(search.of_length(distance[source]), most))


class _Search:
    """The search of one pair.

    `next_length` is the least that a longer path can have, None: there is none.
    """

    def __init__(
        self,
        following: list[list[tuple[int, int]]],
        source: int,
        goal: int,
        distance: Sequence[int],
        allowed: Container[int] | None = None,
    ) -> None:
        self._next, self._source, self._goal, self._distance = following, source, goal, distance
        self._allowed = allowed
        self._steps = 0
        self.next_length: int | None = None

    def of_length(self, length: int) -> Iterator[tuple[int, ...]]:
        """Paths of exactly this many hops."""
        self.next_length = None
        path: list[int] = []
        passed = [self._source]
        on_path = {self._source}
        stack = [self._turned(self._source)]
        while stack:
            hops = len(path) + 1
            for port, node in stack[-1]:
                if node in on_path or not self._may_lead_on(node, hops, length, on_path):
                    continue
                if self._allowed is not None and port not in self._allowed:
                    continue
                if node == self._goal:
                    if hops == length:
                        yield (*path, port)
                    continue
                path.append(port)
                passed.append(node)
                on_path.add(node)
                stack.append(self._turned(node))
                break
            else:
                stack.pop()
                on_path.remove(passed.pop())
                if path:
                    path.pop()

    def _may_lead_on(self, node: int, hops: int, length: int, on_path: set[int]) -> bool:
        """Whether a path of this length may go through a node."""
        self._steps += 1
        rest = self._distance[node]
        if 0 <= rest <= length - hops and self._steps > PATIENCE:
            rest = self._distance_around(node, on_path)
        if 0 <= rest <= length - hops:
            return True
        if rest >= 0 and (self.next_length is None or hops + rest < self.next_length):
            self.next_length = hops + rest
        return False

    def _distance_around(self, start: int, on_path: set[int]) -> int:
        """Hops to the goal without the nodes of the present path; -1 without a way."""
        seen = {start, *on_path}
        frontier, hops = [start], 0
        while frontier:
            if self._goal in frontier:
                return hops
            reached: list[int] = []
            for node in frontier:
                for _, behind in self._next[node]:
                    if behind not in seen:
                        seen.add(behind)
                        reached.append(behind)
            frontier, hops = reached, hops + 1
        return -1

    def _turned(self, node: int) -> Iterator[tuple[int, int]]:
        """Ports of a node and the nodes behind them, in rotated order.

        The pair decides the first port.
        """
        ways = self._next[node]
        first = mix(self._source, self._goal, node) % len(ways) if ways else 0
        return iter(ways[first:] + ways[:first])
