"""A picture of a fabric, as SVG or as an HTML page around it: tiers in rows, hosts below, alike parts drawn once.

Colours: Okabe and Ito, Color Universal Design, jfly.uni-koeln.de/color; dashes and words tell the same without colour.
Leaves out: PNG, which would need another library; a browser makes one from either.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

from weft.base.errors import ConfigError, Mistake
from weft.base.units import RATE, format_quantity
from weft.spec.fabric import Fabric
from weft.topology.picture import Box, Layout, lay_out, tier_words

__all__ = ["PICTURES", "draw", "to_html", "to_svg"]

PICTURES = (".svg", ".html")

# chosen: sizes in pixels at which the labels of 65,536 hosts' worth of fabric do not touch
BOX_WIDTH, HOST_WIDTH, BOX_HEIGHT = 104, 74, 40
GAP, POD_GAP, ROW_HEIGHT = 12, 26, 140
LEFT, RIGHT, TOP, BOTTOM, ARC_ROOM = 120, 30, 84, 30, 50

TIER_FILL = ("#ffffff", "#cce6f6", "#fbe3b5", "#bfe6d9", "#f0d3e2")  # light tints of Okabe and Ito
RATE_STYLE = (("#0072b2", ""), ("#d55e00", "8 3"), ("#009e73", "3 3"), ("#444444", "10 3 2 3"))
FAINT = "#b5b5b5"


def draw(fabric: Fabric, path: Path) -> None:
    """Write a picture in the format that the file's name ends in.

    Raises
    ------
    ConfigError : another ending than .svg or .html, or the file cannot be written
    """
    if path.suffix not in PICTURES:
        text = f"found a file that ends in '{path.suffix}', wanted .svg or .html; a browser makes a PNG from either"
        raise ConfigError("--picture", [Mistake(path="--picture", text=text)])
    try:
        path.write_text(to_svg(fabric) if path.suffix == ".svg" else to_html(fabric), encoding="utf-8")
    except OSError as wrong:
        text = f"cannot write '{path}': {wrong.strerror}"
        raise ConfigError("--picture", [Mistake(path="--picture", text=text)]) from wrong


def to_html(fabric: Fabric) -> str:
    """The picture in a page that needs nothing from elsewhere."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{escape(fabric.name)}</title>\n'
        "<style>body { margin: 1rem; background: #fff; } svg { max-width: 100%; height: auto; }</style></head>\n"
        f"<body>\n{to_svg(fabric)}</body>\n</html>\n"
    )


def to_svg(fabric: Fabric) -> str:
    """The picture as SVG text."""
    layout = lay_out(fabric)
    boxes = layout.boxes()
    centres, width = _places(layout)
    tiers = sorted({box.tier for box in boxes})
    top = TOP + (ARC_ROOM if _has_arcs(fabric) else 0)
    top_y = {tier: top + ROW_HEIGHT * (len(tiers) - 1 - row) for row, tier in enumerate(tiers)}
    height = top + ROW_HEIGHT * (len(tiers) - 1) + BOX_HEIGHT + BOTTOM
    rates = sorted(np.unique(fabric.links["rate_bps"]).tolist(), reverse=True)
    size = f'width="{width:.0f}" height="{height:.0f}"'
    font = 'font-family="DejaVu Sans, Verdana, sans-serif"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {size} {font} role="img">',
        f"<title>{escape(fabric.name)}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="28" font-size="17" font-weight="bold">{escape(fabric.name)}</text>',
        *_legend(rates, has_gaps=any(box.is_gap for box in boxes)),
        *_links(fabric, boxes, centres, top_y, rates),
        *_boxes(fabric, boxes, centres, top_y),
        *_row_names(fabric, tiers, top_y),
        "</svg>",
        "",
    ]
    return "\n".join(parts)


def _width(box: Box) -> float:
    return HOST_WIDTH if box.tier == 0 and len(box.nodes) == 1 else BOX_WIDTH


def _row_width(row: Sequence[Box]) -> float:
    return sum(_width(box) for box in row) + GAP * (len(row) - 1)


def _places(layout: Layout) -> tuple[list[float], float]:
    """Centre of every box, in the order of `Layout.boxes`, and the width of the picture."""
    pod_widths = [max(_row_width(row) for row in pod.values()) for pod in layout.pods]
    across = max(sum(pod_widths) + POD_GAP * max(len(pod_widths) - 1, 0), _row_width(layout.top), 360)
    centres: list[float] = []
    # pods and the top row are both centred, and spread where the other is wider
    left = LEFT + (across - sum(pod_widths) - POD_GAP * max(len(pod_widths) - 1, 0)) / 2
    for pod, pod_width in zip(layout.pods, pod_widths, strict=True):
        for row in pod.values():
            x = left + (pod_width - _row_width(row)) / 2
            for box in row:
                centres.append(x + _width(box) / 2)
                x += _width(box) + GAP
        left += pod_width + POD_GAP
    slot = across / max(len(layout.top), 1)
    centres += [LEFT + slot * (number + 0.5) for number in range(len(layout.top))]
    return centres, LEFT + across + RIGHT


def _has_arcs(fabric: Fabric) -> bool:
    """Whether switches of one tier are linked to each other."""
    return bool((fabric.node_tier[fabric.links["a"]] == fabric.node_tier[fabric.links["b"]]).any())


