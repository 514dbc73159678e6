"""Flows over direct networks against the tables of the packet engine: dimension order, global links and detours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.cases import case_count
from helpers.direct_networks import dragonfly, torus
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.laws.test_flow_paths import by_hash, cases, hashing, host_ports
from tests.laws.test_routes import fabrics as random_fabrics

from weftwork.engine.flow.paths import FlowPaths
from weftwork.engine.lower import detour_groups, port_delays_ps
from weftwork.spec.fabric import HOST, Fabric
from weftwork.spec.fabric_direct import GLOBAL, TO_HOST, DirectNetwork
from weftwork.spec.routing import Routing
from weftwork.topology.build import fabric_of
from weftwork.topology.routing import DELIVER, Routes, routes

RULES: dict[str, dict[str, Any]] = {
    "shortest": {},
    "dimension order": {"dimension_order": True},
    "fewest global hops": {"fewest_global_hops": True},
}
DETOURS: dict[str, dict[str, Any]] = {
    "none": {},
    "by switch": {"detour": "always"},
    "by group": {"detour": "always", "detour_by_group": True},
}
Split = tuple[dict[int, float], int, int]  # load of each port, longest latency, most links


@st.composite
def networks(draw: st.DrawFn) -> tuple[Fabric, NDArray[np.bool_]]:
    """Direct networks: a dragonfly, a torus, or a random one whose links have random dimensions; some links down."""
    kind = draw(st.sampled_from(["dragonfly", "dragonfly+", "torus", "random", "random"]))
    if kind == "random":
        fabric, up = draw(random_fabrics())
        switches = fabric.node_kind != HOST
        groups = np.zeros(len(switches), np.int32)
        groups[switches] = draw(st.lists(st.integers(0, 3), min_size=int(switches.sum()), max_size=int(switches.sum())))
        at_host = ~switches[fabric.links["a"]] | ~switches[fabric.links["b"]]
        apart = groups[fabric.links["a"]] != groups[fabric.links["b"]]
        drawn = np.array(draw(st.lists(st.integers(0, 1), min_size=len(at_host), max_size=len(at_host))))
        dimension = np.where(at_host, TO_HOST, np.where(apart, 2, drawn)).astype(np.int8)
        direct = DirectNetwork(
            family="random", dimensions=("x", "y", GLOBAL), link_dimension=dimension,
            link_wraps=np.zeros(len(at_host), np.bool_), coordinates=np.empty((len(switches), 0), np.int32),
        )  # fmt: skip
        return replace(fabric, direct=direct, node_pod=groups), np.array(up)
    made = {"dragonfly": lambda: dragonfly(1, 2, 1), "torus": lambda: torus(3, 2), "dragonfly+": plus}[kind]()
    up = np.ones(len(made.links), np.bool_)
    up[draw(st.lists(st.integers(0, len(up) - 1), max_size=3))] = False
    return made, up


def plus() -> Fabric:
    """A dragonfly+ of 3 groups, whose spines have no hosts."""
    return fabric_of(
        topology="dragonfly-plus", groups=3, leaves_per_group=2, spines_per_group=2, hosts_per_leaf=1, global_ports=2
    )


def leg(
    fabric: Fabric, table: Routes, start: dict[int, tuple[float, int, int]], column: int, stops: Callable[[int], bool]
) -> tuple[dict[int, float], dict[int, tuple[float, int, int]]] | None:
    """Spread what is at some switches towards an attachment, up to switches at which it stops.

    Of each switch: fraction, latency and links so far, the longest.
    """
    ports, delay = fabric.ports, port_delays_ps(fabric)
    loads: dict[int, float] = defaultdict(float)
    ends: dict[int, tuple[float, int, int]] = {}
    waiting = list(start.items())
    while waiting:
        node, (fraction, latency, links) = waiting.pop()
        if stops(node):
            old = ends.get(node, (0.0, 0, 0))
            ends[node] = (old[0] + fraction, max(old[1], latency), max(old[2], links))
            continue
        members = table.candidates(node, column).tolist()
        if not members:
            return None
        for port in members:
            loads[port] += fraction / len(members)
            peer = int(ports.node[ports.peer[port]])
            waiting.append((peer, (fraction / len(members), latency + int(delay[port]), links + 1)))
    return loads, ends


def expected_split(fabric: Fabric, table: Routes, routing: Routing, source: int, destination: int) -> Split | None:
    """Loads of one byte, of which each intermediate gets an equal part."""
    ports, delay = fabric.ports, port_delays_ps(fabric)
    loads: dict[int, float] = defaultdict(float)
    column = int(table.attach_of_port[destination])
    first, last = int(ports.node[ports.peer[source]]), int(table.attach_node[column])
    starts = [({first: (1.0, int(delay[source]), 1)}, column, False)]
    if routing.detour == "always" and first != last:
        groups = detour_groups(fabric, table.attach_node, by_group=routing.detour_by_group)["detour_group"]
        own = int(table.attach_of_port[source])
        avoided = {groups[own], groups[column]} if routing.detour_by_group else {groups[own]}
        vias = [
            via for via in range(len(groups))
            if groups[via] not in avoided and (table.group_of[first, via] >= 0 or table.group_of[first, via] == DELIVER)
        ]  # fmt: skip
        if vias and groups[own] != groups[column]:
            starts = [({first: (1.0 / len(vias), int(delay[source]), 1)}, via, True) for via in vias]
    longest = most = 0
    for start, towards, is_detour in starts:
        at = start
        if is_detour:
            via = int(table.attach_node[towards])

            def turns(node: int, via: int = via) -> bool:
                pod = fabric.node_pod
                return node == via or (routing.detour_by_group and pod is not None and pod[node] == pod[via])

            found = leg(fabric, table, at, towards, turns)
            if found is None:
                return None
            for port, load in found[0].items():
                loads[port] += load
            at = found[1]
        found = leg(fabric, table, at, column, lambda node: node == last)
        if found is None:
            return None
        for port, load in found[0].items():
            loads[port] += load
        longest = max(longest, found[1][last][1])
        most = max(most, found[1][last][2])
    out = int(ports.peer[destination])
    loads[source] = loads[out] = 1.0
    return loads, longest + int(delay[out]), most + 1


@pytest.mark.parametrize("detours", DETOURS)
@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=case_count(plain=25, deep=200))
@given(drawn=networks(), data=st.data())
def test_spread_flows_take_all_paths_alike(
    rule: str, detours: str, drawn: tuple[Fabric, NDArray[np.bool_]], data: st.DataObject
) -> None:
    fabric, link_up = drawn
    if len(host_ports(fabric)) < 2:
        return
    routing = Routing(**RULES[rule], **DETOURS[detours])
    _, flows = data.draw(cases(fabric, down=False))
    router = FlowPaths(fabric, "spray", routing=routing)
    router.use(link_up)
    keys = {name: True for name in ("dimension_order", "fewest_global_hops") if getattr(routing, name)}
    table = routes(fabric, link_up, **keys)
    for source, destination, _, _ in flows:
        found = router.paths(np.array([source]), np.array([destination]))
        split = expected_split(fabric, table, routing, source, destination)
        assert bool(found.about["reachable"][0]) == (split is not None)
        if split is None:
            continue
        loads = np.zeros(len(fabric.ports.node))
        for port, load in split[0].items():
            loads[port] = load
        assert router.port_loads(found, np.ones(1)) == pytest.approx(loads, abs=1e-12)
        assert (found.about["latency_ps"][0], found.about["links"][0]) == split[1:]
        rate = fabric.links["rate_bps"][fabric.ports.link]
        assert found.about["rate_bps"][0] == pytest.approx((rate[loads > 0] / loads[loads > 0]).min())


@pytest.mark.parametrize("detours", DETOURS)
@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=case_count(plain=25, deep=200))
@given(drawn=networks(), draws=st.lists(st.integers(0, 2**62 - 1), min_size=6, max_size=6), data=st.data())
def test_hashed_flows_keep_their_intermediate(
    rule: str, detours: str, drawn: tuple[Fabric, NDArray[np.bool_]], draws: list[int], data: st.DataObject
) -> None:
    fabric, link_up = drawn
    if len(host_ports(fabric)) < 2:
        return
    routing = Routing(**RULES[rule], **DETOURS[detours])
    _, flows = data.draw(cases(fabric, down=False))
    router = FlowPaths(fabric, "hashed", routing=routing)
    router.use(link_up)
    keys = {name: True for name in ("dimension_order", "fewest_global_hops") if getattr(routing, name)}
    table = routes(fabric, link_up, **keys)
    for (source, destination, entropy, pair), drawn_hash in zip(flows, draws, strict=False):
        found = router.paths(
            np.array([source]), np.array([destination]), entropy=entropy, destination_qp=pair,
            queue_pair_hash=drawn_hash,
        )  # fmt: skip
        via = drawn_intermediate(fabric, table, routing, (source, destination), drawn_hash)
        choose = by_hash(hashing(fabric, source, destination, entropy, pair))
        ports = walked_by(fabric, table, routing, (source, destination), via, choose)
        assert found.hops["link"].tolist() == (ports or [])


def drawn_intermediate(fabric: Fabric, table: Routes, routing: Routing, ends: tuple[int, int], drawn: int) -> int:
    """The attachment that a queue pair's hash selects, -1: none."""
    own, column = (int(table.attach_of_port[end]) for end in ends)
    if routing.detour == "never":
        return -1
    groups = detour_groups(fabric, table.attach_node, by_group=routing.detour_by_group)["detour_group"]
    if groups[own] == groups[column]:
        return -1
    avoided = {groups[own], groups[column]} if routing.detour_by_group else {groups[own]}
    vias = [via for via in np.argsort(groups, kind="stable").tolist() if groups[via] not in avoided]
    return -1 if not vias or vias[drawn % len(vias)] == column else vias[drawn % len(vias)]


def walked_by(
    fabric: Fabric, table: Routes, routing: Routing, ends: tuple[int, int], via: int,
    choose: Callable[[int, int, list[int]], int],
) -> list[int] | None:  # fmt: skip
    """Ports of a packet that first goes to an attachment; None: no path."""
    ports, pod = fabric.ports, fabric.node_pod
    column = int(table.attach_of_port[ends[1]])
    taken, ingress = [ends[0]], int(ports.peer[ends[0]])
    while True:
        node = int(ports.node[ingress])
        if via >= 0:
            middle = int(table.attach_node[via])
            same_group = routing.detour_by_group and pod is not None and pod[middle] == pod[node]
            via = -1 if same_group or middle == node else via
        goal = column if via < 0 else via
        if table.group_of[node, goal] == DELIVER:
            return [*taken, int(ports.peer[ends[1]])]
        members = table.candidates(node, goal).tolist()
        if not members:
            return None
        taken.append(members[0] if len(members) == 1 else choose(node, ingress, members))
        ingress = int(ports.peer[taken[-1]])
