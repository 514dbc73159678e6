"""Faults of a scenario as faults of the engines.

Names become indices, and repeated faults are written out. What a fault does is what the record of its kind says
(`weftwork.spec.fault_kind`).

What lasts for a time is followed by its undoing. A NIC that goes down or comes up is its link. An optical switch is
its circuits, and a cube of a TPU pod is its chips.
Leaves out: which instants and routes follow (`weftwork.engine.instants`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.nearest import nearest, turned_round
from weftwork.engine.lower import Fault
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fault_changes import CHANGES, PLACES, ChangedState
from weftwork.spec.scenario.faults import end_of
from weftwork.topology.lost_names import cubes_in

if TYPE_CHECKING:
    from weftwork.base.findings import Findings
    from weftwork.spec.fault_changes import ChangeName, PlaceName
    from weftwork.spec.fault_kind import Change
    from weftwork.spec.scenario.faults import FaultSection
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.prepare.rewiring import Rewiring

__all__ = ["NamedPlaces", "Occurrence", "named_mistake", "occurrences"]

SHOWN: Final = 3  # chosen: names in a message; a fabric may have a million
MOST_COMPARED: Final = 50_000  # chosen: names among which the nearest is looked for; difflib takes seconds for them
KINDS: Final = {"switch": SWITCH, "nic": HOST}


class NamedPlaces(Mapping[str, int]):
    """Links, switches or hosts by name, found without a list of all."""

    def __init__(self, fabric: Fabric, kind: str) -> None:
        self._fabric = fabric
        self._node_kind = KINDS.get(kind)

    def __getitem__(self, name: str) -> int:
        if self._node_kind is None:
            return self._fabric.link(name)
        node = self._fabric.node(name)
        if self._fabric.node_kind[node] != self._node_kind:
            raise KeyError(name)
        return node

    def __iter__(self) -> Iterator[str]:
        if self._node_kind is None:
            return iter(self._fabric.link_names)
        nodes = np.flatnonzero(self._fabric.node_kind == self._node_kind)
        return (self._fabric.node_names[node] for node in nodes.tolist())

    def __len__(self) -> int:
        if self._node_kind is None:
            return len(self._fabric.link_names)
        return int((self._fabric.node_kind == self._node_kind).sum())


@dataclass(frozen=True, kw_only=True, slots=True)
class Occurrence:
    """The beginning or the end of a fault, for the user and for the engine.

    Parameters
    ----------
    event : such as ``down``, or ``down ends``
    where : name of the link, switch or NIC; the new wiring of optical switches in words
    place : name of the part that is faulty
    faults : what the engines do, in the order of time at each place, such as each port of a NIC
    """

    event: str
    where: str
    place: str
    faults: tuple[Fault, ...]

    @property
    def at_ps(self) -> int:
        """Instant of the first change."""
        return self.faults[0].at_ps


def occurrences(
    scenario: Scenario, fabric: Fabric, findings: Findings, changes: Sequence[Rewiring] = ()
) -> list[Occurrence]:
    """Write out all faults in the order of the scenario.

    Parameters
    ----------
    scenario : its faults
    fabric : whose links, switches and NICs
    findings : take a mistake for each name that the fabric does not have
    changes : rewirings of the optical switches
    """
    rewired = {change.index: change for change in changes}
    names = {kind: NamedPlaces(fabric, kind) for kind in PLACES}
    found: list[Occurrence] = []
    for index, fault in enumerate(scenario.faults):
        if (whole := fault.kind.whole) is not None:
            found += _rewired(fault.event, whole.name, rewired.get(index))
            continue
        kind, name = fault.places[0]
        if kind == "switch" and (part := _of_pod(fabric, name)) is not None:
            found += _written_out(fabric, fault, part[0], name, part[1])
            continue
        places, wrong = named_mistake(fabric, kind, name, names[kind])
        if wrong is not None:
            findings.wrong(f"faults.{index}.{kind}", *wrong)
            continue
        found += _written_out(fabric, fault, kind, name, places)
    return found


def _rewired(event: str, place: str, change: Rewiring | None) -> Iterator[Occurrence]:
    """Loss of the old circuits and arrival of the new ones."""
    if change is not None:
        yield Occurrence(event=event, where=change.where, place=place, faults=change.goes)
        yield Occurrence(event=end_of(event), where=change.where, place=place, faults=change.comes)


def _of_pod(fabric: Fabric, name: str) -> tuple[PlaceName, list[int]] | None:
    """Circuits of an optical switch or chips of a cube, with their kind; None for another name."""
    optical = None if fabric.direct is None else fabric.direct.optical
    if optical is not None and name in optical.names:
        circuits: list[int] = np.flatnonzero(optical.link_switch == optical.names.index(name)).tolist()
        return ("link", circuits) if circuits else None
    numbers = {f"cube{cube}": cube for cube in cubes_in(fabric)}
    if fabric.node_pod is None or name not in numbers:
        return None
    chips = (fabric.node_pod == numbers[name]) & (fabric.node_kind == SWITCH)
    return "switch", np.flatnonzero(chips).tolist()


def named_mistake(
    fabric: Fabric, kind: str, name: str, known: NamedPlaces | None = None
) -> tuple[list[int], tuple[str, str | None] | None]:
    """Indices of a name, or its mistake with the nearest name.

    The indices are of links, switches or NIC ports.

    Parameters
    ----------
    kind : ``link``, ``switch`` or ``nic``
    known : the places of this kind, where the caller has them
    """
    names = NamedPlaces(fabric, kind) if known is None else known
    places, text = _places(fabric, kind, name, names)
    return places, None if text is None else (text, None if places else _fix(name, names))


def _fix(name: str, known: Mapping[str, int]) -> str | None:
    near = known if len(known) <= MOST_COMPARED else ()
    return turned_round(name, known) or nearest(name.partition("/")[0], near)


def _places(fabric: Fabric, kind: str, name: str, known: Mapping[str, int]) -> tuple[list[int], str | None]:
    """Indices of links, switches or NIC ports for a name, or its mistake."""
    host, slash, port = name.partition("/") if kind == "nic" else (name, "", "")
    if host not in known:
        some = ", ".join(islice(known, SHOWN))
        more = f" and {len(known) - SHOWN:,} more" if len(known) > SHOWN else ""
        what = "host" if kind == "nic" else kind
        return [], f"found '{name}', which is no {what} of the fabric, wanted such as {some}{more}"
    if kind != "nic":
        return [known[host]], None
    base = fabric.ports.base
    ports = list(range(int(base[known[host]]), int(base[known[host] + 1])))
    if not slash:
        return ports, None
    number = port.removeprefix("nic")
    if not number.isdecimal() or int(number) >= len(ports):
        return ports, f"found '{name}', wanted {host}/nic0 to {host}/nic{len(ports) - 1}, or {host} for all"
    return [ports[int(number)]], None


def _written_out(
    fabric: Fabric, fault: FaultSection, kind: PlaceName, name: str, places: list[int]
) -> Iterator[Occurrence]:
    changes = fault.changes
    for turn in range(fault.times or 1):
        at_ps = fault.at_ps + turn * (fault.every_ps or 0)
        yield Occurrence(
            event=fault.event,
            where=name,
            place=name,
            faults=tuple(_begins(fabric, change, kind, place, at_ps) for place in places for change in changes),
        )
        if fault.for_ps is not None:
            yield Occurrence(
                event=end_of(fault.event),
                where=name,
                place=name,
                faults=tuple(
                    _ends(fabric, state, kind, place, at_ps + fault.for_ps)
                    for place in places
                    for state in dict.fromkeys(CHANGES[change.name].sets for change in changes)
                ),
            )


def _begins(fabric: Fabric, change: Change, kind: PlaceName, place: int, at_ps: int) -> Fault:
    """One change of a fault; a change that a NIC port does not have is one of its link."""
    at_ps += change.after_ps
    match CHANGES[change.name].sets:
        case ChangedState.HOST_RATE:
            rate_bps = _remaining_bps(change, _host_rate_bps(fabric, place))
            return Fault(at_ps=at_ps, event=change.name, nic=place, rate_bps=rate_bps)
        case ChangedState.RATE:
            link = _link_at(fabric, kind, place)
            rate_bps = _remaining_bps(change, int(fabric.links["rate_bps"][link]))
            return Fault(at_ps=at_ps, event=change.name, link=link, rate_bps=rate_bps)
        case ChangedState.LOSS:
            return Fault(at_ps=at_ps, event=change.name, link=_link_at(fabric, kind, place), loss=change.loss)
        case ChangedState.WORKS | ChangedState.CIRCUIT:
            return _passing(fabric, change.name, kind, place, at_ps)


def _ends(fabric: Fabric, state: ChangedState, kind: PlaceName, place: int, at_ps: int) -> Fault:
    """Set a state back to what it was before all faults."""
    if state is ChangedState.HOST_RATE:
        device = fabric.nics[fabric.node_device[fabric.ports.node[place]]]
        return Fault(at_ps=at_ps, event=_change_of(state), nic=place, rate_bps=device.pcie_rate_bps)
    if state is ChangedState.WORKS:
        return _passing(fabric, _change_of(state, passes=True), kind, place, at_ps)
    link = _link_at(fabric, kind, place)
    if state is ChangedState.CIRCUIT:
        return _passing(fabric, _change_of(state, passes=bool(fabric.links_at_start[link])), kind, place, at_ps)
    row = fabric.links[link]
    if state is ChangedState.RATE:
        return Fault(at_ps=at_ps, event=_change_of(state), link=link, rate_bps=int(row["rate_bps"]))
    return Fault(at_ps=at_ps, event=_change_of(state), link=link, loss=float(row["loss"]))


def _change_of(state: ChangedState, *, passes: bool | None = None) -> ChangeName:
    """The change that sets a state, and after which packets pass or not where it decides that."""
    return next(name for name, row in CHANGES.items() if row.sets is state and row.passes is passes)


def _remaining_bps(change: Change, whole_bps: int) -> int:
    return change.rate_bps or max(1, round(whole_bps * (change.fraction or 1)))


def _link_at(fabric: Fabric, kind: PlaceName, place: int) -> int:
    return int(fabric.ports.link[place]) if kind == "nic" else place


def _passing(fabric: Fabric, event: ChangeName, kind: PlaceName, place: int, at_ps: int) -> Fault:
    if kind == "switch":
        return Fault(at_ps=at_ps, event=event, switch=place)
    return Fault(at_ps=at_ps, event=event, link=_link_at(fabric, kind, place))


def _host_rate_bps(fabric: Fabric, port: int) -> int:
    """Rate of the host interface.

    If the host is never the bottleneck, the rate of the link.
    """
    device = fabric.nics[fabric.node_device[fabric.ports.node[port]]]
    return device.pcie_rate_bps or int(fabric.links["rate_bps"][fabric.ports.link[port]])
