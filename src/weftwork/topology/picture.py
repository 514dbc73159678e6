"""Which boxes a picture of a fabric shows: all nodes of a small one, else alike parts once and short rows.

The rules: the hosts of a leaf become one box where there are many; so do switches of the top tier that are linked
alike; pods (what hangs together without the top tier) and rows within a pod keep the first ones
and the last, and one box with dots stands for those between. Every node is in exactly one box, so that no link is lost.
Leaves out: coordinates and ink, which are in `weftwork.topology.draw`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from weftwork.spec.fabric import HOST, Fabric

__all__ = ["Box", "PictureLayout", "lay_out", "tier_words"]

# chosen: what stays readable on a page of some 1,300 pixels
MOST_HOSTS = 18
MOST_IN_TOP_ROW, SHORT_TOP_ROW = 12, 6
MOST_IN_POD_ROW, MOST_IN_ONE_POD = 4, 8
MOST_MARKED = 4
MOST_ACROSS, SHORT_ACROSS = 18, 9


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """One box: a node, several alike, or (``is_gap``) those that are left out between two others."""

    nodes: tuple[int, ...]
    tier: int
    is_gap: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PictureLayout:
    """Boxes in their places: ``pods`` from left to right, each tier to its row, and the ``top`` row above them."""

    pods: tuple[dict[int, tuple[Box, ...]], ...]
    top: tuple[Box, ...]

    def boxes(self) -> list[Box]:
        """All boxes: pods from left to right, then the top row."""
        return [box for pod in self.pods for row in pod.values() for box in row] + list(self.top)


def tier_words(fabric: Fabric) -> dict[int, tuple[str, str]]:
    """What nodes of a tier are called, one and several: ``leaf`` and ``leaves`` where their names say so."""
    words: dict[int, tuple[str, str]] = {}
    for tier in np.unique(fabric.node_tier).tolist():
        nodes = np.flatnonzero(fabric.node_tier == tier)
        stems = {fabric.node_names[node].rstrip("0123456789") for node in nodes.tolist()}
        stem = stems.pop() if len(stems) == 1 else ""
        if not stem.isalpha():
            words[tier] = ("host", "hosts") if fabric.node_kind[nodes[0]] == HOST else ("switch", "switches")
        else:
            words[tier] = (stem, "leaves" if stem == "leaf" else f"{stem}s")
    return words


def lay_out(fabric: Fabric, lost_links: NDArray[np.bool_] | None = None) -> PictureLayout:
    """Choose the boxes of a fabric and their rows.

    Parameters
    ----------
    fabric : to be drawn
    lost_links : shape (links,), links that are gone; nodes of which some are lost stay visible, a few in each row
    """
    top_tier = int(fabric.node_tier.max())
    is_top = fabric.node_tier == top_tier
    signs = _signs(fabric, lost_links)
    top = _top_row(fabric, np.flatnonzero(is_top), top_tier, signs)
    pods_below = _pods(fabric, ~is_top)
    if top_tier == 1 and len(fabric.hosts) > MOST_HOSTS:
        pods_below = [list(group) for group in _grouped((_alike(fabric, node, signs), node) for node in
                      np.flatnonzero(~is_top).tolist())]  # fmt: skip
    in_row = MOST_IN_ONE_POD if len(pods_below) <= 2 else MOST_IN_POD_ROW
    rows_of_pods = [_rows(fabric, nodes, signs, in_row) for nodes in pods_below]
    widths = [max(len(row) for row in rows.values()) for rows in rows_of_pods]
    pods = rows_of_pods
    if sum(widths) > MOST_ACROSS:
        fit = max(3, SHORT_ACROSS // max(widths))
        if len(pods) > fit + 1:
            struck = [number for number, nodes in enumerate(pods_below) if any(node in signs for node in nodes)]
            pods = [
                pods[run[0]] if len(run) == 1 else _gap_pod([pods[number] for number in run])
                for run in _runs(len(pods), fit - 1, struck[:2])
            ]
    return PictureLayout(pods=tuple(pods), top=tuple(top))


Signs = dict[int, tuple[bool, ...]]


def _signs(fabric: Fabric, lost_links: NDArray[np.bool_] | None) -> Signs:
    """By node with lost links: which of its ports are lost. Of a lost switch's hosts these are many, and alike."""
    if lost_links is None or not lost_links.any():
        return {}
    gone = fabric.links[lost_links]
    ports = fabric.ports
    return {
        node: tuple(lost_links[ports.link[ports.base[node] : ports.base[node + 1]]].tolist())
        for node in np.unique(np.concatenate([gone["a"], gone["b"]])).tolist()
    }


