"""Which boxes a picture of a fabric shows: all nodes of a small one, else alike parts once and short rows.

The rules: the hosts of a leaf become one box where there are many; so do switches of the top tier that are linked
alike; pods (what hangs together without the top tier) and rows within a pod keep the first ones
and the last, and one box with dots stands for those between. Every node is in exactly one box, so that no link is lost.
Leaves out: coordinates and ink, which are in `weft.topology.draw`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from weft.spec.fabric import HOST, Fabric

__all__ = ["Box", "Layout", "lay_out", "tier_words"]

# chosen: what stays readable on a page of some 1,300 pixels
MOST_HOSTS = 18
MOST_IN_TOP_ROW, SHORT_TOP_ROW = 12, 6
MOST_IN_POD_ROW = 4
MOST_ACROSS, SHORT_ACROSS = 18, 9


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """One box: a node, several alike, or (``is_gap``) those that are left out between two others."""

    nodes: tuple[int, ...]
    tier: int
    is_gap: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
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


def lay_out(fabric: Fabric) -> Layout:
    """Choose the boxes of a fabric and their rows."""
    top_tier = int(fabric.node_tier.max())
    is_top = fabric.node_tier == top_tier
    top = _top_row(fabric, np.flatnonzero(is_top), top_tier)
    rows_of_pods = [_rows(fabric, nodes) for nodes in _pods(fabric, ~is_top)]
    widths = [max(len(row) for row in rows.values()) for rows in rows_of_pods]
    pods = rows_of_pods
    if sum(widths) > MOST_ACROSS:
        fit = max(3, SHORT_ACROSS // max(widths))
        if len(pods) > fit + 1:
            hidden = pods[fit - 1 : -1]
            tiers = sorted({tier for rows in hidden for tier in rows}, reverse=True)
            gap: dict[int, tuple[Box, ...]] = {
                tier: (_gap([box for rows in hidden for box in rows.get(tier, ())], tier),) for tier in tiers
            }
            pods = [*pods[: fit - 1], gap, pods[-1]]
    return Layout(pods=tuple(pods), top=tuple(top))


def _shorten(boxes: Sequence[Box], most: int, short: int) -> list[Box]:
    """Where there are more than ``most`` boxes, ``short`` ones: the first, a gap, and the last."""
    if len(boxes) <= most:
        return list(boxes)
    return [*boxes[: short - 2], _gap(boxes[short - 2 : -1], boxes[0].tier), boxes[-1]]


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


def _top_row(fabric: Fabric, nodes: np.ndarray[tuple[int], np.dtype[np.int64]], tier: int) -> list[Box]:
    """The top tier: every switch, or one box for those that are linked alike, or the first ones and the last."""
    groups: list[tuple[int, ...]] = [(node,) for node in nodes.tolist()]
    if len(groups) > MOST_IN_TOP_ROW:
        alike = _grouped((_neighbours(fabric, node), node) for node in nodes.tolist())
        if len(alike) > 1:  # one box for a whole tier would say less than the first ones and the last
            groups = alike
    boxes = [Box(nodes=group, tier=tier) for group in groups]
    # groups match the switches that a pod's row shows, one by one
    single = all(len(group) == 1 for group in groups)
    return (
        _shorten(boxes, MOST_IN_TOP_ROW, SHORT_TOP_ROW) if single else _shorten(boxes, MOST_IN_POD_ROW, MOST_IN_POD_ROW)
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


def _rows(fabric: Fabric, nodes: list[int]) -> dict[int, tuple[Box, ...]]:
    """The rows of a pod, highest tier first; hosts whose leaf is left out are left out with it."""
    by_tier: defaultdict[int, list[int]] = defaultdict(list)
    for node in nodes:
        by_tier[int(fabric.node_tier[node])].append(node)
    many = len(fabric.hosts) > MOST_HOSTS
    rows: dict[int, tuple[Box, ...]] = {}
    for tier in sorted(by_tier, reverse=True):
        members = by_tier[tier]
        if tier == 0 and many:
            groups = _grouped((_neighbours(fabric, node), node) for node in members)
            boxes = [Box(nodes=group, tier=0) for group in groups]
            rows[tier] = tuple(_shorten(boxes, MOST_IN_POD_ROW, MOST_IN_POD_ROW))
        else:
            boxes = [Box(nodes=(node,), tier=tier) for node in members]
            rows[tier] = tuple(boxes if tier == 0 else _shorten(boxes, MOST_IN_POD_ROW, MOST_IN_POD_ROW))
    return rows
