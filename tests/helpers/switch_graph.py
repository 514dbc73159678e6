"""The graph of a fabric's switches: ends of links, degrees and distances by search.

Leaves out: hosts and their links.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from weftwork.spec.fabric import Fabric

__all__ = ["degrees", "diameter_and_mean", "switch_ends"]


def switch_ends(fabric: Fabric) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both ends of every link between switches, as numbers of switches from 0; hosts are the first nodes."""
    hosts = len(fabric.hosts)
    ends = np.stack([fabric.links["a"], fabric.links["b"]]).astype(np.int64) - hosts
    between = (ends >= 0).all(axis=0)
    return ends[0, between], ends[1, between]


def degrees(fabric: Fabric) -> NDArray[np.int64]:
    """Links of every switch to other switches."""
    return np.bincount(np.concatenate(switch_ends(fabric)), minlength=len(fabric.node_names) - len(fabric.hosts))


def diameter_and_mean(fabric: Fabric, among: int | None = None) -> tuple[int, float]:
    """Diameter, and mean distance of two different switches.

    Parameters
    ----------
    fabric : connected
    among : only the first so many switches count as ends; by default all
    """
    a, b = switch_ends(fabric)
    count = len(fabric.node_names) - len(fabric.hosts)
    graph = coo_array((np.ones(len(a)), (a, b)), shape=(count, count)).tocsr()
    ends = count if among is None else among
    distance = shortest_path(graph, directed=False, unweighted=True, indices=np.arange(ends))[:, :ends]
    return int(distance.max()), float(distance.sum() / max(1, ends * (ends - 1)))
