"""The fabric with its hot links.

It has a row of cells for each tier, and a line for all links between two cells.

Hosts that hang on the same switches share a cell; so do neighbours in a row that has too many. A line has the colour
and the width of the busiest direction of any of its links. What is to blame has a cell of its own, is outlined,
and has its name beside it.
Leaves out: where things stand in a hall; and, in a very large fabric, the links that did least, which the note tells.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from html import escape
from string import ascii_letters
from typing import TYPE_CHECKING, Any

import numpy as np

from weftwork.base.grammar import plural
from weftwork.report.culprit_marks import TO_BLAME
from weftwork.report.figures.axes import SPAN
from weftwork.report.figures.colours import RAMP_STEPS
from weftwork.report.over_time import plural_role
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from weftwork.report.culprit_places import CulpritPlace

__all__ = ["Hot", "fabric_picture", "scale"]

MOST_CELLS = 160  # chosen: of a row, so that a cell is some six pixels wide on a page
MOST_LINES = 2_500  # chosen: some 300 kB
BADGES = 5
_NAMED_CELLS, _NUMBERED_CELLS = 16, 40  # that have room for their names, or for their numbers
_ROW_PX, _CELL_PX, _TOP_PX = 118, 24, 24
_BELOW_PX = 16  # chosen: room for a name below the lowest row
_NEAR_AN_EDGE = 0.15  # chosen: of the width, where a name in the middle would not fit
_AT_THE_TOP = 0.86  # chosen: of a line, where the name of a link stands, above all badges


@dataclass(frozen=True, kw_only=True)
class Hot:
    """One of the busiest links; ``row`` is its row in the table."""

    row: int
    badge: int


@dataclass(frozen=True, kw_only=True)
class _Cell:
    name: str
    count: int
    x: float
    tier: int


def fabric_picture(nodes: pa.Table, links: pa.Table, blamed: CulpritPlace | None = None) -> tuple[str, list[Hot], str]:
    """Draw the fabric.

    Parameters
    ----------
    nodes, links : tables of the run, links by port
    blamed : what is to blame; None where nothing of the fabric is

    Returns
    -------
    HTML; the links that have a number in it, busiest first; and a note on what is drawn together or left out
    """
    cells, cell_of, is_grouped = _cells(nodes, links, _apart(links, blamed))
    tiers = sorted({cell.tier for cell in cells}, reverse=True)
    y_px = {tier: _TOP_PX + _ROW_PX * row for row, tier in enumerate(tiers)}
    own_cells = sorted({int(cell_of[node]) for node in blamed.nodes}) if blamed else []
    height_px = _TOP_PX + _ROW_PX * (len(tiers) - 1) + _CELL_PX + 6 + (_BELOW_PX if own_cells else 0)
    a, b = (cell_of[links[name].to_numpy()] for name in ("node", "peer"))
    used = links["utilisation"].to_numpy()
    low, high = np.minimum(a, b), np.maximum(a, b)
    key, inverse = np.unique(low * len(cells) + high, return_inverse=True)
    rising = np.zeros(len(key))
    falling = np.zeros(len(key))
    np.maximum.at(rising, inverse[a < b], used[a < b])
    np.maximum.at(falling, inverse[a > b], used[a > b])
    ports = np.bincount(inverse)
    hottest = np.maximum(rising, falling)
    most = float(hottest.max(initial=0.0)) or 1.0
    order = np.argsort(hottest, kind="stable")
    left_out = max(0, len(order) - MOST_LINES)
    own_ports = sorted(blamed.ports) if blamed else []
    own_lines = set(inverse[own_ports].tolist())
    lines = []
    for place in [*(one for one in order[left_out:].tolist() if one not in own_lines), *sorted(own_lines)]:
        one, other = divmod(int(key[place]), len(cells))
        if one == other:
            continue
        tip = f"{cells[one].name} to {cells[other].name}: {amount(rising[place], 'share')} that way, " + (
            f"{amount(falling[place], 'share')} back"
            + (f"; busiest of {plural(ports[place] // 2, 'link')}" if ports[place] > 2 else "")
        )
        path = f'd="{_link(cells[one], cells[other], y_px, height_px)}"'
        if place in own_lines:
            tip += f"; {TO_BLAME}: {blamed.name if blamed else ''}"
            lines.append(f'<path class="blame" {path}/><path class="halo" {path}/>')
        lines.append(f"<path {_stroke(hottest[place] / most)} {path}><title>{escape(typeset(tip))}</title></path>")
    hot = _hot(used, links)
    badges = _badges([(int(a[one.row]), int(b[one.row]), one.badge) for one in hot], cells, y_px)
    rects = "".join(
        _rect(cell, _count(cells, cell.tier), y_px, height_px, is_blamed=place in own_cells)
        for place, cell in enumerate(cells)
    )
    labels = "".join(_label(cell, _count(cells, cell.tier), y_px) for cell in cells)
    rows = "".join(_row_name(nodes, tier, y_px[tier]) for tier in tiers)
    label = "The fabric, tier by tier; the busiest links are listed below it."
    names = ""
    if blamed is not None:
        label += f" {escape(blamed.name)} is to blame."
        ends = [divmod(int(key[place]), len(cells)) for place in sorted(own_lines)]
        names = _blamed_name(blamed.name, [cells[cell] for cell in own_cells], ends, cells, y_px)
    drawing = (
        f'{scale(most)}<div class="fabric"><div class="pa" style="height:{height_px}px">'
        f'<svg viewBox="0 0 {SPAN} {SPAN}" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f"{''.join(lines)}{rects}</svg>{rows}{labels}{badges}{names}</div></div>"
    )
    notes = []
    if is_grouped:
        notes.append(f"In a tier of more than {MOST_CELLS} nodes, several neighbours share one cell.")
    left_out -= len(own_lines & set(order[:left_out].tolist()))
    if left_out:
        notes.append(f"The {plural(left_out, 'least used line is', 'least used lines are')} left out.")
    return drawing, hot, " ".join(notes)


def scale(most: float = 1.0) -> str:
    """The legend of the ramp of shares, up to the largest share."""
    top = typeset(amount(most, "share"))
    boxes = "".join(f'<i style="background:var(--u{step})"></i>' for step in range(RAMP_STEPS))
    return f'<div class="scale" aria-label="colours, from 0 to {top} in use"><b>0</b>{boxes}<b>{top} in use</b></div>'


def _count(cells: list[_Cell], tier: int) -> int:
    return sum(cell.tier == tier for cell in cells)


def _apart(links: pa.Table, blamed: CulpritPlace | None) -> frozenset[int]:
    """Nodes with their own cell: the culprit, or its link's ends."""
    if blamed is None or blamed.nodes:
        return blamed.nodes if blamed else frozenset()
    sends = links["node"].to_pylist()
    return frozenset(sends[port] for port in blamed.ports)


