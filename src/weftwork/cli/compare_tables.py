"""Tables of ``weftwork compare``: runs, fabrics, keys and numbers that differ, as wide as the terminal allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.measure import Measurement
from rich.table import Table

from weftwork.base.grammar import number_ranges
from weftwork.report.comparison_words import (
    different_fabrics,
    different_keys,
    fabric_names,
    has_prices_apart,
    ratio_words,
    short_amount,
    switch_words,
    time_noun,
)
from weftwork.report.money import money_words, power_words
from weftwork.report.words import amount, change, label
from weftwork.spec.sweep import SAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from weftwork.spec.comparison import ComparedFabric, ComparedNumber, ComparedRun, RunComparison

__all__ = ["BESIDE", "difference_table", "fabric_table", "number_tables", "print_table", "run_table"]

_WIDTH: Final = 100  # chosen: columns that a terminal beside an editor still has
BESIDE: Final = 3  # chosen: runs whose values and changes have room beside each other
_BLOCK: Final = 6  # chosen: runs whose values have room beside each other
_LEFT_OUT: Final = ((), ("to blame",), ("to blame", "per GPU"))  # columns of runs, where a terminal is narrow
_ENDLESS: Final = 10_000  # columns of a terminal in which every table has room
_NONE: Final = "-"
_ROUNDED: Final = 0.1  # chosen: shares beyond have whole percents in the table; the lines above have their digits


def _fitting(out: Console, tables: Sequence[Table]) -> Table:
    """The first table that has room, else the last one."""
    return next((table for table in tables if _has_room(out, table)), tables[-1])


def _has_room(out: Console, table: Table) -> bool:
    return Measurement.get(out, out.options.update(width=_ENDLESS), table).maximum <= min(out.width, _WIDTH)


def print_table(out: Console, table: Table) -> None:
    """Print a blank line and a table, which is no wider than a terminal beside an editor."""
    out.print()
    out.print(table, width=min(out.width, _WIDTH))


def _plain(*names: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(name, no_wrap=name == "number")
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def run_table(out: Console, found: RunComparison) -> Table:
    """A row for each run: its time beside its price; a narrow terminal gets fewer columns."""
    return _fitting(out, [_run_table(found, leaves_out) for leaves_out in _LEFT_OUT])


def _run_table(found: RunComparison, leaves_out: Sequence[str]) -> Table:
    """A row for each run: its time beside its price, without some columns for a narrow terminal."""
    runs = found.runs
    has = {
        "change": any(run.change is not None for run in runs),
        "speed": any(run.speed is not None for run in runs),
        "exposed": any(run.exposed_share is not None for run in runs),
        "price": has_prices_apart(found),
    }
    nouns = list(dict.fromkeys(time_noun(run) for run in runs))
    speeds = list(dict.fromkeys(run.speed_name for run in runs if run.speed_name))
    right = [nouns[0] if len(nouns) == 1 else "time"]
    right += ["change"] if has["change"] else []
    right += [speeds[0] if len(speeds) == 1 else "speed"] if has["speed"] else []
    right += ["exposed"] if has["exposed"] else []
    right += ["price"] if has["price"] else []
    right += ["per GPU"] if has["price"] and "per GPU" not in leaves_out else []
    is_numbered, is_grouped = len(runs) > BESIDE, len(found.groups) > 1
    table = _plain(*(["#"] if is_numbered else []), "run", right=right)
    has_culprit = "to blame" not in leaves_out
    if has_culprit:
        table.add_column("to blame")
    for group in found.groups:
        if is_grouped:
            table.add_row(*([""] if is_numbered else []), group.name, style="bold")
        for place in group.runs:
            run = runs[place]
            cells = [str(place + 1)] if is_numbered else []
            cells += [run.short if is_grouped else run.label, _time(run)]
            cells += [_change(run)] if has["change"] else []
            cells += [_speed(run, with_name=len(speeds) > 1)] if has["speed"] else []
            cells += [_share(run.exposed_share)] if has["exposed"] else []
            cells += list(_price(run.fabric))[: 1 if "per GPU" in leaves_out else 2] if has["price"] else []
            table.add_row(*cells, *([_culprit(run)] if has_culprit else []))
    return table


def _time(run: ComparedRun) -> str:
    if run.value_ps is None:
        return run.status
    if run.low_ps is None or run.high_ps is None:
        return amount(run.value_ps, "ps")
    return f"{amount(run.value_ps, 'ps')} ({amount(run.low_ps, 'ps')} to {amount(run.high_ps, 'ps')})"


def _change(run: ComparedRun) -> str:
    if run.change is None:
        return _NONE
    return change(run.change) if abs(run.change) >= SAME else "the same"


def _speed(run: ComparedRun, *, with_name: bool) -> str:
    if run.speed is None:
        return _NONE
    return f"{amount(run.speed, run.speed_unit)}{f' {run.speed_name}' if with_name else ''}"


def _share(share: float | None) -> str:
    return _NONE if share is None else amount(share, "share")


def _price(fabric: ComparedFabric | None) -> tuple[str, str]:
    if fabric is None or fabric.price_usd is None:
        return _NONE, _NONE
    dollars = fabric.price_usd.typical
    return money_words(dollars), money_words(dollars / fabric.gpus)


def _culprit(run: ComparedRun) -> str:
    if not run.culprit:
        return _NONE
    if not run.culprit_share:
        return run.culprit
    told = f"{100 * run.culprit_share:.0f} %" if run.culprit_share > _ROUNDED else amount(run.culprit_share, "share")
    bound = "<= " if run.culprit_how == "bound" else ""
    return f"{run.culprit} {bound}{told}"


def fabric_table(found: RunComparison) -> Table | None:
    """A row for each different fabric; None where no run has one that could be built again."""
    fabrics = different_fabrics(found)
    if not fabrics:
        return None
    has_price = not has_prices_apart(found) and any(one.price_usd is not None for one in fabrics.values())
    table = _plain("fabric", right=["oversubscription"])
    table.add_column("switches")
    for heading in ("links", *(("price", "per GPU") if has_price else ()), "power"):
        table.add_column(heading, justify="right", no_wrap=True)
    names = fabric_names(found)
    for place, one in fabrics.items():
        table.add_row(
            "of all runs" if len(fabrics) == 1 and all(run.fabric for run in found.runs) else names[place],
            ratio_words(one).replace("\u2013", _NONE),
            switch_words(one),
            f"{one.links:,}",
            *(_price(one) if has_price else ()),
            _NONE if one.power_w is None else power_words(one.power_w.typical),
        )
    return table


def difference_table(found: RunComparison) -> Table:
    """Keys that differ: a column for each run, or, with many runs, each value with the numbers of its runs."""
    if len(found.runs) <= BESIDE:
        table = _plain("scenario", *(run.label for run in found.runs))
        for one in different_keys(found):
            table.add_row(one.key, *(value or _NONE for value in one.values))
        return table
    table = _plain("scenario", "values, and their runs")
    for one in different_keys(found):
        of: dict[str, list[int]] = {}
        for place, value in enumerate(one.values):
            of.setdefault(value or "not set", []).append(place + 1)
        table.add_row(one.key, ";  ".join(f"{value} in {number_ranges(places, '-')}" for value, places in of.items()))
    return table


def number_tables(out: Console, found: RunComparison, changed: Sequence[ComparedNumber]) -> list[Table]:
    """Numbers that differ; their changes too where all columns have room."""
    beside = _numbers_beside(found, changed) if len(found.runs) <= BESIDE else None
    if beside is not None and _has_room(out, beside):
        return [beside]
    tables: list[Table] = []
    for size in range(min(_BLOCK, len(found.runs)), 0, -1):
        blocks = -(-len(found.runs) // size)
        tables = _blocks(found, changed, -(-len(found.runs) // blocks))  # of about equal width
        if all(_has_room(out, table) for table in tables):
            break
    return tables


def _blocks(found: RunComparison, changed: Sequence[ComparedNumber], size: int) -> list[Table]:
    """Tables below each other, each with the values of some runs."""
    is_numbered = len(found.runs) > BESIDE
    tables = []
    for begin in range(0, len(found.runs), size):
        places = range(begin, min(begin + size, len(found.runs)))
        heads = [str(place + 1) if is_numbered else found.runs[place].label for place in places]
        table = _plain("number", right=heads)
        for one in changed:
            table.add_row(label(one.name), *(short_amount(one.values[place], one.unit) for place in places))
        tables.append(table)
    return tables


def _numbers_beside(found: RunComparison, changed: Sequence[ComparedNumber]) -> Table:
    heads = [head for place, run in enumerate(found.runs) for head in (run.label, *(["change"] if place else []))]
    table = _plain("number", right=heads)
    for one in changed:
        cells = []
        for place, value in enumerate(one.values):
            told = one.changes[place]
            cells.append(amount(value, one.unit))
            cells += [_NONE if told is None else change(told)] if place else []
        table.add_row(label(one.name), *cells)
    return table
