"""Dollars and watts in words, the same wherever they are written.

Leaves out: ticks of an axis, which have no more digits than they need.
"""

from __future__ import annotations

from typing import Final

__all__ = ["money_words", "power_words"]

_DOLLARS: Final = ((1e9, "B"), (1e6, "M"))
_WATTS: Final = ((1e6, 1e6, " MW"), (1e4, 1e3, " kW"))


def money_words(value_usd: float) -> str:
    """Write dollars, below a million as whole dollars, else with four digits.

    Examples
    --------
    >>> money_words(4387.81), money_words(489_533_440), money_words(1_522_000_000), money_words(0.58)
    ('$4,388', '$489.5M', '$1.522B', '$0.58')
    """
    for size_usd, unit in _DOLLARS:
        if value_usd >= size_usd:
            return f"${value_usd / size_usd:#.4g}".rstrip(".") + unit
    return f"${value_usd:,.2f}" if 0 < value_usd < 10 else f"${value_usd:,.0f}"


def power_words(value_w: float) -> str:
    """Write watts with three digits, in kW from 10,000 on.

    Examples
    --------
    >>> power_words(134.6), power_words(747), power_words(91_916), power_words(8_585_216)
    ('135 W', '747 W', '91.9 kW', '8.59 MW')
    """
    for least_w, size_w, unit in _WATTS:
        if value_w >= least_w:
            return f"{value_w / size_w:#.3g}".rstrip(".") + unit
    return f"{value_w:,.0f} W" if value_w >= 100 or value_w == int(value_w) else f"{value_w:.3g} W"
