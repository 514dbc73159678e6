"""``weftwork topology``: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from weftwork.base.errors import ConfigError
from weftwork.cli.topology import print_measures, record, topology
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.measures import measure

EXAMPLES = Path(__file__).parents[3] / "examples" / "fabrics"


def printed(fabric: Fabric) -> str:
    console = Console(file=StringIO(), width=110, highlight=False)
    print_measures(console, fabric, measure(fabric))
    text = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


@pytest.mark.parametrize(
    ("name", "section"),
    [
        ("fat_tree_2_tiers", {"topology": "fat-tree", "tiers": 2, "switch": "quantum-2"}),
        pytest.param(
            "fat_tree_3_tiers", {"topology": "fat-tree", "tiers": 3, "radix": 64}, marks=pytest.mark.deep
        ),  # 65,536 hosts
        ("leaf_spine", {"topology": "leaf-spine", "hosts": 504, "oversubscription": 3, "switch": "tomahawk-4"}),
        ("rail_optimized", {"topology": "rail-optimized", "gpus": 1_024, "node": "dgx-h100", "switch": "tomahawk-5"}),
        ("rail_only", {"topology": "rail-optimized", "gpus": 256, "node": "p5", "radix": 128, "spines": 0}),
        ("two_leaves", {"file": EXAMPLES / "two_leaves.json"}),
        ("ring_of_four", {"file": EXAMPLES / "ring_of_four.graphml"}),
    ],
)
def test_tables(check_golden: Callable[[str, str], None], name: str, section: dict[str, object]) -> None:
    check_golden(f"topology/{name}.txt", printed(fabric_of(**section)))  # type: ignore[arg-type]


def test_json_has_units_and_facts(check_golden: Callable[[str, str], None]) -> None:
    fabric = fabric_of(file=EXAMPLES / "two_leaves.json")
    check_golden("topology/two_leaves.json", json.dumps(record(fabric, measure(fabric)), indent=2) + "\n")


@pytest.mark.parametrize("option", [{"export": Path("x.png")}, {"picture": Path("x.png")}])
def test_other_endings_are_refused(option: dict[str, Path]) -> None:
    with pytest.raises(ConfigError, match=r"found a file that ends in '\.png'"):
        topology(EXAMPLES / "two_leaves.json", **option)  # type: ignore[arg-type]


def test_notes_stand_apart_from_unverified_figures() -> None:
    text = printed(
        fabric_of(topology="dragonfly", radix=8, hosts=20, groups=4, switch="rosetta", link_rate_bps=200_000_000_000)
    )
    unverified, notes = text.partition("\nNotes:\n")[::2]
    assert "rosetta.buffer_bytes" in unverified.partition("\nNot verified:\n")[2]
    assert notes.strip() == (
        "fabric.global_ports  2 of the 8 global ports of each group stay empty: 3 other groups with 2 links each take 6"
    )
    assert "Not verified" not in printed(fabric_of(topology="dragonfly", radix=8, groups=4))
