"""Declarations of what crosses between Python and the native core.

A `RowType` is a row of a table. Its fields have name, type, unit and text, and give the NumPy dtype. An `Input` crosses
as a dictionary, member by member, by name: settings, and columns that the core borrows. The fields of a dataclass are
members where their metadata is a `setting` or a `column`. `weftwork.engine.rows.headers` writes the C++ structs.
Leaves out: what the numbers do in an engine.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from weftwork.base.errors import EngineError
from weftwork.engine.columns import column as borrowed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import IntEnum

__all__ = [
    "ArrayField",
    "Enum",
    "FieldType",
    "Header",
    "Input",
    "RowField",
    "RowType",
    "column",
    "flag",
    "identity",
    "members_of",
    "real",
    "record_bytes",
    "setting",
    "whole",
]  # fmt: skip

FieldType = Literal["int64", "int32", "uint64", "uint32", "float64", "bool"]
_UNITS: Final = {  # of a name by its end; the first that fits
    "_ps": "ps", "_bps": "bit/s", "_bytes": "byte", "bytes": "byte", "_packets": "packet", "_quanta": "512 bit times",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class RowField:
    """One field of a record.

    Parameters
    ----------
    name : with its unit, on both sides
    type : of a number, or of the numbers of an array
    text : its meaning, without a full stop
    size : elements of an array; 0: a number
    identity : C++ type of an id, which is laid out as an int32, or of an enumeration; empty: a plain number
    """

    name: str
    type: FieldType
    text: str
    size: int = 0
    identity: str = ""

    @property
    def unit(self) -> str:
        """Unit by the end of the name; empty: a number without one."""
        return _unit_of(self.name)


def _unit_of(name: str) -> str:
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


def whole(name: str, text: str, *, size: int = 0, type: FieldType = "int64") -> RowField:  # noqa: A002
    """Declare a whole number.

    Parameters
    ----------
    name, text, size, type : as of `RowField`
    """
    return RowField(name=name, type=type, text=text, size=size)


def real(name: str, text: str, *, size: int = 0) -> RowField:
    """Declare a float64.

    Parameters
    ----------
    name, text, size : as of `RowField`
    """
    return RowField(name=name, type="float64", text=text, size=size)


def flag(name: str, text: str) -> RowField:
    """Declare a truth value.

    Parameters
    ----------
    name, text : as of `RowField`
    """
    return RowField(name=name, type="bool", text=text)


def identity(name: str, kind: str, text: str) -> RowField:
    """Declare the place of a thing among its kind.

    Parameters
    ----------
    name, text : as of `RowField`
    kind : C++ type of the id, such as ``LinkId``
    """
    return RowField(name=name, type="int32", text=text, identity=kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class RowType:
    """A record that crosses.

    Parameters
    ----------
    struct : name of the C++ struct
    text : what a row is, one sentence
    fields : in their order on both sides
    space : namespace of the struct inside ``weftwork``; empty: none
    starts_empty : whether the C++ struct starts with zeros and not with what is in the memory
    """

    struct: str
    text: str
    fields: tuple[RowField, ...]
    space: Literal["", "flow", "python"] = ""
    starts_empty: bool = False

    @property
    def full_name(self) -> str:
        """Name of the struct inside the namespace ``weftwork``."""
        return f"{self.space}::{self.struct}" if self.space else self.struct

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields."""
        return tuple(field.name for field in self.fields)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Layout of a row, as the C++ compiler lays the struct out."""
        columns = [
            (field.name, field.type, (field.size,)) if field.size else (field.name, field.type) for field in self.fields
        ]
        return np.dtype(columns, align=len({np.dtype(field.type).itemsize for field in self.fields}) > 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class ArrayField:
    """An array of an input, which the core borrows.

    Parameters
    ----------
    name : with its unit, on both sides
    item : NumPy's name of the type of its numbers, such as ``int16``; empty: rows of a record
    text : its meaning, without a full stop
    by : C++ type of the id that is its place; empty: it is read by position alone
    holds : C++ type of the ids that its int32 numbers are; empty: plain numbers
    rows : record of its rows; None: numbers
    is_record : whether it is the bytes of one record whose fields its owner declares, such as a policy's own state
    begins : of such a record: the record of whose fields it has the first ones; None: the core reads none of them
    """

    name: str
    item: str
    text: str
    by: str = ""
    holds: str = ""
    rows: RowType | None = None
    is_record: bool = False
    begins: RowType | None = None

    @property
    def unit(self) -> str:
        """Unit by the end of the name; empty: numbers without one."""
        return _unit_of(self.name)


def record_bytes(name: str, text: str, *, begins: RowType | None = None) -> ArrayField:
    """Declare the bytes of one record whose fields its owner declares, eight bytes a number.

    Parameters
    ----------
    name, text, begins : as of `ArrayField`
    """
    return ArrayField(name=name, item="uint8", text=text, is_record=True, begins=begins)


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """What crosses into the core as a dictionary, member by member.

    Parameters
    ----------
    struct, text, space : as of `RowType`
    members : settings and columns
    """

    struct: str
    text: str
    members: tuple[RowField | ArrayField, ...]
    space: Literal["", "flow", "python"] = ""

    @property
    def full_name(self) -> str:
        """Name of the struct inside the namespace ``weftwork``."""
        return f"{self.space}::{self.struct}" if self.space else self.struct

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members."""
        return tuple(member.name for member in self.members)

    def values(self, source: object, given: Mapping[str, object] | None = None) -> dict[str, object]:
        """Make the dictionary in which it crosses.

        Parameters
        ----------
        source : object whose attributes are the members
        given : members that are no attributes of ``source``, or other ones

        Raises
        ------
        AttributeError : a member has no value
        EngineError : ``given`` has what is no member
        """
        others = given or {}
        unknown = set(others) - set(self.names)
        if unknown:
            raise EngineError(f"{self.struct} has no {', '.join(sorted(unknown))}")
        return {
            member.name: _crossing(
                member, others[member.name] if member.name in others else getattr(source, member.name)
            )
            for member in self.members
        }


