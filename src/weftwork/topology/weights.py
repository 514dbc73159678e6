"""Weights of next hops by the capacity behind them (WCMP).

Switches divide traffic unequally by these weights. The weight of a candidate is the smaller of the rate of its link and
the capacity behind it. The capacity of a switch towards an attachment is the sum of its candidates' weights, and
unlimited at the attachment itself.
Source: Zhou et al., EuroSys 2014, doi:10.1145/2592798.2592803, section 3: weights proportional to downstream capacity.
Leaves out: reducing weights to the size of a switch's table (section 5), rates that a fault has lowered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.spec.fabric import HOST, Fabric
from weftwork.topology.routing import UNREACHABLE, Routes, hops_left

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST_WEIGHT", "weighted"]

MOST_WEIGHT: Final = 1 << 16  # chosen: no share is off by more than 1 / 2^16, and sums fit 32 bit
_UNLIMITED: Final = np.iinfo(np.int64).max


def weighted(
    fabric: Fabric, link_up: NDArray[np.bool_], found: Routes, *, up_down: bool = False
) -> tuple[Routes, NDArray[np.int32]]:
    """Give every candidate its weight.

    Attachments share a group where ports and weights are equal.

    Parameters
    ----------
    fabric, link_up, up_down : as of `weftwork.topology.routing.routes`
    found : its result

    Returns
    -------
    the same candidates in new groups; and shape (all candidates,), weights from 1 to `MOST_WEIGHT`, divided by the
    greatest common divisor of their group
    """
    ports = fabric.ports
    is_switch = fabric.node_kind != HOST
    peer_node = ports.node[ports.peer]
    usable = np.flatnonzero(link_up[ports.link] & is_switch[ports.node] & is_switch[peer_node])
    rate_bps = fabric.links["rate_bps"][ports.link]
    left = hops_left(fabric, link_up, found.attach_node, up_down=up_down)
    distance = left.hops
    owners, starts = np.unique(ports.node[usable], return_index=True)
    pieces = np.split(usable, starts[1:]) if len(owners) else []  # a single switch, or no link between switches is up
    own_ports = dict(zip(owners.tolist(), pieces, strict=True))
    capacity_bps = np.zeros(distance.shape, np.int64)
    capacity_bps[found.attach_node, np.arange(len(found.attach_node))] = _UNLIMITED

    def behind_bps(node: int, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Capacity behind each port (rows) towards attachments (columns).

        0: the port is no candidate.
        """
        own = own_ports[node]
        beyond = capacity_bps[peer_node[own][:, None], columns]
        return np.where(left.leads(node, own, columns), np.minimum(rate_bps[own][:, None], beyond), 0)

    for hops in range(1, int(distance.max(initial=0)) + 1):
        for node in own_ports:
            columns = np.flatnonzero(distance[node] == hops)
            if len(columns):
                capacity_bps[node, columns] = behind_bps(node, columns).sum(axis=0)
    group_of = np.where(found.group_of < 0, found.group_of, UNREACHABLE)
    sizes: list[NDArray[np.int64]] = []
    members: list[NDArray[np.int32]] = []
    weights: list[NDArray[np.int32]] = []
    groups = 0
    for node, own in own_ports.items():
        columns = np.flatnonzero(distance[node] > 0)
        if not len(columns):
            continue
        sets, which = np.unique(_reduced(behind_bps(node, columns)).T, axis=0, return_inverse=True)
        group_of[node, columns] = groups + which.ravel()
        sizes.append(np.count_nonzero(sets, axis=1))
        members.append(own[np.nonzero(sets)[1]].astype(np.int32))
        weights.append(sets[np.nonzero(sets)])
        groups += len(sets)
    group_ptr = np.zeros(groups + 1, np.int64)
    if sizes:
        np.cumsum(np.concatenate(sizes), out=group_ptr[1:])
    group_ports = np.concatenate(members) if members else np.empty(0, np.int32)
    told = np.concatenate(weights) if weights else np.empty(0, np.int32)
    return replace(found, group_of=group_of, group_ptr=group_ptr, group_ports=group_ports), told


def _reduced(behind_bps: NDArray[np.int64]) -> NDArray[np.int32]:
    """Small whole numbers in the same proportion, column by column.

    No positive number becomes 0.
    """
    least = behind_bps // np.gcd.reduce(behind_bps, axis=0)
    most = least.max(axis=0)
    scaled = np.maximum(np.rint(least / most * MOST_WEIGHT), 1)
    return np.where(behind_bps == 0, 0, np.where(most > MOST_WEIGHT, scaled, least)).astype(np.int32)
