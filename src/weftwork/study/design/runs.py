"""Run the candidates of a design: packed, then the last of them as a scheduler places ranks.

Packed runs are those of all candidates that closed forms leave. A thin fabric is as fast as a fat one where neighbours
in rank are neighbours in the fabric, so the last candidates run with servers at random and with fragments of
neighbouring servers too: each with one seed, and those that are near the best with more.
Leaves out: which candidate is taken (`weftwork.study.design.judge`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from weftwork.spec.study_ends import STUDY_ENDS, StudyEndName
from weftwork.store.runs import Run
from weftwork.study.design.built import Built, overrides_of
from weftwork.study.pool.pool import run_pool, workers_for
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.record.point import PoolPoint, memory_of, points_of
from weftwork.study.record.point_run import run_point
from weftwork.study.sweep.verdict import objective_of

if TYPE_CHECKING:
    from weftwork.spec.answer import Interval
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.pool.work import PoolOutcome

    Told = Callable[[str, int, int], None]

__all__ = ["AS_PLACED", "CandidateRuns", "PlacedRun", "Ran", "placed_key"]

# Placements as a scheduler finds servers, each with the seeds that follow the first one where it is near the best
AS_PLACED: Final = (("random-servers", 2), ("random-fragments", 0))
_STRIDE: Final = 100_000  # places of runs of one kind; more than any design has candidates


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedRun:
    """A run with another placement.

    Attributes
    ----------
    placement, seed : of it
    time_ps : None where the run gave none
    useful : share of the time that counts
    folder : of the run, in the design's folder
    reason : why there is no time
    has_failed : it failed by a fault of Weftwork
    has_run : False where the design ended before it
    """

    placement: str
    seed: int
    time_ps: float | None
    useful: float = 1.0
    folder: str = ""
    reason: str = ""
    has_failed: bool = False
    has_run: bool = True

    @property
    def counting_ps(self) -> float:
        """Time that counts; infinity without one."""
        return inf if self.time_ps is None else self.time_ps / self.useful


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """A candidate with the time of its job.

    Attributes
    ----------
    built : what it is
    time_ps : of an iteration, a collective or all messages; None where the run gave none
    useful : share of the time that counts; 1 where nothing fails
    closed_ps : least and most by closed forms: without sharing, and with all traffic over the tier with the least
        bandwidth
    limited_by, interval : of the run's answer
    exposed_share : of a training job: communication that computing did not hide; None where the run has no such number
    folder : of the run, in the design's folder; empty where nothing ran
    reason : why there is no time
    has_failed : its run failed by a fault of Weftwork, which says nothing about the fabric
    placed : runs as a scheduler places ranks; empty for candidates that are not among the last
    beaten_by : name of the candidate of the front that is better in everything; None on the front
    """

    built: Built
    time_ps: float | None
    useful: float = 1.0
    closed_ps: tuple[float, float] | None = None
    limited_by: str = ""
    exposed_share: float | None = None
    interval: Interval | None = None
    folder: str = ""
    reason: str = ""
    has_failed: bool = False
    placed: tuple[PlacedRun, ...] = ()
    beaten_by: str | None = None

    @property
    def name(self) -> str:
        """Name of the candidate."""
        return self.built.candidate.name

    @property
    def counting_ps(self) -> float:
        """Time that counts, packed; infinity without one."""
        return inf if self.time_ps is None else self.time_ps / self.useful

    @property
    def is_placed(self) -> bool:
        """Whether it ran with each placement, with one seed at least, or did not end with one of them."""
        return self.placed_ps is not None

    @property
    def placed_ps(self) -> float | None:
        """Mean time that counts as a scheduler places ranks, every placement alike; None without a run of each.

        Seeds that have not run yet do not count, and one that did not end is infinitely slow.
        """
        ended = [run for run in self.placed if run.has_run]
        if any(run.time_ps is None for run in ended):
            return inf
        each = [[run.counting_ps for run in ended if run.placement == name] for name, _ in AS_PLACED]
        return sum(sum(times) / len(times) for times in each) / len(each) if all(each) else None

    @property
    def guessed_ps(self) -> float:
        """Time as placed where it has not run so: no less than packed, and by closed forms all traffic goes far."""
        return max(self.counting_ps, self.closed_ps[1] if self.closed_ps else 0.0)

    @property
    def costs(self) -> tuple[float, float, float]:
        """Dollars, watts and useful picoseconds; infinity without a time."""
        return self.built.price_usd.typical, self.built.power_w.typical, self.counting_ps


class _RunTime(NamedTuple):
    """The time of a run, as `Ran` has it."""

    time_ps: float | None = None
    useful: float = 1.0
    limited_by: str = ""
    exposed_share: float | None = None
    interval: Interval | None = None
    folder: str = ""
    reason: str = ""
    has_failed: bool = False
    has_run: bool = True


def placed_key(scenario: Scenario) -> str:
    """The key that places the ranks of a job; empty where nothing may be placed anew.

    A placement that the user has given stays; traffic says itself who talks to whom.
    """
    key = scenario.workload_kind.placement_key
    return key if key and not scenario.is_set(key) else ""


@dataclass(kw_only=True)
class CandidateRuns:
    """Runs of candidates in the folder of a design.

    Attributes
    ----------
    file, settings, user_code : of the job, with keys that the user has set besides
    runs : folder of the run folders
    workers : processes side by side; None: one for each core, as far as memory holds
    told : hears of runs
    number : what the times are of; empty before the first
    kept : runs that were there before
    end : how the last runs ended
    """

    file: Path
    settings: Mapping[str, str]
    runs: Path
    user_code: bool
    workers: int | None
    told: Told
    number: str = ""
    kept: int = 0
    end: StudyEndName = "done"
    _outcomes: dict[int, PoolOutcome] = field(default_factory=dict)

    def packed(self, built: Sequence[Built], closed: Sequence[tuple[float, float]]) -> list[Ran]:
        """Run every candidate with the placement of the job."""
        points = [self._point(one, {}, 0) for one in built]
        self._run(points, "running")
        found = []
        for place, (one, (point, _)) in enumerate(zip(built, points, strict=True)):
            read = self._read(point)
            found.append(
                Ran(
                    built=one, time_ps=read.time_ps, useful=read.useful, closed_ps=closed[place] if closed else None,
                    limited_by=read.limited_by, exposed_share=read.exposed_share, interval=read.interval,
                    folder=read.folder, reason=read.reason, has_failed=read.has_failed,
                )
            )  # fmt: skip
        return found

    def placed(self, last: Sequence[Ran], key: str, *, seeds: int) -> dict[str, list[PlacedRun]]:
        """Run candidates as a scheduler places ranks.

        Parameters
        ----------
        last : the candidates
        key : of the placement
        seeds : 0: each placement with its first seed; 1: with the seeds that follow
        """
        asked = []
        for one in last:
            for kind, (placement, more) in enumerate(AS_PLACED):
                for seed in range(1, 1 + more) if seeds else range(1):
                    place = 1 + 10 * kind + seed
                    asked.append((one, placement, self._point(one.built, {key: placement}, place, seed=seed)))
        self._run([point for _, _, point in asked], "placing")
        found: dict[str, list[PlacedRun]] = {}
        for one, placement, (point, _) in asked:
            read = self._read(point)
            found.setdefault(one.name, []).append(
                PlacedRun(
                    placement=placement, seed=point.seed, time_ps=read.time_ps, useful=read.useful,
                    folder=read.folder, reason=read.reason, has_failed=read.has_failed, has_run=read.has_run,
                )
            )  # fmt: skip
        return found

    def _point(self, built: Built, more: Mapping[str, str], kind: int, *, seed: int = 0) -> tuple[PoolPoint, Scenario]:
        overrides = {**overrides_of(built.candidate, self.settings), **more}
        scenario = read_scenario(self.file, overrides, user_code=self.user_code)
        first = scenario.engine.seed + seed
        (point,) = points_of(
            kind * _STRIDE + built.candidate.number, scenario, self.file, overrides, seeds=range(first, first + 1),
            user_code=self.user_code,
        )  # fmt: skip
        return point, scenario

    def _run(self, points: Sequence[tuple[PoolPoint, Scenario]], what: str) -> None:
        if not STUDY_ENDS[self.end].is_done:
            return
        most = max((memory_of(scenario) for _, scenario in points), default=1)
        count = workers_for(len(points), most) if self.workers is None else self.workers
        try:
            for outcome in run_pool(
                [point for point, _ in points], self.runs, task=run_point, workers=count,
                on_progress=lambda at: self.told(what, at.ended, at.wanted),
            ):  # fmt: skip
                if outcome.is_disk_full:
                    self.end = "full"
                self.kept += outcome.is_kept
                self._outcomes[outcome.point] = outcome
        except KeyboardInterrupt:
            self.end = "interrupted"

    def _read(self, point: PoolPoint) -> _RunTime:
        """Time of a run with what belongs to it, or why there is none."""
        ended = self._outcomes.get(point.place)
        if ended is None or not ended.has_folder:
            failed = ended is not None and ended.has_failed
            reason = "it has not run yet" if ended is None else ended.reason
            return _RunTime(reason=reason, has_failed=failed, has_run=failed)
        run = Run(self.runs / point.folder)
        self.number = self.number or objective_of(run.summary, None) or ""
        value = run.summary.get(self.number, {}).get("value")
        useful = run.summary.get("effective_share", {}).get("value")
        return _RunTime(
            time_ps=None if value is None else float(value),
            useful=1.0 if useful is None else float(useful),
            limited_by=run.answer.limited_by.name,
            exposed_share=run.summary.get("exposed_share", {}).get("value"),
            interval=run.answer.took.interval,
            folder=f"{self.runs.name}/{run.path.name}",
            reason="" if value is not None else f"its run is {run.status}",
            has_failed=run.has_own_fault,
        )
