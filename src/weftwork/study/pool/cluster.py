"""A Ray cluster in place of this machine's cores.

Points become tasks, each in a worker process of the cluster.

A task asks for one CPU and the memory of the largest run. As many tasks are under way as the cluster has room for at
the start, so that progress and Ctrl-C are at hand. A worker process has one task at a time, so that a worker that dies
takes its own point alone; that point is tried again.
Source: Ray documentation, Ray Core, docs.ray.io: "Tasks", "Fault tolerance", "Ray Client".
Leaves out: clusters that grow later, unless more runs than have room are asked for (``-j``); copies of files to
machines that do not share the folder.
"""

from __future__ import annotations

import errno
import importlib.util
import logging
import os
import re
import secrets
import shutil
import signal
import warnings
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.sharing import share
from weftwork.base.version import VERSION
from weftwork.study.pool.pool import RETRIES, lost_outcome, remove_unfinished
from weftwork.study.pool.work import PoolItem, PoolOutcome, is_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weftwork.study.pool.pool import Task

__all__ = ["Cluster", "connected", "refuse_cluster"]

HERE: Final = "ray"
CLIENT: Final = "ray://"
# Points and outcomes are a few hundred bytes; this is the least that Ray takes (ray/_private/ray_constants.py).
_STORE_BYTES: Final = 75 * 2**20
_MARK: Final = ".seen-from-all-workers-"
_QUIET: Final = {"log_to_driver": False, "logging_level": logging.ERROR}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Apart:
    """A worker that cannot do its part, with the reason.

    The same would happen to every point that it gets.
    """

    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """A cluster to which this process is connected.

    Attributes
    ----------
    address : as it was asked for
    nodes : CPUs and bytes of memory that each machine offers
    memory_bytes : of the largest run
    """

    address: str
    nodes: tuple[tuple[int, int], ...]
    memory_bytes: int

    @property
    def cores(self) -> int:
        """CPUs of all machines."""
        return sum(cores for cores, _ in self.nodes)

    @property
    def task_bytes(self) -> int:
        """Memory request of a task, at most that of the largest machine.

        A run with too little memory reports this itself.
        """
        return max(1, min(self.memory_bytes, max(memory for _, memory in self.nodes)))

    def workers_for(self, points: int) -> int:
        """Number of parallel runs: a CPU for each, limited by memory."""
        room = sum(min(cores, memory // self.task_bytes) for cores, memory in self.nodes)
        return max(1, min(points, room))

    def outcomes(self, points: Sequence[PoolItem], runs: Path, workers: int, task: Task) -> Iterator[PoolOutcome]:
        """Run points on the cluster, in the order in which they end.

        Parameters
        ----------
        points, runs, workers, task : as `weftwork.study.pool.pool.run_pool` has them

        Raises
        ------
        ConfigError : a worker has another version of Weftwork, or does not see the folder
        """
        mark = runs / f"{_MARK}{secrets.token_hex(8)}"
        for left in runs.glob(f"{_MARK}*"):
            left.unlink()
        mark.touch()
        try:
            yield from _outcomes(points, mark, workers, task, self.task_bytes)
        finally:
            mark.unlink()
            remove_unfinished(runs)


def refuse_cluster(address: str) -> None:
    """Refuse a wrong address, or a Python without Ray, before anything is read.

    Parameters
    ----------
    address : ``ray``, or ``ray://host:port``

    Raises
    ------
    ConfigError : with what to do
    """
    if address != HERE and not re.fullmatch(rf"{CLIENT}[^/\s]+:\d+", address):
        raise _wrong(address, "wanted --on ray or --on ray://HOST:PORT")
    if importlib.util.find_spec("ray") is None:
        raise _wrong(address, "Ray is not installed; install it with: pip install 'weftwork[ray]'")


@contextmanager
def connected(address: str, memory_bytes: int) -> Iterator[Cluster]:
    """Connect to a cluster while the body runs.

    Parameters
    ----------
    address : ``ray://host:port``; or ``ray``: the cluster of this machine, or one on its cores where it is in none
    memory_bytes : of the largest run

    Raises
    ------
    ConfigError : there is no Ray, or no cluster at that address
    """
    refuse_cluster(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as Ray will have it; it warns of its own default
    import ray

    on_end = signal.getsignal(signal.SIGTERM)
    try:
        if address == HERE:
            _join_or_start()
        else:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Ray Client connection timed out")  # the error says it
                ray.init(address=address, **_QUIET)
    except (ConnectionError, RuntimeError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        wanted = "the client port of a cluster, 10001 by default, and its token in RAY_AUTH_TOKEN if it requires one"
        raise _wrong(address, f"cannot be reached: {reason}; wanted {wanted}") from error
    try:
        if signal.getsignal(signal.SIGTERM) is not on_end:  # Ray puts its own in place, which would end us at once
            signal.signal(signal.SIGTERM, on_end)
        nodes = tuple(
            (int(one["Resources"]["CPU"]), int(one["Resources"].get("memory", 0)))
            for one in ray.nodes()
            if one["Alive"] and one["Resources"].get("CPU", 0) >= 1
        )
        if not nodes:
            raise _wrong(address, "the cluster has no machine with a CPU for tasks")
        yield Cluster(address=address, nodes=nodes, memory_bytes=memory_bytes)
    finally:
        ray.shutdown()


def _join_or_start() -> None:
    """Join this machine's cluster, or start one on its cores.

    The new cluster is for this process alone.
    """
    import ray
    from joblib import cpu_count

    try:
        ray.init(address="auto", **_QUIET)
    except ConnectionError:
        ray.init(
            address="local",
            num_cpus=cpu_count(),
            object_store_memory=_STORE_BYTES,
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            **_QUIET,
        )


def _outcomes(
    points: Sequence[PoolItem], mark: Path, workers: int, task: Task, memory_bytes: int
) -> Iterator[PoolOutcome]:
    import ray
    from ray.exceptions import NodeDiedError, OutOfMemoryError, WorkerCrashedError

    # A task that Ray itself repeats would find the folder that its first try has left; here it is looked at before.
    remote = ray.remote(num_cpus=1, memory=memory_bytes, max_retries=0)(_work)
    runs, folder = mark.parent, Path.cwd()
    waiting = deque((point, 1) for point in points)
    under_way: dict[Any, tuple[PoolItem, int]] = {}
    try:
        while waiting or under_way:
            while waiting and len(under_way) < workers:
                point, tries = waiting.popleft()
                under_way[remote.remote(task, point, mark.absolute(), folder, VERSION)] = (point, tries)
            (done,), _ = ray.wait(list(under_way))
            point, tries = under_way.pop(done)
            try:
                found = ray.get(done)
            except (WorkerCrashedError, NodeDiedError, OutOfMemoryError):
                for left in runs.glob(f".{point.folder}-*.unfinished"):
                    shutil.rmtree(left, ignore_errors=True)
                if is_whole(runs / point.folder):  # it ended, and its worker died before it could say so
                    yield PoolOutcome(point=point.place, end="run", tries=tries)
                elif tries > RETRIES:
                    yield lost_outcome(point)
                else:
                    waiting.append((point, tries + 1))
                continue
            if isinstance(found, _Apart):
                raise _wrong("ray", found.reason)
            yield found if tries == 1 else replace(found, tries=tries)
    finally:
        for one in under_way:
            ray.cancel(one, force=True)


def _work(task: Task, point: PoolItem, mark: Path, folder: Path, version: str) -> PoolOutcome | _Apart:
    """The task of a worker with the same Weftwork and the same folders."""
    machine = os.uname().nodename
    if version != VERSION:
        text = f"{machine} has Weftwork {VERSION}, and this machine has {version}; install the same version on both"
        return _Apart(reason=text)
    shared = "a sweep on Ray needs a file system that all machines share"
    if not mark.exists():
        return _Apart(reason=f"{machine} does not see {mark.parent}: {shared}")
    try:
        os.chdir(folder)  # scenario and files of one's own are named from here
    except OSError as error:
        return _Apart(reason=f"{machine} does not see {folder}: {os.strerror(error.errno or errno.ENOENT)}; {shared}")
    share()
    return task(point, mark.parent / point.folder)


def _wrong(address: str, text: str) -> ConfigError:
    return ConfigError("command line", [Mistake(path=f"--on {address}", text=text)])
