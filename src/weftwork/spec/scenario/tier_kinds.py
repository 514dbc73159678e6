"""Kinds of value that a fabric takes per tier: ratios and rates.

Leaves out: which tiers there are, which the topology says (`weftwork.topology.shapes`).
"""
# ruff: noqa: ANN401 - a resolved value is whatever its kind makes of it

from __future__ import annotations

import re
from collections.abc import Mapping as MappingType
from dataclasses import dataclass
from typing import Any

from weftwork.base.nearest import nearest_entry
from weftwork.base.units import RATE, UnitError, format_quantity, parse_quantity
from weftwork.spec.scenario.kind_reading import WrongValueError, either, scalar_of, within
from weftwork.spec.scenario.yaml_tree import Mapping, Node, show

__all__ = ["RatesByTier", "Ratio"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """A ratio such as ``2:1``, or a mapping from tiers to ratios.

    It is resolved to a number, or a mapping of numbers.
    """

    tiers: tuple[str, ...]
    low: float = 1e-12
    high: float = 1e12
    unit: str = "ratio"

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        each = ", ".join(f"{tier}: 2:1" for tier in self.tiers)
        return f"a ratio such as 2:1 or 1.5, or one by tier, {{{each}}}"

    def read(self, node: Node) -> float | dict[str, float]:
        """Resolve a scalar or a mapping."""
        if not isinstance(node, Mapping) or not node.entries:
            return self._number(node, "")
        odd = next((entry.key for entry in node.entries if entry.key not in self.tiers), None)
        if odd is not None:
            message = f"found a ratio of '{odd}', wanted one of {either(self.tiers)}"
            raise WrongValueError(message, nearest_entry(odd, self.tiers))
        return {entry.key: self._number(entry.node, f"{entry.key}: ") for entry in node.entries}

    def _number(self, node: Node, where: str) -> float:
        match = _RATIO.fullmatch(scalar_of(node, self.wanted).text)
        over, under = (float(part or 1) for part in match.group("over", "under")) if match is not None else (0.0, 1.0)
        if not under or not self.low <= over / under <= self.high:
            message = f"{where}found {show(node)}, wanted {self.wanted}"
            raise WrongValueError(message)
        return over / under

    def write(self, value: Any) -> float | int | dict[str, float | int]:
        """Write a resolved value."""
        if isinstance(value, MappingType):
            return {tier: _plain(ratio) for tier, ratio in value.items()}
        return _plain(value)

    def json(self) -> dict[str, Any]:
        """JSON Schema of the ratio."""
        one = [{"type": "number", "minimum": self.low, "maximum": self.high},
               {"type": "string", "pattern": f"^{_RATIO_PATTERN}$"}]  # fmt: skip
        tiers = {"type": "object", "properties": {tier: {"anyOf": one} for tier in self.tiers}, "minProperties": 1}
        return {"anyOf": [*one, {**tiers, "additionalProperties": False}]}


_NUMBER_PATTERN = r"[0-9]{1,15}(?:\.[0-9]{0,40})?(?:[eE][-+]?[0-9]{1,2})?"
_RATIO_PATTERN = f"{_NUMBER_PATTERN}(:{_NUMBER_PATTERN})?"
_RATIO = re.compile(f"(?P<over>{_NUMBER_PATTERN})(?::(?P<under>{_NUMBER_PATTERN}))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class RatesByTier:
    """A mapping from tiers to rates, resolved to bits per second."""

    tiers: tuple[str, ...]
    low: int = 1_000_000
    high: int = 100_000_000_000_000
    unit: str = "bits per second"

    @property
    def wanted(self) -> str:
        """Allowed values in words."""
        return "rates by tier, {" + ", ".join(f"{tier}: 400Gbps" for tier in self.tiers) + "}"

    def read(self, node: Node) -> dict[str, int]:
        """Resolve a mapping."""
        if not isinstance(node, Mapping) or not node.entries:
            message = f"found {show(node)}, wanted {self.wanted}"
            raise WrongValueError(message)
        odd = next((entry.key for entry in node.entries if entry.key not in self.tiers), None)
        if odd is not None:
            message = f"found a rate of '{odd}', wanted one of {either(self.tiers)}"
            raise WrongValueError(message, nearest_entry(odd, self.tiers))
        return {entry.key: self._rate(entry.key, entry.node) for entry in node.entries}

    def _rate(self, tier: str, node: Node) -> int:
        scalar = scalar_of(node, self.wanted)
        try:
            value = int(parse_quantity(RATE, scalar.text))
        except UnitError as error:
            message = f"{tier}: {error.text}"
            raise WrongValueError(message, within(tier, error.fix)) from error
        if not self.low <= value <= self.high:
            message = f"{tier}: found {show(node)}, wanted {format_quantity(RATE, self.low)} to "
            raise WrongValueError(message + format_quantity(RATE, self.high))
        return value

    def write(self, value: Any) -> dict[str, str | int]:
        """Write a resolved value."""
        return {tier: format_quantity(RATE, rate) for tier, rate in value.items()}

    def json(self) -> dict[str, Any]:
        """JSON Schema of the mapping."""
        tiers = {tier: {"type": "string"} for tier in self.tiers}
        return {"type": "object", "properties": tiers, "minProperties": 1, "additionalProperties": False}


def _plain(value: Any) -> float | int:
    """A ratio as people write it: a whole number if possible."""
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
