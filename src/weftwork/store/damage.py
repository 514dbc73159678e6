"""Damage in the files of a run's folder, found before reading.

A folder that lacks anything that a run of this version writes is refused, so that whoever reads it need not ask.
Leaves out: columns and values of the tables (`weftwork.store.tables`); of a Parquet file only its two ends are looked
at, which a truncated one lacks.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.caveat import caveats_of
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.findings import Findings
from weftwork.base.plain_file import read_ends, read_plain
from weftwork.spec.answer import Answer
from weftwork.spec.endings import STATUSES
from weftwork.spec.result import TABLES
from weftwork.spec.scenario.yaml_tree import Mapping, read_tree

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["FORMAT", "PROVENANCE", "RUN_AGAIN", "damages", "read_json"]

# Of the folder: whatever changes a name of a file, a key, a number or a column that a reader needs raises it, and a
# reader refuses any other. 3 is that of the first release.
FORMAT: Final = 3
RUN_AGAIN: Final = "run the scenario again"
_PROVENANCE_OF_ALL: Final = (
    "weftwork", "commit", "schema", "engine", "policies", "machine", "notes", "caveats", "files", "started", "wall_s",
    "numbers",
)  # fmt: skip
# Keys of every provenance.json, for a run of one seed and of several. More may be there: files of the user's own,
# a calibration, a capture, the name of the run.
PROVENANCE: Final[dict[str, tuple[str, ...]]] = {
    "one": (
        *_PROVENANCE_OF_ALL, "seed", "digest", "digest_version", "set_up_s", "engine_s", "estimate",
        "peak_memory_bytes", "tables",
    ),
    "several": (*_PROVENANCE_OF_ALL, "seeds", "seeds_wanted"),
}  # fmt: skip
_ABOUT: Final = ("name", "workload", "fabric", "transport")
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
    findings = Findings(source=str(folder))
    listed = _in_one(folder, findings)
    there = {seed.name for seed in folder.glob("seed-*")}
    there.update(f"seed-{seed}" for seed in listed.get("seeds", ()))
    for name in sorted(there):
        if "seeds" in _in_one(folder / name, findings, f"{name}/"):  # also of a link that leads back to this folder
            findings.wrong(name, "holds several seeds itself, wanted the run of one")
    return findings.mistakes


def _in_one(folder: Path, findings: Findings, below: str = "") -> dict[str, Any]:
    """The valid provenance of a folder; damage in it, without its seeds, is noted.

    Parameters
    ----------
    below : stands before the names of files
    """
    listed: dict[str, Any] = {}
    try:
        provenance = read_json(folder / "provenance.json")
        texts = _in_provenance(provenance)
    except ConfigError as error:
        texts = [mistake.text for mistake in error.mistakes]
    else:
        listed = {} if texts else provenance
    for text in texts:
        findings.wrong(f"{below}provenance.json", text)
    try:
        texts = _in_summary(read_json(folder / "summary.json"), listed.get("numbers", ()))
    except ConfigError as error:
        texts = [mistake.text for mistake in error.mistakes]
    for text in texts:
        findings.wrong(f"{below}summary.json", text)
    for text in _in_scenario(folder / "scenario.yaml"):
        findings.wrong(f"{below}scenario.yaml", text)
    for name in TABLES:
        file = folder / f"{name}.parquet"
        if os.path.lexists(file):
            if reason := _in_parquet(file):
                findings.wrong(f"{below}{file.name}", reason)
        elif listed.get("tables", {}).get(name, 0) > 0:
            findings.wrong(f"{below}{file.name}", f"is missing; {RUN_AGAIN}")
    return listed


def _in_provenance(document: dict[str, Any]) -> list[str]:
    version = document.get("format")
    if not isinstance(version, int) or isinstance(version, bool):
        return [f"found the format {version!r}, wanted {FORMAT}"]
    if version > FORMAT:
        return [f"found the format {version}, wanted {FORMAT}: it comes from a newer Weftwork"]
    if version < FORMAT:
        return [f"found the format {version}, wanted {FORMAT}; {RUN_AGAIN}"]
    if document.get("status") not in STATUSES:
        return [f"found the status {document.get('status')!r}, wanted {', '.join(STATUSES)}"]
    wanted = PROVENANCE["several" if "seeds" in document else "one"]
    return [f"lacks '{key}'; {RUN_AGAIN}" for key in wanted if key not in document] or _in_lists(document)


def _in_lists(document: dict[str, Any]) -> list[str]:
    """Damage in the lists of a provenance that has all its keys."""
    wrong = []
    seeds, numbers, tables = document.get("seeds", []), document["numbers"], document.get("tables", {})
    if not isinstance(seeds, list) or not all(isinstance(seed, int) for seed in seeds):
        wrong.append("'seeds' is not a list of whole numbers")
    if not isinstance(numbers, list) or not all(isinstance(name, str) for name in numbers):
        wrong.append("'numbers' is not a list of names")
    if not isinstance(tables, dict) or not all(isinstance(rows, int) and rows >= 0 for rows in tables.values()):
        wrong.append("'tables' does not have the number of rows of each table")
    elif "seeds" not in document:
        wrong += [f"'tables' lacks '{name}'; {RUN_AGAIN}" for name in TABLES if name not in tables]
    for key in ("files", "policies"):
        records = document[key]
        if not isinstance(records, dict) or not all(
            isinstance(one, dict) and "hash" in one for one in records.values()
        ):
            wrong.append(f"'{key}' does not have the hash of each file")
    if not isinstance(document["machine"], dict):
        wrong.append("'machine' is not a mapping")
    try:
        caveats_of(document, "provenance.json")
    except ConfigError as error:
        wrong += [f"'{mistake.path}': {mistake.text}" for mistake in error.mistakes]
    return wrong


def _in_summary(document: dict[str, Any], names: Iterable[str]) -> list[str]:
    """Damage in a summary, of which the provenance lists the ``names`` of the numbers."""
    about, numbers = document.get("about"), document.get("numbers")
    wrong = []
    if not isinstance(about, dict) or not all(isinstance(text, str) for text in about.values()):
        wrong.append("'about' is missing or holds something other than text")
    else:
        wrong += [f"'about' lacks '{key}'; {RUN_AGAIN}" for key in _ABOUT if key not in about]
    if "answer" not in document:
        wrong.append(f"lacks 'answer'; {RUN_AGAIN}")
    else:
        try:
            Answer.of(document["answer"], "summary.json")
        except ConfigError as error:
            wrong += [f"'{mistake.path}' {mistake.text}" for mistake in error.mistakes]
    if not isinstance(numbers, dict):
        return [*wrong, f"lacks 'numbers'; {RUN_AGAIN}"]
    wrong += [f"lacks the number '{name}'; {RUN_AGAIN}" for name in names if name not in numbers]
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
    findings = Findings()
    root = read_tree(text, findings)
    if findings.has_mistakes:
        return [mistake.text for mistake in findings.mistakes]
    return [] if isinstance(root, Mapping) else ["wanted a scenario, a mapping"]


def _in_parquet(file: Path) -> str | None:
    try:
        head, tail = read_ends(file, len(_MAGIC))
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None if head == tail == _MAGIC else "is no Parquet file, or has lost its end"
