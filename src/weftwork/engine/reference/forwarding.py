"""Where switches of the reference engine send a packet: the routes that hold now.

Source: `docs/models/packet-engine.md`, section Route.
Leaves out: which of several next hops is taken, which is the port selection's to say; how routes are found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weftwork.engine.packet_input import PacketInput, RouteTable

__all__ = ["DELIVER", "UNREACHABLE", "Forwarding", "NextHop"]

DELIVER: Final = -2  # RouteTable.group_of: this node is the attachment
UNREACHABLE: Final = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class NextHop:
    """A port by which a switch reaches an attachment.

    Attributes
    ----------
    port : its id
    weight : of the candidate
    is_minimal : whether it is on a shortest path
    """

    port: int
    weight: int = 1
    is_minimal: bool = True


class Forwarding:
    """The next hops of every switch towards every attachment, in the table that holds now: at first its first.

    Attributes
    ----------
    edges : how many attachments there are
    """

    def __init__(self, engine_input: PacketInput) -> None:
        self._table = engine_input.routes[0]
        self._found: dict[tuple[int, int], list[NextHop]] = {}  # in this table
        self._attachment = engine_input.attachment
        self._node = engine_input.port_node
        self._peer = engine_input.port_peer
        self._destination_number = engine_input.destination_number
        self._stride = engine_input.port_stride
        self.edges = int(self._attachment.max(initial=-1)) + 1
        hung = [port for port in range(len(self._peer)) if self._attachment[port] >= 0 and self._peer[port] >= 0]
        self._edge_of = {int(self._node[self._peer[port]]): self.edge_of_nic(port) for port in hung}

    def use(self, table: RouteTable) -> None:
        """Let another table hold from now on."""
        self._table = table
        self._found.clear()

    def edge_of(self, node: int) -> int:
        """The attachment that a switch is, or -1."""
        return self._edge_of.get(node, -1)

    def edge_of_nic(self, port: int) -> int:
        """The attachment of a NIC port."""
        return int(self._attachment[port])

    def delivery(self, destination: int) -> NextHop:
        """The port that leads from its attachment to a NIC port."""
        return NextHop(port=int(self._peer[destination]))

    def next_hops(self, node: int, edge: int) -> list[NextHop]:
        """Ways from a switch to another one with hosts, those on shortest paths first; none: there is no route."""
        found = self._found.get((node, edge))
        if found is None:
            found = self._found[node, edge] = self._look_up(node, edge)
        return found

    def _look_up(self, node: int, edge: int) -> list[NextHop]:
        table = self._table
        minimal = self._members(int(table.group_of[node, edge]), is_minimal=True)
        others = int(table.second_of[node, edge]) if table.second_of.size else UNREACHABLE
        return minimal + self._members(others, is_minimal=False)

    def _members(self, group: int, *, is_minimal: bool) -> list[NextHop]:
        if group < 0:
            return []
        table = self._table
        members = slice(int(table.group_ptr[group]), int(table.group_ptr[group + 1]))
        pairs = zip(table.group_ports[members].tolist(), table.group_weights[members].tolist(), strict=True)
        return [NextHop(port=port, weight=weight, is_minimal=is_minimal) for port, weight in pairs]

    def hops_left(self, port: int, edge: int) -> int:
        """Switches that a packet passes from the far end of a port to an attachment; a host at the far end is none."""
        return int(self._table.distance[self._node[self._peer[port]], edge]) + 1

    def digit_of(self, port: int, destination: int) -> tuple[int, int]:
        """Number of a NIC port, and stride of the tier of a switch's port; see `weftwork.topology.digits`."""
        return int(self._destination_number[destination]), int(self._stride[port])
