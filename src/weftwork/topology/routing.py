"""Routes: ports on shortest paths, by switch and attachment.

An attachment is a node at which hosts are attached. All shortest paths by hop count are candidates, as ECMP uses them
(RFC 2992 describes the choice among them). Hosts do not forward. Routes are kept per attachment, not per host, and
equal sets of ports are kept once: a fat tree of 8,192 hosts needs 512 columns and some thousand groups.
Under up-down a switch below which an attachment lies uses its shortest ways down alone, and any other the links up to
where the fewest hops are left, so that no route goes down and up again: up*/down*, with tiers for directions.
Source: up*/down*: Schroeder et al., Autonet, IEEE JSAC 9(8), 1991, doi:10.1109/49.105178.
Leaves out: weights, and how long a routing protocol takes (engines apply a delay to new routes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weftwork.base.errors import UsageError
from weftwork.spec.fabric import HOST, Fabric

__all__ = [
    "DELIVER", "UNREACHABLE", "HopsLeft", "Routes", "attachments", "hops_left", "routes", "search", "second_groups",
    "switch_distances",
]  # fmt: skip

MOST_WORDS = 1 << 24  # chosen: 128 MiB of neighbours' words at a time; a million GPUs have some 2^29 of them
UNREACHABLE = -1
DELIVER = -2
GLOBAL_COST = 32  # chosen: above the local links of any route in a network of groups
_FAR = np.int16(np.iinfo(np.int16).max - 1)  # hops of no route; one more is still a number


@dataclass(frozen=True, kw_only=True, slots=True)
class Routes:
    """Next hops of packets.

    An endpoint is a port of a host; its attachment is the node at the other end of the link: a switch, or a host where
    two hosts are linked directly. Attachments follow the wiring alone, so that their numbers outlive faults.

    Attributes
    ----------
    attach_node : shape (attachments,), int32, nodes at which hosts hang, ascending
    attach_of_port : shape (ports,), int32, attachment of a host's port; -1 for ports of switches
    group_of : shape (nodes, attachments), int32, group of candidate ports towards an attachment; `UNREACHABLE` where
        there is no path and in the rows of hosts, `DELIVER` at the attachment itself: the packet leaves by the peer of
        the endpoint's port
    group_ptr : shape (groups + 1,), int64, where each group begins in ``group_ports``
    group_ports : int32, global port numbers of `Fabric.ports`, ascending within a group
    """

    attach_node: NDArray[np.int32]
    attach_of_port: NDArray[np.int32]
    group_of: NDArray[np.int32]
    group_ptr: NDArray[np.int64]
    group_ports: NDArray[np.int32]

    def candidates(self, node: int, attachment: int) -> NDArray[np.int32]:
        """Ports of ``node`` on a route to ``attachment``.

        Empty if there is no route or the packet is delivered here.
        """
        group = int(self.group_of[node, attachment])
        if group < 0:
            return self.group_ports[:0]
        return self.group_ports[self.group_ptr[group] : self.group_ptr[group + 1]]


@dataclass(frozen=True, kw_only=True, slots=True)
class HopsLeft:
    """Compute distances from switches to attachments, and ports on routes.

    A rule of routes decides which paths count.

    Attributes
    ----------
    fabric : whose nodes
    hops : shape (nodes, attachments), int16, over switches; -1 where there is no route and for hosts
    falls : the same shape, whether a route only goes down from here; None: routes go anywhere
    port_dimension : shape (ports,), of each port's link, under dimension order; None: in any order
    cost : as ``hops``, a link between groups counted `GLOBAL_COST` times; None: all links are alike
    """

    fabric: Fabric
    hops: NDArray[np.int16]
    falls: NDArray[np.bool_] | None = None
    port_dimension: NDArray[np.int8] | None = None
    cost: NDArray[np.int16] | None = None

    def leads(
        self, node: int, own: NDArray[np.integer], columns: NDArray[np.int64] | slice = slice(None)
    ) -> NDArray[np.bool_]:
        """Ports that lie on a route to attachments, as a matrix.

        Rows are some ports of a node between switches; columns are attachments.
        """
        ports, tier = self.fabric.ports, self.fabric.node_tier
        peer = ports.node[ports.peer[own]]
        length = self.hops if self.cost is None else self.cost
        here, beyond = length[node, columns], length[peer][:, columns]
        step: NDArray[np.integer] | int = 1
        if self.cost is not None:
            step = _port_cost(self.fabric)[own][:, None]
        closer: NDArray[np.bool_] = (beyond == here - step) & (here > 0) & (beyond >= 0)
        if self.port_dimension is not None:
            _keep_lowest(closer, self.port_dimension[own])
        if self.falls is None:
            return closer
        falls, falls_beyond = self.falls[node, columns], self.falls[peer][:, columns]
        down, up = (tier[peer] < tier[node])[:, None], (tier[peer] > tier[node])[:, None]
        closer &= (down & falls & falls_beyond) | (up & ~falls)
        return closer


def search(
    fabric: Fabric, link_up: NDArray[np.bool_], attach_node: NDArray[np.int32], *, downwards: bool = False
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.uint64]]]:
    """Search by levels from all attachments at once.

    Each attachment is one bit; a word has 64.

    Parameters
    ----------
    downwards : only ways that go down, tier by tier, count

    Yields
    ------
    for 1 hop, 2 hops and so on: nodes, and shape (those nodes, words), the attachments that are just that far from them
    """
    ports = fabric.ports
    is_switch = fabric.node_kind != HOST
    peer_node = ports.node[ports.peer]
    usable = link_up[ports.link] & is_switch[ports.node] & is_switch[peer_node]
    if downwards:
        usable &= fabric.node_tier[peer_node] < fabric.node_tier[ports.node]
    nodes = np.flatnonzero(is_switch)  # rows below are switches, by their place among them
    row = np.cumsum(is_switch) - 1
    neighbour = row[peer_node[usable]]
    owners, starts = np.unique(row[ports.node[usable]], return_index=True)  # ports are sorted by node
    hung = np.flatnonzero(is_switch[attach_node])  # other attachments are hosts, which nothing else reaches
    frontier = np.zeros((len(nodes), -(-len(attach_node) // 64)), np.uint64)
    frontier[row[attach_node[hung]], hung // 64] = np.uint64(1) << (hung % 64).astype(np.uint64)
    seen = frontier.copy()
    reached = np.empty((len(owners), frontier.shape[1]), np.uint64)
    step = max(1, MOST_WORDS // max(1, len(neighbour)))
    while len(owners):
        for word in range(0, frontier.shape[1], step):
            part = slice(word, word + step)
            np.bitwise_or.reduceat(frontier[:, part][neighbour], starts, axis=0, out=reached[:, part])
        reached &= ~seen[owners]
        if not reached.any():
            return
        yield nodes[owners].astype(np.int32), reached.copy()
        frontier[:] = 0
        frontier[owners] = reached
        seen |= frontier


def switch_distances(
    fabric: Fabric, link_up: NDArray[np.bool_], attach_node: NDArray[np.int32], *, downwards: bool = False
) -> NDArray[np.int16]:
    """Hops over switches from every node to every attachment.

    -1 without a path, and for hosts.

    Parameters
    ----------
    downwards : only ways that go down, tier by tier, count

    Returns
    -------
    shape (nodes, attachments)
    """
    width = len(attach_node)
    distance = np.full((len(fabric.node_names), width), -1, np.int16)
    distance[attach_node, np.arange(width)] = 0
    levels = search(fabric, link_up, attach_node, downwards=downwards)
    for hops, (owners, reached) in enumerate(levels, start=1):
        fresh = np.unpackbits(reached.view(np.uint8), axis=1, bitorder="little", count=width).astype(bool)
        rows, cols = np.nonzero(fresh)
        distance[owners[rows], cols] = hops
    return distance


def hops_left(
    fabric: Fabric,
    link_up: NDArray[np.bool_],
    attach_node: NDArray[np.int32],
    *,
    up_down: bool = False,
    dimension_order: bool = False,
    fewest_global_hops: bool = False,
) -> HopsLeft:
    """Remaining hops on the routes of a rule.

    Parameters
    ----------
    fabric, link_up : as of `routes`
    attach_node : of `attachments`
    up_down : routes never go down and then up again; else they are all shortest paths
    dimension_order : of these, those that go on in the lowest dimension by which a shortest path leaves a switch
    fewest_global_hops : those of the fewest links between groups come first, and then those of the fewest links

    Raises
    ------
    UsageError : dimensions or groups are asked of a fabric whose links have none
    """
    if (dimension_order or fewest_global_hops) and fabric.direct is None:
        raise UsageError(f"the links of '{fabric.name}' have no dimensions, wanted a direct network")
    if fewest_global_hops:
        cost = _costs(fabric, link_up, attach_node)
        hops = np.where(cost < 0, cost, cost // GLOBAL_COST + cost % GLOBAL_COST).astype(np.int16)
        return HopsLeft(fabric=fabric, hops=hops, cost=cost)
    if not up_down:
        hops = switch_distances(fabric, link_up, attach_node)
        dimension = fabric.direct.link_dimension[fabric.ports.link] if dimension_order and fabric.direct else None
        return HopsLeft(fabric=fabric, hops=hops, port_dimension=dimension)
    ports, tier = fabric.ports, fabric.node_tier
    hops = switch_distances(fabric, link_up, attach_node, downwards=True)
    falls = hops >= 0
    is_switch = fabric.node_kind != HOST
    peer_node = ports.node[ports.peer]
    rises = link_up[ports.link] & is_switch[ports.node] & is_switch[peer_node] & (tier[peer_node] > tier[ports.node])
    upwards = np.flatnonzero(rises)
    owners, starts = np.unique(ports.node[upwards], return_index=True)
    bounds = np.append(starts, len(upwards))
    for place in np.argsort(-tier[owners].astype(np.int64), kind="stable").tolist():  # what is above is known first
        node = int(owners[place])
        beyond = hops[peer_node[upwards[bounds[place] : bounds[place + 1]]]]
        least = np.where(beyond < 0, _FAR, beyond).min(axis=0)
        hops[node] = np.where(falls[node], hops[node], np.where(least == _FAR, UNREACHABLE, least + 1))
    return HopsLeft(fabric=fabric, hops=hops, falls=falls)


def attachments(fabric: Fabric) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Nodes with hosts, and the attachment of every port.

    Ports of switches have -1.
    """
    ports = fabric.ports
    endpoint = fabric.node_kind[ports.node] == HOST
    attach_node, column = np.unique(ports.node[ports.peer[endpoint]], return_inverse=True)
    attach_of_port = np.full(len(ports.node), -1, np.int32)
    attach_of_port[endpoint] = column
    return attach_node.astype(np.int32), attach_of_port


