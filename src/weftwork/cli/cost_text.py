"""A bill of materials for people.

The largest costs come first, then every row, then the gaps of the totals.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from weftwork.base.grammar import plural
from weftwork.base.units import RATE, format_quantity
from weftwork.hardware.price_rows import Range
from weftwork.report.money import money_words, power_words
from weftwork.report.words import sentence
from weftwork.topology.bill import KINDS, Bill, BillRow, ItemKind

__all__ = ["item_words", "print_bill"]

_SHOWN = 60  # chosen: rows on a screen or two; a fabric file with a length for each cable has thousands
_NOUNS: dict[ItemKind, str] = {
    "switch": "switches", "module": "optics", "cable": "cables", "nic": "NICs", "optical": "optical switches",
    "appliance": "appliances",
}  # fmt: skip


def item_words(row: BillRow) -> str:
    """The item of a row with its place, rate, length or reach.

    Examples
    --------
    >>> from weftwork.hardware.prices import price_book
    >>> from weftwork.topology.bill import bill
    >>> from weftwork.topology.build import fabric_of
    >>> tree = bill(fabric_of(topology="fat-tree", tiers=2, radix=8), price_book())
    >>> [item_words(row) for row in tree.rows if "host" in row.where]
    ['400G SR4 at hosts, up to 50 m', 'SR, 400Gbps, 20 m, host to switch']
    """
    if row.kind == "module":
        reach = "" if row.reach_m is None else f", up to {row.reach_m:,g} m"
        return f"{row.item} at {row.where}{reach}"
    if row.kind == "cable":
        rate = format_quantity(RATE, row.rate_bps)
        named = row.item if rate in row.item else f"{row.item}, {rate}"
        return f"{named}, {row.length_m:,} m, {row.where}"
    return row.item


def print_bill(out: Console, bill: Bill) -> None:
    """Print the largest costs, the rows, and the gaps of the totals."""
    out.print(bill.name, style="bold", markup=False)
    for line in _headlines(bill):
        out.print(line, soft_wrap=True)
    for text in bill.mismatches:
        out.print(f"{sentence(text)}.", markup=False, soft_wrap=True)
    out.print()
    out.print(_table(bill))
    if len(bill.rows) > _SHOWN:
        out.print(f"and {plural(len(bill.rows) - _SHOWN, 'more row')}; --csv FILE and --json list all rows")
    out.print(f"\nPrices: {bill.book.name}. {bill.book.title}.", markup=False, soft_wrap=True)
    out.print(
        "A range is from the sum of all low values to the sum of all high values. --csv FILE and --json have the source"
        " and the date of every row.",
        soft_wrap=True,
    )


def _headlines(bill: Bill) -> list[str]:
    """Money and power, in total and per GPU.

    Each has its largest kind, and its share of unverified rows.
    """
    lines = []
    price, power = bill.price_usd, bill.power_w
    if price.typical:
        parts = {kind: bill.price_of_kind_usd(kind).typical / price.typical for kind in KINDS}
        lack = ", without unpriced items" if bill.not_priced else ""
        text = f"{_most(parts)} {_span(price, money_words)}{lack}; {_each(bill, price, money_words)}."
        lines.append(f"{text} {sentence(_percent(bill.unverified_money_share))} of the money rests on unverified rows.")
        lines.append(f"Of the money: {_parts(parts)}.")
    else:
        lines.append("The price book has no price for any item of this fabric.")
    if power.typical:
        parts = {kind: bill.power_of_kind_w(kind).typical / power.typical for kind in KINDS}
        lack = ", without items of unknown power" if bill.not_powered else ""
        text = f"{_most(parts, verb='draw')} {_span(power, power_words)}{lack}; {_each(bill, power, power_words)}."
        lines.append(f"{text} {sentence(_percent(bill.unverified_power_share))} of the power rests on unverified rows.")
    if bill.not_priced and price.typical:
        lines.append(f"Not priced: {_counts(bill.not_priced)}.")
    if bill.not_powered and power.typical:
        lines.append(f"Power unknown: {_counts(bill.not_powered)}.")
    if bill.not_powered and not power.typical:
        lines.append("The price book has no power for any item of this fabric.")
    return lines


def _most(parts: dict[ItemKind, float], verb: str = "are") -> str:
    kind = max(parts, key=lambda one: parts[one])
    return f"{sentence(_NOUNS[kind])} {verb} {_percent(parts[kind])} of"


def _parts(parts: dict[ItemKind, float]) -> str:
    named = sorted(((share, _NOUNS[kind]) for kind, share in parts.items() if share > 0), reverse=True)
    return ", ".join(f"{noun} {_percent(share)}" for share, noun in named)


def _percent(share: float) -> str:
    """Whole percent.

    A share that is nearly 0 % or 100 % never becomes these.
    """
    if 0 < share < 0.005:
        return "under 1 %"
    return "over 99 %" if 0.995 <= share < 1 - 1e-9 else f"{share:.0%}".replace("%", " %")


def _span(total: Range, write: Callable[[float], str]) -> str:
    if total.low == total.high:
        return write(total.typical)
    return f"{write(total.typical)} ({write(total.low)} to {write(total.high)})"


def _each(bill: Bill, total: Range, write: Callable[[float], str]) -> str:
    return f"{_span(total.times(1 / bill.gpus), write)} per GPU"


def _counts(rows: list[BillRow]) -> str:
    shown = [f"{row.count:,} x {item_words(row)}" for row in rows[:4]]
    more = [f"{plural(len(rows) - len(shown), 'more row')}"] if len(rows) > len(shown) else []
    return "; ".join([*shown, *more])


def _table(bill: Bill) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("item")
    for heading in ("count", "each", "together", "low to high", "share", "power"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("price")
    for row in bill.rows[:_SHOWN]:
        power = "?" if row.power_w is None else power_words(row.power_w.typical)
        if row.price_usd is None or row.unit_price_usd is None:
            table.add_row(item_words(row), f"{row.count:,}", "?", "?", "", "", power, "not priced")
            continue
        whole = bill.price_usd.typical
        share = _percent(row.price_usd.typical / whole) if whole else ""
        table.add_row(
            item_words(row), f"{row.count:,}",
            money_words(row.unit_price_usd.typical), money_words(row.price_usd.typical),
            _ends(row.price_usd), share, power, "verified" if row.verified else "unverified",
        )  # fmt: skip
    known_power = any(row.power_w is not None for row in bill.rows)
    table.add_row(
        "together", "", "", money_words(bill.price_usd.typical), _ends(bill.price_usd), "",
        power_words(bill.power_w.typical) if known_power else "?", "", style="bold",
    )  # fmt: skip
    return table


def _ends(price: Range) -> str:
    return "" if price.low == price.high else f"{money_words(price.low)} to {money_words(price.high)}"
