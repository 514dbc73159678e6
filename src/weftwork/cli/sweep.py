"""``weftwork sweep``: many runs, a table, a page, and a verdict."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.grammar import plural
from weftwork.base.memory import memory_words
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.cli.leave import FAILED, INTERRUPTED
from weftwork.cli.pool_line import PoolLine
from weftwork.cli.settings import overrides
from weftwork.report.page_sweep import PAGE, sweep_page
from weftwork.report.sweep_words import against_best, best_first, cell, objective_words, sweep_verdict
from weftwork.report.words import sentence
from weftwork.spec.endings import ENDINGS_AS_ASKED
from weftwork.spec.study_ends import STUDY_ENDS
from weftwork.store.sweeps import write_command
from weftwork.study.answer.suspects import OPTION
from weftwork.study.sweep.sweep import run_sweep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from weftwork.spec.sweep import SweepResult
    from weftwork.study.answer.worlds import Extent
    from weftwork.study.sweep.sweep import SweepRun, SweepStart

__all__ = ["sweep"]

_SHOWN: Final = 40  # chosen: rows of a table that fit a screen; the files have all


def sweep(  # noqa: PLR0913 - the options, all by name
    file: Path,
    *,
    out: Path | None,
    seeds: int | None,
    by: str | None,
    within: str | None,
    jobs: int | None,
    on: str | None,
    what_if: Extent | None,
    suspects: Sequence[str],
    settings: Sequence[str] | None,
    user_code: bool,
    as_json: bool,
) -> int:
    """Run a sweep and print its result.

    Parameters
    ----------
    file : a scenario, which may have a section ``sweep``
    out : folder of the sweep
    seeds : runs of each point
    by : number of the summary that decides
    within : key whose values are no choice
    jobs : runs side by side
    on : ``ray`` or ``ray://host:port``: a Ray cluster in place of this machine
    what_if : which other worlds are simulated beside each run; None: none, or ``auto`` with suspects
    suspects : Python files of ``--suspect``
    settings : ``key=value,value`` texts of ``--set``
    user_code : False refuses every Python file of the user's own that the scenario names
    as_json : one JSON object instead of words

    Returns
    -------
    exit code: 0; 1 where a point has no result or the disk is full; 130 after Ctrl-C

    Raises
    ------
    ConfigError : with all mistakes
    """
    line = PoolLine(is_silent=as_json)
    try:
        found = run_sweep(
            file,
            settings=overrides(settings),
            out=out,
            seeds=seeds,
            by=by,
            within=within,
            workers=jobs,
            on=on,
            what_if=what_if,
            suspects=suspects,
            user_code=user_code,
            on_start=lambda start: line.say(_start_words(start)),
            on_progress=line.progress,
        )
    finally:
        line.clear()
    options = {
        "--seeds": seeds,
        "--by": by,
        "--within": within,
        "-j": jobs,
        "--on": on,
        "--what-if": None if what_if == "none" and not suspects else what_if,
    }
    repeated = {"--set": settings or (), OPTION: suspects}
    resume = _resume(found.folder, file, options, repeated, user_code=user_code)
    write_command(found.folder, resume)
    if found.result is None:
        _tell_end(found, resume)
        if as_json:
            typer.echo(json.dumps(_document(found, resume), indent=2))
        return INTERRUPTED if STUDY_ENDS[found.end].is_by_hand else FAILED
    write_whole(found.folder / PAGE, sweep_page(found.result, str(found.folder), resume))
    if as_json:
        typer.echo(json.dumps(_document(found, resume), indent=2))
    else:
        _print(found, found.result)
    return 0 if all(row.status in ENDINGS_AS_ASKED for row in found.result.rows) else FAILED


def _resume(
    folder: Path,
    file: Path,
    options: Mapping[str, object],
    repeated: Mapping[str, Sequence[str]],
    *,
    user_code: bool,
) -> str:
    """The command that continues this sweep, with its folder."""
    words = ["weftwork", "sweep", str(file)]
    words += [word for name, texts in repeated.items() for text in texts for word in (name, text)]
    words += [str(word) for name, value in options.items() if value is not None for word in (name, value)]
    return shlex.join([*words, *([] if user_code else ["--no-user-code"]), "-o", str(folder)])


def _tell_end(found: SweepRun, resume: str) -> None:
    end = STUDY_ENDS[found.end]
    done = f"{found.whole:,} of {plural(found.wanted, 'run')} are whole and kept in {found.folder / 'runs'}"
    typer.echo(f"{end.why.format(study='sweep')}: {done}; {end.then}: {resume}", err=True)


def _document(found: SweepRun, resume: str) -> dict[str, Any]:
    document: dict[str, Any] = {
        "sweep": str(found.folder),
        "end": found.end,
        "runs": found.whole,
        "wanted": found.wanted,
        "kept": found.kept,
        "repeated": found.repeated,
        "resume": resume,
    }
    if found.result is not None:
        document |= {"said": sweep_verdict(found.result), **asdict(found.result)}
    return document


def _print(found: SweepRun, result: SweepResult) -> None:
    out = console()
    first, *others = sweep_verdict(result)
    out.print(Text(first, style="bold"), soft_wrap=True)
    for text in others:
        out.print(Text(text), soft_wrap=True)
    out.print()
    out.print(_table(result))
    if len(result.rows) > _SHOWN:
        out.print(Text(f"and {plural(len(result.rows) - _SHOWN, 'more point')} in table.csv"))
    out.print()
    kept = f", {found.kept:,} of them from before" if found.kept else ""
    if found.repeated:
        out.print(Text(f"{plural(found.repeated, 'run')} had to start again, since the worker died"))
    out.print(Text(f"{plural(found.whole, 'run')}{kept}; page, table and runs: {found.folder}"), soft_wrap=True)


def _table(result: SweepResult) -> Table:
    """Points by their objective, the best first.

    Points without an objective come last.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for key in result.keys:
        table.add_column(key, no_wrap=True)
    heading = sentence(objective_words(result)) if result.objective else "result"
    table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("against the best", justify="right", no_wrap=True)
    table.add_column("status")
    ordered = best_first(result)
    for row in ordered[:_SHOWN]:
        status = f"{row.status}: {row.reason}" if row.reason else row.status
        style = "bold" if row.place in result.bests.values() else ""
        against = against_best(result, row)
        table.add_row(*(row.values[key] for key in result.keys), cell(result, row), against, status, style=style)
    return table


def _start_words(start: SweepStart) -> str:
    """The work of a sweep, and how it is shared out."""
    side = f"{start.workers} at a time" if start.workers > 1 else "one at a time"
    less = " (memory holds no more)" if start.workers < min(start.cores, start.runs) else ""
    more = ", without its programs, which are built later" if start.is_least else ""
    where = (
        "" if start.machines is None else f" on Ray ({plural(start.machines, 'machine')}, {plural(start.cores, 'CPU')})"
    )
    return (
        f"{plural(start.points, 'point')}, {plural(start.runs, 'run')}, {side}{where}{less},"
        f" about {memory_words(start.memory_bytes)} of memory each, by its keys{more}"
    )
