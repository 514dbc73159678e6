"""Choose the boxes of a fabric's picture.

A small fabric shows all nodes; a larger one shows equal parts once, in short rows. The rules: the hosts of a leaf
become one box where there are many; so do switches of the top tier that are linked alike; pods (what hangs together
without the top tier) and rows within a pod keep the first ones
and the last, and one box with dots stands for those between. Networks that no link joins, such as planes, stand side
by side above a row of hosts that they share. Every node is in exactly one box, so that no link is lost.
Leaves out: coordinates and ink, which are in `weftwork.topology.draw`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.fabric import HOST, Fabric
from weftwork.topology.connected import connected_parts

__all__ = ["Box", "NetworkLayout", "PictureLayout", "PodLayout", "lay_out", "runs", "tier_words"]

# chosen: what stays readable on a page of some 1,300 pixels
MOST_HOSTS = 18
MOST_IN_TOP_ROW, SHORT_TOP_ROW = 12, 6
MOST_IN_POD_ROW, SHORT_IN_POD_ROW, MOST_IN_ONE_POD = 4, 3, 8
MOST_MARKED = 4
MOST_ACROSS_OF_FEW, MOST_ACROSS, SHORT_ACROSS = 18, 12, 9  # of few hosts, of many, of what is shortened
MOST_LINES = 48  # between the top row and the one below it
MOST_OF_TWO_NETWORKS, MOST_OF_NETWORKS = 4, 3  # boxes in a row of one of several networks
PLURALS = {
    "leaf": "leaves",
    "access": "access switches",
    "aggregation": "aggregation switches",
    "cluster": "cluster switches",
    "switch": "switches",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """One box: a node, several equal nodes, or a gap (``is_gap``).

    A gap stands for nodes that are left out between two others.
    """

    nodes: tuple[int, ...]
    tier: int
    is_gap: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PodLayout:
    """Boxes of a pod, with each tier as a row, the highest first.

    ``hidden`` is the number of pods that a gap stands for, else 0.
    """

    rows: dict[int, tuple[Box, ...]]
    hidden: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkLayout:
    """Switches that links join.

    ``pods`` go from left to right, and the ``top`` row is above them. ``first`` is the number of the network among all,
    ``hidden`` how many one of gaps stands for, else 0.
    """

    pods: tuple[PodLayout, ...]
    top: tuple[Box, ...]
    first: int = 0
    hidden: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PictureLayout:
    """Boxes in their places.

    Networks go from left to right; below several networks are the ``hosts`` that they share.
    """

    networks: tuple[NetworkLayout, ...]
    hosts: tuple[Box, ...] = ()

    def boxes(self) -> list[Box]:
        """All boxes, network by network, then the shared hosts.

        A network has its pods from left to right, then its top row.
        """
        found: list[Box] = []
        for network in self.networks:
            found += [box for pod in network.pods for row in pod.rows.values() for box in row]
            found += network.top
        return [*found, *self.hosts]


def tier_words(fabric: Fabric) -> dict[int, tuple[str, str]]:
    """Singular and plural name of a tier's nodes.

    They are ``leaf`` and ``leaves`` if the names of the nodes say so.
    """
    words: dict[int, tuple[str, str]] = {}
    for tier in np.unique(fabric.node_tier).tolist():
        nodes = np.flatnonzero(fabric.node_tier == tier)
        stems = {fabric.node_names[node].rstrip("0123456789") for node in nodes.tolist()}
        stem = stems.pop() if len(stems) == 1 else ""
        if not stem.isalpha():
            words[tier] = ("host", "hosts") if fabric.node_kind[nodes[0]] == HOST else ("switch", "switches")
        else:
            words[tier] = (stem, PLURALS.get(stem, f"{stem}s"))
    return words


def lay_out(fabric: Fabric, lost_links: NDArray[np.bool_] | None = None) -> PictureLayout:
    """Choose the boxes of a fabric and their rows.

    Parameters
    ----------
    fabric : to be drawn
    lost_links : shape (links,), links that are gone; nodes of which some are lost stay visible, a few in each row
    """
    signs = _signs(fabric, lost_links)
    is_switch = fabric.node_kind != HOST
    networks = _joined(fabric, is_switch)
    # a fabric whose hosts are on higher tiers than 0, or that has no switch, has no row of shared hosts
    if len(networks) < 2 or (fabric.node_tier[~is_switch] > 0).any():
        return PictureLayout(networks=(_network(fabric, np.arange(len(fabric.node_names)), signs),))
    most = MOST_OF_TWO_NETWORKS if len(networks) == 2 else MOST_OF_NETWORKS
    laid = [
        _one_of_networks(fabric, np.array(nodes), signs, most=most, first=number)
        for number, nodes in enumerate(networks)
    ]
    widths = [max([len(one.top), sum(_width(pod) for pod in one.pods)]) for one in laid]
    if sum(widths) > MOST_ACROSS_OF_FEW and len(laid) > 4:
        struck = [number for number, nodes in enumerate(networks) if any(node in signs for node in nodes)]
        laid = [
            laid[run[0]] if len(run) == 1 else _gap_network([laid[number] for number in run])
            for run in runs(len(laid), 2, struck[:1] if len(struck) <= MOST_MARKED else [])
        ]
    hosts = fabric.hosts.tolist()
    many = len(hosts) > MOST_HOSTS
    groups = _grouped((_alike(fabric, node, signs), node) for node in hosts) if many else [(node,) for node in hosts]
    boxes = [Box(nodes=group, tier=0) for group in groups]
    return PictureLayout(networks=tuple(laid), hosts=tuple(_shorten(boxes, most, most, signs) if many else boxes))


def _network(fabric: Fabric, nodes: NDArray[np.int64], signs: Signs) -> NetworkLayout:
    """A network together with its hosts."""
    tiers = fabric.node_tier[nodes]
    top_tier = int(tiers.max())
    top_nodes, below = nodes[tiers == top_tier], nodes[tiers < top_tier]
    top = _top_row(fabric, top_nodes, top_tier, signs)
    groups = _joined(fabric, np.isin(np.arange(len(fabric.node_names)), below))
    if top_tier == 1 and len(fabric.hosts) > MOST_HOSTS:
        groups = [list(group) for group in _grouped((_alike(fabric, node, signs), node) for node in below.tolist())]
    in_row = MOST_IN_ONE_POD if len(groups) <= 2 else MOST_IN_POD_ROW
    laid = [PodLayout(rows=_rows(fabric, members, signs, in_row)) for members in groups]
    struck = [number for number, members in enumerate(groups) if any(node in signs for node in members)]
    pods = _across(laid, struck, most=MOST_ACROSS_OF_FEW if len(fabric.hosts) <= MOST_HOSTS else MOST_ACROSS)
    if _lines(fabric, top, pods) > MOST_LINES:
        pods = _across(laid, struck, most=SHORT_ACROSS)
    if _lines(fabric, top, pods) > MOST_LINES:
        top = _top_row(fabric, top_nodes, top_tier, signs, most=MOST_IN_POD_ROW)
    if _lines(fabric, top, pods) > MOST_LINES and not signs:
        laid = [PodLayout(rows=_rows(fabric, members, signs, SHORT_IN_POD_ROW)) for members in groups]
        pods = _across(laid, struck, most=SHORT_ACROSS)
    return NetworkLayout(pods=tuple(pods), top=tuple(top))


def _one_of_networks(fabric: Fabric, nodes: NDArray[np.int64], signs: Signs, *, most: int, first: int) -> NetworkLayout:
    """A network whose shared hosts are drawn elsewhere."""
    tiers = fabric.node_tier[nodes]
    top_tier = int(tiers.max())
    top = _top_row(fabric, nodes[tiers == top_tier], top_tier, signs, most=most)
    below = nodes[tiers < top_tier]
    groups = _joined(fabric, np.isin(np.arange(len(fabric.node_names)), below))
    if all(len(group) == 1 for group in groups):  # two tiers: the leaves are the one row
        groups = [below.tolist()] if len(below) else []
    pods = [PodLayout(rows=_rows(fabric, members, signs, most)) for members in groups]
    if len(pods) > 2:
        struck = [number for number, members in enumerate(groups) if any(node in signs for node in members)]
        pods = _shortened(pods, 1, struck[:1])
    return NetworkLayout(pods=tuple(pods), top=tuple(top), first=first)


def _width(pod: PodLayout) -> int:
    return max(len(row) for row in pod.rows.values())


def _across(pods: list[PodLayout], struck: Sequence[int], *, most: int) -> list[PodLayout]:
    """The visible pods: all if they fit, else a selection.

    The selection is the first pods, a gap, pods with losses, and the last pod.
    """
    widths = [_width(pod) for pod in pods]
    fit = max(2, SHORT_ACROSS // max(widths, default=1))
    return list(pods) if sum(widths) <= most or len(pods) <= fit + 1 else _shortened(pods, fit - 1, struck[:2])


def _shortened(pods: Sequence[PodLayout], first: int, struck: Sequence[int]) -> list[PodLayout]:
    return [
        pods[run[0]] if len(run) == 1 else _gap_pod([pods[number] for number in run])
        for run in runs(len(pods), first, struck)
    ]


def _lines(fabric: Fabric, top: Sequence[Box], pods: Sequence[PodLayout]) -> int:
    """Lines between the top row and the rows below it."""
    owner = np.full(len(fabric.node_names), -1, np.int64)
    for number, box in enumerate(top):
        owner[list(box.nodes)] = number
    below = [box for pod in pods for row in pod.rows.values() for box in row]
    for number, box in enumerate(below, len(top)):
        owner[list(box.nodes)] = number
    ends = np.sort(owner[np.stack([fabric.links["a"], fabric.links["b"]])], axis=0)
    crossing = (ends[0] < len(top)) & (ends[1] >= len(top)) & (ends[0] >= 0)
    return len(np.unique(ends[0, crossing] * (len(top) + len(below)) + ends[1, crossing]))


Signs = dict[int, tuple[bool, ...]]


def _signs(fabric: Fabric, lost_links: NDArray[np.bool_] | None) -> Signs:
    """Lost ports of each node with lost links.

    All hosts of a lost switch are alike.
    """
    if lost_links is None or not lost_links.any():
        return {}
    gone = fabric.links[lost_links]
    ports = fabric.ports
    return {
        node: tuple(lost_links[ports.link[ports.base[node] : ports.base[node + 1]]].tolist())
        for node in np.unique(np.concatenate([gone["a"], gone["b"]])).tolist()
    }


def _alike(fabric: Fabric, node: int, signs: Signs) -> tuple[Hashable, ...]:
    """A value that is equal for equal neighbours and equal lost ports."""
    return (*_neighbours(fabric, node), *signs.get(node, ()))


def runs(count: int, first: int, marked: Iterable[int]) -> list[list[int]]:
    """First, last and marked places alone; gaps between them."""
    alone = {*range(first), count - 1, *marked}
    runs: list[list[int]] = []
    for place in range(count):
        if place in alone or not runs or (runs[-1][-1] in alone):
            runs.append([place])
        else:
            runs[-1].append(place)
    return runs


def _gap_pod(hidden: Sequence[PodLayout]) -> PodLayout:
    tiers = sorted({tier for pod in hidden for tier in pod.rows}, reverse=True)
    rows: dict[int, tuple[Box, ...]] = {
        tier: (_gap([box for pod in hidden for box in pod.rows.get(tier, ())], tier),) for tier in tiers
    }
    return PodLayout(rows=rows, hidden=len(hidden))


def _gap_network(hidden: Sequence[NetworkLayout]) -> NetworkLayout:
    pods = [pod for one in hidden for pod in one.pods]
    top = [box for one in hidden for box in one.top]
    return NetworkLayout(
        pods=(_gap_pod(pods),) if pods else (),
        top=(_gap(top, top[0].tier),),
        first=hidden[0].first,
        hidden=len(hidden),
    )


def _shorten(boxes: Sequence[Box], most: int, short: int, signs: Signs) -> list[Box]:
    """Shorten a row of more than ``most`` boxes to ``short`` boxes.

    It keeps the first boxes, gaps, boxes with losses, and the last.
    """
    if len(boxes) <= most:
        return list(boxes)
    # a box all of whose ports are lost is what one looks for; others share the loss
    marked = [number for number, box in enumerate(boxes) if box.nodes[0] in signs]
    worst = [number for number in marked if all(signs[boxes[number].nodes[0]])][:MOST_MARKED]
    if len(marked) > MOST_MARKED:  # they lost a neighbour, as many others did
        marked = []
    return [
        boxes[run[0]] if len(run) == 1 else _gap([boxes[place] for place in run], boxes[0].tier)
        for run in runs(len(boxes), short - 2, worst or marked)
    ]


def _gap(boxes: Iterable[Box], tier: int) -> Box:
    return Box(nodes=tuple(node for box in boxes for node in box.nodes), tier=tier, is_gap=True)


def _grouped(pairs: Iterable[tuple[Hashable, int]]) -> list[tuple[int, ...]]:
    """Nodes grouped by equal keys, in the order of first nodes."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for key, node in pairs:
        groups[key].append(node)
    return [tuple(nodes) for nodes in groups.values()]


