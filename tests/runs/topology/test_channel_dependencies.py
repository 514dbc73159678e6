"""Circles of channels: rings, datelines, meshes and random graphs, and a circle that closes by itself."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from helpers.findings import sound

from weftwork.spec.fabric import Fabric
from weftwork.spec.routing import Pin, Routing
from weftwork.topology.build import fabric_of
from weftwork.topology.channel_dependencies import Channel, dependency_cycle, is_too_large
from weftwork.topology.routing_plan import planned_routing


def network(topology: str, **keys: Any) -> Fabric:
    return fabric_of(topology=topology, link_rate_bps=100_000_000_000, **keys)


def circle_of(fabric: Fabric, routing: Routing, channels: int, **keys: bool) -> tuple[Channel, ...]:
    return dependency_cycle(fabric, np.ones(len(fabric.links), np.bool_), routing, channels, **keys)


def circle_under(fabric: Fabric, name: str, channels: int | None = None) -> tuple[Channel, ...]:
    plan = sound(planned_routing, fabric, name)
    return circle_of(fabric, plan.routing, channels or plan.channels, rethinks=name == "par")


def assert_closes(fabric: Fabric, circle: tuple[Channel, ...]) -> None:
    """Each link of the circle begins at the switch where the one before it ends."""
    ports = fabric.ports
    assert len(set(circle)) == len(circle) > 0
    for before, after in pairwise((*circle, circle[0])):
        assert ports.node[ports.peer[before.port]] == ports.node[after.port]


def test_a_ring_of_four_has_a_circle_under_shortest_paths_and_it_closes() -> None:
    fabric = network("torus", shape=(4,))
    circle = circle_under(fabric, "shortest")
    assert len(circle) == 4
    assert {one.virtual_channel for one in circle} == {0}
    assert_closes(fabric, circle)


def test_a_ring_of_three_has_none_since_no_path_has_two_links() -> None:
    assert circle_under(network("torus", shape=(3,)), "shortest") == ()


@pytest.mark.parametrize("shape", [(4,), (5,), (8,), (4, 4), (3, 4, 5)])
def test_datelines_break_the_circles_of_rings(shape: tuple[int, ...]) -> None:
    fabric = network("torus", shape=shape)
    assert circle_under(fabric, "dimension-order") == ()
    assert_closes(fabric, circle_under(fabric, "dimension-order", 1))


@pytest.mark.parametrize("shape", [(4, 4), (3, 4, 2)])
def test_a_mesh_in_dimension_order_has_none_and_in_any_order_one(shape: tuple[int, ...]) -> None:
    fabric = network("mesh", shape=shape)
    assert circle_under(fabric, "dimension-order", 1) == ()
    assert_closes(fabric, circle_under(fabric, "shortest"))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["minimal", "valiant", "ugal", "k-shortest"])
def test_a_channel_for_each_hop_is_free_of_circles_on_random_graphs(name: str, seed: int) -> None:
    draw = random.Random(seed)
    switches = 2 * draw.randint(4, 7)
    fabric = network("jellyfish", switches=switches, network_ports=3, hosts_per_switch=1, seed=seed + 1)
    assert circle_under(fabric, name) == ()
    assert_closes(fabric, circle_under(fabric, name, 1))


def test_trees_have_none_under_shortest_paths() -> None:
    assert circle_under(network("fat-tree", tiers=3, radix=4), "shortest") == ()
    assert circle_under(network("leaf-spine", leaves=4, spines=3, hosts_per_leaf=1), "shortest") == ()


def test_lost_links_can_bring_a_circle_to_a_tree_unless_routes_go_up_and_then_down() -> None:
    """Four leaves and four spines that have become one ring."""
    fabric = network("leaf-spine", leaves=4, spines=4, hosts_per_leaf=1)
    ports, names = fabric.ports, fabric.node_names
    kept = {(f"leaf{one}", f"spine{place % 4}") for one in range(4) for place in (one, one + 1)}
    up = np.ones(len(fabric.links), np.bool_)
    for port in range(len(ports.node)):
        ends = names[ports.node[port]], names[ports.node[ports.peer[port]]]
        if ends[0].startswith("leaf") and ends[1].startswith("spine") and ends not in kept:
            up[ports.link[port]] = False
    circle = dependency_cycle(fabric, up, Routing(), 1)
    assert len(circle) == 8
    assert_closes(fabric, circle)
    assert dependency_cycle(fabric, up, Routing(up_down=True), 1) == ()


def test_the_fewest_global_links_matter_in_a_dragonfly() -> None:
    """Shortest paths by hops may take two global links in a row, and then two channels do not suffice."""
    fabric = network("dragonfly", radix=7)
    routing = sound(planned_routing, fabric, "minimal").routing
    assert circle_of(fabric, routing, 2) == ()
    assert_closes(fabric, circle_of(fabric, replace(routing, fewest_global_hops=False), 2))


@pytest.mark.parametrize(("name", "channels"), [("minimal", 1), ("valiant", 2), ("ugal", 2), ("par", 3)])
def test_a_dragonfly_needs_each_of_its_channels(name: str, channels: int) -> None:
    fabric = network("dragonfly", radix=7)
    assert circle_under(fabric, name) == ()
    assert_closes(fabric, circle_under(fabric, name, channels))


def test_a_second_thought_needs_a_channel_of_its_own() -> None:
    """On the three channels of UGAL only the second thought closes a circle."""
    fabric = network("dragonfly", radix=7)
    routing = sound(planned_routing, fabric, "par").routing
    assert circle_of(fabric, routing, 3, rethinks=False) == ()
    assert_closes(fabric, circle_of(fabric, routing, 3, rethinks=True))


def test_pinned_paths_round_a_ring_close_a_circle() -> None:
    """Each host of a ring of three sends the long way round."""
    fabric = network("torus", shape=(3,))
    ports, names = fabric.ports, fabric.node_names
    nodes = [names.index(f"switch{one}") for one in range(3)]

    def port_to(here: int, there: int) -> int:
        own = range(int(ports.base[here]), int(ports.base[here + 1]))
        return next(port for port in own if ports.node[ports.peer[port]] == there)

    nic = {int(ports.node[ports.peer[port]]): port for port in range(len(ports.node)) if ports.node[port] not in nodes}
    pins = tuple(
        Pin(
            sources=(nic[nodes[one]],),
            destinations=(nic[nodes[(one + 2) % 3]],),
            ports=(
                port_to(nodes[one], nodes[(one + 1) % 3]),
                port_to(nodes[(one + 1) % 3], nodes[(one + 2) % 3]),
            ),
        )
        for one in range(3)
    )
    circle = circle_of(fabric, Routing(pins=pins), 1)
    assert len(circle) == 3
    assert_closes(fabric, circle)
    assert circle_of(fabric, Routing(pins=pins[:2]), 1) == ()


def test_only_a_large_network_is_too_large() -> None:
    fabric = network("dragonfly", radix=7)
    routing = sound(planned_routing, fabric, "valiant").routing
    assert not is_too_large(fabric, routing, 3)
    assert is_too_large(fabric, routing, 1 << 20)
