"""A network whose hosts forward is refused by every run, and answers what needs no run."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.command import Command, command_of

SCENARIO = """schema: 3
fabric: {topology: bcube, hosts_per_switch: 4, link_rate: 100Gbps}
collective: {operation: all-reduce, size: 1MiB}
"""


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.chdir(tmp_path)
    Path("bcube.yaml").write_text(SCENARIO, encoding="utf-8")
    return command_of(capsys)


@pytest.mark.parametrize("words", ["run bcube.yaml", "collective all-reduce --fabric bcube.yaml"])
def test_commands_that_run_end_with_2(command: Command, words: str) -> None:
    done = command(*words.split())
    assert done.code == 2
    assert "fabric.topology" in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("topology bcube.yaml", "16 x plain: 1 GPU, 2 NIC ports"),
        ("topology bcube.yaml --limits", "at most 2 hops apart"),
        ("topology bcube.yaml --without level0.0", "4 links are gone"),
        ("cost bcube.yaml", "bcube, n = 4, 2 levels"),
    ],
)
def test_commands_without_a_run_answer(command: Command, words: str, told: str) -> None:
    done = command(*words.split())
    assert done.code == 0, done.err
    assert told in done.out


def test_it_is_drawn_and_exported(command: Command) -> None:
    assert command("topology", "bcube.yaml", "--picture", "bcube.svg", "--export", "bcube.json").code == 0
    drawn = Path("bcube.svg").read_text(encoding="utf-8")
    assert all(f">host{number}<" in drawn for number in range(16))  # hosts and their links, no circle of switches
    first = command("topology", "bcube.yaml").out
    again = command("topology", "bcube.json").out
    assert again == first


def test_a_run_of_its_file_is_refused_by_the_key_of_the_file(command: Command) -> None:
    assert command("topology", "bcube.yaml", "--export", "bcube.graphml").code == 0
    scenario = "schema: 3\nfabric: {file: bcube.graphml}\ncollective: {operation: all-reduce, size: 1MiB}\n"
    Path("from_file.yaml").write_text(scenario, encoding="utf-8")
    done = command("run", "from_file.yaml")
    assert done.code == 2
    assert "fabric.file" in done.err
    assert "found bcube, in which servers forward" in done.err
