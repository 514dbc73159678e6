"""Colours, dashes and words that all pictures of fabrics share.

Colours: Okabe and Ito, Color Universal Design, jfly.uni-koeln.de/color; dashes and words tell the same without colour.
Leaves out: what is drawn, and where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from weftwork.base.grammar import plural
from weftwork.spec.fabric import Fabric

__all__ = ["DARK", "LIGHT", "RATE_DASHES", "Lost", "opening", "rules", "state_of", "text_at"]

RATE_DASHES = ("", "8 3", "3 3", "10 3 2 3")
# Tints and strokes of Okabe and Ito, by class: on paper, and on a dark screen.
LIGHT = {
    "paper": "fill: #ffffff", "ink": "fill: #111111", "soft": "fill: #555555",
    "t0": "fill: #ffffff", "t1": "fill: #cce6f6", "t2": "fill: #fbe3b5", "t3": "fill: #bfe6d9", "t4": "fill: #f0d3e2",
    "panel": "fill: #f1f5f7",
    "gap": "fill: #f4f4f4; stroke: #999999", "edge": "stroke: #222222", "faint": "stroke: #b5b5b5",
    "r0": "stroke: #0072b2", "r1": "stroke: #d55e00", "r2": "stroke: #009e73", "r3": "stroke: #444444",
    "lost": "stroke: #b3001b", "gone": "fill: #fdecee; stroke: #b3001b", "alarm": "fill: #b3001b",
}  # fmt: skip
DARK = {
    "paper": "fill: #14171a", "ink": "fill: #ececec", "soft": "fill: #b0b5ba",
    "t0": "fill: #22272c", "t1": "fill: #163a50", "t2": "fill: #4f3d12", "t3": "fill: #134538", "t4": "fill: #4c263b",
    "panel": "fill: #1a2024",
    "gap": "fill: #1c2024; stroke: #70767c", "edge": "stroke: #d0d0d0", "faint": "stroke: #4c5258",
    "r0": "stroke: #56b4e9", "r1": "stroke: #f0a050", "r2": "stroke: #3cc79c", "r3": "stroke: #c0c0c0",
    "lost": "stroke: #ff6b7d", "gone": "fill: #3a1a1f; stroke: #ff6b7d", "alarm": "fill: #ff8c9a",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """Nodes and links that are drawn as lost.

    The shapes are (nodes,) and (links,).
    """

    nodes: NDArray[np.bool_]
    links: NDArray[np.bool_]


def rules(styles: Mapping[str, str]) -> str:
    """Styles as the rules of a style sheet."""
    return " ".join(f".{name} {{ {style}; }}" for name, style in styles.items())


def opening(title: str, width: float, height: float, left: float) -> list[str]:
    """First lines of a picture: its size, its styles, its paper and its title."""
    size = f'width="{width:.0f}" height="{height:.0f}"'
    font = 'font-family="DejaVu Sans, Verdana, sans-serif"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {size} {font} role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{rules(LIGHT)}\n@media (prefers-color-scheme: dark) {{{rules(DARK)}}}</style>",
        f'<rect width="{width:.0f}" height="{height:.0f}" class="paper"/>',
        f'<text x="{left:.0f}" y="28" font-size="17" font-weight="bold" class="ink">{escape(title)}</text>',
    ]


def text_at(x: float, y: float, size: int, ink: str, text: str) -> str:
    """A line of text around a point."""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="middle" class="{ink}">{escape(text)}</text>'


def state_of(fabric: Fabric, members: Sequence[int], lost: Lost, *, is_gap: bool) -> str:
    """State of a box after a loss, in words.

    It is lost, cut off, or has some links left. Empty if nothing is lost.
    """
    nodes = np.array(members)
    if lost.nodes[nodes].all():
        return "lost"
    ports = fabric.ports
    gone = [lost.links[ports.link[ports.base[node] : ports.base[node + 1]]] for node in nodes.tolist()]
    total, count = sum(len(links) for links in gone), int(sum(links.sum() for links in gone))
    if not count or is_gap:
        return ""
    if count == total:
        return "cut off"
    if fabric.node_tier[nodes[0]] > 0:
        return f"{total - count:,} of {plural(total, 'link')}"
    each = len(gone[0])
    return f"{each - int(gone[0].sum())} of {plural(each, 'NIC')}"
