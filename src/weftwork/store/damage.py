"""Damage in the files of a run's folder, found before reading.

Leaves out: the values in the tables; of a Parquet file only its two ends are looked at, which a truncated one lacks.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.caveat import caveats_of
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.plain_file import read_ends, read_plain
from weftwork.spec.answer import Answer
from weftwork.spec.result import TABLES
from weftwork.spec.scenario.yaml_tree import Mapping, read_tree

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FORMAT", "damages", "read_json"]

# Of the folder; a reader refuses what is newer. 2: caveats in place of facts; 3: columns `place` and `change`, and the
# provenance has the number of rows of each table
FORMAT: Final = 3
STATUSES: Final = ("complete", "interrupted", "stopped", "stuck", "deadlocked")
_MAGIC: Final = b"PAR1"  # first and last four bytes of a Parquet file, parquet-format README, "File format"


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises
    ------
    ConfigError : it cannot be read, or is something else
    """
    try:
        document = json.loads(read_plain(path))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(str(path), [Mistake(path="file", text=f"cannot be read: {error}")]) from error
    if not isinstance(document, dict):
        raise ConfigError(str(path), [Mistake(path="file", text="wanted a JSON object")])
    return document


def damages(folder: Path) -> list[Mistake]:
    """Find missing or wrong files in a run's folder.

    Each mistake names the file.

    Parameters
    ----------
    folder : that holds ``summary.json`` and ``provenance.json``; folders of seeds in it are looked at too
    """
    found, listed = _in_one(folder)
    there = {seed.name for seed in folder.glob("seed-*")}
    there.update(f"seed-{seed}" for seed in listed.get("seeds", ()))
    for name in sorted(there):
        wrongs, own = _in_one(folder / name)
        found += [Mistake(path=f"{name}/{wrong.path}", text=wrong.text) for wrong in wrongs]
        if "seeds" in own:  # also of a link that leads back to this folder
            found.append(Mistake(path=name, text="holds several seeds itself, wanted the run of one"))
    return found


def _in_one(folder: Path) -> tuple[list[Mistake], dict[str, Any]]:
    """Damage in a folder without its seeds, and its valid provenance."""
    found: list[Mistake] = []
    listed: dict[str, Any] = {}
    for name, check in (("provenance.json", _in_provenance), ("summary.json", _in_summary)):
        try:
            document = read_json(folder / name)
            texts = check(document)
        except ConfigError as error:
            texts = [mistake.text for mistake in error.mistakes]
        else:
            listed = document if name == "provenance.json" and not texts else listed
        found += [Mistake(path=name, text=text) for text in texts]
    found += [Mistake(path="scenario.yaml", text=text) for text in _in_scenario(folder / "scenario.yaml")]
    for name in TABLES:
        file = folder / f"{name}.parquet"
        if os.path.lexists(file):
            if text := _in_parquet(file):
                found.append(Mistake(path=file.name, text=text))
        elif _has_rows(listed.get("tables", ()), name):
            found.append(Mistake(path=file.name, text="is missing"))
    return found, listed


def _in_provenance(document: dict[str, Any]) -> list[str]:
    version = document.get("format")
    if not isinstance(version, int) or isinstance(version, bool):
        return [f"found the format {version!r}, wanted {FORMAT}"]
    if version > FORMAT:
        return [f"found the format {version}, wanted at most {FORMAT}: it comes from a newer Weftwork"]
    if document.get("status") not in STATUSES:
        return [f"found the status {document.get('status')!r}, wanted {', '.join(STATUSES)}"]
    seeds, tables = document.get("seeds", []), document.get("tables", [])
    if not isinstance(seeds, list) or not all(isinstance(seed, int) for seed in seeds):
        return ["'seeds' is not a list of whole numbers"]
    if isinstance(tables, dict):
        if not all(isinstance(rows, int) and rows >= 0 for rows in tables.values()):
            return ["'tables' does not have the number of rows of each table"]
    elif not isinstance(tables, list) or not all(isinstance(name, str) for name in tables):
        return ["'tables' is not a list of names"]
    try:
        caveats_of(document, "provenance.json")
    except ConfigError as error:
        return [f"'{mistake.path}': {mistake.text}" for mistake in error.mistakes]
    return []


def _has_rows(tables: dict[str, int] | list[str], name: str) -> bool:
    """Whether a table has a file.

    In folders before format 3 every listed table has one.
    """
    return tables.get(name, 0) > 0 if isinstance(tables, dict) else name in tables


def _in_summary(document: dict[str, Any]) -> list[str]:
    about, numbers = document.get("about"), document.get("numbers")
    wrong = []
    if not isinstance(about, dict) or not all(isinstance(text, str) for text in about.values()):
        wrong.append("'about' is missing or holds something other than text")
    if "answer" in document:
        try:
            Answer.of(document["answer"], "summary.json")
        except ConfigError as error:
            wrong += [f"'{mistake.path}' {mistake.text}" for mistake in error.mistakes]
    if not isinstance(numbers, dict):
        return [*wrong, "'numbers' is missing"]
    for name, number in numbers.items():
        keys = ("value", "low", "high") if isinstance(number, dict) and "seeds" in number else ("value",)
        if not (
            isinstance(number, dict)
            and isinstance(number.get("unit"), str)
            and all(key in number and _is_number(number[key]) for key in keys)
        ):
            wrong.append(f"the number '{name}' lacks a unit, or one of {', '.join(keys)} as a number or null")
    return wrong


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _in_scenario(file: Path) -> list[str]:
    try:
        text = read_plain(file).decode()
    except (OSError, UnicodeDecodeError) as error:
        return [f"cannot be read: {error}"]
    root, mistakes = read_tree(text)
    if mistakes:
        return [mistake.text for mistake in mistakes]
    return [] if isinstance(root, Mapping) else ["wanted a scenario, a mapping"]


def _in_parquet(file: Path) -> str | None:
    try:
        head, tail = read_ends(file, len(_MAGIC))
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None if head == tail == _MAGIC else "is no Parquet file, or has lost its end"
