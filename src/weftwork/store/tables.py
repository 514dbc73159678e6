"""The tables of a run folder: one Parquet file each, read with the names of today.

Leaves out: what the columns mean (`weftwork.spec.result`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.result import FORMER_NAMES, TABLES

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb
    import pyarrow as pa

__all__ = ["create_views", "read_table", "table_file"]


def table_file(folder: Path, name: str) -> Path:
    """File of a table in the folder of a run."""
    return folder / f"{name}.parquet"


def read_table(folder: Path, name: str) -> pa.Table:
    """Read a table; columns of an older folder get the names of today.

    Raises
    ------
    ConfigError : the file is damaged
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = table_file(folder, name)
    try:
        found = pq.read_table(file)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(file, error) from error
    former = FORMER_NAMES.get(name, {})
    return found.rename_columns([former.get(column, column) for column in found.column_names])


def create_views(database: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Create a view for each table that the folder has; columns of an older folder get the names of today.

    Raises
    ------
    ConfigError : a file is damaged
    """
    import duckdb

    for name in TABLES:
        file = table_file(folder, name)
        if not file.is_file():
            continue
        source = f"read_parquet('{str(file).replace(chr(39), 2 * chr(39))}')"
        former = FORMER_NAMES.get(name, {})
        try:
            columns = database.sql(f"from {source}").columns if former else []
            chosen = "*"
            if any(column in former for column in columns):
                chosen = ", ".join(f"{_quoted(column)} as {_quoted(former.get(column, column))}" for column in columns)
            database.execute(f"create view {name} as select {chosen} from {source}")  # noqa: S608 - all names are quoted
        except duckdb.Error as error:
            raise _unreadable(file, error) from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unreadable(file: Path, error: Exception) -> ConfigError:
    return ConfigError(str(file), [Mistake(path="file", text=f"cannot be read: {error}")])
