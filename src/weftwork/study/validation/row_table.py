"""A user's table of measurements.

It is CSV with a head of known columns, read with all its mistakes at once.

Lines that begin with ``#`` and empty lines are skipped; cells may be in quotes. Leaves out: other separators.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.file_forms import Reader, refuse_folder, refuse_foreign
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.base.plain_file import read_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from weftwork.base.fix import Fix

__all__ = ["TableColumn", "TableRow", "head_of", "read_rows", "read_text", "shown_names"]

MOST_BYTES: Final = 64 << 20  # chosen: a million rows of sixty characters
_SHOWN: Final = 40  # characters of a cell that an error repeats


@dataclass(frozen=True, kw_only=True, slots=True)
class TableColumn:
    """One column of a table that a user writes.

    Attributes
    ----------
    name : with the unit
    kind : of its cells; ``whole`` and ``number`` are positive, unless ``has_zero``
    text : what it says, for the template
    optional : whether the column, or a cell of it, may be missing
    choices : words that a cell may be; empty: any
    has_zero : whether 0 is a value
    """

    name: str
    kind: Literal["whole", "number", "text"]
    text: str
    optional: bool = False
    choices: tuple[str, ...] = ()
    has_zero: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRow:
    """One line: its number in the file, and its cells by column.

    An empty optional cell is None.
    """

    line: int
    cells: Mapping[str, Any]

    def wrong(self, column: str, text: str, fix: Fix | None = None) -> Mistake:
        """A mistake of a cell."""
        return Mistake(path=column, text=text, line=self.line, fix=fix)


def read_text(path: Path, *, option: str = "file", reader: Reader = "measurements") -> str:
    """Read a file of text.

    Parameters
    ----------
    path : UTF-8
    option : what the error calls it
    reader : who takes it, for files of other forms

    Raises
    ------
    ConfigError : it cannot be read, is too large or is no text
    """
    refuse_folder(path, reader, path=option)
    try:
        raw = read_plain(path, MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a path"
        raise ConfigError(str(path), [Mistake(path=option, text=f"cannot be read: {reason}")]) from error
    refuse_foreign(str(path), raw, reader, path=option)
    if len(raw) > MOST_BYTES:
        text = f"found more than {MOST_BYTES >> 20} MiB, wanted a table of measurements"
        raise ConfigError(str(path), [Mistake(path=option, text=text)])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        mistake = Mistake(path=option, text="not UTF-8 text; save the file as UTF-8", line=line)
        raise ConfigError(str(path), [mistake]) from error


def read_rows(text: str, columns: Sequence[TableColumn], *, source: str) -> list[TableRow]:
    """Read the rows of a table.

    Parameters
    ----------
    text : of the file
    columns : that it may have, in any order
    source : what errors call the file

    Raises
    ------
    ConfigError : with every unknown or missing column and every wrong cell, each with its line
    """
    head, rows = _lines(text)
    if head is None:
        wanted = ",".join(column.name for column in columns if not column.optional)
        raise ConfigError(source, [Mistake(path="file", text=f"is empty, wanted a head such as {wanted} and rows")])
    by_name = {column.name: column for column in columns}
    line, names = head
    mistakes = [
        Mistake(
            path=name or "head",
            text=f"found {'an unnamed column' if not name else 'an unknown column'}, wanted {shown_names(columns)}",
            line=line,
            fix=nearest(name, by_name),
        )
        for name in names
        if name not in by_name
    ]
    mistakes += [
        Mistake(path=name, text="found a column of this name twice, wanted it once", line=line)
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    mistakes += [
        Mistake(path=column.name, text=f"is missing, wanted the column: {column.text}", line=line)
        for column in columns
        if not column.optional and column.name not in names
    ]
    if mistakes:
        raise ConfigError(source, mistakes)
    found = []
    for at, cells in rows:
        if len(cells) != len(names):
            counted = f"found {plural(len(cells), 'cell')}, wanted {len(names)}, as many as the head has"
            mistakes.append(Mistake(path="row", text=counted, line=at))
            continue
        values: dict[str, Any] = {column.name: None for column in columns}
        for name, cell in zip(names, cells, strict=True):
            values[name], wrong = _cell(by_name[name], cell)
            mistakes += [Mistake(path=name, text=wrong[0], line=at, fix=wrong[1])] if wrong else []
        found.append(TableRow(line=at, cells=values))
    if not rows:
        mistakes.append(Mistake(path="file", text="has a head and no rows, wanted at least one", line=line))
    if mistakes:
        raise ConfigError(source, mistakes)
    return found


def shown_names(columns: Sequence[TableColumn]) -> str:
    """Names of columns, the optional ones in brackets."""
    return ", ".join(f"[{column.name}]" if column.optional else column.name for column in columns)


def head_of(text: str) -> list[str]:
    """Names in the head of a table; empty without a head."""
    head, _ = _lines(text)
    return [] if head is None else head[1]


def _lines(text: str) -> tuple[tuple[int, list[str]] | None, list[tuple[int, list[str]]]]:
    """The head and the rows, each with its line number.

    Every line is a row.
    """
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            cells = next(csv.reader([line], skipinitialspace=True))
            found.append((number, [cell.strip() for cell in cells]))
    return (found[0] if found else None), found[1:]


def _cell(column: TableColumn, cell: str) -> tuple[Any, tuple[str, str | None] | None]:
    """The value of a cell, or its mistake with a fix."""
    shown = repr(cell if len(cell) <= _SHOWN else f"{cell[:_SHOWN]}...")
    if not cell:
        return None, None if column.optional else (f"found nothing, wanted {_wanted(column)}", None)
    if column.kind == "text":
        if column.choices and cell not in column.choices:
            return None, (f"found {shown}, wanted {_wanted(column)}", nearest(cell, column.choices))
        return cell, None if cell.isprintable() else (f"found {ascii(cell)[:_SHOWN]}, wanted printable text", None)
    try:
        value = float(cell)
    except ValueError:
        return None, (f"found {shown}, wanted {_wanted(column)}", None)
    is_low = value < 0 or (value == 0 and not column.has_zero)
    if not math.isfinite(value) or is_low or (column.kind == "whole" and not value.is_integer()):
        return None, (f"found {shown}, wanted {_wanted(column)}", None)
    return (int(value) if column.kind == "whole" else value), None


def _wanted(column: TableColumn) -> str:
    if column.choices:
        return f"{', '.join(column.choices[:-1])} or {column.choices[-1]}" if column.choices[1:] else column.choices[0]
    low = "of at least 0" if column.has_zero else "above 0"
    return {"whole": f"a whole number {low}", "number": f"a number {low}", "text": "text"}[column.kind]
