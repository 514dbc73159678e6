"""Suspects of a direct network: its routing, and the algorithm of a collective.

Shortest paths of a direct network are few, so traffic that all wants the same of them is held up by the routing while
other links have room. Likewise a ring on a lattice uses one axis of several.
Leaves out: what each of them cost (`weftwork.study.answer.answer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.policies.routings import ROUTINGS
from weftwork.spec.fabric import HOST
from weftwork.spec.scenario.choice import NoKeys
from weftwork.spec.scenario.policies import PolicyChoice
from weftwork.study.answer.suspect import BUSY, COLLIDED, Suspect, changed
from weftwork.study.prepare import what_if
from weftwork.study.prepare.calibrated import calibration_of
from weftwork.study.prepare.collective import method_used
from weftwork.study.prepare.lowered import folds
from weftwork.study.prepare.other_routing import most_channels
from weftwork.study.results.link_use import sent_bytes
from weftwork.study.results.record import port_names
from weftwork.topology.routing_plan import planned_routing
from weftwork.workload.collectives.lattice_streams import LOOPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from weftwork.spec.fabric_direct import DirectNetwork
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["direct_suspects"]

OTHER: Final = "ugal"  # chosen: every direct network knows it, and it detours only where that is faster


def direct_suspects(prepared: Prepared, execution: Execution, use: NDArray[np.float64]) -> Iterator[Suspect]:
    """Suspects of a run on a direct network; none elsewhere.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    use : of `weftwork.study.results.link_use.link_use`
    """
    direct = prepared.fabric.direct
    if direct is not None:
        yield from _algorithm(prepared)
        yield from _routing(prepared, direct, sent_bytes(prepared, execution), use)


def _algorithm(prepared: Prepared) -> Iterator[Suspect]:
    """An algorithm other than the one that ``auto`` takes."""
    section = prepared.scenario.collective
    if section is None or section.algorithm == "auto" or section.operation not in LOOPS:
        return
    by_auto = section.model_copy(update={"algorithm": "auto", "options": NoKeys()})
    seed, calibration = prepared.scenario.engine.seed, calibration_of(prepared.scenario)
    own, _ = method_used(section, prepared.fabric, seed=seed, calibration=calibration)
    other, _ = method_used(by_auto, prepared.fabric, seed=seed, calibration=calibration)
    if own != other:
        yield Suspect(
            kind="setting",
            name=own,
            key="collective.algorithm",
            text=f"is slower here than {other}, which auto takes",
            change=changed(what_if.with_section, collective=by_auto),
        )


def _routing(
    prepared: Prepared, direct: DirectNetwork, carried: NDArray[np.float64], use: NDArray[np.float64]
) -> Iterator[Suspect]:
    """A routing without detours, where one link was busy and carried more than its equals.

    Equals are the links between groups, or all other links between switches. Jobs that the flow engine folds have no
    such suspect, since nothing folds under adaptive routing.
    """
    fabric, section = prepared.fabric, prepared.scenario.fabric
    if ROUTINGS[section.routing].detour != "never" or folds(prepared.scenario):
        return
    ports = fabric.ports
    is_switch = fabric.node_kind != HOST
    between = np.flatnonzero(is_switch[ports.node] & is_switch[ports.node[ports.peer]])
    if not len(between):
        return
    worst = int(between[np.argmax(use[between])])
    is_global = direct.is_global[ports.link]
    equals = between[is_global[between] == is_global[worst]]
    times = float(carried[worst] / carried[equals].mean()) if carried[worst] else 0.0
    if times <= COLLIDED or use[worst] <= BUSY or not _can_detour(prepared):
        return
    (link,) = port_names(fabric, np.array([worst]))
    yield Suspect(
        kind="setting",
        name=f"{section.routing} routing",
        key="fabric.routing",
        text=f"put {times:.3g} times the mean load of its equals on {link}, while {OTHER} would take detours",
        change=_detoured,
    )


def _can_detour(prepared: Prepared) -> bool:
    """Whether adaptive routing runs here: it has an intermediate, and a port has the queues for its channels."""
    plan, mistakes = planned_routing(prepared.fabric, OTHER, paths=prepared.scenario.fabric.paths)
    if mistakes:
        return False
    return prepared.scenario.engine.fidelity == "flow" or plan.channels <= most_channels(prepared.transport)


def _detoured(prepared: Prepared) -> Prepared:
    """The run under adaptive routing, which chooses ports itself, with receivers that put packets in order."""
    ecmp = PolicyChoice(name="ecmp")
    chosen = {"path_selection": ecmp, "port_selection": ecmp, "reorder_tolerant": True}
    return what_if.with_section(
        prepared,
        fabric=prepared.scenario.fabric.model_copy(update={"routing": OTHER}),
        transport=prepared.scenario.transport.model_copy(update=chosen),
    )
