"""A run is a folder, written once.

It has the resolved scenario, a summary, tables in Parquet, and the provenance.

It is written under a temporary name beside its place and renamed, so that a folder that has its name is whole, and
``provenance.json`` is written last, so that a folder that has it is whole. With several seeds the folder holds a run
for each (``seed-1`` ...) and a summary of means with 95 % intervals; it is there from the first seed on, and says
``interrupted`` until the last.
Leaves out: what the numbers mean (`weftwork.spec.result`), and any change of a run once it is written.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from weftwork.base.above import Shown
from weftwork.base.caveat import Caveat, caveats_of
from weftwork.base.errors import ConfigError, Mistake, UsageError
from weftwork.base.file_forms import ACCEPTED, HEAD_BYTES, form_of, looks_like
from weftwork.base.plain_file import read_plain
from weftwork.base.stop import unfinished
from weftwork.base.whole_file import temporary_beside, write_whole
from weftwork.spec.answer import Answer
from weftwork.spec.endings import ENDINGS, Ending
from weftwork.spec.result import TABLES, Quantity
from weftwork.store.damage import FORMAT, damages, read_json
from weftwork.store.folder_lock import held
from weftwork.store.named_runs import RUNS_FOLDER, folder_of, slug_of
from weftwork.store.run_tables import RunTables
from weftwork.store.tables import create_views, is_known_empty, read_table, table_file, table_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import duckdb
    import pyarrow as pa

__all__ = [
    "FORMAT",
    "Run",
    "finished",
    "fresh_folder",
    "new_folder",
    "open_run",
    "refuse_existing",
    "write_beside",
    "write_files",
    "write_run",
    "write_run_set",
]


def new_folder(name: str, parent: Path = RUNS_FOLDER) -> Path:
    """Folder for a new run, ``runs/<name>-<time>``.

    It has a number behind it if the name is taken.

    Parameters
    ----------
    name : of the scenario; what a file name should not hold becomes a hyphen
    parent : where runs are kept
    """
    stem = f"{slug_of(name)}-{datetime.now(UTC).astimezone():%Y%m%d-%H%M%S}"
    path = parent / stem
    number = 2
    while os.path.lexists(path):
        path = parent / f"{stem}-{number}"
        number += 1
    return path


def refuse_existing(path: Path) -> None:
    """Raise ConfigError if a run cannot be written.

    The check is before the work.

    Raises
    ------
    ConfigError : the folder is there already, or its parent is a file
    """
    if os.path.lexists(path):
        text = "exists already; a run is written once, so name another folder"
        raise ConfigError(str(path), [Mistake(path="output", text=text)])
    for parent in path.absolute().parents:
        if parent.exists():
            if not parent.is_dir() or not os.access(parent, os.W_OK):
                raise ConfigError(
                    str(path), [Mistake(path="output", text=f"'{parent}' is no folder that can be written")]
                )
            return


def write_run(
    path: Path,
    *,
    scenario: str,
    about: Mapping[str, str],
    summary: Mapping[str, Quantity],
    tables: Mapping[str, pa.Table],
    provenance: Mapping[str, Any],
    answer: Answer,
    files: Mapping[str, str | Iterable[bytes]] = MappingProxyType({}),
) -> Run:
    """Write a run's folder.

    Parameters
    ----------
    path : that does not exist yet
    scenario : resolved, as YAML
    about : what ran, in words
    summary : the numbers
    tables : by the names of `weftwork.spec.result.TABLES`; those without rows get no file
    provenance : version, seed, hashes, ``status`` and so on
    answer : what it took, what limited it, who is to blame
    files : further files of the run, name to text or to the pieces of a binary file; a name may have folders

    Raises
    ------
    ConfigError : the folder is there already
    """
    import pyarrow.parquet as pq

    with fresh_folder(path) as folder:
        (folder / "scenario.yaml").write_text(scenario, encoding="utf-8")
        write_files(folder, files)
        for name, table in tables.items():
            if table.num_rows:
                repeated = [column.name for column in TABLES[name] if column.unit != "ps"]  # no two instants are alike
                pq.write_table(table, table_file(folder, name), use_dictionary=repeated)
        rows = {name: table.num_rows for name, table in sorted(tables.items())}
        numbers = {name: {"value": q.value, "unit": q.unit, "text": q.text} for name, q in summary.items()}
        _write_json(folder / "summary.json", _summary_document(about, numbers, answer))
        # last: a folder without it is no run
        listed = {"format": FORMAT, **provenance, "numbers": sorted(numbers), "tables": rows}
        _write_json(folder / "provenance.json", listed)
    return Run(path)


def write_files(folder: Path, files: Mapping[str, str | bytes | Iterable[bytes]]) -> None:
    """Write files into a folder that is still hidden.

    Parameters
    ----------
    folder : that is there
    files : name, which may have folders, to text, content or the pieces of it
    """
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            file.write_text(content, encoding="utf-8")
            continue
        with file.open("wb") as opened:
            opened.writelines([content] if isinstance(content, bytes) else content)


def write_beside(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder that several runs share.

    Each is written atomically; names follow from contents, and stay.

    Parameters
    ----------
    folder : which is made
    files : name, which may have folders, to content
    """
    for name, content in files.items():
        file = folder / name
        if file.is_file():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        with unfinished(temporary_beside(file)) as temporary:
            temporary.write_bytes(content)
            temporary.replace(file)


