"""Run a sweep to a folder of runs, a table and a verdict."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.spec.study_ends import STUDY_ENDS, StudyEndName
from weftwork.store.runs import Run, new_folder
from weftwork.store.sweeps import sweep_folder, write_result
from weftwork.study.answer.suspects import own_suspicions
from weftwork.study.pool.cluster import connected, refuse_cluster
from weftwork.study.pool.pool import run_pool, workers_for
from weftwork.study.record.interrupts import interrupts
from weftwork.study.record.point_run import run_point
from weftwork.study.sweep.collect import rows_of_sweep
from weftwork.study.sweep.definition import read_definition
from weftwork.study.sweep.points import SweepPlan, plan_of
from weftwork.study.sweep.verdict import judged, objective_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weftwork.spec.sweep import SweepResult
    from weftwork.study.answer.worlds import Extent
    from weftwork.study.pool.cluster import Cluster
    from weftwork.study.pool.pool import PoolProgress
    from weftwork.study.pool.work import PoolOutcome
    from weftwork.study.record.point import PoolPoint

__all__ = ["SweepRun", "SweepStart", "run_sweep"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepStart:
    """A sweep before it starts.

    Attributes
    ----------
    points, runs : how many
    workers : runs that go side by side
    cores : that could be used
    machines : of the cluster; None where all runs on this one
    memory_bytes : of the largest run, by its keys
    is_least : whether programs of training jobs or collectives come on top of it
    folder : that is written
    """

    points: int
    runs: int
    workers: int
    cores: int
    memory_bytes: int
    folder: Path
    is_least: bool = False
    machines: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepRun:
    """A finished sweep.

    Attributes
    ----------
    folder : of the sweep
    result : what came of it; None where it was ended before its end
    end : ``done``; ``interrupted``; ``full``: the disk had no room
    whole, wanted : runs that are there, and that were asked for
    kept : runs that were there before
    repeated : runs that were begun again because their worker had died
    """

    folder: Path
    result: SweepResult | None
    end: StudyEndName
    whole: int
    wanted: int
    kept: int
    repeated: int = 0


def run_sweep(  # noqa: PLR0913 - what can be asked of a sweep, all by name
    file: str | Path,
    *,
    settings: Mapping[str, str] | None = None,
    out: str | Path | None = None,
    seeds: int | None = None,
    by: str | None = None,
    within: str | None = None,
    workers: int | None = None,
    on: str | None = None,
    what_if: Extent | None = None,
    user_code: bool = True,
    suspects: Sequence[str | Path] = (),
    on_start: Callable[[SweepStart], None] | None = None,
    on_progress: Callable[[PoolProgress], None] | None = None,
) -> SweepRun:
    """Run the missing points of a sweep, and judge them all.

    The first Ctrl-C ends the sweep; runs that are whole are kept, and the same call with the same folder goes on.

    Parameters
    ----------
    file : a scenario, which may have a section ``sweep``
    settings : key to values with commas between them, in place of the section's grid
    out : folder of the sweep, new or with this same sweep; by default ``runs/<name>-sweep-<time>``
    seeds : runs of each point; by default the section's, or one
    by : number of the summary that decides; by default the section's, or the time of an iteration, a collective or all
        messages
    within : key whose values are no choice: who wins is judged for each of them; by default the section's, or none
    workers : runs side by side; by default a core for each, as far as memory holds them
    on : ``ray`` or ``ray://host:port`` for the workers of a Ray cluster, which sees the folder of the sweep and the
        current folder; by default workers of this machine
    what_if, user_code, suspects : as `weftwork.study.record.run.run_scenario` takes them; by default no other world is
        simulated, and ``auto`` with suspects
    on_start, on_progress : told what is about to be done, and how far it is

    Returns
    -------
    the folder, and what came of the sweep

    Raises
    ------
    ConfigError : with all mistakes of file and settings, or where the folder cannot be written
    CodeError : a Python file of the user's own is wrong
    """
    if on is not None:
        refuse_cluster(on)
    path = Path(file)
    definition = read_definition(path, settings or {})
    count = seeds if seeds is not None else definition.seeds or 1
    own = tuple(own_suspicions([str(one) for one in suspects], user_code=user_code))
    extent = what_if or ("auto" if own else "none")
    plan = plan_of(path, definition, seeds=count, what_if=extent, user_code=user_code, suspects=own)
    decides = by if by is not None else definition.by
    groups = within if within is not None else definition.within
    if groups is not None and groups not in plan.values[0]:
        text = f"found '{groups}', wanted a key that the sweep varies: {', '.join(plan.values[0])}"
        raise ConfigError("command line", [Mistake(path="--within", text=text, fix=nearest(groups, plan.values[0]))])
    wanted = [point for points in plan.points for point in points]
    folder = new_folder(f"{plan.name}-sweep") if out is None else Path(out)
    outcomes: dict[int, PoolOutcome] = {}
    end: StudyEndName = "done"
    with (
        _cluster(on, plan.memory_bytes) as cluster,
        sweep_folder(folder, plan.document) as runs,
        interrupts() as interrupt,
    ):
        start = _start(plan, folder, workers, cluster)
        if on_start is not None:
            on_start(start)
        interrupt.keep(is_raised=True)
        try:
            outcomes_there = None if cluster is None else cluster.outcomes
            for outcome in run_pool(
                wanted, runs, task=run_point, workers=start.workers, on_progress=on_progress, outcomes=outcomes_there
            ):
                if outcome.is_disk_full:
                    end = "full"
                elif outcome.has_folder and not any(one.has_folder for one in outcomes.values()):
                    _want_number(decides, runs, wanted, outcome)
                outcomes[outcome.point] = outcome
        except KeyboardInterrupt:
            end = "interrupted"
        result = None if not STUDY_ENDS[end].is_done else _judged(plan, outcomes, runs, decides, groups)
        if result is not None:
            write_result(folder, result)
    whole = [outcome for outcome in outcomes.values() if outcome.has_folder]
    return SweepRun(
        folder=folder, result=result, end=end, whole=len(whole), wanted=len(wanted),
        kept=sum(outcome.is_kept for outcome in whole), repeated=sum(one.tries > 1 for one in outcomes.values()),
    )  # fmt: skip


def _cluster(on: str | None, memory_bytes: int) -> AbstractContextManager[Cluster | None]:
    return nullcontext() if on is None else connected(on, memory_bytes)


def _start(plan: SweepPlan, folder: Path, workers: int | None, cluster: Cluster | None) -> SweepStart:
    from joblib import cpu_count

    wanted = sum(len(points) for points in plan.points)
    if workers is None:
        workers = workers_for(wanted, plan.memory_bytes) if cluster is None else cluster.workers_for(wanted)
    return SweepStart(
        points=len(plan.values),
        runs=wanted,
        workers=max(1, workers),
        cores=cpu_count() if cluster is None else cluster.cores,
        machines=None if cluster is None else len(cluster.nodes),
        memory_bytes=plan.memory_bytes,
        is_least=plan.is_least,
        folder=folder,
    )


def _judged(
    plan: SweepPlan, outcomes: Mapping[int, PoolOutcome], runs: Path, by: str | None, within: str | None
) -> SweepResult:
    ranges = frozenset(key for key, how in plan.definition.drawn.items() if not how.choices)
    rows = rows_of_sweep(plan, outcomes, runs)
    seeds = max(row.wanted for row in rows)
    return judged(rows, name=plan.name, seeds=seeds, by=by, within=within, drawn=ranges)


def _want_number(by: str | None, runs: Path, points: Sequence[PoolPoint], outcome: PoolOutcome) -> None:
    """Refuse an unknown number as soon as the first run is complete."""
    folder = next(point.folder for point in points if point.place == outcome.point)
    objective_of(Run(runs / folder).summary, by)