def _neighbours(fabric: Fabric, node: int) -> tuple[int, ...]:
    ports = fabric.ports
    own = slice(int(ports.base[node]), int(ports.base[node + 1]))
    return tuple(sorted(ports.node[ports.peer[own]].tolist()))


def _top_row(
    fabric: Fabric, nodes: NDArray[np.int64], tier: int, signs: Signs, *, most: int = MOST_IN_TOP_ROW
) -> list[Box]:
    """The top row: every switch, one box, or a shortened row.

    Switches that are linked alike are one box.
    """
    groups: list[tuple[int, ...]] = [(node,) for node in nodes.tolist()]
    if len(groups) > most:
        alike = _grouped((_alike(fabric, node, signs), node) for node in nodes.tolist())
        if len(alike) > 1:  # one box for a whole tier would say less than the first ones and the last
            groups = alike
    boxes = [Box(nodes=group, tier=tier) for group in groups]
    # groups match the switches that a pod's row shows, one by one
    single = all(len(group) == 1 for group in groups)
    short = min(most, MOST_IN_POD_ROW)
    return _shorten(boxes, most, min(most, SHORT_TOP_ROW), signs) if single else _shorten(boxes, short, short, signs)


def _joined(fabric: Fabric, is_in: NDArray[np.bool_]) -> list[list[int]]:
    """Connected parts of some nodes, in the order of first nodes."""
    a, b = fabric.links["a"], fabric.links["b"]
    inside = is_in[a] & is_in[b]
    part = connected_parts(a[inside], b[inside], len(fabric.node_names))
    nodes = np.flatnonzero(is_in)
    return [list(group) for group in _grouped(zip(part[nodes].tolist(), nodes.tolist(), strict=True))]