def _legend(rates: Sequence[int], *, has_gaps: bool) -> list[str]:
    parts = []
    x = float(LEFT)
    for number, rate in enumerate(rates[: len(RATE_STYLE)]):
        colour, dash = RATE_STYLE[number]
        last = number == len(RATE_STYLE) - 1 and len(rates) > len(RATE_STYLE)
        text = f"{format_quantity(RATE, rate)}{' and less' if last else ''}"
        parts.append(f'<path d="M{x:.0f} 50h34" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')
        parts.append(f'<text x="{x + 40:.0f}" y="54" font-size="12">{text}</text>')
        x += 62 + 8 * len(text)
    if has_gaps:
        parts.append(f'<text x="{x:.0f}" y="54" font-size="12" fill="#555555">grey: to what is left out</text>')
    return parts


def _links(
    fabric: Fabric, boxes: Sequence[Box], centres: Sequence[float], top_y: dict[int, int], rates: Sequence[int]
) -> list[str]:
    """One line for all links between two boxes; its tooltip says how many and how fast."""
    owner = np.full(len(fabric.node_names), -1, np.int64)
    for number, box in enumerate(boxes):
        owner[list(box.nodes)] = number
    links = fabric.links
    ends = np.sort(np.stack([owner[links["a"]], owner[links["b"]]]), axis=0)
    key, inverse, count = np.unique(ends[0] * len(boxes) + ends[1], return_inverse=True, return_counts=True)
    total = np.zeros(len(key), np.int64)
    np.add.at(total, inverse, links["rate_bps"])
    fastest = np.zeros(len(key), np.int64)
    np.maximum.at(fastest, inverse, links["rate_bps"])
    faint: list[str] = []
    bold: list[str] = []
    for index, pair in enumerate(key.tolist()):
        one, other = sorted((pair // len(boxes), pair % len(boxes)), key=lambda box: boxes[box].tier)
        if one == other:
            continue
        low, high = boxes[one], boxes[other]
        start, end = (centres[one], top_y[low.tier]), (centres[other], top_y[high.tier] + BOX_HEIGHT)
        if low.tier == high.tier:  # an arc above the row
            peak = top_y[low.tier] - 24 - min(abs(centres[other] - centres[one]) / 6, ARC_ROOM)
            line = f"M{start[0]:.1f} {start[1]}Q{(start[0] + end[0]) / 2:.1f} {peak:.1f} {end[0]:.1f} {start[1]}"
        else:
            line = f"M{start[0]:.1f} {start[1]}L{end[0]:.1f} {end[1]}"
        colour, dash = RATE_STYLE[min(rates.index(int(fastest[index])), len(RATE_STYLE) - 1)]
        is_faint = low.is_gap or high.is_gap
        tip = f"{count[index]:,} link{'s' if count[index] > 1 else ''}, {format_quantity(RATE, int(total[index]))}"
        thick = 1.0 if is_faint else 1.5 + 0.9 * (count[index] > 1)
        style = f'stroke="{FAINT if is_faint else colour}" stroke-width="{thick}"'
        (faint if is_faint else bold).append(
            f'<path d="{line}" fill="none" {style} stroke-dasharray="{dash}"><title>{tip}</title></path>'
        )
    return faint + bold


def _boxes(fabric: Fabric, boxes: Sequence[Box], centres: Sequence[float], top_y: dict[int, int]) -> list[str]:
    words = tier_words(fabric)
    parts = []
    for box, centre in zip(boxes, centres, strict=True):
        width, y = _width(box), top_y[box.tier]
        fill = "#f4f4f4" if box.is_gap else TIER_FILL[min(box.tier, len(TIER_FILL) - 1)]
        edge = 'stroke="#999999" stroke-dasharray="4 3"' if box.is_gap else 'stroke="#222222"'
        radius = BOX_HEIGHT / 2 if box.tier == 0 else 4
        parts.append(
            f'<rect x="{centre - width / 2:.1f}" y="{y}" width="{width}" height="{BOX_HEIGHT}" rx="{radius:.0f}" '
            f'fill="{fill}" {edge}/>'
        )
        lines = _label(fabric, box, words[box.tier])
        for number, (line, size) in enumerate(lines):
            shift = y + BOX_HEIGHT / 2 + 4.5 + (number - (len(lines) - 1) / 2) * 14
            parts.append(
                f'<text x="{centre:.1f}" y="{shift:.1f}" font-size="{size}" text-anchor="middle">{escape(line)}</text>'
            )
    return parts


def _label(fabric: Fabric, box: Box, word: tuple[str, str]) -> list[tuple[str, int]]:
    first, last = fabric.node_names[box.nodes[0]], fabric.node_names[box.nodes[-1]]
    if box.is_gap:
        return [(f"… {len(box.nodes):,} {word[len(box.nodes) > 1]}", 11)]
    if len(box.nodes) == 1:
        return [(first if len(first) <= 12 else f"{first[:11]}…", 12)]
    number = last.removeprefix(word[0])
    heading = (f"{len(box.nodes):,} {word[1]}", 12)
    for span in (f"{first} … {number}", f"{first[len(word[0]) :]} … {number}"):
        if len(span) <= 16:
            return [heading, (span, 10)]
    return [heading]


def _row_names(fabric: Fabric, tiers: Sequence[int], top_y: dict[int, int]) -> list[str]:
    words = tier_words(fabric)
    parts = []
    for tier in tiers:
        count = int((fabric.node_tier == tier).sum())
        y = top_y[tier] + BOX_HEIGHT / 2 + 4.5
        parts.append(
            f'<text x="14" y="{y:.1f}" font-size="13" fill="#333333">{count:,} {escape(words[tier][count > 1])}</text>'
        )
    return parts
