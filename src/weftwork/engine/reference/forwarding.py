"""Forwarding: the present routes of all switches in the reference engine.

Source: `docs/models/packet-engine.md`, section Route.
Leaves out: which of several next hops is taken, which is the port selection's to say; how routes are found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weftwork.engine.packet_input import PacketInput, RouteTable
from weftwork.policies.interface import OFF

__all__ = ["DELIVER", "SHORTEST", "UNREACHABLE", "Forwarding", "NextHop"]

DELIVER: Final = -2  # RouteTable.group_of: this node is the attachment
UNREACHABLE: Final = -1
SHORTEST: Final = -1  # the layer that is no layer: the shortest paths


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
    """Next hops of every switch towards every attachment.

    They are those of the present table, at first the first table.

    Attributes
    ----------
    edges : how many attachments there are
    has_layers : whether the table knows more than shortest paths
    """

    def __init__(self, engine_input: PacketInput) -> None:
        self._table = engine_input.routes[0]
        self._found: dict[tuple[int, int, int], list[NextHop]] = {}  # in this table
        self.has_layers = len(self._table.layer_group) > 0
        # Lists: every packet asks at every switch, and a number of an array would have to be made into an int.
        self._attachment: list[int] = engine_input.attachment.tolist()
        self._node: list[int] = engine_input.port_node.tolist()
        self._peer: list[int] = engine_input.port_peer.tolist()
        self._destination_number: list[int] = engine_input.destination_number.tolist()
        self._stride: list[int] = engine_input.port_stride.tolist()
        self._attach_node: list[int] = engine_input.attach_node.tolist()
        self._node_group: list[int] = engine_input.node_group.tolist()
        self._port_kind: list[int] = engine_input.port_kind.tolist()
        self._channel_rule = engine_input.channel_rule
        self._detour_order: list[int] = engine_input.detour_order.tolist()
        self._detour_base: list[int] = engine_input.detour_base.tolist()
        self._detour_by_group = engine_input.detour_by_group
        self._detour_group: list[int] = engine_input.detour_group.tolist()
        self._deliveries = [NextHop(port=peer) for peer in self._peer]
        self.edges: int = max(self._attachment, default=-1) + 1
        hung = [port for port in range(len(self._peer)) if self._attachment[port] >= 0 and self._peer[port] >= 0]
        self._edge_of: dict[int, int] = {self._node[self._peer[port]]: self._attachment[port] for port in hung}

    def use(self, table: RouteTable) -> None:
        """Use another table from now on."""
        self._table = table
        self.has_layers = len(table.layer_group) > 0
        self._found.clear()

    def edge_of(self, node: int) -> int:
        """Attachment index of a switch, or -1."""
        return self._edge_of.get(node, -1)

    def edge_of_nic(self, port: int) -> int:
        """The attachment of a NIC port."""
        return self._attachment[port]

    def delivery(self, destination: int) -> NextHop:
        """The port from an attachment to its NIC port."""
        return self._deliveries[destination]

    def layer_by_word(self, word: int) -> int:
        """The layer of a packet that names it.

        0 stands for the shortest paths, 1 for the first layer, and so on.
        """
        return word % (len(self._table.layer_group) + 1) - 1

    def layer_by_entropy(self, origin: int, destination: int, entropy: int) -> int:
        """The layer of a packet by its entropy.

        Between two NIC ports, low entropies take a pinned path, all others one of the rest.
        """
        table = self._table
        pinned, ways = table.pinned_ways, table.layer_of.shape[2]
        if entropy < pinned:
            way = entropy
        elif pinned < ways:
            way = pinned + entropy % (ways - pinned)
        else:
            return SHORTEST
        return int(table.layer_of[self.edge_of_nic(origin), self.edge_of_nic(destination), way])

    def next_hops(self, node: int, edge: int, layer: int = SHORTEST) -> list[NextHop]:
        """Next hops from a switch to an attachment, shortest paths first.

        Empty without a route.

        Parameters
        ----------
        node, edge : the switch, and the attachment that is the other one
        layer : whose ways they are; where it knows none, the shortest paths hold
        """
        found = self._found.get((node, edge, layer))
        if found is None:
            found = self._found[node, edge, layer] = self._look_up(node, edge, layer)
        return found

    def _look_up(self, node: int, edge: int, layer: int) -> list[NextHop]:
        table = self._table
        if layer != SHORTEST and table.layer_group[layer, node, edge] >= 0:
            return self._members(int(table.layer_group[layer, node, edge]), is_minimal=True)
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
        """Switches between a port's far end and an attachment.

        A host at the far end counts none.
        """
        return int(self._table.distance[self._node[self._peer[port]], edge]) + 1

    def hops_between(self, edge: int, other: int) -> int:
        """Hops between two attachments, from the first; see `RouteTable.distance`."""
        return int(self._table.distance[self._attach_node[edge], other])

    def group_of_edge(self, edge: int) -> int:
        """Pod or group of an attachment's switch; -1: none."""
        return self._node_group[self._attach_node[edge]]

    def detour(self, from_edge: int, to_edge: int, draw: int) -> int:
        """The attachment of a number that a detour goes by.

        OFF where the ends are in one group, none is left, or the destination's own is drawn.
        """
        ends = sorted({self._detour_group[from_edge], self._detour_group[to_edge]})
        if len(ends) == 1:
            return OFF
        if not self._detour_by_group:
            ends = [self._detour_group[from_edge]]
        sizes = [self._detour_base[group + 1] - self._detour_base[group] for group in ends]
        left = len(self._detour_order) - sum(sizes)
        if left <= 0:
            return OFF
        place = draw % left
        for group, size in zip(ends, sizes, strict=True):
            if place >= self._detour_base[group]:
                place += size
        drawn = self._detour_order[place]
        return OFF if drawn == to_edge else drawn

    def channels(self, in_port: int, held: int, port: int) -> tuple[int, int]:
        """Virtual channels behind a port: if the way goes on, and if a new part of it begins."""
        kinds = self._port_kind[in_port] + 1, self._port_kind[port]
        on, turn = self._channel_rule[:, kinds[0], held, kinds[1]].tolist()
        return on, turn

    def digit_of(self, port: int, destination: int) -> tuple[int, int]:
        """Number of a NIC port, and stride of a port's tier.

        See `weftwork.topology.digits`.
        """
        return self._destination_number[destination], self._stride[port]
