"""Numbers of destinations for routing by destination.

The digits of a number name the ports of one tier after the other. NIC ports are counted leaf by leaf. With w parents
and p parallel links to each, a switch sends what goes to port d
by parent y and link c, where floor(d / product of the w below) = y + w c + w p (rest): parents first, so that what a
parent gets spreads over its own ports. Of parallel links downwards the one is taken that was taken upwards.
The number of a destination holds y p + c of every tier, the lowest tier in the last digit, since ports are sorted by
parent: a switch of tier 1 chooses by the last digit, in the base of its ports upwards, tier 2 by the digit before.
Source: Zahavi, J. Parallel Distrib. Comput. 2012, Fat-tree routing and node ordering providing contention free traffic
for MPI global collectives; native/flow/router.cpp does the same.
Leaves out: switches of one tier with different numbers of ports upwards (the largest is the base of all), and parents
with different numbers of parallel links (they count as one each).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.fabric import SWITCH, Fabric

__all__ = ["destination_numbers", "port_strides"]


def destination_numbers(fabric: Fabric) -> NDArray[np.int64]:
    """Number of every NIC port, counted leaf by leaf.

    The ports of a leaf count in the leaf's order.

    Returns
    -------
    shape (ports,); 0 for ports of switches
    """
    ports = fabric.ports
    is_switch = fabric.node_kind == SWITCH
    downwards = np.flatnonzero(is_switch[ports.node] & ~is_switch[ports.node[ports.peer]])
    numbers = np.zeros(len(ports.node), np.int64)
    rest = np.arange(len(downwards))
    found = np.zeros_like(rest)
    base = 1
    for width, parents in _widths(fabric)[1:]:
        cables = width // parents
        digit = rest % parents * cables + rest // parents % cables
        found += base * digit
        base *= width
        rest //= parents
        top = rest // cables
    numbers[ports.peer[downwards]] = found + base * top if base > 1 else np.arange(len(downwards))
    return numbers


def port_strides(fabric: Fabric) -> NDArray[np.int64]:
    """Divisor of the destination's number, by port.

    After the division the digit is taken by which the link of the port is chosen.

    Returns
    -------
    shape (ports,); the product of the largest numbers of ports upwards in the tiers below the lower end of the link
    """
    ports = fabric.ports
    tier = np.maximum(fabric.node_tier.astype(np.int64), 0)
    widths = _widths(fabric)
    below = np.ones(len(widths) + 1, np.int64)
    below[2:] = np.cumprod([width for width, _ in widths[1:]])  # by tier: tier 2 stands above the ports of tier 1
    return below[np.minimum(tier[ports.node], tier[ports.node[ports.peer]])]


def _widths(fabric: Fabric) -> list[tuple[int, int]]:
    """Widths by tier: ports upwards, and parents that divide them.

    Both are the largest of the tier, or 1 if there are none.
    """
    ports = fabric.ports
    is_switch = fabric.node_kind == SWITCH
    tier = np.maximum(fabric.node_tier.astype(np.int64), 0)
    peer = ports.node[ports.peer]
    upwards = is_switch[ports.node] & is_switch[peer] & (fabric.node_tier[peer] > fabric.node_tier[ports.node])
    widths = []
    count = np.bincount(ports.node[upwards], minlength=len(tier))
    fresh = np.unique(ports.node[upwards].astype(np.int64) * len(tier) + peer[upwards])
    parents = np.bincount(fresh // len(tier), minlength=len(tier))
    for level in range(int(tier.max(initial=0)) + 1):
        mine = is_switch & (tier == level)
        width, wide = int(count[mine].max(initial=1)), int(parents[mine].max(initial=1))
        widths.append((width, wide if width % wide == 0 else width))
    return widths
