"""A routing without detours in a direct network, where one link was busy and carried more than its equals.

Shortest paths of a direct network are few, so traffic that all wants the same of them is held up by the routing while
other links have room. Equals are the links between groups, or all other links between switches.
Leaves out: jobs that the flow engine folds, since nothing folds under adaptive routing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.findings import Findings
from weftwork.spec.answer import CulpritIds
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.routings import ROUTINGS
from weftwork.spec.scenario.policies import PolicyChoice
from weftwork.study.answer.suspect import BUSY, COLLIDED, Suspect
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.answer.suspicions._switch_links import ports_between_switches
from weftwork.study.prepare import what_if
from weftwork.study.prepare.lowered import folds
from weftwork.study.prepare.other_routing import most_channels
from weftwork.study.results.link_use import sent_bytes
from weftwork.topology.port_names import port_names
from weftwork.topology.routing_plan import planned_routing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weftwork.study.prepare.prepared import Prepared

__all__ = ["SUSPICION"]

OTHER: Final = "ugal"  # chosen: every direct network knows it, and it detours only where that is faster


def _routing(records: RunRecords) -> Iterator[Suspect]:
    prepared, use, direct = records.prepared, records.use, records.prepared.fabric.direct
    fabric, section = prepared.fabric, prepared.scenario.fabric
    if direct is None or ROUTINGS[section.routing].detour != "never" or folds(prepared.scenario):
        return
    between = ports_between_switches(fabric)
    if not len(between):
        return
    carried = sent_bytes(prepared, records.execution)
    worst = int(between[np.argmax(use[between])])
    is_global = direct.is_global[fabric.ports.link]
    equals = between[is_global[between] == is_global[worst]]
    times = float(carried[worst] / carried[equals].mean()) if carried[worst] else 0.0
    if times <= COLLIDED or use[worst] <= BUSY or not _can_detour(prepared):
        return
    (link,) = port_names(fabric, np.array([worst]))
    yield Suspect(
        ids=CulpritIds(ports=(worst,)),
        kind="setting",
        name=f"{section.routing} routing",
        key="fabric.routing",
        text=f"put {times:.3g} times the mean load of its equals on {link}, while {OTHER} would take detours",
        change=_detoured,
    )


def _can_detour(prepared: Prepared) -> bool:
    """Whether adaptive routing runs here: it has an intermediate, and a port has the queues for its channels."""
    findings = Findings()
    plan = planned_routing(prepared.fabric, OTHER, findings, paths=prepared.scenario.fabric.paths)
    if findings.has_mistakes:
        return False
    return not FIDELITIES[prepared.scenario.engine.fidelity].has_packets or plan.channels <= most_channels(
        prepared.transport
    )


def _detoured(prepared: Prepared) -> Prepared:
    """The run under adaptive routing, which chooses ports itself, with receivers that put packets in order."""
    ecmp = PolicyChoice(name="ecmp")
    chosen = {"path_selection": ecmp, "port_selection": ecmp, "reorder_tolerant": True}
    return what_if.with_section(
        prepared,
        fabric=prepared.scenario.fabric.model_copy(update={"routing": OTHER}),
        transport=prepared.scenario.transport.model_copy(update=chosen),
    )


SUSPICION: Final = Suspicion(
    rank=190,
    key="fabric.routing",
    needs=frozenset({"direct network"}),
    suspects=_routing,
)
