"""Layers: next hops besides the shortest paths.

A layer has one next hop per switch and destination; paths are packed into layers. A path goes into the first layer in
which no switch on it sends elsewhere towards its attachment. Each layer is then a tree towards every attachment, so
that nothing goes round in it, and a packet that keeps to its layer takes its path. The first ways of a pair of
attachments are those that somebody has pinned; behind them are the k shortest paths.
Source: `docs/models/packet-engine.md`, section Route; layers in this sense: Besta et al., SC 2020, FatPaths.
Leaves out: packing into as few layers as can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.topology.k_shortest import KShortest
from weftwork.topology.routing import attachments, switch_distances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.routing import Routing

__all__ = ["Layers", "layers_of", "pinned_numbers"]

MOST_WAYS: Final = 1 << 22  # chosen: pairs of switches with hosts x paths, about a minute of search
MOST_HOPS: Final = 1 << 28  # chosen: entries of the table of layers, or of ways, 4 bytes each
NOWHERE: Final = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Layers:
    """Paths of pairs of attachments, as next hops.

    Attributes
    ----------
    next_port : shape (layers, nodes, attachments), int32: the port towards an attachment, -1: the shortest paths hold
    layer_of : shape (attachments, attachments, ways), int32: layer of each way from the first to the second, -1: the
        shortest paths; a pair with fewer paths than ways has them again and again
    pinned_ways : how many of the ways, the first ones, are pinned
    most_switches : on the longest of the paths
    """

    next_port: NDArray[np.int32]
    layer_of: NDArray[np.int32]
    pinned_ways: int
    most_switches: int


class _Packing:
    """Layers during packing."""

    def __init__(self, port_node: NDArray[np.int32], attachments: int) -> None:
        self._port_node: list[int] = port_node.tolist()
        self._attachments = attachments
        self._used: dict[int, int] = {}  # by node and attachment: layers in which it sends somewhere, a bit each
        self._sends: dict[int, int] = {}  # by port and attachment: layers in which this port is taken
        self._rows: list[tuple[int, int, int, int]] = []
        self.layers = 0
        self.most_switches = 0

    def place(self, path: Sequence[int], attachment: int) -> int:
        """Put a path into the first layer that has room for it."""
        width = self._attachments
        nodes = [self._port_node[port] for port in path]
        taken = 0
        for port, node in zip(path, nodes, strict=True):
            taken |= self._used.get(node * width + attachment, 0) & ~self._sends.get(port * width + attachment, 0)
        bit = ~taken & (taken + 1)
        layer = bit.bit_length() - 1
        for port, node in zip(path, nodes, strict=True):
            of_node, of_port = node * width + attachment, port * width + attachment
            before = self._sends.get(of_port, 0)
            if not before & bit:
                self._sends[of_port] = before | bit
                self._used[of_node] = self._used.get(of_node, 0) | bit
                self._rows.append((layer, node, attachment, port))
        self.layers = max(self.layers, layer + 1)
        self.most_switches = max(self.most_switches, len(path) + 1)
        return layer

    def next_port(self, nodes: int) -> NDArray[np.int32]:
        """The table of all layers."""
        shape = (self.layers, nodes, self._attachments)
        if self.layers * nodes * self._attachments > MOST_HOPS:
            raise _too_large(
                f"{plural(self.layers, 'layer')} of {plural(nodes, 'node')} x "
                f"{plural(self._attachments, 'switch', 'switches')} with hosts"
            )
        table = np.full(shape, NOWHERE, np.int32)
        rows = np.array(self._rows, np.int64).reshape(-1, 4)
        table[rows[:, 0], rows[:, 1], rows[:, 2]] = rows[:, 3]
        return table


def pinned_numbers(fabric: Fabric, routing: Routing) -> list[int]:
    """Number of each pin's path, the entropy of its queue pairs.

    -1 for a path without a choice of links. Ways are counted for both directions of a pair together, so that no other
    pin's way leads back. Pins have one way where their paths are the same under every plan.
    """
    _, attach_of_port = attachments(fabric)
    known: dict[tuple[int, int, tuple[tuple[int, ...], ...]], int] = {}
    counted: dict[tuple[int, int], int] = {}
    numbers: list[int] = []
    for pin in routing.pins:
        ends = int(attach_of_port[pin.sources[0]]), int(attach_of_port[pin.destinations[0]])
        paths = pin.ports, *pin.later
        if not any(paths):
            numbers.append(-1)
            continue
        if (*ends, paths) not in known:
            pair = min(ends), max(ends)
            known[*ends, paths] = counted.get(pair, 0)
            counted[pair] = counted.get(pair, 0) + 1
        numbers.append(known[*ends, paths])
    return numbers


def layers_of(fabric: Fabric, link_up: NDArray[np.bool_], routing: Routing, plan: int = 0) -> Layers | None:
    """Find and pack the paths of a routing.

    Parameters
    ----------
    fabric : whose nodes and links
    link_up : shape (links,); a pinned path with a link that is down gives way to the shortest paths
    routing : its pins are paths of the fabric
    plan : which of the paths of each pin holds, see `weftwork.spec.routing.Pin.ports_of`

    Returns
    -------
    None where shortest paths are all that is asked for

    Raises
    ------
    ConfigError : the tables would be too large
    """
    if not routing.has_layers:
        return None
    ports = fabric.ports
    attach_node, attach_of_port = attachments(fabric)
    count = len(attach_node)
    numbers = pinned_numbers(fabric, routing)
    pinned_ways = max(numbers, default=-1) + 1
    ways = pinned_ways + routing.paths
    if count * count * routing.paths > MOST_WAYS or count * count * ways > MOST_HOPS:
        raise _too_large(f"{count:,} x {plural(count, 'pair')} of switches with hosts, {plural(ways, 'way')} each")
    packing = _Packing(ports.node, count)
    layer_of = np.full((count, count, ways), NOWHERE, np.int32)
    for pin, number in zip(routing.pins, numbers, strict=True):
        way = pin.ports_of(plan)
        if number < 0 or not way or not link_up[ports.link[list(way)]].all():
            continue
        start, goal = int(attach_of_port[pin.sources[0]]), int(attach_of_port[pin.destinations[0]])
        if layer_of[start, goal, number] == NOWHERE:
            layer_of[start, goal, number] = packing.place(way, goal)
    if routing.paths:
        _pack_shortest(fabric, link_up, routing.paths, attach_node, packing, layer_of[:, :, pinned_ways:])
    return Layers(
        next_port=packing.next_port(len(fabric.node_kind)),
        layer_of=layer_of,
        pinned_ways=pinned_ways,
        most_switches=packing.most_switches,
    )


def _pack_shortest(
    fabric: Fabric,
    link_up: NDArray[np.bool_],
    paths: int,
    attach_node: NDArray[np.int32],
    packing: _Packing,
    layer_of: NDArray[np.int32],
) -> None:
    """Fill in the paths of all pairs."""
    search = KShortest(fabric, link_up)
    distance = switch_distances(fabric, link_up, attach_node)
    nodes: list[int] = attach_node.tolist()
    for goal, goal_node in enumerate(nodes):
        to_goal: list[int] = distance[:, goal].tolist()
        for start, node in enumerate(nodes):
            if to_goal[node] > 0:
                found = search.paths(node, goal_node, to_goal, paths)
                placed = [packing.place(path, goal) for path in found]
                layer_of[start, goal] = np.resize(placed, paths)


def _too_large(what: str) -> ConfigError:
    text = f"{what} are more than tables of paths may have; take a smaller fabric, or fewer paths, or fewer pinned ones"
    return ConfigError("fabric", [Mistake(path="fabric.routing", text=text)])
