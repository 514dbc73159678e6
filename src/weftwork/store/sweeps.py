"""The folder of a sweep.

It has the question, a run folder for each point and seed, and one table of the results.

``sweep.json`` is written first and says which sweep it is; ``runs`` holds the run folders, each whole or not there;
``table.parquet``, ``table.csv`` and ``result.json`` are written when the sweep ends, each whole, and ``command.txt``
has the command that made it. One process at a time writes: it holds a lock on ``sweep.lock``, which the system releases
when the process ends, however it ends. The folders of a tuning, of a crossing and of a design are held likewise, by
files named ``tune``, ``cross`` and ``design``.
Leaves out: the page, which `weftwork.report` makes; file systems without locks, such as some over networks.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Literal

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.stop import unfinished
from weftwork.base.whole_file import temporary_beside, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

    from weftwork.spec.sweep import SweepResult

__all__ = [
    "RUNS", "SWEEP_FORMAT", "is_sweep", "read_command", "read_result", "sweep_folder", "sweep_table", "write_command",
    "write_result",
]  # fmt: skip

RUNS: Final = "runs"
SWEEP_FORMAT: Final = 1  # of sweep.json and of the names in the folder
_COMMAND: Final = "command.txt"
Kind = Literal["sweep", "tune", "cross", "design"]
_NOUN: Final = {"sweep": "sweep", "tune": "tuning", "cross": "crossing", "design": "design"}


@contextmanager
def sweep_folder(path: Path, document: Mapping[str, Any], kind: Kind = "sweep") -> Iterator[Path]:
    """Hold the folder of a sweep or a tuning, new or existing.

    Nobody else can write to it meanwhile.

    Parameters
    ----------
    path : of the folder
    document : what is asked for; ``digest`` tells one sweep from another
    kind : what the folder is of

    Yields
    ------
    the folder of its runs

    Raises
    ------
    ConfigError : it is another sweep's or no sweep's, another process writes to it, or it cannot be made
    """
    try:
        (path / RUNS).mkdir(parents=True, exist_ok=True)
        # opened so that no child inherits it: the lock ends with this process
        lock = os.open(path / f"{kind}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise _wrong(path, f"cannot be made: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            text = f"another weftwork {kind} is writing to it; wait until it ends, or name another folder"
            raise _wrong(path, text) from error
        _claim(path, document, kind)
        yield path / RUNS
    finally:
        os.close(lock)


def _claim(path: Path, document: Mapping[str, Any], kind: Kind) -> None:
    """Write the identity of the folder's sweep, or refuse another sweep."""
    file = path / f"{kind}.json"
    if not file.exists():
        own = {f"{kind}.lock", file.name, RUNS}  # what may have been written before it was ended at once
        others = [one.name for one in path.iterdir() if one.name not in own]
        if others or any((path / RUNS).iterdir()):
            raise _wrong(path, f"has other contents than a {_NOUN[kind]}; name another folder")
        write_whole(file, json.dumps({"format": SWEEP_FORMAT, **document}, indent=2) + "\n")
        return
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _wrong(path, f"{file.name} cannot be read: {error}") from error
    if found.get("digest") != document["digest"]:
        version = found.get("weftwork", "an unknown version")
        text = (
            f"holds another {_NOUN[kind]}, of Weftwork {version}: other keys, values, seeds, scenario or files of your"
            " own; name another folder"
        )
        raise _wrong(path, text)


def write_result(path: Path, result: SweepResult) -> None:
    """Write table and result of a sweep, each file atomically.

    Existing files are replaced.

    Parameters
    ----------
    path : the folder of the sweep
    result : what came of it
    """
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    table = sweep_table(result)
    target = path / "table.parquet"
    with unfinished(temporary_beside(target)) as temporary:
        pq.write_table(table, temporary)
        temporary.replace(target)
    text = io.BytesIO()
    pc.write_csv(table, text)
    write_whole(path / "table.csv", text.getvalue().decode())
    write_whole(path / "result.json", json.dumps(asdict(result), indent=2, allow_nan=False) + "\n")


def is_sweep(path: Path) -> bool:
    """Whether a folder is the folder of a sweep, finished or not."""
    return (path / "sweep.json").is_file()


def write_command(path: Path, command: str) -> None:
    """Write the command that made and continues a sweep into its folder."""
    write_whole(path / _COMMAND, command + "\n")


def read_command(path: Path) -> str:
    """Return the command that made a sweep, a tuning or a design.

    If Python made it, the command has the folder alone.
    """
    file = path / _COMMAND
    if file.is_file():
        return file.read_text(encoding="utf-8").strip()
    if (path / "cross.json").is_file():
        return f"weftwork cross -o {path}"
    command = "design" if (path / "design.json").is_file() else "sweep" if is_sweep(path) else "tune"
    return f"weftwork {command} FILE -o {path}"


def read_result(path: Path) -> SweepResult:
    """Read the result of a sweep.

    Parameters
    ----------
    path : the folder of the sweep

    Raises
    ------
    ConfigError : the sweep has not ended, or its result is damaged
    """
    from pydantic import TypeAdapter, ValidationError

    from weftwork.spec.sweep import SweepResult

    file = path / "result.json"
    try:
        found: SweepResult = TypeAdapter(SweepResult).validate_json(file.read_bytes())
    except FileNotFoundError as error:
        text = f"the sweep has not ended, so there is no result; continue with: {read_command(path)}"
        raise ConfigError(str(path), [Mistake(path="sweep", text=text)]) from error
    except (OSError, ValidationError) as error:
        text = f"result.json cannot be read; write it again with: {read_command(path)}"
        raise ConfigError(str(path), [Mistake(path="sweep", text=text)]) from error
    return found


def sweep_table(result: SweepResult) -> pa.Table:
    """One row for each point: keys, status, and all numbers.

    Returns
    -------
    ``point``, a column of text for each key, ``status``, ``reason``, ``runs`` (how many are there), then each number of
    the summary by its name, the mean over the seeds; with several seeds its 95 % interval, ``<name>_low`` and ``_high``
    """
    import pyarrow as pa

    columns: dict[str, Any] = {"point": pa.array([row.place for row in result.rows], pa.int64())}
    for key in result.rows[0].values if result.rows else ():
        columns[key] = pa.array([row.values[key] for row in result.rows], pa.string())
    for name in ("status", "reason"):
        columns[name] = pa.array([getattr(row, name) for row in result.rows], pa.string())
    columns["runs"] = pa.array([len(row.runs) for row in result.rows], pa.int64())
    for name in dict.fromkeys(name for row in result.rows for name in row.numbers):
        ends = {"": "value", "_low": "low", "_high": "high"} if result.seeds > 1 else {"": "value"}
        for ending, which in ends.items():
            values = [row.numbers.get(name, {}).get(which) for row in result.rows]
            columns[f"{name}{ending}"] = pa.array(values, pa.float64())
    return pa.table(columns)


def _wrong(path: Path, text: str) -> ConfigError:
    return ConfigError(str(path), [Mistake(path="output", text=text)])
