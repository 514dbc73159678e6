"""Parameters of a policy: user values become numbers for its step.

A field's name ends in its unit (``_ps``, ``_bps``, ``_bytes``); text such as ``55us`` is parsed to it. All mistakes are
told at once. Leaves out: any relation between two parameters; a step has to stand every combination.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weftwork.base.findings import Findings
from weftwork.base.nearest import nearest_key
from weftwork.base.units import DURATION, RATE, SIZE, QuantityKind, UnitError, format_quantity, parse_quantity
from weftwork.policies.layout import Field, RecordLayout

__all__ = ["ParameterRow", "parameter_layout", "parameter_rows", "resolve"]

_UNITS: tuple[tuple[str, QuantityKind], ...] = (("_ps", DURATION), ("_bps", RATE), ("_bytes", SIZE))


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterRow:
    """One parameter for the documentation.

    ``default``, ``minimum`` and ``maximum`` are in the unit of the name.
    """

    name: str
    type: type
    default: float
    source: str
    text: str
    minimum: float | None = None
    maximum: float | None = None

    @property
    def quantity(self) -> QuantityKind | None:
        """Kind of quantity named by the ending of the name, or None."""
        return next((quantity for suffix, quantity in _UNITS if self.name.endswith(suffix)), None)

    def shown(self, value: float) -> str:
        """A value as a user writes it."""
        if self.type is bool:
            return "true" if value else "false"
        return format_quantity(self.quantity, value) if self.quantity is not None and value >= 0 else f"{value:,}"


def parameter_rows(owner: type) -> tuple[ParameterRow, ...]:
    """The rows of a class of parameters, in their order.

    Raises
    ------
    TypeError : a field is not int, float or bool, has no row, or its default is wrong
    """
    hints = typing.get_type_hints(owner)
    return tuple(_row(owner, name, hints[name]) for name in inspect.get_annotations(owner))


def _row(owner: type, name: str, hint: Any) -> ParameterRow:  # noqa: ANN401
    entry = getattr(owner, "__dataclass_fields__", {}).get(name, owner.__dict__.get(name))
    if hint not in (int, float, bool):
        raise TypeError(f"'{owner.__name__}.{name}': wanted int, float or bool, found {hint!r}")
    if not isinstance(entry, dataclasses.Field) or "source" not in entry.metadata:
        raise TypeError(f"'{owner.__name__}.{name}': a parameter needs row(default=..., source=..., text=...)")
    bare = ParameterRow(name=name, type=hint, default=0, source="", text="")
    try:
        default = _number(bare, entry.default)
    except ValueError as error:
        raise TypeError(f"'{owner.__name__}.{name}': the default is wrong: {error}") from error
    return dataclasses.replace(bare, default=default, **entry.metadata)


def resolve(
    rows: tuple[ParameterRow, ...], given: Mapping[str, Any], path: str, findings: Findings
) -> dict[str, float]:
    """Turn user values into a value for every parameter.

    Parameters
    ----------
    rows : of the policy
    given : name to number, bool or text with a unit
    path : dotted path of the policy's key, for messages
    findings : take every mistake
    """
    values: dict[str, float] = {row.name: row.default for row in rows}
    by_name = {row.name: row for row in rows}
    for name, found in given.items():
        where = f"{path}.{name}"
        row = by_name.get(name)
        if row is None:
            fix = nearest_key(name, values)
            allowed = ", ".join(values) if values else "none"
            findings.wrong(where, f"unknown parameter, wanted {allowed}", fix)
            continue
        try:
            value = _number(row, found)
        except UnitError as error:
            findings.wrong(where, error.text, error.fix)
            continue
        except ValueError as error:
            findings.wrong(where, str(error))
            continue
        for limit, low in ((row.minimum, True), (row.maximum, False)):
            if limit is not None and (value < limit if low else value > limit):
                text = f"found {row.shown(value)}, wanted at {'least' if low else 'most'} {row.shown(limit)}"
                findings.wrong(where, text)
        values[name] = value
    return values


def _number(row: ParameterRow, found: object) -> float:
    """Turn one value into a number of the row's type.

    ValueError or UnitError describes the mistake.
    """
    if row.type is bool:
        return _truth(found)
    if isinstance(found, str) and row.quantity is not None:
        found = parse_quantity(row.quantity, found)
    elif isinstance(found, str):
        try:
            found = float(found) if row.type is float else int(found)
        except ValueError:
            raise ValueError(f"found {found!r}, wanted {_wanted(row)}") from None
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found):
        raise ValueError(f"found {found!r}, wanted {_wanted(row)}")
    if row.type is float:
        return float(found)
    if found != int(found) or not -(2**62) < found < 2**62:
        raise ValueError(f"found {found!r}, wanted {_wanted(row)}")
    return int(found)


def _truth(found: object) -> bool:
    words = {"true": True, "false": False}
    if isinstance(found, bool):
        return found
    if isinstance(found, str) and found.lower() in words:
        return words[found.lower()]
    raise ValueError(f"found {found!r}, wanted true or false")


def _wanted(row: ParameterRow) -> str:
    if row.quantity is not None:
        return row.quantity.wanted
    return "a whole number" if row.type is int else "a number"


def parameter_layout(rows: tuple[ParameterRow, ...], values: Mapping[str, float]) -> RecordLayout:
    """The record of the parameters, holding these values."""
    return RecordLayout(
        "Params",
        [
            Field(name=row.name, type="float" if row.type is float else "int", initial=(values[row.name],))
            for row in rows
        ],
        checked=False,
    )
