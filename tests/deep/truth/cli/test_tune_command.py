"""`weftwork tune`: the gain first, then the parameters; a page, a scenario, and the command that goes on."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from helpers.command import Command, command_of
from helpers.sweeps import SCENARIO

WINDOW = "transport.congestion_control.window_bytes"


TUNE = f"tune tiny.yaml --parameter {WINDOW}=5KB..500KB --set {WINDOW}=1KB --trials 9 --seeds 1 --fresh 2"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run a command of Weftwork in a folder that holds a tiny scenario."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(SCENARIO)
    return command_of(capsys)


@pytest.fixture
def optuna() -> None:
    pytest.importorskip("optuna", reason="Optuna comes with the extra 'plan'")


@pytest.mark.extra
@pytest.mark.usefixtures("optuna")
def test_the_number_of_workers_changes_nothing(command: Command, tmp_path: Path) -> None:
    for workers in ("1", "3"):
        assert command(*shlex.split(TUNE), "-o", workers, "-j", workers).code == 0
    one, three = (json.loads((tmp_path / folder / "result.json").read_text()) for folder in ("1", "3"))
    assert one == three
