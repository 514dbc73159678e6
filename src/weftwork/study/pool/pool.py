"""The pool: points of scenarios become run folders in worker processes.

Each point runs once, and none is lost with its worker.

A worker is a process of loky that runs one point after another, so that it loads Weftwork once. As many points are
under way as there are workers: when a worker dies, its point is one of these, and each of them is tried again alone.
Leaves out: the folder that holds the runs (`weftwork.store.sweeps`), and what the runs say.
"""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.memory import memory_limit, peak_memory_bytes
from weftwork.study.pool.side_by_side import executor_of, unheard
from weftwork.study.pool.work import PoolItem, PoolOutcome, is_whole

if TYPE_CHECKING:
    from pathlib import Path


__all__ = [
    "RETRIES", "Outcomes", "PoolProgress", "Task", "lasting_workers", "lost_outcome", "outcomes_here",
    "remove_unfinished", "run_pool", "workers_for",
]  # fmt: skip

RETRIES: Final = 2  # chosen: a run that kills its worker three times, twice of them alone, will do it again

Task = Callable[[Any, "Path"], PoolOutcome]
# Points, folder of the runs, workers and task to an outcome of each point, in the order in which they end
Outcomes = Callable[[Sequence["PoolItem"], "Path", int, Task], Iterator[PoolOutcome]]


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolProgress:
    """Progress of a pool: finished, wanted and earlier points, and seconds."""

    ended: int
    wanted: int
    kept: int
    elapsed_s: float

    @property
    def left_s(self) -> float | None:
        """Seconds to the end at the pace of this call.

        None before the first end.
        """
        here = self.ended - self.kept
        return self.elapsed_s / here * (self.wanted - self.ended) if here else None


def workers_for(points: int, memory_bytes: int, cores: int | None = None) -> int:
    """Number of parallel runs: at least one, limited by cores and memory.

    Parameters
    ----------
    points : that are wanted
    memory_bytes : of the largest run
    cores : by default those that this process may use
    """
    from joblib import cpu_count

    most = cpu_count() if cores is None else cores
    fit = (memory_limit().limit_bytes - peak_memory_bytes()) // max(1, memory_bytes)
    return int(max(1, min(most, fit, points)))


def run_pool(
    points: Sequence[PoolItem],
    runs: Path,
    *,
    workers: int,
    on_progress: Callable[[PoolProgress], None] | None = None,
    task: Task,
    outcomes: Outcomes | None = None,
) -> Iterator[PoolOutcome]:
    """Run every point without a whole folder.

    Whole folders stay, however the call ends.

    Parameters
    ----------
    points : with places of their own
    runs : folder of the run folders, which one pool at a time writes
    workers : processes
    on_progress : called at the start and whenever a point has ended
    task : what a worker does with a point and its folder
    outcomes : who runs them; by default processes of this machine, `outcomes_here`

    Yields
    ------
    an outcome for each point, in the order in which they end; after one that is ``full`` there is no other
    """
    began_s = time.monotonic()
    _tidy(points, runs)
    kept = [point for point in points if is_whole(runs / point.folder)]
    places = {point.place for point in kept}
    ended = 0

    def told() -> None:
        if on_progress is not None:
            elapsed_s = time.monotonic() - began_s
            on_progress(PoolProgress(ended=ended, wanted=len(points), kept=len(kept), elapsed_s=elapsed_s))

    for point in kept:
        ended += 1
        yield PoolOutcome(point=point.place, end="run", is_kept=True)
    told()
    missing = [point for point in points if point.place not in places]
    for outcome in (outcomes or outcomes_here)(missing, runs, workers, task):
        ended += 1
        told()
        yield outcome
        if outcome.is_disk_full:
            return


def _tidy(points: Iterable[PoolItem], runs: Path) -> None:
    """Remove the remains of an interrupted pool.

    These are unfinished folders, and folders of interrupted runs.
    """
    remove_unfinished(runs)
    for folder in (runs / point.folder for point in points):
        if folder.is_dir() and not is_whole(folder):
            shutil.rmtree(folder)


