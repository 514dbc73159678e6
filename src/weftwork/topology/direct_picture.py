"""Choose the parts of a direct network's picture, and their places.

A lattice is drawn by its coordinates: two dimensions as a grid, more as layers side by side. Cubes behind optical
switches are boxes below a row of optical switches. Groups stand on a circle, and one group is drawn larger. A network
without groups stands on a circle, or as one switch with its neighbours. Large networks are abridged and say so.
Leaves out: ink, which is in `weftwork.topology.direct_draw`.
"""

from __future__ import annotations

from collections import defaultdict
from math import prod

import numpy as np
from numpy.typing import NDArray

from weftwork.base.grammar import plural
from weftwork.spec.fabric import SWITCH, Fabric
from weftwork.spec.fabric_direct import DirectNetwork
from weftwork.topology.direct_circles import circle_sketch, cubes_sketch, groups_sketch
from weftwork.topology.direct_sketch import Mark, Panel, Sketch, SketchLine, counts_of, owners, shown
from weftwork.topology.ink import Lost

__all__ = ["sketch_of"]

# chosen: what stays readable on a page of some 1,300 pixels
MOST_IN_ROW, MOST_IN_LAYER_ROW, MOST_LAYERS, LAYERS_IN_ROW = 8, 4, 8, 4
BOX, PITCH = (80.0, 38.0), (118.0, 88.0)
SMALL_BOX, SMALL_PITCH = (58.0, 30.0), (80.0, 58.0)
STUB, SLANT = 14.0, 10.0


def sketch_of(fabric: Fabric, lost: Lost) -> Sketch | None:
    """The picture of a direct network; None if the fabric is none, or if its links all lead to hosts.

    Parameters
    ----------
    fabric : any
    lost : nodes and links that stay visible where the picture is abridged
    """
    direct = fabric.direct
    if direct is None or direct.hosts_forward:
        return None
    groups = 0 if fabric.node_pod is None else len(np.unique(fabric.node_pod[fabric.node_kind == SWITCH]))
    if direct.optical is not None and groups:
        return cubes_sketch(fabric, direct, direct.optical, lost)
    if _is_lattice(fabric, direct):
        return _lattice(fabric, direct, lost)
    return groups_sketch(fabric, lost) if groups > 1 else circle_sketch(fabric, lost)


def _is_lattice(fabric: Fabric, direct: DirectNetwork) -> bool:
    """Whether the dimensions of links are axes, and each switch has its own place on them."""
    if not direct.axes or not set(direct.dimensions) <= set(direct.axes):
        return False
    at = direct.coordinates[fabric.node_kind == SWITCH]
    return bool((at >= 0).all()) and len(np.unique(at, axis=0)) == len(at)


