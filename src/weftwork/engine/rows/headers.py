"""The C++ side of the declarations: a header for each family, and the descriptions that the bindings read.

`python -m weftwork.engine.rows` writes them into `native/rows`; they are committed, and a test compares them.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

from weftwork.engine.rows import fabric, flow_outcome, flow_run, job, outcome, packet_run, policies, transport, waits
from weftwork.engine.rows.declare import ArrayField, Enum, Header, Input, RowField, RowType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["HEADERS", "INPUTS", "RECORDS", "files"]

HEADERS: Final[tuple[Header, ...]] = (
    job.HEADER,
    fabric.HEADER,
    transport.HEADER,
    policies.HEADER,
    packet_run.HEADER,
    flow_run.HEADER,
    outcome.HEADER,
    waits.HEADER,
    flow_outcome.HEADER,
)
RECORDS: Final[tuple[RowType, ...]] = tuple(
    part for header in HEADERS for part in header.parts if isinstance(part, RowType)
)
INPUTS: Final[tuple[Input, ...]] = tuple(part for header in HEADERS for part in header.parts if isinstance(part, Input))
_WRITTEN: Final = (
    "// Written by `python -m weftwork.engine.rows` from its declarations; change those.\n// clang-format off\n"
)
_TYPES: Final = {"float64": "double", "bool": "bool"}
_SPACES: Final = ("", "python", "flow")  # in the order of a header
_WIDTH: Final = 120


def files(headers: Sequence[Header] = HEADERS) -> dict[str, str]:
    """Text of each file of `native/rows`, by its name.

    Parameters
    ----------
    headers : families of records
    """
    records = [part for header in headers for part in header.parts if isinstance(part, RowType)]
    inputs = [part for header in headers for part in header.parts if isinstance(part, Input)]
    return {f"{header.name}.hpp": _family(header) for header in headers} | {
        "descriptions.hpp": _of_all(
            headers,
            "Descriptions of all records that cross.",
            [_description(record) for record in records],
            f"using Records = std::tuple<\n{_filled([record.full_name for record in records])}>;\n",
        ),
        "members.hpp": _of_all(
            headers,
            "Members of all inputs that cross by name.",
            [_reading(part) for part in inputs],
            f"using Inputs = std::tuple<\n{_filled([part.full_name for part in inputs])}>;\n",
        ),
    }


def _family(header: Header) -> str:
    includes = "".join(f'#include "{each}"\n' for each in header.includes)
    lines = [
        _WRITTEN
        + f"/// {header.text}\n#pragma once\n#include <cstdint>\n#include <span>\n"
        + (f"\n{includes}" if includes else "")
    ]
    for space in (space for space in _SPACES if any(part.space == space for part in header.parts)):
        name = f"weftwork::{space}" if space else "weftwork"
        blocks = [f"/// {text}\ninline constexpr int {name} = {value};\n" for name, value, text in header.numbers]
        body = [*(blocks if not space else ()), *(_part(part) for part in header.parts if part.space == space)]
        lines.append(f"namespace {name} {{\n\n" + "\n".join(body) + f"\n}}  // namespace {name}\n")
    return "\n".join(lines)


def _part(part: Enum | RowType | Input) -> str:
    if isinstance(part, Enum):
        kind = "enum" if part.is_bits else "enum class"
        codes = "".join(f"  {_member_name(name)} = {code},\n" for name, code in part.members)
        return f"{_comment(part.text)}{kind} {part.name} : std::{part.stored}_t {{\n{codes}}};\n"
    if isinstance(part, RowType):
        members = "".join(_member(field, starts_empty=part.starts_empty) for field in part.fields)
    else:
        members = "".join(
            _borrowed(member) if isinstance(member, ArrayField) else _member(member, starts_empty=True)
            for member in part.members
        )
    return f"{_comment(part.text)}struct {part.struct} {{\n{members}}};\n"


def _borrowed(column: ArrayField) -> str:
    if column.is_record:
        begins = column.begins.struct if column.begins else ""
        return f"{_comment(column.text, indent='  ')}  RecordBytes<{begins}> {column.name};\n"
    item = column.holds or (column.rows.struct if column.rows else _number(column.item))
    span = f"IdSpan<{column.by}, const {item}>" if column.by else f"std::span<const {item}>"
    return f"{_comment(_with_unit(column), indent='  ')}  {span} {column.name};\n"


def _number(item: str) -> str:
    return _TYPES.get(item, f"std::{item}_t")


def _with_unit(member: RowField | ArrayField) -> str:
    return f"{member.text} [{member.unit}]" if member.unit else member.text


def _member_name(name: str) -> str:
    """``go back`` and ``go_back`` to ``kGoBack``."""
    return "k" + "".join(word.capitalize() for word in name.replace("-", " ").replace("_", " ").split())


def _member(field: RowField, *, starts_empty: bool) -> str:
    size = f"[{field.size}]" if field.size else ""
    start = "" if not starts_empty else f" = {_zero(field)}"
    return f"{_comment(_with_unit(field), indent='  ')}  {_type(field)} {field.name}{size}{start};\n"


def _type(field: RowField) -> str:
    return field.identity or _number(field.type)


def _zero(field: RowField) -> str:
    if field.size or field.identity:
        return "{}"
    return "false" if field.type == "bool" else "0"


def _comment(text: str, indent: str = "") -> str:
    return "".join(f"{indent}/// {line}\n" for line in textwrap.wrap(text, _WIDTH - len(indent) - 4))


def _of_all(headers: Sequence[Header], text: str, parts: Sequence[str], names: str) -> str:
    """A file that the bindings alone read: something of each record or input, and a list of them."""
    includes = "".join(f'#include "rows/{name}.hpp"\n' for name in sorted(header.name for header in headers))
    each = "\n".join(parts)
    return (
        f"{_WRITTEN}/// {text} Included by bindings_records.hpp alone.\n#pragma once\n"
        f'#include <array>\n#include <cstddef>\n#include <tuple>\n\n#include "base/crossing.hpp"\n{includes}\n'
        "namespace weftwork::python {\n\n"
        f"{each}\n/// All of them.\n{names}\n"
        "}  // namespace weftwork::python\n"
    )


def _description(record: RowType) -> str:
    name, dtype = record.full_name, record.dtype
    places: Mapping[str, Any] = dtype.fields or {}
    fields = _filled([f"WEFTWORK_FIELD({name}, {field}, {places[field][1]})" for field in record.names])
    return (
        f"template <>\nstruct Description<{name}> {{\n"
        f'  static constexpr const char* kRecord = "{name}";\n'
        f"  static constexpr std::array kFields{{\n{fields}}};\n"
        f'  static_assert(sizeof({name}) == {dtype.itemsize}, "NumPy lays the record out in another way");\n'
        "};\n"
    )


def _reading(part: Input) -> str:
    name = part.full_name
    visits = "".join(f'    visit("{member}", input.{member});\n' for member in part.names)
    return (
        f'template <>\nstruct Members<{name}> {{\n  static constexpr const char* kInput = "{name}";\n'
        f"  template <typename Visit>\n  static void each({name}& input, const Visit& visit) {{\n{visits}  }}\n}};\n"
    )


def _filled(words: list[str]) -> str:
    """Words with commas, in lines as long as they may be."""
    lines = [""]
    for word in words:
        separator = ", " if lines[-1] else ""
        if len(lines[-1]) + len(separator) + len(word) > _WIDTH - 9:
            lines[-1] += ","
            lines.append(word)
        else:
            lines[-1] += separator + word
    return "\n".join(" " * 6 + line for line in lines)
