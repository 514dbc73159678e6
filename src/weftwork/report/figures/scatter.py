"""Two results of many choices, every choice as a dot.

The choices that none beats in both results are drawn as stairs, and the best are marked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.report.figures.axes import SPAN, legend, log_ticks, plot, ticks
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ScatterDot", "highest_shown", "scatter"]

_ROOM: Final = 1.05  # chosen: times the largest value at which an axis ends, so that no dot lies on its end
_SPREAD: Final = (2.0, 8.0)  # chosen: times the least value that the axis shows at the least and at the most
_BELOW: Final = 0.1  # chosen: of the axis, room for the name of the best below its dot


@dataclass(frozen=True, kw_only=True, slots=True)
class ScatterDot:
    """A dot: two results, its name, and the source of ``y``."""

    x: float
    y: float
    name: str
    note: str = ""


def highest_shown(front: Sequence[ScatterDot], best: Sequence[ScatterDot]) -> float:
    """Largest ``y`` that `scatter` shows: the slowest of the front, within limits."""
    least, most = (times * min(one.y for one in (*front, *best)) for times in _SPREAD)
    return min(max(least, *(one.y for one in front)), most)


def scatter(
    names: tuple[str, str],
    units: tuple[str, str],
    *,
    cloud: Sequence[ScatterDot],
    front: Sequence[ScatterDot],
    best: Sequence[ScatterDot],
    limit: tuple[float, str],
) -> str:
    """Draw dots over a linear axis and up a logarithmic axis.

    Dots above `highest_shown` are left out.

    Parameters
    ----------
    names, units : of the axes, the one along first
    cloud : all choices
    front : those that none beats in both results, in the order of ``y``; one at least
    best : those that are marked, the best first; one at least
    limit : of ``x``, and what it is called
    """
    most, least = highest_shown(front, best), min(one.y for one in (*front, *best))
    high = most * _ROOM
    low = least / (high / least) ** (_BELOW / (1 - _BELOW))
    width = max(limit[0], *(one.x for one in best)) * _ROOM

    def place(one: ScatterDot) -> tuple[float, float]:
        return SPAN * one.x / width, SPAN * (1 - math.log(one.y / low) / math.log(high / low))

    best, front, shown = ([one for one in those if one.y <= most] for those in (best, front, cloud))
    dots = [*best, *front, *shown]
    places = [place(one) for one in dots]
    tip = {
        "x": [round(x, 1) for x, _ in places],
        "y": [round(y, 1) for _, y in places],
        "t": [one.name for one in dots],
        "s": [
            [names[1], "c1", [typeset(f"{amount(one.y, units[1])} {one.note}".strip()) for one in dots]],
            [names[0], "c3", [typeset(amount(one.x, units[0])) for one in dots]],
        ],
    }
    of_best, of_shown = places[: len(best)], places[len(best) + len(front) :]
    at = SPAN * limit[0] / width
    drawing = [
        f'<path class="dot cloud" d="{_dots(of_shown)}"/>' if shown else "",
        f'<path class="s c1" d="{_stairs([place(one) for one in front], at)}"/>',
        f'<path class="moment" d="M{at:.1f} 0V{SPAN}"/>',
        f'<path class="dot halo-dot" d="{_dots(of_best)}"/><path class="dot c2" d="{_dots(of_best)}"/>',
    ]
    first_x, first_y = of_best[0]
    words = (
        f'<span class="moment" style="right:{100 - at / 10:.2f}%;top:0">{escape(typeset(limit[1]))}</span>'
        f'<span class="moment winner" style="right:{100 - first_x / 10:.2f}%;top:{first_y / 10:.2f}%">'
        f"{escape(best[0].name)}</span>"
    )
    chart = plot(
        "".join(drawing),
        label=f"{names[1]} against {names[0]} of {plural(len(shown), 'choice')}. Best: {best[0].name}",
        x_ticks=ticks(width, units[0]),
        y_ticks=log_ticks(low, high, units[1]),
        height_px=380,
        over=words,
        tip=tip,
    )
    entries = [("fastest within that much memory", "c1", ""), (f"the {len(best)} best", "c2", "")]
    return legend(entries) + chart


def _dots(places: Sequence[tuple[float, float]]) -> str:
    return "".join(f"M{x:.1f} {y:.1f}h.01" for x, y in places)


def _stairs(places: Sequence[tuple[float, float]], end: float) -> str:
    """SVG path from the top down the front to ``end``.

    It begins above the dot furthest left and goes to each next lower dot.
    """
    steps = sorted(places)
    return f"M{steps[0][0]:.1f} 0" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in steps) + f"H{end:.1f}"
