"""A command that reads a scenario refuses another schema, and says which line to write or what to install."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.command import Command, command_of

from weftwork.spec.scenario.migrations import SCHEMA

TRAFFIC = """\
name: other
schema: {}
fabric: {{topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps}}
transport: {{sise: 64KiB}}
traffic: {{pattern: permutation, size: 64KiB}}
"""
TRAINING = """\
name: other
schema: {}
fabric: {{topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps}}
transport: {{sise: 64KiB}}
training: {{model: llama-3-8b, global_batch: 8}}
"""
COMMANDS = {
    "run": (TRAFFIC, "run", "other.yaml", "-o", "out"),
    "sweep": (TRAFFIC, "sweep", "other.yaml", "--set", "engine.seed=1,2", "-o", "out"),
    "tune": (TRAFFIC, "tune", "other.yaml", "--parameter", "fabric.switch.ecn.kmin", "-o", "out"),
    "collective": (TRAFFIC, "collective", "all-reduce", "--fabric", "other.yaml"),
    "topology": (TRAFFIC, "topology", "other.yaml"),
    "limits": (TRAFFIC, "topology", "other.yaml", "--limits"),
    "cost": (TRAFFIC, "cost", "other.yaml"),
    "plan": (TRAINING, "plan", "other.yaml", "-o", "out"),
    "design": (TRAINING, "design", "other.yaml", "--gpus", "64", "-o", "out"),
}


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    return command_of(capsys)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_schema_that_was_never_released_is_told_with_its_line_and_the_other_mistakes(
    command: Command, tmp_path: Path, name: str
) -> None:
    text, *line = COMMANDS[name]
    (tmp_path / "other.yaml").write_text(text.format(2), encoding="utf-8")
    found = command(*line)
    assert found.code == 2
    told = [row.split() for row in found.err.splitlines()]
    assert ["line", "2", "schema", "found", "'2',", "wanted", "`schema:", "3`"] in told
    assert any("sise" in " ".join(row) for row in told)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_newer_schema_is_told_alone(command: Command, tmp_path: Path, name: str) -> None:
    text, *line = COMMANDS[name]
    (tmp_path / "other.yaml").write_text(text.format(SCHEMA + 1), encoding="utf-8")
    found = command(*line)
    assert found.code == 2
    assert f"line 2  schema  found '{SCHEMA + 1}', and this Weftwork reads schema {SCHEMA}" in found.err
    assert "sise" not in found.err
    assert not (tmp_path / "out").exists()
