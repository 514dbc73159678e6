"""Faults for the engines: instants of changes, and new routes later.

Links, switches and NICs fail or change at these instants. A link works only while it and both of its ends do; a switch
that is down takes its links along. Routes follow every change of links after the reconvergence delay, and hold what was
up when the fault happened.
Leaves out: how a routing protocol finds out, and switches that learn of a fault at different times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from weftwork.engine.packet_input import RouteTable
from weftwork.engine.rows.fabric import INSTANT_DTYPE, Instant
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fault_changes import CHANGES, ChangedState, ChangeName, ChangeRow
from weftwork.spec.routing import SHORTEST, Routing
from weftwork.topology.routing import hops_left, routes, second_groups
from weftwork.topology.weights import weighted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from weftwork.base.findings import Findings
    from weftwork.topology.layers import Layers

__all__ = ["LOSS_PARTS", "Fault", "LinkState", "check_faults", "link_states", "lower_faults", "route_table"]

Table = TypeVar("Table")
LOSS_PARTS: Final = 10**9  # chosen: a probability as an integer that both engines divide alike


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A change of a link, a switch or a host's NIC.

    Parameters
    ----------
    at_ps : when
    event : the change, a name of `weftwork.spec.fault_changes.CHANGES`
    link : index of the link, or -1
    switch : node index of the switch, or -1
    nic : global port id of a NIC port, or -1
    rate_bps : from now on, of changes of a rate; between a NIC port and its host 0 for at once
    loss : from now on, of changes of the loss; of a packet, in each direction
    """

    at_ps: int
    event: ChangeName
    link: int = -1
    switch: int = -1
    nic: int = -1
    rate_bps: int = 0
    loss: float = 0.0

    @property
    def change(self) -> ChangeRow:
        """The row of the change."""
        return CHANGES[self.event]


def check_faults(fabric: Fabric, faults: Sequence[Fault], findings: Findings) -> None:
    """Find faults with unknown names or impossible events."""
    for index, fault in enumerate(faults):
        text = _mistake(fabric, fault)
        if text is not None:
            findings.wrong(f"faults.{index}", text)


def _mistake(fabric: Fabric, fault: Fault) -> str | None:
    if sum(place >= 0 for place in (fault.link, fault.switch, fault.nic)) != 1:
        return "wanted one of a link, a switch and a NIC port"
    if fault.at_ps < 0:
        return f"found {fault.at_ps} ps, wanted 0 or more"
    return _place_mistake(fabric, fault) or _event_mistake(fabric, fault)


def _place_mistake(fabric: Fabric, fault: Fault) -> str | None:
    """Mistake of a place: missing in the fabric, or of another kind."""
    if fault.link >= len(fabric.links):
        return f"found link {fault.link}, wanted 0 to {len(fabric.links) - 1}"
    if fault.switch >= len(fabric.node_names):
        return f"found node {fault.switch}, wanted 0 to {len(fabric.node_names) - 1}"
    if fault.switch >= 0 and fabric.node_kind[fault.switch] != SWITCH:
        return f"'{fabric.node_names[fault.switch]}' is a host, wanted a switch"
    ports = fabric.ports.node
    if fault.nic >= len(ports) or (fault.nic >= 0 and fabric.node_kind[ports[fault.nic]] == SWITCH):
        return f"found port {fault.nic}, wanted a port of a host"
    return None


def _event_mistake(fabric: Fabric, fault: Fault) -> str | None:
    """Mistake of an event that cannot happen at its place."""
    change = fault.change
    if (change.sets is ChangedState.HOST_RATE) != (fault.nic >= 0):
        return "only a NIC can be slow, and a NIC can only be slow; its link can be down, degraded or lossy"
    if change.sets is ChangedState.HOST_RATE and fault.rate_bps < 0:
        return f"found {fault.rate_bps} b/s, wanted 0 or more"
    if change.places == ("link",) and fault.link < 0:
        return f"only a link can be {change.words}, a switch is up or down"
    if change.sets is ChangedState.LOSS and not 0 <= fault.loss <= 1:
        return f"found a loss of {fault.loss:g}, wanted a probability from 0 to 1"
    if change.sets is ChangedState.RATE:
        full_bps = int(fabric.links["rate_bps"][fault.link])
        if not 0 < fault.rate_bps <= full_bps:
            return f"found {fault.rate_bps} b/s, wanted more than 0 and at most the link's own rate, {full_bps} b/s"
    return None


