"""Which files a change touches: by imports, names in strings, files found by their folder, data, and the C++ core."""

from __future__ import annotations

from pathlib import Path

import pytest
from planner.history import tracked_files
from planner.import_graph import ImportGraph

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
