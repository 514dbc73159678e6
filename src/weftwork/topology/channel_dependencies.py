"""Channel dependencies: which buffers of a network may wait for each other, and whether they can do so in a circle.

A channel is a directed link and a virtual channel on it. A packet that holds one and wants another makes the first
depend on the second. Lossless networks without a circle of dependencies never deadlock. The dependencies are those
that packets can make: the search follows every pair of source and destination, over detours and turns too.
Source: Dally and Seitz, IEEE Transactions on Computers C-36(5), 1987, doi:10.1109/TC.1987.1676939, theorem 1.
Leaves out: port selections that choose their channels themselves, whose steps nobody can follow in advance; classes of
priorities, which do not mix.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.spec.fabric import HOST
from weftwork.topology.layers import layers_of
from weftwork.topology.routing import attachments, routes
from weftwork.topology.virtual_channels import channel_rule, link_kinds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.routing import Routing
    from weftwork.topology.layers import Layers
    from weftwork.topology.routing import Routes

__all__ = ["Channel", "dependency_cycle", "is_too_large"]

MOST_WORDS: Final = 1 << 26  # chosen: 512 MiB of bits, by link, virtual channel and destination


@dataclass(frozen=True, kw_only=True, slots=True)
class Channel:
    """A directed link, by the port that sends on it, and a virtual channel."""

    port: int
    virtual_channel: int


def dependency_cycle(
    fabric: Fabric, link_up: NDArray[np.bool_], routing: Routing, channels: int, *, rethinks: bool = False
) -> tuple[Channel, ...]:
    """Find channels that can wait for each other in a circle.

    Parameters
    ----------
    fabric, link_up : whose links
    routing : routes, detours and scheme of virtual channels
    channels : virtual channels of a priority
    rethinks : a packet may leave its shortest path for a detour at later switches of its first group, as PAR does

    Returns
    -------
    the channels of one circle in order, each depending on the next and the last on the first; empty without a circle
    """
    search = _DependencySearch(fabric, link_up, routing, channels, rethinks=rethinks)
    edges = search.edges_of_layers() if routing.has_layers else search.edges()
    return search.cycle(edges)


def is_too_large(fabric: Fabric, routing: Routing, channels: int) -> bool:
    """Whether the search would take more memory than `MOST_WORDS` words."""
    attach_node, _ = attachments(fabric)
    words = -(-len(attach_node) // 64) * (2 if routing.detour != "never" else 1)
    return len(fabric.ports.node) * channels * words > MOST_WORDS


@dataclass(slots=True)
class _DependencySearch:
    """Bits of destinations that packets in each channel may have."""

    fabric: Fabric
    link_up: NDArray[np.bool_]
    routing: Routing
    channels: int
    rethinks: bool = field(kw_only=True)
    table: Routes = field(init=False)
    rule: NDArray[np.int8] = field(init=False)
    kind: NDArray[np.int64] = field(init=False)
    arrival: NDArray[np.int64] = field(init=False)
    far: NDArray[np.int64] = field(init=False)
    sends: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        fabric, ports = self.fabric, self.fabric.ports
        kinds = link_kinds(fabric)
        self.kind = kinds.port_kind
        self.arrival = kinds.port_kind[ports.peer]  # of the port at which a packet arrives
        self.rule = channel_rule(kinds, self.routing.scheme, self.channels)
        self.far = ports.node[ports.peer].astype(np.int64)
        self.sends = (self.kind >= 0) & self.link_up[ports.link]
        routing = self.routing
        self.table = routes(
            fabric, self.link_up, up_down=routing.up_down, dimension_order=routing.dimension_order,
            fewest_global_hops=routing.fewest_global_hops,
        )  # fmt: skip

    # All pairs at once, by destinations

    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Dependencies under routes and detours."""
        words = -(-len(self.table.attach_node) // 64)
        lead = self._leading(words)
        shape = (len(self.kind), self.channels, words)
        to_via, to_end = np.zeros(shape, np.uint64), np.zeros(shape, np.uint64)
        has_detours = self.routing.detour != "never"
        every = np.full(words, np.iinfo(np.uint64).max, np.uint64)
        outside = self._outside(words)
        starts = [(node, -1, 0, 0) for node in self.table.attach_node.tolist()]
        self._start(to_end, lead, starts, every)
        if has_detours:
            self._start(to_via, lead, starts, outside)
            self._spread(to_via, lead, stops=self._ends_at(words))
            pairs = self._turns(to_via, outside)
            self._start(to_end, lead, pairs, outside if self.routing.detour_by_group else every)
        self._spread(to_end, lead)
        again = self._second_thoughts(to_end) if self.rethinks else []
        if again:
            self._start(to_via, lead, again, outside)
            self._spread(to_via, lead, stops=self._ends_at(words))
            pairs = self._turns(to_via, outside)
            self._start(to_end, lead, pairs, outside)
            self._spread(to_end, lead)
        tails: list[NDArray[np.int64]] = []
        heads: list[NDArray[np.int64]] = []
        for held in (to_end, to_via) if has_detours else (to_end,):
            self._depend(held, lead, tails, heads, stops=self._ends_at(words) if held is to_via else None)
        for node, came, channel, turn in [*(pairs if has_detours else []), *again]:
            if came < 0:
                continue
            own = self._out(node)
            own = own[(lead[own] & outside[node]).any(axis=1)]
            tails.append(np.full(len(own), came * self.channels + channel))
            heads.append(own * self.channels + self.rule[turn, self.arrival[came] + 1, channel, self.kind[own]])
        empty = np.empty(0, np.int64)
        return np.concatenate([empty, *tails]), np.concatenate([empty, *heads])

    def _out(self, node: int) -> NDArray[np.int64]:
        base = self.fabric.ports.base
        own = np.arange(base[node], base[node + 1])
        return own[self.sends[own]]

    def _leading(self, words: int) -> NDArray[np.uint64]:
        """By port, the attachments to which it leads from its switch."""
        found = np.zeros((len(self.kind), words * 8), np.uint8)
        table, base = self.table, self.fabric.ports.base
        for node in np.flatnonzero(self.fabric.node_kind != HOST).tolist():
            groups = table.group_of[node]
            known = np.unique(groups[groups >= 0])
            if not len(known):
                continue
            local = np.zeros((int(base[node + 1] - base[node]), len(groups)), np.bool_)
            for group in known.tolist():
                members = table.group_ports[table.group_ptr[group] : table.group_ptr[group + 1]] - base[node]
                local[members[:, None], np.flatnonzero(groups == group)[None]] = True
            packed = np.packbits(local, axis=1, bitorder="little")
            found[base[node] : base[node + 1], : packed.shape[1]] = packed
        return found.view(np.uint64)

    def _outside(self, words: int) -> NDArray[np.uint64]:
        """By node, the attachments outside its own group, or all where detours know no groups."""
        attach = self.table.attach_node
        if not self.routing.detour_by_group or self.fabric.node_pod is None:
            return np.full((len(self.fabric.node_kind), words), np.iinfo(np.uint64).max, np.uint64)
        pod = self.fabric.node_pod
        bits = np.zeros((int(pod.max()) + 2, words * 64), np.uint8)
        for group in range(-1, int(pod.max()) + 1):
            bits[group + 1, : len(attach)] = pod[attach] != group
        packed: NDArray[np.uint64] = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
        return packed[pod + 1]

    def _ends_at(self, words: int) -> NDArray[np.uint64]:
        """By node, the intermediates for which a detour goes on beyond the node."""
        if self.routing.detour_by_group:
            return self._outside(words)
        stays = np.full((len(self.fabric.node_kind), words), np.iinfo(np.uint64).max, np.uint64)
        for edge, node in enumerate(self.table.attach_node.tolist()):
            stays[node, edge // 64] &= ~(np.uint64(1) << np.uint64(edge % 64))
        return stays

    def _start(
        self,
        held: NDArray[np.uint64],
        lead: NDArray[np.uint64],
        starts: list[tuple[int, int, int, int]],
        targets: NDArray[np.uint64],
    ) -> None:
        """Let packets to all targets set out: node, port they have come by (-1: a host), channel, turn."""
        for node, came, channel, turn in starts:
            own = self._out(node)
            kind = -1 if came < 0 else int(self.arrival[came])
            behind = self.rule[turn, kind + 1, channel, self.kind[own]]
            wanted = targets if targets.ndim == 1 else targets[node]
            held[own, behind] |= lead[own] & wanted

    def _spread(
        self, held: NDArray[np.uint64], lead: NDArray[np.uint64], stops: NDArray[np.uint64] | None = None
    ) -> None:
        """Let packets go on until nothing new comes."""
        arrives = self._arriving()
        fresh = {int(node) for node in np.unique(self.far[self.sends & held.any(axis=(1, 2))])}
        while fresh:
            following: set[int] = set()
            for node in fresh:
                came, own = arrives.get(node), self._out(node)
                if came is None or not len(own):
                    continue
                for kind in np.unique(self.arrival[came]).tolist():
                    arrived = np.bitwise_or.reduce(held[came[self.arrival[came] == kind]], axis=0)  # by channel
                    if stops is not None:
                        arrived = arrived & stops[node]
                    for channel in np.flatnonzero(arrived.any(axis=1)).tolist():
                        behind = self.rule[0, kind + 1, channel, self.kind[own]]
                        more = lead[own] & arrived[channel]
                        known = held[own, behind]
                        grown = ((more & ~known) != 0).any(axis=1)
                        held[own, behind] = known | more
                        following.update(self.far[own[grown]].tolist())
            fresh = following

    def _arriving(self) -> dict[int, NDArray[np.int64]]:
        """By node, the ports that send to it."""
        sending = np.flatnonzero(self.sends)
        if not len(sending):
            return {}
        order = sending[np.argsort(self.far[sending], kind="stable")]
        nodes, first = np.unique(self.far[order], return_index=True)
        return dict(zip(nodes.tolist(), np.split(order, first[1:]), strict=True))

    def _turns(self, to_via: NDArray[np.uint64], outside: NDArray[np.uint64]) -> list[tuple[int, int, int, int]]:
        """Where detours end: node, port that packets have come by, channel, and whether a new part begins."""
        by_group = self.routing.detour_by_group
        ends = ~self._ends_at(outside.shape[1])
        found = []
        for port in np.flatnonzero(self.sends & to_via.any(axis=(1, 2))).tolist():
            node = int(self.far[port])
            arrived = (to_via[port] & ends[node]).any(axis=1)
            found += [(node, port, channel, 0 if by_group else 1) for channel in np.flatnonzero(arrived).tolist()]
        return found

    def _second_thoughts(self, to_end: NDArray[np.uint64]) -> list[tuple[int, int, int, int]]:
        """Where a packet on its shortest path may leave it: behind links within its first group."""
        pod = self.fabric.node_pod
        if pod is None:
            return []
        node = self.fabric.ports.node
        inside = self.sends & (pod[node] == pod[self.far]) & to_end[:, 0].any(axis=1)
        return [(int(self.far[port]), port, 0, 1) for port in np.flatnonzero(inside).tolist()]

    def _depend(
        self,
        held: NDArray[np.uint64],
        lead: NDArray[np.uint64],
        tails: list[NDArray[np.int64]],
        heads: list[NDArray[np.int64]],
        stops: NDArray[np.uint64] | None,
    ) -> None:
        """Note which channel depends on which, while packets go on."""
        for node, came in self._arriving().items():
            own = self._out(node)
            if not len(own):
                continue
            for channel in range(self.channels):
                arrived = held[came, channel] if stops is None else held[came, channel] & stops[node]
                if not arrived.any():
                    continue
                pairs = (arrived[:, None, :] & lead[own][None]).any(axis=2)
                first, second = np.nonzero(pairs)
                behind = self.rule[0, self.arrival[came[first]] + 1, channel, self.kind[own[second]]]
                tails.append(came[first] * self.channels + channel)
                heads.append(own[second] * self.channels + behind)

    # Paths one by one

    def edges_of_layers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Dependencies of the paths of layers."""
        layers = layers_of(self.fabric, self.link_up, self.routing)
        if layers is None:
            return self.edges()
        return self._walk(layers)

    def _walk(self, layers: Layers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        attach = self.table.attach_node.astype(np.int64)
        source, goal, _ = np.nonzero(layers.layer_of >= 0)
        layer = layers.layer_of[layers.layer_of >= 0].astype(np.int64)
        node = attach[source]
        came = np.full(len(node), -1)
        channel = np.zeros(len(node), np.int64)
        tails, heads = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        while len(node):
            port = layers.next_port[layer, node, goal].astype(np.int64)
            kind = np.where(came < 0, -1, self.arrival[came])
            behind = self.rule[0, kind + 1, channel, self.kind[port]].astype(np.int64)
            on = came >= 0
            ends = came[on] * self.channels + channel[on], (port * self.channels + behind)[on]
            edge = np.unique(np.stack(ends), axis=1)
            tails.append(edge[0])
            heads.append(edge[1])
            node, came, channel = self.far[port], port, behind
            left = node != attach[goal]
            node, came, channel, layer, goal = node[left], came[left], channel[left], layer[left], goal[left]
        return np.concatenate(tails), np.concatenate(heads)

    # Circles

    def cycle(self, edges: tuple[NDArray[np.int64], NDArray[np.int64]]) -> tuple[Channel, ...]:
        """One short circle of dependencies, or none."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import breadth_first_order, connected_components

        tails, heads = edges
        if not len(tails):
            return ()
        count = len(self.kind) * self.channels
        graph = coo_array((np.ones(len(tails), np.int8), (tails, heads)), shape=(count, count)).tocsr()
        _, part = connected_components(graph, directed=True, connection="strong")
        inside = part[tails] == part[heads]
        if not inside.any():
            return ()
        start = int(tails[inside].min())
        among = np.flatnonzero(part == part[start])
        place = int(np.searchsorted(among, start))
        own = graph[among][:, among]
        _, before = breadth_first_order(own, place, directed=True)
        order = breadth_first_order(own, place, directed=True)[0]
        back = next(int(node) for node in order.tolist() if own[[node]][:, [place]].nnz)
        way = [back]
        while way[-1] != place:
            way.append(int(before[way[-1]]))
        return tuple(
            Channel(port=int(among[node]) // self.channels, virtual_channel=int(among[node]) % self.channels)
            for node in reversed(way)
        )
