"""How completion times and slowdowns are distributed: what share of the flows was done within which time."""

from __future__ import annotations

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
_MARKS = (("p50", 0.5), ("p99", 0.99))
_MOST_WORDED = 2  # chosen: the words of more lines would cover them


def distribution(title: str, samples: Sequence[tuple[str, NDArray[Any]]], unit: str, *, note: str = "") -> str:
    """Cumulative distributions on one logarithmic axis, with their p50 and p99, in words where there are one or two.

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
    drawing, over, told = [], [], []
    places = np.linspace(0.0, 1.0, 161)
    for number, (name, values) in enumerate(kept):
        shares = np.linspace(0.0, 1.0, min(len(values), _MOST_POINTS - 1) + 1)
        rank = np.ceil(shares * len(values)).astype(np.int64) - 1
        at = _along(values[np.maximum(rank, 0)], low, high)
        # a flow is done at its time, not a little before: right along the old share, then up
        x, y = np.repeat(at, 2)[1:], np.repeat(shares, 2)[:-1]
        x = np.concatenate([[at[0]], x, [1.0]])
        y = np.concatenate([[0.0], y, [1.0]])
        drawing.append(f'<path class="s c{number + 1}" stroke-dasharray="{DASHES[number]}" d="{line(x, y)}"/>')
        for label, share in _MARKS:
            value = float(np.quantile(values, share))
            place = float(_along(value, low, high))
            drawing.append(_dot(place, share, number + 1))
            if len(kept) > _MOST_WORDED:
                continue
            drawing.append(
                f'<path class="stem c{number + 1}" d="M{SPAN * place:.1f} {SPAN}V{SPAN * (1 - share):.1f}"/>'
            )
            row = number * len(_MARKS) + (share > 0.5)
            over.append(_mark(f"{label} {amount(value, unit)}", place, row, number + 1))
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
    shares_axis = [Tick(at=share, text=typeset(amount(share, "share"))) for share in (0, 0.25, 0.5, 0.75, 1.0)]
    chart = plot(
        "".join(drawing),
        label=label,
        x_ticks=log_ticks(low, high, unit),
        y_ticks=shares_axis,
        height_px=240,
        over="".join(over),
        tip=tip,
    )
    entries = [(name, f"c{number + 1}", DASHES[number]) for number, (name, _) in enumerate(kept)]
    return figure(title, (legend(entries) if len(kept) > 1 else "") + chart, note=note)


def _along(values: Any, low: float, high: float) -> NDArray[np.float64]:  # noqa: ANN401 - a number or an array
    return np.asarray(np.log(np.asarray(values) / low) / np.log(high / low))


def _dot(x: float, y: float, colour: int) -> str:
    return f'<path class="dot c{colour}" d="M{SPAN * x:.1f} {SPAN * (1 - y):.1f}h.01"/>'


def _mark(text: str, at: float, row: int, colour: int) -> str:
    """Words at the foot of a line: right of it, where the curve does not come, else left; each in a row of its own."""
    side = f"right:{100 * (1 - at):.2f}%" if at > 0.72 else f"left:{100 * at:.2f}%"
    return f'<span class="mark c{colour}" style="{side};bottom:{6 + 20 * row}px">{escape(typeset(text))}</span>'