def _alike(fabric: Fabric, node: int, signs: Signs) -> tuple[Hashable, ...]:
    """Equal for nodes with the same neighbours and the same ports lost."""
    return (*_neighbours(fabric, node), *signs.get(node, ()))


def _runs(count: int, first: int, marked: Iterable[int]) -> list[list[int]]:
    """The first places, the last and the marked ones alone, and what lies between them together."""
    alone = {*range(first), count - 1, *marked}
    runs: list[list[int]] = []
    for place in range(count):
        if place in alone or not runs or (runs[-1][-1] in alone):
            runs.append([place])
        else:
            runs[-1].append(place)
    return runs


def _gap_pod(hidden: Sequence[dict[int, tuple[Box, ...]]]) -> dict[int, tuple[Box, ...]]:
    tiers = sorted({tier for rows in hidden for tier in rows}, reverse=True)
    return {tier: (_gap([box for rows in hidden for box in rows.get(tier, ())], tier),) for tier in tiers}


def _shorten(boxes: Sequence[Box], most: int, short: int, signs: Signs) -> list[Box]:
    """Where there are more than ``most`` boxes, ``short`` ones: the first, gaps, those with losses, and the last."""
    if len(boxes) <= most:
        return list(boxes)
    # a box all of whose ports are lost is what one looks for; others share the loss
    marked = [number for number, box in enumerate(boxes) if box.nodes[0] in signs]
    worst = [number for number in marked if all(signs[boxes[number].nodes[0]])][:MOST_MARKED]
    if len(marked) > MOST_MARKED:  # they lost a neighbour, as many others did
        marked = []
    return [
        boxes[run[0]] if len(run) == 1 else _gap([boxes[place] for place in run], boxes[0].tier)
        for run in _runs(len(boxes), short - 2, worst or marked)
    ]


def _gap(boxes: Iterable[Box], tier: int) -> Box:
    return Box(nodes=tuple(node for box in boxes for node in box.nodes), tier=tier, is_gap=True)


def _grouped(pairs: Iterable[tuple[Hashable, int]]) -> list[tuple[int, ...]]:
    """Nodes with equal keys together, in the order of their first."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for key, node in pairs:
        groups[key].append(node)
    return [tuple(nodes) for nodes in groups.values()]


def _neighbours(fabric: Fabric, node: int) -> tuple[int, ...]:
    ports = fabric.ports
    own = slice(int(ports.base[node]), int(ports.base[node + 1]))
    return tuple(sorted(ports.node[ports.peer[own]].tolist()))


def _top_row(fabric: Fabric, nodes: np.ndarray[tuple[int], np.dtype[np.int64]], tier: int, signs: Signs) -> list[Box]:
    """The top tier: every switch, or one box for those that are linked alike, or the first ones and the last."""
    groups: list[tuple[int, ...]] = [(node,) for node in nodes.tolist()]
    if len(groups) > MOST_IN_TOP_ROW:
        alike = _grouped((_alike(fabric, node, signs), node) for node in nodes.tolist())
        if len(alike) > 1:  # one box for a whole tier would say less than the first ones and the last
            groups = alike
    boxes = [Box(nodes=group, tier=tier) for group in groups]
    # groups match the switches that a pod's row shows, one by one
    single = all(len(group) == 1 for group in groups)
    return (
        _shorten(boxes, MOST_IN_TOP_ROW, SHORT_TOP_ROW, signs)
        if single
        else _shorten(boxes, MOST_IN_POD_ROW, MOST_IN_POD_ROW, signs)
    )


def _pods(fabric: Fabric, below_top: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[list[int]]:
    """What hangs together without the top tier, in the order of the first host."""
    a, b = fabric.links["a"], fabric.links["b"]
    inside = below_top[a] & below_top[b]
    count = len(fabric.node_names)
    graph = coo_array((np.ones(int(inside.sum()), np.int8), (a[inside], b[inside])), shape=(count, count))
    _, part = connected_components(graph, directed=False)
    nodes = np.flatnonzero(below_top)
    return [list(group) for group in _grouped(zip(part[nodes].tolist(), nodes.tolist(), strict=True))]


def _rows(fabric: Fabric, nodes: list[int], signs: Signs, most: int) -> dict[int, tuple[Box, ...]]:
    """The rows of a pod, highest tier first; hosts whose leaf is left out are left out with it."""
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
        else:
            boxes = [Box(nodes=(node,), tier=tier) for node in members]
            rows[tier] = tuple(boxes if tier == 0 else _shorten(boxes, most, most, signs))
    return rows