def write_run_set(
    folder: Path,
    *,
    scenario: str,
    about: Mapping[str, str],
    numbers: Mapping[str, Mapping[str, Any]],
    provenance: Mapping[str, Any],
    answer: Answer,
) -> None:
    """Write the common files of several seeds, each atomically.

    Existing files are replaced.

    Parameters
    ----------
    folder : that holds ``seed-<n>`` for every seed so far
    scenario, about, provenance, answer : as in `write_run`
    numbers : by name, with ``value`` (the mean), ``low``, ``high``, ``unit`` and ``text``
    """
    write_whole(folder / "scenario.yaml", scenario)
    _write_json(folder / "summary.json", _summary_document(about, numbers, answer))
    _write_json(folder / "provenance.json", {"format": FORMAT, **provenance, "numbers": sorted(numbers)})


def open_run(path: str | Path) -> Run:
    """Open a run that is there.

    Parameters
    ----------
    path : of its folder, or the name of the one run in ``runs`` that has it

    Raises
    ------
    ConfigError : no such folder, several runs of that name, not a run, damaged, or written by a Weftwork with another
        format of folders; with every file that is wrong
    """
    folder = folder_of(path)
    text = None
    if folder.is_file():
        text = _file_text(folder)
    elif not folder.is_dir():
        text = "there is no such folder"
    elif not (folder / "summary.json").is_file() and not (folder / "provenance.json").is_file():
        text = "is not the folder of a run: summary.json and provenance.json are missing"
    if text is not None:
        raise ConfigError(str(path), [Mistake(path="run", text=text)])
    if wrong := damages(folder):
        raise ConfigError(str(path), wrong)
    return Run(folder)


def _file_text(file: Path) -> str:
    """What a file is that was given in place of a run."""
    try:
        form = form_of(read_plain(file, HEAD_BYTES), file.name)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    what = "this is a file" if form is None else looks_like(form, file.name)
    return f"{what}; wanted {ACCEPTED['run'].wanted}"


