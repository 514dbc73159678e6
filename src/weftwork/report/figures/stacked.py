"""Stacked bars: a bar for each thing, a colour for each part.

Parts below zero lie left of the axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["StackedBar", "stacked"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StackedBar:
    """A bar: name, lengths of parts, note, and best mark."""

    name: str
    lengths: tuple[float, ...]
    note: str
    is_best: bool = False


def stacked(parts: Sequence[tuple[str, str]], bars: Sequence[StackedBar], unit: str) -> str:
    """Draw bars on one axis.

    Bars of several parts get a legend.

    Parameters
    ----------
    parts : name and CSS class of each part
    bars : from top to bottom
    unit : of the lengths
    """
    below = max((-sum(min(one, 0.0) for one in bar.lengths) for bar in bars), default=0.0)
    above = max((sum(max(one, 0.0) for one in bar.lengths) for bar in bars), default=0.0)
    scale = 100 / ((below + above) or 1.0)
    used = [place for place in range(len(parts)) if any(bar.lengths[place] for bar in bars)]
    names = "".join(f'<span><i class="{parts[place][1]}"></i>{escape(parts[place][0])}</span>' for place in used)
    lines = []
    for bar in bars:
        left, right = below, below
        drawn = []
        for place in used:
            length = bar.lengths[place]
            if not length:
                continue
            begin = left + length if length < 0 else right
            left, right = left + min(length, 0.0), right + max(length, 0.0)
            told = escape(f"{parts[place][0]}: {typeset(amount(length, unit))}", quote=True)
            drawn.append(
                f'<i class="{parts[place][1]}" title="{told}"'
                f' style="left:{scale * begin:.3f}%;width:{max(scale * abs(length), 0.15):.3f}%"></i>'
            )
        axis = f'<u style="left:{scale * below:.3f}%"></u>' if below else ""
        kind = "stack chosen" if bar.is_best else "stack"
        lines.append(
            f'<div class="{kind}"><span>{escape(bar.name)}</span><span class="way">{"".join(drawn)}{axis}</span>'
            f"<b>{escape(typeset(bar.note))}</b></div>"
        )
    legend = f'<div class="kinds">{names}</div>' if len(used) > 1 else ""
    return f'{legend}<div class="stacks">{"".join(lines)}</div>'
