"""No argument of a relative is judged by the rules of another program: all of them at once, and the file itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers.imports_relatives import SUFFIX, read, written
from typer.testing import CliRunner

from weftwork.base.errors import ConfigError
from weftwork.cli.commands import app
from weftwork.workload.imports.job_file import RELATIVES

if TYPE_CHECKING:
    from pathlib import Path

NAMES = sorted(SUFFIX)


def exact(name: str) -> list[str]:
    """Ignored arguments of a relative by whole name."""
    return [one for one in RELATIVES[name].ignored if not one.endswith("*")]


@pytest.mark.parametrize("name", NAMES)
def test_no_ignored_argument_is_refused(name: str) -> None:
    """All at once: none is judged by the rules of another program, and each has its reason."""
    settings = dict.fromkeys(exact(name), "1" if name == "megatron-deepspeed" else 1)
    names = [one for one in settings if not any(other.startswith(f"{one}.") for other in settings)]
    found = read(name, written(name, {one: settings[one] for one in names}))
    assert set(names) <= found.ignored.keys()
    assert not found.unknown


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", NAMES)
def test_settings_of_another_relative_are_unknown_and_not_judged(name: str, other: str) -> None:
    if name == other or "megatron-deepspeed" in {name, other}:
        pytest.skip("arguments of a command are no settings of a file")
    strange = {one: 1 for one in exact(other) if "." not in one and RELATIVES[name].reason(one) is None}
    strange = {one: value for one, value in strange.items() if one not in RELATIVES[name].read}
    try:
        found = read(name, written(name, dict(list(strange.items())[:20])))
    except ConfigError as error:
        assert all(f"is no setting of {RELATIVES[name].title}" in one.text for one in error.mistakes)  # noqa: PT017
        return
    assert set(strange) >= set(found.unknown)


@pytest.mark.parametrize("name", NAMES)
def test_a_job_becomes_a_scenario_that_is_ready(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / f"job{SUFFIX[name]}"
    file.write_text(written(name), encoding="utf-8")
    answer = CliRunner().invoke(app, ["import", str(file), "--gpus", "8", "-o", "made.yaml"])
    assert answer.exit_code == 0, answer.output
    assert (tmp_path / "made.yaml").is_file()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\x7fELF", "a program (ELF)"),
        ("schema: 3\n".encode("utf-16"), "text in UTF-16"),
        (b"<graphml/>", "a graph in GraphML"),
        (b"ENABLE_QCN 1\n", "the RDMA fork of ns-3"),
    ],
)
@pytest.mark.parametrize("command", [["run"], ["import"], ["report"], ["calibrate"], ["validate", "--data"]])
def test_a_command_names_a_file_of_another_tool(
    command: list[str], content: bytes, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strange.txt").write_bytes(content)
    answer = CliRunner().invoke(app, [*command, "strange.txt"])
    assert isinstance(answer.exception, ConfigError)
    assert what in str(answer.exception)


@pytest.mark.parametrize("command", [["run"], ["import"], ["calibrate"]])
def test_a_folder_in_place_of_a_file_is_named(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "summary.json").write_text("{}", encoding="utf-8")
    answer = CliRunner().invoke(app, [*command, "made"])
    assert isinstance(answer.exception, ConfigError)
    assert "weftwork report made" in str(answer.exception)
