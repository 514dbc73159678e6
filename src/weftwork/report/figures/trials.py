"""Scores of trials as dots.

They are by number or by the value of a parameter. The best trial is marked, and trial 0 is a line.

Leaves out: trials without a score; pictures of two parameters at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.report.figures.axes import DASHES, SPAN, figure, legend, log_ticks, plot, ticks
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.report.figures.axes import Tick

__all__ = ["TrialDot", "trial_dots"]

_ROOM: Final = 0.06  # chosen: of the axis above and below, so that no dot lies on its end


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialDot:
    """A trial: place along the axis, score, name, and best mark."""

    at: float
    score: float
    name: str
    is_best: bool = False


def trial_dots(
    title: str,
    found: Sequence[TrialDot],
    unit: str,
    *,
    x_ticks: Sequence[Tick],
    before: float,
    aside: str = "",
    so_far: Sequence[float] = (),
) -> str:
    """Draw the dots of all trials.

    Parameters
    ----------
    title : heading
    found : trials, one at least
    unit : of scores
    x_ticks : of the axis along
    before : score of the values of the file
    aside : small words behind the heading
    so_far : of each trial the best score up to it; a line where it is given
    """
    low, high = min(before, *(one.score for one in found)), max(before, *(one.score for one in found))
    is_log = low > 0
    if is_log:
        spread = max(math.log(high / low), 0.02)
        low, high = low * math.exp(-_ROOM * spread), high * math.exp(_ROOM * spread)
        y_ticks = log_ticks(low, high, unit)
    else:
        low, high = min(low, 0.0), (high or 1.0) * (1 + _ROOM)
        y_ticks = [] if low < 0 else ticks(high, unit)

    def height(score: float) -> float:
        share = math.log(score / low) / math.log(high / low) if is_log else (score - low) / (high - low)
        return SPAN * (1 - share)

    drawing = [f'<path class="s c3" stroke-dasharray="{DASHES[1]}" d="M0 {height(before):.1f}H{SPAN}"/>']
    if so_far:
        places = [f"{SPAN * one.at:.1f} {height(score):.1f}" for one, score in zip(found, so_far, strict=True)]
        drawing.append(f'<path class="s c1" d="M{"L".join(places)}"/>')
    for is_best, colour in ((False, "c1"), (True, "c2")):
        marks = "".join(f"M{SPAN * one.at:.1f} {height(one.score):.1f}h.01" for one in found if one.is_best is is_best)
        drawing.append(f'<path class="dot {colour}" d="{marks}"/>' if marks else "")
    ordered = sorted(found, key=lambda one: one.at)
    tip = {
        "x": [round(SPAN * one.at, 1) for one in ordered],
        "t": [one.name for one in ordered],
        "s": [["score", "c1", [typeset(amount(one.score, unit)) for one in ordered]]],
    }
    entries = [("the values of the file", "c3", DASHES[1]), ("the best", "c2", "")]
    if so_far:
        entries.append(("best so far", "c1", ""))
    chart = plot("".join(drawing), label=f"{title}: {aside}", x_ticks=x_ticks, y_ticks=y_ticks, tip=tip)
    return figure(title, legend(entries) + chart, aside=aside)