def _cells(nodes: pa.Table, links: pa.Table, apart: frozenset[int]) -> tuple[list[_Cell], NDArray[np.int64], bool]:
    """Cells from the lowest tier up, and the cell of every node.

    The last value says whether neighbours share a cell.
    """
    names, roles, tiers, kinds = (nodes[name].to_pylist() for name in ("name", "role", "tier", "kind"))
    peers: defaultdict[int, list[int]] = defaultdict(list)
    for node, peer in zip(links["node"].to_pylist(), links["peer"].to_pylist(), strict=True):
        peers[node].append(peer)
    cell_of = np.zeros(len(names), np.int64)
    cells: list[_Cell] = []
    is_grouped = False
    for tier in sorted(set(tiers)):
        groups: defaultdict[Any, list[int]] = defaultdict(list)
        for node in (node for node, own in enumerate(tiers) if own == tier):
            alike = tuple(sorted(set(peers[node]))) if kinds[node] == "host" else node
            groups[alike, node in apart].append(node)
        each = -(-len(groups) // MOST_CELLS)
        is_grouped |= each > 1
        merged: list[list[int]] = []
        room = 0  # for groups in the last cell
        for part in groups.values():
            if room and part[0] not in apart:
                merged[-1] += part
                room -= 1
            else:
                merged.append(list(part))
                room = 0 if part[0] in apart else each - 1
        for place, members in enumerate(merged):
            cell_of[members] = len(cells)
            first, last = names[members[0]], names[members[-1]]
            several = f"{plural_role(roles[members[0]], len(members))} ({first} \u2026 {last})"
            name = first if len(members) == 1 else several
            cells.append(_Cell(name=name, count=len(members), x=(place + 0.5) / len(merged), tier=tier))
    return cells, cell_of, is_grouped


def _link(one: _Cell, other: _Cell, y_px: dict[int, int], height_px: int) -> str:
    """SVG path of a link, from its lower cell.

    Between cells of one tier it is an arc.
    """
    x, y = SPAN * one.x, SPAN * y_px[one.tier] / height_px
    u, v = SPAN * other.x, SPAN * (y_px[other.tier] + _CELL_PX) / height_px
    if one.tier == other.tier:
        peak = y - SPAN * 22 / height_px
        return f"M{x:.0f} {y:.0f}Q{(x + u) / 2:.0f} {peak:.0f} {u:.0f} {y:.0f}"
    return f"M{x:.0f} {y:.0f}L{u:.0f} {v:.0f}"


def _stroke(share: float) -> str:
    step = round(min(share, 1.0) * (RAMP_STEPS - 1))
    return f'class="l u{step}" stroke-width="{0.7 + 2.8 * min(share, 1.0) ** 2:.1f}"'


def _rect(cell: _Cell, count: int, y_px: dict[int, int], height_px: int, *, is_blamed: bool) -> str:
    width = min(0.86 / count, 0.11) * SPAN
    x, y = SPAN * cell.x - width / 2, SPAN * y_px[cell.tier] / height_px
    return (
        f'<rect class="cell t{min(cell.tier, 4)}{" blame" if is_blamed else ""}" x="{x:.1f}" y="{y:.1f}" '
        f'width="{width:.1f}" height="{SPAN * _CELL_PX / height_px:.1f}"><title>{escape(cell.name)}</title></rect>'
    )


def _label(cell: _Cell, count: int, y_px: dict[int, int]) -> str:
    if count > _NUMBERED_CELLS:
        return ""
    text = cell.name.partition(" (")[0]  # of several: how many
    if count > _NAMED_CELLS:
        text = text.lstrip(ascii_letters) if cell.count == 1 else f"\u00d7{cell.count}"
    return (
        f'<span class="cl" style="left:{100 * cell.x:.2f}%;top:{y_px[cell.tier]}px;width:{100 / count:.2f}%">'
        f"{escape(text)}</span>"
    )


def _row_name(nodes: pa.Table, tier: int, y_px: int) -> str:
    tiers, roles = nodes["tier"].to_numpy(), nodes["role"].to_pylist()
    members = np.flatnonzero(tiers == tier)
    words = plural_role(roles[int(members[0])], len(members))
    return f'<span class="row" style="top:{y_px - 19}px">{escape(words)}</span>'


def _hot(used: NDArray[np.float64], links: pa.Table) -> list[Hot]:
    """The busiest directions, at most one for each link."""
    found: list[Hot] = []
    seen: set[str] = set()
    names = links["link"].to_pylist()
    for row in np.argsort(-used, kind="stable").tolist():
        if len(found) == BADGES or used[row] <= 0:
            break
        if names[row] not in seen:
            seen.add(names[row])
            found.append(Hot(row=row, badge=len(found) + 1))
    return found


def _blamed_name(
    name: str, own: list[_Cell], ends: list[tuple[int, int]], cells: list[_Cell], y_px: dict[int, int]
) -> str:
    """The name of the culprit on the picture.

    It stands below its first server or switch, or beside the upper end of its first line.
    """
    if own:
        x, y = own[0].x, float(y_px[own[0].tier] + _CELL_PX + 11)
    elif ends:
        low, high = sorted((cells[cell] for cell in ends[0]), key=lambda cell: cell.tier)
        start_px, end_px = y_px[low.tier], y_px[high.tier] + _CELL_PX
        x, y = low.x + (high.x - low.x) * _AT_THE_TOP, start_px + (end_px - start_px) * _AT_THE_TOP
    else:
        return ""
    side = f"left:{100 * x:.2f}%" if x < _NEAR_AN_EDGE else f"right:{100 * (1 - x):.2f}%"
    middle = "" if x < _NEAR_AN_EDGE or x > 1 - _NEAR_AN_EDGE else " middle"
    if middle:
        side = f"left:{100 * x:.2f}%"
    return f'<span class="blamed{middle}" style="{side};top:{y:.0f}px">{escape(name)}, {TO_BLAME}</span>'


def _badges(hot: list[tuple[int, int, int]], cells: list[_Cell], y_px: dict[int, int]) -> str:
    """Numbers on the lines.

    Each is at another height, so that neighbours do not hide each other.
    """
    numbers: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for one, other, badge in hot:
        low, high = sorted((one, other), key=lambda cell: cells[cell].tier)
        numbers[low, high].append(badge)
    made = []
    for (low, high), found in numbers.items():
        at = 0.36 + 0.1 * (found[0] - 1)  # above the name of the lower row
        start_px, end_px = y_px[cells[low].tier], y_px[cells[high].tier] + _CELL_PX
        x, y = cells[low].x + (cells[high].x - cells[low].x) * at, start_px + (end_px - start_px) * at
        text = ", ".join(str(badge) for badge in found)
        made.append(f'<span class="badge" style="left:{100 * x:.2f}%;top:{y:.0f}px">{text}</span>')
    return "".join(made)
