"""JSON Schema (draft 2020-12) of a scenario, for editors.

Editors complete and check while one types. Made from the rows. It takes texts with units and knows keys, types, words
and bounds of numbers.
Leaves out: bounds of texts with units and what one key means for another; `load` decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from weftwork.spec.scenario.chosen import Chooser, chooser_of
from weftwork.spec.scenario.devices import device_rows
from weftwork.spec.scenario.kinds import FILE_PATTERN, DeviceKind, PolicyChoiceKind, Section, SectionList
from weftwork.spec.scenario.policies import known_policies
from weftwork.spec.scenario.rows import REQUIRED, KeyRow, rows_of
from weftwork.spec.scenario.scenario import Scenario
from weftwork.spec.scenario.sweep_keys import SWEEP_SCHEMA
from weftwork.spec.workloads import WORKLOADS

__all__ = ["json_schema", "section_schema"]


def json_schema(known: Mapping[str, Sequence[str]] | None = None) -> dict[str, Any]:
    """Make the JSON Schema of a scenario.

    Parameters
    ----------
    known : names of policies by kind; by default those that are installed

    Returns
    -------
    a schema that every scenario which `weftwork.spec.scenario.scenario.load` accepts also satisfies
    """
    names = known_policies() if known is None else known
    schema = _section(Scenario, names)
    schema["properties"]["sweep"] = SWEEP_SCHEMA
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Weftwork scenario",
        **schema,
        "required": [*schema.get("required", []), "fabric"],
        "oneOf": [{"required": [key]} for key in WORKLOADS],
    }


def section_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Make the schema of a section that names no policies, such as another language's root."""
    return _section(model, {})


def _section(model: type[BaseModel], known: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    rows = rows_of(model)
    chooser = chooser_of(model)
    properties = {row.key: _described(row, _value(row, known)) for row in rows.values()}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if chooser is None:
        schema["additionalProperties"] = False
    else:
        properties |= _options(chooser, known)
        schema |= {"if": _by_file(chooser), "else": {"propertyNames": {"enum": list(properties)}}}
    required = [row.key for row in rows.values() if row.default == REQUIRED]
    return {**schema, "required": required} if required else schema


def _options(chooser: Chooser, known: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Keys of all choices.

    A key that several choices share allows the values of each.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for row in chooser.rows():
        found.setdefault(row.key, []).append(_described(row, _value(row, known)))
    return {key: each[0] if len(each) == 1 else {"anyOf": each} for key, each in found.items()}


def _by_file(chooser: Chooser) -> dict[str, Any]:
    """Whether the choice is a user's file, whose keys are unknown here."""
    key = chooser.row.key
    return {"properties": {key: {"type": "string", "pattern": FILE_PATTERN}}, "required": [key]}


def _described(row: KeyRow, schema: dict[str, Any]) -> dict[str, Any]:
    unit = f" Unit: {row.unit}." if row.unit in {"bits per second", "bytes", "picoseconds", "metres"} else ""
    default = "" if row.default is None or row.default == REQUIRED else f" Default: {row.default_text}."
    nullable = row.default is None
    return {
        "description": f"{row.text}{unit}{default}",
        **({"anyOf": [schema, {"type": "null"}]} if nullable else schema),
    }


def _value(row: KeyRow, known: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    kind = row.kind
    if isinstance(kind, Section):
        return _section(kind.model, known)
    if isinstance(kind, SectionList):
        return {"type": "array", "items": _section(kind.model, known)}
    if isinstance(kind, PolicyChoiceKind):
        return _policy(list(known.get(kind.folder, ())))
    if isinstance(kind, DeviceKind):
        fields = _fields(kind.record)
        fields["properties"][kind.head] = {"type": "string", "description": "A name of the catalogue."}
        return {"anyOf": [{"type": "string"}, fields]}
    return kind.json()


def _policy(names: list[str]) -> dict[str, Any]:
    named = {"enum": names}
    file = {"type": "string", "pattern": FILE_PATTERN}
    either = {"anyOf": [named, file]}
    parameter = {"type": ["string", "number", "boolean"]}
    mapping = {
        "type": "object",
        "properties": {"name": either, "file": either},
        "oneOf": [{"required": ["name"]}, {"required": ["file"]}],
        "additionalProperties": parameter,
    }
    return {"anyOf": [named, file, mapping]}


def _fields(record: type[BaseModel]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for row in device_rows(record).values():
        value = _fields(row.kind.model) if isinstance(row.kind, Section) else _value(row, {})
        properties[row.key] = _described(row, value)
    return {"type": "object", "properties": properties, "additionalProperties": False}
