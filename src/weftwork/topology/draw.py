"""Draw a fabric as SVG or HTML.

Tiers are rows with hosts below; equal parts are drawn once. Networks that no link joins stand on panels of their own,
pods on lighter ones. `weftwork.topology.direct_draw` draws direct networks.
Leaves out: PNG, which would need another library; a browser makes one from either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.units import RATE, format_quantity
from weftwork.base.whole_file import write_whole
from weftwork.spec.fabric import Fabric
from weftwork.topology.direct_draw import direct_svg
from weftwork.topology.direct_picture import sketch_of
from weftwork.topology.ink import RATE_DASHES, Lost, opening, state_of, text_at
from weftwork.topology.oversubscription import oversubscription_by_tier, ratio_text
from weftwork.topology.picture import Box, NetworkLayout, PictureLayout, PodLayout, lay_out, tier_words
from weftwork.topology.reach import rails_of

__all__ = ["PICTURES", "draw", "to_html", "to_svg"]

PICTURES = (".svg", ".html")

# chosen: sizes in pixels at which the labels of 65,536 hosts' worth of fabric do not touch
BOX_WIDTH, HOST_WIDTH, BOX_HEIGHT = 104, 74, 40
GAP, POD_GAP, ROW_HEIGHT = 12, 26, 140
LEFT, RIGHT, TOP, BOTTOM, ARC_ROOM = 136, 30, 84, 30, 50
NETWORK_GAP, TITLE_ROOM, MARGIN = 44, 26, 10  # between networks, for the title of one, around its boxes

TIERS = 5


def draw(
    fabric: Fabric,
    path: Path,
    *,
    lost_nodes: NDArray[np.bool_] | None = None,
    lost_links: NDArray[np.bool_] | None = None,
) -> None:
    """Write a picture in the format of the file's ending.

    Parameters
    ----------
    fabric : as it was built
    path : the file
    lost_nodes, lost_links : what is drawn as lost, shapes (nodes,), (links,), see `weftwork.topology.without.find_lost`

    Raises
    ------
    ConfigError : another ending than .svg or .html, or the file cannot be written
    """
    if path.suffix not in PICTURES:
        text = f"found a file that ends in '{path.suffix}', wanted .svg or .html; a browser makes a PNG from either"
        raise ConfigError("--picture", [Mistake(path="--picture", text=text)])
    try:
        write = to_svg if path.suffix == ".svg" else to_html
        write_whole(path, write(fabric, lost_nodes=lost_nodes, lost_links=lost_links))
    except OSError as wrong:
        text = f"cannot write '{path}': {wrong.strerror}"
        raise ConfigError("--picture", [Mistake(path="--picture", text=text)]) from wrong


def to_html(
    fabric: Fabric, *, lost_nodes: NDArray[np.bool_] | None = None, lost_links: NDArray[np.bool_] | None = None
) -> str:
    """The picture in a page that loads no other files."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{escape(fabric.name)}</title>\n'
        "<style>body { margin: 1rem; background: #fff; } svg { max-width: 100%; height: auto; }\n"
        "@media (prefers-color-scheme: dark) { body { background: #14171a; } }</style></head>\n"
        f"<body>\n{to_svg(fabric, lost_nodes=lost_nodes, lost_links=lost_links)}</body>\n</html>\n"
    )


def to_svg(
    fabric: Fabric, *, lost_nodes: NDArray[np.bool_] | None = None, lost_links: NDArray[np.bool_] | None = None
) -> str:
    """The picture as SVG text."""
    lost = Lost(
        nodes=np.zeros(len(fabric.node_names), np.bool_) if lost_nodes is None else lost_nodes,
        links=np.zeros(len(fabric.links), np.bool_) if lost_links is None else lost_links,
    )
    if (sketch := sketch_of(fabric, lost)) is not None:
        return direct_svg(fabric, sketch, lost)
    layout = lay_out(fabric, lost.links)
    boxes = layout.boxes()
    centres, width = _places(layout)
    tiers = sorted({box.tier for box in boxes})
    top = TOP + (ARC_ROOM if _has_arcs(fabric) else 0) + (TITLE_ROOM if layout.hosts else 0)
    top_y = {tier: top + ROW_HEIGHT * (len(tiers) - 1 - row) for row, tier in enumerate(tiers)}
    height = top + ROW_HEIGHT * (len(tiers) - 1) + BOX_HEIGHT + BOTTOM
    rates = sorted(np.unique(fabric.links["rate_bps"]).tolist(), reverse=True)
    parts = [
        *opening(fabric.name, width, height, LEFT),
        *_legend(rates, has_gaps=any(box.is_gap for box in boxes), has_lost=bool(lost.links.any())),
        *_panels(fabric, layout, centres, top_y),
        *_links(fabric, boxes, centres, top_y, rates, lost),
        *_boxes(fabric, boxes, centres, top_y, lost),
        *_row_names(fabric, tiers, top_y),
        "</svg>",
        "",
    ]
    return "\n".join(parts)


