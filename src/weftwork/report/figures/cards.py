"""Stand-alone figures as small SVG text: bars with intervals, and lines.

They have a light and a dark form.

Colours are those of Okabe and Ito (jfly.uni-koeln.de/color), which the colour-blind tell apart; every bar has its name
beside it and lines differ in their dashes too. The elements have the light colours, for programs that know no style
sheets; rules of the file replace them where the reader prefers a dark page.
Leaves out: everything interactive; `weftwork report` writes pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

__all__ = ["DARK_STYLE", "Bar", "Polyline", "bars", "lines"]

BLUE, ORANGE, GREEN, VERMILION, PINK, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
DASHES = ("none", "none", "8 4", "2 3", "12 4 2 4", "5 5")
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PINK, SKY)
CARD, INK, QUIET, GRID = "#FCFCFA", "#1B1B1F", "#55555C", "#DCDCD8"
# Each light colour -> the colour of the same thing on a dark page; those of series are the dark ones of `colours.py`.
_DARK: Final = {
    CARD: "#161B22", INK: "#E7EBF0", QUIET: "#9AA6B4", GRID: "#2B333E",
    BLUE: "#2B8FD6", SKY: "#7CC7F2", GREEN: "#19B58A", VERMILION: "#E0701C", PINK: "#D68FB7",
}  # fmt: skip
DARK_STYLE: Final = (
    "<style>@media (prefers-color-scheme:dark){"
    + "".join(f'[{name}="{old}"]{{{name}:{new}}}' for old, new in _DARK.items() for name in ("fill", "stroke"))
    + "}</style>"
)
WIDTH, MARGIN, ROW = 760, 24, 34
FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """A bar: name, length, text at its end, and optional interval."""

    name: str
    value: float
    text: str
    low: float | None = None
    high: float | None = None
    colour: str = BLUE


@dataclass(frozen=True, kw_only=True, slots=True)
class Polyline:
    """A line: its name and its points (x, y), in order of x."""

    name: str
    points: tuple[tuple[float, float], ...]


def bars(title: str, rows: Sequence[Bar], *, axis: str, bound: tuple[float, str] | None = None) -> str:
    """Horizontal bars from 0, as SVG text.

    Parameters
    ----------
    title : one line above
    rows : from top to bottom
    axis : what the length is, with its unit
    bound : a value that gets a dashed line, and what it is
    """
    left = MARGIN + 8 + max(_width(row.name, 14) for row in rows)
    room = WIDTH - MARGIN - left - 8 - max(_width(row.text, 14) for row in rows)
    longest = max(max(row.value, row.high or 0.0) for row in rows)
    scale = room / longest
    top = 66 if bound is None else 84
    height = top + ROW * len(rows) + 40
    parts = _head(title, height)
    if bound is not None:
        place = left + bound[0] * scale
        side = "start" if place < WIDTH / 2 else "end"
        parts.append(_text(place, top - 12, bound[1], size=12, fill=QUIET, anchor=side))
    for index, row in enumerate(rows):
        middle = top + ROW * index + ROW / 2
        end = left + row.value * scale
        parts.append(_text(left - 8, middle + 5, row.name, anchor="end"))
        parts.append(
            f'<rect x="{left:.1f}" y="{middle - 10:.1f}" width="{max(row.value * scale, 1):.1f}" height="20" rx="2"'
            f' fill="{row.colour}"/>'
        )
        if row.low is not None and row.high is not None:
            low, high = left + row.low * scale, left + row.high * scale
            ends = "".join(f"M{x:.1f} {middle - 5:.1f}v10" for x in (low, high))
            path = f"M{low:.1f} {middle:.1f}H{high:.1f}{ends}"
            parts.append(f'<path d="{path}" stroke="{INK}" stroke-width="1.5" fill="none"/>')
            end = max(end, high)
        parts.append(_text(end + 8, middle + 5, row.text, weight=600))
    if bound is not None:
        path = f"M{place:.1f} {top - 6:.1f}V{top + ROW * len(rows):.1f}"
        parts.append(f'<path d="{path}" stroke="{INK}" stroke-dasharray="4 3" fill="none"/>')
    parts.append(f'<path d="M{left:.1f} {top}V{top + ROW * len(rows)}" stroke="{QUIET}" fill="none"/>')
    parts.append(_text(left, height - 16, axis, size=12, fill=QUIET))
    return "\n".join([*parts, "</svg>\n"])


def lines(
    title: str,
    rows: Sequence[Polyline],
    *,
    x_axis: str,
    y_axis: str,
    x_ticks: Sequence[tuple[float, str]],
    is_log: bool = True,
    has_dots: bool = True,
    bound: tuple[float, str] | None = None,
) -> str:
    """Lines with a dot for each point, as SVG text.

    The y axis starts at 0.

    Parameters
    ----------
    title : one line above
    rows : each is named in a legend to the right, from top to bottom
    x_axis, y_axis : what they are, with units
    x_ticks : places and their words
    is_log : x is logarithmic
    has_dots : every point has a dot
    bound : a value of y that gets a dashed line, and what it is
    """
    top, height = 92, 400
    left, right = MARGIN + 44, WIDTH - MARGIN - 52 - max(_width(row.name, 13) for row in rows)
    bottom = height - 62
    most = _round_up(max([y for row in rows for _, y in row.points] + ([bound[0]] if bound else [])))
    ends = [x for x, _ in x_ticks]

    def x_of(x: float) -> float:
        if is_log:
            return left + (right - left) * math.log(x / ends[0]) / math.log(ends[-1] / ends[0])
        return left + (right - left) * (x - ends[0]) / (ends[-1] - ends[0])

    def y_of(y: float) -> float:
        return bottom - (bottom - top) * y / most

    parts = _head(title, height)
    parts.append(_text(MARGIN, 66, y_axis, size=12, fill=QUIET))
    for step in range(5):
        y = most * step / 4
        parts.append(f'<path d="M{left} {y_of(y):.1f}H{right:.1f}" stroke="{GRID}" fill="none"/>')
        parts.append(_text(left - 8, y_of(y) + 4, f"{y:g}", size=12, fill=QUIET, anchor="end"))
    for x, word in x_ticks:
        parts.append(_text(x_of(x), bottom + 20, word, size=12, fill=QUIET, anchor="middle"))
    parts.append(_text((left + right) / 2, height - 18, x_axis, size=12, fill=QUIET, anchor="middle"))
    if bound is not None:
        parts.append(
            f'<path d="M{left} {y_of(bound[0]):.1f}H{right:.1f}" stroke="{INK}" stroke-dasharray="4 3" fill="none"/>'
        )
        parts.append(_text(left + 6, y_of(bound[0]) - 6, bound[1], size=12, fill=QUIET))
    for index, (row, colour, dashes) in enumerate(zip(rows, COLOURS, DASHES, strict=False)):
        path = " ".join(f"{'L' if i else 'M'}{x_of(x):.1f} {y_of(y):.1f}" for i, (x, y) in enumerate(row.points))
        stroke = f'stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dashes}" fill="none"'
        parts.append(f'<path d="{path}" {stroke}/>')
        if has_dots:
            parts += [f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="3.5" fill="{colour}"/>' for x, y in row.points]
        place = top + 10 + 24 * index
        parts.append(f'<path d="M{right + 18:.1f} {place}h26" {stroke}/>')
        parts.append(_text(right + 52, place + 4, row.name, size=13))
    return "\n".join([*parts, "</svg>\n"])


def _head(title: str, height: float) -> list[str]:
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{escape(FONT)}">',
        f"<title>{escape(title)}</title>",
        DARK_STYLE,
        f'<rect width="{WIDTH}" height="{height:.0f}" rx="8" fill="{CARD}" stroke="{GRID}"/>',
        _text(MARGIN, 36, title, size=17, weight=600),
    ]


def _text(
    x: float, y: float, text: str, *, size: int = 14, fill: str = INK, anchor: str = "start", weight: int = 400
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )


def _width(text: str, size: int) -> float:
    """A generous estimate of the width of a text.

    SVG does not report it.
    """
    return 0.56 * size * len(text)


def _round_up(value: float) -> float:
    """The next number at or above a value that divides well by four."""
    step = 10.0 ** math.floor(math.log10(value))
    return next(step * factor for factor in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 4.8, 6, 8, 10) if step * factor >= value)
