"""Draw a direct network as SVG.

Colours and dashes tell the dimensions of links. Leaves out: where the parts stand (`weftwork.topology.direct_picture`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weftwork.base.grammar import plural
from weftwork.base.units import RATE, format_quantity
from weftwork.spec.fabric import Fabric
from weftwork.topology.direct_sketch import Mark, Panel, Sketch, SketchLine
from weftwork.topology.ink import RATE_DASHES, Lost, opening, state_of, text_at

__all__ = ["direct_svg"]

LEFT, TOP, RIGHT = 30.0, 84.0, 30.0  # chosen: room for the title and the legend
NOTE_HEIGHT = 18.0
CROWDED = 120  # chosen: lines that are drawn thinner where they cross
LEAST_WIDTH = 620.0  # chosen: the legend of four dimensions fits


def direct_svg(fabric: Fabric, sketch: Sketch, lost: Lost) -> str:
    """The picture as SVG text.

    Parameters
    ----------
    fabric : a direct network
    sketch : its parts, see `weftwork.topology.direct_picture.sketch_of`
    lost : nodes and links that are drawn as lost
    """
    width = LEFT + max(sketch.width, LEAST_WIDTH) + RIGHT
    height = TOP + sketch.height + 24 + NOTE_HEIGHT * len(sketch.notes) + 10
    shift = max(0.0, (LEAST_WIDTH - sketch.width) / 2)
    notes = [
        f'<text x="{LEFT:.0f}" y="{TOP + sketch.height + 36 + NOTE_HEIGHT * number:.0f}" font-size="12" class="soft">'
        f"{note}</text>"
        for number, note in enumerate(sketch.notes)
    ]
    has_gaps = any(mark.is_gap for mark in sketch.marks) or any(line.is_faint for line in sketch.lines)
    return "\n".join(
        [
            *opening(fabric.name, width, height, LEFT),
            *_legend(fabric, has_gaps=has_gaps, has_lost=bool(lost.links.any())),
            f'<g transform="translate({LEFT + shift:.1f} {TOP:.1f})">',
            *[part for panel in sketch.panels for part in _panel(panel)],
            *_lines(fabric, sketch.lines, lost),
            *[part for mark in sketch.marks for part in _mark(fabric, mark, lost)],
            *[text_at(x, y, size, "soft", text) for x, y, size, text in sketch.texts],
            "</g>",
            *notes,
            "</svg>",
            "",
        ]
    )


def _legend(fabric: Fabric, *, has_gaps: bool, has_lost: bool) -> list[str]:
    direct = fabric.direct
    parts, x = [], LEFT
    words = () if direct is None else direct.dimensions
    for number, word in enumerate(words[: len(RATE_DASHES)]):
        is_last = number == len(RATE_DASHES) - 1 and len(words) > len(RATE_DASHES)
        rates = fabric.links["rate_bps"][direct.link_dimension == number] if direct is not None else np.empty(0)
        rate = f", {format_quantity(RATE, int(rates.max()))}" if len(rates) else ""
        text = f"{word}{rate}{' and other dimensions' if is_last else ''}"
        parts.append(
            f'<path d="M{x:.0f} 50h34" class="r{number}" stroke-width="2" stroke-dasharray="{RATE_DASHES[number]}"/>'
        )
        parts.append(f'<text x="{x + 40:.0f}" y="54" font-size="12" class="ink">{text}</text>')
        x += 62 + 7.5 * len(text)
    if has_lost:
        parts.append(f'<path d="M{x:.0f} 50h34" class="lost" stroke-width="2" stroke-dasharray="2 4"/>')
        parts.append(f'<text x="{x + 40:.0f}" y="54" font-size="12" class="alarm">lost</text>')
        x += 94
    if has_gaps:
        parts.append(f'<text x="{x:.0f}" y="54" font-size="12" class="soft">grey: to parts that are left out</text>')
    return parts


def _panel(panel: Panel) -> list[str]:
    radius = panel.width / 2 if panel.is_round else 10.0
    size = f'width="{panel.width:.1f}" height="{panel.height:.1f}" rx="{radius:.1f}"'
    return [
        f'<rect x="{panel.x:.1f}" y="{panel.y:.1f}" {size} class="panel"/>',
        text_at(*(panel.title_at or (panel.x + panel.width / 2, panel.y - 6)), 12, "ink", panel.title),
    ]


def _lines(fabric: Fabric, lines: Sequence[SketchLine], lost: Lost) -> list[str]:
    """Faint lines first, so that no grey line crosses a coloured one."""
    ordered = sorted(lines, key=lambda line: not line.is_faint)
    is_crowded = len(lines) > CROWDED and not any(line.dot for line in lines)
    return [part for line in ordered for part in _line(fabric, line, lost, is_crowded=is_crowded)]


def _line(fabric: Fabric, line: SketchLine, lost: Lost, *, is_crowded: bool) -> list[str]:
    links = np.array(line.links)
    direct = fabric.direct
    dimension = 0 if direct is None else max(int(direct.link_dimension[links[0]]), 0)
    rank = min(dimension, len(RATE_DASHES) - 1)
    rate = int(fabric.links["rate_bps"][links].sum())
    word = "" if direct is None else f" {direct.dimensions[dimension]}"
    gone = int(lost.links[links].sum())
    tip = f"{plural(len(links), f'{word} link'.strip())}, {format_quantity(RATE, rate)}"
    if gone:
        tip += ", lost" if gone == len(links) else f", {gone:,} lost"
    thick = 0.8 if is_crowded or line.is_faint else 1.4 + 0.8 * (len(links) > 1)
    styles = [("faint", "", thick) if line.is_faint else (f"r{rank}", RATE_DASHES[rank], thick)]
    if gone == len(links):
        styles = [("lost", "2 4", thick)]
    elif gone and not line.is_faint:
        styles.append(("lost", "2 6", thick + 1))
    parts = [
        f'<path d="{line.path}" fill="none" class="{name}" stroke-width="{pen}" stroke-dasharray="{dash}">'
        f"<title>{tip}</title></path>"
        for name, dash, pen in styles
    ]
    if line.dot is not None:
        x, y = line.dot
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.4" class="{styles[0][0]}" fill="none" stroke-width="2"/>')
    return parts


def _mark(fabric: Fabric, mark: Mark, lost: Lost) -> list[str]:
    state = state_of(fabric, mark.nodes, lost, is_gap=mark.is_gap) if mark.nodes else ""
    is_gone = state in {"lost", "cut off"}
    tint = "t2" if mark.is_optical else f"t{min(int(fabric.node_tier[mark.nodes[0]]), 4)}" if mark.nodes else "t1"
    style = "gap" if mark.is_gap else "gone" if is_gone else f"{tint} edge"
    dash = ' stroke-dasharray="4 3"' if mark.is_gap or is_gone else ""
    left, top = mark.x - mark.width / 2, mark.y - mark.height / 2
    extent = f'width="{mark.width:.1f}" height="{mark.height:.1f}" rx="4"'
    parts = [f'<rect x="{left:.1f}" y="{top:.1f}" {extent} class="{style}"{dash}/>']
    if state == "lost":
        across, down = mark.width - 8, mark.height - 8
        cross = f"M{left + 4:.1f} {top + 4:.1f}l{across:.1f} {down:.1f}m0 {-down:.1f}l{-across:.1f} {down:.1f}"
        parts.append(f'<path d="{cross}" class="lost" stroke-width="1.2" fill="none" opacity="0.55"/>')
    label = list(mark.label)
    if state:
        label = [label[0], state] if mark.height >= 28 else label[:1]
    size = 11 if mark.width >= 70 else 9
    step = 13 if mark.width >= 70 else 11
    for number, text in enumerate(label):
        y = mark.y + 4 + (number - (len(label) - 1) / 2) * step
        ink = "alarm" if state and number else "soft" if mark.is_gap else "ink"
        parts.append(text_at(mark.x, y, size if number == 0 else size - 1, ink, text))
    return parts
