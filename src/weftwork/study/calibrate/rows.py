"""A file of measurements as rows to fit.

The rows are matrix products, iterations, curves, or the output of nccl-tests.

The kind is told by the head of the table. Leaves out: what the columns of iterations and curves are
(`weftwork.study.validation.row_formats`).
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.study.calibrate.problem import GEMM_COLUMNS, GemmRow, Kind, gemm_rows
from weftwork.study.validation.nccl_rows import NcclAsked
from weftwork.study.validation.nccl_streams import has_nccl_tests
from weftwork.study.validation.own_rows import own_sets
from weftwork.study.validation.published_cases import Case
from weftwork.study.validation.row_table import head_of, read_rows, read_text
from weftwork.study.validation.signs import SignRow
from weftwork.study.validation.ultra_ethernet import UetRow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weftwork.study.validation.curves import CurveRow

__all__ = ["GEMM", "MeasuredRows", "gemm_template", "measured_rows"]

GEMM: Final = "gemm"  # name of the format of matrix products
_EXAMPLE_SIZES: Final = (2048, 4096, 8192)


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredRows:
    """Rows of one kind.

    Attributes
    ----------
    kind : of them
    rows : to be fitted
    format : of the file, in words
    digest : SHA-256 of the file's text
    notes : what was read of a text of nccl-tests, and what it leaves open
    """

    kind: Kind
    rows: Sequence[GemmRow | Case | CurveRow]
    format: str
    digest: str
    notes: tuple[str, ...] = ()


def measured_rows(file: Path, *, like: str | None, asked: NcclAsked, usual_gpu: str | None) -> MeasuredRows:
    """Read a file of measurements.

    Parameters
    ----------
    file : CSV, or the text that a program of nccl-tests printed
    like : set whose columns it has, or ``gemm``; None: told by its head
    asked : what the user says of the text of nccl-tests
    usual_gpu : of matrix products that name none

    Raises
    ------
    ConfigError : with all mistakes of the file
    """
    text = read_text(file)
    digest = sha256(text.encode()).hexdigest()
    is_nccl = has_nccl_tests(text)
    if asked.options and not is_nccl:
        words = "is for the text that nccl-tests prints; a table has a column for it"
        raise ConfigError("command line", [Mistake(path=name, text=words) for name in asked.options])
    if like == GEMM or (like is None and {"m", "n", "k"} <= set(head_of(text))):
        found = gemm_rows(read_rows(text, GEMM_COLUMNS, source=str(file)), usual_gpu=usual_gpu, source=str(file))
        return MeasuredRows(kind="matrix products", rows=found, format=GEMM, digest=digest)
    sets = own_sets(file, like, asked)
    every = [row for one in sets for row in one.rows]
    name = "nccl-tests" if is_nccl else ", ".join(one.format.name for one in sets)
    notes = tuple(note for one in sets for note in one.notes)
    if any(isinstance(row, UetRow) for row in every):
        text = "rows of the Ultra Ethernet model have no constant to fit: its packets depend only on its rules"
        raise ConfigError(str(file), [Mistake(path="file", text=text)])
    if any(isinstance(row, SignRow) for row in every):
        text = "ratios of two fabrics have no constant to fit: a constant on both sides cancels out"
        raise ConfigError(str(file), [Mistake(path="file", text=text)])
    is_curve = not any(isinstance(row, Case) for row in every)
    kept = [row for row in every if not isinstance(row, UetRow | SignRow)]
    kind: Kind = "curves" if is_curve else "iterations"
    return MeasuredRows(kind=kind, rows=kept, format=name, digest=digest, notes=notes)


def gemm_template() -> str:
    """A table of matrix products to be filled in.

    Its times are empty, since nobody has measured them yet.
    """
    lines = [f"# {GEMM}: each row is a matrix product C[m, n] = A[m, k] B[k, n]: fill in seconds."]
    for column in GEMM_COLUMNS:
        words = f" One of: {', '.join(column.choices)}." if column.choices else ""
        lines.append(f"#   {column.name}{' (optional)' if column.optional else ''}: {column.text}{words}")
    lines.append(",".join(column.name for column in GEMM_COLUMNS))
    lines += [f"{size},{size},{size},bf16,," for size in _EXAMPLE_SIZES]
    return "\n".join(lines) + "\n"
