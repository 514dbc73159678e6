"""Which files a change touches: by imports, names in strings, files found by their folder, data, and the C++ core."""

from __future__ import annotations

from pathlib import Path

import pytest
from planner.history import tracked_files
from planner.import_graph import CORE, ImportGraph

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    return ImportGraph(ROOT, tracked_files(ROOT))


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        ("src/weftwork/base/random.py", "tests/unit/base/test_random.py"),
        ("src/weftwork/policies/congestion_control/dcqcn.py", "src/weftwork/policies/load.py"),  # found by its folder
        ("src/weftwork/topology/shapes/torus.py", "src/weftwork/topology/shapes/__init__.py"),
        ("native/packet/buffer.hpp", "src/weftwork/engine/packet.py"),
        ("src/weftwork/hardware/switches.toml", "src/weftwork/hardware/catalogue.py"),
        ("tests/helpers/tiny.py", "tests/helpers/credits.py"),
    ],
)
def test_a_change_touches_what_needs_it(changed: str, touched: str, graph: ImportGraph) -> None:
    distances = graph.distances([changed])
    assert touched in distances
    assert 0 < distances[touched] <= 3


def test_what_nobody_needs_touches_itself_alone(graph: ImportGraph) -> None:
    assert graph.distances(["README.md"]) == {"README.md": 0}


def test_no_lower_floor_is_touched_by_a_higher_one(graph: ImportGraph) -> None:
    touched = graph.distances(["src/weftwork/cli/design.py"])
    assert [file for file in touched if file.startswith(("src/weftwork/engine", "src/weftwork/spec"))] == []


def test_every_file_of_the_core_is_behind_one_module(graph: ImportGraph) -> None:
    assert graph.distances(["native/flow/fluid.hpp"]).keys() == graph.distances(["native/bindings.cpp"]).keys()
    assert CORE in graph.files
