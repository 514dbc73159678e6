"""``weftwork cross``: congestion controls crossed with load balancers.

It prints the winner and its price.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.grammar import plural
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.cli.leave import FAILED, INTERRUPTED
from weftwork.cli.pool_line import PoolLine
from weftwork.cli.progress import clock_words
from weftwork.report.crossing_words import change_words, crossing_verdict, standing_words
from weftwork.report.page_crossing import best_places, crossing_page, crossing_pictures
from weftwork.spec.study_ends import STUDY_ENDS
from weftwork.store.sweeps import write_command
from weftwork.study.crossing.crossing import run_crossing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from weftwork.spec.crossing import CrossingResult
    from weftwork.study.crossing.crossing import CrossingRun, CrossingStart

__all__ = ["cross"]

_PAGE: Final = "page.html"


def cross(  # noqa: PLR0913 - the options, all by name
    *,
    out: Path | None,
    controls: Sequence[str],
    path_selections: Sequence[str],
    port_selections: Sequence[str],
    workloads: Sequence[str],
    seeds: int,
    is_all: bool,
    jobs: int | None,
    user_code: bool,
    as_json: bool,
) -> int:
    """Run a crossing and print its result.

    Parameters
    ----------
    out : folder of the crossing
    controls, path_selections, port_selections, workloads, seeds, is_all : as `run_crossing` takes them
    jobs : runs side by side
    user_code : False refuses Python files of the user's own
    as_json : one JSON object instead of words

    Returns
    -------
    exit code: 0; 1 where the disk is full or nobody has a result; 130 after Ctrl-C

    Raises
    ------
    ConfigError : with all mistakes
    """
    line = PoolLine(is_silent=as_json)
    try:
        found = run_crossing(
            out=out,
            controls=controls,
            path_selections=path_selections,
            port_selections=port_selections,
            workloads=workloads,
            seeds=seeds,
            is_all=is_all,
            workers=jobs,
            user_code=user_code,
            on_start=lambda start: line.say(_start_words(start)),
            on_progress=line.progress,
        )
    finally:
        line.clear()
    lists = {
        "--control": controls,
        "--path-selection": path_selections,
        "--port-selection": port_selections,
        "--workload": workloads,
    }
    resume = _resume(found.folder, lists, seeds=seeds, is_all=is_all, jobs=jobs, user_code=user_code)
    write_command(found.folder, resume)
    if found.result is None:
        end = STUDY_ENDS[found.end]
        kept = f"{plural(found.whole, 'run')} are whole and kept"
        typer.echo(f"{end.why.format(study='crossing')}: {kept}; {end.then}: {resume}", err=True)
        if as_json:
            typer.echo(json.dumps(_document(found, resume), indent=2))
        return INTERRUPTED if end.is_by_hand else FAILED
    write_whole(found.folder / _PAGE, crossing_page(found.result, str(found.folder), resume))
    for name, picture in crossing_pictures(found.result).items():
        write_whole(found.folder / name, picture)
    if as_json:
        typer.echo(json.dumps(_document(found, resume), indent=2))
    else:
        _print(found, found.result)
    return 0 if found.result.standings else FAILED


def _resume(
    folder: Path, lists: Mapping[str, Sequence[str]], *, seeds: int, is_all: bool, jobs: int | None, user_code: bool
) -> str:
    """The command that continues this crossing, with its folder."""
    words = ["weftwork", "cross", *(word for name, texts in lists.items() for text in texts for word in (name, text))]
    words += ["--seeds", str(seeds), *(["--all"] if is_all else []), *([] if jobs is None else ["-j", str(jobs)])]
    return shlex.join([*words, *([] if user_code else ["--no-user-code"]), "-o", str(folder)])


def _document(found: CrossingRun, resume: str) -> dict[str, Any]:
    document: dict[str, Any] = {
        "crossing": str(found.folder),
        "end": found.end,
        "runs": found.whole,
        "wanted": found.wanted,
        "kept": found.kept,
        "resume": resume,
    }
    if found.result is not None:
        document |= {"said": crossing_verdict(found.result), **asdict(found.result)}
    return document


def _print(found: CrossingRun, result: CrossingResult) -> None:
    out = console()
    first, *others = crossing_verdict(result)
    out.print(Text(first, style="bold"), soft_wrap=True)
    for text in others:
        out.print(Text(text), soft_wrap=True)
    out.print()
    out.print(_table(result))
    out.print(Text("~: no clear difference from the base; *: best of the column; +: no clear difference from the best"))
    out.print()
    kept = f", {found.kept:,} of them from before" if found.kept else ""
    out.print(
        Text(
            f"{plural(found.whole, 'run')}{kept} in {clock_words(result.elapsed_s)}, {result.workers} at a time"
            f" ({clock_words(result.run_s)} of runs); page, pictures, table and runs: {found.folder}"
        ),
        soft_wrap=True,
    )


def _table(result: CrossingResult) -> Table:
    """The best contenders by their standing, and the base."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("contender", no_wrap=True)
    table.add_column("all", justify="right", no_wrap=True)
    for setting in result.settings:
        table.add_column(setting.name.replace(", a link fails", ", fault"), justify="right")
    standings = {one.contender: one for one in result.standings}
    for place in best_places(result):
        cells = [result.cell(place, number) for number in range(len(result.settings))]
        texts = []
        for cell in cells:
            mark = "*" if cell.is_best else "+" if cell.is_as_good else ""
            wave = "" if cell.differs else "~"
            texts.append("none" if cell.ratio is None else f"{wave}{change_words(cell.ratio)}{mark}")
        standing = standing_words(standings[place]) if place in standings else "none"
        style = "bold" if place == result.base else ""
        table.add_row(result.contenders[place].name, standing, *texts, style=style)
    return table


def _start_words(start: CrossingStart) -> str:
    """The work of a round in words."""
    what = "every contender" if start.round == 1 else "the best controls with the best balancers"
    return (
        f"round {start.round}, {what}: {plural(start.contenders, 'contender')} in"
        f" {plural(start.settings, 'setting')}, {plural(start.runs, 'run')}, {start.workers} at a time;"
        f" the folder is {start.folder}"
    )
