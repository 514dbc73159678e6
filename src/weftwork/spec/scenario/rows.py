"""A key of the scenario as a row.

The row has name, kind with unit, default, allowed values, one sentence and source. Reading, writing, ``weftwork
explain``, the JSON Schema and the reference page are all made from these rows.
"""
# ruff: noqa: ANN401 - a default is whatever its kind makes of it, and a field's declaration has its field's type

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, Field

from weftwork.spec.scenario.effects import ALWAYS, Effect
from weftwork.spec.scenario.kinds import (
    Choice,
    DeviceKind,
    Flag,
    Kind,
    Measure,
    Number,
    PolicyChoiceKind,
    RatesByTier,
    Ratio,
    Section,
    SectionList,
    Text,
    Whole,
    WrongValueError,
)
from weftwork.spec.scenario.yaml_tree import Mapping, Node, Scalar, YamlEntry

__all__ = [
    "REQUIRED",
    "KeyRow",
    "applies",
    "as_node",
    "outside",
    "resolved_default",
    "row",
    "rows_of",
    "selector",
    "shown",
]

REQUIRED = "required"


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyRow:
    """The row of one key.

    Parameters
    ----------
    key : as it stands in a file
    field : name of the resolved value, with its unit
    kind : how a value is read, written and described
    default : as a user would write it; `REQUIRED`, or None where absence has the meaning that ``absent`` says
    absent : what it means to leave the key out, where there is no default
    text : one sentence
    source : where the default comes from, or ``chosen: why``
    only : another key of the same section and its values for which this one means anything
    unless : another key of the same section and its values for which this one means nothing
    effect : the runs in which the key has one; by default all
    path : dotted path from the root, filled in where all rows are listed
    """

    key: str
    field: str = ""
    kind: Kind
    default: Any = None
    absent: str = ""
    text: str
    source: str
    only: tuple[str, tuple[str, ...]] | None = None
    unless: tuple[str, tuple[str, ...]] | None = None
    effect: Effect = ALWAYS
    path: str = ""

    @property
    def unit(self) -> str:
        """Unit of the resolved value."""
        return self.kind.unit

    @property
    def allowed(self) -> str:
        """Allowed values in words."""
        return self.kind.wanted

    @property
    def default_text(self) -> str:
        """The default in words."""
        if self.default is None:
            return f"none: {self.absent}" if self.absent else "none"
        if isinstance(self.default, bool):
            return str(self.default).lower()
        if isinstance(self.default, tuple):
            return f"[{', '.join(str(item) for item in self.default)}]"
        return str(self.default)


def row(  # noqa: PLR0913 - the fields of a row, all but two by name
    key: str,
    kind: Kind,
    *,
    text: str,
    source: str,
    default: Any = None,
    absent: str = "",
    only: tuple[str, tuple[str, ...]] | None = None,
    unless: tuple[str, tuple[str, ...]] | None = None,
    effect: Effect = ALWAYS,
) -> Any:
    """Declare a field of a section by its row; see `KeyRow`.

    A section read from a file has all defaults filled in; one made in Python those that ``only`` and ``unless`` do
    not restrict.
    """
    described = KeyRow(
        key=key,
        kind=kind,
        default=default,
        absent=absent,
        text=text,
        source=source,
        only=only,
        unless=unless,
        effect=effect,
    )
    extra: Any = {"row": described}
    if default == REQUIRED:
        return Field(json_schema_extra=extra)
    if isinstance(kind, Section):
        return (
            Field(default=None, json_schema_extra=extra)
            if kind.optional
            else Field(default_factory=kind.model, json_schema_extra=extra)
        )
    if isinstance(kind, PolicyChoiceKind | DeviceKind | SectionList):
        return Field(json_schema_extra=extra)
    has_condition = only is not None or unless is not None
    return Field(
        default=None if default is None or has_condition else resolved_default(described), json_schema_extra=extra
    )


def resolved_default(described: KeyRow) -> Any:
    """Return the resolved default of a row of a simple kind."""
    kind, default = described.kind, described.default
    if (
        default is None
        or default == REQUIRED
        or isinstance(kind, PolicyChoiceKind | DeviceKind | Section | SectionList)
    ):
        return None
    if isinstance(default, tuple):
        return default
    text = str(default).lower() if isinstance(default, bool) else str(default)
    return kind.read(Scalar(text=text))


def selector(described: KeyRow) -> str | None:
    """Return the key on which a row's meaning depends, or None."""
    condition = described.only or described.unless
    return None if condition is None else condition[0]


def outside(described: KeyRow, value: object) -> WrongValueError | None:
    """Explain why a Python value is not allowed by its row, or return None.

    The words are those for a file with the value. Numbers, quantities, words and flags are judged.
    """
    kind = described.kind
    if value is None or not isinstance(kind, Measure | Whole | Number | Ratio | RatesByTier | Flag | Choice | Text):
        return None
    try:
        kind.read(as_node(kind.write(value)))
    except WrongValueError as wrong:
        return wrong
    return None


def as_node(written: object) -> Node:
    """Convert a written value to a node of a file."""
    if isinstance(written, dict):
        return Mapping(entries=tuple(YamlEntry(key=str(key), node=as_node(one)) for key, one in written.items()))
    return Scalar(text=shown(written))


def applies(described: KeyRow, chosen: object) -> bool:
    """Whether a row applies when its selector key is ``chosen``."""
    if described.unless is not None:
        return shown(chosen) not in described.unless[1]
    return described.only is None or shown(chosen) in described.only[1]


def shown(value: object) -> str:
    """Return a value of a key as written in a file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def rows_of(model: type[BaseModel]) -> dict[str, KeyRow]:
    """Return the rows of a section by field name, in the order of declaration."""
    found: dict[str, KeyRow] = {}
    for name, info in model.model_fields.items():
        extra: Any = info.json_schema_extra
        described = extra.get("row") if isinstance(extra, dict) else None
        if isinstance(described, KeyRow):
            found[name] = replace(described, field=name)
    return found
