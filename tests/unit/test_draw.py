"""Pictures: every node in one box, rows that stay short, text that is XML, endings that are refused."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from weft.base.errors import ConfigError
from weft.spec.fabric import Fabric
from weft.topology.build import fabric_of
from weft.topology.draw import draw, to_html, to_svg
from weft.topology.picture import lay_out, tier_words

EXAMPLES = Path(__file__).parents[2] / "examples" / "fabrics"
FABRICS = {
    "small": fabric_of(topology="fat-tree", tiers=2, radix=4),
    "two tiers": fabric_of(topology="fat-tree", tiers=2, radix=64),
    "three tiers": fabric_of(topology="fat-tree", tiers=3, radix=16),
    "wide leaf": fabric_of(topology="leaf-spine", leaves=3, spines=40, hosts_per_leaf=100),
    "mixed": fabric_of(file=EXAMPLES / "two_leaves.json"),
    "ring": fabric_of(file=EXAMPLES / "ring_of_four.graphml"),
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
    assert 'stroke="#d55e00" stroke-width="1.5" stroke-dasharray="8 3"' in svg


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
