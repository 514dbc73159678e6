"""``weftwork validate``: the scorecard of predictions against measurements.

Measurements are published or a user's own.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.cli.leave import FAILED
from weftwork.spec.calibration import read_calibration
from weftwork.study.validation.own_rows import format_named, own_sets
from weftwork.study.validation.own_scores import OwnSource, own_scores, write_own_scenarios
from weftwork.study.validation.row_formats import template
from weftwork.study.validation.row_table import read_text
from weftwork.study.validation.scorecard_page import HEAD, document, line, page, part_lines, rank_line, sign_line
from weftwork.study.validation.validate import BY_NAME, validate, write_scenarios

if TYPE_CHECKING:
    from pathlib import Path

    from weftwork.study.validation.nccl_rows import NcclAsked
    from weftwork.study.validation.scorecard import Score

__all__ = [
    "parse_tolerance",
    "print_template",
    "refuse_asked",
    "refuse_calibration",
    "validate_own",
    "validate_sets",
    "write_own_rows",
    "write_rows",
]

_MOST_TOLERANCE: Final = 10.0  # chosen: 1,000 % of the time; a bare 15 is a slip for 15%


def validate_sets(keys: list[str], *, is_full: bool, as_json: bool, to: Path | None, tolerance: str | None) -> int:
    """Print the scorecard, and write its page if asked.

    Parameters
    ----------
    keys : sets; all if empty
    is_full : all rows
    as_json : one JSON object with all rows
    to : file of the page
    tolerance : MAPE that every set has to keep, such as ``10%``; None: that of each set, and no exit code follows

    Returns
    -------
    exit code: 0; 1 where a set is beyond the tolerance

    Raises
    ------
    ConfigError : there is no such set, or the page cannot be written
    """
    share = parse_tolerance(tolerance)
    scores = validate(keys, is_full=is_full, progress=_progress)
    if share is not None:
        scores = tuple(replace(score, tolerance=share) for score in scores)
    left_out = ""
    if not keys and not is_full:
        left_out = f"Left out, since they take over a minute: {', '.join(sorted(BY_NAME))}; name them, or give --full."
    return _told(scores, page(scores), as_json=as_json, to=to, note=left_out, is_judged=share is not None)


def validate_own(
    keys: list[str],
    *,
    data: Path,
    asked: NcclAsked,
    calibration: Path | None,
    as_json: bool,
    to: Path | None,
    tolerance: str | None,
) -> int:
    """Print the scorecard of a user's own rows.

    Parameters
    ----------
    keys : the set whose columns the rows have; empty: told by their head
    data : CSV, or the text of nccl-tests
    asked : what that text does not say
    calibration : file of constants that predicts them; None: those of Weftwork
    as_json, to, tolerance : as for `validate_sets`

    Returns
    -------
    exit code: 0; 1 where the rows are beyond the tolerance

    Raises
    ------
    ConfigError : mistakes of the rows, the calibration or the options; the page cannot be written
    """
    share = parse_tolerance(tolerance)
    sets = own_sets(data, _one_set(keys), asked)
    known = None if calibration is None else _source(calibration, data)
    scores = own_scores(sets, tolerance=share, known=known, progress=_progress)
    words = ["weftwork validate", *keys, f"--data {data}"]
    words += asked.words
    words += [] if calibration is None else [f"--calibration {calibration}"]
    text = page(scores, own=" ".join(words))
    return _told(scores, text, as_json=as_json, to=to, note="", is_judged=share is not None)


def print_template(key: str) -> None:
    """Print a table with a set's columns and packaged rows.

    The user replaces the rows by own measurements.

    Parameters
    ----------
    key : of the scorecard, or ``iterations`` or ``curves``

    Raises
    ------
    ConfigError : there is no such set
    """
    typer.echo(template(format_named(key)), nl=False)


def write_rows(keys: list[str], *, is_full: bool, as_json: bool, folder: Path) -> None:
    """Write the scenarios of rows, and print their number.

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
    _say_written(write_scenarios(folder, keys, is_full=is_full), folder, as_json=as_json)


