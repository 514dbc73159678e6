"""Distributions of completion times and slowdowns.

A curve is the share of the flows that completed within a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from weftwork.report.figures.axes import DASHES, SPAN, Tick, figure, legend, line, log_ticks, plot
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["distribution"]

_MOST_POINTS = 400  # chosen: more than a screen can show
_MARKS = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
_MOST_WORDED = 2  # chosen: of more lines a table below has the percentiles
_PLOT_PX = 240
_ROW_PX = 18  # of words above the plot
_NARROWEST_PX = 260  # of a plot, on a screen of 390 pixels
_CHARACTER_PX = 8.0  # chosen: of the widest fonts that the style names, bold digits of 12.5 px have less
_FRAME_PX = 30.0  # of words: the bar in front of them, the space at both sides, and the wide m of ms


def distribution(title: str, samples: Sequence[tuple[str, NDArray[Any]]], unit: str, *, note: str = "") -> str:
    """Cumulative distributions on one logarithmic axis with their percentiles.

    Words above the plot tell the percentiles of one or two lines, and a table below those of more.

    Parameters
    ----------
    title : of the figure
    samples : name and values of every line, above 0; at most six
    unit : of the values
    """
    kept = [(name, np.sort(values[values > 0].astype(np.float64))) for name, values in samples]
    kept = [(name, values) for name, values in kept if len(values)]
    if not kept:
        return ""
    low, high = min(float(values[0]) for _, values in kept), max(float(values[-1]) for _, values in kept)
    low, high = (low / 1.12, high * 1.12) if high < low * 1.05 else (low / 1.03, high * 1.03)
    marks = _marks(kept, low, high, unit) if len(kept) <= _MOST_WORDED else []
    height_px = _PLOT_PX + _ROW_PX * (1 + max((mark.row for mark in marks), default=-1))
    scale = _PLOT_PX / height_px  # of the plot below the words
    drawing, told = [], []
    places = np.linspace(0.0, 1.0, 161)
    for number, (name, values) in enumerate(kept):
        shares = np.linspace(0.0, 1.0, min(len(values), _MOST_POINTS - 1) + 1)
        rank = np.ceil(shares * len(values)).astype(np.int64) - 1
        at = _along(values[np.maximum(rank, 0)], low, high)
        # a flow is done at its time, not a little before: right along the old share, then up
        x, y = np.repeat(at, 2)[1:], np.repeat(shares, 2)[:-1]
        x = np.concatenate([[at[0]], x, [1.0]])
        y = np.concatenate([[0.0], y, [1.0]])
        drawing.append(f'<path class="s c{number + 1}" stroke-dasharray="{DASHES[number]}" d="{line(x, y * scale)}"/>')
        for _, share in _MARKS:
            place = float(_along(float(np.quantile(values, share)), low, high))
            drawing.append(_dot(place, share * scale, number + 1))
        done = np.searchsorted(values, low * (high / low) ** places, side="right") / len(values)
        told.append([name, f"c{number + 1}", [typeset(amount(share, "share")) for share in done.tolist()]])
    tip = {
        "x": [round(SPAN * place) for place in places.tolist()],
        "t": ["within " + typeset(amount(low * (high / low) ** place, unit)) for place in places.tolist()],
        "s": told,
    }
    label = f"{title}: " + "; ".join(
        f"{name}: " + ", ".join(f"{mark} {amount(float(np.quantile(values, share)), unit)}" for mark, share in _MARKS)
        for name, values in kept
    )
    shares_axis = [Tick(at=share * scale, text=typeset(amount(share, "share"))) for share in (0, 0.25, 0.5, 0.75, 1.0)]
    stems = "".join(_stem(mark, scale, height_px) for mark in marks)
    chart = plot(
        stems + "".join(drawing),
        label=label,
        x_ticks=log_ticks(low, high, unit),
        y_ticks=shares_axis,
        height_px=height_px,
        over="".join(map(_words, marks)),
        tip=tip,
    )
    entries = [(name, f"c{number + 1}", DASHES[number]) for number, (name, _) in enumerate(kept)]
    known = "" if marks else _table(kept, unit)
    return figure(title, (legend(entries) if len(kept) > 1 else "") + chart + known, note=note)


def _along(values: Any, low: float, high: float) -> NDArray[np.float64]:  # noqa: ANN401 - a number or an array
    return np.asarray(np.log(np.asarray(values) / low) / np.log(high / low))


def _dot(x: float, y: float, colour: int) -> str:
    return f'<path class="dot c{colour}" d="M{SPAN * x:.1f} {SPAN * (1 - y):.1f}h.01"/>'


@dataclass(frozen=True, kw_only=True, slots=True)
class _Mark:
    """Words of a percentile above the plot, at the upper end of a stem.

    Attributes
    ----------
    text, colour : words, and number of the line from 1
    at, share : place of the percentile along the axis and its height, from 0 to 1
    row : rows above the plot, from 0
    """

    text: str
    colour: int
    at: float
    share: float
    row: int = 0

    @property
    def is_left(self) -> bool:
        """Whether the words are left of the stem, where there is more room."""
        return self.at >= 0.5

    def extent_px(self, width_px: float) -> tuple[float, float]:
        """Left and right end of the words in a plot.

        The plot has a width, no narrower than on a screen.
        """
        own = _CHARACTER_PX * len(self.text) + _FRAME_PX
        stem = self.at * width_px
        return (stem - own, stem) if self.is_left else (stem, stem + own)


def _marks(kept: Sequence[tuple[str, NDArray[np.float64]]], low: float, high: float, unit: str) -> list[_Mark]:
    """The percentiles of all lines, each in a free row.

    In its row it covers neither words nor stems of others.

    Two that are apart in the narrowest plot are apart in a wider one too: ends of words move with their stems.
    """
    found = []
    for number, (_, values) in enumerate(kept):
        for name, share in _MARKS:
            value = float(np.quantile(values, share))
            at = float(_along(value, low, high))
            found.append(_Mark(text=f"{name} {amount(value, unit)}", colour=number + 1, at=at, share=share))
    placed: list[_Mark] = []
    for mark in sorted(found, key=lambda one: (abs(one.at - 0.5), one.share)):  # outer stems pass inner words
        rows = range(1 + max((one.row for one in placed), default=-1))
        tried = (replace(mark, row=row) for row in rows)
        placed.append(next((one for one in tried if _is_free(one, placed)), replace(mark, row=len(rows))))
    return placed


def _is_free(mark: _Mark, placed: Sequence[_Mark]) -> bool:
    left, right = mark.extent_px(_NARROWEST_PX)
    for other in placed:
        first, last = other.extent_px(_NARROWEST_PX)
        if other.row == mark.row and first < right and left < last:
            return False
        upper, (begin, end) = (other, (left, right)) if other.row > mark.row else (mark, (first, last))
        if other.row != mark.row and begin < upper.at * _NARROWEST_PX < end:
            return False
    return True


def _stem(mark: _Mark, scale: float, height_px: int) -> str:
    top = height_px - _PLOT_PX - _ROW_PX * (mark.row + 1)
    start = f"{SPAN * mark.at:.1f} {SPAN * (1 - mark.share * scale):.1f}"
    return f'<path class="stem c{mark.colour}" d="M{start}V{SPAN * top / height_px:.1f}"/>'


def _words(mark: _Mark) -> str:
    side = f"right:{100 * (1 - mark.at):.2f}%" if mark.is_left else f"left:{100 * mark.at:.2f}%"
    bottom = _PLOT_PX + _ROW_PX * mark.row
    return f'<span class="mark c{mark.colour}" style="{side};bottom:{bottom}px">{escape(typeset(mark.text))}</span>'


def _table(kept: Sequence[tuple[str, NDArray[np.float64]]], unit: str) -> str:
    head = "".join(f"<th>{name}</th>" for name, _ in _MARKS)
    rows = "".join(
        f"<tr><td>{escape(name)}</td>"
        + "".join(f"<td>{escape(typeset(amount(float(np.quantile(values, at)), unit)))}</td>" for _, at in _MARKS)
        + "</tr>"
        for name, values in kept
    )
    return f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
