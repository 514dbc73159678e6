"""Scores from the numbers of runs.

Seeds are averaged, scenarios joined, and gains paired by seed.

The objective of a run is a number. Its mean over the seeds, over the mean with the values of the file, is the ratio of
a scenario; the score of several scenarios is the geometric mean of their ratios. Of one scenario whose objective is 0
or less with the values of the file, such as no pause at all, the score is the plain mean.
Leaves out: which runs there are (`weftwork.study.tune.trials`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.tuning import SeedEstimate
from weftwork.study.results.seeds import interval

__all__ = ["Scale", "estimate_of", "scale_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """The reference of scores.

    Attributes
    ----------
    units : of each scenario the mean objective with the values of its file; 1 where scores are not relative
    is_ratio : whether scores are relative
    """

    units: tuple[float, ...]
    is_ratio: bool

    def score(self, values: Sequence[float]) -> float:
        """Return the score of one value for each scenario."""
        if len(values) == 1:
            return values[0] / self.units[0]
        ratios = [value / unit for value, unit in zip(values, self.units, strict=True)]
        if min(ratios) <= 0:
            return min(ratios)  # 0: nothing of it is left in a scenario; no geometric mean goes lower
        return math.exp(fmean(math.log(ratio) for ratio in ratios))

    def scores(self, values: Sequence[Sequence[float]]) -> list[float]:
        """Return the score of each seed.

        Parameters
        ----------
        values : of each scenario one for each seed
        """
        return [self.score(of_seed) for of_seed in zip(*values, strict=True)]


def scale_of(values: Sequence[Sequence[float]], files: Sequence[str]) -> Scale:
    """Make the scale from the objectives with the files' values.

    Parameters
    ----------
    values : of each scenario one for each seed
    files : of the scenarios, for messages

    Raises
    ------
    ConfigError : of several scenarios one has an objective that is not above 0
    """
    means = tuple(fmean(of_file) for of_file in values)
    if min(means) > 0:
        return Scale(units=means, is_ratio=True)
    if len(means) == 1:
        return Scale(units=(1.0,), is_ratio=False)
    mistakes = [
        Mistake(
            path="--objective",
            text=f"is {mean:g} with the values of {file}, but the ratios that join several scenarios need a number"
            " above 0; add a constant, such as '1 + pauses'",
        )
        for mean, file in zip(means, files, strict=True)
        if mean <= 0
    ]
    raise ConfigError("command line", mistakes)


def estimate_of(differences: Sequence[float]) -> SeedEstimate:
    """Mean of paired differences with its 95 % interval.

    Differences are paired by seed; the interval is Student's t.
    """
    mean, low, high = interval(differences)
    return SeedEstimate(mean=mean) if len(differences) == 1 else SeedEstimate(mean=mean, low=low, high=high)
