"""Two costs of many choices, each as a dot with a link.

The front is drawn as stairs, and the knee is marked.

Dots are links over the drawing, so that they are reached by keyboard and by touch. Leaves out: choices without a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.report.figures.axes import SPAN, even_ticks, log_ticks, plot
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["FrontDot", "FrontLimit", "front_chart"]

_ROOM: Final = 0.07  # chosen: of the span on each side, so that dots and their names do not lie on the ends of an axis
_APART: Final = (110.0, 55.0)  # chosen: thousandths of the chart between two names, across and down
_NARROW: Final = 170.0  # chosen: thousandths; a name further left has no room left of its dot


@dataclass(frozen=True, kw_only=True, slots=True)
class FrontDot:
    """A choice.

    Attributes
    ----------
    name, words : what it is called, and what it is
    x, y : its two costs; the second is a time in ps
    anchor : id of the element that describes it
    is_front, is_knee : whether no other beats it, and whether it is the one to take
    """

    name: str
    words: str
    x: float
    y: float
    anchor: str
    is_front: bool = False
    is_knee: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class FrontLimit:
    """The limit along the axis, and its words."""

    at: float
    words: str


def front_chart(
    names: tuple[str, str],
    dots: Sequence[FrontDot],
    *,
    words: Callable[[float], str],
    short: Callable[[float], str],
    limit: FrontLimit | None = None,
    height_px: int = 380,
) -> str:
    """Draw the dots over a linear axis and up a logarithmic axis.

    Neither axis begins at zero.

    Parameters
    ----------
    names : of the axes, the one along first
    dots : choices, one at least
    words, short : of a cost along the axis, for a reader and at a tick
    limit : where the axis has one
    height_px : of the chart
    """
    low_x, high_x = _ends([one.x for one in dots] + ([] if limit is None else [limit.at]))
    low_y, high_y = (math.exp(end) for end in _ends([math.log(one.y) for one in dots]))

    def place(one: FrontDot) -> tuple[float, float]:
        down = 1 - math.log(one.y / low_y) / math.log(high_y / low_y)
        return SPAN * (one.x - low_x) / (high_x - low_x), SPAN * down

    ordered = sorted(dots, key=lambda one: (one.is_knee, one.is_front, -one.x))  # those that count lie on top
    places = {one.name: place(one) for one in ordered}
    tip = {
        "x": [round(places[one.name][0], 1) for one in ordered],
        "y": [round(places[one.name][1], 1) for one in ordered],
        "t": [typeset(f"{one.name}: {one.words}") for one in ordered],
        "s": [
            [names[1], "c1", [typeset(amount(one.y, "ps")) for one in ordered]],
            [names[0], "c3", [typeset(words(one.x)) for one in ordered]],
        ],
    }
    drawing = f'<path class="s c1" d="{_stairs(ordered, places)}"/>'
    over = "".join(_spot(one, places[one.name], f"{words(one.x)}, {amount(one.y, 'ps')}") for one in ordered)
    over += "".join(_label(one, *places[one.name]) for one in _named(ordered, places))
    if limit is not None:
        at = SPAN * (limit.at - low_x) / (high_x - low_x)
        drawing += f'<path class="moment" d="M{at:.1f} 0V{SPAN}"/>'
        over += f'<span class="moment" style="right:{100 - at / 10:.2f}%;top:0">{escape(typeset(limit.words))}</span>'
    chart = plot(
        drawing,
        label=f"{names[1]} against {names[0]} of {plural(len(dots), 'choice')}",
        x_ticks=even_ticks(low_x, high_x, lambda values: [short(value) for value in values], most=9),
        y_ticks=log_ticks(low_y, high_y, "ps"),
        height_px=height_px,
        over=over,
        tip=tip,
        kind="front",
    )
    return _legend(dots) + chart


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Ends of an axis, with room on both sides."""
    low, high = min(values), max(values)
    room = _ROOM * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def _stairs(dots: Sequence[FrontDot], places: dict[str, tuple[float, float]]) -> str:
    """SVG path of the least time at each cost."""
    path, lowest = "", -1.0
    for x, y in sorted(places[one.name] for one in dots):
        if y > lowest:  # downwards is less time
            path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f} 0V{y:.1f}"
            lowest = y
    return f"{path}H{SPAN}"


def _spot(one: FrontDot, at: tuple[float, float], costs: str) -> str:
    kind = "spot knee" if one.is_knee else "spot best" if one.is_front else "spot"
    told = typeset(f"{one.name}: {one.words}; {costs}")
    return (
        f'<a class="{kind}" href="#{escape(one.anchor, quote=True)}" aria-label="{escape(told, quote=True)}"'
        f' style="left:{at[0] / 10:.2f}%;top:{at[1] / 10:.2f}%"></a>'
    )


def _named(dots: Sequence[FrontDot], places: dict[str, tuple[float, float]]) -> list[FrontDot]:
    """Dots of the front whose names have room, the knee first."""
    found: list[FrontDot] = []
    best = [one for one in dots if one.is_front or one.is_knee]
    for one in sorted(best, key=lambda it: (not it.is_knee, it.y)):
        x, y = places[one.name]
        taken = (places[other.name] for other in found)
        if all(abs(x - other_x) > _APART[0] or abs(y - other_y) > _APART[1] for other_x, other_y in taken):
            found.append(one)
    return found


def _label(one: FrontDot, x: float, y: float) -> str:
    """The name of a dot, below and left of it.

    No fabric lies there. At the left end it is above and right of the dot.
    """
    below = x > _NARROW
    side = f"right:{100 - x / 10:.2f}%" if below else f"left:{x / 10:.2f}%"
    kind = "spotted" + (" below" if below else "") + (" winner" if one.is_knee else "")
    return f'<span class="{kind}" style="{side};top:{y / 10:.2f}%">{escape(one.name)}</span>'


def _legend(dots: Sequence[FrontDot]) -> str:
    entries = [("the knee", "spot knee"), ("on the front of money, power and time", "spot best"), ("beaten", "spot")]
    used = {
        "spot knee": any(one.is_knee for one in dots),
        "spot best": any(one.is_front and not one.is_knee for one in dots),
        "spot": any(not one.is_front for one in dots),
    }
    items = "".join(f'<span><i class="{kind}"></i>{escape(name)}</span>' for name, kind in entries if used[kind])
    return f'<div class="legend">{items}</div>'
