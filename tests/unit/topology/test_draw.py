"""Pictures: every node in one box, rows that stay short, text that is XML, endings that are refused."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.draw import draw, to_html, to_svg
from weftwork.topology.picture import lay_out, tier_words
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
}


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=list(FABRICS))
def test_every_node_is_in_exactly_one_box_and_rows_are_short(fabric: Fabric) -> None:
    layout = lay_out(fabric)
    nodes = sorted(node for box in layout.boxes() for node in box.nodes)
    assert nodes == list(range(len(fabric.node_names)))
    assert len(layout.boxes()) <= 60
    assert len(layout.top) <= 12


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
    for text in ("leaf0<", "leaf127<", "… 5 leaves<", "… 104 aggs<", "8 cores<", "core56 … 63<", "8 links, 3.2Tbps"):
        assert text in svg
    assert "grey: to what is left out" in svg
    assert "grey" not in to_svg(FABRICS["small"])


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
