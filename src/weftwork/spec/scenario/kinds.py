"""The kinds of value that keys of a scenario take.

Each kind reads a scalar, writes it back, and describes the allowed values.
Leaves out: policies, devices and sections, which need more than their text; their kinds only say what they are.
"""
# ruff: noqa: ANN401 - a resolved value is whatever its kind makes of it

from __future__ import annotations

import math
import re
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from weftwork.base.folder import Folder, is_path
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.base.units import QuantityKind, UnitError, format_quantity, parse_quantity
from weftwork.spec.scenario.kind_reading import WrongValueError, either, scalar_of, within
from weftwork.spec.scenario.tier_kinds import RatesByTier, Ratio
from weftwork.spec.scenario.yaml_tree import Node, Sequence, show

__all__ = [
    "FILE_PATTERN",
    "Choice",
    "DeviceKind",
    "FileName",
    "Flag",
    "Kind",
    "Listing",
    "Measure",
    "NameOrFile",
    "Number",
    "OfferKind",
    "PolicyChoiceKind",
    "RatesByTier",
    "Ratio",
    "Section",
    "SectionList",
    "Selection",
    "Text",
    "Whole",
    "WrongValueError",
    "either",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """A quantity with a unit; ``allowed`` restricts it to a few values."""

    quantity: QuantityKind
    low: int = 0
    high: int | None = None
    allowed: tuple[int, ...] = ()

    @property
    def unit(self) -> str:
        """Unit of the resolved value."""
        return {"bps": "bits per second", "bytes": "bytes", "ps": "picoseconds", "m": "metres"}[self.quantity.suffix]

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        if self.allowed:
            return either([str(self.write(value)) for value in self.allowed])
        words = f"{self.quantity.article_name} such as {self.quantity.examples[0]}"
        if self.high is not None:
            return f"{words}, from {self.write(self.low)} to {self.write(self.high)}"
        return words if self.low == 0 else f"{words}, {self.write(self.low)} or more"

    def read(self, node: Node) -> int | float:
        """Resolve a scalar."""
        scalar = scalar_of(node, self.wanted)
        if isinstance(scalar.value, bool):
            message = f"found {show(node)}, wanted {self.wanted}"
            raise WrongValueError(message)
        try:
            value = parse_quantity(self.quantity, scalar.text)
        except UnitError as error:
            raise WrongValueError(error.text, error.fix) from error
        if self.allowed and value not in self.allowed:
            message = f"found {show(node)}, wanted {self.wanted}"
            raise WrongValueError(message)
        if value < self.low or (self.high is not None and value > self.high):
            message = f"found {show(node)}, wanted {self.wanted}"
            raise WrongValueError(message)
        return value

    def write(self, value: Any) -> str | int:
        """Write a resolved value; sizes of a fixed list are matched by bytes."""
        return int(value) if self.allowed and self.quantity.bare else format_quantity(self.quantity, value)

    def json(self) -> dict[str, Any]:
        """JSON Schema of the text."""
        units = sorted(self.quantity.units, key=len, reverse=True)
        number = r"([0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,2})?|\.[0-9]+)"
        unit = f"({'|'.join(units)})" + ("?" if self.quantity.bare else "")
        zero = "" if self.quantity.bare else r"|0"
        text = {"type": "string", "pattern": f"^({number}\\s*{unit}{zero})$"}
        return {"anyOf": [text, {"type": "number", "minimum": 0} if self.quantity.bare else {"const": 0}]}


@dataclass(frozen=True, kw_only=True, slots=True)
class Whole:
    """A whole number."""

    low: int = 0
    high: int = 2**31 - 1
    unit: str = "count"
    even: bool = False

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        if self.low == self.high:
            return str(self.low)
        even = "even " if self.even else ""
        return f"{'an' if even else 'a'} {even}whole number from {self.low:,} to {self.high:,}"

    def read(self, node: Node) -> int:
        """Resolve a scalar."""
        scalar = scalar_of(node, self.wanted)
        value = scalar.value
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            value = int(value)  # 1e4 is a whole number to whoever writes it
        if isinstance(value, bool) or not isinstance(value, int):
            fix = scalar.text if isinstance(value, str) and re.fullmatch("[0-9]{1,18}", scalar.text) else None
            message = f"found {show(node)}{' in quotes' if fix else ''}, wanted {self.wanted}"
            raise WrongValueError(message, fix)
        if not self.low <= value <= self.high or (self.even and value % 2):
            message = f"found {show(node)}, wanted {self.wanted}"
            raise WrongValueError(message)
        return value

    def write(self, value: Any) -> int:
        """Write a resolved value."""
        return int(value)

    def json(self) -> dict[str, Any]:
        """JSON Schema of the number."""
        schema: dict[str, Any] = {"type": "integer", "minimum": self.low, "maximum": self.high}
        return {**schema, "multipleOf": 2} if self.even else schema


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """A finite number; ``above`` is an exclusive lower bound."""

    low: float | None = None
    high: float | None = None
    above: float | None = None
    unit: str = "ratio"

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        if self.above is not None:
            low, join = f"above {self.above:g}", "and at most"
        elif self.low is not None:
            low, join = f"from {self.low:g}", "to"
        else:
            low, join = "", "at most"
        high = f"{join} {self.high:g}" if self.high is not None else ""
        return " ".join(word for word in ("a number", low, high) if word)

    def read(self, node: Node) -> float:
        """Resolve a scalar."""
        value = scalar_of(node, self.wanted).value
        if isinstance(value, bool) or not isinstance(value, int | float):
            message = f"found {show(node)}, wanted {self.wanted}"
            raise WrongValueError(message)
        number = float(value)
        outside = (
            not math.isfinite(number)
            or (self.low is not None and number < self.low)
            or (self.high is not None and number > self.high)
            or (self.above is not None and number <= self.above)
        )
        if outside:
            message = f"found {show(node)}, wanted {self.wanted}"
            raise WrongValueError(message)
        return number

    def write(self, value: Any) -> float | int:
        """Write a resolved value."""
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number

    def json(self) -> dict[str, Any]:
        """JSON Schema of the number."""
        bounds = {"minimum": self.low, "maximum": self.high, "exclusiveMinimum": self.above}
        return {"type": "number", **{name: bound for name, bound in bounds.items() if bound is not None}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """True or false."""

    unit: str = "yes or no"
    wanted: str = "true or false"

    def read(self, node: Node) -> bool:
        """Resolve a scalar."""
        scalar = scalar_of(node, self.wanted)
        if not isinstance(scalar.value, bool):
            fix = {"yes": "true", "on": "true", "no": "false", "off": "false", "1": "true", "0": "false"}.get(
                scalar.text.lower()
            )
            message = f"found {show(node)}, wanted {self.wanted}"
            raise WrongValueError(message, fix or nearest(scalar.text, ["true", "false"]))
        return scalar.value

    def write(self, value: Any) -> bool:
        """Write a resolved value."""
        return bool(value)

    def json(self) -> dict[str, Any]:
        """JSON Schema of the value."""
        return {"type": "boolean"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """One of a few words.

    ``later`` are words that a coming version will know, with the sentence that refuses them.
    """

    options: tuple[str, ...]
    later: MappingType[str, str] = field(default_factory=dict)
    unit: str = "name"

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        return either(self.options)

    def read(self, node: Node) -> str:
        """Resolve a scalar."""
        text = scalar_of(node, self.wanted).text
        if text in self.options:
            return text
        if text in self.later:
            message = f"found {show(node)}: {self.later[text]}; wanted {self.wanted}"
            raise WrongValueError(message)
        message = f"found {show(node)}, wanted {self.wanted}"
        raise WrongValueError(message, nearest(text, self.options))

    def write(self, value: Any) -> str:
        """Write a resolved value."""
        return str(value)

    def json(self) -> dict[str, Any]:
        """JSON Schema of the word."""
        return {"enum": list(self.options)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """Any text on one line."""

    longest: int = 200
    unit: str = "text"

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        return f"text on one line, 1 to {plural(self.longest, 'character')}"

    def read(self, node: Node) -> str:
        """Resolve a scalar."""
        text = scalar_of(node, self.wanted).text
        if not text.strip() or len(text) > self.longest or not text.isprintable():
            message = f"found {show(node)}, wanted {self.wanted}"
            raise WrongValueError(message)
        return text

    def write(self, value: Any) -> str:
        """Write a resolved value."""
        return str(value)

    def json(self) -> dict[str, Any]:
        """JSON Schema of the text.

        A name such as 2024 is a number to an editor.
        """
        return {"type": ["string", "number", "boolean"], "minLength": 1, "maxLength": self.longest}


@dataclass(frozen=True, kw_only=True, slots=True)
class FileName:
    """A user's file, or one of ``names``.

    Whether the file exists is checked when the folder is known.
    """

    endings: tuple[str, ...]
    names: tuple[str, ...] = ()
    unit: str = "file"

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        return either([*self.names, f"a file that ends in {either(self.endings)}"])

    def read(self, node: Node) -> str:
        """Resolve a scalar."""
        text = scalar_of(node, self.wanted).text
        if text in self.names or (text.endswith(self.endings) and text.isprintable()):
            return text
        message = f"found {show(node)}, wanted {self.wanted}"
        raise WrongValueError(message, nearest(text, self.names))

    def write(self, value: Any) -> str:
        """Write a resolved value."""
        return str(value)

    def json(self) -> dict[str, Any]:
        """JSON Schema of the text."""
        pattern = "|".join(re.escape(ending) for ending in self.endings)
        file = {"type": "string", "pattern": f"({pattern})$"}
        return {"anyOf": [{"enum": list(self.names)}, file]} if self.names else file


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """A list of values of one kind.

    ``length`` fixes the number of values; without it there is at least one, unless an empty list is allowed.
    """

    item: Whole | Choice | Text
    length: int | None = None
    may_be_empty: bool = False

    @property
    def unit(self) -> str:
        """Unit of the items."""
        return f"list of {self.item.unit}"

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        return f"a list of {plural(self.length, 'value')}" if self.length is not None else "a list"

    def read(self, node: Node) -> tuple[Any, ...]:
        """Read a list; the first wrong item gives the error."""
        few = isinstance(node, Sequence) and not (node.items or self.may_be_empty)
        if not isinstance(node, Sequence) or few or (self.length is not None and len(node.items) != self.length):
            found = (
                f"a list of {plural(len(node.items), 'value')}"
                if isinstance(node, Sequence) and node.items
                else show(node)
            )
            message = f"found {found}, wanted {self.wanted}, each {self.item.wanted}"
            raise WrongValueError(message)
        return tuple(self._item(index, item) for index, item in enumerate(node.items))

    def _item(self, index: int, node: Node) -> Any:
        try:
            return self.item.read(node)
        except WrongValueError as wrong:
            raise WrongValueError(wrong.text, within(index, wrong.fix)) from wrong

    def write(self, value: Any) -> list[Any]:
        """Write a resolved value."""
        return [self.item.write(item) for item in value]

    def json(self) -> dict[str, Any]:
        """JSON Schema of the list."""
        least = int(not self.may_be_empty)
        lengths = {"minItems": least} if self.length is None else {"minItems": self.length, "maxItems": self.length}
        return {"type": "array", "items": self.item.json(), **lengths}


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """``all``, ``none`` or a list; resolved to the word or a tuple."""

    item: Whole | Text
    unit: str = "selection"

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        return f"all, none or a list, each {self.item.wanted}"

    def read(self, node: Node) -> str | tuple[Any, ...]:
        """Resolve a word or a list."""
        if isinstance(node, Sequence):
            return Listing(item=self.item).read(node)
        text = scalar_of(node, self.wanted).text
        if text not in {"all", "none"}:
            message = f"found {show(node)}, wanted {self.wanted}"
            raise WrongValueError(message, nearest(text, ["all", "none"]))
        return text

    def write(self, value: Any) -> str | list[Any]:
        """Write a resolved value."""
        return value if isinstance(value, str) else Listing(item=self.item).write(value)

    def json(self) -> dict[str, Any]:
        """JSON Schema of the word or list."""
        return {"anyOf": [{"enum": ["all", "none"]}, Listing(item=self.item).json()]}


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyChoiceKind:
    """A policy: a catalogue name or a user's file, with optional parameters.

    A mapping holds the name or file and the parameters.
    """

    folder: str  # under weftwork/policies, such as congestion_control
    unit: str = "policy"

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        return "a name, a file such as ./mine.py, or {name: ..., <its parameters>}"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceKind:
    """A device or software preset: a name, or a mapping.

    The mapping holds the name of the catalogue and the fields that differ.
    """

    record: type[BaseModel]
    catalogue: str  # such as switch
    head: str = "model"  # key of the name in a mapping
    unit: str = "device"

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        whose = "the hardware catalogue" if self.head == "model" else f"the {self.catalogue} catalogue"
        return f"a name of {whose}, or {{{self.head}: ..., <fields that differ>}}"


@dataclass(frozen=True, kw_only=True, slots=True)
class NameOrFile:
    """A name of a catalogue, or a file if there are ``endings``.

    It is resolved to the name or an absolute path.
    """

    catalogue: str  # such as model
    endings: tuple[str, ...] = ()
    unit: str = "name"

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        file = f", or a file that ends in {either(self.endings)}" if self.endings else ""
        return f"a name that `weftwork list {self.catalogue}` prints{file}"

    def read(self, node: Node) -> str:
        """Read a scalar.

        Whether the name or file exists is checked where both are known.
        """
        scalar = scalar_of(node, self.wanted)
        if not isinstance(scalar.value, str) or not scalar.text.isprintable():
            message = f"found {show(node)}, wanted {self.wanted}"
            raise WrongValueError(message)
        return scalar.text

    def write(self, value: Any) -> str:
        """Write a resolved value."""
        return str(value)

    def json(self) -> dict[str, Any]:
        """JSON Schema of the text."""
        return {"type": "string"}


@dataclass(frozen=True, kw_only=True, slots=True)
class OfferKind:
    """A file of a folder by name, or a user's file by path.

    The file adds keys to the section. ``words`` are choices without a file, with what they are.
    """

    folder: Folder[Any]
    words: MappingType[str, str] = field(default_factory=dict)
    unit: str = "name"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the folder, then the words."""
        return (*self.folder.names, *self.words)

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        return f"{either(self.names)}, or a file such as ./mine.py"

    def read(self, node: Node) -> str:
        """Read a scalar as a name or an unchanged path.

        Whether the file exists is checked elsewhere.
        """
        text = scalar_of(node, self.wanted).text
        if text in self.names or (is_path(text) and text.isprintable()):
            return text
        message = f"found {show(node)}, wanted {self.wanted}"
        raise WrongValueError(message, nearest(text, self.names))

    def write(self, value: Any) -> str:
        """Write a resolved value."""
        return str(value)

    def json(self) -> dict[str, Any]:
        """JSON Schema of the text."""
        return {"anyOf": [{"enum": list(self.names)}, {"type": "string", "pattern": FILE_PATTERN}]}


FILE_PATTERN = r"(/|\.py$)"  # JSON Schema of what `weftwork.base.folder.is_path` takes for a file


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A mapping with its own rows; its absence means something if ``optional``."""

    model: type[BaseModel]
    optional: bool = False
    unit: str = "section"
    wanted: str = "a mapping"


@dataclass(frozen=True, kw_only=True, slots=True)
class SectionList:
    """A list of mappings with equal rows."""

    model: type[BaseModel]
    unit: str = "list of sections"
    wanted: str = "a list of mappings"


Kind = (
    Measure
    | Whole
    | Number
    | Ratio
    | RatesByTier
    | Flag
    | Choice
    | Text
    | FileName
    | Listing
    | Selection
    | PolicyChoiceKind
    | DeviceKind
    | NameOrFile
    | OfferKind
    | Section
    | SectionList
)
