"""The other ways to an attachment, and distances, held to networkx on random small graphs with links that are down."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from helpers.tiny import wired
from numpy.typing import NDArray

from weftwork.engine.instants import route_table
from weftwork.engine.packet_input import RouteTable
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, Fabric
from weftwork.topology.routing import DELIVER, UNREACHABLE, routes, second_groups
from weftwork.topology.shapes.fat_tree import fat_tree


def random_fabric(source: random.Random) -> tuple[Fabric, NDArray[np.bool_]]:
    """Hosts at some switches, parallel links between some, and links that are down."""
    hosts, switches = source.randrange(1, 6), source.randrange(1, 8)
    links = [(host, hosts + source.randrange(switches)) for host in range(hosts)]
    between = [(hosts + a, hosts + b) for a in range(switches) for b in range(a)]
    links += [link for link in between for _ in range(source.choice((0, 0, 1, 1, 2)))]
    links += [(hosts + switch, hosts + switch - 1) for switch in range(1, switches)]  # so that each has a link
    if switches == 1:
        links = [(host, hosts) for host in range(hosts)]
    fabric = wired(links, hosts=hosts)
    return fabric, np.array([source.random() < 0.8 for _ in links])


def live(fabric: Fabric, link_up: NDArray[np.bool_]) -> nx.Graph:
    """The switches and their links that are up."""
    graph = nx.Graph()
    graph.add_nodes_from(np.flatnonzero(fabric.node_kind != HOST).tolist())
    up = fabric.links[link_up]
    graph.add_edges_from(
        (a, b) for a, b in zip(up["a"].tolist(), up["b"].tolist(), strict=True) if {a, b} <= set(graph)
    )
    return graph


def members(table: RouteTable, group: int) -> list[int]:
    return table.group_ports[table.group_ptr[group] : table.group_ptr[group + 1]].tolist() if group >= 0 else []


def hold_to_the_graph(fabric: Fabric, link_up: NDArray[np.bool_]) -> int:
    """Compare every pair of node and attachment; returns how many had other ways."""
    found = routes(fabric, link_up)
    table = route_table(fabric, link_up, has_distances=True, has_seconds=True)
    assert (table.group_of == found.group_of).all()
    graph, ports, others = live(fabric, link_up), fabric.ports, 0
    far_of = dict(nx.all_pairs_shortest_path_length(graph))
    for edge, target in enumerate(found.attach_node.tolist()):
        for node in range(len(fabric.node_kind)):
            own = range(int(ports.base[node]), int(ports.base[node + 1]))
            away = far_of[target].get(node, -1) if node in graph else -1
            assert table.distance[node, edge] == away
            next_nodes = {port: int(ports.node[ports.peer[port]]) for port in own if link_up[ports.link[port]]}
            reach = {port: far_of[target][to] for port, to in next_nodes.items() if to in far_of[target]}
            shortest = [port for port in own if away > 0 and reach.get(port) == away - 1]
            longer = [port for port in own if away > 0 and reach.get(port, -1) >= away]
            assert members(table, int(table.group_of[node, edge])) == shortest
            assert members(table, int(table.second_of[node, edge])) == longer
            assert (table.second_of[node, edge] == UNREACHABLE) == (not longer)
            others += bool(longer)
    return others


@pytest.mark.parametrize("seed", range(60))
def test_on_any_graph_they_are_the_ports_that_lead_there_and_come_no_closer(seed: int) -> None:
    hold_to_the_graph(*random_fabric(random.Random(seed)))


def test_the_random_graphs_have_such_ports() -> None:
    assert sum(hold_to_the_graph(*random_fabric(random.Random(seed))) > 0 for seed in range(60)) > 20


def test_on_a_fat_tree_a_way_around_goes_up_again() -> None:
    rates: dict[str, Any] = {f"{part}_rate_bps": 10**11 for part in ("host", "fabric")}
    rates |= {f"{part}_delay_ps": 1_000 for part in ("host", "fabric")}
    fabric = fat_tree(tiers=3, radix=4, switch=Switch(), nic=Nic(), **rates)
    assert hold_to_the_graph(fabric, np.ones(len(fabric.links), np.bool_)) > 0


def test_groups_of_shortest_ways_keep_their_numbers_and_stand_first() -> None:
    fabric = wired([(0, 3), (1, 4), (2, 5), (3, 4), (4, 5), (3, 5)], hosts=3)
    up = np.ones(len(fabric.links), np.bool_)
    found = routes(fabric, up)
    seconds = second_groups(fabric, up, found)
    count = len(found.group_ptr)
    assert (seconds.group_ptr[:count] == found.group_ptr).all()
    assert (seconds.group_ports[: len(found.group_ports)] == found.group_ports).all()
    assert set(np.unique(seconds.group_of).tolist()) == {UNREACHABLE, *range(count - 1, len(seconds.group_ptr) - 1)}
    assert (seconds.group_of[found.group_of == DELIVER] == UNREACHABLE).all()


def test_who_does_not_ask_gets_neither() -> None:
    fabric = wired([(0, 1)], hosts=2)
    table = route_table(fabric, np.ones(1, np.bool_))
    assert table.second_of.shape == table.distance.shape == (0, 0)