def _rows(fabric: Fabric, nodes: list[int], signs: Signs, most: int) -> dict[int, tuple[Box, ...]]:
    """The rows of a pod, the highest tier first.

    Hosts whose leaf is left out are left out with it.
    """
    by_tier: defaultdict[int, list[int]] = defaultdict(list)
    for node in nodes:
        by_tier[int(fabric.node_tier[node])].append(node)
    many = len(fabric.hosts) > MOST_HOSTS
    rows: dict[int, tuple[Box, ...]] = {}
    for tier in sorted(by_tier, reverse=True):
        members = by_tier[tier]
        if tier == 0 and many:
            groups = _grouped((_alike(fabric, node, signs), node) for node in members)
            boxes = [Box(nodes=group, tier=0) for group in groups]
            rows[tier] = tuple(_shorten(boxes, MOST_IN_POD_ROW, MOST_IN_POD_ROW, signs))
            continue
        boxes = [Box(nodes=(node,), tier=tier) for node in members]
        # of several pods, the leaves of each have the same servers; of one, single leaves show more than one box
        if tier > 0 and len(boxes) > most and len({_neighbours(fabric, node) for node in members}) > 1:
            groups = _grouped((_alike(fabric, node, signs), node) for node in members)
            boxes = [Box(nodes=group, tier=tier) for group in groups]
        rows[tier] = tuple(boxes if tier == 0 else _shorten(boxes, most, most, signs))
    return rows
