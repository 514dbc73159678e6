"""``weftwork compare``: two runs side by side."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.grammar import plural
from weftwork.cli.console import console
from weftwork.report.answer import finished
from weftwork.report.three_lines import LABELS, three_lines
from weftwork.report.words import amount, change, label
from weftwork.store.runs import open_run
from weftwork.study.results.compare import Comparison, NumberPair, compare

if TYPE_CHECKING:
    from pathlib import Path

    from weftwork.store.runs import Run

__all__ = ["compare_runs", "headline"]

_SAME = 0.0005  # a change that rounds to 0.0 %


def compare_runs(first: Path, second: Path, *, as_json: bool) -> None:
    """Print what differs between two runs.

    Parameters
    ----------
    first, second : run folders
    as_json : one JSON object instead of words

    Raises
    ------
    ConfigError : one of them is no run
    """
    runs = open_run(first), open_run(second)
    found = compare(*runs)
    if as_json:
        paths = {"first": str(first), "second": str(second)}
        ended = {f"{name}_status": run.status for name, run in zip(paths, runs, strict=True)}
        blamed = {f"{name}_culprit": _culprit(run) for name, run in zip(paths, runs, strict=True)}
        typer.echo(json.dumps({**paths, **ended, **blamed, **asdict(found)}, indent=2))
        return
    out = console()
    for run in runs:
        if not run.is_complete:
            done, counted = finished(run)
            seeds = f", {done} of {plural(counted, 'seed')} finished" if run.seeds else ""
            out.print(Text(f"{run.path} is {run.status}{seeds}: its numbers are partial"))
    is_whole = all(done == counted for done, counted in map(finished, runs))
    out.print(Text(headline(found, is_whole=is_whole)))
    for name, run in zip(("first", "second"), runs, strict=True):
        if culprit := three_lines(run)[2]:
            out.print(Text(f"{LABELS[2]} in the {name}: {culprit}"), soft_wrap=True)
    if found.differences:
        out.print()
        out.print(_difference_table(found))
    changed = [pair for pair in found.numbers if pair.first != pair.second]
    if changed:
        out.print()
        out.print(_number_table(changed))
        out.print()
        out.print(Text(f"{plural(len(found.numbers) - len(changed), 'other number is', 'other numbers are')} equal"))


def _culprit(run: Run) -> dict[str, Any] | None:
    """The culprit as JSON."""
    return None if run.answer is None else asdict(run.answer.culprit)


def headline(found: Comparison, *, is_whole: bool, second: str = "The second") -> str:
    """Say in a sentence which run was faster; ``is_whole`` where both delivered everything."""
    if found.is_same_result:
        return "The results are equal to the bit."
    if not is_whole:
        return "The completion times cannot be compared, since not every run finished."
    known = {pair.name: pair for pair in found.numbers if pair.change is not None}
    # what the answers of both begin with
    names = ("iteration_ps", "collective_duration_ps", "completion_ps")
    pair = next((known[name] for name in names if name in known), None)
    if pair is None or pair.change is None:
        return "The completion times cannot be compared."
    times = f"{amount(pair.second, pair.unit)} against {amount(pair.first, pair.unit)}"
    if abs(pair.change) < _SAME:
        return f"Both took as long: {times}."
    if pair.change >= 1:
        return f"{second} took {amount(1 + pair.change, 'ratio')} times as long: {times}{_clear(pair)}."
    direction = "more" if pair.change > 0 else "less"
    return f"{second} took {amount(abs(pair.change), 'share')} {direction} time: {times}{_clear(pair)}."


def _clear(pair: NumberPair) -> str:
    if pair.is_clear is None:
        return ""
    return ", beyond what seeds explain" if pair.is_clear else ", within what seeds explain"


def _difference_table(found: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("scenario", "first", "second"):
        table.add_column(name)
    for difference in found.differences:
        table.add_row(difference.key, difference.first or "-", difference.second or "-")
    return table


def _number_table(pairs: list[NumberPair]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("number")
    for name in ("first", "second", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    for pair in pairs:
        told = "-" if pair.change is None else change(pair.change)
        table.add_row(label(pair.name), amount(pair.first, pair.unit), amount(pair.second, pair.unit), told)
    return table
