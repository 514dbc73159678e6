"""Files of direct networks: round trips, a user's own dimensions, and mistakes with their places."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.sketched_networks import cubes, random_graph, torus

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.spec.fabric_direct import TO_HOST, DirectNetwork
from weftwork.topology.build import fabric_of
from weftwork.topology.export import export
from weftwork.topology.from_file import read_fabric
from weftwork.topology.given import checked_fabric

FABRICS = {
    "torus": torus(4, 5),
    "pod": cubes(3),
    "graph": random_graph(12, 4),
    "dragonfly": fabric_of(topology="dragonfly", routers_per_group=4),
    "dragonfly+": fabric_of(topology="dragonfly-plus", leaves_per_group=2),
}


def _assert_equal(one: DirectNetwork | None, other: DirectNetwork | None) -> None:
    assert one is not None
    assert other is not None
    for part in fields(DirectNetwork):
        here, there = getattr(one, part.name), getattr(other, part.name)
        if part.name == "optical" and here is not None:
            assert (here.names, here.model, here.ports) == (there.names, there.model, there.ports)
            here, there = here.link_switch, there.link_switch
        if isinstance(here, np.ndarray):
            assert here.dtype == there.dtype
            np.testing.assert_array_equal(here, there)
        else:
            assert here == there, part.name


@pytest.mark.parametrize("ending", [".json", ".graphml"])
@pytest.mark.parametrize("fabric", FABRICS.values(), ids=list(FABRICS))
def test_a_direct_network_survives_a_file(tmp_path: Path, fabric: Fabric, ending: str) -> None:
    export(fabric, tmp_path / f"fabric{ending}")
    back = read_fabric(tmp_path / f"fabric{ending}")
    _assert_equal(fabric.direct, back.direct)
    np.testing.assert_array_equal(
        np.full(len(back.node_names), -1) if fabric.node_pod is None else fabric.node_pod,
        np.full(len(back.node_names), -1) if back.node_pod is None else back.node_pod,
    )


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=list(FABRICS))
def test_a_direct_network_given_in_python_stays_direct(fabric: Fabric) -> None:
    _assert_equal(fabric.direct, checked_fabric(fabric).direct)


def _square() -> dict[str, Any]:
    """A 3 x 3 torus as a user writes it: dimensions of links, and coordinates."""
    nodes: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    for x in range(3):
        for y in range(3):
            nodes += [{"id": f"s{x}{y}", "kind": "switch", "at": [x, y]}, {"id": f"h{x}{y}", "kind": "host"}]
            links.append({"source": f"h{x}{y}", "target": f"s{x}{y}"})
            links.append({"source": f"s{x}{y}", "target": f"s{(x + 1) % 3}{y}", "dimension": "east", "wraps": x == 2})
            links.append({"source": f"s{x}{y}", "target": f"s{x}{(y + 1) % 3}", "dimension": "north", "wraps": y == 2})
    return {"rate": "400Gbps", "length": "2m", "nodes": nodes, "links": links}


def _read(tmp_path: Path, content: dict[str, Any]) -> Fabric:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(content))
    return read_fabric(path)


def test_the_dimensions_of_a_users_file_suffice(tmp_path: Path) -> None:
    direct = _read(tmp_path, _square()).direct
    assert direct is not None
    assert direct.dimensions == direct.axes == ("east", "north")
    assert direct.sides == (3, 3)
    assert np.bincount(direct.link_dimension + 1).tolist() == [9, 9, 9]
    assert int(direct.link_wraps.sum()) == 6
    assert direct.coordinates[0].tolist() == [0, 0]
    assert direct.coordinates[1].tolist() == [TO_HOST, TO_HOST]  # a host without coordinates


def test_a_file_that_says_nothing_of_dimensions_is_no_direct_network(tmp_path: Path) -> None:
    content = _square()
    for row in [*content["nodes"], *content["links"]]:
        for key in ("at", "dimension", "wraps"):
            row.pop(key, None)
    assert _read(tmp_path, content).direct is None


def test_mistakes_are_told_all_at_once_with_their_places(tmp_path: Path) -> None:
    content = _square()
    content["direct"] = {"dimensions": ["east", "north"], "axes": ["east", "north"], "sides": [3]}
    content["nodes"][0]["at"] = [0, 1, 2]
    content["links"][0]["dimension"] = "east"  # of a host
    content["links"][1]["dimension"] = "eats"
    content["links"][2].pop("dimension")
    content["links"][4]["wraps"] = "perhaps"
    content["links"][5]["optical"] = "ocs0"
    with pytest.raises(ConfigError) as wrong:
        _read(tmp_path, content)
    found = {mistake.path: mistake for mistake in wrong.value.mistakes}
    assert found["direct.sides"].text == "found 1 side, wanted 2, one for each axis"
    assert "wanted 2 whole numbers" in found["nodes.s00.at"].text
    assert "which has no dimension" in found["links.0.dimension"].text
    assert found["links.1.dimension"].fix == "east"
    assert "is missing" in found["links.2.dimension"].text
    assert "wanted true or false" in found["links.4.wraps"].text
    assert "list them in direct.optical.names" in found["links.5.optical"].text


def test_a_coordinate_beyond_its_side_is_refused(tmp_path: Path) -> None:
    content = _square()
    content["direct"] = {"axes": ["east", "north"], "sides": [2, 3]}
    with pytest.raises(ConfigError, match=r"found \[2, 0\], wanted each below its side \[2, 3\]"):
        _read(tmp_path, content)


def test_columns_of_a_wrong_shape_are_refused_in_python() -> None:
    fabric = FABRICS["torus"]
    assert fabric.direct is not None
    broken = replace(fabric.direct, link_wraps=fabric.direct.link_wraps[1:], dimensions=("x",))
    with pytest.raises(ConfigError) as wrong:
        checked_fabric(replace(fabric, direct=broken))
    assert {mistake.path for mistake in wrong.value.mistakes} == {"direct.link_wraps", "direct.link_dimension"}
