"""Connected parts of a network, by NumPy alone.

SciPy's function of the same purpose takes a fifth of a second to import, which a run on a small fabric would wait for.
Method: each part takes the number of its lowest neighbour until none is lower, and pointers are halved in between
(Shiloach and Vishkin, J. Algorithms 3(1), 1982, doi:10.1016/0196-6774(82)90008-6).
Leaves out: parts that are strongly connected, in `weftwork.topology.channel_dependencies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["connected_parts"]


def connected_parts(a: NDArray[np.integer], b: NDArray[np.integer], nodes: int) -> NDArray[np.int64]:
    """Connected part of each node, numbered from 0 by its lowest node.

    Parameters
    ----------
    a, b : shape (links,), the nodes that each link joins
    nodes : how many there are; a node without a link is a part of its own

    Returns
    -------
    shape (nodes,)
    """
    part = np.arange(nodes, dtype=np.int64)  # the lowest node that each knows to be joined with it
    while len(a):
        low, high = np.minimum(part[a], part[b]), np.maximum(part[a], part[b])
        is_apart = low != high
        a, b = low[is_apart], high[is_apart]
        np.minimum.at(part, b, a)
        while not np.array_equal(lower := part[part], part):
            part = lower
    is_lowest = part == np.arange(nodes)
    number: NDArray[np.int64] = np.cumsum(is_lowest)[part] - 1
    return number
