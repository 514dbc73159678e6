"""The pool: every point once, on the road of `weftwork run`; no run lost with its worker, none taken for another."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.sweeps import SCENARIO, fills_the_disk, pool_points, tells_its_process, with_pattern

from weftwork.study.pool.pool import lasting_workers, run_pool
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


def test_workers_last_from_pool_to_pool_and_are_started_again_where_one_has_died(runs: Path, tmp_path: Path) -> None:
    points = pool_points(
        with_pattern(tmp_path),
        {"traffic.kilobytes": "1"},
        {"traffic.kilobytes": "2"},
        {"traffic.kilobytes": "3", "traffic.deaths": "1"},
        {"traffic.kilobytes": "4"},
    )
    with lasting_workers() as outcomes:
        found = [
            next(run_pool([point], runs, workers=1, task=tells_its_process, outcomes=outcomes)) for point in points
        ]
    assert [one.end for one in found] == ["run"] * 4
    assert [one.tries for one in found] == [1, 1, 2, 1]
    processes = [int(one.reason) for one in found]
    assert processes[0] == processes[1]
    assert processes[3] not in processes[:3]
    assert not any(Path(f"/proc/{number}").exists() for number in processes)


def test_a_worker_that_dies_loses_no_run(tmp_path: Path, runs: Path) -> None:
    """One point kills its worker once, and another one each time."""
    points = pool_points(
        with_pattern(tmp_path),
        {"traffic.kilobytes": "1"},
        {"traffic.kilobytes": "2", "traffic.deaths": "1"},
        {"traffic.kilobytes": "3", "traffic.deaths": "9"},
    )
    outcomes = {one.point: one for one in run_pool(points, runs, task=run_point, workers=2)}
    assert {place: one.end for place, one in outcomes.items()} == {0: "run", 1: "run", 2: "lost"}
    assert points[2].command in outcomes[2].reason
    assert "died 3 times" in outcomes[2].reason
    assert len(list(tmp_path.glob("deaths-3-*"))) == 3
    assert sorted(path.name for path in runs.glob("[0-9]*")) == sorted(point.folder for point in points[:2])


def test_a_disk_that_fills_ends_the_pool_and_keeps_what_is_whole(file: Path, runs: Path) -> None:
    points = pool_points(file, *SENDERS, {"traffic.senders": "2"}, {"traffic.senders": "4"})
    outcomes = list(run_pool(points, runs, workers=1, task=fills_the_disk))
    assert [(one.point, one.end) for one in outcomes] == [(0, "run"), (1, "run"), (2, "full")]
    assert sorted(path.name for path in runs.glob("[0-9]*")) == [point.folder for point in points[:2]]
    again = {one.point: one.is_kept for one in run_pool(points, runs, task=run_point, workers=2)}
    assert again == {0: True, 1: True, 2: False, 3: False, 4: False}
