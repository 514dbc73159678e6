"""Scores of predictions against measurements: errors, ranks, and whether a tolerance is reached.

An error is predicted over measured time, less one. MAPE is the mean of its absolute values. The rank correlation is
Spearman's, with mean ranks for ties. Beside each set stands a naive rule, the line to beat.
Leaves out: confidence intervals; sets are what they are, and not samples of anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy.stats import spearmanr

__all__ = ["Excluded", "LeftOut", "PlanRank", "Point", "Score", "Subset", "rank_of_best"]

_ENOUGH: Final = 3  # points from which a rank correlation says something
_TIE: Final = 0.02  # chosen: two times that differ by less count as equal; published ratios have three digits


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One measurement and its prediction, in seconds.

    Attributes
    ----------
    name : of the row, for people
    measured_s, predicted_s, naive_s : times; the naive rule is that of the set. In a set of comparisons seconds for a
        second: the time on one fabric over that on the other (`Score.is_ratio`)
    plan_set : rows that are plans of one job on one machine have the same text; empty where there is no choice of plans
    parts_s : where the predicted time goes, by kind
    labels : what a set may be split by, such as ``("GPU", "gb300")``
    is_over : whether the measured value is a lower bound, such as of a ratio of which only the direction is published
    """

    name: str
    measured_s: float
    predicted_s: float
    naive_s: float
    plan_set: str = ""
    parts_s: tuple[tuple[str, float], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    is_over: bool = False

    @property
    def error(self) -> float:
        """Predicted over measured, less one.

        0 if the prediction is above a published lower bound.
        """
        if self.is_over and self.predicted_s >= self.measured_s:
            return 0.0
        return self.predicted_s / self.measured_s - 1

    @property
    def naive_error(self) -> float:
        """Error of the naive rule."""
        return self.naive_s / self.measured_s - 1

    @property
    def has_same_sign(self) -> bool:
        """Whether both ratios have the same sign; for sets of comparisons.

        Two ratios that count as equal have the same sign.
        """
        published = _sign(self.measured_s) or int(self.is_over)
        return published == _sign(self.predicted_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class Excluded:
    """A row outside the score, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRank:
    """Rank of the plan that was measured fastest in the predicted order.

    1 is the first.

    Attributes
    ----------
    plan_set : which job
    plans : that were measured
    rank : of the measured best among the predicted times
    loss : measured time of the plan predicted best over that of the measured best, less one
    """

    plan_set: str
    plans: int
    rank: int
    loss: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Subset:
    """A part of a set: rows, mean absolute error, and bias.

    The bias is the median of the signed errors.
    """

    name: str
    points: int
    mape: float
    bias: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """Error of a set with a constant fitted to all other configurations.

    The judged configuration is never in the fit.

    Attributes
    ----------
    key : of the scenario, the constant
    configurations : that were left out, one after the other
    mape : of all rows, each by the value that was fitted to the rows of all other configurations
    values : that were fitted, each once
    """

    key: str
    configurations: int
    mape: float
    values: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """One set of published measurements with its points.

    Attributes
    ----------
    key, title : what it is called, in a word and in a line
    role : ``calibration`` where constants were fitted on these rows, ``declared`` where an input was read from them or
        from the recipe, ``blind`` where nothing was
    calibrated_on : what the constants that decide this set were fitted on, in words
    source : whose measurements
    naive : the naive rule in words
    tolerance : MAPE that is wanted; None where the set is reported and not judged
    points : at least one
    excluded : rows left out
    notes : known failures and their reasons
    splits : labels of the points by which the error is shown too
    without : a label and its value; the error is shown without those rows too
    left_out : see `LeftOut`; None where no constant was fitted
    is_ratio : whether points are ratios of two times, which are compared by sign
    """

    key: str
    title: str
    role: Literal["calibration", "declared", "blind"]
    calibrated_on: str
    source: str
    naive: str
    tolerance: float | None
    points: tuple[Point, ...]
    excluded: tuple[Excluded, ...] = ()
    notes: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    without: tuple[str, str] | None = None
    left_out: LeftOut | None = None
    is_ratio: bool = False

    @property
    def subsets(self) -> tuple[Subset, ...]:
        """The error of parts of the set."""
        found = []
        for label in self.splits:
            values = sorted({dict(point.labels)[label] for point in self.points})
            for value in values:
                chosen = [point for point in self.points if (label, value) in point.labels]
                found.append(_subset(value, chosen))
        if self.without is not None:
            chosen = [point for point in self.points if self.without not in point.labels]
            found.append(_subset(f"all but {self.without[1]}", chosen))
        return tuple(found)

    @property
    def errors(self) -> tuple[float, ...]:
        """Errors of all points."""
        return tuple(point.error for point in self.points)

    @property
    def mape(self) -> float:
        """Mean absolute error."""
        return float(np.mean(np.abs(self.errors)))

    @property
    def median(self) -> float:
        """Median of the absolute errors."""
        return float(np.median(np.abs(self.errors)))

    @property
    def bias(self) -> float:
        """Median of the signed errors."""
        return float(np.median(self.errors))

    @property
    def worst(self) -> Point:
        """The point with the largest absolute error."""
        return max(self.points, key=lambda point: abs(point.error))

    @property
    def naive_mape(self) -> float:
        """Mean absolute error of the naive rule."""
        return float(np.mean([abs(point.naive_error) for point in self.points]))

    @property
    def rank_correlation(self) -> float | None:
        """Spearman's rank correlation of predicted and measured times.

        None for few points, or if one of the two does not vary.
        """
        measured = [point.measured_s for point in self.points]
        predicted = [point.predicted_s for point in self.points]
        if len(self.points) < _ENOUGH or len(set(measured)) == 1 or len(set(predicted)) == 1:
            return None
        return float(spearmanr(measured, predicted).statistic)

    @property
    def is_reached(self) -> bool | None:
        """Whether MAPE is within the tolerance, by the unrounded value.

        None without a tolerance.
        """
        return None if self.tolerance is None else self.mape <= self.tolerance

    @property
    def beats_naive(self) -> bool:
        """Whether the naive rule has the larger error."""
        return self.mape < self.naive_mape

    @property
    def same_signs(self) -> int:
        """Number of points with the sign of the published ratio."""
        return sum(point.has_same_sign for point in self.points)

    def plan_ranks(self) -> tuple[PlanRank, ...]:
        """Rank of the plan measured fastest, for every job with several plans."""
        jobs = sorted({point.plan_set for point in self.points if point.plan_set})
        groups = {job: [point for point in self.points if point.plan_set == job] for job in jobs}
        return tuple(rank_of_best(job, points) for job, points in groups.items() if len(points) > 1)


def _subset(name: str, points: Sequence[Point]) -> Subset:
    errors = [point.error for point in points]
    return Subset(name=name, points=len(points), mape=float(np.mean(np.abs(errors))), bias=float(np.median(errors)))


def _sign(ratio: float) -> int:
    return (ratio > 1 + _TIE) - (ratio < 1 - _TIE)


def rank_of_best(plan_set: str, points: Sequence[Point]) -> PlanRank:
    """Rank by predicted time of the plan measured fastest.

    Ties count against it.

    Parameters
    ----------
    plan_set : which job, for people
    points : its plans
    """
    best = min(points, key=lambda point: point.measured_s)
    chosen = min(points, key=lambda point: point.predicted_s)
    rank = sum(point.predicted_s <= best.predicted_s for point in points)
    loss = chosen.measured_s / best.measured_s - 1
    return PlanRank(plan_set=plan_set, plans=len(points), rank=rank, loss=loss)
