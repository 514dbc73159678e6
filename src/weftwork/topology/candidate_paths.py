"""The candidate paths of pairs of attachments, from which somebody chooses one for each flow.

They are those that routing has: all shortest paths, up to a number, or the k shortest ones.
Leaves out: the choice (`weftwork.policies.central_engineering`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.topology.k_shortest import KShortest
from weftwork.topology.routing import attachments, switch_distances

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric

__all__ = ["candidate_paths"]


def candidate_paths(
    fabric: Fabric, link_up: NDArray[np.bool_], pairs: Iterable[tuple[int, int]], *, paths: int, most: int
) -> dict[tuple[int, int], list[tuple[int, ...]]]:
    """Find the paths between attachments that are switches.

    Parameters
    ----------
    fabric, link_up : whose links, and which of them work
    pairs : two different attachments each
    paths : how many of the shortest ones, longer ones too; 0: all of the least length
    most : paths of one pair where all of the least length are asked for

    Returns
    -------
    by pair, the ports by which each path leaves its switches, the shortest first; none where there is no path
    """
    attach_node, _ = attachments(fabric)
    distance = switch_distances(fabric, link_up, attach_node)
    search = KShortest(fabric, link_up)
    to_goal: dict[int, list[int]] = {}
    found: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for start, goal in pairs:
        if goal not in to_goal:
            to_goal[goal] = distance[:, goal].tolist()
        ends = int(attach_node[start]), int(attach_node[goal])
        if paths:
            found[start, goal] = search.paths(*ends, to_goal[goal], paths)
        else:
            found[start, goal] = search.shortest(*ends, to_goal[goal], most)
    return found
