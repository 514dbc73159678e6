"""The candidate paths of pairs of attachments.

One path of a pair is then chosen for each flow. They are those that routing has: all shortest paths or all without a
valley, up to a number, or the k shortest ones.
Leaves out: the choice (`weftwork.policies.central_engineering`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weftwork.spec.fabric import HOST
from weftwork.topology.k_shortest import KShortest
from weftwork.topology.routing import attachments, hops_left

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.topology.routing import HopsLeft

__all__ = ["candidate_paths"]


def candidate_paths(
    fabric: Fabric,
    link_up: NDArray[np.bool_],
    pairs: Iterable[tuple[int, int]],
    *,
    paths: int,
    most: int,
    up_down: bool = False,
) -> dict[tuple[int, int], list[tuple[int, ...]]]:
    """Find the paths between attachments that are switches.

    Parameters
    ----------
    fabric, link_up : whose links, and which of them work
    pairs : two different attachments each
    paths : how many of the shortest ones, longer ones too; 0: all of the least length
    most : paths of one pair where all of the least length are asked for
    up_down : these are to be routes of that rule, see `weftwork.topology.routing.hops_left`

    Returns
    -------
    by pair, the ports by which each path leaves its switches, the shortest first; none where there is no path
    """
    attach_node, _ = attachments(fabric)
    left = hops_left(fabric, link_up, attach_node, up_down=up_down)
    search = KShortest(fabric, link_up)
    to_goal: dict[int, list[int]] = {}
    allowed: dict[int, set[int] | None] = {}
    found: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for start, goal in pairs:
        if goal not in to_goal:
            to_goal[goal] = left.hops[:, goal].tolist()
            allowed[goal] = _leading(fabric, link_up, left, goal) if up_down else None
        ends = int(attach_node[start]), int(attach_node[goal])
        if paths:
            found[start, goal] = search.paths(*ends, to_goal[goal], paths)
        else:
            found[start, goal] = search.shortest(*ends, to_goal[goal], most, allowed[goal])
    return found


def _leading(fabric: Fabric, link_up: NDArray[np.bool_], left: HopsLeft, goal: int) -> set[int]:
    """Ports of switches that lie on a route to an attachment."""
    ports, is_switch = fabric.ports, fabric.node_kind != HOST
    usable = link_up[ports.link] & is_switch[ports.node] & is_switch[ports.node[ports.peer]]
    column = np.array([goal])
    found: set[int] = set()
    for node in np.flatnonzero(is_switch & (left.hops[:, goal] > 0)).tolist():
        own = np.arange(ports.base[node], ports.base[node + 1])
        own = own[usable[own]]
        found.update(own[left.leads(node, own, column)[:, 0]].tolist())
    return found
