"""A run's folder has all that its readers need, and one that lacks something of it is refused by every command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from helpers.command import Command, command_of
from helpers.gallery import Gallery
from helpers.pages import simulated

import weftwork
from weftwork.store.damage import FORMAT, PROVENANCE
from weftwork.store.runs import Run

INCAST = "traffic: {pattern: incast, senders: 3, size: 4KB}"


@pytest.fixture(scope="module")
def run(gallery: Gallery) -> Run:
    return simulated(gallery, INCAST)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    return command_of(capsys)


def changed(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(file.read_text(encoding="utf-8"))
    change(document)
    file.write_text(json.dumps(document), encoding="utf-8")


def without_column(folder: Path) -> None:
    table = pq.read_table(folder / "links.parquet")
    pq.write_table(table.drop_columns(["mean_rate_bps"]), folder / "links.parquet")


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "another format": (
        lambda folder: changed(folder / "provenance.json", lambda found: found.update(format=FORMAT - 1)),
        f"provenance.json  found the format {FORMAT - 1}, wanted {FORMAT}; run the scenario again",
    ),
    "no schema": (
        lambda folder: changed(folder / "provenance.json", lambda found: found.pop("schema")),
        "provenance.json  lacks 'schema'; run the scenario again",
    ),
    "no number": (
        lambda folder: changed(folder / "summary.json", lambda found: found["numbers"].pop("simulated_ps")),
        "summary.json  lacks the number 'simulated_ps'; run the scenario again",
    ),
    "no answer": (
        lambda folder: changed(folder / "summary.json", lambda found: found.pop("answer")),
        "summary.json  lacks 'answer'; run the scenario again",
    ),
    "no table": (
        lambda folder: (folder / "nodes.parquet").unlink(),
        "nodes.parquet  is missing; run the scenario again",
    ),
    "no column": (without_column, "links.parquet  lacks the column 'mean_rate_bps'; run the scenario again"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "line", [("report", "cut"), ("compare", "cut", "whole"), ("runs", "show", "cut")], ids=" ".join
)
def test_a_folder_that_lacks_something_is_refused_with_its_name_and_the_advice(
    command: Command, run: Run, tmp_path: Path, case: str, line: tuple[str, ...]
) -> None:
    shutil.copytree(run.path, tmp_path / "whole")
    shutil.copytree(run.path, tmp_path / "cut")
    cut, words = CASES[case]
    cut(tmp_path / "cut")
    found = command(*line)
    assert found.code == 2
    head, mistake = found.err.splitlines()
    assert ": 1 mistake, nothing was run" in head
    assert mistake.strip().removeprefix("cut/") == words
    assert "cut" in (head + mistake)  # a comparison names the folder of each mistake


def test_a_run_writes_the_keys_that_are_asked_for_and_no_fewer(run: Run, tmp_path: Path) -> None:
    of_all = {"format", "status"}
    assert {*run.provenance} == {*PROVENANCE["one"]} | of_all
    several = weftwork.run(run.path / "scenario.yaml", out=tmp_path / "several", seeds=2, what_if="none")
    assert {*several.provenance} == {*PROVENANCE["several"]} | of_all
    assert weftwork.open_run(several.path).summary.keys() == run.summary.keys()
