"""Quantities over time as lines on one axis, or as strips."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from weftwork.report.figures.axes import DASHES, SPAN, area, legend, plot, stairs, ticks
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.report.figures.axes import Tick

__all__ = ["Curve", "Moment", "curves", "mark_moments", "time_ticks"]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A quantity over time.

    Attributes
    ----------
    name : for the legend
    values : shape (bins,)
    is_area : filled down to the axis
    """

    name: str
    values: NDArray[Any]
    is_area: bool = False


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Something that happened at one instant, such as a fault.

    Attributes
    ----------
    at : from 0 to 1
    text : beside it; may be empty
    is_culprit : whether it is to blame
    until : to where it is shaded, from 0 to 1; None where it is not
    """

    at: float
    text: str
    is_culprit: bool = False
    until: float | None = None


def time_ticks(end_ps: int) -> list[Tick]:
    """Ticks of an axis of time from 0."""
    return ticks(end_ps, "ps")


def curves(
    title: str,
    found: Sequence[Curve],
    *,
    edges_ps: NDArray[np.int64],
    unit: str,
    high: float | None = None,
    height_px: int = 200,
    moments: Sequence[Moment] = (),
    first_colour: int = 1,
) -> str:
    """Lines over time on one axis.

    Several lines have a legend.

    Parameters
    ----------
    title : what is to be seen; it is not printed
    found : at most six
    edges_ps : shape (bins + 1,)
    unit : of the values
    high : upper end of the axis; by default a little above the largest value
    """
    end_ps = int(edges_ps[-1])
    edges = edges_ps / end_ps
    top = high or max(max(float(np.max(curve.values, initial=0)) for curve in found) * 1.06, 1e-9)
    drawing = []
    for number, curve in enumerate(found):
        colour, dash = f"c{first_colour + number}", DASHES[number]
        shares = np.clip(curve.values / top, 0, 1)
        if curve.is_area:
            drawing.append(f'<path class="a {colour}" d="{area(edges, shares)}"/>')
        drawing.append(f'<path class="s {colour}" stroke-dasharray="{dash}" d="{stairs(edges, shares)}"/>')
    middles = (edges_ps[1:] + edges_ps[:-1]) / 2
    tip = {
        "x": [round(SPAN * place / end_ps) for place in middles.tolist()],
        "t": [f"until {typeset(amount(edge, 'ps'))}" for edge in edges_ps[1:].tolist()],
        "s": [
            [curve.name, f"c{first_colour + number}", [typeset(amount(v, unit)) for v in curve.values.tolist()]]
            for number, curve in enumerate(found)
        ],
    }
    peaks = "; ".join(f"{c.name}: at most {amount(float(np.max(c.values, initial=0)), unit)}" for c in found)
    bands, lines, words = mark_moments(moments)
    chart = plot(
        bands + "".join(drawing) + lines,
        label=f"{title}. {peaks}",
        x_ticks=time_ticks(end_ps),
        y_ticks=ticks(top, unit, most=max(2, min(5, height_px // 40))),
        height_px=height_px,
        over=words,
        tip=tip,
    )
    if len(found) == 1:
        return chart
    return legend([(c.name, f"c{first_colour + n}", DASHES[n]) for n, c in enumerate(found)]) + chart


def mark_moments(moments: Sequence[Moment]) -> tuple[str, str, str]:
    """Bands below the curves, lines above them, and the words."""
    kinds = ["moment culprit" if moment.is_culprit else "moment" for moment in moments]
    lines = "".join(
        f'<path class="{kind}" d="M{SPAN * moment.at:.1f} 0V{SPAN}"/>'
        for kind, moment in zip(kinds, moments, strict=True)
    )
    words = "".join(
        f'<span class="{kinds[number]}" style="{_side(moment.at)};top:{14 * (number % 3)}px" '
        f'title="{escape(moment.text)}">{escape(moment.text)}</span>'
        for number, moment in enumerate(moments)
        if moment.text
    )
    bands = "".join(
        f'<path class="band" d="M{SPAN * moment.at:.1f} 0H{SPAN * moment.until:.1f}V{SPAN}H{SPAN * moment.at:.1f}Z"/>'
        for moment in moments
        if moment.until is not None
    )
    return bands, lines, words


def _side(at: float) -> str:
    """The side of a line with more room for its words, which end where the chart ends."""
    if at < 0.5:
        return f"left:{100 * at:.2f}%;max-width:{100 * (1 - at):.2f}%"
    return f"right:{100 * (1 - at):.2f}%;max-width:{100 * at:.2f}%"