def _width(box: Box) -> float:
    return HOST_WIDTH if box.tier == 0 and len(box.nodes) == 1 else BOX_WIDTH


def _row_width(row: Sequence[Box]) -> float:
    return sum(_width(box) for box in row) + GAP * (len(row) - 1)


def _pod_width(pod: PodLayout) -> float:
    return max(_row_width(row) for row in pod.rows.values())


def _network_width(network: NetworkLayout) -> float:
    pods = sum(_pod_width(pod) for pod in network.pods) + POD_GAP * max(len(network.pods) - 1, 0)
    return max(pods, _row_width(network.top))


def _places(layout: PictureLayout) -> tuple[list[float], float]:
    """Centre of every box, and the width of the picture.

    Boxes are in the order of `PictureLayout.boxes`.
    """
    widths = [_network_width(network) for network in layout.networks]
    all_networks = sum(widths) + NETWORK_GAP * (len(widths) - 1)
    across = max(all_networks, _row_width(layout.hosts), 360)
    spread = (across - all_networks) / len(widths)  # where the hosts are wider
    centres: list[float] = []
    left = float(LEFT)
    for network, width in zip(layout.networks, widths, strict=True):
        centres += _places_of(network, left, width + spread)
        left += width + spread + NETWORK_GAP
    slot = across / max(len(layout.hosts), 1)
    centres += [LEFT + slot * (number + 0.5) for number in range(len(layout.hosts))]
    return centres, LEFT + across + RIGHT


def _places_of(network: NetworkLayout, left: float, across: float) -> list[float]:
    """Centres of the boxes of a network.

    Pods and top row are both centred, and spread where the other is wider.
    """
    centres: list[float] = []
    pod_widths = [_pod_width(pod) for pod in network.pods]
    x = left + (across - sum(pod_widths) - POD_GAP * max(len(pod_widths) - 1, 0)) / 2
    for pod, pod_width in zip(network.pods, pod_widths, strict=True):
        for row in pod.rows.values():
            at = x + (pod_width - _row_width(row)) / 2
            for box in row:
                centres.append(at + _width(box) / 2)
                at += _width(box) + GAP
        x += pod_width + POD_GAP
    slot = across / max(len(network.top), 1)
    return centres + [left + slot * (number + 0.5) for number in range(len(network.top))]


def _panels(fabric: Fabric, layout: PictureLayout, centres: Sequence[float], top_y: dict[int, int]) -> list[str]:
    """Background of separate networks with their names, or of tiered pods.

    Networks are separate if no link joins them.
    """
    parts: list[str] = []
    word = _network_word(fabric)
    at = 0
    for network in layout.networks:
        first = at
        for pod in network.pods:
            row = [box for boxes in pod.rows.values() for box in boxes]
            if not layout.hosts:
                if _has_inside(pod):
                    parts += _ground(row, centres[at : at + len(row)], top_y, MARGIN)
                if pod.hidden and _has_inside(network.pods[0]):
                    y = top_y[min(pod.rows)] + BOX_HEIGHT + 24
                    parts.append(text_at(centres[at], y, 11, "soft", f"{pod.hidden:,} more like these"))
            at += len(row)
        at += len(network.top)
        if layout.hosts:
            row = [box for pod in network.pods for boxes in pod.rows.values() for box in boxes] + list(network.top)
            parts += _ground(row, centres[first:at], top_y, MARGIN + 8)
            middle = (min(centres[first:at]) + max(centres[first:at])) / 2
            number = network.first
            name = f"… {network.hidden:,} {word}s" if network.hidden else f"{word} {number}"
            y = top_y[max(box.tier for box in row)] - 16
            parts.append(text_at(middle, y, 13, "soft" if network.hidden else "ink", name))
    return parts


def _has_inside(pod: PodLayout) -> bool:
    """Whether a pod has more than one switch and its hosts."""
    return any(tier > 0 and len(row) > 1 for tier, row in pod.rows.items())


