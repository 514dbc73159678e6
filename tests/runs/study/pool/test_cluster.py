"""A pool on a Ray cluster: the results of the local pool, whatever happens to a worker; and what is refused."""

from __future__ import annotations

from pathlib import Path

from helpers.sweeps import pool_points, with_pattern

from weftwork.base.version import VERSION
from weftwork.study.pool.cluster import _work
from weftwork.study.pool.work import run_point


def test_a_worker_says_what_it_lacks(tmp_path: Path) -> None:
    (point,) = pool_points(with_pattern(tmp_path), {"traffic.kilobytes": "1"})
    (tmp_path / "mark").touch()
    older = _work(run_point, point, tmp_path / "mark", tmp_path, "0.0.1")
    assert f"has Weftwork {VERSION}, and this machine has 0.0.1; install the same" in older.reason
    apart = _work(run_point, point, tmp_path / "mark", tmp_path / "away", VERSION)
    assert f"does not see {tmp_path / 'away'}" in apart.reason
    assert not (tmp_path / point.folder).exists()
