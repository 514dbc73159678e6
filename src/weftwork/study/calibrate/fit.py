"""Fit constants by the least mean of absolute relative errors.

A bootstrap over rows gives intervals, and rows left out give errors.

Times of all rows are tabulated on a grid over the constants, interpolated in logarithms, and looked at between: the
best point of a resample of the rows is then a matter of weights, so that hundreds of resamples cost one product of
matrices. The grid zooms in on what the resamples find. Least absolute errors, so that single rows do not pull.
Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 6 and 13 (resampling rows, percentile
intervals). Leaves out: rows that depend on each other, which make intervals too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.stats import norm
from scipy.stats import t as student_t

from weftwork.spec.calibration import CONSTANTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DRAWS", "HIGH", "LOW", "MOST_CONSTANTS", "ConstantsFit", "axis_of", "fit_constants", "mean_error"]

LOW, HIGH = 0.05, 0.95
DRAWS: Final = 200  # chosen: the 5 % quantile of so many has 10 below it
MOST_CONSTANTS: Final = 3
_LEVELS: Final = 4  # chosen: three zooms; each makes the grid three to ten times finer
_TABLED: Final = {1: 17, 2: 9, 3: 6}  # chosen: points of the grid an axis, by constants; the times are smooth
_LOOKED_AT: Final = {1: 801, 2: 81, 3: 29}  # chosen: points between, some ten thousand in all
_KEPT: Final = (0.01, 0.99)  # chosen: of the resamples, inside the next window; those beyond end at its edge
_SEED: Final = 1  # chosen: any number; the same rows give the same intervals
_MOST_LEFT_OUT: Final = 200  # chosen: of more rows every so many are left out at a time

Times = Callable[[Sequence[Mapping[str, float]]], "NDArray[np.float64]"]  # values -> shape (values, rows), seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class ConstantsFit:
    """The result of a fit.

    Attributes
    ----------
    values : of the constants
    draws : joint values of `DRAWS` resamples of the rows, spread as few rows demand
    error : mean absolute relative error of all rows, by the table
    left_out_error : the same of rows that were not fitted, each by the fit of the others
    """

    values: Mapping[str, float]
    draws: tuple[Mapping[str, float], ...]
    error: float
    left_out_error: float

    def interval(self, name: str) -> tuple[float, float]:
        """5 % and 95 % of the draws of a constant."""
        low, high = np.quantile([draw[name] for draw in self.draws], [LOW, HIGH])
        return float(low), float(high)


def mean_error(predicted_s: NDArray[np.float64], measured_s: NDArray[np.float64]) -> float:
    """Mean absolute relative error.

    Parameters
    ----------
    predicted_s, measured_s : shape (rows,)

    Examples
    --------
    >>> mean_error(np.array([1.1, 1.8]), np.array([1.0, 2.0]))
    0.1
    """
    return round(float(np.mean(np.abs(predicted_s / measured_s - 1))), 12)


def fit_constants(
    names: Sequence[str],
    times: Times,
    measured_s: NDArray[np.float64],
    progress: Callable[[str, int, int], None] | None = None,
) -> ConstantsFit:
    """Find the constants with the smallest errors of the rows' times.

    Parameters
    ----------
    names : of `CONSTANTS`, one to `MOST_CONSTANTS`, and fewer than rows
    times : what the model says to the rows with values of these constants
    measured_s : shape (rows,)
    progress : is told how many points are tabulated
    """
    rows = len(measured_s)
    weights = _weights(rows)
    left_out = _left_out(rows)
    every = np.concatenate([np.ones((1, rows)), weights, left_out])
    window = [(axis_of(name, CONSTANTS[name].low), axis_of(name, CONSTANTS[name].high)) for name in names]
    table = _TABLED[len(names)]
    points = np.empty((0, len(names)))
    errors = np.empty((0, rows))
    best = np.empty(0, np.int64)
    for level in range(_LEVELS):
        axes = [np.linspace(low, high, table) for low, high in window]
        values = [_values(names, point) for point in product(*axes)]
        found_s = _tabulated(values, times, progress, done=level * len(values), of=_LEVELS * len(values))
        logs = np.log(found_s).reshape(*[table] * len(names), rows)
        lookup = RegularGridInterpolator(axes, logs)
        looked = [np.linspace(low, high, _LOOKED_AT[len(names)]) for low, high in window]
        points = np.array(list(product(*looked)))
        errors = np.abs(np.exp(lookup(points)) / measured_s - 1)
        best = np.argmin(errors @ every.T, axis=0)
        found = points[best]
        steps = [axis[1] - axis[0] for axis in axes]
        lows, highs = np.quantile(found, _KEPT, axis=0)
        window = [
            (max(axis[0], min(low, first) - step), min(axis[-1], max(high, first) + step))
            for axis, step, low, high, first in zip(axes, steps, lows, highs, found[0], strict=True)
        ]
    wider = _widening(rows, len(names))
    whole, draws, others = best[0], best[1 : 1 + DRAWS], best[1 + DRAWS :]
    return ConstantsFit(
        values=_values(names, points[whole]),
        draws=tuple(_values(names, points[whole] + wider * (points[draw] - points[whole])) for draw in draws),
        error=float(np.mean(errors[whole])),
        left_out_error=_left_out_error(errors, others, left_out),
    )


def _widening(rows: int, constants: int) -> float:
    """Factor of the spread of resamples of few rows, which is too narrow.

    The quantile of Student's t over that of the normal, and the square root of the lost degrees of freedom.
    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 12 (bootstrap-t) and 2 (the plug-in
    standard error).
    """
    free = rows - constants
    return float(student_t.ppf(HIGH, free) / norm.ppf(HIGH) * np.sqrt(rows / free))


def _weights(rows: int) -> NDArray[np.float64]:
    """Count of each row in each resample; shape (DRAWS, rows)."""
    drawn = np.random.default_rng(_SEED).integers(rows, size=(DRAWS, rows))
    return np.stack([np.bincount(one, minlength=rows) for one in drawn]).astype(np.float64)


def _left_out(rows: int) -> NDArray[np.float64]:
    """1 for fitted rows, 0 for rows left out; shape (times, rows).

    Each row is left out once.
    """
    times = min(rows, _MOST_LEFT_OUT)
    is_out = np.arange(rows) % times == np.arange(times)[:, None]
    return np.where(is_out, 0.0, 1.0)


def _left_out_error(errors: NDArray[np.float64], best: NDArray[np.int64], kept: NDArray[np.float64]) -> float:
    total = sum(float(errors[point][weights == 0].sum()) for point, weights in zip(best, kept, strict=True))
    return total / int(kept.shape[1])


def _tabulated(
    values: Sequence[Mapping[str, float]],
    times: Times,
    progress: Callable[[str, int, int], None] | None,
    *,
    done: int,
    of: int,
) -> NDArray[np.float64]:
    if progress is not None:
        progress("points of the grid", done, of)
    return times(values)


def _values(names: Sequence[str], point: Sequence[float] | NDArray[np.float64]) -> dict[str, float]:
    return {name: _from_axis(name, float(at)) for name, at in zip(names, point, strict=True)}


def axis_of(name: str, value: float) -> float:
    """A value on the axis of the fit.

    Shares and ratios by their logarithm; times, which may be 0, by the logarithm of 1 us more.
    """
    return float(np.log1p(value) if CONSTANTS[name].unit == "us" else np.log(value))


def _from_axis(name: str, at: float) -> float:
    known = CONSTANTS[name]
    value = float(np.expm1(at) if known.unit == "us" else np.exp(at))
    return min(known.high, max(known.low, value))
