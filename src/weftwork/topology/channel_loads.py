"""Loads of the links of a direct network under uniform traffic, and links on its designed cut.

Every NIC port sends equally to all others over all shortest paths, each path with an equal share. Where links are local
or global, only paths with one global link at most count, as minimal routing takes them. The fullest link bounds the
throughput: 1 / (load of the fullest link). The designed cut halves the network along its longest axis.
Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004, sections 3.1 and 3.3.
Leaves out: adversarial traffic, and paths that are not shortest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fabric_direct import GLOBAL

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["DesignedCut", "UniformTraffic", "designed_cut", "uniform_loads", "uniform_traffic"]

WORK: Final = 2_500_000_000  # chosen: port visits, some 20 s; 4,096 switches of a 16 x 16 x 16 torus are within it
BLOCK: Final = 512  # chosen: destinations at a time, some 100 MB for 10,000 switches


@dataclass(frozen=True, kw_only=True, slots=True)
class UniformTraffic:
    """Throughput of uniform traffic over shortest paths.

    Attributes
    ----------
    share : of the rate of the NIC ports, at most 1
    dimension : of the fullest link
    load : of the fullest link, in units of the rate of a NIC port
    """

    share: float
    dimension: str
    load: float


@dataclass(frozen=True, kw_only=True, slots=True)
class DesignedCut:
    """Links between the two halves of a direct network.

    Attributes
    ----------
    axis : along which it is halved; empty: in the order of the switches
    links, rate_bps : across the cut, one way
    """

    axis: str
    links: int
    rate_bps: int


def uniform_loads(fabric: Fabric, weight: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Load of every port towards its peer, of shape (ports,); None if it is unknown.

    A port carries what its node sends. Only links between switches are loaded. The load is unknown if the search takes
    too long, or a pair of switches has no minimal path.

    Parameters
    ----------
    fabric : any
    weight : shape (nodes,); a pair of nodes has the product of their weights, and hosts have none
    """
    from scipy.sparse import csr_array

    ports = fabric.ports
    peer = ports.node[ports.peer]
    is_switch = fabric.node_kind == SWITCH
    own = np.flatnonzero(is_switch[ports.node] & is_switch[peer])
    place = np.cumsum(is_switch) - 1  # of a switch among the switches
    count = int(is_switch.sum())
    tail, head = place[ports.node[own]], place[peer[own]]
    states = 1
    if fabric.direct is not None and GLOBAL in fabric.direct.dimensions:
        # a switch is two states: before and after the only global link of a path
        states = 2
        is_global = fabric.direct.is_global[ports.link[own]]
        own = np.concatenate([own, own[~is_global]])
        tail = np.concatenate([tail, count + tail[~is_global]])
        head = np.concatenate([head + count * is_global, count + head[~is_global]])
    sends = weight[is_switch]
    targets = np.flatnonzero(sends)
    size = states * count
    matrix = csr_array((np.ones(len(own)), (tail, head)), shape=(size, size))
    loads = np.zeros(len(own))
    for first in range(0, len(targets), BLOCK):
        block = targets[first : first + BLOCK]
        distance, paths = _counted(matrix, block, count)
        levels = int(distance.max(initial=0))
        if levels * len(own) * len(targets) > WORK or (distance[:count][sends > 0] < 0).any():
            return None
        passing = np.zeros(distance.shape)
        passing[:count] = sends[:, None] * sends[block]
        for level in range(levels, 0, -1):
            each = np.where(distance == level, passing / np.maximum(paths, 1), 0.0)  # of a path
            passing += np.where(distance == level - 1, paths * (matrix.T @ each), 0.0)
        each = passing / np.maximum(paths, 1)
        nearer = distance[tail] == distance[head] + 1
        loads += np.where(nearer, each[tail] * paths[head], 0.0).sum(axis=1)
    found = np.zeros(len(ports.node))
    np.add.at(found, own, loads)
    return found


def _counted(
    matrix: csr_array, targets: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
    """Distance to each target, and the number of shortest paths; shape (states, targets)."""
    columns = np.arange(len(targets))
    distance = np.full((matrix.shape[0], len(targets)), -1, np.int16)
    paths = np.zeros(distance.shape)
    for state in range(0, matrix.shape[0], count):  # a path ends in any state of its target
        distance[state + targets, columns], paths[state + targets, columns] = 0, 1.0
    front, level = paths.copy(), 0
    while front.any():
        level += 1
        reached = matrix @ front
        front = np.where(distance < 0, reached, 0.0)
        distance[front > 0] = level
        paths += front
    return distance, paths


def uniform_traffic(fabric: Fabric) -> UniformTraffic | None:
    """Throughput of uniform traffic between NIC ports; None for a tree, or where the search takes too long."""
    direct, ports = fabric.direct, fabric.ports
    if direct is None:
        return None
    to_host = fabric.node_kind[ports.node[ports.peer]] == HOST
    to_host &= fabric.node_kind[ports.node] == SWITCH
    ends = np.bincount(ports.node[to_host], minlength=len(fabric.node_names)).astype(np.float64)
    rates = fabric.links["rate_bps"][ports.link[to_host]]
    total = ends.sum()
    if total < 2 or len(np.unique(rates)) > 1:
        return None
    loads = uniform_loads(fabric, ends)
    if loads is None or not loads.any():
        return None
    rate = float(rates[0])
    full = loads / (total - 1) * rate / fabric.links["rate_bps"][ports.link]  # of the capacity of the link
    worst = int(full.argmax())
    return UniformTraffic(
        share=min(1.0, 1 / float(full[worst])),
        dimension=direct.dimensions[direct.link_dimension[ports.link[worst]]],
        load=float(loads[worst] / (total - 1)),
    )


def designed_cut(fabric: Fabric) -> DesignedCut | None:
    """Links across the middle of the longest axis; None for a tree."""
    direct = fabric.direct
    if direct is None:
        return None
    switches = np.flatnonzero(fabric.node_kind == SWITCH)
    half = np.zeros(len(fabric.node_names), np.bool_)
    axis = ""
    if direct.axes and (direct.coordinates[switches] >= 0).all():
        longest = 0 if GLOBAL in direct.dimensions else int(np.argmax(direct.sides))
        axis = direct.axes[longest]
        half[switches] = direct.coordinates[switches, longest] >= direct.sides[longest] // 2
    else:
        half[switches[len(switches) // 2 :]] = True
    crosses = (direct.link_dimension >= 0) & (half[fabric.links["a"]] != half[fabric.links["b"]])
    return DesignedCut(axis=axis, links=int(crosses.sum()), rate_bps=int(fabric.links["rate_bps"][crosses].sum()))
