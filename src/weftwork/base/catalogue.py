"""A catalogue of devices, read from a TOML file.

Rows are found by name. Every figure carries its source and whether it was verified. The file is read when the first row
is asked for. A figure that nobody publishes is marked ``chosen: why`` in place of a source, one that was not checked
against its source has ``verified = false``; both reach the user by `Row.caveats`.
Leaves out: the catalogue of policies, where a row is a Python file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.base.units import DURATION, LENGTH, RATE, SIZE, format_quantity

__all__ = ["Catalogue", "Figure", "Row"]

_QUANTITIES = {quantity.suffix: quantity for quantity in (RATE, SIZE, DURATION, LENGTH)}
_UNITS = {"bps": "bit/s", "bytes": "B", "ps": "ps", "m": "m", "w": "W", "flops": "FLOP/s"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One number of one device.

    Attributes
    ----------
    key : its name, which ends in its unit, such as ``capacity_bps``
    value : int, float, text or bool
    source : where it comes from, or ``chosen: why``
    verified : whether somebody read it in the source
    """

    key: str
    value: Any
    source: str
    verified: bool

    @property
    def unit(self) -> str:
        """Unit of the figure, from the ending of its key.

        Empty for counts and ratios.
        """
        return _UNITS.get(self.key.rpartition("_")[2], "") if "_" in self.key else ""

    @property
    def standing(self) -> Literal["verified", "unverified", "chosen"]:
        """Standing of the figure in one word."""
        if self.source.startswith("chosen:"):
            return "chosen"
        return "verified" if self.verified else "unverified"

    @property
    def text(self) -> str:
        """The value as people write it, such as ``51.2Tbps``."""
        quantity = _QUANTITIES.get(self.key.rpartition("_")[2])
        if quantity is not None and isinstance(self.value, int | float):
            return format_quantity(quantity, self.value)
        return f"{self.value} {self.unit}".strip()

    @property
    def words(self) -> str:
        """The value and its standing, in one line."""
        if self.standing == "chosen":
            return f"{self.text}, {self.source}"
        return f"{self.text}, {self.standing} ({self.source})"

    def caveat(self, owner: str) -> Caveat | None:
        """Caveat of the figure; None if the figure is verified.

        Parameters
        ----------
        owner : name of the row
        """
        if self.standing == "verified":
            return None
        return Caveat(subject=f"{owner}.{self.key}", kind=self.standing, text=self.words)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A device: name, description, and figures by key."""

    name: str
    title: str
    figures: Mapping[str, Figure]

    def value(self, key: str) -> Any:  # noqa: ANN401 - number, text or bool, as the key says
        """The value of a figure; KeyError if the row has no such key."""
        return self.figures[key].value

    def caveats(self) -> dict[str, Caveat]:
        """Caveats of all figures that are not verified, by ``name.key``."""
        found = (figure.caveat(self.name) for figure in self.figures.values())
        return caveats_by_subject(caveat for caveat in found if caveat is not None)


class Catalogue(Mapping[str, Row]):
    """Rows by name, read from ``path`` at first use.

    Parameters
    ----------
    kind : what a row is, for messages, such as ``switch``
    path : a TOML file: one table per row with ``title`` and figures ``{value = ..., source = ..., verified = ...}``
    """

    def __init__(self, kind: str, path: Path) -> None:
        self.kind = kind
        self.path = path

    @cached_property
    def _rows(self) -> Mapping[str, Row]:
        tables = tomllib.loads(self.path.read_text(encoding="utf-8"))
        return MappingProxyType({name: _row(name, table) for name, table in tables.items()})

    def __getitem__(self, name: str) -> Row:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, name: str, *, path: str) -> Row:
        """Find the row of a name that a user wrote.

        Parameters
        ----------
        name : as written
        path : of the key that holds it, for the error

        Raises
        ------
        ConfigError : there is no such row; names the nearest one and all others
        """
        if name in self._rows:
            return self._rows[name]
        text = f"found '{name}', wanted a {self.kind} of the catalogue: {', '.join(self._rows)}"
        raise ConfigError(path, [Mistake(path=path, text=text, fix=nearest(name, self._rows))])


def _row(name: str, table: Mapping[str, Any]) -> Row:
    figures = {key: Figure(key=key, **figure) for key, figure in table.items() if key != "title"}
    return Row(name=name, title=table["title"], figures=MappingProxyType(figures))
