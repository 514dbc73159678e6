"""Keys of a scenario: those that its JSON schema prints, and small scenarios in which one of them has another value.

Leaves out: the rows themselves (`tests/runs/study/keys/rows.yaml`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.migrations import SCHEMA

FIDELITIES = ("packet", "flow")  # the reference agrees with packets to the bit, which is a test of its own

__all__ = ["FIDELITIES", "Refused", "Row", "Said", "printed_keys", "rows_in", "said_of", "with_value"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A key, and two of its values that have different results.

    Attributes
    ----------
    key : as `printed_keys` has it
    base : name of a small scenario
    first, second : the values
    changes : other keys of the base that have another value, by their path; None takes one away
    differs : what is different
    fidelities : those on which it is different
    refused_on : those on which the key is refused
    """

    key: str
    base: str
    first: Any
    second: Any
    changes: Mapping[str, Any] = field(default_factory=dict)
    differs: tuple[str, ...] = ("digest",)
    fidelities: tuple[str, ...] = FIDELITIES
    refused_on: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a run said, as far as values of keys are told apart by it; ``notes`` by what they are about.

    Tables are made text only where they are compared: most rows compare digests, and text is a tenth of a run's time.
    """

    digest: str
    summary: str
    run_tables: Mapping[str, pa.Table]
    about: Mapping[str, str]
    notes: Mapping[str, str]

    @cached_property
    def tables(self) -> Mapping[str, str]:
        """Text of each table, in which a NaN equals a NaN."""
        return {name: str(table.to_pydict()) for name, table in self.run_tables.items()}

    def of(self, what: str) -> object:
        """One part of it, such as ``digest``, ``tables`` or ``tables.series``."""
        part, _, name = what.partition(".")
        found = getattr(self, part)
        return found[name] if name else found


@dataclass(frozen=True, kw_only=True)
class Refused:
    """The keys at which a scenario was refused."""

    paths: tuple[str, ...]
    text: str


def printed_keys(schema: Mapping[str, Any]) -> Counter[str]:
    """Every key of a JSON schema, and in how many senses it has it.

    Parameters
    ----------
    schema : of a scenario; a key that several choices have is there as `anyOf` with a description for each
    """
    found: Counter[str] = Counter()
    for path, described in _properties(schema, ""):
        senses = [each for each in described.get("anyOf", ()) if "description" in each]
        found[path] = max(found[path], len(senses), 1)
    return found


def _properties(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for word in ("anyOf", "oneOf", "allOf"):
        for branch in schema.get(word, ()):
            yield from _properties(branch, path)
    if isinstance(schema.get("items"), dict):
        yield from _properties(schema["items"], f"{path}[]")
    for key, below in schema.get("properties", {}).items():
        at = f"{path}.{key}" if path else key
        yield at, below
        yield from _properties(below, at)


def rows_in(text: str) -> list[Row]:
    """Read rows from YAML; a word that a row does not know is an error."""
    return [_row(dict(one)) for one in yaml.safe_load(text)]


def _row(one: dict[str, Any]) -> Row:
    lists = {name: tuple(one.pop(name)) for name in ("differs", "fidelities", "refused_on") if name in one}
    return Row(changes=one.pop("with", {}), **one, **lists)


def with_value(base: Mapping[str, Any], row: Row, value: Any, fidelity: str) -> dict[str, Any]:
    """The scenario of a row in which its key has a value."""
    document: dict[str, Any] = {"schema": SCHEMA, **deepcopy(dict(base))}
    for path, other in row.changes.items():
        _put(document, path, other)
    _put(document, "engine.fidelity", fidelity)
    _put(document, row.key, value)
    return document


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    *around, last = path.split(".")
    at: Any = document
    for key in around:
        name = key.removesuffix("[]")
        if not isinstance(at.get(name), list if name != key else dict):
            at[name] = [{}] if name != key else {}
        at = at[name][0] if name != key else at[name]
    if value is None:
        at.pop(last, None)
    else:
        at[last] = value


def said_of(document: Mapping[str, Any], folder: Path) -> Said | Refused:
    """What a run of a scenario says, or where it was refused; nothing is written but the scenario.

    Parameters
    ----------
    document : the scenario
    folder : into which its file is written
    """
    text = json.dumps(document, sort_keys=True)  # which is YAML as well
    file = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.yaml"
    file.write_text(text, encoding="utf-8")
    try:
        scenario = weftwork.read_scenario(file)
        prepared = weftwork.prepare(scenario)
    except ConfigError as wrong:
        return Refused(paths=tuple(mistake.path for mistake in wrong.mistakes), text=str(wrong))
    result = weftwork.results(prepared, weftwork.execute(prepared, what_if="none"))
    return Said(
        digest=result.digest,
        summary=str({name: (quantity.value, quantity.unit) for name, quantity in result.summary.items()}),
        run_tables=result.tables,
        about={name: text for name, text in result.about.items() if name != "name" or text != file.stem},
        notes={one.subject: one.text for one in result.caveats.values() if one.kind in {"ignored", "note"}},
    )
