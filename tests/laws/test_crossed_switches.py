"""Closed forms take the switches and cables that a group crosses: a slow one elsewhere changes nothing.

Fabrics are small ones of every topology; the group, its place and the slow switch are drawn at random. What a group
crosses is found a second time, by shortest paths between all pairs of its switches.
Leaves out: bcube, whose hosts forward, and which no engine runs.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.cases import Saw, case_count
from helpers.every_topology import FABRICS

from weftwork.spec.fabric import HOST, Fabric
from weftwork.spec.job import Placement
from weftwork.spec.scenario.scenario import load_mapping
from weftwork.study.prepare.collective import fabric_figures
from weftwork.topology.build import fabric_of_section
from weftwork.workload.collectives.closed_form import GroupShape, Method, alone
from weftwork.workload.collectives.crossed import crossed_switches
from weftwork.workload.collectives.fabric_lattice import LatticePlaces, lattice_of, lattice_rates
from weftwork.workload.collectives.group_time import group_ranks, group_rates
from weftwork.workload.placement import packed

SLOW_PS = 7_000_000  # slower than any switch of the catalogue
DRAWS = case_count(plain=6, deep=40)


def built(topology: str, keys: dict[str, Any]) -> Fabric:
    document = {"schema": 3, "fabric": {"topology": topology, **keys}, "traffic": {"pattern": "permutation"}}
    return fabric_of_section(load_mapping(document).fabric, directory=Path())


def some_ranks(fabric: Fabric, draw: random.Random) -> Placement:
    """Consecutive GPUs anywhere in the fabric."""
    every = packed(fabric, fabric.gpus)
    count = draw.randint(1, min(16, fabric.gpus))
    first = draw.randint(0, fabric.gpus - count)
    part = slice(first, first + count)
    gpu = None if every.gpu is None else every.gpu[part]
    return replace(every, host=every.host[part], nics=every.nics[part], gpu=gpu)


def on_shortest_paths(fabric: Fabric, placement: Placement) -> set[int]:
    """Switches on any shortest path between switches on which the group's ports hang.

    A path takes as few links between groups as possible, and of those the fewest links.
    """
    ports, is_switch = fabric.ports, fabric.node_kind != HOST
    is_global = np.zeros(len(fabric.links), bool) if fabric.direct is None else fabric.direct.is_global
    near: dict[int, dict[int, int]] = {node: {} for node in np.flatnonzero(is_switch).tolist()}
    for a, b, is_long in zip(fabric.links["a"].tolist(), fabric.links["b"].tolist(), is_global.tolist(), strict=True):
        if is_switch[a] and is_switch[b]:
            near[a][b] = near[b][a] = 1_000 if is_long else 1
    own: set[int] = set()
    for host, nics in zip(fabric.hosts[placement.host].tolist(), placement.nics.tolist(), strict=True):
        own |= {int(ports.node[ports.peer[ports.base[host] + nic]]) for nic in nics}
    own &= near.keys()
    hops = {node: distances(near, node) for node in own}
    return {
        node
        for one in own
        for other in own
        if other in hops[one]
        for node in near
        if hops[one].get(node, 10**9) + hops[other].get(node, 10**9) == hops[one][other]
    }


def distances(near: dict[int, dict[int, int]], start: int) -> dict[int, int]:
    """Length of the shortest way to each switch, step by step until nothing gets shorter."""
    found, queue = {start: 0}, deque([start])
    while queue:
        node = queue.popleft()
        for other, length in near[node].items():
            if found[node] + length < found.get(other, 10**9):
                found[other] = found[node] + length
                queue.append(other)
    return found


def with_slow_switch(fabric: Fabric, node: int) -> Fabric:
    device = fabric.switches[int(fabric.node_device[node])].model_copy(update={"forwarding_latency_ps": SLOW_PS})
    node_device = fabric.node_device.copy()
    node_device[node] = len(fabric.switches)
    return replace(fabric, switches=(*fabric.switches, device), node_device=node_device)


def times_ps(fabric: Fabric, placement: Placement) -> list[float]:
    """Closed forms of a group: an all-reduce of a ring, and the rates of its groups and of its lattice."""
    figures = fabric_figures(fabric, placement)
    group = GroupShape(members=len(placement.host), per_domain=1, domain_gpus=1)
    times: list[float] = [figures.network_latency_ps, figures.network_rate_bps]
    if group.members > 1:
        ring = Method(algorithm="ring", protocol="simple")
        times.append(alone("all-reduce", ring, group, 2**20, figures).time_ps)
    members = group_ranks(fabric, placement)
    if members > 1 and (rates := group_rates(fabric, placement, members)) is not None:
        times += [rates.end_latency_ps, rates.hop_latency_ps, rates.local_bps, rates.pair_bps, rates.host_bps]
    if isinstance(lattice_of(fabric, placement), LatticePlaces) and group.members > 1:
        lattice = lattice_rates(fabric, placement)
        times += [lattice.end_latency_ps, lattice.hop_latency_ps, lattice.link_bps, lattice.port_bps]
    return times


@pytest.mark.parametrize("topology", [name for name in FABRICS if name != "bcube"])
def test_a_slow_switch_that_a_group_does_not_cross_changes_no_closed_form(topology: str, saw: Saw) -> None:
    elsewhere = there = 0
    for place, keys in enumerate(FABRICS[topology]):
        fabric = built(topology, keys)
        switches = np.flatnonzero(fabric.node_kind != HOST).tolist()
        for seed in range(DRAWS):
            draw = random.Random(f"{topology} {place} {seed}")
            placement = some_ranks(fabric, draw)
            wanted = on_shortest_paths(fabric, placement)
            assert set(crossed_switches(fabric, placement).tolist()) == wanted
            usual = times_ps(fabric, placement)
            if others := [node for node in switches if node not in wanted]:
                elsewhere += 1
                assert times_ps(with_slow_switch(fabric, draw.choice(others)), placement) == usual
            if wanted:
                there += 1
                slow = times_ps(with_slow_switch(fabric, draw.choice(sorted(wanted))), placement)
                assert slow[0] >= usual[0] + SLOW_PS - max(switch.forwarding_latency_ps for switch in fabric.switches)
    saw(elsewhere + there, f"{elsewhere} beside the path, {there} on it")
    assert there
    assert elsewhere or topology in {"rail-only", "multi-plane"}


def test_slow_cables_and_ports_elsewhere_change_no_closed_form() -> None:
    fabric = built("leaf-spine", {"leaves": 4, "spines": 2, "hosts_per_leaf": 3})
    every = packed(fabric, fabric.gpus)
    part = replace(every, host=every.host[:3], nics=every.nics[:3], gpu=None if every.gpu is None else every.gpu[:3])
    usual = times_ps(fabric, part)
    links = fabric.links.copy()
    leaf = crossed_switches(fabric, part)
    others = (links["a"] != leaf[0]) & (links["b"] != leaf[0])
    links["delay_ps"][others] *= 100
    links["rate_bps"][others] //= 4
    slow = replace(fabric, links=links)
    assert times_ps(slow, part) == usual
    assert times_ps(slow, every)[0] > times_ps(fabric, every)[0]
    assert times_ps(slow, every)[1] < times_ps(fabric, every)[1]
