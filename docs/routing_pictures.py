"""Pictures of the pages of routing: a small network, a path, and the virtual channel of each hop.

    python docs/routing_pictures.py

Writes ``routing/NAME.svg`` beside this file. The networks are those of `weftwork.topology`. Each hop has to be a route
of the routing, and its virtual channel is that of the rule of channels. So a picture shows what the engines do.
Leaves out: hosts. A filled circle is the switch of the sender, and a ring marks the switch of the receiver.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.findings import Findings
from weftwork.report.figures.cards import (
    BLUE,
    CARD,
    DARK_STYLE,
    FONT,
    GREEN,
    GRID,
    INK,
    PINK,
    QUIET,
    VERMILION,
)  # fmt: skip
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.build import fabric_of
from weftwork.topology.layers import layers_of
from weftwork.topology.routing import routes
from weftwork.topology.routing_plan import planned_routing
from weftwork.topology.virtual_channels import channel_rule, link_kinds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric

Point = tuple[float, float]
CHANNELS: Final = (BLUE, VERMILION, GREEN, PINK)
RATE_BPS: Final = 100_000_000_000
RADIUS, BADGE, STUB = 12.0, 9.0, 46.0
WIDTH, TOP, LEGEND = 780, 92, 500  # of the legend: where it begins


@dataclass(frozen=True, kw_only=True, slots=True)
class Leg:
    """A part of a way: its further switches, whether a turn begins it, and its target where this is not the last."""

    switches: tuple[str, ...]
    turns: bool = False
    target: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """One picture.

    Attributes
    ----------
    name : of the routing, and of the file
    title, text : above the network
    fabric, places : the network, and where its switches are
    start : switch of the sender
    legs : of the path
    others : paths in grey, as switches
    words : what is said of a switch beside it
    notes : lines below the legend
    wraps : whether links that close rings are two stubs at opposite edges
    down : links that have failed
    regions : circles around groups, with their names
    labels : further words
    height : of the picture
    paths : of k-shortest
    """

    name: str
    title: str
    text: str
    fabric: Fabric
    places: Mapping[str, Point]
    start: str
    legs: tuple[Leg, ...]
    others: tuple[tuple[str, ...], ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    wraps: bool = False
    down: tuple[tuple[str, str], ...] = ()
    regions: tuple[tuple[Point, float, str, Point], ...] = ()
    labels: tuple[tuple[Point, str], ...] = ()
    height: int = 420
    paths: int | None = None


# The way, checked against routes, and its channels


def _ports(fabric: Fabric, here: str, there: str) -> list[int]:
    """Ports of one switch to another."""
    node, peer = fabric.node_names.index(here), fabric.node_names.index(there)
    ports = fabric.ports
    own = np.arange(ports.base[node], ports.base[node + 1])
    return [int(port) for port in own if ports.node[ports.peer[port]] == peer]


def _up(picture: Picture) -> NDArray[np.bool_]:
    up = np.ones(len(picture.fabric.links), np.bool_)
    for here, there in picture.down:
        for port in _ports(picture.fabric, here, there):
            up[picture.fabric.ports.link[port]] = False
    return up


def hops(picture: Picture) -> list[tuple[str, str, int]]:
    """Hops of the path with their virtual channels.

    Raises
    ------
    SystemExit : a hop is no route
    """
    fabric = picture.fabric
    findings = Findings()
    plan = planned_routing(fabric, picture.name, findings, paths=picture.paths)
    if findings.has_mistakes:
        sys.exit(f"{picture.name}: {findings.mistakes}")
    routing, kinds = plan.routing, link_kinds(fabric)
    rule = channel_rule(kinds, routing.scheme, plan.channels)
    up = _up(picture)
    table = routes(
        fabric, up, up_down=routing.up_down, dimension_order=routing.dimension_order,
        fewest_global_hops=routing.fewest_global_hops,
    )  # fmt: skip
    layers = layers_of(fabric, up, routing) if routing.has_layers else None
    found, here, kind, held = [], picture.start, -1, 0
    for leg in picture.legs:
        goal = table.attach_node.tolist().index(fabric.node_names.index(leg.target or leg.switches[-1]))
        turn = int(leg.turns)
        for there in leg.switches:
            node = fabric.node_names.index(here)
            allowed = set(table.candidates(node, goal).tolist())
            if layers is not None:
                allowed |= set(layers.next_port[:, node, goal].tolist())
            port = next((one for one in _ports(fabric, here, there) if one in allowed), None)
            if port is None:
                sys.exit(f"{picture.name}: {here} -> {there} is no route to {leg.switches[-1]}")
            out = int(kinds.port_kind[port])
            held = int(rule[turn, kind + 1, held, out])
            found.append((here, there, held))
            here, kind, turn = there, out, 0
    return found


# Drawing


def _text(
    x: float, y: float, words: str, *, size: int = 12, fill: str = INK, anchor: str = "start", bold: bool = False
) -> str:
    weight = 600 if bold else 400
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"'
        f' font-weight="{weight}">{escape(words)}</text>'
    )


def _line(a: Point, b: Point, *, stroke: str, width: float, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<path d="M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" stroke="{stroke}" stroke-width="{width:g}"'
        f' fill="none"{dashed}/>'
    )


def _towards(a: Point, b: Point, length: float) -> Point:
    """The point that lies so far from a towards b."""
    whole = math.dist(a, b)
    return a[0] + (b[0] - a[0]) * length / whole, a[1] + (b[1] - a[1]) * length / whole


def _arrow(a: Point, b: Point, colour: str) -> str:
    """A line with a head at its end."""
    neck = _towards(b, a, 11)
    across = ((b[1] - a[1]) / math.dist(a, b) * 6, -(b[0] - a[0]) / math.dist(a, b) * 6)
    corners = [b, (neck[0] + across[0], neck[1] + across[1]), (neck[0] - across[0], neck[1] - across[1])]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return _line(a, neck, stroke=colour, width=4) + f'<polygon points="{points}" fill="{colour}"/>'


def _badge(at: Point, channel: int) -> str:
    colour = CHANNELS[channel]
    return (
        f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{BADGE:g}" fill="{CARD}" stroke="{colour}" stroke-width="2"/>'
        + _text(at[0], at[1] + 4, str(channel), size=12, anchor="middle", bold=True)
    )


def _ends(picture: Picture, here: str, there: str) -> list[tuple[Point, Point]]:
    """Where the line of a link is drawn: two stubs where it closes a ring."""
    a, b = picture.places[here], picture.places[there]
    direct, fabric = picture.fabric.direct, picture.fabric
    port = _ports(fabric, here, there)[0]
    if picture.wraps and direct is not None and direct.link_wraps[fabric.ports.link[port]]:
        away = (a[0] - b[0], a[1] - b[1])
        far = math.hypot(*away)
        step = (away[0] / far * STUB, away[1] / far * STUB)
        return [(a, (a[0] + step[0], a[1] + step[1])), ((b[0] - step[0], b[1] - step[1]), b)]
    return [(a, b)]


def drawn(picture: Picture) -> str:
    """A picture, as SVG text."""
    fabric, names = picture.fabric, picture.fabric.node_names
    size = f'viewBox="0 0 {WIDTH} {picture.height}" width="{WIDTH}" height="{picture.height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{escape(FONT)}">',
        f"<title>{escape(picture.title)}: {escape(picture.text)}</title>",
        DARK_STYLE,
        f'<rect width="{WIDTH}" height="{picture.height}" rx="8" fill="{CARD}" stroke="{GRID}"/>',
        _text(24, 36, picture.title, size=17, bold=True),
        _text(24, 58, picture.text, size=13, fill=QUIET),
    ]
    for (x, y), radius, words, at in picture.regions:
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="none" stroke="{GRID}" stroke-width="1.5"/>'
        )
        parts.append(_text(at[0], at[1], words, fill=QUIET, anchor="middle"))
    parts += [_text(x, y + 4, words, fill=QUIET, anchor="end") for (x, y), words in picture.labels]
    ports, up = fabric.ports, _up(picture)
    for port in range(len(ports.node)):
        here, there = names[ports.node[port]], names[ports.node[ports.peer[port]]]
        if here in picture.places and there in picture.places and port < ports.peer[port]:
            is_up = bool(up[ports.link[port]])
            for a, b in _ends(picture, here, there):
                parts.append(_line(a, b, stroke=GRID if is_up else VERMILION, width=2, dash="" if is_up else "2 5"))
    for other in picture.others:
        for here, there in pairwise(other):
            parts += [_line(a, b, stroke=QUIET, width=2.5, dash="7 4") for a, b in _ends(picture, here, there)]
    badges, way = [], hops(picture)
    end = len(way) - 1
    for number, (here, there, channel) in enumerate(way):
        lines = _ends(picture, here, there)
        for place, (a, b) in enumerate(lines):
            first = _towards(a, b, RADIUS if place == 0 else 0)
            last = _towards(b, a, 0 if place < len(lines) - 1 else RADIUS + (7 if number == end else 1))
            parts.append(_arrow(first, last, CHANNELS[channel]))
            middle = (
                (first[0] + last[0]) / 2 - (last[0] - first[0]) / 14,
                (first[1] + last[1]) / 2 - (last[1] - first[1]) / 14,
            )
            badges.append(_badge(middle, channel))
    receiver = way[-1][1]
    for name, (x, y) in picture.places.items():
        fill = INK if name == picture.start else CARD
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS:g}" fill="{fill}" stroke="{INK}" stroke-width="1.5"/>'
        )
        if name == receiver:
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS + 5:g}" fill="none" stroke="{INK}" stroke-width="2.5"/>'
            )
        parts.append(
            _text(
                x,
                y + 4,
                "".join(filter(str.isdigit, name)),
                size=11,
                anchor="middle",
                fill=CARD if fill == INK else INK,
            )
        )
    parts += badges
    for name, words in picture.words.items():
        x, y = picture.places[name]
        parts.append(_text(x, y - RADIUS - 9, words, size=12, anchor="middle", bold=True))
    parts += _legend(picture, sorted({channel for _, _, channel in way}))
    return "\n".join([*parts, "</svg>\n"])


def _legend(picture: Picture, channels: list[int]) -> list[str]:
    y, parts = float(TOP + 16), []
    for channel in channels:
        parts.append(_arrow((LEGEND, y), (LEGEND + 44, y), CHANNELS[channel]))
        parts.append(_badge((LEGEND + 17, y), channel))
        parts.append(_text(LEGEND + 58, y + 4, f"virtual channel {channel}", size=13))
        y += 28
    if picture.others:
        parts.append(_line((LEGEND, y), (LEGEND + 44, y), stroke=QUIET, width=2.5, dash="7 4"))
        parts.append(_text(LEGEND + 58, y + 4, "another path", size=13))
        y += 28
    if picture.down:
        parts.append(_line((LEGEND, y), (LEGEND + 44, y), stroke=VERMILION, width=2, dash="2 5"))
        parts.append(_text(LEGEND + 58, y + 4, "a link that is down", size=13))
        y += 28
    parts.append(f'<circle cx="{LEGEND + 22}" cy="{y:g}" r="{RADIUS:g}" fill="{INK}"/>')
    parts.append(_text(LEGEND + 58, y + 4, "switch of the sender", size=13))
    y += 36
    for radius, width in ((RADIUS, 1.5), (RADIUS + 5, 2.5)):
        parts.append(
            f'<circle cx="{LEGEND + 22}" cy="{y:g}" r="{radius:g}" fill="none" stroke="{INK}"'
            f' stroke-width="{width:g}"/>'
        )
    parts.append(_text(LEGEND + 58, y + 4, "switch of the receiver", size=13))
    y += 44
    for note in picture.notes:
        parts.append(_text(LEGEND, y, note, size=13, fill=QUIET))
        y += 20
    return parts


# Networks and their places


def _row(names: list[str], y: float, left: float = 70, right: float = 430) -> dict[str, Point]:
    step = (right - left) / max(1, len(names) - 1)
    return {
        name: (left + place * step if len(names) > 1 else (left + right) / 2, y) for place, name in enumerate(names)
    }


def _dragonfly() -> Fabric:
    return fabric_of(
        topology="dragonfly", hosts_per_router=1, routers_per_group=4, global_ports=1, link_rate_bps=RATE_BPS
    )


def _dragonfly_places() -> dict[str, Any]:
    middle, far, half = (248.0, 296.0), 150.0, 36.0
    places: dict[str, Point] = {}
    regions = []
    for group in range(5):
        angle = 2 * math.pi * group / 5 - math.pi / 2
        x, y = middle[0] + far * math.cos(angle), middle[1] + far * math.sin(angle)
        for one in range(4):
            turn = angle + math.pi / 4 + one * math.pi / 2
            places[f"router{4 * group + one}"] = (
                x + half * math.sqrt(2) * math.cos(turn), y + half * math.sqrt(2) * math.sin(turn)
            )  # fmt: skip
        beside = ((-112, -44), (40, 84), (0, 88), (0, 88), (-40, 84))[group]
        regions.append(((x, y), 70.0, f"group {group}", (x + beside[0], y + beside[1])))
    return {"places": places, "regions": tuple(regions), "height": 520}


def _tree_with_cores() -> Fabric:
    """Three leaves, two spines and two cores, of which each is linked to all of the next tier."""
    names = [f"host{one}" for one in range(3)] + [f"leaf{one}" for one in range(3)]
    names += ["spine0", "spine1", "core0", "core1"]
    pairs = [(one, 3 + one) for one in range(3)]
    pairs += [(leaf, spine) for leaf in (3, 4, 5) for spine in (6, 7)]
    pairs += [(spine, core) for spine in (6, 7) for core in (8, 9)]
    return assemble(
        name="leaves, spines and cores",
        node_names=names,
        node_kind=[HOST] * 3 + [SWITCH] * 7,
        node_tier=[0] * 3 + [1] * 3 + [2] * 2 + [3] * 2,
        links=links_between([a for a, _ in pairs], [b for _, b in pairs], rate_bps=RATE_BPS, delay_ps=100_000),
        switches=[Switch()],
        nics=[Nic()],
    )


def pictures() -> list[Picture]:
    """All pictures, one for each name of routing."""
    dragonfly, ring = _dragonfly(), _dragonfly_places()
    leaf_spine = fabric_of(topology="leaf-spine", leaves=4, spines=3, hosts_per_leaf=1, link_rate_bps=RATE_BPS)
    torus = fabric_of(topology="torus", shape=(6, 4), link_rate_bps=RATE_BPS)
    jellyfish = fabric_of(
        topology="jellyfish", switches=10, network_ports=3, hosts_per_switch=1, link_rate_bps=RATE_BPS
    )
    detour = (Leg(switches=("router3", "router16")), Leg(switches=("router18", "router11", "router10")))
    return [
        Picture(
            name="shortest",
            title="shortest: all shortest paths, one virtual channel",
            text="a leaf-spine network of 4 leaves and 3 spines; every spine is on a shortest path",
            fabric=leaf_spine,
            places=_row([f"spine{one}" for one in range(3)], 130, 120, 380)
            | _row([f"leaf{one}" for one in range(4)], 290),
            start="leaf0",
            legs=(Leg(switches=("spine1", "leaf3")),),
            others=(("leaf0", "spine0", "leaf3"), ("leaf0", "spine2", "leaf3")),
            labels=(((60, 130), "spines"), ((45, 290), "leaves")),
            notes=(
                "The leaf chooses one of three",
                "ports by its port selection.",
                "A path goes up, then down:",
                "no circle can close.",
            ),
            height=380,
        ),
        Picture(
            name="up-down",
            title="up-down: never down and then up again",
            text="leaves 0 to 2, spines 0 and 1, cores 0 and 1; two links are down",
            fabric=_tree_with_cores(),
            places=_row(["core0", "core1"], 120, 160, 340)
            | _row(["spine0", "spine1"], 220, 160, 340)
            | _row(["leaf0", "leaf2", "leaf1"], 340),
            start="leaf0",
            legs=(Leg(switches=("spine0", "core0", "spine1", "leaf1")),),
            others=(("spine0", "leaf2", "spine1"),),
            down=(("leaf0", "spine1"), ("leaf1", "spine0")),
            labels=(((120, 120), "cores"), ((120, 220), "spines"), ((45, 340), "leaves")),
            notes=("The other path is as short,", "but it turns up again at leaf 2.", "up-down leaves it out."),
            height=410,
        ),
        Picture(
            name="k-shortest",
            title="k-shortest: the shortest simple paths, also longer ones",
            text="a random graph of 10 switches with 3 links each; fabric.paths: 3",
            fabric=jellyfish,
            places={
                f"router{one}": (
                    250 + 150 * math.cos(2 * math.pi * one / 10 - math.pi / 2),
                    255 + 150 * math.sin(2 * math.pi * one / 10 - math.pi / 2),
                )
                for one in range(10)
            },
            start="router0",
            legs=(Leg(switches=("router3", "router4", "router2", "router5")),),
            others=(("router0", "router8", "router6", "router5"), ("router0", "router4", "router2")),
            notes=("The packet's entropy chooses", "one of the paths. A packet takes", "the next channel at each hop."),
            height=440,
            paths=3,
        ),
        Picture(
            name="minimal",
            title="minimal: the shortest path, in the channels of the network",
            text="a dragonfly of 5 groups of 4 routers; local, global, local",
            fabric=dragonfly,
            start="router0",
            legs=(Leg(switches=("router1", "router8", "router10")),),
            notes=("Two channels: the channel rises", "behind the global link."),
            **ring,
        ),
        Picture(
            name="dimension-order",
            title="dimension-order: one dimension after the other, with datelines",
            text="a torus of 6 x 4 switches; the links at the edge close the rings",
            fabric=torus,
            places={f"switch{x + 6 * y}": (98 + 66 * x, 150 + 66 * y) for x in range(6) for y in range(4)},
            start="switch10",
            legs=(Leg(switches=("switch11", "switch6", "switch7", "switch13", "switch19")),),
            wraps=True,
            notes=(
                "Two channels: channel 1 from the",
                "link on that closes the ring, as",
                "long as the dimension lasts;",
                "channel 0 in the next dimension.",
            ),
            height=440,
        ),
        Picture(
            name="valiant",
            title="valiant: by a random group",
            text="a dragonfly of 5 groups of 4 routers; group 4 was drawn",
            fabric=dragonfly,
            start="router0",
            legs=detour,
            notes=(
                "Three channels: the channel rises",
                "behind each of two global links.",
                "The detour ends at router 16, the",
                "first switch of the group.",
            ),
            **ring,
        ),
        Picture(
            name="ugal",
            title="ugal: the shortest path, or the detour if it is faster",
            text="a dragonfly of 5 groups of 4 routers; the first switch, router 0, compares its queues",
            fabric=dragonfly,
            start="router0",
            legs=detour,
            others=(("router0", "router1", "router8", "router10"),),
            notes=(
                "To router 1: 60 kB queued, 3 hops.",
                "To router 3: 20 kB queued, 5 hops.",
                "60 x 3 is more than 20 x 5,",
                "so the packet takes the detour.",
            ),
            **ring,
        ),
        Picture(
            name="par",
            title="par: a second thought within the first group",
            text="a dragonfly of 5 groups of 4 routers; router 1 sees a long queue at its global link",
            fabric=dragonfly,
            start="router0",
            legs=(
                Leg(switches=("router1",), target="router10"),
                Leg(switches=("router3", "router16"), turns=True),
                Leg(switches=("router18", "router11", "router10")),
            ),
            others=(("router1", "router8", "router10"),),
            notes=(
                "Four channels: the second thought",
                "takes a further local hop, and this",
                "hop needs a channel of its own.",
            ),
            **ring,
        ),
    ]


def main() -> None:
    """Write all pictures."""
    out = Path(__file__).parent / "routing"
    for picture in pictures():
        file = out / f"{picture.name}.svg"
        file.write_text(drawn(picture), encoding="utf-8")
        sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()
