"""The parts of a picture of a direct network, and helpers to find them.

Leaves out: where the parts stand (`weftwork.topology.direct_picture`), and ink (`weftwork.topology.direct_draw`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weftwork.base.grammar import plural
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.topology.picture import runs, tier_words

__all__ = [
    "Mark",
    "Panel",
    "Sketch",
    "SketchLine",
    "counts_of",
    "host_counts",
    "joined",
    "owners",
    "shown",
    "span_words",
]

MOST_MARKED = 3  # chosen: losses that stay visible in an abridged row


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """One box: some switches, a gap, or an optical switch, which is no node.

    Attributes
    ----------
    nodes : that it stands for
    x, y : of the centre
    width, height : of the box
    label : lines of text, the first one larger
    is_gap : whether it stands for parts that are left out
    is_optical : whether it stands for optical switches
    """

    nodes: tuple[int, ...]
    x: float
    y: float
    width: float
    height: float
    label: tuple[str, ...]
    is_gap: bool = False
    is_optical: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """A ground behind parts that belong together, with its title.

    The title is above the ground, or at ``title_at``.
    """

    x: float
    y: float
    width: float
    height: float
    title: str
    is_round: bool = False
    title_at: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SketchLine:
    """One stroke for some links.

    Attributes
    ----------
    path : as SVG has it
    links : that it stands for, all of one dimension
    is_faint : whether it leads to a gap
    dot : a point at the end of a stub that closes a ring
    """

    path: str
    links: tuple[int, ...]
    is_faint: bool = False
    dot: tuple[float, float] | None = None


@dataclass(kw_only=True, slots=True)
class Sketch:
    """All parts of a picture, in pixels from its upper left corner."""

    marks: list[Mark] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)
    lines: list[SketchLine] = field(default_factory=list)
    texts: list[tuple[float, float, int, str]] = field(default_factory=list)  # x, y, size, text
    notes: list[str] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def host_counts(fabric: Fabric) -> NDArray[np.int64]:
    """Number of hosts on each node, of shape (nodes,)."""
    ports = fabric.ports
    to_host = fabric.node_kind[ports.node[ports.peer]] == HOST
    pairs = np.unique(np.stack([ports.node[to_host], ports.node[ports.peer][to_host]]), axis=1)
    return np.bincount(pairs[0], minlength=len(fabric.node_names))


def shown(count: int, most: int, marked: Sequence[int]) -> list[list[int]]:
    """Places of a row: single ones, and gaps of several.

    Parameters
    ----------
    count : of places
    most : that are all shown; of more, the first ones, the marked ones and the last
    marked : places that stay visible if they are few
    """
    if count <= most:
        return [[place] for place in range(count)]
    return runs(count, max(1, most - 2), marked if len(marked) <= MOST_MARKED else [])


def owners(fabric: Fabric, marks: Sequence[Mark]) -> NDArray[np.int64]:
    """Index of the mark of each node, of shape (nodes,); -1: none."""
    owner = np.full(len(fabric.node_names), -1, np.int64)
    for number, mark in enumerate(marks):
        owner[list(mark.nodes)] = number
    return owner


def joined(fabric: Fabric, owner: NDArray[np.int64]) -> dict[tuple[int, int, int], tuple[int, ...]]:
    """Links between different marks, by both marks and the dimension."""
    ends = np.sort(np.stack([owner[fabric.links["a"]], owner[fabric.links["b"]]]), axis=0)
    found = np.flatnonzero((ends[0] >= 0) & (ends[0] < ends[1]))
    dimension = np.zeros(len(fabric.links), np.int64) if fabric.direct is None else fabric.direct.link_dimension
    groups: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    for link in found.tolist():
        groups[int(ends[0, link]), int(ends[1, link]), int(dimension[link])].append(link)
    return {key: tuple(links) for key, links in groups.items()}


def counts_of(fabric: Fabric) -> list[str]:
    """Numbers of switches, hosts and links in words."""
    direct = fabric.direct
    switches = np.flatnonzero(fabric.node_kind == SWITCH)
    words = tier_words(fabric)
    by_tier = [
        (tier, int((fabric.node_tier[switches] == tier).sum())) for tier in np.unique(fabric.node_tier[switches])
    ]
    parts = [f"{count:,} {words[int(tier)][count > 1]}" for tier, count in by_tier]
    hosts = host_counts(fabric)[switches]
    each = span_words(hosts[hosts > 0], "host")
    lines = [f"{' and '.join(parts)}; {plural(len(fabric.hosts), 'host')}" + (f", {each} on a switch" if each else "")]
    if direct is not None:
        number = np.bincount(direct.link_dimension[direct.link_dimension >= 0], minlength=len(direct.dimensions))
        told = (f"{count:,} {word}" for word, count in zip(direct.dimensions, number.tolist(), strict=True))
        lines.append(f"links between switches: {', '.join(told)}")
    return lines


def span_words(values: NDArray[np.integer], word: str) -> str:
    """A number with its word, such as ``2 hosts`` or ``2 to 3 hosts``; empty without values."""
    if not len(values):
        return ""
    low, high = int(values.min()), int(values.max())
    return plural(high, word) if low == high else f"{low:,} to {plural(high, word)}"
