"""Destinations as numbers whose digits name the ports of one tier after the other, for routing by destination.

NIC ports are numbered leaf by leaf. A switch of tier 1 chooses by the last digit, in the base of its ports upwards, a
switch of tier 2 by the digit before, and so on; of parallel links downwards the digit chooses that chose them upwards.
Source: Zahavi, J. Parallel Distrib. Comput. 2012, Fat-tree routing and node ordering providing contention free traffic
for MPI global collectives; native/flow/router.hpp does the same.
Leaves out: switches of one tier with different numbers of ports upwards (the largest is the base of all).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.fabric import SWITCH, Fabric

__all__ = ["destination_numbers", "port_strides"]


def destination_numbers(fabric: Fabric) -> NDArray[np.int64]:
    """Number of every NIC port, counted leaf by leaf in the order of the leaf's ports.

    Returns
    -------
    shape (ports,); 0 for ports of switches
    """
    ports = fabric.ports
    is_switch = fabric.node_kind == SWITCH
    downwards = np.flatnonzero(is_switch[ports.node] & ~is_switch[ports.node[ports.peer]])
    numbers = np.zeros(len(ports.node), np.int64)
    numbers[ports.peer[downwards]] = np.arange(len(downwards))
    return numbers


def port_strides(fabric: Fabric) -> NDArray[np.int64]:
    """By port: what a destination's number is divided by before the digit is taken by which its link is chosen.

    Returns
    -------
    shape (ports,); the product of the largest numbers of ports upwards in the tiers below the lower end of the link
    """
    ports = fabric.ports
    is_switch = fabric.node_kind == SWITCH
    tier = np.maximum(fabric.node_tier.astype(np.int64), 0)
    peer = ports.node[ports.peer]
    upwards = is_switch[ports.node] & is_switch[peer] & (fabric.node_tier[peer] > fabric.node_tier[ports.node])
    count = np.bincount(ports.node[upwards], minlength=len(tier))
    width = np.ones(int(tier.max(initial=0)) + 1, np.int64)
    np.maximum.at(width, tier[is_switch], count[is_switch])
    below = np.ones(len(width) + 1, np.int64)
    below[2:] = np.cumprod(width[1:])  # by tier: tier 2 stands above the ports of tier 1
    return below[np.minimum(tier[ports.node], tier[peer])]
