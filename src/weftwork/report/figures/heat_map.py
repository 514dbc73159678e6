"""Utilisation of many links over time: a row for each link, or for some alike ones, and a column for each bin."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from weftwork.report.figures.axes import SPAN, plot
from weftwork.report.figures.lines import time_ticks
from weftwork.report.figures.png import levels, png_url
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["MOST_ROWS", "Rows", "heat_map", "rows_of"]

MOST_ROWS = 200  # chosen: what a page can show; more links share rows
_HEIGHT_PX = 150


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows of a heat map, the busiest link first.

    Attributes
    ----------
    shares : shape (rows, bins)
    names : of the rows
    links_per_row : 1, or how many share a row, which then shows the largest of them at each time
    """

    shares: NDArray[np.float64]
    names: tuple[str, ...]
    links_per_row: int


def rows_of(shares: NDArray[np.float64], names: Sequence[str], *, most: int = MOST_ROWS) -> Rows:
    """Sort links by how busy they were, and let neighbours share a row where there are too many.

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
    return Rows(shares=merged, names=tuple(said), links_per_row=each)


def heat_map(title: str, rows: Rows, *, edges_ps: NDArray[np.int64], high: float = 1.0) -> str:
    """Draw the rows; light and dark have an image each, of the same numbers.

    Parameters
    ----------
    title : for those who do not see it
    rows : of `rows_of`
    edges_ps : shape (bins + 1,)
    high : share at which the colours end
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
    return plot(
        images,
        label=f"{title}: {count} rows, the busiest first; largest share {amount(busiest, 'share')}",
        x_ticks=time_ticks(int(edges_ps[-1])),
        y_ticks=(),
        height_px=height_px,
        over=f'<i class="cells" data-rows="{data}" data-bins="{bins}" data-width="{width / SPAN:.5f}" '
        f'data-bin="{escape(typeset(amount(float(edges_ps[1]), "ps")))}" data-high="{high:.6g}" '
        f'data-shares="{numbers}"></i>',
        kind="heat",
    )
