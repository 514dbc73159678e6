"""Parts of an iteration as a waterfall chart, and its what-if times.

Each bar begins where the bar before it ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from weftwork.report.words import amount, amounts_apart, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Step", "waterfall"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A bar of the waterfall chart.

    Attributes
    ----------
    name : in front of it
    length_ps : how long it is
    colour : CSS class
    starts_anew : whether it begins at 0, as a total does
    note : behind its number
    """

    name: str
    length_ps: float
    colour: str
    starts_anew: bool = False
    note: str = ""


def waterfall(steps: Sequence[Step]) -> str:
    """Draw the bars on one axis, with a line where a total begins.

    Shares are shares of the first total. Totals have the digits that their differences need.

    Parameters
    ----------
    steps : in order
    """
    ends, before = [], 0.0
    for step in steps:
        before = step.length_ps + (0.0 if step.starts_anew else before)
        ends.append(before)
    widest = max(ends, default=0.0) or 1.0
    whole = next((step.length_ps for step in steps if step.starts_anew), widest) or 1.0
    totals = iter(amounts_apart([step.length_ps for step in steps if step.starts_anew], "ps"))
    lengths = [next(totals) if step.starts_anew else amount(step.length_ps, "ps") for step in steps]
    lines = []
    for step, end, length in zip(steps, ends, lengths, strict=True):
        left, width = 100 * (end - step.length_ps) / widest, 100 * step.length_ps / widest
        share = "" if step.starts_anew else typeset(amount(step.length_ps / whole, "share"))
        lines.append(
            f'<div class="fall{" sum" if step.starts_anew else ""}"><span>{escape(typeset(step.name))}</span>'
            f'<span class="way"><i class="{step.colour}" style="left:{left:.3f}%;width:{max(width, 0.15):.3f}%"></i>'
            f"</span><b>{escape(typeset(length))}</b>"
            f"<em>{escape(typeset(step.note) or share)}</em></div>"
        )
    return f'<div class="falls">{"".join(lines)}</div>'
