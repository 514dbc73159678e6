"""Paths in layers: followed hop by hop, they are the k shortest ones that networkx finds, or those that are pinned."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice, pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from helpers.direct_networks import ring
from helpers.tiny import wired
from numpy.typing import NDArray

from weftwork.base.errors import ConfigError
from weftwork.engine.instants import route_table
from weftwork.engine.packet_input import RouteTable
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, Fabric
from weftwork.spec.routing import SHORTEST, Pin, Routing
from weftwork.topology import k_shortest, layers
from weftwork.topology.k_shortest import KShortest
from weftwork.topology.layers import layers_of, pinned_numbers
from weftwork.topology.routing import attachments
from weftwork.topology.shapes.fat_tree import fat_tree

Path = tuple[int, ...]


def regular(switches: int, degree: int, seed: int) -> Fabric:
    """A random regular graph of switches with a host each, as Jellyfish."""
    between = nx.random_regular_graph(degree, switches, seed=seed).edges
    links = [(host, switches + host) for host in range(switches)]
    return wired(links + sorted((switches + a, switches + b) for a, b in between), hosts=switches)


def with_parallels(seed: int) -> Fabric:
    """A few switches, some with several hosts, some links twice or three times."""
    source = random.Random(seed)
    hosts, switches = source.randrange(2, 6), source.randrange(3, 8)
    links = [(host, hosts + source.randrange(switches)) for host in range(hosts)]
    links += [(hosts + at, hosts + at - 1) for at in range(1, switches)]
    between = [(hosts + a, hosts + b) for a in range(switches) for b in range(a)]
    links += [link for link in between for _ in range(source.choice((0, 0, 0, 1, 2)))]
    return wired(links, hosts=hosts)


def tree(radix: int, tiers: int) -> Fabric:
    rates: dict[str, Any] = {f"{part}_rate_bps": 10**11 for part in ("host", "fabric")}
    rates |= {f"{part}_delay_ps": 1_000 for part in ("host", "fabric")}
    return fat_tree(tiers=tiers, radix=radix, switch=Switch(), nic=Nic(), **rates)


def lengths_of(fabric: Fabric, link_up: NDArray[np.bool_], source: int, goal: int, count: int) -> list[int]:
    """Lengths of the shortest paths of a multigraph: each path over nodes counts once for each choice of its links."""
    graph: nx.Graph[int] = nx.Graph()
    parallel: Counter[frozenset[int]] = Counter()
    for a, b in fabric.links[["a", "b"]][link_up].tolist():
        if fabric.node_kind[a] != HOST and fabric.node_kind[b] != HOST:
            graph.add_edge(a, b)
            parallel[frozenset((a, b))] += 1
    if source not in graph or goal not in graph or not nx.has_path(graph, source, goal):
        return []
    found: list[int] = []
    for nodes in islice(nx.shortest_simple_paths(graph, source, goal), count):
        choices = np.prod([parallel[frozenset(pair)] for pair in pairwise(nodes)])
        found += [len(nodes) - 1] * int(choices)
    return found[:count]


def followed(fabric: Fabric, table: RouteTable, layer: int, start: int, goal: int) -> Path:
    """The ports of a path that keeps to a layer, by the table alone."""
    attach_node, _ = attachments(fabric)
    node, ports = int(attach_node[start]), []
    while node != attach_node[goal]:
        group = int(table.layer_group[layer, node, goal])
        assert table.group_ptr[group + 1] - table.group_ptr[group] == 1
        port = int(table.group_ports[table.group_ptr[group]])
        assert fabric.ports.node[port] == node
        ports.append(port)
        node = int(fabric.ports.node[fabric.ports.peer[port]])
    return tuple(ports)


def hold_to_the_graph(fabric: Fabric, link_up: NDArray[np.bool_], count: int) -> Counter[int]:
    """Compare the ways of all pairs with networkx; returns how many had so many different paths."""
    found = layers_of(fabric, link_up, Routing(paths=count))
    assert found is not None
    table = route_table(fabric, link_up, layers=found)
    attach_node, _ = attachments(fabric)
    switches = 0
    seen: Counter[int] = Counter()
    for start, source in enumerate(attach_node.tolist()):
        for goal, target in enumerate(attach_node.tolist()):
            ways = table.layer_of[start, goal].tolist()
            wanted = lengths_of(fabric, link_up, source, target, count) if start != goal else []
            if not wanted:
                assert ways == [-1] * count
                continue
            paths = [followed(fabric, table, layer, start, goal) for layer in ways]
            assert len(set(paths)) == len(wanted)
            assert paths == (paths[: len(wanted)] * count)[:count]  # fewer paths are taken again and again
            assert [len(path) for path in paths[: len(wanted)]] == wanted
            for path in paths:
                assert link_up[fabric.ports.link[list(path)]].all()
                nodes = [source, *fabric.ports.node[fabric.ports.peer[list(path)]].tolist()]
                assert len(set(nodes)) == len(nodes)
                switches = max(switches, len(nodes))
            seen[len(wanted)] += 1
    assert switches == found.most_switches
    return seen


@pytest.mark.parametrize("count", [1, 3, 8])
@pytest.mark.parametrize("seed", range(3))
def test_on_a_random_regular_graph_they_are_the_k_shortest(seed: int, count: int) -> None:
    fabric = regular(12, 4, seed)
    assert hold_to_the_graph(fabric, np.ones(len(fabric.links), np.bool_), count) == {count: 12 * 11}


@pytest.mark.parametrize("seed", range(40))
def test_on_any_graph_with_parallel_links_and_links_that_are_down(seed: int) -> None:
    fabric = with_parallels(seed)
    source = random.Random(seed)
    hold_to_the_graph(fabric, np.array([source.random() < 0.85 for _ in fabric.links]), source.choice((1, 2, 5, 8)))


@pytest.mark.parametrize(("radix", "tiers", "count"), [(4, 2, 8), (4, 3, 6)])
def test_on_a_fat_tree_longer_ways_go_down_and_up_again(radix: int, tiers: int, count: int) -> None:
    fabric = tree(radix, tiers)
    hold_to_the_graph(fabric, np.ones(len(fabric.links), np.bool_), count)


def test_on_a_ring_there_are_two_however_many_are_asked_for() -> None:
    fabric = ring(9)
    assert hold_to_the_graph(fabric, np.ones(len(fabric.links), np.bool_), 8) == {2: 9 * 8}


def test_equal_paths_are_spread_over_the_pairs() -> None:
    """One path for each of 240 pairs of a tree with eight spines, which carry 30 of them on average."""
    fabric = tree(16, 2)
    up = np.ones(len(fabric.links), np.bool_)
    found = layers_of(fabric, up, Routing(paths=1))
    assert found is not None
    table = route_table(fabric, up, layers=found)
    pairs = [(a, b) for a in range(16) for b in range(16) if a != b]
    first = [followed(fabric, table, int(table.layer_of[a, b, 0]), a, b)[0] for a, b in pairs]
    spines = Counter(fabric.ports.node[fabric.ports.peer[first]].tolist())
    assert len(spines) == 8
    assert 15 < min(spines.values()) <= max(spines.values()) < 45


def blob(size: int) -> Fabric:
    """Every switch linked to every other, and one more that hangs on the first: one path leads there from it."""
    hosts = 2
    links = [(0, hosts), (1, hosts + size)]
    links += [(hosts + a, hosts + b) for a in range(size) for b in range(a)]
    return wired([*links, (hosts, hosts + size)], hosts=hosts)


def test_a_pair_with_one_path_is_not_searched_for_ever() -> None:
    """From the first switch 14! paths lead into the blob and none of them out again."""
    fabric = blob(15)
    assert hold_to_the_graph(fabric, np.ones(len(fabric.links), np.bool_), 8) == {1: 2}


@pytest.mark.parametrize("seed", range(10))
def test_patience_changes_no_path(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fabric = with_parallels(seed)
    up = np.ones(len(fabric.links), np.bool_)
    search = KShortest(fabric, up)
    graph = nx.Graph([(a, b) for a, b in fabric.links[["a", "b"]].tolist() if fabric.node_kind[a] != HOST])
    for goal in sorted(graph):
        far = nx.single_source_shortest_path_length(graph, goal)
        distance = [far.get(node, -1) for node in range(len(fabric.node_kind))]
        for source in sorted(set(graph) - {goal}):
            patient = search.paths(source, goal, distance, 20)
            with monkeypatch.context() as changed:
                changed.setattr(k_shortest, "PATIENCE", 0)
                assert search.paths(source, goal, distance, 20) == patient


def port_between(fabric: Fabric, node: int, beyond: int) -> int:
    """The first port of a node towards another."""
    ports = fabric.ports
    own = range(int(ports.base[node]), int(ports.base[node + 1]))
    return next(port for port in own if ports.node[ports.peer[port]] == beyond)


def pin(fabric: Fabric, *nodes: int) -> Pin:
    """From the first host by these switches to the last one."""
    steps = list(pairwise(nodes[1:-1]))
    base = fabric.ports.base
    return Pin(
        sources=(int(base[nodes[0]]),),
        destinations=(int(base[nodes[-1]]),),
        ports=tuple(port_between(fabric, a, b) for a, b in steps),
    )


def test_pins_are_the_first_ways_and_no_other_pin_leads_back() -> None:
    fabric = ring(5)  # hosts 0 to 4, their switches 5 to 9
    pins = (pin(fabric, 0, 5, 9, 8, 7, 2), pin(fabric, 2, 7, 8, 9, 5, 0), pin(fabric, 1, 6, 7, 2))
    routing = Routing(paths=1, pins=pins)
    assert pinned_numbers(fabric, routing) == [0, 1, 0]
    up = np.ones(len(fabric.links), np.bool_)
    found = layers_of(fabric, up, routing)
    assert found is not None
    assert found.pinned_ways == 2
    table = route_table(fabric, up, layers=found)
    for (start, goal), one, number in zip([(0, 2), (2, 0), (1, 2)], pins, [0, 1, 0], strict=True):
        assert followed(fabric, table, int(table.layer_of[start, goal, number]), start, goal) == one.ports
    assert [table.layer_of[0, 2, 1], table.layer_of[2, 0, 0], table.layer_of[1, 2, 1], table.layer_of[3, 4, 0]] == [
        -1
    ] * 4
    assert len(followed(fabric, table, int(table.layer_of[0, 2, 2]), 0, 2)) == 2  # its own shortest path is not pinned


def test_a_pin_whose_link_is_down_gives_way_to_the_shortest_paths() -> None:
    fabric = ring(5)
    routing = Routing(pins=(pin(fabric, 0, 5, 9, 8, 7, 2),))
    up = np.ones(len(fabric.links), np.bool_)
    up[fabric.ports.link[port_between(fabric, 9, 8)]] = False
    found = layers_of(fabric, up, routing)
    assert found is not None
    assert (found.pinned_ways, found.layer_of[0, 2].tolist()) == (1, [-1])


def test_same_pins_share_a_way_and_one_switch_needs_none() -> None:
    fabric = wired([(0, 3), (1, 3), (2, 4), (3, 4), (3, 4)], hosts=3)
    first, second = pin(fabric, 0, 3, 4, 2), pin(fabric, 1, 3, 4, 2)
    own = Pin(sources=(0,), destinations=(1,), ports=())
    assert pinned_numbers(fabric, Routing(pins=(first, own, second))) == [0, -1, 0]


def test_tables_that_would_be_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fabric = ring(5)
    up = np.ones(len(fabric.links), np.bool_)
    assert layers_of(fabric, up, SHORTEST) is None
    monkeypatch.setattr(layers, "MOST_WAYS", 5 * 5 * 2)
    assert layers_of(fabric, up, Routing(paths=2)) is not None
    with pytest.raises(ConfigError, match="5 x 5 pairs of switches with hosts, 3 ways each are more than"):
        layers_of(fabric, up, Routing(paths=3))
    monkeypatch.setattr(layers, "MOST_HOPS", 99)
    with pytest.raises(ConfigError, match="layers of 10 nodes x 5 switches with hosts are more than"):
        layers_of(fabric, up, Routing(paths=2))
