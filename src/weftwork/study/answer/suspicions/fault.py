"""Faults of the scenario, one suspect for each place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from weftwork.base.units import DURATION, format_quantity
from weftwork.spec.answer import CulpritIds
from weftwork.spec.fault_kind import Detours
from weftwork.study.answer.ids import ids_of_links, ids_of_nics, ids_of_nodes
from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.answer.suspicion import Suspicion
from weftwork.study.prepare import what_if
from weftwork.study.prepare.faults import named_mistake

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weftwork.spec.answer import CulpritKind
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.faults import FaultSection
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["SUSPICION", "placed_faults"]


def placed_faults(prepared: Prepared) -> Iterator[Suspect]:
    """One suspect for each place with a fault, with the ids of the place and of its faults.

    The event that ends a fault belongs to the same suspect.

    Parameters
    ----------
    prepared : what was run
    """
    places: dict[tuple[CulpritKind, str], list[int]] = {}
    for index, fault in enumerate(prepared.scenario.faults):
        whole = fault.kind.whole
        places.setdefault(fault.places[0] if whole is None else ("fault", whole.name), []).append(index)
    for (kind, name), indices in places.items():
        gone = tuple(prepared.scenario.faults[index] for index in indices)
        last_ps = [fault.at_ps for fault in prepared.faults if fault.place == name]
        yield Suspect(
            kind=kind,
            name=name,
            key=f"faults.{indices[0]}",
            text=_happened(gone[0], has_more=len(indices) > 1),
            change=changed(_without_faults, gone),
            start_ps=gone[0].at_ps,
            end_ps=max(last_ps) if len(last_ps) > 1 else None,
            lasts_ps=_lasts_ps(prepared, gone),
            ids=replace(_ids(prepared.fabric, kind, name), faults=tuple(indices)),
        )


def _ids(fabric: Fabric, kind: CulpritKind, name: str) -> CulpritIds:
    """Ids of a place; none for parts of a pod, which are many links, and for the whole fabric."""
    if kind == "fault":
        return CulpritIds()
    places, _ = named_mistake(fabric, kind, name)
    if not places:
        return CulpritIds()
    if kind == "link":
        return ids_of_links(fabric, places)
    return ids_of_nics(fabric, places) if kind == "nic" else ids_of_nodes(fabric, places)


def _without_faults(prepared: Prepared, gone: Sequence[FaultSection]) -> Prepared:
    """The run without some of its faults."""
    rest = tuple(fault for fault in prepared.scenario.faults if fault not in gone)
    return what_if.with_section(prepared, faults=rest)


def _lasts_ps(prepared: Prepared, faults: Sequence[FaultSection]) -> int | None:
    """Time for which the faults of a place delay the run.

    A link that is down counts until routes or NICs avoid it.
    """
    section = prepared.scenario.fabric
    detours = Detours(reconvergence_ps=section.reconvergence_delay_ps, failover_ps=section.failover_delay_ps)
    total = 0
    for fault in faults:
        each_ps = fault.kind.delays_ps(fault.kind_keys, detours) if fault.for_ps is None else fault.for_ps
        if each_ps is None:
            return None
        total += (fault.times or 1) * each_ps
    return total


def _happened(fault: FaultSection, *, has_more: bool) -> str:
    at = f"from {format_quantity(DURATION, fault.at_ps)} on"
    text = fault.kind.words(fault.kind_keys)
    if fault.times and fault.times > 1:
        text = f"{fault.kind.words_repeated or text} {fault.times} times"
    elif fault.for_ps is not None:
        at = f"{at} for {format_quantity(DURATION, fault.for_ps)}"
    return f"{text} {at}" + (", and more" if has_more else "")


SUSPICION: Final = Suspicion(
    rank=10, key="faults", standing="wrong", suspects=lambda records: placed_faults(records.prepared)
)
