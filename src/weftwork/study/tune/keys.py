"""Keys of a scenario that can be tuned: numbers, yes or no, and words, each with its value now and its bounds.

They are the parameters of the policies that the scenario chooses, and the keys of its sections and devices. A key that
the scenario leaves out and that follows from the fabric has that figure as its centre: ECN thresholds from the rate of
the links, headroom from rate and delay.
Leaves out: keys of lists (``faults``, ``jobs``), lists of words, and what chooses a file, such as a topology; such a
key is tuned by its values, ``KEY=A,B``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from weftwork.base.units import format_quantity
from weftwork.engine.headroom import headroom_bytes
from weftwork.hardware.catalogue import nic, switch
from weftwork.policies.load import load
from weftwork.policies.parameters import resolve
from weftwork.spec.device import Nic, Switch
from weftwork.spec.scenario.devices import device_rows
from weftwork.spec.scenario.kinds import (
    Choice,
    DeviceKind,
    Flag,
    Measure,
    Number,
    PolicyChoiceKind,
    Section,
    SectionList,
    Whole,
    WrongValueError,
)
from weftwork.spec.scenario.policies import POLICY_KINDS
from weftwork.spec.scenario.rows import shown
from weftwork.spec.scenario.scenario import dump, rows
from weftwork.spec.scenario.yaml_tree import Scalar
from weftwork.study.prepare.engine_settings import transport_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from weftwork.policies.parameters import ParameterRow
    from weftwork.spec.scenario.devices import DeviceChoice
    from weftwork.spec.scenario.kinds import Kind
    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["NOT_SET", "TunableKey", "keys_of"]

NOT_SET: Final = "not set"
_FLAGS: Final = ("false", "true")
# How a run is computed, and what lets a scenario be that would be refused: neither is a property of the network.
_LEFT_OUT: Final = ("schema", "engine.", "transport.force")


@dataclass(frozen=True, kw_only=True, slots=True)
class TunableKey:
    """What there is to know about a key that can be tuned.

    Attributes
    ----------
    key, text : its path and its sentence
    before : its value now as a user writes it, or `NOT_SET`
    now : the same as a number; None for words, and where nothing is known
    options : words to choose from; empty for numbers
    low, high : bounds of the row; None without one
    is_whole : whether only whole numbers are right
    read : text to a number; ValueError with what is wrong
    write : number to a text that is read back
    """

    key: str
    text: str
    before: str
    now: float | None = None
    options: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    is_whole: bool = False
    read: Callable[[str], float]
    write: Callable[[float], str]


def keys_of(scenario: Scenario) -> dict[str, TunableKey]:
    """Keys of a scenario that can be tuned, by path.

    Parameters
    ----------
    scenario : resolved

    Raises
    ------
    CodeError : a policy or transport of the user's own is wrong
    """
    found: dict[str, TunableKey] = {}
    values = _values(scenario)
    centres = _centres(scenario)
    for described in rows():
        if described.path in found or described.path not in values or described.path.startswith(_LEFT_OUT):
            continue
        value = values[described.path]
        one = _scenario_key(described.path, described.text, described.kind, value, centres.get(described.path))
        if one is not None:
            found[described.path] = one
    for kind in POLICY_KINDS:
        choice = getattr(scenario.transport, kind)
        policy = load(kind, choice.label, choice.parameters, path=f"transport.{kind}")
        for row in policy.rows:
            one = _policy_key(f"transport.{kind}.{row.name}", row, policy.values[row.name])
            found[one.key] = one
    return found


def _values(scenario: Scenario) -> dict[str, object]:
    """Every key of sections and devices with its value as it is written; None where a device leaves it open."""
    found = dict(_flat(yaml.safe_load(dump(scenario)), ""))
    for path, choice, record in _devices(scenario):
        found |= _fields(path, type(record), choice.on(record))
    return found


def _flat(tree: Mapping[str, Any], path: str) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, value in tree.items():
        at = f"{path}.{key}" if path else str(key)
        if isinstance(value, dict):
            found += _flat(value, at)
        elif not isinstance(value, list):
            found.append((at, value))
    return found


def _devices(scenario: Scenario) -> list[tuple[str, DeviceChoice, Switch | Nic]]:
    """Switch and NIC of the fabric, where it has such keys, each on its model of the catalogue."""
    fabric = scenario.fabric
    found: list[tuple[str, DeviceChoice, Switch | Nic]] = []
    if getattr(fabric, "switch", None) is not None:
        found.append(("fabric.switch", fabric.switch, switch(fabric.switch.model)))
    if getattr(fabric, "nic", None) is not None:
        found.append(("fabric.nic", fabric.nic, nic(fabric.nic.model)))
    return found


def _fields(path: str, model: type[BaseModel], record: BaseModel) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, described in device_rows(model).items():
        at, value, kind = f"{path}.{described.key}", getattr(record, name), described.kind
        if isinstance(kind, Section):
            found |= _fields(at, kind.model, value)
        elif not isinstance(kind, PolicyChoiceKind | DeviceKind | SectionList):  # which no device has
            found[at] = None if value is None else kind.write(value)
    return found


def _centres(scenario: Scenario) -> dict[str, float]:
    """What keys that are left out amount to on the links to hosts of this fabric."""
    fabric, transport = scenario.fabric, transport_of(scenario.transport)
    rate_bps = getattr(fabric, "link_rate_bps", None)
    if getattr(fabric, "switch", None) is None or not rate_bps:
        return {}
    record = fabric.switch.on(switch(fabric.switch.model))
    kmin, kmax = record.ecn.thresholds_bytes(rate_bps)
    found: dict[str, float] = {"fabric.switch.ecn.kmin": kmin, "fabric.switch.ecn.kmax": kmax}
    delay_ps = getattr(fabric, "link_delay_ps", None)
    if delay_ps is not None and transport.lossless_priorities:
        round_trip_ps = 2 * (delay_ps + record.forwarding_latency_ps)
        found["fabric.switch.headroom"] = headroom_bytes(
            rate_bps=rate_bps, round_trip_ps=round_trip_ps, transport=transport
        )
    return found


def _scenario_key(path: str, text: str, kind: Kind, value: object, centre: float | None) -> TunableKey | None:
    """A key of a section or device; None where its kind cannot be tuned."""
    before = NOT_SET if value is None else shown(value)
    if isinstance(kind, Flag | Choice):
        options = _FLAGS if isinstance(kind, Flag) else kind.options
        return TunableKey(key=path, text=text, before=before, options=options, read=_no_number, write=str)
    if not isinstance(kind, Measure | Whole | Number) or (isinstance(kind, Measure) and kind.allowed):
        return None

    def read(written: str) -> float:
        try:
            return kind.read(Scalar(text=written))
        except WrongValueError as wrong:
            fix = f"; did you mean '{wrong.fix}'?" if wrong.fix else ""
            raise ValueError(f"{wrong.text}{fix}") from wrong

    try:
        now = centre if value is None else read(before)
    except ValueError:  # a key that several choices have, each in a sense of its own: not this one's
        return None
    above = kind.above if isinstance(kind, Number) else None
    return TunableKey(
        key=path,
        text=text,
        before=before,
        now=now,
        low=kind.low if above is None else above,
        high=kind.high,
        is_whole=isinstance(kind, Whole) or (isinstance(kind, Measure) and kind.quantity.whole),
        read=read,
        write=lambda number: shown(kind.write(number)),
    )


def _policy_key(path: str, row: ParameterRow, value: float) -> TunableKey:
    def read(written: str) -> float:
        values, mistakes = resolve((row,), {row.name: written}, path)
        if mistakes:
            fix = f"; did you mean '{mistakes[0].fix}'?" if mistakes[0].fix else ""
            raise ValueError(f"{mistakes[0].text}{fix}")
        return values[row.name]

    def write(number: float) -> str:
        if row.quantity is not None:
            return format_quantity(row.quantity, number)
        return repr(int(number) if row.type is int else float(number))

    if row.type is bool:
        before = _FLAGS[bool(value)]
        return TunableKey(key=path, text=row.text, before=before, options=_FLAGS, read=_no_number, write=str)
    return TunableKey(
        key=path,
        text=row.text,
        before=write(value),
        now=value,
        low=row.minimum,
        high=row.maximum,
        is_whole=row.type is int,
        read=read,
        write=write,
    )


def _no_number(written: str) -> float:
    raise ValueError(f"found '{written}', wanted words with commas between them, since this key is no number")
