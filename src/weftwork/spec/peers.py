"""Peers of all ranks at once, by the rules of a job.

Leaves out: the size and the parts of a message, which engines find rank by rank.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.job import Group, Peer

__all__ = ["coordinates", "peers_of"]


def peers_of(peer: Peer, ranks: NDArray[np.int64], counter: int) -> NDArray[np.int64]:
    """Peer of each rank at one value of the loop counter.

    -1 where the operation is skipped.

    Parameters
    ----------
    peer : the rule
    ranks : shape (ranks,)
    counter : of the innermost loop

    Returns
    -------
    shape (ranks,)
    """
    if peer.rule == "rank":
        return np.full(len(ranks), peer.shift, np.int64)
    if peer.rule == "table":
        return np.asarray(peer.table, np.int64)[ranks]
    group = peer.group if peer.group is not None else Group(size=1)
    own = coordinates(group, ranks)
    other = (
        (own + peer.shift + peer.step * counter) % group.size
        if peer.rule == "shift"
        else own ^ (peer.shift << (peer.step * counter))
    )
    if group.members is not None:
        return np.asarray(group.members, np.int64)[other]
    return ranks + (other - own) * group.stride


def coordinates(group: Group, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Coordinate of each rank in its group.

    It is 0 for a rank that a group with ``members`` does not name.

    Parameters
    ----------
    group : see `weftwork.spec.job.Group`
    ranks : shape (ranks,)

    Returns
    -------
    shape (ranks,)
    """
    if group.members is None:
        return ranks // group.stride % group.size
    members = np.asarray(group.members, np.int64)
    place = np.zeros(max(int(ranks.max(initial=0)), int(members.max(initial=0))) + 1, np.int64)
    place[members] = np.arange(len(members))
    return place[ranks]
