"""Fit the constants that rows determine, and refuse the others.

Each fitted constant has its error and its stability.

A constant is refused by name where there are too few rows for it, where too few rows feel it (about Weftwork's value,
or about what was fitted), where the resamples of the rows put it against the end of its range, or where they spread it
over more than half of its value (alone: over more than its value). The rows then cannot tell it from the other
constants, or say little about it. What is refused keeps Weftwork's value, and the others are fitted again, with the
next constant in its place. The end of a range that nature sets, such as the whole rate of a NIC, is a value; the rows
then give a limit on its other side.
Leaves out: how rows are read (`weftwork.study.calibrate.rows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.calibration import CONSTANTS, shown
from weftwork.study.calibrate.fit import (
    HIGH,
    LOW,
    MOST_CONSTANTS,
    ConstantsFit,
    axis_of,
    fit_constants,
    mean_error,
)
from weftwork.study.calibrate.problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KEPT_DRAWS", "ROWS_EACH", "Calibrated", "calibrate"]

KEPT_DRAWS: Final = 32  # chosen: a run evaluates a closed form for each
ROWS_EACH: Final = 3  # chosen: for each constant; with two the spread of a resample is that of a single difference
_FEELING_ROWS: Final = 3  # chosen: two rows that feel a constant are a coincidence
_FEELS: Final = 0.01  # chosen: of a row's time, where the constant goes from one probe to the other
_FAR: Final = (0.5, 10.0)  # chosen: of Weftwork's value, which may be far off: eager code launches five times as long
_NEAR: Final = (0.8, 1.25)  # chosen: of what was fitted, so that a flat stretch is no value
_LEAST_PROBED_US: Final = 1.0  # of a time that is 0
_WIDEST: Final = 0.5  # of the value: what a constant may spread over and still be called known beside others
_WIDEST_ALONE: Final = 1.0  # chosen: alone there is nothing to tell it from, and its interval says how little is known
_LEAST_US: Final = 2.0  # chosen: below it a time is known well enough if it is within half of this
_AT_END: Final = 0.01  # of the range: nearer than that the end has decided
_ALIKE: Final = 0.005  # chosen: corrected closed forms and runs differ by no more, on average
_BETTER: Final = 0.1  # chosen: of the error, so that a constant alone takes the place of others
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
    one_sided : constants at the natural end of their range, with what the rows say of them
    error_before, error, left_out_error : mean absolute relative errors with Weftwork's constants, with these, and of
        rows that were left out of the fit
    before_s, after_s : shape (rows,), what runs say with Weftwork's constants and with these
    """

    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    draws: tuple[Mapping[str, float], ...]
    refused: Mapping[str, str]
    one_sided: Mapping[str, str]
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
    refused = {name: text for name in names if (text := _unfelt(problem, name, {}, usual[name], _FAR))}
    fit, active = _kept(problem, [name for name in names if name not in refused], refused, source)
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
        one_sided={name: text for name in active if (text := _end(name, fit))},
        error_before=mean_error(before_s, measured_s),
        error=mean_error(after_s, measured_s),
        left_out_error=fit.left_out_error,
        before_s=before_s,
        after_s=after_s,
    )


