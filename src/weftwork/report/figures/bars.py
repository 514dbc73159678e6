"""One number of several things as named bars from zero.

Each has words behind it, and an interval if there is one.

Bars are HTML that narrows with the page. Leaves out: parts of a bar (`stacked`) and bars that begin where others end.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from weftwork.report.words import typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BarGroup", "NamedBar", "bars"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedBar:
    """A bar.

    Attributes
    ----------
    name, words : in front of it and behind it
    value : its length; None where there is none
    low, high : ends of its interval; None without
    is_best : whether it is the one that counts
    """

    name: str
    words: str
    value: float | None
    low: float | None = None
    high: float | None = None
    is_best: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class BarGroup:
    """Bars on one axis under a heading, which may be empty."""

    name: str
    bars: tuple[NamedBar, ...]


def bars(groups: Sequence[BarGroup], label: str, *, colour: str = "c1") -> str:
    """Draw groups of bars below each other.

    Each group has its own axis, which begins at zero.

    Parameters
    ----------
    groups : from top to bottom
    label : what is to be seen, for those who do not see it
    colour : CSS class
    """
    parts = []
    for group in groups:
        longest = max((max(one.value or 0.0, one.high or 0.0) for one in group.bars), default=0.0) or 1.0
        head = f"<h4>{escape(group.name)}</h4>" if group.name else ""
        parts.append(head + "".join(_bar(one, longest, colour) for one in group.bars))
    told = "; ".join(f"{one.name}: {one.words}" for group in groups for one in group.bars)
    return (
        f'<div class="barchart" role="img" aria-label="{escape(f"{label}. {told}", quote=True)}">{"".join(parts)}</div>'
    )


def _bar(one: NamedBar, longest: float, colour: str) -> str:
    drawn = ""
    if one.value is not None:
        drawn = f'<i class="{colour}" style="width:{max(100 * one.value / longest, 0.3):.2f}%"></i>'
    if one.low is not None and one.high is not None:
        left, width = 100 * max(one.low, 0.0) / longest, 100 * (one.high - max(one.low, 0.0)) / longest
        drawn += f'<u class="whisker" style="left:{left:.2f}%;width:{max(width, 0.4):.2f}%"></u>'
    kind = "barrow chosen" if one.is_best else "barrow"
    return (
        f'<div class="{kind}"><span>{escape(one.name)}</span><span class="way">{drawn}</span>'
        f"<b>{escape(typeset(one.words))}</b></div>"
    )
