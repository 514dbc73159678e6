"""The pool: every point once, on the road of `weftwork run`; no run lost with its worker, none taken for another."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers.sweeps import SCENARIO, most_growth, pool_points, with_pattern
from helpers.workers_here import use_workers_here

import weftwork
from weftwork.base.memory import memory_limit, peak_memory_bytes
from weftwork.study.pool.pool import PoolProgress, run_pool, workers_for
from weftwork.study.pool.side_by_side import executor_of
from weftwork.study.pool.work import is_whole
from weftwork.study.record.point_run import run_point

SENDERS = [{"traffic.senders": text} for text in ("3", "5", "7")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs"
    path.mkdir()
    return path


def test_a_pool_gives_the_digests_of_single_runs_and_repeats_none(file: Path, runs: Path, tmp_path: Path) -> None:
    points = pool_points(file, *SENDERS)
    told: list[PoolProgress] = []
    outcomes = list(run_pool(points, runs, task=run_point, workers=2, on_progress=told.append))
    assert sorted((one.point, one.end, one.is_kept) for one in outcomes) == [(n, "run", False) for n in range(3)]
    assert [(now.ended, now.wanted) for now in told] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert told[0].left_s is None
    assert told[-1].left_s == 0
    for point in points:
        alone = weftwork.run(file, overrides=point.overrides, out=tmp_path / f"alone-{point.place}")
        assert weftwork.open_run(runs / point.folder).provenance["digest"] == alone.provenance["digest"]
    before = {path: path.stat().st_mtime_ns for path in runs.glob("*/provenance.json")}
    again = list(run_pool(points, runs, task=run_point, workers=2))
    assert [one.is_kept for one in again] == [True] * 3
    assert {path: path.stat().st_mtime_ns for path in runs.glob("*/provenance.json")} == before


def test_a_worker_stays_however_much_its_memory_grows() -> None:
    with executor_of(1) as executor:
        assert executor.submit(most_growth).result() == (True, sys.maxsize)


def test_what_an_ended_pool_has_left_behind_is_run_again(
    file: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_workers_here(monkeypatch)
    (point,) = pool_points(file, SENDERS[0])
    half = runs / f".{point.folder}-01234567.unfinished"
    half.mkdir()
    (half / "scenario.yaml").write_text("half", encoding="utf-8")
    (runs / point.folder).mkdir()  # whole folders have provenance.json, which is written last
    assert not is_whole(runs / point.folder)
    (outcome,) = run_pool([point], runs, task=run_point, workers=1)
    assert (outcome.end, outcome.is_kept) == ("run", False)
    assert is_whole(runs / point.folder)
    assert [path.name for path in runs.iterdir()] == [point.folder]


def test_a_folder_is_named_for_all_that_its_result_follows_from(tmp_path: Path) -> None:
    file = with_pattern(tmp_path)
    (before,) = pool_points(file, {"traffic.kilobytes": "1"})
    (other,) = pool_points(file, {"traffic.kilobytes": "2"})
    assert before.folder != other.folder
    pattern = tmp_path / "acts.py"
    pattern.write_text(pattern.read_text(encoding="utf-8").replace("total_bytes=1000", "total_bytes=2000"), "utf-8")
    (after,) = pool_points(file, {"traffic.kilobytes": "1"})
    assert before.folder != after.folder


def test_a_folder_is_named_for_the_data_that_its_scenario_names_too(tmp_path: Path) -> None:
    sizes = tmp_path / "sizes.csv"
    file = tmp_path / "poisson.yaml"
    poisson = "{pattern: poisson, sizes: sizes.csv, load: 0.3, flows: 10}"
    pattern = "{pattern: incast, senders: 7, size: 50KB, start_jitter: 5us}"
    file.write_text(SCENARIO.replace(pattern, poisson), encoding="utf-8")
    folders = []
    for size in (1000, 2000):
        sizes.write_text(f"size_bytes,cumulative_percent\n{size},50\n{10 * size},100\n", encoding="utf-8")
        folders += [point.folder for point in pool_points(file, {})]
    assert folders[0] != folders[1]


def test_a_file_that_changes_meanwhile_is_not_run_under_the_old_name(file: Path, runs: Path) -> None:
    (point,) = pool_points(file, SENDERS[0])
    file.write_text(SCENARIO.replace("50KB", "60KB"), encoding="utf-8")
    outcome = run_point(point, runs / point.folder)
    assert outcome.end == "refused"
    assert "has changed since the sweep began" in outcome.reason
    assert list(runs.iterdir()) == []


def test_as_many_runs_go_side_by_side_as_memory_holds() -> None:
    free_bytes = memory_limit().limit_bytes - peak_memory_bytes()
    assert workers_for(100, 1, cores=8) == 8
    assert workers_for(3, 1, cores=8) == 3
    assert workers_for(100, free_bytes // 2 - 2**24, cores=8) == 2
    assert workers_for(100, 10 * free_bytes, cores=8) == 1
