"""``weftwork validate``: the scorecard of predictions against published measurements."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.report.words import plural
from weftwork.study.validation.scorecard_page import HEAD, document, line, page, rank_line
from weftwork.study.validation.validate import BY_NAME, validate, write_scenarios

if TYPE_CHECKING:
    from pathlib import Path

    from weftwork.study.validation.scorecard import Score

__all__ = ["validate_sets", "write_rows"]


def validate_sets(keys: list[str], *, is_full: bool, as_json: bool, to: Path | None) -> None:
    """Print the scorecard, and write its page where one is wanted.

    Parameters
    ----------
    keys : sets; all if empty
    is_full : all rows
    as_json : one JSON object with all rows
    to : file of the page

    Raises
    ------
    ConfigError : there is no such set, or the page cannot be written
    """
    scores = validate(keys, is_full=is_full, progress=_progress)
    _clear()
    if to is not None:
        try:
            write_whole(to, page(scores))
        except OSError as error:
            raise ConfigError(str(to), [Mistake(path="--page", text=f"cannot be written: {error.strerror}")]) from error
    if as_json:
        typer.echo(json.dumps({"sets": document(scores)}, indent=2))
        return
    out = console()
    out.print(_table(scores))
    for score in scores:
        lines = _lines(score)
        if lines:
            out.print()
            out.print(Text(f"{score.key}: {score.title}"))
            for text in lines:
                out.print(Text(f"  {text}"))
    if not keys and not is_full:
        out.print()
        out.print(
            Text(f"Left out, since they take a minute and more: {', '.join(sorted(BY_NAME))}; name them, or --full.")
        )
    if to is not None:
        out.print()
        out.print(Text(f"written to {to}"))


def write_rows(keys: list[str], *, is_full: bool, as_json: bool, folder: Path) -> None:
    """Write the scenarios of rows, and say how many.

    Parameters
    ----------
    keys : sets; all if empty
    is_full : all rows
    as_json : one JSON object instead of words
    folder : which must not exist

    Raises
    ------
    ConfigError : there is no such set, or the folder is there already
    """
    written = write_scenarios(folder, keys, is_full=is_full)
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "scenarios": written}))
    else:
        console().print(Text(f"{plural(written, 'scenario')} written to {folder}"))


def _table(scores: tuple[Score, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for index, name in enumerate(HEAD):
        table.add_column(name, justify="right" if index > 1 else "left", no_wrap=True)
    for score in scores:
        table.add_row(*line(score))
    return table


def _lines(score: Score) -> list[str]:
    ranks = score.plan_ranks()
    lines = [f"{score.role}; calibrated on {score.calibrated_on}"]
    lines += [rank_line(ranks)] if ranks else []
    if score.is_reached is False:
        lines.append(f"not reached; the worst is {score.worst.name}, {100 * score.worst.error:+.0f} %")
    if not score.beats_naive:
        lines.append(f"loses to the naive rule ({score.naive})")
    lines += list(score.notes)
    lines += [f"left out: {row.name}: {row.reason}" for row in score.excluded]
    return lines


def _progress(title: str, done: int, rows: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{title}: {done} of {rows}")
        sys.stderr.flush()


def _clear() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()