def _port_cost(fabric: Fabric) -> NDArray[np.int16]:
    """Length of each port's link, where links between groups are long."""
    is_global = np.zeros(len(fabric.links), np.bool_) if fabric.direct is None else fabric.direct.is_global
    return np.where(is_global, GLOBAL_COST, 1).astype(np.int16)[fabric.ports.link]


def _costs(fabric: Fabric, link_up: NDArray[np.bool_], attach_node: NDArray[np.int32]) -> NDArray[np.int16]:
    """As `switch_distances`, where a link between groups is `GLOBAL_COST` long."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    ports, is_switch = fabric.ports, fabric.node_kind != HOST
    usable = np.flatnonzero(link_up[ports.link] & is_switch[ports.node] & is_switch[ports.node[ports.peer]])
    length = _port_cost(fabric)[usable].astype(np.float64)
    ends = ports.node[usable], ports.node[ports.peer[usable]]
    count = len(fabric.node_names)
    order = np.lexsort((length, *ends))  # of parallel links the shortest one
    ends, length = (ends[0][order], ends[1][order]), length[order]
    pair = ends[0].astype(np.int64) * count + ends[1]
    first = np.append(True, pair[1:] != pair[:-1])[: len(pair)]
    graph = csr_array((length[first], (ends[0][first], ends[1][first])), shape=(count, count))
    found = dijkstra(graph, directed=False, indices=attach_node).T
    is_far = ~np.isfinite(found) | ~is_switch[:, None]
    cost: NDArray[np.int16] = np.where(is_far, UNREACHABLE, np.where(is_far, 0, found)).astype(np.int16)
    return cost


def routes(
    fabric: Fabric,
    link_up: NDArray[np.bool_],
    *,
    up_down: bool = False,
    dimension_order: bool = False,
    fewest_global_hops: bool = False,
) -> Routes:
    """All shortest paths over the links that are up.

    Another rule gives those that never go down and then up again.

    Parameters
    ----------
    fabric : whose nodes and links
    link_up : shape (links,), bool; a switch is down when all its links are
    up_down : as of `hops_left`; links within a tier are then never used
    dimension_order, fewest_global_hops : as of `hops_left`

    Raises
    ------
    UsageError : ``link_up`` has not one entry per link
    """
    if np.shape(link_up) != (len(fabric.links),):
        raise UsageError(f"link_up has shape {np.shape(link_up)}, wanted ({len(fabric.links)},)")
    ports = fabric.ports
    attach_node, attach_of_port = attachments(fabric)
    left = hops_left(
        fabric, link_up, attach_node, up_down=up_down, dimension_order=dimension_order,
        fewest_global_hops=fewest_global_hops,
    )  # fmt: skip
    is_switch = fabric.node_kind != HOST
    peer_node = ports.node[ports.peer]
    usable = np.flatnonzero(link_up[ports.link] & is_switch[ports.node] & is_switch[peer_node])
    group_of = np.full(left.hops.shape, UNREACHABLE, np.int32)
    sizes: list[NDArray[np.int64]] = []
    members: list[NDArray[np.int32]] = []
    groups = 0
    owners, starts = np.unique(ports.node[usable], return_index=True)
    bounds = np.append(starts, len(usable)).tolist()
    for node, start, end in zip(owners.tolist(), bounds[:-1], bounds[1:], strict=True):
        own = usable[start:end]
        closer = left.leads(node, own)
        chosen, column_set = _distinct_columns(closer)
        reachable = closer[:, chosen].any(axis=0)  # all false: the attachment itself, or no path
        number = np.where(reachable, groups + np.cumsum(reachable) - 1, UNREACHABLE)
        group_of[node] = number[column_set]
        sets = closer[:, chosen[reachable]].T
        sizes.append(sets.sum(axis=1))
        members.append(own[np.nonzero(sets)[1]].astype(np.int32))
        groups += int(reachable.sum())
    group_of[attach_node, np.arange(len(attach_node))] = DELIVER
    group_ptr = np.zeros(groups + 1, np.int64)
    if sizes:
        np.cumsum(np.concatenate(sizes), out=group_ptr[1:])
    return Routes(
        attach_node=attach_node,
        attach_of_port=attach_of_port,
        group_of=group_of,
        group_ptr=group_ptr,
        group_ports=np.concatenate(members) if members else np.empty(0, np.int32),
    )


def second_groups(fabric: Fabric, link_up: NDArray[np.bool_], found: Routes) -> Routes:
    """Non-minimal routes: ports off the shortest paths.

    They lead to switches from which an attachment can be reached.

    Parameters
    ----------
    fabric, link_up : as of `routes`
    found : its result

    Returns
    -------
    groups of ``found``, then these; ``group_of`` tells of these alone, `UNREACHABLE` where there are none
    """
    ports = fabric.ports
    distance = switch_distances(fabric, link_up, found.attach_node)
    is_switch = fabric.node_kind != HOST
    peer_node = ports.node[ports.peer]
    usable = np.flatnonzero(link_up[ports.link] & is_switch[ports.node] & is_switch[peer_node])
    group_of = np.full(distance.shape, UNREACHABLE, np.int32)
    sizes = [np.diff(found.group_ptr)]
    members = [found.group_ports]
    groups = len(found.group_ptr) - 1
    owners, starts = np.unique(ports.node[usable], return_index=True)
    bounds = np.append(starts, len(usable)).tolist()
    for node, start, end in zip(owners.tolist(), bounds[:-1], bounds[1:], strict=True):
        own = usable[start:end]
        far = distance[peer_node[own]]
        longer = (far >= distance[node]) & (distance[node] > 0)
        chosen, column_set = _distinct_columns(longer)
        filled = longer[:, chosen].any(axis=0)
        number = np.where(filled, groups + np.cumsum(filled) - 1, UNREACHABLE)
        group_of[node] = number[column_set]
        sets = longer[:, chosen[filled]].T
        sizes.append(sets.sum(axis=1))
        members.append(own[np.nonzero(sets)[1]].astype(np.int32))
        groups += int(filled.sum())
    group_ptr = np.zeros(groups + 1, np.int64)
    np.cumsum(np.concatenate(sizes), out=group_ptr[1:])
    return Routes(
        attach_node=found.attach_node,
        attach_of_port=found.attach_of_port,
        group_of=group_of,
        group_ptr=group_ptr,
        group_ports=np.concatenate(members).astype(np.int32),
    )


def _keep_lowest(closer: NDArray[np.bool_], dimension: NDArray[np.int8]) -> None:
    """Keep of the ports towards each attachment those of the lowest dimension.

    Parameters
    ----------
    closer : shape (ports, attachments), changed in place
    dimension : shape (ports,)
    """
    taken = np.zeros(closer.shape[1], np.bool_)
    for one in np.unique(dimension).tolist():
        rows = dimension == one
        closer[rows] &= ~taken
        taken |= closer[rows].any(axis=0)


def _distinct_columns(table: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One column index per distinct column, and each column's distinct column."""
    words = -(-table.shape[0] // 64)
    padded = np.zeros((table.shape[1], words * 8), np.uint8)
    packed = np.packbits(table, axis=0, bitorder="little").T
    padded[:, : packed.shape[1]] = packed
    keys = padded.view(np.uint64 if words == 1 else np.dtype((np.void, words * 8))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first, inverse
