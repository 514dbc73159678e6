"""``weftwork topology FILE --slices``: the table of a TPU pod, its JSON, and options that do not go together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.command import Command, command_of

POD = """schema: 3
fabric: {topology: tpu-pod, slice: [8, 8, 12], failed_cubes: [cube5, cube40]}
collective: {operation: all-reduce, size: 64MiB}
"""


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """``weftwork topology`` in a folder with a pod."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.yaml").write_text(POD, encoding="utf-8")
    return command_of(capsys, "topology")


def test_each_shape_has_a_row(command: Command) -> None:
    found = command("pod.yaml", "--slices")
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("62 of 64 cubes are healthy; fixed cables join them as 4x4x4 cubes.")
    rows = {line.split()[0]: line.split() for line in found.out.splitlines()[2:-5]}
    assert rows["8x8x12"][1:4] == ["12", "5", "4"]
    assert rows["8x16x16"][1:3] == ["(can", "twist)"]
    assert rows["16x16x16"][1:4] == ["64", "0", "0"]
    assert "if each cube is up 98.40% of the time" in found.out


def test_the_record_has_units_and_the_given_availability(command: Command) -> None:
    document = json.loads(command("pod.yaml", "--slices", "--cube-availability", "0.99", "--json").out)
    assert (document["cubes"], document["failed_cubes"], document["cube_availability"]) == (64, [5, 40], 0.99)
    whole = next(row for row in document["slices"] if row["sides"] == [16, 16, 16])
    assert whole["optical_available"] == pytest.approx(0.99**64)
    assert whole["fixed_available"] == {"value": pytest.approx(0.99**64), "error": 0.0}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("pod.yaml", "--slices", "--limits"), "--limits means nothing with --slices"),
        (("pod.yaml", "--slices", "--without", "cube1"), "--without means nothing with --slices"),
        (("pod.yaml", "--slices", "--set", "fabric={topology: torus}"), "found 'torus', but --slices is about cubes"),
        (("pod.yaml", "--cube-availability", "0.9"), "--cube-availability means nothing without --slices"),
        (("--slices",), "Missing argument 'FILE'"),
        (("pod.yaml", "--slices", "--cube-availability", "1.1"), "Input should be less than or equal to 1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(command: Command, arguments: tuple[str, ...], told: str) -> None:
    found = command(*arguments)
    assert found.code == 2
    assert told in " ".join(found.err.split())
