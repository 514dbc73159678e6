"""Results by the value of a key.

Points are dots with intervals, and a line joins the means. Points of several groups have a line for each group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

from weftwork.report.figures.axes import DASHES, SPAN, Tick, figure, legend, log_ticks, plot, ticks
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Level", "LevelDot", "levels"]

_ROOM: Final = 0.06  # chosen: of the axis above and below, so that no dot lies on its end
_LONGEST: Final = 16  # chosen: letters of a value below the axis; the table has them all
_COLOURS: Final = ("c1", "c3", "c4", "c5", "c6")  # of groups; the best points have c2
_APART: Final = 0.5  # chosen: share of the distance of two values that the dots of one take up


@dataclass(frozen=True, kw_only=True, slots=True)
class LevelDot:
    """A point: its result, optional interval ends, whether it won, and its group."""

    value: float
    low: float | None = None
    high: float | None = None
    is_best: bool = False
    group: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """A value of the key: its text, its mean, and its points."""

    text: str
    mean: float
    dots: tuple[LevelDot, ...]


def levels(title: str, found: Sequence[Level], unit: str, *, aside: str = "") -> str:
    """Draw dots by the values of a key.

    Parameters
    ----------
    title : the key
    found : its values, from left to right, each with a point at least
    unit : of the results
    aside : small words behind the title
    """
    ends = [end for level in found for dot in level.dots for end in (dot.value, dot.low, dot.high) if end is not None]
    low, high = min(ends), max(ends)
    is_log = low > 0
    if is_log:
        spread = max(math.log(high / low), 0.02)
        low, high = low * math.exp(-_ROOM * spread), high * math.exp(_ROOM * spread)
        y_ticks = log_ticks(low, high, unit)
    else:
        low, high = 0.0, (high or 1.0) * (1 + _ROOM)
        y_ticks = ticks(high, unit)

    def height(value: float) -> float:
        share = math.log(value / low) / math.log(high / low) if is_log else max(0.0, value) / high
        return SPAN * (1 - share)

    places = [SPAN * (number + 0.5) / len(found) for number in range(len(found))]
    lines = _lines(found)
    drawing = []
    for line in lines:
        means = "L".join(
            f"{x + line.shift * SPAN / len(found):.1f} {height(mean):.1f}"
            for x, mean in zip(places, line.means, strict=True)
            if mean is not None
        )
        drawing.append(f'<path class="s {line.colour}" stroke-dasharray="{DASHES[1]}" d="M{means}"/>')
    of = {line.group: line for line in lines}
    for x, level in zip(places, found, strict=True):
        step = SPAN / len(found) * _APART / max(1, len(level.dots))
        for number, dot in enumerate(level.dots):
            line = of.get(dot.group, lines[0])
            shift = (number - (len(level.dots) - 1) / 2) * step if len(lines) == 1 else line.shift * SPAN / len(found)
            at = x + shift
            colour = "c2" if dot.is_best else line.colour
            if dot.low is not None and dot.high is not None:
                drawing.append(f'<path class="s {colour}" d="M{at:.1f} {height(dot.low):.1f}V{height(dot.high):.1f}"/>')
            drawing.append(f'<path class="dot {colour}" d="M{at:.1f} {height(dot.value):.1f}h.01"/>')
    tip = {
        "x": [round(x, 1) for x in places],
        "t": [level.text for level in found],
        "s": [[line.name, line.colour, [typeset(amount(mean, unit)) for mean in line.means]] for line in lines],
    }
    x_ticks = [Tick(at=x / SPAN, text=_short(level.text)) for x, level in zip(places, found, strict=True)]
    entries = [(line.name if line.group else "mean of a value", line.colour, DASHES[1]) for line in lines]
    if any(dot.is_best for level in found for dot in level.dots):
        entries.append(("the best point", "c2", ""))
    chart = plot("".join(drawing), label=f"{title}: {aside}", x_ticks=x_ticks, y_ticks=y_ticks, tip=tip)
    return figure(title, legend(entries) + chart, aside=aside)


@dataclass(frozen=True, kw_only=True, slots=True)
class _GroupMeans:
    """The means of a group, by value; of all points without groups."""

    group: str
    name: str
    colour: str
    shift: float
    means: tuple[float | None, ...]


def _lines(found: Sequence[Level]) -> list[_GroupMeans]:
    """A line for each group, or one where there are no groups or more than colours."""
    groups = list(dict.fromkeys(dot.group for level in found for dot in level.dots))
    if not 1 < len(groups) <= len(_COLOURS):
        return [_GroupMeans(group="", name="mean", colour="c1", shift=0.0, means=tuple(level.mean for level in found))]
    step = _APART / len(groups)
    lines = []
    for number, group in enumerate(groups):
        values = [[dot.value for dot in level.dots if dot.group == group] for level in found]
        lines.append(
            _GroupMeans(
                group=group,
                name=group,
                colour=_COLOURS[number],
                shift=(number - (len(groups) - 1) / 2) * step,
                means=tuple(fmean(own) if own else None for own in values),
            )
        )
    return lines


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\u2026"
