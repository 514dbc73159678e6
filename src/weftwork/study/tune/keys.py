"""Keys of a scenario that can be tuned.

They are numbers, flags and words, each with its present value and bounds.

They are the parameters of the policies that the scenario chooses, and the keys of its sections and devices. A key that
the scenario leaves out and that follows from the fabric has that figure as its centre: ECN thresholds from the rate of
the links, headroom from rate and delay.
Leaves out: keys of lists (``faults``, ``jobs``), lists of words, and what chooses a file, such as a topology or a
policy; such a key is swept (`weftwork.study.sweep`).
"""
# ruff: noqa: ANN401 - a resolved value is whatever its row makes of it

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.findings import Findings
from weftwork.base.units import format_quantity
from weftwork.engine.headroom import headroom_bytes
from weftwork.hardware.catalogue import nic, switch
from weftwork.policies.load import load
from weftwork.policies.parameters import resolve
from weftwork.spec.scenario.chosen import OPTIONS
from weftwork.spec.scenario.devices import device_rows
from weftwork.spec.scenario.kinds import Choice, Flag, Measure, Number, OfferKind, Section, Whole, WrongValueError
from weftwork.spec.scenario.policies import POLICY_KINDS
from weftwork.spec.scenario.rows import applies, rows_of, selector, shown
from weftwork.spec.scenario.yaml_tree import Scalar
from weftwork.study.prepare.engine_settings import transport_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from weftwork.policies.parameters import ParameterRow
    from weftwork.spec.scenario.rows import KeyRow
    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["NOT_SET", "TunableKey", "keys_of"]

NOT_SET: Final = "not set"
_FLAGS: Final = ("false", "true")
# How a run is computed, and what lets a scenario be that would be refused: neither is a property of the network.
_LEFT_OUT: Final = ("schema", "engine.", "transport.force")


@dataclass(frozen=True, kw_only=True, slots=True)
class TunableKey:
    """A tunable key, with its value and bounds.

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
    centres = _centres(scenario)
    found: dict[str, TunableKey] = {}
    for path, described, value in (*_walk(scenario, ""), *_of_devices(scenario)):
        one = _scenario_key(path, described, value, centres.get(path))
        if one is not None and not path.startswith(_LEFT_OUT):
            found[path] = one
    for kind in POLICY_KINDS:
        choice = getattr(scenario.transport, kind)
        policy = load(kind, choice.label, choice.parameters, path=f"transport.{kind}")
        for row in policy.rows:
            one = _policy_key(f"transport.{kind}.{row.name}", row, policy.values[row.name])
            found[one.key] = one
    return found


def _walk(section: BaseModel, path: str) -> Iterator[tuple[str, KeyRow, Any]]:
    """Yield path, row and value of every key of a section.

    Keys of the file that it chooses are included; None is an omitted key.
    """
    described_rows = rows_of(type(section))
    field_of = {described.key: name for name, described in described_rows.items()}
    for name, described in described_rows.items():
        at, value = f"{path}.{described.key}" if path else described.key, getattr(section, name)
        deciding = selector(described)
        if deciding is not None and not applies(described, getattr(section, field_of[deciding])):
            continue
        if isinstance(described.kind, Section):
            yield from () if value is None else _walk(value, at)
            continue
        yield at, described, value
        if isinstance(described.kind, OfferKind):
            yield from _walk(getattr(section, OPTIONS), path)


def _of_devices(scenario: Scenario) -> Iterator[tuple[str, KeyRow, Any]]:
    """Yield the keys of the fabric's switch and NIC.

    Each is on its model of the catalogue.
    """
    fabric = scenario.fabric
    for path, choice, model in (("fabric.switch", fabric.switch, switch), ("fabric.nic", fabric.nic, nic)):
        if choice is not None:
            of_file = choice.model == ""  # the devices of a fabric file may differ from each other
            yield from _fields(choice.on(model(choice.model or "plain")), path, choice.fields if of_file else None)


def _fields(record: BaseModel, path: str, given: Mapping[str, Any] | None = None) -> Iterator[tuple[str, KeyRow, Any]]:
    """Yield the keys of a device; with ``given``, only these fields have a value."""
    for name, described in device_rows(type(record)).items():
        at, value = f"{path}.{described.key}", getattr(record, name)
        if isinstance(described.kind, Section):
            yield from _fields(value, at, None if given is None else given.get(name, {}))
        else:
            yield at, described, value if given is None or name in given else None


def _centres(scenario: Scenario) -> dict[str, float]:
    """Values of omitted keys on the links to hosts of this fabric."""
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


def _scenario_key(path: str, described: KeyRow, value: Any, centre: float | None) -> TunableKey | None:
    """A key of a section or device; None if not tunable."""
    kind = described.kind
    if isinstance(kind, Flag | Choice):
        before = NOT_SET if value is None else shown(kind.write(value))
        options = _FLAGS if isinstance(kind, Flag) else kind.options
        return TunableKey(key=path, text=described.text, before=before, options=options, read=_no_number, write=str)
    if not isinstance(kind, Measure | Whole | Number) or (isinstance(kind, Measure) and kind.allowed):
        return None

    def read(written: str) -> float:
        try:
            return kind.read(Scalar(text=written))
        except WrongValueError as wrong:
            fix = f"; did you mean '{wrong.fix}'?" if wrong.fix else ""
            raise ValueError(f"{wrong.text}{fix}") from wrong

    above = kind.above if isinstance(kind, Number) else None
    return TunableKey(
        key=path,
        text=described.text,
        before=NOT_SET if value is None else shown(kind.write(value)),
        now=centre if value is None else value,
        low=kind.low if above is None else above,
        high=kind.high,
        is_whole=isinstance(kind, Whole) or (isinstance(kind, Measure) and kind.quantity.whole),
        read=read,
        write=lambda number: shown(kind.write(number)),
    )


def _policy_key(path: str, row: ParameterRow, value: float) -> TunableKey:
    def read(written: str) -> float:
        findings = Findings()
        values = resolve((row,), {row.name: written}, path, findings)
        if findings.has_mistakes:
            first = findings.mistakes[0]
            fix = f"; did you mean '{first.fix}'?" if first.fix else ""
            raise ValueError(f"{first.text}{fix}")
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
