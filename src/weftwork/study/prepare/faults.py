"""Faults of a scenario as faults of the engines.

Names become indices, and repeated faults are written out.

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

from weftwork.base.errors import Mistake
from weftwork.base.nearest import nearest, turned_round
from weftwork.engine.lower import Fault
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.topology.lost_names import cubes_in

if TYPE_CHECKING:
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
    """One fault at one instant, for the user and for the engine.

    Parameters
    ----------
    event : such as ``down``, or ``down ends``
    where : name of the link, switch or NIC
    faults : what the engines do, one for each port of a NIC
    """

    event: str
    where: str
    faults: tuple[Fault, ...]

    @property
    def at_ps(self) -> int:
        """Instant of the fault."""
        return self.faults[0].at_ps


def occurrences(
    scenario: Scenario, fabric: Fabric, changes: Sequence[Rewiring] = ()
) -> tuple[list[Occurrence], list[Mistake]]:
    """Write out all faults in the order of the scenario.

    A name that the fabric does not have is a mistake.

    Parameters
    ----------
    scenario : its faults
    fabric : whose links, switches and NICs
    changes : rewirings of the optical switches
    """
    rewired = {change.index: change for change in changes}
    names = {kind: NamedPlaces(fabric, kind) for kind in ("link", "switch", "nic")}
    found: list[Occurrence] = []
    mistakes: list[Mistake] = []
    for index, fault in enumerate(scenario.faults):
        if fault.event == "rewire":
            found += _rewired(rewired.get(index))
            continue
        kind, name = next((key, getattr(fault, key)) for key in names if getattr(fault, key) is not None)
        if kind == "switch" and (part := _of_pod(fabric, name)) is not None:
            found += _written_out(fabric, fault, part[0], name, part[1])
            continue
        places, wrong = named_mistake(fabric, kind, name, names[kind])
        if wrong is not None:
            mistakes.append(Mistake(path=f"faults.{index}.{kind}", text=wrong[0], fix=wrong[1]))
            continue
        found += _written_out(fabric, fault, kind, name, places)
    return found, mistakes


def _rewired(change: Rewiring | None) -> Iterator[Occurrence]:
    """Loss of the old circuits and arrival of the new ones."""
    if change is not None:
        yield Occurrence(event="rewire", where=change.where, faults=change.goes)
        yield Occurrence(event="rewire ends", where=change.where, faults=change.comes)


def _of_pod(fabric: Fabric, name: str) -> tuple[str, list[int]] | None:
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


def _written_out(fabric: Fabric, fault: FaultSection, kind: str, name: str, places: list[int]) -> Iterator[Occurrence]:
    for turn in range(fault.times or 1):
        at_ps = fault.at_ps + turn * (fault.every_ps or 0)
        yield Occurrence(
            event=fault.event,
            where=name,
            faults=tuple(_begins(fabric, fault, kind, place, at_ps) for place in places),
        )
        if fault.for_ps is not None:
            yield Occurrence(
                event=f"{fault.event} ends",
                where=name,
                faults=tuple(_ends(fabric, fault, kind, place, at_ps + fault.for_ps) for place in places),
            )


def _begins(fabric: Fabric, fault: FaultSection, kind: str, place: int, at_ps: int) -> Fault:
    if fault.event == "slow":
        rate_bps = fault.rate_bps or max(1, round(_host_rate_bps(fabric, place) * (fault.fraction or 1)))
        return Fault(at_ps=at_ps, event="slow", nic=place, rate_bps=rate_bps)
    link = int(fabric.ports.link[place]) if kind == "nic" else place
    if fault.event == "degrade":
        rate_bps = fault.rate_bps or max(1, round(int(fabric.links["rate_bps"][link]) * (fault.fraction or 1)))
        return Fault(at_ps=at_ps, event="degrade", link=link, rate_bps=rate_bps)
    if fault.event == "lossy":
        return Fault(at_ps=at_ps, event="lossy", link=link, loss=fault.loss or 0.0)
    return _switched(kind, link, at_ps, is_up=fault.event == "up")


def _ends(fabric: Fabric, fault: FaultSection, kind: str, place: int, at_ps: int) -> Fault:
    """Restore the state before the first fault."""
    if fault.event == "slow":
        device = fabric.nics[fabric.node_device[fabric.ports.node[place]]]
        return Fault(at_ps=at_ps, event="slow", nic=place, rate_bps=device.pcie_rate_bps)
    link = int(fabric.ports.link[place]) if kind == "nic" else place
    if fault.event == "degrade":
        return Fault(at_ps=at_ps, event="degrade", link=link, rate_bps=int(fabric.links["rate_bps"][link]))
    if fault.event == "lossy":
        return Fault(at_ps=at_ps, event="lossy", link=link, loss=float(fabric.links["loss"][link]))
    return _switched(kind, link, at_ps, is_up=True)


def _switched(kind: str, place: int, at_ps: int, *, is_up: bool) -> Fault:
    if kind == "switch":
        return Fault(at_ps=at_ps, event="up" if is_up else "down", switch=place)
    return Fault(at_ps=at_ps, event="up" if is_up else "down", link=place)


def _host_rate_bps(fabric: Fabric, port: int) -> int:
    """Rate of the host interface.

    If the host is never the bottleneck, the rate of the link.
    """
    device = fabric.nics[fabric.node_device[fabric.ports.node[port]]]
    return device.pcie_rate_bps or int(fabric.links["rate_bps"][fabric.ports.link[port]])
