"""Loads and directions of shortest paths on the switches of a direct network, by search.

Leaves out: hosts and their links, and what a routing policy would choose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from helpers.switch_graph import switch_ends
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from weftwork.spec.fabric import Fabric

__all__ = ["Channels", "channels", "distances", "lowest_dimensions", "split_loads"]


@dataclass(frozen=True, kw_only=True)
class Channels:
    """Both directions of every link between switches.

    Attributes
    ----------
    start, end : switches from 0
    dimension : of the link
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    dimension: NDArray[np.int64]


def channels(fabric: Fabric) -> Channels:
    """All channels: first those from ``a`` to ``b``, then the other direction."""
    assert fabric.direct is not None
    a, b = switch_ends(fabric)
    dimension = fabric.direct.link_dimension[len(fabric.links) - len(a) :].astype(np.int64)
    return Channels(start=np.append(a, b), end=np.append(b, a), dimension=np.append(dimension, dimension))


def distances(found: Channels, switches: int, sources: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Hops from each source to every switch, shape (sources, switches)."""
    graph = coo_array((np.ones(len(found.start)), (found.start, found.end)), shape=(switches, switches)).tocsr()
    hops = shortest_path(graph, unweighted=True, indices=np.arange(switches) if sources is None else sources)
    return np.atleast_2d(hops).astype(np.int64)


def split_loads(found: Channels, hops: NDArray[np.int64]) -> NDArray[np.float64]:
    """Load of every channel if a source sends one unit to every switch, split equally over all shortest paths.

    Parameters
    ----------
    hops : shape (switches,), from the source
    """
    downhill = hops[found.end] == hops[found.start] + 1
    paths = (hops == 0).astype(np.float64)
    loads = np.zeros(len(found.start))
    by_level = [np.flatnonzero(downhill & (hops[found.end] == level)) for level in range(1, int(hops.max()) + 1)]
    for level in by_level:
        np.add.at(paths, found.end[level], paths[found.start[level]])
    owed = np.ones(len(hops))
    for level in reversed(by_level):
        start, end = found.start[level], found.end[level]
        loads[level] = paths[start] / paths[end] * owed[end]
        np.add.at(owed, start, loads[level])
    return loads


def lowest_dimensions(found: Channels, hops: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Lowest dimension by which a shortest path to a switch goes on, and whether it never falls on the way.

    Parameters
    ----------
    hops : shape (switches,), to that switch

    Returns
    -------
    shape (switches,) each; the dimension of the switch itself is above all others
    """
    lowest = np.full(len(hops), 127)
    nearer = hops[found.end] == hops[found.start] - 1
    np.minimum.at(lowest, found.start[nearer], found.dimension[nearer])
    taken = nearer & (found.dimension == lowest[found.start])
    falls = np.zeros(len(hops), np.bool_)
    np.logical_or.at(falls, found.start[taken], (lowest[found.end] < lowest[found.start])[taken])
    return lowest, ~falls
