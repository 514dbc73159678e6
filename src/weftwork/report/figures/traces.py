"""Samples over time: lines, and bands from smallest to largest.

A line keeps the smallest and the largest sample of each step of the screen, so that no peak is lost. Leaves out:
values that are not finite, where a line is interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.report.figures.axes import DASHES, SPAN, even_ticks, legend, plot, tick_words, ticks
from weftwork.report.figures.lines import mark_moments, time_ticks
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from weftwork.report.figures.axes import Tick
    from weftwork.report.figures.lines import Moment

__all__ = ["COLOURS", "Band", "Trace", "traces"]

COLOURS: Final = 6  # classes c1 to c6 of the page
_STEPS: Final = 400  # chosen: a screen shows no more
_FAINT_STEPS: Final = 100  # chosen: of the thin lines behind others
_TIPS: Final = 200  # instants at which the pointer finds values
_SPARE: Final = 1.06  # of the axis above the largest value


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A line through samples.

    Attributes
    ----------
    name : for the legend
    at_ps, values : shape (samples,), by time
    look : colour and dashes, numbers from 0
    is_faint : drawn thin behind the others, without a name in the legend
    """

    name: str
    at_ps: NDArray[np.int64]
    values: NDArray[np.float64]
    look: tuple[int, int]
    is_faint: bool = False


@dataclass(frozen=True, kw_only=True)
class Band:
    """The area between two values over time.

    Attributes
    ----------
    at_ps, low, high : shape (samples,), by time
    colour : number from 0
    """

    at_ps: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    colour: int


def traces(
    title: str,
    found: Sequence[Trace],
    *,
    end_ps: int,
    unit: str,
    bands: Sequence[Band] = (),
    height_px: int = 170,
    moments: Sequence[Moment] = (),
) -> str:
    """Draw lines and bands on one pair of axes, with the legend.

    Parameters
    ----------
    title : what is to be seen; it is not printed
    found : lines with at least one sample
    end_ps : right end of the axis of time, which begins at 0
    unit : of the values
    """
    every = [line.values for line in found] + [band.high for band in bands]
    lows = [line.values for line in found] + [band.low for band in bands]
    high = max(_finite(values, np.max) for values in every)
    low = min(0.0, *(_finite(values, np.min) for values in lows))
    high = max(high * _SPARE, 0.0)
    if high <= low:
        high = low + 1.0
    named = [line for line in found if not line.is_faint]
    drawing = "".join(
        [
            *(_area(band, end_ps, low, high) for band in bands),
            *(_path(line, end_ps, low, high) for line in sorted(found, key=lambda line: not line.is_faint)),
        ]
    )
    peaks = "; ".join(f"{line.name}: {_range(line.values, unit)}" for line in named)
    under, over, words = mark_moments(moments)
    chart = plot(
        under + drawing + over,
        label=f"{title}. {peaks}",
        x_ticks=time_ticks(end_ps),
        y_ticks=_ticks(low, high, unit, height_px),
        height_px=height_px,
        over=words,
        tip=_tip(named, end_ps, unit),
    )
    if len(found) == 1 and not bands:
        return chart if named[0].name in title else _legend(named) + chart
    return _legend(named) + chart


def _legend(named: Sequence[Trace]) -> str:
    return legend([(line.name, _colour(line.look[0]), DASHES[line.look[1]]) for line in named])


def _range(values: NDArray[np.float64], unit: str) -> str:
    return f"from {amount(_finite(values, np.min), unit)} to {amount(_finite(values, np.max), unit)}"


