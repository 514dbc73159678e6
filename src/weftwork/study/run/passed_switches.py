"""Number of switches that a packet has passed on a shortest path.

It serves where the engines do not count them.

Leaves out: detours around faults and those that a port selection takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weftwork.spec.fabric import SWITCH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric

__all__ = ["PassedSwitches"]


class PassedSwitches:
    """Counts switches between a NIC port and a switch's port, breadth first.

    Hosts forward nothing.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self._distances: dict[int, NDArray[np.int64]] = {}

    def is_of_switch(self, port: int) -> bool:
        """Whether a port belongs to a switch."""
        return bool(self.fabric.node_kind[self.fabric.ports.node[port]] == SWITCH)

    def between(self, origin: int, port: int) -> int:
        """Switches from a NIC port up to an egress port.

        They are from ``origin`` to ``port``, 0 at a host; the switch of the port is included.
        """
        if not self.is_of_switch(port):
            return 0
        ports = self.fabric.ports
        node = int(ports.node[port])
        if node not in self._distances:
            self._distances[node] = self._from(node)
        return int(self._distances[node][ports.node[ports.peer[origin]]]) + 1

    def _from(self, start: int) -> NDArray[np.int64]:
        """Hops from a switch to every other switch; 0 without a path."""
        ports, is_switch = self.fabric.ports, self.fabric.node_kind == SWITCH
        found = np.zeros(len(is_switch), np.int64)
        seen = np.zeros(len(is_switch), np.bool_)
        seen[start] = True
        reached, hops = np.array([start]), 0
        while len(reached):
            hops += 1
            is_next = np.zeros(len(is_switch), np.bool_)
            is_next[ports.node[ports.peer[np.isin(ports.node, reached)]]] = True
            (reached,) = np.nonzero(is_next & is_switch & ~seen)
            found[reached] = hops
            seen[reached] = True
        return found
