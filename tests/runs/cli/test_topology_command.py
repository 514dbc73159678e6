"""``weftwork topology``: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from weftwork.base.errors import ConfigError
from weftwork.cli.topology import fabric_in, topology
from weftwork.cli.topology_loss import print_loss
from weftwork.topology.build import fabric_of
from weftwork.topology.from_file import read_fabric
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
