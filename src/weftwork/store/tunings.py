"""The folder of a tuning.

It has the question, run folders, a table of trials, and scenarios with the best values.

``tune.json`` is written first and says which tuning it is; ``runs``, ``finalists`` and ``fresh`` hold the run folders
of its three phases; ``trials.csv``, ``result.json`` and the tuned scenarios are written when it ends, each whole.
`weftwork.store.sweeps` holds the folder.
Leaves out: the page, which `weftwork.report` makes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.whole_file import write_whole
from weftwork.store.sweeps import read_command

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from weftwork.spec.tuning import TuneResult

__all__ = ["is_tuning", "read_tuning", "trials_table", "write_tuning"]


def is_tuning(path: Path) -> bool:
    """Whether a folder is the folder of a tuning, finished or not."""
    return (path / "tune.json").is_file()


def write_tuning(path: Path, result: TuneResult, tuned: Mapping[str, str]) -> None:
    """Write the result of a tuning, each file atomically.

    Existing files are replaced.

    Parameters
    ----------
    path : the folder of the tuning
    result : what came of it
    tuned : name of a file to a scenario with the best values
    """
    import pyarrow.csv as pc

    text = io.BytesIO()
    pc.write_csv(trials_table(result), text)
    write_whole(path / "trials.csv", text.getvalue().decode())
    for name, scenario in tuned.items():
        write_whole(path / name, scenario)
    write_whole(path / "result.json", json.dumps(asdict(result), indent=2, allow_nan=False) + "\n")


def read_tuning(path: Path) -> TuneResult:
    """Read the result of a tuning.

    Parameters
    ----------
    path : the folder of the tuning

    Raises
    ------
    ConfigError : the tuning has not ended, or its result is damaged
    """
    from pydantic import TypeAdapter, ValidationError

    from weftwork.spec.tuning import TuneResult

    try:
        found: TuneResult = TypeAdapter(TuneResult).validate_json((path / "result.json").read_bytes())
    except FileNotFoundError as error:
        text = f"the tuning has not ended, so there is no result; continue with: {read_command(path)}"
        raise ConfigError(str(path), [Mistake(path="tune", text=text)]) from error
    except (OSError, ValidationError) as error:
        text = f"result.json cannot be read; write it again with: {read_command(path)}"
        raise ConfigError(str(path), [Mistake(path="tune", text=text)]) from error
    return found


def trials_table(result: TuneResult) -> pa.Table:
    """One row for each trial: its values, its status, and its score.

    Returns
    -------
    ``trial``, a column of text for each parameter, ``status``, ``reason``, ``same_as`` (an earlier trial with the same
    values) and ``score``; trial 0 has the values of the files
    """
    import pyarrow as pa

    columns: dict[str, Any] = {"trial": pa.array([one.number for one in result.trials], pa.int64())}
    for parameter in result.parameters:
        texts = [one.values.get(parameter.key, parameter.before) for one in result.trials]
        columns[parameter.key] = pa.array(texts, pa.string())
    for name in ("status", "reason"):
        columns[name] = pa.array([getattr(one, name) for one in result.trials], pa.string())
    columns["same_as"] = pa.array([one.same_as for one in result.trials], pa.int64())
    columns["score"] = pa.array([one.score for one in result.trials], pa.float64())
    return pa.table(columns)