def _kept(
    problem: Problem, names: Sequence[str], refused: dict[str, str], source: str
) -> tuple[ConstantsFit, list[str]]:
    """Fit as many constants at a time as the rows allow, until all of them are known.

    The least known one makes room for the next that waits, and is tried once more where its rival is refused too. A
    refused constant that explains the rows better alone than the others do takes their place.
    Refused constants are added to ``refused``.
    """
    rows = len(problem.rows)
    room = min(MOST_CONSTANTS, rows // ROWS_EACH)
    active, waiting = list(names[:room]), list(names[room:])
    doubted: list[str] = []
    fit: ConstantsFit | None = None
    while active:
        fit, doubts = _tried(problem, active)
        if not doubts:
            break
        worst = _least_known(doubts, fit)
        refused[worst] = doubts[worst]
        doubted.append(worst)
        active.remove(worst)
        if waiting:
            active.append(waiting.pop(0))
    for name in doubted[:-1]:  # whose rival is gone; the last one was tried beside these very constants
        if len(active) == room:
            break
        again, doubts = _tried(problem, [*active, name])
        if doubts:
            refused[name] = doubts.get(name, refused[name])
            continue
        fit, active = again, [*active, name]
        del refused[name]
    refused.update({name: _no_room(rows, len(active)) for name in waiting})
    for name in doubted:
        alone, doubts = _tried(problem, [name])
        if doubts or (fit is not None and active and alone.error >= (1 - _BETTER) * fit.error):
            continue
        del refused[name]
        refused.update({other: _worse(name, alone, fit) for other in active if fit is not None})
        fit, active = alone, [name]
    if fit is None or not active:
        raise ConfigError(source, [Mistake(path=name, text=text) for name, text in refused.items()])
    return fit, active


def _least_known(names: Iterable[str], fit: ConstantsFit) -> str:
    return max(names, key=lambda name: _spread(name, fit))


def _tried(problem: Problem, names: Sequence[str]) -> tuple[ConstantsFit, dict[str, str]]:
    """A fit, and which of its constants are unknown, with reasons."""
    fit = fit_constants(names, problem.times_s, problem.measured_s, problem.progress)
    unfelt = {name: text for name in names if (text := _unfelt(problem, name, fit.values, fit.values[name], _NEAR))}
    return fit, unfelt or {name: text for name in names if (text := _doubt(name, fit))}


def _worse(name: str, alone: ConstantsFit, fit: ConstantsFit) -> str:
    """Why constants that are known are refused."""
    errors = f"{100 * alone.error:.1f} % against {100 * fit.error:.1f} %"
    return f"{name} alone explains the rows better (mean absolute error {errors}), and the rows do not determine both"


def _no_room(rows: int, fitted: int) -> str:
    """Why a constant that rows feel was not tried."""
    if fitted == MOST_CONSTANTS:
        return f"{MOST_CONSTANTS} other constants are fitted, the most at a time; name it with --constants"
    wanted = f"wanted {ROWS_EACH * (fitted + 1)}, {ROWS_EACH} for each constant"
    return f"found {plural(rows, 'row')} for {plural(fitted + 1, 'constant')}, {wanted}"


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
    is_at_low, is_at_high = _ends(name, low, high)
    if (is_at_high and not known.is_high_natural) or (is_at_low and not known.is_low_natural):
        span = f"the end of its range ({known.low:g} to {known.high:g}): the rows do not determine it"
        return f"{told}, {span}; wanted {_NEEDED[name]}"
    if len(fit.values) == 1:
        if _spread(name, fit) <= _WIDEST_ALONE:
            return ""
        return f"{told}, more than its value: the rows say next to nothing of it; wanted {_NEEDED[name]}"
    if _spread(name, fit) > _WIDEST:
        wide = "more than half of its value: the rows do not separate it from the other constants"
        return f"{told}, {wide}; wanted {_NEEDED[name]}"
    return ""


def _ends(name: str, low: float, high: float) -> tuple[bool, bool]:
    """Whether an interval reaches the low and the high end of a constant's range."""
    known = CONSTANTS[name]
    first, lowest, highest, last = (axis_of(name, value) for value in (known.low, low, high, known.high))
    margin = _AT_END * (last - first)
    return lowest <= first + margin, highest >= last - margin


def _end(name: str, fit: ConstantsFit) -> str:
    """Words for a constant whose value is the natural end of its range; empty for any other."""
    known = CONSTANTS[name]
    low, _ = fit.interval(name)
    if not (known.is_high_natural and _ends(name, known.high, fit.values[name])[1]):
        return ""
    least = shown(name, low)
    return (
        f"nothing is above {known.high:g}: 95 % of the resamples have {least} or more, and the rows give no other limit"
    )
