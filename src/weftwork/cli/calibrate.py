"""``weftwork calibrate FILE``: constants fitted to a user's own measurements.

Scenarios name the file of constants.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.base.version import VERSION
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.spec.calibration import CONSTANTS, parse_calibration
from weftwork.study.calibrate.calibrate import Calibrated, calibrate
from weftwork.study.calibrate.file import calibration_text
from weftwork.study.calibrate.problem import ALLOWED, CANDIDATES, Problem
from weftwork.study.calibrate.rows import GEMM, MeasuredRows, gemm_template, measured_rows
from weftwork.study.calibrate.usual import usual_values
from weftwork.study.pool.side_by_side import worker_processes
from weftwork.study.validation.own_rows import format_named
from weftwork.study.validation.row_formats import template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.study.validation.nccl_rows import NcclAsked

__all__ = ["calibrate_file", "print_template", "refuse_nothing"]

_PROCESSES = 2  # as many as `weftwork validate` has


def print_template(name: str) -> None:
    """Print a table to be filled in.

    It is of matrix products, iterations, curves, or a set's columns.

    Parameters
    ----------
    name : ``gemm``, or as ``weftwork validate --template`` has it

    Raises
    ------
    ConfigError : there is no such format
    """
    typer.echo(gemm_template() if name == GEMM else template(format_named(name)), nl=False)


def refuse_nothing() -> None:
    """Refuse to fit without a file.

    Raises
    ------
    ConfigError : always
    """
    text = "is missing, wanted a file of measurements; --template gemm, iterations or curves prints a table of them"
    raise ConfigError("command line", [Mistake(path="FILE", text=text)])


def calibrate_file(
    file: Path,
    *,
    out: Path,
    like: str | None,
    constants: str | None,
    asked: NcclAsked,
    usual_gpu: str | None,
    as_json: bool,
) -> None:
    """Fit constants to measurements, write them, and report the errors.

    Parameters
    ----------
    file : CSV, or what nccl-tests printed
    out : file to write, which must not exist
    like : set whose columns it has, or ``gemm``; None: told by its head
    constants : names with commas between; None: those that rows of this kind tell
    asked : what the text of nccl-tests does not say
    usual_gpu : of matrix products that name none
    as_json : one JSON object instead of words

    Raises
    ------
    ConfigError : mistakes of the file and the options; nothing can be fitted, with the reasons
    """
    if out.exists():
        text = f"'{out}' exists already; name a new file with --out"
        raise ConfigError("command line", [Mistake(path="--out", text=text)])
    found = measured_rows(file, like=like, asked=asked, usual_gpu=usual_gpu)
    usual = usual_values(found.rows)
    names = _names(constants, found)
    with worker_processes(_PROCESSES) as workers:
        problem = Problem(kind=found.kind, rows=found.rows, workers=workers, progress=_progress)
        made = calibrate(problem, names, usual=usual, source=str(file))
    _clear()
    text = _text(file, found, made)
    parse_calibration(text, str(out))  # what is written can be read
    try:
        write_whole(out, text)
    except OSError as error:
        raise ConfigError(str(out), [Mistake(path="--out", text=f"cannot be written: {error.strerror}")]) from error
    if as_json:
        typer.echo(json.dumps(_document(file, out, found, made, usual), indent=2))
        return
    _print(file, out, found, made, usual)


def _names(constants: str | None, found: MeasuredRows) -> tuple[str, ...]:
    if constants is None:
        return CANDIDATES[found.kind]
    names = tuple(dict.fromkeys(name.strip() for name in constants.split(",") if name.strip()))
    allowed = ALLOWED[found.kind]
    mistakes = [
        Mistake(
            path="--constants", text=f"found '{name}', wanted {', '.join(allowed)} for {found.kind}",
            fix=nearest(name, allowed),
        )
        for name in names
        if name not in allowed
    ]  # fmt: skip
    if mistakes or not names:
        none = [Mistake(path="--constants", text=f"names nothing, wanted some of {', '.join(allowed)}")]
        raise ConfigError("command line", mistakes or none)
    return names


def _text(file: Path, found: MeasuredRows, made: Calibrated) -> str:
    now = datetime.now(UTC).date().isoformat()
    return calibration_text(
        head=["Constants of Weftwork, fitted by `weftwork calibrate`; a scenario names this file: calibration: FILE"],
        written={"by": f"weftwork {VERSION}", "on": now},
        fitted_on={
            "file": file.name, "sha256": found.digest, "rows": len(found.rows), "kind": found.kind,
            "format": found.format,
        },
        quality={"error_before": made.error_before, "error": made.error, "left_out_error": made.left_out_error},
        values=made.values,
        intervals=made.intervals,
        draws=made.draws,
        refused=made.refused,
    )  # fmt: skip


def _document(
    file: Path, out: Path, found: MeasuredRows, made: Calibrated, usual: Mapping[str, float]
) -> dict[str, Any]:
    return {
        "file": str(file),
        "out": str(out),
        "kind": found.kind,
        "format": found.format,
        "rows": len(found.rows),
        "notes": list(found.notes),
        "constants": {
            name: {
                "value": value, "low": made.intervals[name][0], "high": made.intervals[name][1],
                "before": usual[name], "unit": CONSTANTS[name].unit,
            }
            for name, value in made.values.items()
        },
        "refused": dict(made.refused),
        "error_before": made.error_before,
        "error": made.error,
        "left_out_error": made.left_out_error,
        "points": [
            {"row": row.name, "measured_s": row.measured_s, "before_s": float(before), "fitted_s": float(after)}
            for row, before, after in zip(found.rows, made.before_s, made.after_s, strict=True)
        ],
    }  # fmt: skip


def _print(file: Path, out: Path, found: MeasuredRows, made: Calibrated, usual: Mapping[str, float]) -> None:
    screen = console()
    screen.print(Text(f"{file.name}: {plural(len(found.rows), 'row')}, {found.kind} in the columns of {found.format}"))
    for note in found.notes:
        screen.print(Text(note), soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("constant", no_wrap=True)
    for head in ("Weftwork's", "fitted", "5 to 95 %"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, value in made.values.items():
        low, high = made.intervals[name]
        table.add_row(name, f"{usual[name]:.3g}", f"{value:.3g}", f"{low:.3g} to {high:.3g}")
    screen.print(table)
    errors = (
        f"mean absolute error {100 * made.error_before:.1f} % with Weftwork's constants, {100 * made.error:.1f} % with"
        f" these, {100 * made.left_out_error:.1f} % of rows that were left out of the fit"
    )
    screen.print(Text(errors), soft_wrap=True)
    if made.left_out_error >= made.error_before:
        screen.print(Text("These constants predict rows left out no better than Weftwork's own."), soft_wrap=True)
    for name, text in made.refused.items():
        screen.print(Text(f"refused {name}: {text}"), soft_wrap=True)
    screen.print(Text(f"written to {out}; a scenario names it: calibration: {out}"), soft_wrap=True)


def _progress(what: str, done: int, of: int) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{done:,} of {of:,} {what}")
        sys.stderr.flush()


def _clear() -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()
