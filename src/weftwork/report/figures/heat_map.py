"""Utilisation of many links over time as a heat map.

It has a row for each link or for similar links, and a column for each bin.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.grammar import plural
from weftwork.report.culprit_marks import TO_BLAME
from weftwork.report.figures.axes import SPAN, Tick, plot
from weftwork.report.figures.lines import time_ticks
from weftwork.report.figures.png import levels, png_url
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["MOST_ROWS", "Rows", "heat_map", "rows_of"]

MOST_ROWS = 200  # chosen: what a page can show; more links share rows
_HEIGHT_PX = 150
_LEAST_ROW_PX = 4  # chosen: an outline around less would hide what it marks


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows of a heat map, the busiest link first.

    Attributes
    ----------
    shares : shape (rows, bins)
    names : of the rows
    links_per_row : 1, or how many share a row, which then shows the largest of them at each time
    row_of : shape (links,), the row of each link
    """

    shares: NDArray[np.float64]
    names: tuple[str, ...]
    links_per_row: int
    row_of: NDArray[np.int64]


def rows_of(shares: NDArray[np.float64], names: Sequence[str], *, most: int = MOST_ROWS) -> Rows:
    """Sort links by use, and share rows if there are too many.

    Parameters
    ----------
    shares : shape (links, bins)
    names : of the links
    """
    order = np.argsort(-shares.mean(axis=1), kind="stable")
    each = -(-len(order) // most)
    starts = np.arange(0, len(order), each)
    merged = np.maximum.reduceat(shares[order], starts, axis=0) if len(order) else shares
    said = []
    for start in starts.tolist():
        members = order[start : start + each].tolist()
        others = f" and {len(members) - 1} more" if len(members) > 1 else ""
        said.append(f"{names[members[0]]}{others}")
    row_of = np.empty(len(order), np.int64)
    row_of[order] = np.arange(len(order)) // max(each, 1)
    return Rows(shares=merged, names=tuple(said), links_per_row=each, row_of=row_of)


def heat_map(
    title: str, rows: Rows, *, edges_ps: NDArray[np.int64], high: float = 1.0, culprits: Sequence[int] = ()
) -> str:
    """Draw the rows as two images of the same numbers.

    One is for light pages, one for dark.

    Parameters
    ----------
    title : for those who do not see it
    rows : of `rows_of`
    edges_ps : shape (bins + 1,)
    high : share at which the colours end
    culprits : rows of links that are to blame, which are outlined and named on the left
    """
    count, bins = rows.shares.shape
    # the last bin may be shorter; the image is as wide as whole bins, and what lies beyond the end is cut off
    width = SPAN * bins * float(edges_ps[1]) / float(edges_ps[-1])
    indices = levels(rows.shares / high)
    images = "".join(
        f'<image class="{theme}" width="{width:.1f}" height="{SPAN}" preserveAspectRatio="none" '
        f'href="{png_url(indices, theme)}"/>'
        for theme in ("light", "dark")
    )
    height_px = int(np.clip(count * 6, 24, _HEIGHT_PX))
    busiest = float(rows.shares.max(initial=0))
    data = escape(json.dumps(rows.names, separators=(",", ":")), quote=True)
    numbers = base64.b64encode(indices.tobytes()).decode()
    runs = _runs(culprits)
    outlines = "".join(
        _outline(first, end, count, height_px) for first, end in runs if height_px / count >= _LEAST_ROW_PX
    )
    blamed = f"; {TO_BLAME}: {', '.join(rows.names[row] for row in sorted(culprits))}" if culprits else ""
    return plot(
        images + outlines,
        label=f"{title}: {plural(count, 'row')}, the busiest first; largest share {amount(busiest, 'share')}{blamed}",
        x_ticks=time_ticks(int(edges_ps[-1])),
        y_ticks=[Tick(at=1 - (first + end) / 2 / count, text=TO_BLAME, is_culprit=True) for first, end in runs[:1]],
        height_px=height_px,
        over=f'<i class="cells" data-rows="{data}" data-bins="{bins}" data-width="{width / SPAN:.5f}" '
        f'data-bin="{escape(typeset(amount(float(edges_ps[1]), "ps")))}" data-high="{high:.6g}" '
        f'data-shares="{numbers}"></i>',
        kind="heat",
    )


def _runs(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbouring rows as groups: first row, and row behind the last."""
    found: list[tuple[int, int]] = []
    for row in sorted(set(rows)):
        if found and found[-1][1] == row:
            found[-1] = (found[-1][0], row + 1)
        else:
            found.append((row, row + 1))
    return found


def _outline(first: int, end: int, count: int, height_px: int) -> str:
    """A frame around rows, with a light frame around it.

    The rows stay free, and the frame is visible on every colour.
    """
    pixel = SPAN / height_px

    def frame(kind: str, outside_px: float) -> str:
        top = max(SPAN * first / count - outside_px * pixel, pixel)
        bottom = min(SPAN * end / count + outside_px * pixel, SPAN - pixel)
        return f'<path class="{kind}" d="M2 {top:.1f}H{SPAN - 2}V{bottom:.1f}H2Z"/>'

    return frame("halo", 2) + frame("blame", 1)
