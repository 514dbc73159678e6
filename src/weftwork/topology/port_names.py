"""Names of the ports of a fabric, as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric

__all__ = ["port_names"]


def port_names(fabric: Fabric, chosen: NDArray[np.int64] | None = None) -> list[str]:
    """Name of every port: ``leaf0->spine1``.

    Parallel links have ``.2``, ``.3`` behind it, in order.

    Parameters
    ----------
    fabric : whose ports
    chosen : ports to name; None: all of them
    """
    ports = fabric.ports
    numbers = np.arange(len(ports.node)) if chosen is None else chosen
    of_chosen = np.zeros(len(fabric.node_kind), np.bool_)
    of_chosen[ports.node[numbers]] = True
    beside = np.flatnonzero(of_chosen[ports.node])  # parallel ports are of one node
    pair = ports.node[beside].astype(np.int64) * len(of_chosen) + ports.node[ports.peer[beside]]
    order = np.argsort(pair, kind="stable")
    is_first = np.append(True, pair[order][1:] != pair[order][:-1])
    place = np.empty(len(beside), np.int64)
    place[order] = np.arange(len(beside)) - np.maximum.accumulate(np.where(is_first, np.arange(len(beside)), 0))
    before = place[np.searchsorted(beside, numbers)].tolist()
    ends = np.concatenate([ports.node[numbers], ports.node[ports.peer[numbers]]])
    named, index = np.unique(ends, return_inverse=True)
    words = np.array([fabric.node_names[node] for node in named.tolist()], object)[index].reshape(2, -1).tolist()
    return [
        f"{node}->{peer}" + (f".{count + 1}" if count else "") for node, peer, count in zip(*words, before, strict=True)
    ]
