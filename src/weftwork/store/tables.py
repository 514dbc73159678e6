"""The tables of a run folder.

There is one Parquet file for each table with rows.

The provenance has the number of rows of every table, so that a table without a file is known to be empty.
Leaves out: what the columns mean (`weftwork.spec.result`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.result import TABLES
from weftwork.store.damage import RUN_AGAIN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import duckdb
    import pyarrow as pa

__all__ = ["create_views", "is_known_empty", "read_table", "table_file", "table_schema"]

_SQL = {"int64": "bigint", "float64": "double", "string": "varchar"}


def table_file(folder: Path, name: str) -> Path:
    """File of a table in the folder of a run."""
    return folder / f"{name}.parquet"


def table_schema(name: str) -> pa.Schema:
    """Schema of a table, with the unit and the sentence of each column."""
    import pyarrow as pa

    types = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string()}
    return pa.schema(
        pa.field(c.name, types[c.type], nullable=c.optional, metadata={"unit": c.unit, "text": c.text})
        for c in TABLES[name]
    )


def is_known_empty(provenance: Mapping[str, Any], name: str) -> bool:
    """Whether a run has an empty table, which has no file."""
    return bool(provenance.get("tables", {}).get(name) == 0)


def read_table(folder: Path, name: str) -> pa.Table:
    """Read a table.

    Raises
    ------
    ConfigError : the file is damaged, or lacks a column
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = table_file(folder, name)
    try:
        with pq.ParquetFile(file) as opened:  # `read_table` imports Arrow's data sets, and with them its functions
            table = opened.read()
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(file, error) from error
    _check_columns(file, name, table.schema)
    return table


def create_views(database: duckdb.DuckDBPyConnection, folder: Path, provenance: Mapping[str, Any]) -> None:
    """Create a view for each table of a run.

    Parameters
    ----------
    database : that gets the views
    folder : of the run
    provenance : of the run, which says which tables are empty

    Raises
    ------
    ConfigError : a file is damaged, or lacks a column
    """
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in TABLES:
        file = table_file(folder, name)
        if not file.is_file():
            if is_known_empty(provenance, name):
                nothing = ", ".join(f"null::{_SQL[column.type]} as {column.name}" for column in TABLES[name])
                database.execute(f"create view {name} as select {nothing} where false")
            continue
        source = f"read_parquet('{str(file).replace(chr(39), 2 * chr(39))}')"
        try:
            _check_columns(file, name, pq.read_schema(file))
            database.execute(f"create view {name} as from {source}")
        except (OSError, pa.ArrowException, duckdb.Error) as error:
            raise _unreadable(file, error) from error


def _check_columns(file: Path, name: str, schema: pa.Schema) -> None:
    """Refuse a table that lacks a column, or has another type in it."""
    there = dict(zip(schema.names, schema.types, strict=True))
    mistakes = []
    for field in table_schema(name):
        if field.name not in there:
            mistakes.append(Mistake(path=file.name, text=f"lacks the column '{field.name}'; {RUN_AGAIN}"))
        elif there[field.name] != field.type:
            found = f"found {there[field.name]} in the column '{field.name}', wanted {field.type}"
            mistakes.append(Mistake(path=file.name, text=f"{found}; {RUN_AGAIN}"))
    if mistakes:
        raise ConfigError(str(file.parent), mistakes)


def _unreadable(file: Path, error: Exception) -> ConfigError:
    return ConfigError(str(file), [Mistake(path="file", text=f"cannot be read: {error}")])