class Run(Shown, RunTables):
    """A written run, with its files read on demand.

    Each table is an attribute, as Arrow.

    Attributes
    ----------
    path : its folder
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, status={self.status!r})"

    @cached_property
    def _summary(self) -> dict[str, Any]:
        return read_json(self.path / "summary.json")

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Version, schema, seed, hashes of the policies, machine, wall time, status, digest."""
        return read_json(self.path / "provenance.json")

    @cached_property
    def caveats(self) -> tuple[Caveat, ...]:
        """Notes on the result for the user.

        ConfigError if the file has other contents.
        """
        return tuple(caveats_of(self.provenance, str(self.path / "provenance.json")).values())

    @property
    def status(self) -> str:
        """The name of its ending, in `weftwork.spec.endings.ENDINGS`.

        ``complete``, ``interrupted``, ``stopped`` (at engine.until), ``deadlocked`` (packets that pause each other for
        ever), ``gave-up`` (a queue pair used up its retries) or ``stuck`` (flows that can never finish).
        """
        return str(self.provenance["status"])

    @property
    def ending(self) -> Ending:
        """Its ending, with what others ask of it."""
        return ENDINGS[self.status]

    @property
    def is_complete(self) -> bool:
        """Whether all work was done."""
        return self.ending.is_whole

    @property
    def has_own_fault(self) -> bool:
        """Whether the run shows a mistake of Weftwork: training waits for itself for ever, and nothing had failed.

        Programs of training jobs always end on a fabric without faults; those of users need not.
        """
        if not self.ending.is_out_of_work or not len(self.table("jobs")):
            return False
        return not len(self.query("select at_ps from events where event = 'fault'"))

    @property
    def about(self) -> dict[str, str]:
        """Name, workload, fabric and transport in words."""
        return dict(self._summary["about"])

    @property
    def summary(self) -> dict[str, dict[str, Any]]:
        """Numbers by name, each with ``value``, ``unit`` and ``text``.

        Several seeds have ``low`` and ``high`` too.
        """
        return dict(self._summary["numbers"])

    @cached_property
    def answer(self) -> Answer:
        """Time, limit and culprit of the run.

        For several seeds on average.

        Raises
        ------
        ConfigError : the file has something else in its place
        """
        return Answer.of(self._summary["answer"], str(self.path / "summary.json"))

    def value(self, name: str) -> float | None:
        """One number of the summary.

        Raises
        ------
        UsageError : there is no such number
        """
        if name not in self.summary:
            raise UsageError(f"the summary has no number {name!r}; it has {', '.join(self.summary)}")
        found: float | None = self.summary[name]["value"]
        return found

    @property
    def scenario(self) -> str:
        """The resolved scenario, YAML."""
        return (self.path / "scenario.yaml").read_text(encoding="utf-8")

    @property
    def seeds(self) -> tuple[Run, ...]:
        """The runs of several seeds, by seed; empty for a run of one seed."""
        named = ((folder.name.removeprefix("seed-"), folder) for folder in self.path.glob("seed-*/"))
        found = [(int(number), folder) for number, folder in named if number.isascii() and number.isdecimal()]
        return tuple(Run(folder) for _, folder in sorted(found))

    def table(self, name: str) -> pa.Table:
        """Read one table as Arrow, by its name.

        Names are in `weftwork.spec.result.TABLES`; an empty table has its columns.

        Raises
        ------
        UsageError : no such table, or this is a folder of several seeds, whose runs have the tables
        ConfigError : the file is damaged, or lacks a column
        """
        if not self.has_table(name):
            extra = "; this folder holds several seeds, see Run.seeds" if self.seeds else ""
            raise UsageError(f"the run has no table {name!r}, wanted {', '.join(TABLES)}{extra}")
        file = table_file(self.path, name)
        return read_table(self.path, name) if file.is_file() else table_schema(name).empty_table()

    def has_table(self, name: str) -> bool:
        """Whether the run has a table, with rows or without.

        A run of one seed has every table, and a folder of several seeds has none.
        """
        return name in TABLES and (table_file(self.path, name).is_file() or is_known_empty(self.provenance, name))

    def query(self, sql: str) -> pa.Table:
        """Ask with SQL, by DuckDB; the tables have their names.

        Raises
        ------
        UsageError : DuckDB refuses the statement, or it gives no table
        ConfigError : a file is damaged, or lacks a column

        Examples
        --------
        ``run.query("select max(fct_ps) from flows where size_bytes > 1000000")``
        """
        import duckdb

        database = self._database
        database.begin()  # and taken back: a statement leaves nothing behind for the next one
        try:
            answer = database.sql(sql)
            if answer is None:
                raise UsageError(f"the statement gives no table: {sql!r}")
            return answer.to_arrow_table()
        except duckdb.Error as error:
            raise UsageError(f"DuckDB refuses {sql!r}: {error}") from error
        finally:
            with suppress(duckdb.TransactionException):  # the statement ended the transaction itself
                database.rollback()

    @cached_property
    def _database(self) -> duckdb.DuckDBPyConnection:
        """Views of the tables, kept for later queries.

        A page asks sixty times, and connecting takes longer than an answer.
        """
        import duckdb

        database = duckdb.connect()
        create_views(database, self.path, self.provenance)
        return database


@contextmanager
def fresh_folder(path: Path) -> Iterator[Path]:
    """Make a folder that gets its name when complete.

    It vanishes if something fails.

    Raises
    ------
    ConfigError : the folder is there already, or cannot be made
    """
    refuse_existing(path)
    with unfinished(temporary_beside(path, path.name)) as folder:
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise ConfigError(str(path), [Mistake(path="output", text=f"cannot be made: {error.strerror}")]) from error
        with held(folder):
            yield folder
            refuse_existing(path)
            folder.rename(path)


def _summary_document(
    about: Mapping[str, str], numbers: Mapping[str, Mapping[str, Any]], answer: Answer
) -> dict[str, Any]:
    return {
        "about": dict(about),
        "answer": answer.to_json(),
        "numbers": {name: dict(number) for name, number in numbers.items()},
    }


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(document, indent=2, allow_nan=False) + "\n")


def finished(run: Run) -> tuple[int, int]:
    """Count the runs that delivered everything, and all runs that count.

    All seeds count that were not interrupted.
    """
    parts = run.seeds or (run,)
    counted = [part for part in parts if not part.ending.is_by_hand] or parts
    return sum(part.is_complete for part in counted), len(counted)
