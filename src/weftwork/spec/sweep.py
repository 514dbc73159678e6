"""Results of a sweep: points, effects of keys, and the winner.

There is a row for each point. A point is one choice of values for the keys that a sweep varies; it has a run for each
seed.
Leaves out: how points are made and judged (`weftwork.study.sweep`), and how they are told (`weftwork.report`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from weftwork.base.above import Shown

__all__ = ["SAME", "KeyEffect", "KeyLevel", "SweepResult", "SweepRow", "SweepVerdict"]


SAME: Final = 0.0005  # chosen: as `weftwork compare`, a change that rounds to 0.0 %


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepRow:
    """One point of a sweep and the results of its runs.

    Attributes
    ----------
    place : of the point in the sweep, from 0
    values : text of each key that the sweep varies
    status : of its runs: ``complete``, or how the first run ended that did not; ``refused``, ``lost`` or ``missing``
        where there is no run
    reason : why there is no run; empty where there is one
    wanted : runs that the sweep asks for, one for each seed
    runs : folders of the runs that are there, below the sweep's folder
    digests : of these runs, over every completion time and counter
    numbers : as a run of several seeds has them: value, unit, text, and low, high and seeds where there are several
    objective : mean over the runs; None where a run lacks it or did not finish
    low, high : ends of its 95 % interval; None with one seed
    assumed : what its inputs left open and its numbers depend on
    """

    place: int
    values: Mapping[str, str]
    status: str
    reason: str
    wanted: int
    runs: tuple[str, ...]
    digests: tuple[str, ...]
    numbers: Mapping[str, Mapping[str, Any]]
    objective: float | None = None
    low: float | None = None
    high: float | None = None
    assumed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The point in words.

        For example ``fabric.oversubscription=2, transport.congestion_control=dcqcn``.
        """
        return ", ".join(f"{key}={text}" for key, text in self.values.items()) or "the only point"


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyLevel:
    """A value of a key, with number of points and mean objective.

    Only points with an objective count.
    """

    text: str
    points: int
    mean: float


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyEffect:
    """Effect of a key on the objective.

    It is the means of its values, over all values of the other keys.

    Attributes
    ----------
    key : of the scenario
    levels : its values in the order of the sweep; thirds of the points where each point drew a number of its own
    share : of the variance between points that the key explains alone, from 0 to 1; None where all points are equal
    """

    key: str
    levels: tuple[KeyLevel, ...]
    share: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepVerdict:
    """The winner of all points, or of a group.

    Attributes
    ----------
    group : value of the key within which points are judged; empty where they are judged all together
    best, second, worst : places of points; None where too few points have an objective. Points that differ by less
        than `SAME` are equal: the second is the first after those that equal the best, where there is one
    gain_on_second, gain_on_worst : of the best, as a share of the other's objective; None where that is 0
    is_clear : whether the difference of best and second, seed by seed, is more than noise; None with one seed
    """

    group: str = ""
    best: int | None = None
    second: int | None = None
    worst: int | None = None
    gain_on_second: float | None = None
    gain_on_worst: float | None = None
    is_clear: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepResult(Shown):
    """All results of a sweep.

    Attributes
    ----------
    name : of the scenario
    objective, unit : a number of the summary by which points are judged, and its unit; empty where no run has one
    is_larger_better : whether more of it is better
    seeds : runs of each point
    rows : by place
    effects : of each key with several values, the most important first; of results relative to the mean of their group
        where there are groups
    verdicts : who won, one for each group, or one
    within : key whose values are no choice, so that points are judged among those that share one; empty for none
    """

    name: str
    objective: str
    unit: str
    is_larger_better: bool
    seeds: int
    rows: tuple[SweepRow, ...]
    effects: tuple[KeyEffect, ...]
    verdicts: tuple[SweepVerdict, ...]
    within: str = ""

    def __repr__(self) -> str:
        keys = ", ".join(self.keys)
        return f"SweepResult({self.name!r}, {len(self.rows)} points by {keys}, judged by {self.objective!r})"

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys that differ between points.

        Of zipped keys it is the first; for a single point all keys.
        """
        names = self.rows[0].values if self.rows else {}
        varied: dict[tuple[int, ...], str] = {}
        for key in (*((self.within,) if self.within else ()), *names):
            numbers: dict[str, int] = {}
            pattern = tuple(numbers.setdefault(row.values[key], len(numbers)) for row in self.rows)
            if len(numbers) > 1:
                varied.setdefault(pattern, key)
        return tuple(varied.values()) or tuple(names)

    @property
    def bests(self) -> dict[str, int]:
        """Index of the best point of each group."""
        return {one.group: one.best for one in self.verdicts if one.best is not None}

    def group(self, row: SweepRow) -> str:
        """The group of a point."""
        return row.values[self.within] if self.within else ""

    def relative(self) -> dict[int, float]:
        """Objective of each point, by index, relative to its group.

        Without groups it is the plain objective. Points without an objective are left out.
        """
        known = [(row, row.objective) for row in self.rows if row.objective is not None]
        if not self.within:
            return {row.place: value for row, value in known}
        groups: dict[str, list[float]] = {}
        for row, value in known:
            groups.setdefault(self.group(row), []).append(value)
        means = {name: fmean(values) for name, values in groups.items()}
        return {row.place: value / means[self.group(row)] for row, value in known if means[self.group(row)]}

    @property
    def effect_unit(self) -> str:
        """Unit of `relative` and of the effects."""
        return "ratio" if self.within else self.unit