def _lattice(fabric: Fabric, direct: DirectNetwork, lost: Lost) -> Sketch:
    nodes = np.flatnonzero(fabric.node_kind == SWITCH)
    at = direct.coordinates[nodes].astype(np.int64)
    sides = [*direct.sides, 1][: max(2, len(direct.sides))]
    at = np.pad(at, ((0, 0), (0, len(sides) - at.shape[1])))
    depth = tuple(sides[2:])
    layer = np.ravel_multi_index(tuple(at[:, 2:].T), depth) if depth else np.zeros(len(at), np.int64)
    place = np.column_stack([at[:, :2], layer])
    is_flat = not depth
    most = (MOST_IN_ROW, MOST_IN_ROW) if is_flat else (MOST_IN_LAYER_ROW, MOST_IN_LAYER_ROW)
    gone = place[lost.nodes[nodes]]
    counts = (sides[0], sides[1], prod(depth))
    slots = [
        shown(count, limit, np.unique(gone[:, axis]).tolist())
        for axis, (count, limit) in enumerate(zip(counts, (*most, MOST_LAYERS), strict=True))
    ]
    slot_of = [np.full(count, -1) for count in counts]
    for axis, runs_of_axis in enumerate(slots):
        for number, run in enumerate(runs_of_axis):
            if len(run) == 1:
                slot_of[axis][run[0]] = number
    box, pitch = (BOX, PITCH) if is_flat else (SMALL_BOX, SMALL_PITCH)
    sketch = Sketch()
    corner = _layers(sketch, direct, slots, pitch, depth)
    slot = np.column_stack([slot_of[axis][place[:, axis]] for axis in range(3)])
    for row in np.flatnonzero((slot >= 0).all(axis=1)).tolist():
        left, top = corner[int(slot[row, 2])]
        text = ", ".join(str(value) for value in direct.coordinates[nodes[row]].tolist())
        sketch.marks.append(
            Mark(
                nodes=(int(nodes[row]),), x=left + pitch[0] * (slot[row, 0] + 0.5),
                y=top + pitch[1] * (slot[row, 1] + 0.5), width=box[0], height=box[1],
                label=(fabric.node_names[nodes[row]], f"({text})"),
            )
        )  # fmt: skip
    for left, top in corner.values():
        for number, run in enumerate(slots[0]):
            if len(run) > 1:
                y = top + pitch[1] * len(slots[1]) / 2
                sketch.texts.append((left + pitch[0] * (number + 0.5), y, 12, f"… {len(run)} more"))
        for number, run in enumerate(slots[1]):
            if len(run) > 1:
                x = left + pitch[0] * len(slots[0]) / 2
                sketch.texts.append((x, top + pitch[1] * (number + 0.5), 12, f"… {plural(len(run), 'more row')}"))
    _strokes(fabric, direct, sketch, place, nodes)
    sketch.notes = counts_of(fabric)
    if any(line.dot for line in sketch.lines):
        sketch.notes.append("a stub with a dot closes a ring")
    if not is_flat:
        sketch.notes.append("a slanted stub leads to another layer")
    if len(sketch.marks) < len(nodes):
        sketch.notes.append(f"drawn: {len(sketch.marks):,} of {plural(len(nodes), 'switch', 'switches')}")
    return sketch