def route_table(
    fabric: Fabric,
    link_up: NDArray[np.bool_],
    *,
    has_distances: bool = False,
    has_seconds: bool = False,
    has_weights: bool = False,
    layers: Layers | None = None,
    routing: Routing = SHORTEST,
) -> RouteTable:
    """Routes over the links that are up.

    Parameters
    ----------
    has_distances, has_seconds : whether the table tells distances, and groups of ports on no shortest path
    has_weights : whether candidates are weighted by the capacity behind them; else all weigh 1
    layers : paths besides the shortest ones, over the same links
    routing : its rule of routes; where they never go down and then up again, there are no groups on other paths
    """
    up_down = routing.up_down
    rule = {
        "up_down": up_down,
        "dimension_order": routing.dimension_order,
        "fewest_global_hops": routing.fewest_global_hops,
    }
    found = routes(fabric, link_up, **rule)
    weights = np.ones(len(found.group_ports), np.int32)
    if has_weights:
        found, weights = weighted(fabric, link_up, found, up_down=up_down)
    seconds = second_groups(fabric, link_up, found) if has_seconds else None
    distance = np.empty((0, 0), np.int16)
    if has_distances:
        distance = hops_left(fabric, link_up, found.attach_node, **rule).hops
    group_ptr = found.group_ptr if seconds is None else seconds.group_ptr
    group_ports = found.group_ports if seconds is None else seconds.group_ports
    layer_group: NDArray[np.integer] = np.empty((0, 0, 0), np.int32)
    if layers is not None:  # a group of its own for each port that a layer sends by
        own, layer_group = np.unique(layers.next_port, return_inverse=True)
        first = len(group_ptr) - 1 - int((own < 0).any())  # -1, the least, is no port
        layer_group = np.where(layers.next_port < 0, -1, first + layer_group.reshape(layers.next_port.shape))
        own = own[own >= 0]
        group_ptr = np.append(group_ptr, group_ptr[-1] + 1 + np.arange(len(own)))
        group_ports = np.append(group_ports, own).astype(np.int32)
    rest = np.ones(len(group_ports) - len(weights), np.int32)
    return RouteTable(
        group_of=found.group_of,
        group_ptr=group_ptr,
        group_ports=group_ports,
        group_weights=np.append(weights, rest),
        second_of=np.empty((0, 0), np.int32) if seconds is None else seconds.group_of,
        distance=distance,
        layer_group=layer_group.astype(np.int32),
        layer_of=np.empty((0, 0, 0), np.int32) if layers is None else layers.layer_of,
        pinned_ways=0 if layers is None else layers.pinned_ways,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkState:
    """Working links, and their rates.

    Attributes
    ----------
    at_ps : from when on
    works : shape (links,), bool: the link and both of its ends are up
    rate_bps : shape (links,), int64
    """

    at_ps: int
    works: NDArray[np.bool_]
    rate_bps: NDArray[np.int64]


def link_states(fabric: Fabric, faults: Sequence[Fault]) -> list[LinkState]:
    """Link states after each fault instant.

    The first state is before all faults.

    Parameters
    ----------
    fabric : whose links
    faults : in any order; those of one instant happen in the order given
    """
    links = fabric.links
    up = _Up(fabric)
    rate_bps = links["rate_bps"].astype(np.int64)
    found = [LinkState(at_ps=0, works=up.works(), rate_bps=rate_bps.copy())]
    for at_ps in sorted({fault.at_ps for fault in faults}):
        for fault in faults:
            if fault.at_ps != at_ps:
                continue
            if fault.change.sets is ChangedState.RATE:
                rate_bps[fault.link] = fault.rate_bps
            else:
                up.note(fault)
        found.append(LinkState(at_ps=at_ps, works=up.works(), rate_bps=rate_bps.copy()))
    return found


class _Up:
    """Links and nodes that are up, and links that have a circuit."""

    def __init__(self, fabric: Fabric) -> None:
        self._links = fabric.links
        self._link = np.ones(len(fabric.links), np.bool_)
        self._node = np.ones(len(fabric.node_names), np.bool_)
        self._lit = fabric.links_at_start

    def note(self, fault: Fault) -> None:
        """Note that a link or a switch goes up or down, or that a circuit comes or goes."""
        change = fault.change
        if change.sets is ChangedState.CIRCUIT:
            self._lit[fault.link] = bool(change.passes)
        elif change.sets is ChangedState.WORKS and fault.link >= 0:
            self._link[fault.link] = bool(change.passes)
        elif change.sets is ChangedState.WORKS:
            self._node[fault.switch] = bool(change.passes)

    def works(self) -> NDArray[np.bool_]:
        """Links over which packets travel now, shape (links,)."""
        found: NDArray[np.bool_] = self._lit & self._link & self._node[self._links["a"]] & self._node[self._links["b"]]
        return found


def lower_faults(
    fabric: Fabric,
    faults: Sequence[Fault],
    reconvergence_delay_ps: int,
    failover_delay_ps: int | None = None,
    *,
    table: Callable[[Fabric, NDArray[np.bool_], int], Table],
    plan_at_ps: Sequence[int] = (),
) -> tuple[NDArray[np.void], tuple[Table, ...]]:
    """Turn faults into the instants and route tables of an engine input.

    Parameters
    ----------
    fabric : whose links
    faults : in any order; those of one instant happen in the order given
    reconvergence_delay_ps : from a fault until routes that know of it hold everywhere
    failover_delay_ps : from a link of a host that goes down or comes up until its queue pairs change their ports; None
        where no rank has a second port
    table : makes what an engine keeps of routes over the links that are up under a plan, such as `route_table`
    plan_at_ps : instants, ascending, at which the next plan of paths holds; before the first one it is plan 0

    Returns
    -------
    instants, `INSTANT_DTYPE` ordered by time, at one instant links before routes before failover; and the tables, the
    first for time 0
    """
    links = fabric.links
    ports = fabric.ports
    first_port = np.full(len(links), len(ports.link), np.int64)
    np.minimum.at(first_port, ports.link, np.arange(len(ports.link)))
    up = _Up(fabric)
    works = up.works()
    learned = [(0, works)]  # from when on routes know which links work
    events = [(0, int(Instant.LINK_DOWN), port, 0) for port in np.sort(first_port[~works]).tolist()]
    is_edge = (fabric.node_kind[links["a"]] == HOST) | (fabric.node_kind[links["b"]] == HOST)
    failovers: set[int] = set()
    ordered = sorted(faults, key=lambda fault: fault.at_ps)
    for place, fault in enumerate(ordered):
        sets = fault.change.sets
        if sets is ChangedState.RATE:
            events.append((fault.at_ps, Instant.RATE, int(first_port[fault.link]), fault.rate_bps))
        elif sets is ChangedState.LOSS:
            parts = round(fault.loss * LOSS_PARTS)
            events.append((fault.at_ps, Instant.LOSS, int(first_port[fault.link]), parts))
        elif sets is ChangedState.HOST_RATE:
            events.append((fault.at_ps, Instant.HOST_RATE, fault.nic, fault.rate_bps))
        else:
            up.note(fault)
        now = up.works()
        changed = np.flatnonzero(now != works)
        events += [
            (fault.at_ps, Instant.LINK_UP if now[link] else Instant.LINK_DOWN, int(first_port[link]), 0)
            for link in changed[np.argsort(first_port[changed])].tolist()
        ]
        if failover_delay_ps is not None and is_edge[changed].any():
            failovers.add(fault.at_ps + failover_delay_ps)
        works = now
        if place + 1 < len(ordered) and ordered[place + 1].at_ps == fault.at_ps:
            continue
        learned.append((fault.at_ps + reconvergence_delay_ps, works))
    epochs, tables = _epochs(fabric, learned, plan_at_ps, table)
    moves = [(at_ps, Instant.FAILOVER, 0, 0) for at_ps in failovers]
    last = (Instant.ROUTES, Instant.FAILOVER)
    rows = sorted([*events, *epochs, *moves], key=lambda row: (row[0], last.index(row[1]) + 1 if row[1] in last else 0))
    instants = np.array(rows, INSTANT_DTYPE)
    return instants, tuple(tables)


def _epochs(
    fabric: Fabric,
    learned: Sequence[tuple[int, NDArray[np.bool_]]],
    plan_at_ps: Sequence[int],
    table: Callable[[Fabric, NDArray[np.bool_], int], Table],
) -> tuple[list[tuple[int, int, int, int]], list[Table]]:
    """Instants of route changes, and their tables, each made once.

    Parameters
    ----------
    learned : from when on routes know which links work, in the order of time, the first for time 0
    """
    links: dict[int, NDArray[np.bool_]] = dict(learned[1:])  # of two at one instant the later holds
    plans = {at_ps: number for number, at_ps in enumerate(plan_at_ps, start=1)}
    (_, works), plan = learned[0], 0
    tables = [table(fabric, works, plan)]
    known = {(works.tobytes(), plan): 0}
    epochs: list[tuple[int, int, int, int]] = []
    for at_ps in sorted({*links, *plans}):
        works, plan = links.get(at_ps, works), plans.get(at_ps, plan)
        key = works.tobytes(), plan
        if key not in known:
            known[key] = len(tables)
            tables.append(table(fabric, works, plan))
        if known[key] != (epochs[-1][3] if epochs else 0):
            epochs.append((at_ps, int(Instant.ROUTES), 0, known[key]))
    return epochs, tables
