"""Pictures of direct networks: parts in their places, every link told, losses visible, large networks abridged."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from helpers.sketched_networks import cubes, random_graph, torus

from weftwork.spec.fabric import SWITCH, Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.direct_picture import sketch_of
from weftwork.topology.direct_sketch import Sketch
from weftwork.topology.draw import to_svg
from weftwork.topology.ink import Lost
from weftwork.topology.without import find_lost

FABRICS = {
    "ring": torus(6),
    "square torus": torus(4, 5),
    "cubic torus": torus(4, 4, 4),
    "long torus": torus(4, 4, 16),
    "wide torus": torus(20, 20),
    "hyperx": fabric_of(topology="hyperx", sides=(5, 4), hosts_per_router=4),
    "hypercube": fabric_of(topology="hyperx", sides=(2, 2, 2, 2, 2), hosts_per_router=1),
    "small dragonfly": fabric_of(topology="dragonfly", routers_per_group=4),
    "dragonfly": fabric_of(topology="dragonfly", routers_per_group=8),
    "dragonfly+": fabric_of(topology="dragonfly-plus", leaves_per_group=8, groups=24, hosts=100),
    "few cubes": cubes(4),
    "many cubes": cubes(12),
    "graph": random_graph(30, 5),
    "large graph": random_graph(300, 6),
}


def _sketch(fabric: Fabric, *without: str) -> Sketch:
    nodes, links = find_lost(fabric, without)
    found = sketch_of(fabric, Lost(nodes=nodes, links=links))
    assert found is not None
    return found


def _texts(svg: str) -> list[str]:
    root = ET.fromstring(svg)  # noqa: S314 - our own text
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=list(FABRICS))
def test_a_picture_is_svg_whose_boxes_lie_on_the_page_and_do_not_overlap(fabric: Fabric) -> None:
    svg = to_svg(fabric)
    assert fabric.name in _texts(svg)
    sketch = _sketch(fabric)
    assert 0 < len(sketch.marks) <= 160
    for mark in sketch.marks:
        assert mark.x - mark.width / 2 >= -1e-6
        assert mark.x + mark.width / 2 <= sketch.width + 1e-6
        assert mark.y - mark.height / 2 + 1e-6 >= 0
        assert mark.y + mark.height / 2 <= sketch.height + 1e-6
    for number, one in enumerate(sketch.marks):
        for other in sketch.marks[:number]:
            apart_x = abs(one.x - other.x) >= (one.width + other.width) / 2 - 1e-6
            apart_y = abs(one.y - other.y) >= (one.height + other.height) / 2 - 1e-6
            assert apart_x or apart_y, (one.label, other.label)


def test_trees_have_no_sketch() -> None:
    fabric = fabric_of(topology="fat-tree", tiers=2, radix=8)
    none = Lost(nodes=np.zeros(len(fabric.node_names), np.bool_), links=np.zeros(len(fabric.links), np.bool_))
    assert sketch_of(fabric, none) is None


@pytest.mark.parametrize("name", ["ring", "square torus", "cubic torus", "hyperx", "small dragonfly", "graph"])
def test_a_small_network_shows_every_switch_and_every_link_between_switches(name: str) -> None:
    fabric = FABRICS[name]
    sketch = _sketch(fabric)
    assert (
        sorted(node for mark in sketch.marks for node in mark.nodes)
        == np.flatnonzero(fabric.node_kind == SWITCH).tolist()
    )
    drawn = {link for line in sketch.lines for link in line.links}
    assert fabric.direct is not None
    assert drawn == set(np.flatnonzero(fabric.direct.link_dimension >= 0).tolist())


def test_a_torus_stands_by_its_coordinates_and_closes_its_rings_with_stubs() -> None:
    fabric = FABRICS["square torus"]
    sketch = _sketch(fabric)
    where = {mark.label[1]: (mark.x, mark.y) for mark in sketch.marks}
    assert where["(0, 0)"][1] == where["(3, 0)"][1]
    assert where["(0, 0)"][0] == where["(0, 4)"][0]
    assert where["(1, 2)"] < where["(2, 2)"]
    dots = [line for line in sketch.lines if line.dot is not None]
    assert len(dots) == 2 * (4 + 5)  # both ends of every ring's last link
    assert "a stub with a dot closes a ring" in _texts(to_svg(fabric))


def test_layers_of_a_cubic_torus_have_titles() -> None:
    sketch = _sketch(FABRICS["cubic torus"])
    assert [panel.title for panel in sketch.panels] == [f"z = {z}" for z in range(4)]


def test_large_networks_are_abridged_and_say_so() -> None:
    assert "drawn: 112 of 256 switches" in _sketch(FABRICS["long torus"]).notes
    assert "256 switches; 256 hosts, 1 host on a switch" in _sketch(FABRICS["long torus"]).notes
    titles = [panel.title for panel in _sketch(FABRICS["long torus"]).panels]
    assert titles == [*(f"z = {z}" for z in range(6)), "… 9 more layers", "z = 15"]
    assert "drawn: 49 of 400 switches" in _sketch(FABRICS["wide torus"]).notes
    assert "drawn: 19 of 33 groups, and the inside of one" in _sketch(FABRICS["dragonfly"]).notes
    assert "drawn: 7 of 12 cubes" in _sketch(FABRICS["many cubes"]).notes
    notes = _sketch(FABRICS["large graph"]).notes
    assert any(re.fullmatch(r"drawn: switch0 and its neighbours, \d+ of 300 switches", note) for note in notes)
    far = next(note for note in notes if note.startswith("farther away"))
    near = 1 + sum(len(mark.nodes) for mark in _sketch(FABRICS["large graph"]).marks[1:])
    assert sum(int(number) for number in re.findall(r"(\d+) at", far)) + near == 300


def test_cubes_stand_below_the_optical_switches_that_join_them() -> None:
    fabric = FABRICS["few cubes"]
    sketch = _sketch(fabric)
    tops = [mark for mark in sketch.marks if mark.is_optical]
    below = [mark for mark in sketch.marks if not mark.is_optical]
    assert max(mark.y for mark in tops) < min(mark.y for mark in below)
    assert [mark.label[:2] for mark in below] == [(f"cube {number}", "2 x 2 x 2") for number in range(4)]
    titles = [panel.title for panel in sketch.panels]
    assert titles == [f"4 optical switches: {word}" for word in "xyz"]
    # of each dimension 4 positions, and at each a circuit from every one of 4 cubes
    assert {mark.label for mark in tops} == {(f"ocs{number}", "4 circuits") for number in range(12)}
    assert any("go through 12 optical switches of 136 ports" in note for note in sketch.notes)


def test_lost_switches_and_links_are_visible_although_others_are_left_out() -> None:
    torus_svg = to_svg(FABRICS["wide torus"], **_lost(FABRICS["wide torus"], "switch210"))
    assert "switch210" in _texts(torus_svg)
    assert "lost" in _texts(torus_svg)
    groups = to_svg(FABRICS["dragonfly"], **_lost(FABRICS["dragonfly"], "router245"))
    assert "inside group 30" in _texts(groups)
    assert "router245" in _texts(groups)
    graph = _sketch(FABRICS["large graph"], "switch77")
    assert graph.marks[0].label[0] == "switch77"


def test_dimensions_have_their_own_colours_in_the_legend() -> None:
    texts = _texts(to_svg(FABRICS["small dragonfly"]))
    assert "local, 400Gbps" in texts
    assert "global, 400Gbps" in texts


def _lost(fabric: Fabric, *names: str) -> dict[str, np.ndarray]:
    nodes, links = find_lost(fabric, names)
    return {"lost_nodes": nodes, "lost_links": links}