def _crossing(member: RowField | ArrayField, value: Any) -> object:  # noqa: ANN401
    """A value as the core reads it."""
    if isinstance(member, ArrayField):
        return borrowed(value)
    if member.type == "bool":
        return bool(value)
    return float(value) if member.type == "float64" else int(value)


def setting(text: str, type: FieldType = "int64", *, identity: str = "", part: str = "") -> dict[str, object]:  # noqa: A002
    """Metadata of a dataclass field that is a setting of an input.

    Parameters
    ----------
    text, type, identity : as of `RowField`
    part : of the input, if it has several
    """
    return {"crosses": RowField(name="", type=type, text=text, identity=identity), "part": part}


def column(
    text: str, *, by: str = "", holds: str = "", rows: RowType | None = None, part: str = ""
) -> dict[str, object]:
    """Metadata of a dataclass field that is a column of an input; its annotation tells the type of numbers.

    Parameters
    ----------
    text, by, holds, rows : as of `ArrayField`
    part : of the input, if it has several
    """
    return {"crosses": ArrayField(name="", item="", text=text, by=by, holds=holds, rows=rows), "part": part}


def members_of(owner: type, part: str = "") -> tuple[RowField | ArrayField, ...]:
    """Members of an input from the fields of a dataclass; fields without such metadata stay in Python.

    Parameters
    ----------
    owner : a dataclass, whose annotations are not evaluated
    part : whose members

    Raises
    ------
    EngineError : a column is annotated as something else than an array
    """
    members: list[RowField | ArrayField] = []
    for each in dataclasses.fields(owner):
        declared = each.metadata.get("crosses")
        if declared is None or each.metadata["part"] != part:
            continue
        if isinstance(declared, RowField):
            members.append(dataclasses.replace(declared, name=each.name))
            continue
        array = re.fullmatch(r"NDArray\[np\.(\w+)\]", str(each.type))
        if array is None:
            raise EngineError(f"{owner.__name__}.{each.name} is annotated {each.type}, wanted NDArray[np.NAME]")
        item = "" if declared.rows is not None else array[1]
        members.append(dataclasses.replace(declared, name=each.name, item=item))
    return tuple(members)


@dataclass(frozen=True, kw_only=True, slots=True)
class Enum:
    """Codes that stand in fields, as a C++ enumeration.

    Parameters
    ----------
    name : of the C++ enumeration
    members : names and codes
    text : what they are, one sentence
    stored : C++ type of the codes
    space : as of `RowType`
    is_bits : whether codes are combined, so that they turn into numbers by themselves
    """

    name: str
    members: tuple[tuple[str, int], ...]
    text: str
    stored: Literal["int64", "uint8"] = "int64"
    space: Literal["", "flow", "python"] = ""
    is_bits: bool = False

    @classmethod
    def of(
        cls, codes: type[IntEnum], *, name: str, text: str, space: Literal["", "flow"] = "", is_bits: bool = False
    ) -> Enum:
        """Make it of a Python enumeration.

        Parameters
        ----------
        codes : members in upper case
        name, text, space, is_bits : as of the class
        """
        members = tuple((member.name.lower(), member.value) for member in codes)
        return cls(name=name, members=members, text=text, space=space, is_bits=is_bits)

    @classmethod
    def of_words(
        cls,
        words: tuple[str, ...],
        *,
        name: str,
        text: str,
        stored: Literal["int64", "uint8"] = "int64",
        space: Literal["", "flow"] = "",
    ) -> Enum:
        """Make it of words, whose places are the codes.

        Parameters
        ----------
        words : such as ``go back``
        name, text, stored, space : as of the class
        """
        members = tuple((word, code) for code, word in enumerate(words))
        return cls(name=name, members=members, text=text, stored=stored, space=space)


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """One file of `native/rows`: a family of records.

    Parameters
    ----------
    name : of the file, without its ending
    text : what the family is, one sentence
    parts : enumerations, records and inputs in their order
    includes : headers of the core that types of ids need
    numbers : constants, as name, value and text
    """

    name: str
    text: str
    parts: tuple[Enum | RowType | Input, ...]
    includes: tuple[str, ...] = ()
    numbers: tuple[tuple[str, int, str], ...] = ()
