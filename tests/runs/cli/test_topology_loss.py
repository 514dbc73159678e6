"""``weftwork topology FILE --without``: valleys, random losses and the job, in words and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.topology_loss import FABRIC, told

from weftwork.cli.topology import topology

SCENARIO = """schema: 3
fabric: {topology: leaf-spine, leaves: 4, spines: 4, hosts_per_leaf: 4}
traffic: {pattern: permutation, size: 2MiB}
"""


def test_routes_with_valleys_are_told_with_an_example() -> None:
    text = told(FABRIC, ["leaf0-spine0", "leaf0-spine1", "leaf1-spine2", "leaf1-spine3"])
    assert "No route up and then down any more: 1 of 6 pairs of leaves that keep hosts." in text
    assert "Shortest routes go down and up again (a valley): all of 1 pair of leaves, such as leaf1 - spine0" in text
    assert "Under PFC they can deadlock" in text
    assert "`fabric.routing: up-down` forbids them: 1 pair has no route left." in text
    assert "The fewest disjoint paths join leaf0 and leaf1." in text
    cut = told(FABRIC, ["leaf0/up"])
    assert "No route up and then down any more: 3 of 6 pairs of leaves that keep hosts, 3 of them without" in cut
    assert "valley" not in cut
    assert "no shortest route has a valley." in told(FABRIC, ["spine0"])


def test_all_of_it_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    topology(scenario, without=["spine0"], has_iteration=True, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["without"] == found["names"] == ["spine0"]
    assert found["job"]["quantity"] == "completion_ps"
    assert found["job"]["slowdown"] >= 1
    assert found["valleys_after"]["pairs_legal"] == 6
    assert (found["disjoint_before"]["paths"], found["disjoint_after"]["paths"]) == (4, 3)
    topology(scenario, without=["spine0", "random:10%"], seeds=5, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["without"] == ["spine0", "random:10%"]
    assert len(found["random"]["kept"]) == found["random"]["seeds"] == 5
    assert set(found["random"]["keeps"]) == {"seeds", "of", "share", "low", "high"}


def test_words_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    topology(scenario, without=["random:10%"], seeds=3, picture=tmp_path / "whole.svg")
    said = capsys.readouterr().out
    assert "3 seeds, from 0." in said
    assert "wrote" in said
    topology(scenario, without=["random:10%@2"], has_iteration=True)
    assert "On the flow engine all traffic takes" in capsys.readouterr().out