def _layers(
    sketch: Sketch, direct: DirectNetwork, slots: list[list[list[int]]], pitch: tuple[float, float],
    depth: tuple[int, ...],
) -> dict[int, tuple[float, float]]:  # fmt: skip
    """Corners of the visible layers, by slot; adds their panels."""
    margin = 2 * STUB
    wide, high = pitch[0] * len(slots[0]), pitch[1] * len(slots[1])
    corner: dict[int, tuple[float, float]] = {}
    for number, run in enumerate(slots[2]):
        left = (number % LAYERS_IN_ROW) * (wide + 2 * margin)
        top = (number // LAYERS_IN_ROW) * (high + 2 * margin + 20) + margin
        if depth:
            words = direct.axes[2:]
            values = np.unravel_index(run[0], depth)
            title = ", ".join(f"{word} = {value}" for word, value in zip(words, values, strict=True))
            title = title if len(run) == 1 else f"… {plural(len(run), 'more layer')}"
            panel = Panel(x=left, y=top, width=wide + margin, height=high + margin, title=title)
            sketch.panels.append(panel)
        if len(run) == 1:
            corner[number] = (left + margin / 2, top + margin / 2)
        sketch.width = max(sketch.width, left + wide + margin)
        sketch.height = max(sketch.height, top + high + margin)
    return corner


def _strokes(
    fabric: Fabric, direct: DirectNetwork, sketch: Sketch, place: NDArray[np.int64], nodes: NDArray[np.int64]
) -> None:
    """Lines within a layer, and stubs where a ring closes or a link leaves the layer or leads to a gap."""
    owner = owners(fabric, sketch.marks)
    at = np.full((len(fabric.node_names), 3), -1, np.int64)
    at[nodes] = place
    a, b = fabric.links["a"].astype(np.int64), fabric.links["b"].astype(np.int64)
    groups: defaultdict[tuple[int, int, int, bool], list[int]] = defaultdict(list)
    seen = np.flatnonzero((direct.link_dimension >= 0) & ((owner[a] >= 0) | (owner[b] >= 0)))
    for link in seen.tolist():
        key = (int(a[link]), int(b[link]), int(direct.link_dimension[link]), bool(direct.link_wraps[link]))
        groups[key].append(link)
    stubs: defaultdict[tuple[int, int, int, bool, bool], list[int]] = defaultdict(list)
    for (one, other, dimension, wraps), links in groups.items():
        axis = min(direct.axes.index(direct.dimensions[dimension]), 2)
        is_seen = owner[one] >= 0 and owner[other] >= 0
        if axis < 2 and is_seen and not wraps and at[one, 2] == at[other, 2]:
            sketch.lines.append(_inside(sketch.marks[owner[one]], sketch.marks[owner[other]], axis, links))
            continue
        rises = bool(at[one, axis] < at[other, axis])
        for node, is_low in ((one, rises), (other, not rises)):
            far = abs(int(at[one, axis] - at[other, axis]))
            if owner[node] >= 0 and (axis == 2 or wraps or far == 1):
                outward = is_low != wraps  # towards higher places, or out of the lattice where the ring closes
                stubs[int(owner[node]), dimension, int(outward), wraps, not is_seen and not wraps].extend(links)
    for (mark, dimension, outwards, closes, is_faint), found in stubs.items():
        axis = min(direct.axes.index(direct.dimensions[dimension]), 2)
        sketch.lines.append(_stub(sketch.marks[mark], axis, outward=bool(outwards), wraps=closes,
                                  is_faint=is_faint and axis < 2, links=found))  # fmt: skip


def _inside(one: Mark, other: Mark, axis: int, links: list[int]) -> SketchLine:
    """A line between two marks of a row or column: straight between neighbours, else an arc."""
    first, last = sorted((one, other), key=lambda mark: (mark.x, mark.y))
    span = abs(other.x - one.x) / (one.width * 1.4) if axis == 0 else abs(other.y - one.y) / (one.height * 2.2)
    if axis == 0:
        start, end = (first.x + first.width / 2, first.y), (last.x - last.width / 2, last.y)
        if span > 1.3:
            shift = first.width * 0.04 * span
            start = (first.x + first.width / 2 - shift, first.y - first.height / 2)
            end = (last.x - last.width / 2 + shift, last.y - last.height / 2)
    else:
        start, end = (first.x, first.y + first.height / 2), (last.x, last.y - last.height / 2)
        if span > 1.3:
            shift = first.height * 0.05 * span
            start = (first.x + first.width / 2, first.y + first.height / 2 - shift)
            end = (last.x + last.width / 2, last.y - last.height / 2 + shift)
    path = f"M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"
    if span > 1.3:
        bulge = (12 if axis == 0 else 9) * span * first.height / BOX[1]
        bend = ((start[0] + end[0]) / 2, start[1] - bulge) if axis == 0 else (start[0] + bulge, (start[1] + end[1]) / 2)
        path = f"M{start[0]:.1f} {start[1]:.1f}Q{bend[0]:.1f} {bend[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    return SketchLine(path=path, links=tuple(links))


def _stub(mark: Mark, axis: int, *, outward: bool, wraps: bool, is_faint: bool, links: list[int]) -> SketchLine:
    """A short line that leaves a mark: to the right or down if ``outward``, slanted to another layer."""
    sign = 1 if outward else -1
    if axis == 0:
        start, step = (mark.x + sign * mark.width / 2, mark.y), (sign * STUB, 0.0)
    elif axis == 1:
        start, step = (mark.x, mark.y + sign * mark.height / 2), (0.0, sign * STUB)
    else:
        start = (mark.x + sign * (mark.width / 2 - 4), mark.y - sign * mark.height / 2)
        step = (sign * SLANT, -sign * SLANT)
    end = (start[0] + step[0], start[1] + step[1])
    path = f"M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"
    return SketchLine(path=path, links=tuple(links), is_faint=is_faint, dot=end if wraps else None)
