"""Formats of a user's own rows, and their columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weftwork.study.validation.row_table import TableColumn

__all__ = ["GPUS", "Format", "number", "whole", "word"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """The format of a table.

    Attributes
    ----------
    name : of the set, or ``iterations`` or ``curves``
    title : what a row is
    columns : that a table may have
    examples : rows that come with Weftwork, by column
    notes : what else to know, a sentence each
    """

    name: str
    title: str
    columns: tuple[TableColumn, ...]
    examples: Callable[[], Sequence[Mapping[str, Any]]]
    notes: tuple[str, ...] = ()


def whole(name: str, text: str, *, optional: bool = False, has_zero: bool = False) -> TableColumn:
    """A column of positive whole numbers; arguments as for `TableColumn`."""
    return TableColumn(name=name, kind="whole", text=text, optional=optional, has_zero=has_zero)


def number(name: str, text: str, *, optional: bool = False) -> TableColumn:
    """A column of positive numbers."""
    return TableColumn(name=name, kind="number", text=text, optional=optional)


def word(name: str, text: str, choices: Sequence[str] = (), *, optional: bool = False) -> TableColumn:
    """A column of words."""
    return TableColumn(name=name, kind="text", text=text, choices=tuple(choices), optional=optional)


GPUS: Final = whole("gpus", "GPUs of the job.")
