"""Where switches of the reference engine send a packet: the routes that hold now.

Source: `docs/models/packet-engine.md`, section Switches.
Leaves out: which of several next hops is taken, which is the port selection's to say; how routes are found.
"""

from __future__ import annotations

from typing import Final

from weftwork.engine.plan import Plan

__all__ = ["DELIVER", "UNREACHABLE", "Forwarding"]

DELIVER: Final = -2  # RouteTable.group_of: this node is the attachment
UNREACHABLE: Final = -1


class Forwarding:
    """The next hops of every switch towards every NIC port.

    Attributes
    ----------
    table : that holds now
    """

    def __init__(self, plan: Plan) -> None:
        self.table = plan.routes[0]
        self._attachment = plan.attachment
        self._peer = plan.port_peer
        self._destination_number = plan.destination_number
        self._stride = plan.port_stride

    def next_hops(self, node: int, destination: int) -> tuple[list[int], list[int]]:
        """Ports that lead from a switch to a NIC port, and their weights; none: there is no route."""
        table = self.table
        group = int(table.group_of[node, self._attachment[destination]])
        if group == DELIVER:
            return [int(self._peer[destination])], [1]
        if group == UNREACHABLE:
            return [], []
        first, last = int(table.group_ptr[group]), int(table.group_ptr[group + 1])
        return table.group_ports[first:last].tolist(), table.group_weights[first:last].tolist()

    def digit_of(self, port: int, destination: int) -> tuple[int, int]:
        """Number of a NIC port, and stride of the tier of a switch's port; see `weftwork.topology.digits`."""
        return int(self._destination_number[destination]), int(self._stride[port])
