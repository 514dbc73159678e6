"""A pool on a Ray cluster: the results of the local pool, whatever happens to a worker; and what is refused."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.sweeps import pool_points, with_pattern

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.base.version import VERSION
from weftwork.study.pool.cluster import Cluster, _outcomes, _work, connected, refuse_cluster
from weftwork.study.pool.pool import run_pool
from weftwork.study.pool.work import PoolOutcome
from weftwork.study.record.point_run import run_point


def test_a_worker_says_what_it_lacks(tmp_path: Path) -> None:
    (point,) = pool_points(with_pattern(tmp_path), {"traffic.kilobytes": "1"})
    (tmp_path / "mark").touch()
    older = _work(run_point, point, tmp_path / "mark", tmp_path, "0.0.1")
    assert f"has Weftwork {VERSION}, and this machine has 0.0.1; install the same" in older.reason
    apart = _work(run_point, point, tmp_path / "mark", tmp_path / "away", VERSION)
    assert f"does not see {tmp_path / 'away'}" in apart.reason
    assert not (tmp_path / point.folder).exists()


GIB = 2**30


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two workers on this machine, in a cluster that ends with the tests of this file."""
    ray = pytest.importorskip("ray", reason="Ray comes with the extra 'ray'")
    ray.init(
        address="local", num_cpus=2, object_store_memory=75 * 2**20, include_dashboard=False,
        _node_ip_address="127.0.0.1", log_to_driver=False, logging_level="ERROR",
    )  # fmt: skip
    try:
        yield Cluster(address="ray", nodes=((2, 4 * GIB),), memory_bytes=GIB // 4)
    finally:
        ray.shutdown()


def digests(runs: Path, outcomes: dict[int, PoolOutcome]) -> dict[str, object]:
    found = [path for path in runs.iterdir() if path.name != "files" and not path.name.startswith(".")]
    assert len(found) == sum(one.end == "run" for one in outcomes.values())
    return {path.name: weftwork.open_run(path).provenance["digest"] for path in found}


@pytest.mark.extra
def test_a_cluster_gives_the_results_of_the_local_pool_although_a_worker_dies(tmp_path: Path, cluster: Cluster) -> None:
    """One point of each pool kills its worker in the middle, once, and another one each time.

    The local pool has one worker, since a worker that dies there takes the points of the others with it.
    """
    kept = []
    for name, workers, outcomes_there in (("here", 1, None), ("there", 2, cluster.outcomes)):
        folder = tmp_path / name
        (folder / "runs").mkdir(parents=True)
        points = pool_points(
            with_pattern(folder),
            {"traffic.kilobytes": "1"},
            {"traffic.kilobytes": "2", "traffic.deaths": "1"},
            {"traffic.kilobytes": "3"},
            {"traffic.kilobytes": "4", "traffic.deaths": "9"},
            {"traffic.kilobytes": "5"},
        )
        told: list[int] = []
        outcomes = {
            one.point: one
            for one in run_pool(
                points,
                folder / "runs",
                task=run_point,
                workers=workers,
                on_progress=lambda now, told=told: told.append(now.ended),
                outcomes=outcomes_there,
            )
        }
        assert told == [0, 1, 2, 3, 4, 5]
        assert {place: one.end for place, one in outcomes.items()} == dict.fromkeys((0, 1, 2, 4), "run") | {3: "lost"}
        assert (outcomes[1].tries, outcomes[3].tries) == (2, 3)
        assert points[3].command in outcomes[3].reason
        assert len(list(folder.glob("deaths-4-*"))) == 3
        kept.append(digests(folder / "runs", outcomes))
    assert sorted(kept[0].values()) == sorted(kept[1].values())
    assert len(set(kept[1].values())) == 4


@pytest.mark.extra
@pytest.mark.usefixtures("cluster")
def test_a_worker_that_does_not_see_the_folder_ends_the_sweep(tmp_path: Path) -> None:
    points = pool_points(with_pattern(tmp_path), {"traffic.kilobytes": "1"})
    with pytest.raises(ConfigError, match="a sweep on Ray needs a file system that all machines share") as wrong:
        list(_outcomes(points, tmp_path / "elsewhere/mark", 1, run_point, GIB // 4))
    assert f"does not see {tmp_path / 'elsewhere'}" in str(wrong.value)


@pytest.mark.parametrize(
    ("nodes", "memory_bytes", "workers"),
    [
        (((4, 8 * GIB), (2, 8 * GIB)), GIB, 6),
        (((4, 2 * GIB), (2, 8 * GIB)), GIB, 4),
        (((4, 2 * GIB), (2, 8 * GIB)), 100 * GIB, 1),  # more than any machine has: one at a time, which refuses itself
        (((200, 800 * GIB),), GIB, 50),
    ],
)
def test_each_machine_runs_as_much_as_it_holds(
    nodes: tuple[tuple[int, int], ...], memory_bytes: int, workers: int
) -> None:
    found = Cluster(address="ray", nodes=nodes, memory_bytes=memory_bytes)
    assert found.workers_for(50) == workers
    assert found.task_bytes <= max(memory for _, memory in nodes)


@pytest.mark.parametrize("address", ["", "rya", "ray://", "ray://host", "ray://a b:1", "ray:10001", "ray://host:x"])
def test_an_address_that_is_no_cluster_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=r"wanted --on ray or --on ray://HOST:PORT"):
        refuse_cluster(address)


def test_without_ray_the_package_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'weftwork\[ray\]'"), connected("ray", GIB):
        pass
