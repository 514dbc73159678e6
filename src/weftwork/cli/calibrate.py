"""``weftwork calibrate FILE``: constants fitted to a user's own measurements.

Scenarios name the file of constants.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
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
from weftwork.spec.calibration import CONSTANTS, parse_calibration, read_calibration, shown
from weftwork.study.calibrate.calibrate import Calibrated, calibrate
from weftwork.study.calibrate.file import calibration_text
from weftwork.study.calibrate.problem import ALLOWED, CANDIDATES, Problem
from weftwork.study.calibrate.rows import GEMM, MeasuredRows, gemm_template, measured_rows
from weftwork.study.calibrate.usual import usual_values
from weftwork.study.pool.side_by_side import worker_processes
from weftwork.study.validation.own_rows import format_named
from weftwork.study.validation.row_formats import template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weftwork.study.validation.nccl_rows import NcclAsked

__all__ = ["calibrate_file", "print_template", "refuse_nothing"]

_PROCESSES = 2  # as many as `weftwork validate` has


@dataclass(frozen=True, kw_only=True, slots=True)
class _Before:
    """What a fit begins with: Weftwork's constants, or an earlier calibration.

    Attributes
    ----------
    values, intervals, draws : of the earlier calibration; a draw without constants where there is none
    fitted_on : what the new file says of the earlier one
    file : of the earlier calibration; None: there is none
    column, constants, own : how tables and sentences name these constants
    """

    values: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    draws: Sequence[Mapping[str, float]] = ({},)
    fitted_on: Mapping[str, str] = field(default_factory=dict)
    file: str | None = None
    column: str = "Weftwork's"
    constants: str = "Weftwork's constants"
    own: str = "Weftwork's own"

    @classmethod
    def of(cls, held: Path | None) -> _Before:
        """The constants before a fit.

        Parameters
        ----------
        held : file of an earlier calibration; None: Weftwork's
        """
        if held is None:
            return cls()
        earlier = read_calibration(held)
        return cls(
            values=earlier.values,
            intervals=earlier.intervals,
            draws=earlier.draws or (earlier.values,),
            fitted_on={"with": earlier.words, "with_sha256": " ".join(sorted(earlier.row_digests))},
            file=earlier.file,
            column="before",
            constants=f"those of {earlier.file}",
            own=f"those of {earlier.file}",
        )


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
    held: Path | None = None,
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
    held : calibration whose constants stay as they are, unless ``constants`` names them; None: Weftwork's
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
    before = _Before.of(held)
    names = _names(constants, found, before)
    kept = _beside(names, found, before)
    usual = {**usual_values(found.rows), **before.values}
    with worker_processes(_PROCESSES) as workers:
        problem = Problem(kind=found.kind, rows=found.rows, workers=workers, held=kept, progress=_progress)
        made = calibrate(problem, names, usual=usual, source=str(file))
    _clear()
    text = _text(file, found, made, before)
    parse_calibration(text, str(out))  # what is written can be read
    try:
        write_whole(out, text)
    except OSError as error:
        raise ConfigError(str(out), [Mistake(path="--out", text=f"cannot be written: {error.strerror}")]) from error
    if as_json:
        document = _document(file, out, found, made, usual)
        typer.echo(json.dumps({**document, "held": kept}, indent=2))
        return
    _print(file, out, found, made, usual, before)


def _names(constants: str | None, found: MeasuredRows, before: _Before) -> tuple[str, ...]:
    if constants is None:
        candidates = CANDIDATES[found.kind]
        left = tuple(name for name in candidates if name not in before.values)
        if not left:
            text = f"has {', '.join(candidates)} already: name those to fit again with --constants"
            raise ConfigError("command line", [Mistake(path="--with", text=text)])
        return left
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


def _beside(names: Sequence[str], found: MeasuredRows, before: _Before) -> dict[str, float]:
    """Constants of an earlier calibration that mean something for the rows and are not fitted again."""
    return {name: value for name, value in before.values.items() if name in ALLOWED[found.kind] and name not in names}


def _text(file: Path, found: MeasuredRows, made: Calibrated, before: _Before) -> str:
    now = datetime.now(UTC).date().isoformat()
    return calibration_text(
        head=["Constants of Weftwork, fitted by `weftwork calibrate`; a scenario names this file: calibration: FILE"],
        written={"by": f"weftwork {VERSION}", "on": now},
        fitted_on={
            "file": file.name, "sha256": found.digest, "rows": len(found.rows), "kind": found.kind,
            "format": found.format, **before.fitted_on,
        },
        quality={"error_before": made.error_before, "error": made.error, "left_out_error": made.left_out_error},
        values={**before.values, **made.values},
        intervals={**before.intervals, **made.intervals},
        draws=_joint_draws(made, before),
        refused=made.refused,
    )  # fmt: skip


def _joint_draws(made: Calibrated, before: _Before) -> list[dict[str, float]]:
    """Draws of the rows, each with a draw of the earlier calibration, whose rows are others."""
    return [{**before.draws[place % len(before.draws)], **draw} for place, draw in enumerate(made.draws)]


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
                "before": usual[name], "unit": CONSTANTS[name].unit, "one_sided": name in made.one_sided,
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


def _print(
    file: Path,
    out: Path,
    found: MeasuredRows,
    made: Calibrated,
    usual: Mapping[str, float],
    before: _Before,
) -> None:
    screen = console()
    screen.print(Text(f"{file.name}: {plural(len(found.rows), 'row')}, {found.kind} in the columns of {found.format}"))
    for note in found.notes:
        screen.print(Text(note), soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("constant", no_wrap=True)
    for head in (before.column, "fitted", "5 to 95 %"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, value in made.values.items():
        low, high = made.intervals[name]
        table.add_row(name, f"{usual[name]:.3g}", f"{value:.3g}", f"{low:.3g} to {high:.3g}")
    screen.print(table)
    for name, text in made.one_sided.items():
        screen.print(Text(f"{name}: {text}"), soft_wrap=True)
    if before.file is not None:
        held = ", ".join(shown(name, value) for name, value in before.values.items() if name not in made.values)
        screen.print(Text(f"held from {before.file}: {held or 'nothing'}"), soft_wrap=True)
    errors = (
        f"mean absolute error {100 * made.error_before:.1f} % with {before.constants}, {100 * made.error:.1f} % with"
        f" these, {100 * made.left_out_error:.1f} % of rows that were left out of the fit"
    )
    screen.print(Text(errors), soft_wrap=True)
    if made.left_out_error >= made.error_before:
        screen.print(Text(f"These constants predict rows left out no better than {before.own}."), soft_wrap=True)
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
