"""The keys of ``faults``, the list of all kinds of faults, and the checks of faults against each other.

A kind of fault is a file of `weftwork.spec.faults`, which brings its keys and its checks.
Leaves out: whether the fabric has what is named; the floor that builds it uses `Scenario.locate`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pydantic import create_model

from weftwork.base.units import DURATION
from weftwork.spec.device import Record
from weftwork.spec.fault_changes import PLACES
from weftwork.spec.fault_kind import ReadFault
from weftwork.spec.scenario.choices import FAULTS
from weftwork.spec.scenario.findings import Read
from weftwork.spec.scenario.kinds import Choice, Measure, Text, Whole
from weftwork.spec.scenario.rows import REQUIRED, row, rows_of
from weftwork.spec.scenario.workload import EngineSection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weftwork.spec.fault_changes import PlaceName
    from weftwork.spec.fault_kind import Change, FaultKind
    from weftwork.spec.scenario.reader import Reader

__all__ = ["FAULT_KINDS", "FaultSection", "check_faults", "end_of", "is_end"]

# All kinds of faults in the order of lists.
FAULT_KINDS: Final[Mapping[str, FaultKind[Any]]] = MappingProxyType(
    dict(sorted(FAULTS.items(), key=lambda item: (item[1].order, item[0])))
)
_END: Final = " ends"  # behind the name of a kind: the event that ends such a fault
_ONCE: Final = ("for_ps", "every_ps", "times")


def end_of(event: str) -> str:
    """Return the name of the event that ends a fault of a kind."""
    return event + _END


def is_end(event: str) -> bool:
    """Whether an event, such as ``down ends`` or ``up``, ends a fault."""
    return event.endswith(_END) or (event in FAULT_KINDS and bool(FAULT_KINDS[event].undoes))


_VERBS: Final = {1: "is"}  # by the number of kinds that a sentence is about


def _listed(words: Sequence[str], last: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _kinds_text(kinds: Mapping[str, FaultKind[Any]]) -> str:
    """Sentences that say of all kinds where they happen, those of the fewest places first."""
    names: dict[tuple[PlaceName, ...], list[str]] = {}
    for name, kind in kinds.items():
        if kind.places:
            names.setdefault(tuple(place for place in PLACES if place in kind.places), []).append(name)
    places = [
        f"{_listed(those)} {_VERBS.get(len(those), 'are')} for"
        f" {'all' if len(at) == len(PLACES) else _listed([PLACES[place][1] for place in at])}"
        for at, those in sorted(names.items(), key=lambda item: len(item[0]))
    ]
    whole = [f" {name} {kind.whole.does}." for name, kind in kinds.items() if kind.whole is not None]
    return f"Kind of fault: {', '.join(places)}.{''.join(whole)}"


def _with_keys(base: type[Record], chosen: Callable[[FaultKind[Any]], bool]) -> type[Record]:
    """Add the keys of some kinds to a section, each row once, with the kinds that it means anything for.

    Raises
    ------
    TypeError : two kinds have different rows of one key, or a kind has a key of every fault
    """
    fields: dict[str, Any] = {}
    for kind in filter(chosen, FAULT_KINDS.values()):
        for field, described in rows_of(kind.keys).items():
            if field in base.model_fields:
                continue
            having = {name: rows_of(one.keys) for name, one in FAULT_KINDS.items() if field in rows_of(one.keys)}
            if any(rows[field] != described for rows in having.values()):
                raise TypeError(f"'{described.key}' differs between {' and '.join(having)}, wanted one row")
            fields[field] = (
                kind.keys.model_fields[field].annotation,
                row(
                    described.key,
                    described.kind,
                    default=described.default,
                    absent=described.absent,
                    only=("event", tuple(having)),
                    text=described.text,
                    source=described.source,
                ),
            )
    return create_model(base.__name__, __base__=base, __module__=__name__, **fields)


_OR_WHOLE: Final = "".join(f", or {kind.whole.noun}" for kind in FAULT_KINDS.values() if kind.whole is not None)


class _Beginning(Record):
    """When, where and which fault."""

    at_ps: int = row(
        "at",
        Measure(quantity=DURATION),
        default=REQUIRED,
        text="Simulated instant.",
        source="chosen: the user does",
    )
    link: str | None = row(
        "link",
        Text(),
        absent=f"the fault is a switch's or a NIC's{_OR_WHOLE}",
        text="Name of a link, such as leaf3-spine1.",
        source="chosen: none",
    )
    switch: str | None = row(
        "switch",
        Text(),
        absent=f"the fault is a link's or a NIC's{_OR_WHOLE}",
        text="Name of a switch, such as spine1; of a TPU pod also an optical switch (ocs12) or a cube (cube3).",
        source="chosen: none",
    )
    nic: str | None = row(
        "nic",
        Text(),
        absent=f"the fault is a link's or a switch's{_OR_WHOLE}",
        text="NIC port of a host, such as host3/nic1; host3 for all of its ports.",
        source="chosen: none",
    )
    event: str = row(
        "event",
        Choice(options=tuple(FAULT_KINDS)),
        default=REQUIRED,
        text=_kinds_text(FAULT_KINDS),
        source="chosen: the user does",
    )


# A type checker sees the keys of every fault; those of one kind are read through its record (`FaultSection.kind_keys`).
if TYPE_CHECKING:
    _AtPlaces = _Beginning
else:
    _AtPlaces = _with_keys(_Beginning, lambda kind: bool(kind.places))


class _LastingFault(_AtPlaces):
    """How long and how often a fault happens."""

    for_ps: int | None = row(
        "for",
        Measure(quantity=DURATION, low=1),
        absent="for ever",
        text="Time after which it is as before.",
        source="chosen: none",
    )
    every_ps: int | None = row(
        "every",
        Measure(quantity=DURATION, low=1),
        absent="it happens once",
        text="Time from one occurrence to the next; with `for` and `times` a link flaps.",
        source="chosen: none",
    )
    times: int | None = row(
        "times",
        Whole(low=1, high=100_000, unit="times"),
        absent="it happens once",
        text="Number of occurrences.",
        source="chosen: none",
    )


if TYPE_CHECKING:
    _OfAllKinds = _LastingFault
else:
    _OfAllKinds = _with_keys(_LastingFault, lambda kind: not kind.places)


class FaultSection(_OfAllKinds):
    """A fault of a link, switch or NIC, once or repeated, or a rewiring of the optical switches."""

    @property
    def kind(self) -> FaultKind[Any]:
        """The kind of the fault."""
        return FAULT_KINDS[self.event]

    @property
    def kind_keys(self) -> Any:  # noqa: ANN401 - the record of the kind's keys
        """The keys of the fault's kind."""
        model = self.kind.keys
        return model.model_construct(**{name: getattr(self, name) for name in model.model_fields})

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes with which the fault begins; none of a fault of the whole fabric."""
        return self.kind.begins(self.kind_keys)

    @property
    def places(self) -> tuple[tuple[PlaceName, str], ...]:
        """The places that the fault names, one in a sound fault with a place: kind of place and name."""
        named = ((place, getattr(self, place)) for place in PLACES)
        return tuple((place, name) for place, name in named if name is not None)


def check_faults(faults: tuple[FaultSection, ...], engine: EngineSection, reader: Reader) -> None:
    """Check each fault by itself and against the end of the run."""
    for index, fault in enumerate(faults):
        path = f"faults.{index}"
        if not reader.is_sound(path):
            continue
        if reader.is_sound(f"{path}.event") and fault.kind.whole is not None:
            _check_whole(fault, path, reader)
            _check_end(fault, path, engine, reader)
            continue
        place = _place(fault, path, reader)
        if place is not None and reader.is_sound(f"{path}.event"):
            _check_event(fault, place, path, engine, reader)
        _check_repetition(fault, path, reader)
        _check_end(fault, path, engine, reader)
    _check_together(faults, reader)


def _check_end(fault: FaultSection, path: str, engine: EngineSection, reader: Reader) -> None:
    if not reader.is_sound(f"{path}.at", "engine.until") or engine.until_ps is None:
        return
    if fault.at_ps >= engine.until_ps:
        reader.wrong(f"{path}.at", "lies at or after engine.until, so it would never happen")


def _check_whole(fault: FaultSection, path: str, reader: Reader) -> None:
    """Refuse places and repetition of a fault of the whole fabric."""
    whole = fault.kind.whole
    if whole is None:
        return
    for place, _ in fault.places:
        reader.wrong(f"{path}.{place}", f"means nothing for '{fault.event}', which {whole.no_place}")
    for name in _ONCE:
        if getattr(fault, name) is not None:
            reader.wrong(f"{path}.{name.removesuffix('_ps')}", f"means nothing for '{fault.event}', which {whole.once}")


def _check_together(faults: tuple[FaultSection, ...], reader: Reader) -> None:
    """Check the faults of each kind together."""
    of_kind: dict[str, list[ReadFault[Any]]] = {}
    for index, fault in enumerate(faults):
        path = f"faults.{index}"
        if reader.is_sound(f"{path}.event"):
            read = ReadFault(at_ps=fault.at_ps, keys=fault.kind_keys, findings=Read(reader=reader, section=path))
            of_kind.setdefault(fault.event, []).append(read)
    for name, kind in FAULT_KINDS.items():
        if name in of_kind:
            kind.check_together(of_kind[name])


def _place(fault: FaultSection, path: str, reader: Reader) -> PlaceName | None:
    """The place that a fault names; None if it is not clear."""
    if not reader.is_sound(*(f"{path}.{key}" for key in PLACES)):
        return None
    named = [place for place, _ in fault.places]
    if len(named) == 1:
        return named[0]
    reader.wrong(path, f"found {' and '.join(named) or 'none'}, wanted exactly one of {_listed(list(PLACES))}")
    return None


def _check_event(fault: FaultSection, place: PlaceName, path: str, engine: EngineSection, reader: Reader) -> None:
    allowed = [name for name, kind in FAULT_KINDS.items() if place in kind.places]
    if fault.event not in allowed:
        reader.wrong(f"{path}.event", f"found '{fault.event}' for {PLACES[place][0]}, wanted {_listed(allowed, 'or')}")
        return
    findings = Read(reader=reader, section=path)
    fault.kind.check(fault.kind_keys, place, findings)
    at_fidelity = fault.kind.check_fidelity.get(engine.fidelity)
    if at_fidelity is not None and reader.is_sound("engine.fidelity"):
        at_fidelity(fault.kind_keys, findings)


def _check_repetition(fault: FaultSection, path: str, reader: Reader) -> None:
    if not reader.is_sound(f"{path}.event", f"{path}.for", f"{path}.every", f"{path}.times"):
        return
    undoes = fault.kind.undoes
    if undoes and fault.for_ps is not None:
        reader.wrong(f"{path}.for", f"means nothing for '{fault.event}'; give it to the fault that is '{undoes}'")
    if (fault.every_ps is None) != (fault.times is None):
        given, missing = ("every", "times") if fault.times is None else ("times", "every")
        reader.wrong(
            f"{path}.{missing}", f"missing, wanted with {given}: flapping needs an interval and a number of times"
        )
    elif fault.every_ps is not None and not undoes:
        if fault.for_ps is None:
            reader.wrong(f"{path}.for", "missing, wanted with every and times: the duration of each fault")
        elif fault.for_ps >= fault.every_ps:
            reader.wrong(f"{path}.for", "is not shorter than every, so the fault would never end in between")
