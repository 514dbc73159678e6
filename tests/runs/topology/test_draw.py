"""Pictures: every node in one box, rows that stay short, text that is XML, endings that are refused."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.draw import draw, to_html, to_svg
from weftwork.topology.picture import Box, NetworkLayout, lay_out, tier_words
from weftwork.topology.reach import networks_of_links
from weftwork.topology.without import find_lost

EXAMPLES = Path(__file__).parents[3] / "examples" / "fabrics"
FABRICS = {
    "small": fabric_of(topology="fat-tree", tiers=2, radix=4),
    "two tiers": fabric_of(topology="fat-tree", tiers=2, radix=64),
    "three tiers": fabric_of(topology="fat-tree", tiers=3, radix=16),
    "wide leaf": fabric_of(topology="leaf-spine", leaves=3, spines=40, hosts_per_leaf=100),
    "mixed": fabric_of(file=EXAMPLES / "two_leaves.json"),
    "ring": fabric_of(file=EXAMPLES / "ring_of_four.graphml"),
    "rails": fabric_of(topology="rail-optimized", gpus=1_024, node="dgx-h100", switch="quantum-2"),
    "rail-only": fabric_of(topology="rail-optimized", gpus=256, node="p5", switch="tomahawk-5", spines=0),
    "many rails": fabric_of(topology="rail-optimized", gpus=8_192, node="dgx-h100", radix=32),
    "blocks": fabric_of(topology="superpod", scalable_units=16),
    "two planes": fabric_of(topology="hpn"),
    "planes of pods": fabric_of(topology="hpn", segments=45),
    "eight networks": fabric_of(topology="rail-only", gpus=8_192, node="dgx-h100", switch="quantum-2"),
    "no two rails joined": fabric_of(topology="rail-only", gpus=512, node="dgx-h100", switch="quantum-2"),
    "small planes": fabric_of(topology="pgft", children=(4, 4), parents=(2, 2), node={"gpus": 1, "nic_ports": 2}),
    "converging": fabric_of(
        topology="three-tier", hosts=1_152, radix=64, oversubscription={"access": 3, "aggregation": 4}
    ),
    "pods of racks": fabric_of(topology="meta-24k"),
}


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=list(FABRICS))
def test_every_node_is_in_exactly_one_box_and_rows_are_short(fabric: Fabric) -> None:
    layout = lay_out(fabric)
    nodes = sorted(node for box in layout.boxes() for node in box.nodes)
    assert nodes == list(range(len(fabric.node_names)))
    assert len(layout.boxes()) <= 60
    for network in layout.networks:
        assert len(network.top) <= 12


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=list(FABRICS))
def test_a_picture_is_svg_with_all_counts(fabric: Fabric) -> None:
    root = ET.fromstring(to_svg(fabric))  # noqa: S314 - our own text
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    words = tier_words(fabric)
    assert fabric.name in texts
    assert f"{len(fabric.hosts):,} {words[0][1]}" in texts
    boxes = list(root.iter("{http://www.w3.org/2000/svg}rect"))
    width = float(root.attrib["width"])
    for box in boxes:
        assert 0 <= float(box.attrib.get("x", 0)) <= width - float(box.attrib["width"])


def test_pods_keep_the_first_and_the_last_and_count_what_is_between() -> None:
    svg = to_svg(FABRICS["three tiers"])
    for text in ("leaf0<", "leaf127<", "… 5 leaves<", "… 112 aggs<", "8 cores<", "core56 … 63<", "8 links, 3.2Tbps"):
        assert text in svg
    assert "grey: to what is left out" in svg
    assert "grey" not in to_svg(FABRICS["small"])


def rectangles(svg: str, kind: str) -> list[tuple[float, float]]:
    """Left and right ends of the rectangles of a class, from left to right."""
    found = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect")  # noqa: S314 - our own text
    ends = [
        (float(one.attrib["x"]), float(one.attrib["x"]) + float(one.attrib["width"]))
        for one in found
        if one.attrib["class"] == kind
    ]
    return sorted(ends)


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("two planes", ["plane 0", "plane 1"]),
        ("planes of pods", ["plane 0", "plane 1"]),
        ("small planes", ["plane 0", "plane 1"]),
        ("eight networks", ["rail 0", "rail 1", "… 5 rails", "rail 7"]),
        ("no two rails joined", [f"rail {number}" for number in range(8)]),
    ],
)
def test_networks_that_no_link_joins_stand_apart(name: str, titles: list[str]) -> None:
    fabric = FABRICS[name]
    svg = to_svg(fabric)
    panels = rectangles(svg, "panel")
    assert len(panels) == len(titles)
    assert all(left[1] < right[0] for left, right in itertools.pairwise(panels))
    assert re.findall(r">((?:plane|rail|… \d+ (?:planes|rails))[ \d]*)<", svg) == titles
    layout = lay_out(fabric)
    for network in layout.networks:  # no box of switches holds nodes of two networks, unless it says so
        nodes = [node for box in boxes_of(network) for node in box.nodes]
        assert network.hidden or len(networks_of(fabric, nodes)) == 1
    assert {box.tier for box in layout.hosts} == {0}


def boxes_of(network: NetworkLayout) -> list[Box]:
    return [box for pod in network.pods for row in pod.rows.values() for box in row] + list(network.top)


def networks_of(fabric: Fabric, nodes: list[int]) -> set[int]:
    """Networks of the links between switches of some nodes, or of all their links where there are none."""
    network = networks_of_links(fabric, np.ones(len(fabric.links), np.bool_))
    on = np.isin(fabric.links["a"], nodes) | np.isin(fabric.links["b"], nodes)
    return set(network[on].tolist())


def test_pods_stand_on_ground_of_their_own_and_say_how_many_more_there_are() -> None:
    svg = to_svg(FABRICS["pods of racks"])
    assert len(rectangles(svg, "panel")) == 2
    for text in ("6 more like these<", "… 13 cluster<", ">128 cluster<", "down:up 0.5:1", "down:up 384:55"):
        assert text in svg
    assert not rectangles(to_svg(FABRICS["two tiers"]), "panel")  # a leaf and its hosts are no pod


def test_leaves_of_several_pods_become_a_box_for_each_pod() -> None:
    svg = to_svg(FABRICS["blocks"])
    for text in (">pod 0, 8 rails<", ">pod 15, 8 rails<", ">8 leaves<", "… 29 spines<"):
        assert text in svg
    assert ">pod 14, 8 rails<" in to_svg(FABRICS["two planes"])


def test_ratios_are_written_beside_their_tier() -> None:
    svg = to_svg(FABRICS["converging"])
    for text in (">24 access<", ">switches<", "down:up 3:1", "down:up 4:1", "… 3 access<"):
        assert text in svg


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=list(FABRICS))
def test_few_lines_lead_to_the_top_row(fabric: Fabric) -> None:
    for network in lay_out(fabric).networks:
        top = {node: number for number, box in enumerate(network.top) for node in box.nodes}
        low = {node: number for number, box in enumerate(boxes_of(network)) for node in box.nodes if node not in top}
        ends = zip(fabric.links["a"].tolist(), fabric.links["b"].tolist(), strict=True)
        lines = {(low[a], top[b]) for a, b in ends if a in low and b in top}
        assert len(lines) <= 72


def test_rates_have_a_colour_and_a_dash_each() -> None:
    svg = to_svg(FABRICS["mixed"])
    assert ">400Gbps<" in svg
    assert ">200Gbps<" in svg
    assert 'class="r1" stroke-width="1.5" stroke-dasharray="8 3"' in svg
    assert ".r1 { stroke: #d55e00; }" in svg


def test_servers_rails_and_pods_are_named() -> None:
    svg = to_svg(FABRICS["rails"])
    for text in (">1,024 GPUs<", ">pod 0, nic 0<", ">pod 3, nic 7<", ">32 hosts<"):
        assert text in svg
    svg = to_svg(FABRICS["rail-only"])
    for text in (">256 GPUs<", ">pod 0, nic 28-31<", ">leaf7<", ">32 hosts<"):
        assert text in svg


def test_there_are_colours_for_light_and_dark() -> None:
    svg = to_svg(FABRICS["small"])
    light, dark = svg[svg.index("<style>") : svg.index("</style>")].split("@media (prefers-color-scheme: dark)")
    assert set(re.findall(r"\.(\w+) {", light)) == set(re.findall(r"\.(\w+) {", dark))
    used = {name for names in re.findall(r'class="([^"]+)"', svg) for name in names.split()}
    assert used <= set(re.findall(r"\.(\w+) {", light))


@pytest.mark.parametrize("name", list(FABRICS))
def test_what_is_lost_is_drawn(name: str) -> None:
    fabric = FABRICS[name]
    switch = fabric.node_names[int(np.flatnonzero(fabric.node_tier == 1)[-2])]
    nodes, links = find_lost(fabric, [switch])
    svg = to_svg(fabric, lost_nodes=nodes, lost_links=links)
    assert f">{switch if len(switch) <= 12 else switch[:11] + '…'}<" in svg
    assert ">lost<" in svg
    assert 'class="lost"' in svg
    assert 'class="lost"' not in to_svg(fabric)
    layout = lay_out(fabric, links)
    assert sorted(node for box in layout.boxes() for node in box.nodes) == list(range(len(fabric.node_names)))


def test_hosts_without_a_leaf_are_cut_off_and_others_count_their_nics() -> None:
    star = fabric_of(topology="leaf-spine", hosts=96, radix=32, oversubscription=3)
    nodes, links = find_lost(star, ["leaf3"])
    assert ">cut off<" in to_svg(star, lost_nodes=nodes, lost_links=links)
    rails = FABRICS["rails"]
    nodes, links = find_lost(rails, ["host40/nic0", "leaf8-spine0"])
    svg = to_svg(rails, lost_nodes=nodes, lost_links=links)
    for text in (">host40<", ">7 of 8 NICs<", ">62 of 64 links<", "2 links, 800Gbps, 1 lost"):
        assert text in svg


def test_names_are_escaped() -> None:
    fabric = fabric_of(topology="fat-tree", radix=4, tiers=2)
    object.__setattr__(fabric, "name", "<script>&")
    assert "<script>" not in to_html(fabric)


def test_tiers_are_called_by_their_names() -> None:
    assert tier_words(FABRICS["three tiers"]) == {
        0: ("host", "hosts"), 1: ("leaf", "leaves"), 2: ("agg", "aggs"), 3: ("core", "cores"),
    }  # fmt: skip
    assert tier_words(FABRICS["ring"])[1] == ("switch", "switches")


def test_a_picture_is_svg_or_html(tmp_path: Path) -> None:
    draw(FABRICS["small"], tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(ConfigError, match=r"wanted \.svg or \.html"):
        draw(FABRICS["small"], tmp_path / "a.png")
    with pytest.raises(ConfigError, match="cannot write"):
        draw(FABRICS["small"], tmp_path / "missing" / "a.svg")
