"""``weftwork topology``: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from weftwork.base.errors import ConfigError
from weftwork.cli.topology import fabric_in, print_measures, record, topology
from weftwork.cli.topology_loss import print_loss
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.from_file import read_fabric
from weftwork.topology.measures import measure
from weftwork.topology.without import measure_loss

EXAMPLES = Path(__file__).parents[3] / "examples" / "fabrics"

SCENARIO = """schema: 3
fabric:
  topology: leaf-spine
  hosts: 96
  radix: 32
  oversubscription: 3
  switch: {switch}
traffic: {{pattern: permutation, size: 2MiB}}
"""


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


@pytest.mark.parametrize(
    ("name", "section", "lost"),
    [
        ("without_leaf", {"topology": "rail-optimized", "gpus": 1_024, "node": "dgx-h100", "radix": 64},
         ["leaf3", "host40/nic0"]),
        ("without_spine", {"topology": "rail-optimized", "gpus": 1_024, "node": "dgx-h100", "radix": 64}, ["spine0"]),
        ("without_its_leaf", {"topology": "leaf-spine", "hosts": 64, "radix": 32}, ["leaf3", "leaf0-spine1.2"]),
        pytest.param(
            "without_large", {"topology": "rail-optimized", "gpus": 65_536, "node": "dgx-h100", "radix": 64}, ["leaf3"],
            marks=pytest.mark.deep,
        ),
    ],
)  # fmt: skip
def test_what_a_loss_means(
    check_golden: Callable[[str, str], None], name: str, section: dict[str, object], lost: list[str]
) -> None:
    fabric = fabric_of(**section)  # type: ignore[arg-type]
    console = Console(file=StringIO(), width=110, highlight=False)
    print_loss(console, fabric, measure_loss(fabric, lost))
    text = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    check_golden(f"topology/{name}.txt", "\n".join(line.rstrip() for line in text.splitlines()) + "\n")


def test_a_loss_is_told_drawn_and_written_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(SCENARIO.format(switch="tomahawk-3"), encoding="utf-8")
    topology(scenario, without=["leaf1"], as_json=True, picture=tmp_path / "lost.svg")
    told = json.loads(capsys.readouterr().out)
    assert told["without"] == ["leaf1"]
    assert told["after"]["hosts_alone"] == 24
    assert told["bisection_after"]["rate_bps"] < told["bisection_before"]["rate_bps"]
    assert ">cut off<" in (tmp_path / "lost.svg").read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match=r"--without .*did you mean 'leaf1'"):
        topology(scenario, without=["leav1"])


def test_a_scenario_is_read_built_drawn_and_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(SCENARIO.format(switch="tomahawk-3"), encoding="utf-8")
    topology(scenario, export=tmp_path / "small.graphml", picture=tmp_path / "small.svg")
    out = capsys.readouterr().out
    assert "96" in out
    assert "tomahawk-3.buffer_bytes  64MB, unverified" in out
    assert len(read_fabric(tmp_path / "small.graphml").hosts) == 96
    assert (tmp_path / "small.svg").read_text(encoding="utf-8").startswith("<svg")
    topology(scenario, as_json=True, overrides={"fabric.oversubscription": "1"})
    assert json.loads(capsys.readouterr().out)["oversubscription_by_tier"] == {"1": 1.0}


def test_what_only_the_built_fabric_knows_has_its_line(tmp_path: Path) -> None:
    scenario = tmp_path / "wrong.yaml"
    scenario.write_text(SCENARIO.format(switch="tomahwak-3"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"line 7  fabric.switch .*did you mean 'tomahawk-3'"):
        fabric_in(scenario)
    scenario.write_text(SCENARIO.format(switch="tomahawk-3").replace("radix: 32", "radix: 64"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"line 5  fabric.radix .*'tomahawk-3' has 32 ports"):
        fabric_in(scenario)


def test_a_fabric_file_of_a_scenario_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_bytes((EXAMPLES / "two_leaves.json").read_bytes())
    text = "schema: 3\nfabric: {file: mine.json}\ntraffic: {pattern: permutation, size: 2MiB}\n"
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    assert fabric_in(tmp_path / "mine.yaml").name == "two leaves, mixed rates"


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