def write_own_rows(
    keys: list[str], *, data: Path, asked: NcclAsked, calibration: Path | None, as_json: bool, folder: Path
) -> None:
    """Write the scenarios of a user's own rows, and print their number.

    Parameters
    ----------
    keys, data, asked, calibration : as for `validate_own`
    as_json, folder : as for `write_rows`

    Raises
    ------
    ConfigError : mistakes of the rows, or the folder is there already
    """
    known = "" if calibration is None else _source(calibration, data).calibration
    written = write_own_scenarios(folder, own_sets(data, _one_set(keys), asked), calibration=known)
    _say_written(written, folder, as_json=as_json)


def parse_tolerance(text: str | None) -> float | None:
    """A share of the time from ``10%`` or ``0.1``; None stays None.

    Raises
    ------
    ConfigError : no such share, or none from 0 to 10 times the time

    Examples
    --------
    >>> parse_tolerance("10%"), parse_tolerance("0.1"), parse_tolerance("10 %")
    (0.1, 0.1, 0.1)
    """
    if text is None:
        return None
    bare = text.strip()
    is_percent = bare.endswith("%")
    try:
        share = float(bare.removesuffix("%")) / (100 if is_percent else 1)
    except ValueError:
        share = -1.0
    if not 0 < share <= _MOST_TOLERANCE:
        wanted = "wanted a share of the time such as 10% or 0.1"
        fix = f"{bare}%" if share > _MOST_TOLERANCE and not is_percent else None
        raise ConfigError("command line", [Mistake(path="--tolerance", text=f"found '{text}', {wanted}", fix=fix)])
    return share


def refuse_calibration() -> None:
    """Refuse a calibration without a user's own rows.

    The packaged sets judge Weftwork's constants.

    Raises
    ------
    ConfigError : always
    """
    text = "is for your own rows, with --data; the packaged sets judge the constants of Weftwork"
    raise ConfigError("command line", [Mistake(path="--calibration", text=text)])


def refuse_asked(asked: NcclAsked) -> None:
    """Refuse options of the text of nccl-tests where there is none.

    Raises
    ------
    ConfigError : always
    """
    text = "is for the text that nccl-tests prints, with --data"
    raise ConfigError("command line", [Mistake(path=name, text=text) for name in asked.options])


def _source(calibration: Path, data: Path) -> OwnSource:
    """The calibration, and whether it was fitted to the same rows."""
    found = read_calibration(calibration)
    is_same = sha256(read_text(data, option="--data").encode()).hexdigest() in found.row_digests
    words = "these very rows" if is_same else found.words
    return OwnSource(
        calibration=str(calibration.absolute()),
        calibrated_on=f"{words}, by {calibration.name}: {', '.join(found.values)}",
        has_same_rows=is_same,
    )


def _one_set(keys: list[str]) -> str | None:
    if len(keys) > 1:
        text = f"found {plural(len(keys), 'set')}, wanted one with --data: the set whose columns the rows have"
        raise ConfigError("command line", [Mistake(path="SET", text=text)])
    return keys[0] if keys else None


def _say_written(written: int, folder: Path, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "scenarios": written}))
    else:
        console().print(Text(f"{plural(written, 'scenario')} written to {folder}"))


def _told(scores: tuple[Score, ...], text: str, *, as_json: bool, to: Path | None, note: str, is_judged: bool) -> int:
    """Print scores, and write their page.

    The exit code says whether the tolerance is met.
    """
    _clear()
    if to is not None:
        try:
            write_whole(to, text)
        except OSError as error:
            raise ConfigError(str(to), [Mistake(path="--page", text=f"cannot be written: {error.strerror}")]) from error
    is_kept = all(score.is_reached is not False for score in scores)
    code = 0 if is_kept or not is_judged else FAILED
    if as_json:
        typer.echo(json.dumps({"sets": document(scores)}, indent=2))
        return code
    out = console()
    out.print(_table(scores))
    for score in scores:
        lines = _lines(score)
        if lines:
            out.print()
            out.print(Text(f"{score.key}: {score.title}"))
            for one in lines:
                out.print(Text(f"  {one}"))
    for one in (note, "" if to is None else f"written to {to}"):
        if one:
            out.print()
            out.print(Text(one))
    return code


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
    lines += [sign_line(score)] if score.is_ratio else []
    if score.is_reached is False:
        lines.append(f"not reached; the worst is {score.worst.name}, {100 * score.worst.error:+.0f} %")
    if not score.beats_naive:
        lines.append(f"loses to the naive rule ({score.naive})")
    lines += part_lines(score)
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
