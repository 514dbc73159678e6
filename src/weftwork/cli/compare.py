"""``weftwork compare``: runs side by side, the verdict first."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.cli.console import console
from weftwork.report.answer import finished
from weftwork.report.comparison_words import (
    changed_numbers,
    comparison_verdict,
    different_fabrics,
    different_keys,
    fabric_names,
    has_prices_apart,
    joined,
    price_doubts,
    ratio_words,
    short_amount,
    switch_words,
    time_noun,
)
from weftwork.report.design_folder import is_design
from weftwork.report.design_words import money, power
from weftwork.report.three_lines import LABELS, three_lines
from weftwork.report.words import amount, change, label, plural
from weftwork.spec.sweep import SAME
from weftwork.store.crossings import is_crossing
from weftwork.store.runs import Run, open_run
from weftwork.store.sweeps import is_sweep
from weftwork.store.tunings import is_tuning
from weftwork.study.results.compare_runs import compare_runs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from weftwork.spec.comparison import ComparedFabric, ComparedNumber, ComparedRun, RunComparison

__all__ = ["compare", "open_runs"]

_WIDTH: Final = 100  # chosen: columns that a terminal beside an editor still has
_BESIDE: Final = 3  # chosen: runs whose values and changes have room beside each other
_BLOCK: Final = 6  # chosen: runs whose values have room beside each other
_BLAMED: Final = 6  # chosen: lines about culprits; the table has them all
_NONE: Final = "-"


def compare(folders: Sequence[Path], *, prices: str | None, as_json: bool) -> None:
    """Print what differs between runs, and what came of it.

    Parameters
    ----------
    folders : of runs, two at least; the others of a workload are measured against its first
    prices : name of a shipped price book, or the path of another
    as_json : one JSON object instead of words

    Raises
    ------
    ConfigError : fewer than two, some are no runs, or the price book is wrong; with all mistakes
    """
    runs = open_runs(folders, least=2)
    found = compare_runs(runs, prices=prices)
    if as_json:
        typer.echo(json.dumps(_document(folders, runs, found), indent=2))
        return
    out = console()
    for run, row in zip(runs, found.runs, strict=True):
        if not run.is_complete:
            done, counted = finished(run)
            seeds = f", {done} of {counted} seeds finished" if run.seeds else ""
            out.print(Text(f"{row.label} is {run.status}{seeds}: its numbers are partial"), soft_wrap=True)
    for text in comparison_verdict(found):
        out.print(Text(text), soft_wrap=True)
    for text in _blamed(runs, found):
        out.print(Text(text), soft_wrap=True)
    _print(out, _run_table(found))
    if fabrics := _fabric_table(found):
        _print(out, fabrics)
    if not has_prices_apart(found):
        for text in price_doubts(found):
            out.print(Text(text), soft_wrap=True)
    if found.differences:
        _print(out, _difference_table(found))
    changed, alone = changed_numbers(found)
    if changed:
        for table in _number_tables(found, changed):
            _print(out, table)
        out.print()
        same = len(found.numbers) - len(changed) - alone
        told = f"; {plural(alone, 'number is', 'numbers are')} of one workload alone" if alone else ""
        out.print(Text(f"{plural(same, 'other number is', 'other numbers are')} equal{told}"))


def open_runs(folders: Sequence[Path], *, least: int = 1) -> list[Run]:
    """Open runs, and refuse all that are none at once.

    Parameters
    ----------
    folders : of runs
    least : how many there have to be

    Raises
    ------
    ConfigError : with a mistake for every folder that is no run, and one where they are too few
    """
    mistakes: list[Mistake] = []
    runs: list[Run] = []
    for folder in folders:
        if several := _several(folder):
            mistakes.append(Mistake(path=str(folder), text=several))
            continue
        try:
            runs.append(open_run(folder))
        except ConfigError as error:
            if len(folders) == 1 == least:
                raise
            mistakes += [
                Mistake(path=str(folder if one.path == "run" else folder / one.path), text=one.text, fix=one.fix)
                for one in error.mistakes
            ]
    if len(folders) < least:
        found = f"found {plural(len(folders), 'run')}, wanted {least} or more"
        mistakes.append(Mistake(path="RUN", text=f"{found}; one run alone is shown by: weftwork report RUN"))
    if mistakes:
        raise ConfigError("command line", mistakes)
    return runs


def _several(folder: Path) -> str:
    """Why the folder of a sweep and the like is not compared; empty for any other."""
    kinds = ((is_sweep, "a sweep"), (is_crossing, "a crossing"), (is_tuning, "a tuning"), (is_design, "a design"))
    what = next((name for is_one, name in kinds if is_one(folder)), "")
    inside = f", such as one of those in {folder / 'runs'}" if (folder / "runs").is_dir() else ""
    return f"is {what}, which is not compared; wanted the folder of a run{inside}" if what else ""


def _document(folders: Sequence[Path], runs: Sequence[Run], found: RunComparison) -> dict[str, Any]:
    """The comparison as JSON takes it."""
    document = asdict(found)
    rows = [
        {"run": str(folder), **row, "answer_culprit": None if run.answer is None else asdict(run.answer.culprit)}
        for folder, run, row in zip(folders, runs, document["runs"], strict=True)
    ]
    for row in rows:
        _per_gpu(row["fabric"])
    return {"verdict": comparison_verdict(found), "price_notes": price_doubts(found), **document, "runs": rows}


def _per_gpu(fabric: dict[str, Any] | None) -> None:
    """Put dollars of a GPU into a fabric that has a price."""
    if fabric is not None and fabric["price_usd"] is not None:
        fabric["price_per_gpu_usd"] = {end: value / fabric["gpus"] for end, value in fabric["price_usd"].items()}


def _blamed(runs: Sequence[Run], found: RunComparison) -> list[str]:
    """A line for each culprit, with the runs in which it is to blame."""
    of: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        if culprit := three_lines(run)[2]:
            of.setdefault(culprit, []).append(place)
    if len(of) > _BLAMED:
        return []
    return [f"{LABELS[2]} in {_whose(found, places)}: {culprit}" for culprit, places in of.items()]


def _whose(found: RunComparison, places: Sequence[int]) -> str:
    """Runs by their names, or, with many of them, by their numbers in the table."""
    if len(found.runs) <= _BESIDE:
        return joined([found.runs[place].label for place in places])
    return f"{'run' if len(places) == 1 else 'runs'} {_places([place + 1 for place in places])}"


def _print(out: Console, table: Table) -> None:
    out.print()
    out.print(table, width=min(out.width, _WIDTH))


def _plain(*names: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(name, no_wrap=name == "number")
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _run_table(found: RunComparison) -> Table:
    """A row for each run: its time beside its price."""
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
    right += ["price", "per GPU"] if has["price"] else []
    is_numbered, is_grouped = len(runs) > _BESIDE, len(found.groups) > 1
    table = _plain(*(["#"] if is_numbered else []), "run", right=right)
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
            cells += list(_price(run.fabric)) if has["price"] else []
            table.add_row(*cells, _culprit(run))
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
    return money(dollars), money(dollars / fabric.gpus)


def _culprit(run: ComparedRun) -> str:
    if not run.culprit:
        return _NONE
    return run.culprit if not run.culprit_share else f"{run.culprit} ({amount(run.culprit_share, 'share')})"


def _fabric_table(found: RunComparison) -> Table | None:
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
            _NONE if one.power_w is None else power(one.power_w.typical),
        )
    return table


def _difference_table(found: RunComparison) -> Table:
    """Keys that differ: a column for each run, or, with many runs, each value with the numbers of its runs."""
    if len(found.runs) <= _BESIDE:
        table = _plain("scenario", *(run.label for run in found.runs))
        for one in different_keys(found):
            table.add_row(one.key, *(value or _NONE for value in one.values))
        return table
    table = _plain("scenario", "values, and their runs")
    for one in different_keys(found):
        of: dict[str, list[int]] = {}
        for place, value in enumerate(one.values):
            of.setdefault(value or "not set", []).append(place + 1)
        table.add_row(one.key, ";  ".join(f"{value} in {_places(places)}" for value, places in of.items()))
    return table


def _places(places: Sequence[int]) -> str:
    """Numbers of runs, those in a row as a range.

    Examples
    --------
    >>> _places([1, 2, 3, 5])
    '1-3, 5'
    """
    rows: list[list[int]] = []
    for place in places:
        if rows and place == rows[-1][-1] + 1:
            rows[-1].append(place)
        else:
            rows.append([place])
    return ", ".join(f"{row[0]}-{row[-1]}" if len(row) > 2 else ", ".join(map(str, row)) for row in rows)


def _number_tables(found: RunComparison, changed: Sequence[ComparedNumber]) -> list[Table]:
    """Numbers that differ; their changes too where all columns have room."""
    if len(found.runs) <= _BESIDE:
        return [_numbers_beside(found, changed)]
    tables = []
    for begin in range(0, len(found.runs), _BLOCK):
        places = range(begin, min(begin + _BLOCK, len(found.runs)))
        table = _plain("number", right=[str(place + 1) for place in places])
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
