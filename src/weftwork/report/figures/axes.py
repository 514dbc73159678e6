"""Axes of a chart: scales, ticks, paths, and the frame of HTML around the SVG.

The plot is an SVG that stretches with the page; its words are HTML beside it, so that they keep their size on a phone
and in print. Coordinates in the SVG run from 0 to 1,000 both ways.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

from weftwork.report.words import amounts_apart, typeset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = [
    "DASHES", "SPAN", "Tick", "area", "even_ticks", "figure", "legend", "line", "log_ticks", "plot", "stairs",
    "tick_words", "ticks",
]  # fmt: skip

SPAN: Final = 1000
# by category, so that lines differ without colour
DASHES: Final = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 4", "12 3 2 3 2 3")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tick:
    """A place from 0 to 1 on an axis and its text.

    Attributes
    ----------
    at, text : where, and what stands there
    is_extra : whether it is left out on a phone
    is_culprit : whether it names who is to blame
    """

    at: float
    text: str
    is_extra: bool = False
    is_culprit: bool = False


def ticks(high: float, unit: str, *, most: int = 6) -> list[Tick]:
    """Round numbers from 0 to ``high``.

    Parameters
    ----------
    high : right or upper end of the axis, above 0
    unit : as `weftwork.report.words.amount` takes it
    most : how many steps

    Examples
    --------
    >>> [tick.text for tick in ticks(1.05, "ratio", most=5)]
    ['0', '0.25', '0.5', '0.75', '1']
    """
    step = _round_step(high / most)
    count = math.floor(high / step + 1e-9)
    return [
        Tick(at=step * place / high, text=text, is_extra=count > 3 and place % 2 == 1)
        for place, text in enumerate(tick_words([step * place for place in range(count + 1)], unit))
    ]


def tick_words(values: Sequence[float], unit: str) -> list[str]:
    """Labels of an axis, no two of them alike; a zero without its unit.

    Examples
    --------
    >>> tick_words([0, 17.98e12, 18.02e12], "ps") == ["0", typeset("17.98 s"), typeset("18.02 s")]
    True
    """
    return [
        "0" if value == 0 else typeset(text) for value, text in zip(values, amounts_apart(values, unit), strict=True)
    ]


def _round_step(wanted: float) -> float:
    base = 10.0 ** math.floor(math.log10(wanted))
    return next(base * factor for factor in (1, 2, 2.5, 5, 10) if base * factor >= wanted * (1 - 1e-9))


def log_ticks(low: float, high: float, unit: str) -> list[Tick]:
    """Round numbers between ``low`` and ``high`` on a logarithmic axis.

    Examples
    --------
    >>> [tick.text for tick in log_ticks(0.9, 120, "ratio")]
    ['1', '2', '5', '10', '20', '50', '100']
    """
    decades = math.log10(high / low)
    if decades < 0.7:  # so near to linear that even steps are read more easily
        step = _round_step((high - low) / 5)
        values = [step * place for place in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]
    else:
        factors = (1, 2, 5) if decades < 3 else (1,)
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        values = [factor * 10.0**exponent for exponent in exponents for factor in factors]
    inside = [value for value in values if low <= value <= high]
    return [
        Tick(
            at=math.log10(value / low) / decades,
            text=text,
            is_extra=len(inside) > 4 and place % 2 == 1,
        )
        for place, (value, text) in enumerate(zip(inside, tick_words(inside, unit), strict=True))
    ]


def even_ticks(
    low: float, high: float, words: Callable[[Sequence[float]], Sequence[str]], *, most: int = 6
) -> list[Tick]:
    """Round numbers between ``low`` and ``high`` on a linear axis that does not begin at zero.

    Parameters
    ----------
    low, high : ends of the axis, the second above the first
    words : of the values, such as `tick_words`
    most : how many steps

    Examples
    --------
    >>> [tick.text for tick in even_ticks(52, 131, lambda values: [f"{value:.0f}M" for value in values], most=4)]
    ['60M', '80M', '100M', '120M']
    """
    step = _round_step((high - low) / most)
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    values = [step * place for place in places]
    return [
        Tick(
            at=(value - low) / (high - low),
            text=typeset(text),
            is_extra=len(places) > 4 and place % 2 == 1,
        )
        for place, value, text in zip(places, values, words(values), strict=True)
    ]


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def line(x: NDArray[Any], y: NDArray[Any]) -> str:
    """SVG path through points.

    Parameters
    ----------
    x, y : shape (points,), from 0 to 1, y upwards

    Examples
    --------
    >>> import numpy as np
    >>> line(np.array([0, 0.5]), np.array([0, 1]))
    'M0 1000L500 0'
    """
    points = [f"{_number(SPAN * a)} {_number(SPAN * (1 - b))}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return "M" + "L".join(points)


def stairs(edges: NDArray[Any], y: NDArray[Any]) -> str:
    """SVG path of values that each hold until the next edge.

    Parameters
    ----------
    edges : shape (bins + 1,), from 0 to 1
    y : shape (bins,), from 0 to 1

    Examples
    --------
    >>> import numpy as np
    >>> stairs(np.array([0, 0.5, 1]), np.array([0, 1]))
    'M0 1000H500V0H1000'
    """
    heights = [_number(SPAN * (1 - value)) for value in y.tolist()]
    parts = [f"M{_number(SPAN * float(edges[0]))} {heights[0]}"]
    for place, edge in enumerate(edges[1:].tolist()):
        if place + 1 < len(heights) and heights[place + 1] == heights[place]:
            continue  # the value goes on
        parts.append(f"H{_number(SPAN * edge)}")
        if place + 1 < len(heights):
            parts.append(f"V{heights[place + 1]}")
    return "".join(parts)


def area(edges: NDArray[Any], y: NDArray[Any]) -> str:
    """The path of `stairs`, closed along the axis."""
    return f"{stairs(edges, y)}V{SPAN}H{_number(SPAN * float(edges[0]))}Z"


def plot(
    drawing: str,
    *,
    label: str,
    x_ticks: Sequence[Tick],
    y_ticks: Sequence[Tick],
    height_px: int = 220,
    over: str = "",
    tip: Mapping[str, Any] | None = None,
    kind: str = "",
) -> str:
    """Put axes around a drawing.

    Parameters
    ----------
    drawing : SVG elements in coordinates from 0 to 1,000
    label : what is to be seen, for those who do not see it
    over : HTML that is placed over the drawing, such as labels
    tip : what the script shows where the pointer is: ``x`` places from 0 to 1,000, ``t`` their words, and ``s``, lists
        of a name, a CSS class and the words of the values
    kind : further CSS classes
    """
    grid = "".join(f'<path class="grid" d="M0 {_number(SPAN * (1 - tick.at))}H{SPAN}"/>' for tick in y_ticks)
    told = f" data-tip='{escape(json.dumps(tip, separators=(',', ':')), quote=True)}'" if tip is not None else ""
    left = "".join(
        f'<span{_kind(tick)} style="bottom:{100 * tick.at:.2f}%">{escape(tick.text)}</span>' for tick in y_ticks
    )
    below = "".join(
        f'<span style="left:{100 * tick.at:.2f}%"{_kind(tick)}>{escape(tick.text)}</span>' for tick in x_ticks
    )
    return (
        f'<div class="plot {kind}"><div class="yt" style="height:{height_px}px">{left}</div>'
        f'<div class="pa" style="height:{height_px}px"{told}>'
        f'<svg viewBox="0 0 {SPAN} {SPAN}" preserveAspectRatio="none" role="img" aria-label="{escape(label)}">'
        f'{grid}{drawing}<path class="base" d="M0 {SPAN}H{SPAN}"/></svg>{over}</div>'
        f'<div class="xt">{below}</div></div>'
    )


def _kind(tick: Tick) -> str:
    return ' class="blame"' if tick.is_culprit else ' class="extra"' if tick.is_extra else ""


def legend(entries: Sequence[tuple[str, str, str]]) -> str:
    """Legend with the name, CSS class and dashes of every line."""
    items = "".join(
        f'<span><svg width="26" height="10" aria-hidden="true"><path class="s {colour}" stroke-dasharray="{dash}"'
        f' d="M0 5H26"/></svg>{escape(name)}</span>'
        for name, colour, dash in entries
    )
    return f'<div class="legend">{items}</div>'


def figure(title: str, content: str, *, aside: str = "", note: str = "", anchor: str = "") -> str:
    """Put a heading above a chart.

    Parameters
    ----------
    title : heading; without one there is none
    content : HTML
    aside : small words behind the heading
    note : what a reader has to know, in small letters below
    anchor : to which links of the page lead
    """
    behind = f" <small>{escape(typeset(aside))}</small>" if aside else ""
    head = f"<figcaption>{escape(title)}{behind}</figcaption>" if title else ""
    small = f'<p class="note">{escape(typeset(note))}</p>' if note else ""
    named = f' id="{anchor}"' if anchor else ""
    return f"<figure{named}>{head}{content}{small}</figure>"
