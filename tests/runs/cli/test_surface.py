"""`weftwork.report` and `weftwork.compare`: the pages and findings of the commands, from runs in Python."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from helpers.command import command_of

import weftwork
import weftwork.report.page
from weftwork.base.errors import ConfigError, UsageError
from weftwork.study.results.compare_runs import compare_runs

SMALL: dict[str, Any] = {
    "fabric": {"topology": "fat-tree", "tiers": 2, "radix": 8, "link_rate": "100Gbps"},
    "traffic": {"pattern": "permutation", "size": "64KiB"},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[weftwork.Run, weftwork.Run]:
    folder = tmp_path_factory.mktemp("runs")
    first = weftwork.run(SMALL, out=folder / "a", what_if="none")
    return first, weftwork.run(SMALL, overrides={"engine.seed": 2}, out=folder / "b", what_if="none")


def test_the_package_and_the_function_are_one(runs: tuple[weftwork.Run, weftwork.Run]) -> None:
    assert weftwork.report.page.run_page(runs[0]).startswith("<!DOCTYPE html>")  # type: ignore[attr-defined]
    assert list(inspect.signature(weftwork.report).parameters) == ["runs", "path", "prices"]


def test_a_report_is_the_page_of_the_command(
    runs: tuple[weftwork.Run, weftwork.Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = command_of(capsys)
    for number, given in enumerate(([runs[0]], list(runs))):
        file = tmp_path / f"{number}.html"
        assert weftwork.report(given, file) == file
        assert capsys.readouterr().out == ""
        command("report", *(str(one.path) for one in given), "--out", str(tmp_path / "command.html"))
        assert file.read_bytes() == (tmp_path / "command.html").read_bytes()


def test_one_run_needs_no_list_and_gets_a_place_beside_it(runs: tuple[weftwork.Run, weftwork.Run]) -> None:
    assert weftwork.report(runs[0]) == runs[0].path.resolve().parent / "a.html"
    assert weftwork.report(str(runs[0].path)) == weftwork.report(iter([runs[0].path]))


def test_a_name_that_ends_in_json_is_a_trace(runs: tuple[weftwork.Run, weftwork.Run], tmp_path: Path) -> None:
    training = {
        "fabric": {"topology": "rail-optimized", "node": "dgx-h100", "gpus": 16, "radix": 32},
        "training": {"model": "llama-3-8b", "tensor": 8, "global_batch": 16, "micro_batch": 1},
    }
    run = weftwork.run(training, out=tmp_path / "run", what_if="none")
    assert "traceEvents" in json.loads(weftwork.report(run, tmp_path / "a.json").read_text(encoding="utf-8"))
    with pytest.raises(ConfigError, match="trains nothing"):
        weftwork.report(runs[0], tmp_path / "b.json")


@pytest.mark.parametrize(("given", "path"), [(3, None), ([], None), ([3], None), (None, None)])
def test_what_is_no_run_is_refused(given: Any, path: Any) -> None:
    with pytest.raises(UsageError, match="wanted"):
        weftwork.report(given, path)


def test_mistakes_are_those_of_the_command(runs: tuple[weftwork.Run, weftwork.Run], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"wanted \.html"):
        weftwork.report(runs[0], tmp_path / "a.pdf")
    with pytest.raises(UsageError, match="found path=3"):
        weftwork.report(runs[0], 3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError) as found:
        weftwork.compare(tmp_path / "no", runs[0], tmp_path / "none")
    assert len(found.value.mistakes) == 2
    with pytest.raises(ConfigError, match="found 1 run, wanted 2"):
        weftwork.compare(runs[0])


def test_a_comparison_is_that_of_the_command(runs: tuple[weftwork.Run, weftwork.Run]) -> None:
    found = weftwork.compare(*runs)
    assert found == compare_runs(runs)
    assert [one.key for one in found.differences] == ["engine.seed"]
    assert weftwork.compare(*(str(run.path) for run in runs)) == found
