"""The folder of a crossing.

It has the question, a run folder for each contender, setting and seed, and the result.

``cross.json`` is written first; ``table.csv`` and ``result.json`` when the crossing ends, each whole.
Leaves out: the page and the picture, which `weftwork.report` makes.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.whole_file import write_whole
from weftwork.spec.crossing import PRICES, CrossingResult
from weftwork.store.sweeps import read_command, sweep_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

__all__ = ["crossing_folder", "is_crossing", "read_crossing", "write_crossing"]


def crossing_folder(path: Path, document: Mapping[str, Any]) -> AbstractContextManager[Path]:
    """Hold the folder of a crossing, new or existing.

    Its parameters are those of `sweep_folder`.
    """
    return sweep_folder(path, document, "cross")


def is_crossing(path: Path) -> bool:
    """Whether a folder is the folder of a crossing, finished or not."""
    return (path / "cross.json").is_file()


def write_crossing(path: Path, result: CrossingResult) -> None:
    """Write table and result of a crossing, each file atomically.

    Existing files are replaced.
    """
    write_whole(path / "table.csv", _table(result))
    write_whole(path / "result.json", json.dumps(asdict(result), indent=1, allow_nan=False) + "\n")


def _table(result: CrossingResult) -> str:
    """A row for each cell."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    seeds = [f"seed_{seed + 1}" for seed in range(result.seeds)]
    columns = ("ratio", "low", "high", "behind", "behind_low", "behind_high")
    out.writerow(
        ["congestion_control", "balancer", "carried", "workload", "link_fails", "objective", "unit", *columns,
         "is_best", "reason", *PRICES, *seeds]
    )  # fmt: skip
    for cell in result.cells:
        contender, setting = result.contenders[cell.contender], result.settings[cell.setting]
        values = [repr(value) for value in cell.values] or [""] * result.seeds
        out.writerow(
            [contender.control, contender.balancer, contender.carried, setting.workload, setting.is_failed,
             setting.objective, setting.unit, *(_text(getattr(cell, name)) for name in columns), cell.is_best,
             cell.reason, *(_text(cell.prices.get(name)) for name in PRICES), *values]
        )  # fmt: skip
    return text.getvalue()


def _text(value: float | None) -> str:
    return "" if value is None else repr(value)


def read_crossing(path: Path) -> CrossingResult:
    """Read the result of a crossing.

    Raises
    ------
    ConfigError : the crossing has not ended, or its result is damaged
    """
    from pydantic import TypeAdapter, ValidationError

    file = path / "result.json"
    try:
        found: CrossingResult = TypeAdapter(CrossingResult).validate_json(file.read_bytes())
    except FileNotFoundError as error:
        text = f"the crossing has not ended, so there is no result; continue with: {read_command(path)}"
        raise ConfigError(str(path), [Mistake(path="cross", text=text)]) from error
    except (OSError, ValidationError) as error:
        text = f"result.json cannot be read; write it again with: {read_command(path)}"
        raise ConfigError(str(path), [Mistake(path="cross", text=text)]) from error
    return found
