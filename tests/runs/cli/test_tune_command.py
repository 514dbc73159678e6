"""`weftwork tune`: the gain first, then the parameters; a page, a scenario, and the command that goes on."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command import Command, command_of
from helpers.sweeps import SCENARIO, with_pattern

import weftwork


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run a command of Weftwork in a folder that holds a tiny scenario."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(SCENARIO)
    return command_of(capsys)


def test_mistakes_of_the_options_are_told_at_once_and_nothing_is_written(command: Command, tmp_path: Path) -> None:
    answer = command(
        "tune", "tiny.yaml", "--parameter", "fabric.switch.alfa", "--parameter", "fabric.switch.ecn.kmin=3"
    )
    assert answer.code == 2
    assert "did you mean 'fabric.switch.alpha'?" in answer.err
    assert "wanted LOW..HIGH" in answer.err
    assert "2 mistakes" in answer.err
    assert command("tune", "tiny.yaml").code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.yaml"]


WINDOW = "transport.congestion_control.window_bytes"


TUNE = f"tune tiny.yaml --parameter {WINDOW}=5KB..500KB --set {WINDOW}=1KB --trials 9 --seeds 1 --fresh 2"


@pytest.fixture
def optuna() -> None:
    pytest.importorskip("optuna", reason="Optuna comes with the extra 'plan'")


@pytest.mark.extra
@pytest.mark.usefixtures("optuna")
def test_a_tuning_prints_its_gain_and_leaves_a_scenario_that_runs(command: Command, tmp_path: Path) -> None:
    answer = command(*shlex.split(TUNE), "-o", "out", "-j", "2")
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0].startswith("Completion time goes from 69.1 us to ")
    assert "less (95 % interval" in lines[0]
    assert any(line.startswith("window_bytes") for line in lines)
    assert "page, trials and runs: out" in answer.out
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made >= {"tune.json", "tuned.yaml", "trials.csv", "result.json", "page.html", "command.txt", "runs", "fresh"}
    assert weftwork.run(tmp_path / "out/tuned.yaml", out=tmp_path / "run").is_complete
    head = (tmp_path / "out/tuned.yaml").read_text().splitlines()
    assert head[0] == "# Made by weftwork tune from tiny.yaml, 9 trials."
    page = (tmp_path / "out/page.html").read_text()
    written = command("report", "out")
    assert written.code == 0
    assert (tmp_path / "out/page.html").read_text() == page
    command_line = (tmp_path / "out/command.txt").read_text()
    again = command(*shlex.split(command_line)[1:], "--json")
    document = json.loads(again.out)
    assert document["kept"] == document["runs"] > 10
    assert document["said"][0] == lines[0]
    assert len(document["trials"]) == 9
    text = (tmp_path / "out/page.html").read_text()
    assert text == page
    assert command("report", "out", "run").code == 2


@pytest.mark.extra
@pytest.mark.usefixtures("optuna", "python_hears_sigint")
def test_a_tuning_that_is_interrupted_goes_on_to_the_same_result(tmp_path: Path) -> None:
    file = with_pattern(tmp_path)
    line = "--parameter traffic.kilobytes=1..9 --trials 6 --seeds 1 --fresh 1 -j 1"
    whole = tuned(tmp_path, f"tune {file.name} {line} -o whole")
    assert whole.returncode == 0, whole.stderr
    line = f"tune {file.name} {line} --set traffic.presses=1 -o out"
    found = tuned(tmp_path, line)
    assert found.returncode == 128 + signal.SIGINT, found.stderr
    assert "the tuning was interrupted: " in found.stderr
    again = tuned(tmp_path, line)
    assert again.returncode == 0, again.stderr
    first, second = (json.loads((tmp_path / name / "result.json").read_text()) for name in ("whole", "out"))
    assert first["trials"] == second["trials"]
    assert (first["best"], first["gain"]) == (second["best"], second["gain"])


def tuned(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    program = "import sys; from weftwork.cli import main; sys.exit(main())"
    where = os.environ | {"PYTHONPATH": str(Path(weftwork.__file__).parents[1])}
    command = [sys.executable, "-c", program, *shlex.split(line)]
    return subprocess.run(command, cwd=folder, env=where, capture_output=True, text=True, check=False)
