"""The routing of a scenario as the routing of the engines.

Names of hosts, NIC ports and switches become ports.

Leaves out: which paths k-shortest routing finds (`weftwork.topology.layers`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.fix import ItemValue
from weftwork.engine.pins import check_pins
from weftwork.spec.fabric import HOST
from weftwork.spec.routing import Pin, Routing
from weftwork.study.prepare.faults import named_mistake
from weftwork.topology.routing_plan import planned_routing

if TYPE_CHECKING:
    from weftwork.base.findings import Findings
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job
    from weftwork.spec.scenario.pins import PinSection
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.prepare.engineering import Engineering

__all__ = ["check_pinned", "routing_of"]


def routing_of(scenario: Scenario, fabric: Fabric, findings: Findings, planned: Engineering | None = None) -> Routing:
    """The paths that packets may take.

    Parameters
    ----------
    scenario : its keys ``fabric.routing``, ``fabric.paths`` and ``fabric.pinned``
    fabric : whose hosts, switches and links
    findings : take mistakes of names, and of a routing that the fabric cannot have
    planned : paths of a controller, of `weftwork.study.prepare.engineering.planned_paths`; None: there is none
    """
    section = scenario.fabric
    pins = _pins(section.pinned, fabric, findings)
    plan = planned_routing(fabric, section.routing, findings, paths=section.paths)
    if planned is not None:
        return replace(plan.routing, pins=planned.pins, plan_at_ps=planned.plan_at_ps)
    return replace(plan.routing, pins=tuple(pin for _, pin in pins))


def check_pinned(scenario: Scenario, fabric: Fabric, job: Job | None, findings: Findings) -> None:
    """Find mistakes in pinned paths.

    Parameters
    ----------
    job : that runs; None where it could not be made
    findings : take them
    """
    pins = _pins(scenario.fabric.pinned, fabric, findings)
    if job is not None and pins:
        check_pins(fabric, job, pins, findings)


def _pins(entries: tuple[PinSection, ...], fabric: Fabric, findings: Findings) -> list[tuple[int, Pin]]:
    """Entries with a valid path by their number."""
    found: list[tuple[int, Pin]] = []
    for index, entry in enumerate(entries):
        pin = _Reading(fabric=fabric, findings=findings.reserved(f"fabric.pinned.{index}")).pin(entry)
        if pin is not None:
            found.append((index, pin))
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reading:
    """One entry on its way to ports."""

    fabric: Fabric
    findings: Findings

    def pin(self, entry: PinSection) -> Pin | None:
        """The entry as ports.

        None with mistakes if it is not a path.
        """
        nics = [self._nics(key, name) for key, name in (("from", entry.sender), ("to", entry.receiver))]
        switches = [self._switch(index, name) for index, name in enumerate(entry.path)]
        known = [switch for switch in switches if switch is not None]
        ports = self._ports(known) if len(known) == len(switches) else None
        sources = self._at(entry.sender, nics[0], switches[0], 0)
        destinations = self._at(entry.receiver, nics[1], switches[-1], len(switches) - 1)
        if self.findings.has_mistakes or ports is None:
            return None
        return Pin(sources=sources, destinations=destinations, ports=ports)

    def _nics(self, key: str, name: str) -> list[int]:
        """NIC ports of a name; none if it is unknown."""
        ports, mistake = named_mistake(self.fabric, "nic", name)
        if mistake is None:
            return ports
        self.findings.wrong(key, *mistake)
        return []

    def _switch(self, index: int, name: str) -> int | None:
        places, mistake = named_mistake(self.fabric, "switch", name)
        if mistake is None:
            return places[0]
        text, near = mistake
        self.findings.wrong("path", text, near and ItemValue(index, near))
        return None

    def _ports(self, switches: list[int]) -> tuple[int, ...] | None:
        """The port of each switch towards the next.

        None if two switches are not joined.
        """
        ports, names = self.fabric.ports, self.fabric.node_names
        found: list[int] = []
        for node, following in pairwise(switches):
            own = np.arange(ports.base[node], ports.base[node + 1])
            beyond = ports.node[ports.peer[own]]
            towards = own[beyond == following]
            if len(towards):
                found.append(int(towards[0]))
                continue
            near = [names[one] for one in dict.fromkeys(beyond.tolist()) if self.fabric.node_kind[one] != HOST]
            some = ", ".join(near[:3]) + (f" and {len(near) - 3:,} more" if len(near) > 3 else "")
            self.findings.wrong(
                "path", f"no link joins '{names[node]}' and '{names[following]}', wanted such as {some}"
            )
        return tuple(found) if len(found) == len(switches) - 1 else None

    def _at(self, name: str, nics: list[int], switch: int | None, index: int) -> tuple[int, ...]:
        """The NIC ports attached to the first or last switch of the path, by its number in it."""
        ports, names = self.fabric.ports, self.fabric.node_names
        if switch is None or not nics:
            return ()
        own = tuple(nic for nic in nics if ports.node[ports.peer[nic]] == switch)
        if not own:
            leaves = list(dict.fromkeys(names[ports.node[ports.peer[nic]]] for nic in nics))
            end = "ends" if index else "starts"
            text = f"the path {end} at '{names[switch]}', but '{name}' is attached to {', '.join(leaves[:3])}"
            self.findings.wrong("path", text, ItemValue(index, leaves[0]))
        return own
