"""`weftwork tune`: the gain first, then the parameters; a page, a scenario, and the command that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.command import Command, command_of
from helpers.sweeps import SCENARIO


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
