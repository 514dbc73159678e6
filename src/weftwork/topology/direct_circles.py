"""Places of the parts of networks that have no lattice.

Groups stand on a circle; cubes stand below the optical switches that join them; a network without groups stands on a
circle, or around one of its switches. Leaves out: lattices (`weftwork.topology.direct_picture`), and ink.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray

from weftwork.base.grammar import plural
from weftwork.spec.fabric import SWITCH, Fabric
from weftwork.spec.fabric_direct import DirectNetwork, OpticalSwitches
from weftwork.topology.direct_sketch import (
    Mark,
    Panel,
    Sketch,
    SketchLine,
    counts_of,
    host_counts,
    joined,
    owners,
    shown,
    span_words,
)
from weftwork.topology.ink import Lost

__all__ = ["circle_sketch", "cubes_sketch", "groups_sketch"]

# chosen: what stays readable on a page of some 1,300 pixels
MOST_GROUPS, MOST_WHOLE_GROUPS, MOST_IN_WHOLE_GROUP, MOST_IN_ONE_GROUP = 20, 9, 8, 12
MOST_ON_CIRCLE, MOST_NEIGHBOURS = 40, 32
MOST_CUBES, MOST_OPTICAL = 8, 4
BOX = (82.0, 34.0)
SMALL = (64.0, 24.0)
TALL = 48.0  # of a box with three lines of text
GAP = 26.0
MARGIN = 12.0


def _switches(fabric: Fabric) -> NDArray[np.int64]:
    return np.flatnonzero(fabric.node_kind == SWITCH)


def _on_circle(count: int, centre: tuple[float, float], radius: float) -> list[tuple[float, float]]:
    """Points of a circle, clockwise from its top."""
    angles = (2 * pi * number / max(count, 1) - pi / 2 for number in range(count))
    return [(centre[0] + radius * cos(angle), centre[1] + radius * sin(angle)) for angle in angles]


def _straight(one: Mark, other: Mark) -> str:
    return f"M{one.x:.1f} {one.y:.1f}L{other.x:.1f} {other.y:.1f}"


def _join(fabric: Fabric, sketch: Sketch, marks: Sequence[Mark]) -> None:
    """Add marks, and one line for all links of a dimension between two of them."""
    for (one, other, _), links in joined(fabric, owners(fabric, marks)).items():
        is_faint = marks[one].is_gap or marks[other].is_gap
        sketch.lines.append(SketchLine(path=_straight(marks[one], marks[other]), links=links, is_faint=is_faint))
    sketch.marks += marks


def _gap_words(count: int, word: tuple[str, str]) -> tuple[str, ...]:
    return (f"… {count:,} {word[count > 1]}",)


def _groups(fabric: Fabric) -> tuple[list[int], list[NDArray[np.int64]]]:
    """Numbers of the groups, and the switches of each."""
    nodes = _switches(fabric)
    group = np.zeros(len(fabric.node_names), np.int32) if fabric.node_pod is None else fabric.node_pod
    numbers = np.unique(group[nodes]).tolist()
    return numbers, [nodes[group[nodes] == number] for number in numbers]


# Groups


def groups_sketch(fabric: Fabric, lost: Lost) -> Sketch:
    """Groups on a circle: with all their switches where these are few, else one group beside it."""
    pods, members = _groups(fabric)
    sketch = Sketch()
    largest = max(len(one) for one in members)
    if len(members) <= MOST_WHOLE_GROUPS and largest <= MOST_IN_WHOLE_GROUP:
        _whole_groups(fabric, sketch, members, pods)
    else:
        _group_boxes(fabric, sketch, members, pods, lost)
    sketch.notes = [*counts_of(fabric), *sketch.notes]
    return sketch


def _whole_groups(fabric: Fabric, sketch: Sketch, members: Sequence[NDArray[np.int64]], pods: Sequence[int]) -> None:
    largest = max(len(one) for one in members)
    inner = max(46.0, largest * (SMALL[0] + 8) / (2 * pi))
    ground = inner + 42
    radius = max(ground * 1.15, len(members) * (2 * ground + 16) / (2 * pi))
    centre = (radius + ground + 40, radius + ground + 20)
    marks: list[Mark] = []
    for pod, nodes, (x, y) in zip(
        pods, members, _on_circle(len(members), centre, radius), strict=True
    ):  # fmt: skip
        out = (ground + 18) / radius
        title_at = (x + (x - centre[0]) * out, y + (y - centre[1]) * (ground + 10) / radius + 4)
        sketch.panels.append(Panel(x=x - ground, y=y - ground, width=2 * ground, height=2 * ground,
                                   title=f"group {pod}", is_round=True, title_at=title_at))  # fmt: skip
        marks += _inside_group(fabric, nodes, (x, y), inner)
    _join(fabric, sketch, marks)
    sketch.width, sketch.height = 2 * centre[0], 2 * centre[1]


def _inside_group(fabric: Fabric, nodes: NDArray[np.int64], centre: tuple[float, float], radius: float) -> list[Mark]:
    """Switches of a group on a circle; those of different tiers in rows."""
    tiers = np.unique(fabric.node_tier[nodes])
    if len(tiers) == 1:
        places = _on_circle(len(nodes), centre, radius)
    else:
        row = {int(tier): number for number, tier in enumerate(tiers[::-1])}
        places = []
        for node in nodes.tolist():
            mates = nodes[fabric.node_tier[nodes] == fabric.node_tier[node]].tolist()
            pitch = min(SMALL[0] + 6, 2 * radius / max(len(mates) - 1, 1))
            x = centre[0] + (mates.index(node) - (len(mates) - 1) / 2) * pitch
            y = centre[1] + (row[int(fabric.node_tier[node])] - (len(tiers) - 1) / 2) * radius
            places.append((x, y))
    return [
        Mark(nodes=(node,), x=x, y=y, width=SMALL[0], height=SMALL[1], label=(fabric.node_names[node],))
        for node, (x, y) in zip(nodes.tolist(), places, strict=True)
    ]


def _group_boxes(
    fabric: Fabric, sketch: Sketch, members: Sequence[NDArray[np.int64]], pods: Sequence[int], lost: Lost
) -> None:
    """Every group as a box on a circle, and beside it one group with its switches."""
    struck = [number for number, nodes in enumerate(members) if lost.nodes[nodes].any()]
    slots = shown(len(members), MOST_GROUPS, struck)
    radius = max(150.0, len(slots) * (BOX[0] + 16) / (2 * pi))
    centre = (radius + BOX[0] / 2, radius + BOX[1] / 2)
    marks = []
    for run, (x, y) in zip(slots, _on_circle(len(slots), centre, radius), strict=True):
        nodes = tuple(int(node) for number in run for node in members[number])
        is_gap = len(run) > 1
        label = (
            _gap_words(len(run), ("group", "groups"))
            if is_gap
            else (f"group {pods[run[0]]}", plural(len(nodes), "switch", "switches"))
        )
        marks.append(Mark(nodes=nodes, x=x, y=y, width=BOX[0], height=BOX[1], label=label, is_gap=is_gap))
    _join(fabric, sketch, marks)
    chosen = struck[0] if struck else 0
    right = 2 * centre[0] + 2 * GAP
    wide, high = _one_group(fabric, sketch, members[chosen], pods[chosen], (right, 20.0), lost)
    sketch.width, sketch.height = right + wide, max(2 * centre[1], high + 20)
    if len(slots) < len(members):
        drawn = sum(len(run) == 1 for run in slots)
        sketch.notes.append(f"drawn: {drawn} of {plural(len(members), 'group')}, and the inside of one")
    else:
        sketch.notes.append("drawn: the inside of one group")


def _one_group(
    fabric: Fabric, sketch: Sketch, nodes: NDArray[np.int64], pod: int, corner: tuple[float, float], lost: Lost
) -> tuple[float, float]:
    """The switches of one group on a panel, with their hosts and their links to other groups; returns its size."""
    hosts = host_counts(fabric)
    inside = np.zeros(len(fabric.node_names), np.bool_)
    inside[nodes] = True
    a, b = fabric.links["a"], fabric.links["b"]
    leaves_group = (inside[a] != inside[b]) & (fabric.node_kind[a] == SWITCH) & (fabric.node_kind[b] == SWITCH)
    ends = np.concatenate([a[leaves_group], b[leaves_group]])
    outside = np.bincount(ends, minlength=len(inside))
    tiers = np.unique(fabric.node_tier[nodes])[::-1]
    rows: list[list[Mark]] = []
    most = MOST_IN_ONE_GROUP if len(tiers) == 1 else MOST_IN_ONE_GROUP // 2
    for tier in tiers.tolist():
        mates = nodes[fabric.node_tier[nodes] == tier]
        marked = np.flatnonzero(lost.nodes[mates]).tolist()
        rows.append([])
        for run in shown(len(mates), most, marked):
            members = mates[run]
            if len(run) > 1:
                label = _gap_words(len(run), ("switch", "switches"))
            else:
                told = [span_words(hosts[members], "host") if hosts[members[0]] else "",
                        f"{outside[members[0]]:,} outside" if outside[members[0]] else ""]  # fmt: skip
                label = (fabric.node_names[members[0]], *(text for text in told if text))
            rows[-1].append(
                Mark(nodes=tuple(members.tolist()), x=0, y=0, width=BOX[0], height=TALL, label=label,
                     is_gap=len(run) > 1)
            )  # fmt: skip
    if len(rows) == 1:
        radius = max(100.0, len(rows[0]) * (BOX[0] + 32) / (2 * pi))
        wide, high = 2 * radius + BOX[0] + 2 * MARGIN, 2 * radius + TALL + 2 * MARGIN
        middle = (corner[0] + wide / 2, corner[1] + high / 2)
        places = [_on_circle(len(rows[0]), middle, radius)]
    else:
        pitch, step = BOX[0] + 12, 150.0
        wide = max(len(row) for row in rows) * pitch + 2 * MARGIN
        high = (len(rows) - 1) * step + TALL + 2 * MARGIN
        places = [
            [
                (corner[0] + wide / 2 + (number - (len(row) - 1) / 2) * pitch,
                 corner[1] + MARGIN + TALL / 2 + step * index)
                for number in range(len(row))
            ]
            for index, row in enumerate(rows)
        ]  # fmt: skip
    sketch.panels.append(Panel(x=corner[0], y=corner[1], width=wide, height=high, title=f"inside group {pod}"))
    marks = [
        Mark(nodes=mark.nodes, x=x, y=y, width=mark.width, height=mark.height, label=mark.label, is_gap=mark.is_gap)
        for row, line in zip(rows, places, strict=True)
        for mark, (x, y) in zip(row, line, strict=True)
    ]
    _join(fabric, sketch, marks)
    return wide, high


# Cubes behind optical switches


def cubes_sketch(fabric: Fabric, direct: DirectNetwork, optical: OpticalSwitches, lost: Lost) -> Sketch:
    """Cubes as boxes, and above them the optical switches through which their links go."""
    pods, members = _groups(fabric)
    struck = [number for number, cube in enumerate(members) if lost.nodes[cube].any()]
    sketch = Sketch()
    slots = shown(len(members), MOST_CUBES, struck)
    row_y, cube_y = 20.0 + TALL / 2, 300.0
    through = optical.link_switch
    dimension = np.full(len(optical.names), -1, np.int64)  # of each optical switch: that of its circuits
    used = through >= 0
    dimension[through[used]] = direct.link_dimension[used]
    tops: list[tuple[list[int], Mark]] = []
    pitch = BOX[0] + 14
    x = BOX[0] / 2
    for word_at in np.unique(dimension).tolist():
        row = np.flatnonzero(dimension == word_at)
        word = "unused" if word_at < 0 else direct.dimensions[word_at]
        first = x
        for run in shown(len(row), MOST_OPTICAL, []):
            numbers = row[run].tolist()
            circuits = int(np.isin(through, numbers).sum())
            told = (
                (f"… {len(run)} more", f"{plural(circuits, 'circuit')}")
                if len(run) > 1
                else (optical.names[numbers[0]], plural(circuits, "circuit"))
            )
            mark = Mark(nodes=(), x=x, y=row_y, width=BOX[0], height=BOX[1], label=told, is_gap=len(run) > 1,
                        is_optical=True)  # fmt: skip
            tops.append((numbers, mark))
            x += pitch
        sketch.panels.append(
            Panel(x=first - BOX[0] / 2 - 8, y=row_y - BOX[1] / 2 - 8, width=x - first - 14 + 16, height=BOX[1] + 16,
                  title=f"{plural(len(row), 'optical switch', 'optical switches')}: {word}")
        )  # fmt: skip
        x += GAP
    wide = max(x - GAP - pitch + BOX[0] / 2, len(slots) * 130.0)
    cubes = []
    for number, run in enumerate(slots):
        inside = tuple(int(node) for cube in run for node in members[cube])
        label: tuple[str, ...] = (
            _gap_words(len(run), ("cube", "cubes"))
            if len(run) > 1
            else (f"cube {pods[run[0]]}", _cube_words(direct.coordinates, members[run[0]]))
        )
        cubes.append(
            Mark(nodes=inside, x=wide * (number + 0.5) / len(slots), y=cube_y, width=112.0, height=46.0,
                 label=label, is_gap=len(run) > 1)
        )  # fmt: skip
    owner = owners(fabric, cubes)
    for numbers, top in tops:
        mine = np.flatnonzero(np.isin(through, numbers))
        ends = np.stack([owner[fabric.links["a"][mine]], owner[fabric.links["b"][mine]]])
        for cube in np.unique(ends).tolist():
            links = tuple(mine[(ends == cube).any(axis=0)].tolist())
            if cube >= 0 and links:
                low = cubes[cube]
                path = f"M{low.x:.1f} {low.y - low.height / 2:.1f}L{top.x:.1f} {top.y + top.height / 2:.1f}"
                sketch.lines.append(SketchLine(path=path, links=links, is_faint=low.is_gap or top.is_gap))
    sketch.marks = [*(mark for _, mark in tops), *cubes]
    sketch.width, sketch.height = wide, cube_y + 30
    copper = int((direct.link_dimension >= 0).sum()) - int(used.sum())
    sides = " x ".join(str(side) for side in direct.sides)
    switches = plural(len(optical.names), "optical switch", "optical switches")
    switches += f" of {plural(optical.ports, 'port')}"
    sketch.notes = [
        *counts_of(fabric),
        f"{sides} in all; {copper:,} links stay in their cubes, {int(used.sum()):,} go through {switches}",
    ]
    if len(slots) < len(members):
        sketch.notes.append(f"drawn: {sum(len(run) == 1 for run in slots)} of {plural(len(members), 'cube')}")
    return sketch


def _cube_words(coordinates: NDArray[np.int32], nodes: NDArray[np.int64]) -> str:
    """Sides of a cube, such as ``4 x 4 x 4``."""
    at = coordinates[nodes]
    if not at.shape[1] or (at < 0).any():
        return plural(len(nodes), "switch", "switches")
    return " x ".join(str(len(np.unique(at[:, axis]))) for axis in range(at.shape[1]))


# Networks without groups


def circle_sketch(fabric: Fabric, lost: Lost) -> Sketch:
    """All switches on a circle, or, of many, one switch and its neighbours."""
    nodes = _switches(fabric)
    return _circle(fabric, nodes) if len(nodes) <= MOST_ON_CIRCLE else _around(fabric, nodes, lost)


def _circle(fabric: Fabric, nodes: NDArray[np.int64]) -> Sketch:
    hosts = host_counts(fabric)
    radius = max(120.0, len(nodes) * (BOX[0] + 8) / (2 * pi))
    centre = (radius + BOX[0] / 2, radius + BOX[1] / 2)
    marks = [
        Mark(nodes=(node,), x=x, y=y, width=BOX[0], height=BOX[1],
             label=(fabric.node_names[node], *([plural(int(hosts[node]), "host")] if hosts[node] else [])))
        for node, (x, y) in zip(nodes.tolist(), _on_circle(len(nodes), centre, radius), strict=True)
    ]  # fmt: skip
    sketch = Sketch(width=2 * centre[0], height=2 * centre[1])
    _join(fabric, sketch, marks)
    sketch.notes = counts_of(fabric)
    return sketch


def _around(fabric: Fabric, nodes: NDArray[np.int64], lost: Lost) -> Sketch:
    """One switch in the middle, its neighbours around it, and the numbers of those farther away."""
    gone = nodes[lost.nodes[nodes]]
    middle = int(gone[0]) if len(gone) else int(nodes[0])
    distance = _distances(fabric, middle)
    near = nodes[distance[nodes] == 1]
    slots = shown(len(near), MOST_NEIGHBOURS, np.flatnonzero(lost.nodes[near]).tolist())
    radius = max(150.0, len(slots) * (BOX[0] + 8) / (2 * pi))
    centre = (radius + BOX[0] / 2, radius + BOX[1] / 2)
    hosts = host_counts(fabric)

    def mark(members: Sequence[int], x: float, y: float) -> Mark:
        label = (
            _gap_words(len(members), ("switch", "switches"))
            if len(members) > 1
            else (fabric.node_names[members[0]], plural(int(hosts[members[0]]), "host"))
        )
        return Mark(nodes=tuple(members), x=x, y=y, width=BOX[0], height=BOX[1], label=label, is_gap=len(members) > 1)

    marks = [mark([middle], *centre)]
    places = _on_circle(len(slots), centre, radius)
    marks += [mark(near[run].tolist(), x, y) for run, (x, y) in zip(slots, places, strict=True)]
    sketch = Sketch(width=2 * centre[0], height=2 * centre[1])
    _join(fabric, sketch, marks)
    far = np.bincount(distance[nodes][distance[nodes] > 1])
    told = [f"{count:,} at distance {steps}" for steps, count in enumerate(far.tolist()) if count]
    drawn = 1 + sum(len(run) == 1 for run in slots)
    sketch.notes = [
        *counts_of(fabric),
        f"drawn: {fabric.node_names[middle]} and its neighbours, {drawn} of {plural(len(nodes), 'switch', 'switches')}",
        *([f"farther away: {', '.join(told)}"] if told else []),
    ]
    return sketch


def _distances(fabric: Fabric, start: int) -> NDArray[np.int64]:
    """Links from a switch to every other switch; -1: no way."""
    ports = fabric.ports
    distance = np.full(len(fabric.node_names), -1, np.int64)
    distance[start] = 0
    front, steps = np.array([start]), 0
    while len(front):
        steps += 1
        reached = np.isin(ports.node, front)
        peers = np.unique(ports.node[ports.peer[reached]])
        front = peers[(distance[peers] < 0) & (fabric.node_kind[peers] == SWITCH)]
        distance[front] = steps
    return distance
