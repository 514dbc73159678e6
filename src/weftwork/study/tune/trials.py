"""Runs of a tuning.

Choices of values become points of a pool, and their folders become numbers.

A choice has a run for each scenario and seed, on the road of every sweep: `weftwork.study.pool`. What was run before
is read and not run again.
Leaves out: which values are tried (`weftwork.study.tune.search`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from weftwork.base.caveat import assumed_texts
from weftwork.base.errors import ConfigError
from weftwork.spec.endings import ENDINGS, ending_of_all
from weftwork.store.runs import Run
from weftwork.study.pool.pool import run_pool
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.record.point import points_of
from weftwork.study.record.point_run import run_point
from weftwork.study.tune.objective import NoValueError, Objective

if TYPE_CHECKING:
    from pathlib import Path

    from weftwork.study.pool.pool import Outcomes
    from weftwork.study.pool.work import PoolOutcome
    from weftwork.study.record.point import PoolPoint

__all__ = ["Asked", "DiskFullError", "Numbers", "Runs", "Tried", "means_of", "objectives_of"]

Numbers = Mapping[str, Mapping[str, Any]]  # of a summary


class DiskFullError(Exception):
    """The disk had no room for a run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A choice of values to run.

    It has its settings, and a number that orders the folders.
    """

    number: int
    settings: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """The outcome of a choice.

    Attributes
    ----------
    status : ``complete``, or how the first run ended that did not; ``refused``, ``failed`` or ``lost`` without a run
    reason : why there is no run; empty where all are there
    numbers : of each scenario the summary of each seed; empty where a run is missing
    assumed : what their inputs left open and their numbers depend on
    """

    status: str
    reason: str = ""
    numbers: tuple[tuple[Numbers, ...], ...] = ()
    assumed: tuple[str, ...] = ()


@dataclass(kw_only=True)
class Runs:
    """Runs of choices of values on the pool.

    Attributes
    ----------
    files, firsts : of the scenarios, and the first seed of each
    overrides : ``--set`` that all choices share
    workers, user_code, outcomes : as `run_pool` and `read_scenario` take them
    on_end : told how many runs have ended since the last time, and how many of them were there before
    ended, kept, repeated : runs so far: all, those that were there before, those whose worker died once
    """

    files: Sequence[Path]
    firsts: Sequence[int]
    overrides: Mapping[str, str]
    workers: int
    outcomes: Outcomes | None
    user_code: bool = True
    on_end: Callable[[int, int], None] | None = None
    ended: int = 0
    kept: int = 0
    repeated: int = 0

    def run(self, asked: Sequence[Asked], folder: Path, *, first_seed: int, seeds: int) -> list[Tried]:
        """Run distinct choices, each with every scenario and seed.

        Parameters
        ----------
        asked : with numbers of their own
        folder : of the run folders
        first_seed, seeds : counted from the first seed of each scenario

        Raises
        ------
        DiskFullError : there was no room; what is whole is kept
        """
        folder.mkdir(exist_ok=True)
        refused: dict[int, str] = {}
        points: dict[int, list[list[PoolPoint]]] = {}
        for one in asked:
            try:
                points[one.number] = self._points(one, first_seed, seeds)
            except ConfigError as wrong:
                refused[one.number] = "; ".join(f"{mistake.path}: {mistake.text}" for mistake in wrong.mistakes)
        outcomes = self._outcomes([point for each in points.values() for of_file in each for point in of_file], folder)
        found = []
        for one in asked:
            if one.number in refused:
                found.append(Tried(status="refused", reason=refused[one.number]))
            else:
                found.append(_tried(points[one.number], outcomes, folder))
        return found

    def _points(self, one: Asked, first_seed: int, seeds: int) -> list[list[PoolPoint]]:
        made = []
        for place, (file, first) in enumerate(zip(self.files, self.firsts, strict=True)):
            overrides = {**self.overrides, **one.settings}
            scenario = read_scenario(file, overrides, user_code=self.user_code)
            begin = first + first_seed
            made.append(
                points_of(
                    (one.number * len(self.files) + place) * seeds,
                    scenario,
                    file,
                    overrides,
                    seeds=range(begin, begin + seeds),
                    user_code=self.user_code,
                )
            )
        return made

    def _outcomes(self, points: Sequence[PoolPoint], folder: Path) -> dict[int, PoolOutcome]:
        found: dict[int, PoolOutcome] = {}
        for outcome in run_pool(points, folder, task=run_point, workers=self.workers, outcomes=self.outcomes):
            if outcome.is_disk_full:
                raise DiskFullError(outcome.reason)
            found[outcome.point] = outcome
            self.ended += 1
            self.kept += outcome.is_kept
            self.repeated += outcome.tries > 1
            if self.on_end is not None:
                self.on_end(self.ended, self.kept)
        return found


def _tried(points: Sequence[Sequence[PoolPoint]], outcomes: Mapping[int, PoolOutcome], folder: Path) -> Tried:
    failed = next((one for each in points for point in each if not (one := outcomes[point.place]).has_folder), None)
    if failed is not None:
        return Tried(status=failed.end, reason=failed.reason)
    runs = [[Run(folder / point.folder) for point in each] for each in points]
    status = ending_of_all(run.status for each in runs for run in each)
    return Tried(
        status=status,
        numbers=tuple(tuple(run.summary for run in each) for each in runs),
        assumed=assumed_texts(caveat for each in runs for run in each for caveat in run.caveats),
    )


def objectives_of(
    tried: Tried, objective: Objective, defaults: Sequence[Mapping[str, float | None]]
) -> list[list[float]]:
    """Return the objective of each scenario and seed.

    Parameters
    ----------
    tried : with its runs
    objective : that is judged by
    defaults : of each scenario the means of its numbers with the values of its file

    Raises
    ------
    NoValueError : a run is missing, did not end, or lacks a number; with the reason
    """
    if not tried.numbers:
        raise NoValueError(tried.reason)
    ending = ENDINGS[tried.status]
    if not ending.is_as_asked or (objective.is_of_whole_runs and not ending.is_whole):
        raise NoValueError(f"a run is {tried.status}, so its numbers are partial")
    return [
        [objective.value({name: one["value"] for name, one in numbers.items()}, means) for numbers in of_file]
        for of_file, means in zip(tried.numbers, defaults, strict=True)
    ]


def means_of(tried: Tried) -> list[dict[str, float | None]]:
    """Means of each scenario's numbers over the seeds.

    None for a number that a seed lacks.
    """
    found = []
    for of_file in tried.numbers:
        means: dict[str, float | None] = {}
        for name in of_file[0]:
            values = [numbers.get(name, {}).get("value") for numbers in of_file]
            known = [float(value) for value in values if value is not None]
            means[name] = fmean(known) if len(known) == len(values) else None
        found.append(means)
    return found
