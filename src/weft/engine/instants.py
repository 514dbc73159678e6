"""Faults as the engines see them: instants at which links go down, come up or change their rate, and new routes later.

A link works only while it and both of its ends do; a switch that is down takes its links along. Routes follow every
change of links after the reconvergence delay, and hold what was up when the fault happened.
Leaves out: how a routing protocol finds out, and switches that learn of a fault at different times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from weft.base.errors import Mistake
from weft.engine.plan import INSTANT_DTYPE, Instant, RouteTable
from weft.spec.fabric import SWITCH, Fabric
from weft.topology.routing import routes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Fault", "fault_mistakes", "lower_faults", "route_table"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """Something that happens to a link or a switch.

    Parameters
    ----------
    at_ps : when
    event : ``down``, ``up`` (undoes ``down``) or ``degrade`` (a link has ``rate_bps`` from now on)
    link : index of the link, or -1
    switch : node index of the switch, or -1
    rate_bps : for ``degrade``
    """

    at_ps: int
    event: Literal["down", "up", "degrade"]
    link: int = -1
    switch: int = -1
    rate_bps: int = 0


def fault_mistakes(fabric: Fabric, faults: Sequence[Fault]) -> list[Mistake]:
    """Find faults that name nothing or cannot happen."""
    mistakes: list[Mistake] = []
    for index, fault in enumerate(faults):
        text = _mistake(fabric, fault)
        if text is not None:
            mistakes.append(Mistake(path=f"faults.{index}", text=text))
    return mistakes


def _mistake(fabric: Fabric, fault: Fault) -> str | None:
    if (fault.link < 0) == (fault.switch < 0):
        return "wanted either a link or a switch"
    if fault.at_ps < 0:
        return f"found {fault.at_ps} ps, wanted 0 or more"
    if fault.link >= len(fabric.links):
        return f"found link {fault.link}, wanted 0 to {len(fabric.links) - 1}"
    if fault.switch >= len(fabric.node_names):
        return f"found node {fault.switch}, wanted 0 to {len(fabric.node_names) - 1}"
    if fault.switch >= 0 and fabric.node_kind[fault.switch] != SWITCH:
        return f"'{fabric.node_names[fault.switch]}' is a host, wanted a switch"
    if fault.event == "degrade":
        if fault.link < 0:
            return "only a link can be degraded, a switch is up or down"
        full_bps = int(fabric.links["rate_bps"][fault.link])
        if not 0 < fault.rate_bps <= full_bps:
            return f"found {fault.rate_bps} b/s, wanted more than 0 and at most the link's own rate, {full_bps} b/s"
    return None


def route_table(fabric: Fabric, link_up: NDArray[np.bool_]) -> RouteTable:
    """Routes over the links that are up, all candidates with the same weight."""
    found = routes(fabric, link_up)
    return RouteTable(
        group_of=found.group_of,
        group_ptr=found.group_ptr,
        group_ports=found.group_ports,
        group_weights=np.ones(len(found.group_ports), np.int32),
    )


def lower_faults(
    fabric: Fabric, faults: Sequence[Fault], reconvergence_delay_ps: int
) -> tuple[NDArray[np.void], tuple[RouteTable, ...]]:
    """Turn faults into the instants and route tables of a plan.

    Parameters
    ----------
    fabric : whose links
    faults : in any order; those of one instant happen in the order given
    reconvergence_delay_ps : from a fault until routes that know of it hold everywhere

    Returns
    -------
    instants, `INSTANT_DTYPE` ordered by time, links before routes at one instant; and the tables, the first for time 0
    """
    links = fabric.links
    ports = fabric.ports
    first_port = np.full(len(links), len(ports.link), np.int64)
    np.minimum.at(first_port, ports.link, np.arange(len(ports.link)))
    link_up = np.ones(len(links), np.bool_)
    node_up = np.ones(len(fabric.node_names), np.bool_)
    works = np.ones(len(links), np.bool_)
    tables = [route_table(fabric, works)]
    known = {works.tobytes(): 0}
    events: list[tuple[int, int, int, int]] = []
    epochs: list[tuple[int, int, int, int]] = []
    ordered = sorted(faults, key=lambda fault: fault.at_ps)
    for place, fault in enumerate(ordered):
        if fault.event == "degrade":
            events.append((fault.at_ps, Instant.RATE, int(first_port[fault.link]), fault.rate_bps))
        elif fault.link >= 0:
            link_up[fault.link] = fault.event == "up"
        else:
            node_up[fault.switch] = fault.event == "up"
        now = link_up & node_up[links["a"]] & node_up[links["b"]]
        changed = np.flatnonzero(now != works)
        events += [
            (fault.at_ps, Instant.LINK_UP if now[link] else Instant.LINK_DOWN, int(first_port[link]), 0)
            for link in changed[np.argsort(first_port[changed])].tolist()
        ]
        works = now
        if place + 1 < len(ordered) and ordered[place + 1].at_ps == fault.at_ps:
            continue
        key = works.tobytes()
        if key not in known:
            known[key] = len(tables)
            tables.append(route_table(fabric, works))
        if known[key] != (epochs[-1][3] if epochs else 0):
            epochs.append((fault.at_ps + reconvergence_delay_ps, Instant.ROUTES, 0, known[key]))
    instants = np.array(sorted([*events, *epochs], key=lambda row: (row[0], row[1] == Instant.ROUTES)), INSTANT_DTYPE)
    return instants, tuple(tables)
