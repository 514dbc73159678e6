"""`weftwork new` and `weftwork test`: from nothing to a file of one's own that runs and passes, for every kind."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from helpers.command import Command, command_of

import weftwork
from weftwork.cli.new import TEMPLATES
from weftwork.testing.files import check_file


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run a command of Weftwork in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return command_of(capsys)


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_template_passes_its_own_kit(kind: str) -> None:
    report = check_file(Path(str(files("weftwork") / "templates" / f"{kind}.py")))
    assert (report.kind, report.failures, report.left_out) == (kind, [], ())


@pytest.mark.parametrize("kind", ["congestion_control", "port_selection", "path_selection"])
def test_a_policy_says_the_same_in_both_packet_engines(command: Command, kind: str) -> None:
    command("new", kind, "mine")
    for fidelity in ("packet", "reference"):
        assert command("run", "mine.yaml", "--set", f"engine.fidelity={fidelity}", "-o", fidelity).code == 0
    one, other = (weftwork.open_run(fidelity).summary["fct_max_ps"] for fidelity in ("packet", "reference"))
    assert one == other
