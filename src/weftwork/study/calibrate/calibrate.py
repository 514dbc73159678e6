"""Fit the constants that rows determine, and refuse the others.

Each fitted constant has its error and its stability.

A constant is refused by name where there are too few rows for it, where too few rows feel it (about Weftwork's value,
or about what was fitted), where the resamples of the rows put it against the end of its range, or where they spread it
over more than half of its value: then the rows cannot tell it from the other constants, or say little about it. What is
refused keeps Weftwork's value, and the others are fitted again.
Leaves out: how rows are read (`weftwork.study.calibrate.rows`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.calibration import CONSTANTS, shown
from weftwork.study.calibrate.fit import HIGH, LOW, MOST_CONSTANTS, ConstantsFit, fit_constants, mean_error
from weftwork.study.calibrate.problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KEPT_DRAWS", "ROWS_EACH", "Calibrated", "calibrate"]

KEPT_DRAWS: Final = 32  # chosen: a run evaluates a closed form for each
ROWS_EACH: Final = 5  # chosen: for each constant; fewer, and a resample is often of two or three rows
_FEELING_ROWS: Final = 3  # chosen: two rows that feel a constant are a coincidence
_FEELS: Final = 0.01  # chosen: of a row's time, where the constant goes from one probe to the other
_FAR: Final = (0.5, 10.0)  # chosen: of Weftwork's value, which may be far off: eager code launches five times as long
_NEAR: Final = (0.8, 1.25)  # chosen: of what was fitted, so that a flat stretch is no value
_LEAST_PROBED_US: Final = 1.0  # of a time that is 0
_WIDEST: Final = 0.5  # of the value: what a constant may spread over and still be called known
_LEAST_US: Final = 2.0  # chosen: below it a time is known well enough if it is within half of this
_AT_END: Final = 0.01  # of the range: nearer than that the end has decided
_ALIKE: Final = 0.005  # chosen: corrected closed forms and runs differ by no more, on average
_ROUNDS: Final = 2  # chosen: a second correction moves times by less than a per cent
_NEEDED: Final = {
    "matmul_efficiency": "large matrix products, or iterations that are bound by computing",
    "fp8_efficiency": "rows in fp8, mxfp8 or nvfp4 beside rows in bf16",
    "kernel_tail_us": "small matrix products, of less than 50 us",
    "launch_us": "iterations whose GPUs wait for the CPU: small models, small micro batches",
    "collective_launch_us": "curves with sizes below 64 KiB, of several operations or numbers of GPUs",
    "network_efficiency": "rows over several servers, of 256 MiB and more or of plans bound by the network",
    "latency_scale": "curves with small sizes at several numbers of GPUs or servers",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibrated:
    """The result of a calibration.

    Attributes
    ----------
    values, intervals : of the constants
    draws : joint values of `KEPT_DRAWS` resamples
    refused : constants that were not fitted, with reasons
    error_before, error, left_out_error : mean absolute relative errors with Weftwork's constants, with these, and of
        rows that were left out of the fit
    before_s, after_s : shape (rows,), what runs say with Weftwork's constants and with these
    """

    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    draws: tuple[Mapping[str, float], ...]
    refused: Mapping[str, str]
    error_before: float
    error: float
    left_out_error: float
    before_s: NDArray[np.float64]
    after_s: NDArray[np.float64]


def calibrate(problem: Problem, names: Sequence[str], *, usual: Mapping[str, float], source: str) -> Calibrated:
    """Fit constants on rows.

    Parameters
    ----------
    problem : the rows
    names : constants to fit, those first that matter most
    usual : their values without a calibration, about which rows are asked whether they feel them
    source : what errors call the rows

    Raises
    ------
    ConfigError : nothing can be fitted; with the reason for each constant
    """
    measured_s = problem.measured_s
    before_s = problem.run_s(None)
    problem.corrected_at(None, before_s)
    refused = _too_little(problem, names, usual)
    active = [name for name in names if name not in refused]
    fit, active = _kept(problem, active, refused, source)
    after_s = problem.run_s(fit.values)
    for _ in range(_ROUNDS):
        off = mean_error(problem.times_s([fit.values])[0], after_s)
        if off <= _ALIKE:
            break
        problem.corrected_at(fit.values, after_s)
        fit, active = _kept(problem, active, refused, source)
        after_s = problem.run_s(fit.values)
    return Calibrated(
        values=fit.values,
        intervals={name: _around(fit, name) for name in active},
        draws=fit.draws[:KEPT_DRAWS],
        refused=refused,
        error_before=mean_error(before_s, measured_s),
        error=mean_error(after_s, measured_s),
        left_out_error=fit.left_out_error,
        before_s=before_s,
        after_s=after_s,
    )


def _kept(
    problem: Problem, names: Sequence[str], refused: dict[str, str], source: str
) -> tuple[ConstantsFit, list[str]]:
    """Fit constants repeatedly, each time without the least known one.

    The loop ends when all are known; refused constants are added to ``refused``.
    """
    active = list(names)
    while active:
        fit = fit_constants(active, problem.times_s, problem.measured_s, problem.progress)
        unfelt = {
            name: text for name in active if (text := _unfelt(problem, name, fit.values, fit.values[name], _NEAR))
        }
        doubts = unfelt or {name: text for name in active if (text := _doubt(name, fit))}
        if not doubts:
            return fit, active
        worst = max(doubts, key=lambda name: _spread(name, fit))
        refused[worst] = doubts[worst]
        active.remove(worst)
    raise ConfigError(source, [Mistake(path=name, text=text) for name, text in refused.items()])


def _too_little(problem: Problem, names: Sequence[str], usual: Mapping[str, float]) -> dict[str, str]:
    """Constants for which the rows cannot be enough."""
    rows = len(problem.rows)
    refused: dict[str, str] = {}
    kept = 0
    for name in names:
        if text := _unfelt(problem, name, {}, usual[name], _FAR):
            refused[name] = text
        elif rows < ROWS_EACH * (kept + 1):
            wanted = f"wanted {ROWS_EACH * (kept + 1)}, {ROWS_EACH} for each constant"
            fitted = plural(kept + 1, "constant")
            refused[name] = f"found {plural(rows, 'row')} for {fitted}, {wanted}"
        elif kept == MOST_CONSTANTS:
            refused[name] = f"{MOST_CONSTANTS} other constants are fitted, the most at a time; name it with --constants"
        else:
            kept += 1
    return refused


def _unfelt(problem: Problem, name: str, others: Mapping[str, float], value: float, probes: tuple[float, float]) -> str:
    """The reason why too few rows change with a constant.

    Empty if enough rows do.

    Parameters
    ----------
    problem : the rows
    name, value : of the constant
    others : that have values of their own
    probes : times that value, between which it is moved
    """
    low, high = (_probed(name, value, factor) for factor in probes)
    first_s, second_s = problem.times_s([{**others, name: low}, {**others, name: high}])
    feeling = int(np.sum(np.abs(second_s / first_s - 1) > _FEELS))
    if feeling >= _FEELING_ROWS:
        return ""
    moved = f"more than 1 % (from {shown(name, low)} to {shown(name, high)})"
    rows = plural(len(problem.rows), "row")
    return f"it changes {feeling} of {rows} by {moved}, wanted {_FEELING_ROWS}: {_NEEDED[name]}"


def _probed(name: str, value: float, factor: float) -> float:
    known = CONSTANTS[name]
    least = _LEAST_PROBED_US if known.unit == "us" else known.low
    return min(known.high, max(known.low, max(value, least) * factor))


def _around(fit: ConstantsFit, name: str) -> tuple[float, float]:
    """The interval of a constant, widened to contain its value.

    The value of all rows may be slightly outside the interval of the resamples.
    """
    low, high = fit.interval(name)
    return min(low, fit.values[name]), max(high, fit.values[name])


def _spread(name: str, fit: ConstantsFit) -> float:
    low, high = fit.interval(name)
    least = _LEAST_US if CONSTANTS[name].unit == "us" else 0.0
    return (high - low) / max(fit.values[name], least)


def _doubt(name: str, fit: ConstantsFit) -> str:
    """The reason why a fitted constant is unknown; empty if known."""
    known = CONSTANTS[name]
    low, high = fit.interval(name)
    told = f"{100 * LOW:.0f} to {100 * HIGH:.0f} % of the resamples put it at {low:.3g} to {high:.3g}"
    margin = _AT_END * (known.high - known.low)
    may_be_low = known.unit == "us"  # nothing is a time that can be
    if high >= known.high - margin or (low <= known.low + margin and not may_be_low):
        span = f"the end of its range ({known.low:g} to {known.high:g}): the rows do not determine it"
        return f"{told}, {span}; wanted {_NEEDED[name]}"
    if _spread(name, fit) > _WIDEST:
        wide = "more than half of its value: the rows do not separate it from the other constants"
        return f"{told}, {wide}; wanted {_NEEDED[name]}"
    return ""