def _ground(boxes: Sequence[Box], centres: Sequence[float], top_y: dict[int, int], margin: int) -> list[str]:
    left = min(centre - _width(box) / 2 for box, centre in zip(boxes, centres, strict=True)) - margin
    right = max(centre + _width(box) / 2 for box, centre in zip(boxes, centres, strict=True)) + margin
    top = top_y[max(box.tier for box in boxes)] - margin - (TITLE_ROOM - MARGIN if margin > MARGIN else 0)
    low = top_y[min(box.tier for box in boxes)] + BOX_HEIGHT + margin
    return [f'<rect x="{left:.1f}" y="{top}" width="{right - left:.1f}" height="{low - top}" rx="10" class="panel"/>']


def _network_word(fabric: Fabric) -> str:
    """Name of separate networks: planes or rails.

    Planes are those where each GPU is on all of them, rails those where each GPU has its own.
    """
    if not len(fabric.hosts) or "plane" in fabric.name:
        return "plane"
    server = fabric.server(int(fabric.hosts[0]))
    return "plane" if server.gpus == 1 or server.nic_ports > server.gpus else "rail"


def _has_arcs(fabric: Fabric) -> bool:
    """Whether links join switches of one tier."""
    return bool((fabric.node_tier[fabric.links["a"]] == fabric.node_tier[fabric.links["b"]]).any())


def _legend(rates: Sequence[int], *, has_gaps: bool, has_lost: bool) -> list[str]:
    parts = []
    x = float(LEFT)
    for number, rate in enumerate(rates[: len(RATE_DASHES)]):
        last = number == len(RATE_DASHES) - 1 and len(rates) > len(RATE_DASHES)
        text = f"{format_quantity(RATE, rate)}{' and less' if last else ''}"
        dash = RATE_DASHES[number]
        parts.append(f'<path d="M{x:.0f} 50h34" class="r{number}" stroke-width="2" stroke-dasharray="{dash}"/>')
        parts.append(f'<text x="{x + 40:.0f}" y="54" font-size="12" class="ink">{text}</text>')
        x += 62 + 8 * len(text)
    if has_lost:
        parts.append(f'<path d="M{x:.0f} 50h34" class="lost" stroke-width="2" stroke-dasharray="2 4"/>')
        parts.append(f'<text x="{x + 40:.0f}" y="54" font-size="12" class="alarm">lost</text>')
        x += 94
    if has_gaps:
        parts.append(f'<text x="{x:.0f}" y="54" font-size="12" class="soft">grey: to what is left out</text>')
    return parts


def _links(
    fabric: Fabric, boxes: Sequence[Box], centres: Sequence[float], top_y: dict[int, int], rates: Sequence[int],
    lost: Lost,
) -> list[str]:  # fmt: skip
    """One line for all links between two boxes.

    Its tooltip says how many and how fast.
    """
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
    gone = np.bincount(inverse, lost.links, minlength=len(key)).astype(np.int64)
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
        rank = min(rates.index(int(fastest[index])), len(RATE_DASHES) - 1)
        is_faint = low.is_gap or high.is_gap
        tip = f"{plural(int(count[index]), 'link')}, {format_quantity(RATE, int(total[index]))}"
        if gone[index]:
            tip += ", lost" if gone[index] == count[index] else f", {gone[index]:,} lost"
        thick = 1.0 if is_faint else 1.5 + 0.9 * (count[index] > 1)
        styles = [("faint" if is_faint else f"r{rank}", RATE_DASHES[rank], thick)]
        if gone[index] == count[index]:
            styles = [("lost", "2 4", thick)]
        elif gone[index] and not is_faint:  # some of several: dots on the line
            styles.append(("lost", "2 6", thick + 1))
        for name, dash, pen in styles:
            (faint if name == "faint" else bold).append(
                f'<path d="{line}" fill="none" class="{name}" stroke-width="{pen}" stroke-dasharray="{dash}">'
                f"<title>{tip}</title></path>"
            )
    return faint + bold