def remove_unfinished(runs: Path) -> None:
    """Remove the folders of runs that were incomplete when their workers ended."""
    for left in runs.glob(".*.unfinished"):
        shutil.rmtree(left, ignore_errors=True)


def outcomes_here(points: Sequence[PoolItem], runs: Path, workers: int, task: Task) -> Iterator[PoolOutcome]:
    """Run points in processes of this machine.

    Outcomes come in the order in which the points end.

    Parameters
    ----------
    points, runs, workers, task : as `run_pool` has them
    """
    return _outcomes(points, runs, workers, task, _executor)


@contextmanager
def lasting_workers() -> Iterator[Outcomes]:
    """Offer `outcomes_here` to several pools with the same processes.

    The processes stay until the body ends.
    """
    lasting = _Lasting()
    try:
        yield lasting.outcomes
    finally:
        lasting.end()


class _Lasting:
    """Processes that start on first use, and again after one has died."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._executor: Any = None
        self._runs: dict[Path, None] = {}

    def outcomes(self, points: Sequence[PoolItem], runs: Path, workers: int, task: Task) -> Iterator[PoolOutcome]:
        """As `outcomes_here`."""
        self._runs[runs] = None
        return _outcomes(points, runs, workers, task, self._opened, self.end)

    @contextmanager
    def _opened(self, workers: int, _: Path) -> Iterator[Any]:
        if self._executor is None:
            self._executor = self._stack.enter_context(executor_of(workers))
        yield self._executor

    def end(self) -> None:
        """End the processes, and remove their unfinished folders."""
        self._executor = None
        try:
            self._stack.close()
        finally:
            for runs in self._runs:
                remove_unfinished(runs)


def _outcomes(
    points: Sequence[PoolItem],
    runs: Path,
    workers: int,
    task: Task,
    opened: Callable[[int, Path], AbstractContextManager[Any]],
    end: Callable[[], None] | None = None,
) -> Iterator[PoolOutcome]:
    """As `outcomes_here`, in processes that are ``opened``.

    ``end`` is called when one of them has died.
    """
    waiting = deque(points)
    while waiting:
        lost: list[PoolItem] = []
        with opened(workers, runs) as executor:
            under_way: dict[Future[PoolOutcome], PoolItem] = {}
            while (waiting or under_way) and not lost:
                while waiting and len(under_way) < workers:
                    point = waiting.popleft()
                    try:
                        with unheard():
                            under_way[executor.submit(task, point, runs / point.folder)] = point
                    except BrokenExecutor:
                        lost.append(point)
                        break
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                for future in done:
                    point = under_way.pop(future)
                    try:
                        outcome = future.result()
                    except BrokenExecutor:
                        lost.append(point)
                        continue
                    yield outcome
            lost += under_way.values()
        if lost and end is not None:
            end()
        for point in lost:
            yield _alone(point, runs, task)


def _alone(point: PoolItem, runs: Path, task: Task) -> PoolOutcome:
    """Try a point again in its own worker, after another worker died."""
    for tries in range(1, RETRIES + 1):
        if is_whole(runs / point.folder):  # it ended, and its worker died with the others before it could say so
            return PoolOutcome(point=point.place, end="run", tries=tries)
        with _executor(1, runs) as executor:
            try:
                with unheard():
                    future = executor.submit(task, point, runs / point.folder)
                outcome: PoolOutcome = future.result()
            except BrokenExecutor:
                continue
            return replace(outcome, tries=tries + 1)
    return lost_outcome(point)


def lost_outcome(point: PoolItem) -> PoolOutcome:
    """The outcome of a point whose worker died each time."""
    times = RETRIES + 1
    text = f"its worker died {times} times, perhaps for lack of memory; run it alone with: {point.command}"
    return PoolOutcome(point=point.place, end="lost", reason=text, tries=times)


@contextmanager
def _executor(workers: int, runs: Path) -> Iterator[Any]:
    """Worker processes that end with the body.

    Their unfinished folders are removed.
    """
    try:
        with executor_of(workers) as executor:
            yield executor
    finally:
        remove_unfinished(runs)
