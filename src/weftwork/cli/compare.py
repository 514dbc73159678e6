"""``weftwork compare``: runs side by side, the verdict first."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import number_ranges, plural
from weftwork.cli.compare_tables import (
    BESIDE,
    difference_table,
    fabric_table,
    number_tables,
    print_table,
    run_table,
)
from weftwork.cli.console import console
from weftwork.report.comparison_words import (
    changed_numbers,
    comparison_verdict,
    has_prices_apart,
    joined,
    price_doubts,
)
from weftwork.report.design_folder import is_design
from weftwork.report.three_lines import LABELS, three_lines
from weftwork.report.words import assumed_lines
from weftwork.store.crossings import is_crossing
from weftwork.store.runs import Run, finished, open_run
from weftwork.store.sweeps import is_sweep
from weftwork.store.tunings import is_tuning
from weftwork.study.results.compare_runs import compare_runs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weftwork.spec.comparison import RunComparison

__all__ = ["compare", "open_runs"]

_BLAMED: Final = 6  # chosen: lines about culprits; the table has them all


def compare(folders: Sequence[Path], *, prices: str | None, as_json: bool) -> None:
    """Print the differences of runs, and their effects.

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
            seeds = f", {done} of {plural(counted, 'seed')} finished" if run.seeds else ""
            out.print(Text(f"{row.label} is {run.status}{seeds}: its numbers are partial"), soft_wrap=True)
    for text in comparison_verdict(found):
        out.print(Text(text), soft_wrap=True)
    for text in _blamed(runs, found):
        out.print(Text(text), soft_wrap=True)
    print_table(out, run_table(out, found))
    if fabrics := fabric_table(found):
        print_table(out, fabrics)
    if not has_prices_apart(found):
        for text in price_doubts(found):
            out.print(Text(text), soft_wrap=True)
    for text in _assumed(runs):
        out.print(Text(text), soft_wrap=True)
    if found.differences:
        print_table(out, difference_table(found))
    changed, alone = changed_numbers(found)
    if changed:
        for table in number_tables(out, found, changed):
            print_table(out, table)
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
    """The reason why a folder of several runs is not compared.

    Empty for any other folder.
    """
    kinds = ((is_sweep, "a sweep"), (is_crossing, "a crossing"), (is_tuning, "a tuning"), (is_design, "a design"))
    what = next((name for is_one, name in kinds if is_one(folder)), "")
    inside = f", such as one of those in {folder / 'runs'}" if (folder / "runs").is_dir() else ""
    return f"is {what}, which is not compared; wanted the folder of a run{inside}" if what else ""


def _document(folders: Sequence[Path], runs: Sequence[Run], found: RunComparison) -> dict[str, Any]:
    """The comparison as JSON takes it."""
    document = asdict(found)
    rows = [
        {"run": str(folder), **row, "answer_culprit": asdict(run.answer.culprit)}
        for folder, run, row in zip(folders, runs, document["runs"], strict=True)
    ]
    for row in rows:
        _per_gpu(row["fabric"])
    said = {"verdict": comparison_verdict(found), "price_notes": price_doubts(found), "assumed": _assumed(runs)}
    return {**said, **document, "runs": rows}


def _assumed(runs: Sequence[Run]) -> list[str]:
    """What the inputs of some of the runs leave open."""
    return assumed_lines(caveat for run in runs for caveat in run.caveats)


def _per_gpu(fabric: dict[str, Any] | None) -> None:
    """Put dollars of a GPU into a fabric that has a price."""
    if fabric is not None and fabric["price_usd"] is not None:
        fabric["price_per_gpu_usd"] = {end: value / fabric["gpus"] for end, value in fabric["price_usd"].items()}


def _blamed(runs: Sequence[Run], found: RunComparison) -> list[str]:
    """A line for each culprit, with its runs."""
    of: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        if culprit := three_lines(run)[2]:
            of.setdefault(culprit, []).append(place)
    if len(of) > _BLAMED:
        return []
    return [f"{LABELS[2]} in {_whose(found, places)}: {culprit}" for culprit, places in of.items()]


def _whose(found: RunComparison, places: Sequence[int]) -> str:
    """Runs by name, or by number if there are many.

    Numbers are those of the table.
    """
    if len(found.runs) <= BESIDE:
        return joined([found.runs[place].label for place in places])
    return f"{'run' if len(places) == 1 else 'runs'} {number_ranges([place + 1 for place in places], '-')}"