def _finite(values: NDArray[np.float64], of: Callable[[NDArray[np.float64]], np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(of(known)) if len(known) else 0.0


def _ticks(low: float, high: float, unit: str, height_px: int) -> list[Tick]:
    most = max(2, min(5, height_px // 40))
    if low == 0:
        return ticks(high, unit, most=most)
    return even_ticks(low, high, lambda values: tick_words(values, unit), most=most)


def _colour(number: int) -> str:
    return f"c{1 + number % COLOURS}"


def _path(line: Trace, end_ps: int, low: float, high: float) -> str:
    at, values = _thinned(line.at_ps, line.values, end_ps, _FAINT_STEPS if line.is_faint else _STEPS)
    known = np.isfinite(values)
    parts, is_open = [], False
    for x, y, is_known in zip(at.tolist(), values.tolist(), known.tolist(), strict=True):
        if is_known:
            parts.append(f"{'L' if is_open else 'M'}{_place(x / end_ps)} {_place((high - y) / (high - low))}")
        is_open = is_known
    kind = "thin" if line.is_faint else "s"
    dash = "" if line.is_faint else f' stroke-dasharray="{DASHES[line.look[1]]}"'
    return f'<path class="{kind} {_colour(line.look[0])}"{dash} d="{"".join(parts)}"/>'


def _area(band: Band, end_ps: int, low: float, high: float) -> str:
    at, tops = _binned(band.at_ps, band.high, end_ps, np.maximum)
    _, floors = _binned(band.at_ps, band.low, end_ps, np.minimum)
    there = [(x, y) for x, y in zip(at.tolist(), tops.tolist(), strict=True)]
    back = [(x, y) for x, y in zip(at.tolist(), floors.tolist(), strict=True)][::-1]
    points = "L".join(f"{_place(x / end_ps)} {_place((high - y) / (high - low))}" for x, y in there + back)
    return f'<path class="a {_colour(band.colour)}" d="M{points}Z"/>'


def _place(share: float) -> str:
    return f"{SPAN * share:.1f}".removesuffix(".0")


def _thinned(
    at: NDArray[np.int64], values: NDArray[np.float64], end_ps: int, steps: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The smallest and largest sample of each step, in order.

    If samples are few, all of them.
    """
    if len(at) <= 2 * steps:
        return at, values
    step = np.minimum(at * steps // max(end_ps, 1), steps - 1)
    kept = np.zeros(len(at), np.bool_)
    kept[[0, -1]] = True
    begins = np.flatnonzero(np.diff(step, prepend=-1))
    for first, last in zip(begins.tolist(), [*begins[1:].tolist(), len(at)], strict=True):
        piece = values[first:last]
        if np.isnan(piece).all():
            kept[first] = True
        else:
            kept[[first + int(np.nanargmin(piece)), first + int(np.nanargmax(piece))]] = True
    return at[kept], values[kept]


def _binned(
    at: NDArray[np.int64], values: NDArray[np.float64], end_ps: int, of: np.ufunc
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """One value for each step; all samples if they are few."""
    if len(at) <= _STEPS:
        return at, values
    begins = np.flatnonzero(np.diff(np.minimum(at * _STEPS // max(end_ps, 1), _STEPS - 1), prepend=-1))
    return at[begins], of.reduceat(values, begins)


def _tip(named: Sequence[Trace], end_ps: int, unit: str) -> dict[str, list[object]]:
    """Instants, and of each line the last sample until then."""
    instants = np.unique(np.concatenate([line.at_ps for line in named]))
    instants = instants[:: max(1, -(-len(instants) // _TIPS))]
    told: list[object] = []
    for line in named:
        place = np.searchsorted(line.at_ps, instants, side="right") - 1
        texts = [
            "no sample"
            if index < 0 or (at > line.at_ps[-1]) or not np.isfinite(line.values[index])
            else typeset(amount(float(line.values[index]), unit))
            for index, at in zip(place.tolist(), instants.tolist(), strict=True)
        ]
        told.append([line.name, _colour(line.look[0]), texts])
    return {
        "x": [round(SPAN * at / end_ps) for at in instants.tolist()],
        "t": [f"at {typeset(amount(at, 'ps'))}" for at in instants.tolist()],
        "s": told,
    }
