"""A quantity by message size, as lines on two logarithmic axes.

Measured values have solid dots; a cited line is dashed and has no dots of its own machine.
Leaves out: intervals; the tables of the page have the spread of the rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.report.figures.axes import DASHES, SPAN, Tick, figure, legend, line, log_ticks, plot
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SizeLine", "by_size", "size_words"]

_ROOM: Final = 1.25  # chosen: times the largest value, so that no dot lies on the end of an axis
_STEPS: Final = ((1 << 20, "MiB"), (1 << 10, "KiB"))


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeLine:
    """A line: its name, values by size in bytes, and whether they are cited."""

    name: str
    values: dict[int, float]
    is_cited: bool = False


def size_words(size_bytes: int) -> str:
    """Write a message size in powers of two.

    Examples
    --------
    >>> size_words(64), size_words(4096), size_words(1 << 20)
    ('64 B', '4 KiB', '1 MiB')
    """
    return next(
        (f"{size_bytes // factor} {name}" for factor, name in _STEPS if size_bytes % factor == 0), f"{size_bytes} B"
    )


def by_size(title: str, lines: Sequence[SizeLine], unit: str, *, aside: str = "", note: str = "") -> str:
    """Draw lines over the sizes of the measured lines.

    Parameters
    ----------
    title : of the figure
    lines : at most six, with one measured line at least; values above 0
    unit : of the values
    aside : small words behind the title
    note : small letters below
    """
    sizes = sorted({size for one in lines if not one.is_cited for size in one.values})
    span = math.log(sizes[-1] / sizes[0]) or 1.0
    kept = [
        SizeLine(
            name=one.name,
            values={size: value for size, value in sorted(one.values.items()) if sizes[0] <= size <= sizes[-1]},
            is_cited=one.is_cited,
        )
        for one in lines
    ]
    values = [value for one in kept for value in one.values.values()]
    low, high = min(values) / _ROOM, max(values) * _ROOM
    drawing = []
    for number, one in enumerate(kept):
        x = np.array([math.log(size / sizes[0]) / span for size in one.values])
        y = np.array([math.log(value / low) / math.log(high / low) for value in one.values.values()])
        colour = f"c{number + 1}"
        drawing.append(f'<path class="s {colour}" stroke-dasharray="{DASHES[number]}" d="{line(x, y)}"/>')
        if not one.is_cited:
            dots = "".join(f"M{SPAN * a:.1f} {SPAN * (1 - b):.1f}h.01" for a, b in zip(x, y, strict=True))
            drawing.append(f'<path class="dot {colour}" d="{dots}"/>')
    tip = {
        "x": [round(SPAN * math.log(size / sizes[0]) / span) for size in sizes],
        "t": [size_words(size) for size in sizes],
        "s": [
            [
                one.name,
                f"c{number + 1}",
                [typeset(amount(one.values[size], unit)) if size in one.values else "-" for size in sizes],
            ]
            for number, one in enumerate(kept)
        ],
    }
    told = "; ".join(
        f"{one.name}: {', '.join(f'{size_words(size)} {amount(value, unit)}' for size, value in one.values.items())}"
        for one in kept
        if not one.is_cited
    )
    chart = plot(
        "".join(drawing),
        label=f"{title}. {told}",
        x_ticks=[
            Tick(at=math.log(size / sizes[0]) / span, text=size_words(size), is_extra=len(sizes) > 4 and place % 2 == 1)
            for place, size in enumerate(sizes)
        ],
        y_ticks=log_ticks(low, high, unit),
        height_px=260,
        tip=tip,
    )
    entries = [(one.name, f"c{number + 1}", DASHES[number]) for number, one in enumerate(kept)]
    return figure(title, legend(entries) + chart, aside=aside, note=note)
