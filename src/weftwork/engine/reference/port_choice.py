"""The choice of a packet's port in a switch.

The switch has candidates, and port selection has its signal. It belongs to the reference engine.
Source: `docs/models/packet-engine.md`, sections Route and What policies see and write.
Leaves out: what a packet does before and after, which is the switch's to say; how routes are found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from weftwork.base.random import Stream, draw
from weftwork.engine.hashing import field_bytes, final_hash
from weftwork.engine.reference.clock import Clock
from weftwork.engine.reference.forwarding import SHORTEST, NextHop
from weftwork.engine.reference.packet import Packet, PacketKind
from weftwork.engine.reference.port import Port
from weftwork.policies.interface import OFF, PortSelection
from weftwork.policies.load import LoadedPolicy

__all__ = ["PortChoice", "PortChoiceConfig", "WaysToEdges"]


class WaysToEdges(Protocol):
    """The routes as a switch sees them.

    `weftwork.engine.reference.forwarding.Forwarding` describes each method.
    """

    @property
    def edges(self) -> int:
        """Number of attachments."""

    def edge_of(self, node: int) -> int:
        """Attachment index of a switch, or -1."""

    def edge_of_nic(self, port: int) -> int:
        """The attachment of a NIC port."""

    def delivery(self, destination: int) -> NextHop:
        """The port from an attachment to its NIC port."""

    @property
    def has_layers(self) -> bool:
        """Whether there are other routes than the shortest paths."""

    def layer_by_word(self, word: int) -> int:
        """The layer of a packet that names it."""

    def layer_by_entropy(self, origin: int, destination: int, entropy: int) -> int:
        """The layer of a packet between two NIC ports."""

    def next_hops(self, node: int, edge: int, layer: int) -> list[NextHop]:
        """Next hops in a layer, from a switch to an attachment."""

    def hops_left(self, port: int, edge: int) -> int:
        """Switches between a port's far end and an attachment."""

    def hops_between(self, edge: int, other: int) -> int:
        """Hops between two attachments, from the first."""

    def group_of_edge(self, edge: int) -> int:
        """Pod or group of an attachment's switch; -1: none."""

    def detour(self, from_edge: int, to_edge: int, draw: int) -> int:
        """The attachment of a number that a detour goes by, or OFF."""

    def channels(self, in_port: int, held: int, port: int) -> tuple[int, int]:
        """Virtual channels behind a port: if the way goes on, and if a new part of it begins."""

    def digit_of(self, port: int, destination: int) -> tuple[int, int]:
        """Input of a port selection by destination.

        It is the number of the NIC port, and the stride of the candidates' tier.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class PortChoiceConfig:
    """A switch as its port selection sees it.

    Parameters
    ----------
    node : its id
    seed : of the run
    tier, group : of the switch; group -1: none
    hash : algorithm, seed, offset, fields
    virtual_channels : classes of one priority
    """

    node: int
    seed: int
    tier: int
    group: int
    hash: tuple[int, int, int, int]
    virtual_channels: int


class PortChoice:
    """Chooses for one switch.

    Parameters
    ----------
    config : what the switch is
    clock : what time it is
    ports : of the switch
    routes : where a packet may go
    selection : port selection, which chooses among several
    queue_bytes : of the egress queue of a port id and a class
    """

    def __init__(
        self,
        config: PortChoiceConfig,
        clock: Clock,
        ports: list[Port],
        routes: WaysToEdges,
        selection: LoadedPolicy,
        queue_bytes: Callable[[int, int], int],
    ) -> None:
        self.config = config
        self.clock = clock
        self.routes = routes
        self.selection = selection
        self.queue_bytes = queue_bytes
        self.plugin = cast("PortSelection", selection.plugin)
        self.state = selection.new_state()
        self.port_states = selection.new_port_states(len(ports))
        self.edge = routes.edge_of(config.node)
        self._port_of = {port.id: port for port in ports}
        needs = self.plugin.needs
        self._looks_at_queues, self._looks_ahead = "queue" in needs, "hops-left" in needs
        self._takes_detours = "non-minimal" in needs
        self._takes_turns, self._draws_detours = "channel" in needs, "detour" in needs
        self._signal = self._describe(selection.new_port_signal())
        self._rows: dict[int, list[Any]] = {}  # by how many candidates there are
        self._queue_pair_hash: dict[int, int] = {}  # by flow

    def _describe(self, signal: Any) -> Any:  # noqa: ANN401 - the record of the policies
        """Fill the fields that are equal for all packets."""
        config = self.config
        signal.node, signal.tier, signal.group = config.node, config.tier, config.group
        signal.ports = len(self._port_of)
        return signal

    def is_last(self, packet: Packet) -> bool:
        """Whether the destination is attached to this switch."""
        return self.edge == self.routes.edge_of_nic(packet.destination)

    def choose(self, in_port: Port, packet: Packet) -> Port | None:
        """Choose the port by which a packet leaves.

        The packet takes along the words that the port selection wrote.

        Returns
        -------
        None where there is no way; a port that is down where all ways begin with one
        """
        packet.via = self._ahead(packet.via)
        layer = self._layer_of(packet) if self.routes.has_layers else SHORTEST
        via_changes, gives_up = 0, False
        while True:
            target = self.routes.edge_of_nic(packet.destination) if packet.via == OFF else packet.via
            is_delivered = target == self.edge
            ways = [self.routes.delivery(packet.destination)] if is_delivered else self._next_hops(target, layer)
            if not ways and packet.via != OFF:
                packet.via, gives_up = OFF, True  # no way leads there
                continue
            if not ways:
                return None
            candidates = ways
            if not self.plugin.waits_for_routes:
                candidates = [way for way in ways if self._port_of[way.port].is_up]
            if not candidates:
                return self._port_of[ways[0].port]
            is_asked = self.plugin.at_delivery if is_delivered else len(candidates) > 1 or self.plugin.always
            if via_changes == 0 and not is_asked:
                return self._port_of[candidates[0].port]
            via = packet.via
            changes = 0 if gives_up else via_changes
            choice = self._ask(in_port, packet, target, candidates, is_delivered=is_delivered, via_changes=changes)
            if gives_up:
                packet.via = OFF  # whatever the step has written
            if packet.via == via:
                return self._port_of[candidates[choice].port]
            via_changes += 1

    def _ahead(self, via: int) -> int:
        """The packet's via, or OFF if it is this switch."""
        return OFF if via == self.edge else via

    def _layer_of(self, packet: Packet) -> int:
        """The layer of routes that a packet takes here.

        It follows from the word with which the packet comes in, or from its entropy.
        """
        if self.plugin.layer_by_word:
            return self.routes.layer_by_word(packet.word)
        return self.routes.layer_by_entropy(packet.origin, packet.destination, packet.entropy)

    def _next_hops(self, target: int, layer: int) -> list[NextHop]:
        found = self.routes.next_hops(self.config.node, target, layer)
        if self._takes_detours or not found or found[-1].is_minimal:  # those on shortest paths come first
            return found
        return [way for way in found if way.is_minimal]

    def _ask(
        self,
        in_port: Port,
        packet: Packet,
        target: int,
        candidates: list[NextHop],
        *,
        is_delivered: bool,
        via_changes: int,
    ) -> int:
        """Call the port selection; returns the chosen index.

        The packet takes along the words that it wrote.
        """
        rows = self._rows.get(len(candidates))
        if rows is None:
            rows = self._rows[len(candidates)] = self.selection.new_candidates(len(candidates))
        for row, way in zip(rows, candidates, strict=True):
            port = self._port_of[way.port]
            row.rate_bps = port.rate_bps
            row.weight = way.weight
            row.port = port.local_index
            row.minimal = 1 if way.is_minimal else 0
            if self._looks_at_queues:
                row.queue_bytes = self.queue_bytes(port.id, packet.traffic_class)
                row.paused = int(port.is_held(packet.traffic_class, packet.size_bytes))
            if self._looks_ahead:
                row.hops_left = self.routes.hops_left(port.id, target)
        config, routes = self.config, self.routes
        channel = packet.traffic_class % config.virtual_channels
        signal = self._signal
        signal.now_ps = self.clock.now_ps
        signal.hash = self._hash(in_port, packet)
        signal.draw = packet.draw(config.seed, Stream.PORT_CHOICE, config.node) >> 2
        signal.bytes = packet.size_bytes
        signal.candidates = len(candidates)
        signal.is_data = int(packet.kind == PacketKind.DATA)
        signal.destination, signal.stride = routes.digit_of(candidates[0].port, packet.destination)
        signal.in_port = in_port.local_index
        signal.edge, signal.edges = self.edge, routes.edges
        signal.hops = packet.hop_count
        signal.queue_pair_hash = self._hash_of_queue_pair(packet.flow.id)
        signal.from_edge = routes.edge_of_nic(packet.origin)
        signal.to_edge = routes.edge_of_nic(packet.destination)
        signal.delivered = int(is_delivered)
        if self._takes_turns:
            for row, way in zip(rows, candidates, strict=True):
                behind = (channel, channel) if is_delivered else routes.channels(in_port.id, channel, way.port)
                row.channel, row.turn_channel = behind
        if self._draws_detours:
            self._describe_detour(signal, packet.via)
        self.selection.offer(signal, virtual_channel=channel, word=packet.word, via=packet.via)
        self.selection.call_step(self.state, signal, rows, self.port_states, via_changes=via_changes)
        packet.word, packet.via = signal.word, self._ahead(signal.via)
        packet.traffic_class += signal.virtual_channel - channel
        return int(signal.choice)

    def _describe_detour(self, signal: Any, via: int) -> None:  # noqa: ANN401 - the record of the policies
        """Fill the fields of the need ``detour``; the ends' edges are there."""
        routes, ends = self.routes, (signal.from_edge, signal.to_edge)
        signal.from_group = routes.group_of_edge(signal.from_edge)
        signal.detour = routes.detour(*ends, signal.draw)
        signal.queue_pair_detour = routes.detour(*ends, signal.queue_pair_hash)
        signal.via_group = -1 if via == OFF else routes.group_of_edge(via)
        signal.hops_after_via = 0
        if self._looks_ahead and via != OFF:
            signal.hops_after_via = routes.hops_between(via, signal.to_edge)

    def _hash_of_queue_pair(self, flow: int) -> int:
        found = self._queue_pair_hash.get(flow)
        if found is None:
            found = self._queue_pair_hash[flow] = draw(self.config.seed, Stream.QUEUE_PAIR, flow, 0, 0) >> 2
        return found

    def _hash(self, in_port: Port, packet: Packet) -> int:
        algorithm, seed, offset, fields = self.config.hash
        data = field_bytes(
            fields=fields,
            source_port=packet.origin,
            destination_port=packet.destination,
            entropy=packet.entropy,
            in_port=in_port.local_index,
            destination_qp=packet.flow.number,
        )
        return final_hash(algorithm, seed, offset, data)
