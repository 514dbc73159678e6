"""Where switches of the reference engine send a packet: the routes that hold now.

Source: `docs/models/packet-engine.md`, section Switches.
Leaves out: which of several next hops is taken, which is the port selection's to say; how routes are found.
"""

from __future__ import annotations

from typing import Final

from weftwork.engine.packet_input import PacketInput, RouteTable

__all__ = ["DELIVER", "UNREACHABLE", "Forwarding"]

DELIVER: Final = -2  # RouteTable.group_of: this node is the attachment
UNREACHABLE: Final = -1


class Forwarding:
    """The next hops of every switch towards every NIC port, in the table that holds now: at first its first."""

    def __init__(self, engine_input: PacketInput) -> None:
        self._table = engine_input.routes[0]
        self._found: dict[tuple[int, int], tuple[list[int], list[int]]] = {}  # in this table
        self._attachment = engine_input.attachment
        self._peer = engine_input.port_peer
        self._destination_number = engine_input.destination_number
        self._stride = engine_input.port_stride

    def use(self, table: RouteTable) -> None:
        """Let another table hold from now on."""
        self._table = table
        self._found.clear()

    def next_hops(self, node: int, destination: int) -> tuple[list[int], list[int]]:
        """Ports that lead from a switch to a NIC port, and their weights; none: there is no route."""
        found = self._found.get((node, destination))
        if found is None:
            found = self._found[node, destination] = self._look_up(node, destination)
        return found

    def _look_up(self, node: int, destination: int) -> tuple[list[int], list[int]]:
        table = self._table
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