def _boxes(
    fabric: Fabric, boxes: Sequence[Box], centres: Sequence[float], top_y: dict[int, int], lost: Lost
) -> list[str]:
    words = tier_words(fabric)
    rails = _rail_labels(fabric)
    parts = []
    for box, centre in zip(boxes, centres, strict=True):
        width, y = _width(box), top_y[box.tier]
        state = state_of(fabric, box.nodes, lost, is_gap=box.is_gap)
        is_gone = bool(lost.nodes[list(box.nodes)].all()) or state == "cut off"
        style = "gap" if box.is_gap else "gone" if is_gone else f"t{min(box.tier, TIERS - 1)} edge"
        dash = ' stroke-dasharray="4 3"' if box.is_gap or is_gone else ""
        radius = BOX_HEIGHT / 2 if box.tier == 0 else 4
        left = centre - width / 2
        parts.append(
            f'<rect x="{left:.1f}" y="{y}" width="{width}" height="{BOX_HEIGHT}" rx="{radius:.0f}" '
            f'class="{style}"{dash}/>'
        )
        if lost.nodes[list(box.nodes)].all():
            cross = (
                f"M{left + 4:.1f} {y + 4}l{width - 8} {BOX_HEIGHT - 8}m0 {8 - BOX_HEIGHT}l{8 - width} {BOX_HEIGHT - 8}"
            )
            parts.append(f'<path d="{cross}" class="lost" stroke-width="1.2" fill="none" opacity="0.55"/>')
        lines = _label(fabric, box, words[box.tier], rails)
        if len(lines) == 1 and not box.is_gap and len(box.nodes) == 1 and box.nodes[0] in rails and not state:
            lines.append((rails[box.nodes[0]], 10))
        if state:
            lines = [lines[0], (state, 10)]
        for number, (line, size) in enumerate(lines):
            shift = y + BOX_HEIGHT / 2 + 4.5 + (number - (len(lines) - 1) / 2) * 14
            ink = "alarm" if state and number else "soft" if box.is_gap else "ink"
            parts.append(
                f'<text x="{centre:.1f}" y="{shift:.1f}" font-size="{size}" text-anchor="middle" class="{ink}">'
                f"{escape(line)}</text>"
            )
    return parts


def _rail_labels(fabric: Fabric) -> dict[int, str]:
    """Pod and NIC ports of every leaf, in a fabric of rails and pods."""
    groups = rails_of(fabric)
    if fabric.node_pod is None or len(groups) < 2:
        return {}
    ports, first = fabric.ports, fabric.ports.base[fabric.hosts]
    labels = {}
    for group in groups:
        numbers = group.tolist()
        span = len(numbers) == numbers[-1] - numbers[0] + 1
        nics = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}" if span else f"{numbers[0]}, …"
        for leaf in np.unique(ports.node[ports.peer[first + numbers[0]]]).tolist():
            labels[leaf] = f"pod {fabric.node_pod[leaf]}, nic {nics}"
    return labels


def _label(fabric: Fabric, box: Box, word: tuple[str, str], rails: Mapping[int, str]) -> list[tuple[str, int]]:
    first, last = fabric.node_names[box.nodes[0]], fabric.node_names[box.nodes[-1]]
    if box.is_gap:
        head, _, rest = f"… {len(box.nodes):,} {word[len(box.nodes) > 1]}".rpartition(" ")
        lines = [f"{head} {rest}"] if len(head) + len(rest) < 16 else [head, rest]
        return [(line, 11) for line in lines]
    if len(box.nodes) == 1:
        return [(first if len(first) <= 14 else f"{first[:13]}…", 12)]
    heading = (f"{len(box.nodes):,} {word[1]}", 12)
    if box.tier > 0 and len({rails.get(node, "").partition(",")[0] for node in box.nodes}) == 1 and rails:
        pod = rails.get(box.nodes[0], "").partition(",")[0]
        if pod:
            return [heading, (f"{pod}, {plural(len(box.nodes), 'rail')}", 10)]
    number = last.removeprefix(word[0])
    for span in (f"{first} … {number}", f"{first[len(word[0]) :]} … {number}"):
        if len(span) <= 16:
            return [heading, (span, 10)]
    return [heading]


def _row_names(fabric: Fabric, tiers: Sequence[int], top_y: dict[int, int]) -> list[str]:
    """Names at the left of each row.

    A name has the number of boxes, of their GPUs, and the share of bandwidth that goes up.
    """
    words = tier_words(fabric)
    ratios = oversubscription_by_tier(fabric)
    parts = []
    for tier in tiers:
        count = int((fabric.node_tier == tier).sum())
        head, _, rest = f"{count:,} {words[tier][count > 1]}".rpartition(" ")
        texts = [f"{head} {rest}"] if len(head) + len(rest) < 14 else [head, rest]
        lines = [(text, 13, "ink") for text in texts]
        if tier == 0 and fabric.gpus != count:
            lines.append((plural(fabric.gpus, "GPU"), 12, "soft"))
        if tier in ratios:
            lines.append((f"down:up {ratio_text(ratios[tier])}", 12, "soft"))
        y = top_y[tier] + BOX_HEIGHT / 2 + 4.5 - 8 * (len(lines) - 1)
        for number, (text, size, ink) in enumerate(lines):
            parts.append(
                f'<text x="14" y="{y + 17 * number:.1f}" font-size="{size}" class="{ink}">{escape(text)}</text>'
            )
    return parts
