"""Options that commands share: each command has them, or a reason why they mean nothing there.

Leaves out: what the options do, which the tests of each command show.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.command import command_of
from typer.core import TyperGroup

from weftwork.cli.commands import root_command
from weftwork.cli.new import TEMPLATES

PRINTS = "it only prints; a shell puts that into a file"
NO_SCENARIO = "it reads no scenario whose keys could be set"
BY_SET = "one run follows engine.seed, a key of the scenario: --set engine.seed=N"
NOTHING_RANDOM = "it draws nothing"

# What a command has instead, or why the option means nothing.
REASONS: dict[str, dict[str, str]] = {
    "-o": {
        **dict.fromkeys(("collective", "compare", "list", "explain", "runs list", "runs show", "runs prune",
                         "rdma decode", "rdma ping", "rdma show", "rdma peer"), PRINTS),
        "rdma perf": "-o is --outstanding, as in perftest, whose options it takes",
        "rdma simulate": "its one file is a capture: --capture FILE",
    },
    "--set": {
        **dict.fromkeys(("list", "explain", "schema", "compare", "report", "runs list", "runs show", "runs prune",
                         "rdma perf", "rdma ping", "rdma show", "rdma decode", "rdma compare-tcp", "rdma peer",
                         "validate", "calibrate"), NO_SCENARIO),
        "cross": "its scenarios are Weftwork's own, so that crossings of two people can be compared",
        "new": "it writes a scenario to be edited",
    },
    "--suspect": {
        **dict.fromkeys(("list", "explain", "schema", "compare", "report", "runs list", "runs show", "runs prune",
                         "cost", "new", "import", "test", "topology"), "it runs no scenario"),
        **dict.fromkeys(("cross", "tune", "design", "plan", "collective"), "it compares times, and asks nobody why"),
        **dict.fromkeys(("validate", "calibrate"), "its runs are compared with measurements"),
        **dict.fromkeys(("rdma perf", "rdma ping", "rdma show", "rdma decode", "rdma compare-tcp", "rdma peer",
                         "rdma simulate"), "its programs are real"),
    },
    "--json": {"schema": "its output is JSON as it is"},
    "--seed": {
        **dict.fromkeys(("plan", "collective", "design", "rdma simulate"), BY_SET),
        **dict.fromkeys(("sweep", "cross", "tune", "topology"), "it takes --seeds, a number of consecutive seeds"),
        **dict.fromkeys(("new", "import", "test", "compare", "report", "cost", "validate", "calibrate", "list",
                         "explain", "schema", "runs list", "runs show", "runs prune", "rdma perf", "rdma ping",
                         "rdma show", "rdma decode", "rdma compare-tcp", "rdma peer"), NOTHING_RANDOM),
    },
}  # fmt: skip


def leaves(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(command, TyperGroup):
        yield name, command
        return
    for word, below in command.commands.items():
        yield from leaves(below, f"{name} {word}".strip())


COMMANDS = dict(leaves(root_command()))


def spellings(command: Any, option: str) -> set[str]:
    """All spellings of the parameter with this option."""
    return {one for parameter in command.params if option in parameter.opts for one in parameter.opts}


@pytest.mark.parametrize("option", REASONS)
def test_a_command_has_the_option_or_a_reason(option: str) -> None:
    has = {name for name, command in COMMANDS.items() if spellings(command, option)}
    reasons = set(REASONS[option])
    if option == "-o":
        has -= {"rdma perf"}
    assert has & reasons == set(), "has the option, and a reason why not"
    assert has | reasons == set(COMMANDS), "neither the option nor a reason"


def test_the_short_form_of_out_is_everywhere_the_same() -> None:
    for name, command in COMMANDS.items():
        if name != "rdma perf":
            assert ("-o" in spellings(command, "--out")) == bool(spellings(command, "-o")), name
            assert bool(spellings(command, "--out")) == bool(spellings(command, "-o")), name


@pytest.mark.parametrize("kind", sorted(TEMPLATES))
@pytest.mark.parametrize("name", ["my_file", "my_file.py", "my_file.yaml"])
def test_new_takes_the_suffix(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = command_of(capsys)("new", kind, name, "--json")
    assert answer.code == 0, answer.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my_file.py", "my_file.yaml"]
    assert json.loads(answer.out)["files"] == ["my_file.py", "my_file.yaml"]
    assert "my_file.py.py" not in (tmp_path / "my_file.yaml").read_text(encoding="utf-8")


def test_new_writes_into_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                  capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    command = command_of(capsys)
    answer = command("new", "traffic", "mine.py", "-o", "my parts", "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["commands"]["test"] == "weftwork test 'my parts/mine.py'"
    assert sorted(path.name for path in (tmp_path / "my parts").iterdir()) == ["mine.py", "mine.yaml"]
    again = command("new", "traffic", "mine", "-o", "my parts")
    assert again.code == 2
    assert "'my parts/mine.py' exists already and is not overwritten" in again.err
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert command("new", "traffic", "mine", "-o", "file").code == 2


def test_a_recipe_takes_the_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                   capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    answer = command_of(capsys)("new", "recipe", "26.06/llama-3-70b/gb300/mxfp8.yaml", "-o", "recipes")
    assert answer.code == 0, answer.err
    assert [path.name for path in (tmp_path / "recipes").iterdir()] == ["26.06-llama-3-70b-gb300-mxfp8.yaml"]


def test_the_schema_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = command_of(capsys)
    assert command("schema", "-o", str(tmp_path / "scenario.json")).code == 0
    assert json.loads((tmp_path / "scenario.json").read_text(encoding="utf-8")) == json.loads(command("schema").out)
    assert command("schema", "-o", str(tmp_path / "no" / "scenario.json")).code == 2


def test_a_mistake_carries_its_changes_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(
        "schema: 3\nfabric: {topology: fat-tre, tiers: 3, radx: 4}\ntraffic: {pattern: permutation}\n", encoding="utf-8"
    )
    answer = command_of(capsys)("run", str(path), "--json")
    assert answer.code == 2
    changes = {one["path"]: one["changes"] for one in json.loads(answer.out)["error"]["mistakes"]}
    assert changes == {
        "fabric.topology": [{"set": "fabric.topology", "value": "fat-tree"}],
        "fabric.radx": [{"move": "fabric.radx", "to": "fabric.radix"}],
    }
