"""Routes that never go down and then up again: the rule on paper, whole trees, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.tiny import Message, flow_input_of, packet_input_of, sends, wired
from kits.test_every_choice import FABRICS, USUAL
from laws.test_flow_paths import host_ports

from weftwork.base.errors import ConfigError
from weftwork.engine.flow.paths import MODES, FlowPaths
from weftwork.policies.load import load
from weftwork.spec.fabric import Fabric
from weftwork.spec.routing import Pin, Routing
from weftwork.spec.scenario.choices import TOPOLOGIES
from weftwork.topology.build import fabric_of
from weftwork.topology.candidate_paths import candidate_paths
from weftwork.topology.routing import UNREACHABLE, Routes, hops_left, routes
from weftwork.topology.tree_topology import TreeTopology
from weftwork.topology.weights import weighted

UP_DOWN = Routing(up_down=True)


POLICIES = Path(__file__).parents[2] / "policies"


def tiers(*tier: int, links: list[tuple[int, int]]) -> Fabric:
    """Host 0 at switch 2, host 1 at switch 3; switches 2, 3, ... have these tiers."""
    fabric = wired([(0, 2), (1, 3), *links], hosts=2)
    return replace(fabric, node_tier=np.array([0, 0, *tier], fabric.node_tier.dtype))


def next_nodes(fabric: Fabric, table: Routes, node: int, towards: int) -> list[int]:
    column = table.attach_node.tolist().index(towards)
    return [int(fabric.ports.node[fabric.ports.peer[port]]) for port in table.candidates(node, column)]


def whole(fabric: Fabric) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.ones(len(fabric.links), np.bool_)


def test_a_longer_way_up_and_then_down_is_taken_rather_than_a_valley() -> None:
    """A - X - C - Y - B is a valley of 4 hops; X - Z - W - V - Y is over the top and longer."""
    a, b, x, y, c, z, w, v = range(2, 10)
    fabric = tiers(1, 1, 2, 2, 1, 3, 4, 3, links=[(a, x), (b, y), (x, c), (c, y), (x, z), (z, w), (w, v), (v, y)])
    shortest, legal = (routes(fabric, whole(fabric), up_down=up_down) for up_down in (False, True))
    assert next_nodes(fabric, shortest, x, b) == [c]
    assert next_nodes(fabric, legal, x, b) == [z]
    assert [next_nodes(fabric, legal, node, b) for node in (a, z, w, v, y)] == [[x], [w], [v], [y], [b]]
    assert next_nodes(fabric, legal, c, b) == [y]
    left = hops_left(fabric, whole(fabric), legal.attach_node, up_down=True)
    assert left.hops[[a, b, x, y, c, z, w, v], 1].tolist() == [6, 0, 5, 1, 2, 4, 3, 2]


def test_a_switch_above_the_destination_goes_down_even_where_up_and_down_is_shorter() -> None:
    """From X down to B it is three hops; over Y, a tier above, it would be two. Z below X counts X's own way."""
    a, b, x, m, n, y, z = range(2, 9)
    links = [(x, m), (m, n), (n, b), (x, y), (y, b), (z, x), (a, z)]
    fabric = tiers(1, 1, 4, 3, 2, 5, 2, links=links)
    table = routes(fabric, whole(fabric), up_down=True)
    assert next_nodes(fabric, table, x, b) == [m]
    left = hops_left(fabric, whole(fabric), table.attach_node, up_down=True)
    assert left.hops[[x, z, a, y], 1].tolist() == [3, 4, 5, 1]


def test_a_switch_does_not_go_down_to_one_that_has_to_climb() -> None:
    """From X three hops lead down to B; over C it would be three as well, down to C and up to D."""
    a, b, x, m, n, c, d = range(2, 9)
    links = [(a, x), (x, m), (m, n), (n, b), (x, c), (c, d), (d, b)]
    fabric = tiers(1, 1, 4, 3, 2, 1, 2, links=links)
    assert next_nodes(fabric, routes(fabric, whole(fabric)), x, b) == [m, c]
    legal = routes(fabric, whole(fabric), up_down=True)
    assert next_nodes(fabric, legal, x, b) == [m]
    assert next_nodes(fabric, legal, c, b) == [d]
    for mode in MODES:
        found = FlowPaths(fabric, mode, routing=UP_DOWN).paths(np.array([0]), np.array([1]))
        passed = fabric.ports.node[fabric.ports.peer[found.hops["link"]]].tolist()
        assert passed == [a, x, m, n, b, 1]


TREES = [name for name in TOPOLOGIES if isinstance(TOPOLOGIES.load(name), TreeTopology)]


@pytest.mark.parametrize(("name", "keys"), [(n, keys) for n in TREES for keys in FABRICS.get(n, USUAL)])
def test_on_whole_trees_of_the_catalogue_they_are_the_shortest_paths(name: str, keys: dict[str, Any]) -> None:
    """Tables, weights, hops and candidates are equal number by number, and so is all that engines make of them."""
    fabric = fabric_of(topology=name, **keys)
    every = whole(fabric)
    one, other = (routes(fabric, every, up_down=up_down) for up_down in (False, True))
    for field in ("attach_node", "attach_of_port", "group_of", "group_ptr", "group_ports"):
        assert np.array_equal(getattr(one, field), getattr(other, field))
    left = [hops_left(fabric, every, one.attach_node, up_down=up_down).hops for up_down in (False, True)]
    reached = one.group_of != UNREACHABLE
    assert np.array_equal(left[0][reached], left[1][reached])
    of_ports = [weighted(fabric, every, table, up_down=up_down)[1] for table, up_down in ((one, False), (other, True))]
    assert np.array_equal(*of_ports)
    pairs = [(0, len(one.attach_node) - 1)]
    found = [candidate_paths(fabric, every, pairs, paths=0, most=8, up_down=up_down) for up_down in (False, True)]
    assert found[0] == found[1]
    ports = host_ports(fabric)
    for mode in MODES:
        flows = [FlowPaths(fabric, mode, routing=routing).paths(ports[:-1], ports[1:]) for routing in (None, UP_DOWN)]
        assert np.array_equal(flows[0].hops, flows[1].hops)
        assert np.array_equal(flows[0].about, flows[1].about)


def test_links_within_a_tier_have_no_direction() -> None:
    fabric = tiers(1, 1, 1, links=[(2, 3), (3, 4)])
    job = sends(2, [Message(source=0, destination=1, size_bytes=1)])
    for lowered in (packet_input_of, flow_input_of):
        with pytest.raises(ConfigError) as caught:
            lowered(fabric, job, routing=UP_DOWN)
        (mistake,) = caught.value.mistakes
        assert mistake.path == "fabric.routing"
        assert "'n2' and 'n3' are linked and both of tier 1" in mistake.text
        assert "shortest or k-shortest" in mistake.text


def test_a_pinned_path_with_a_valley_is_refused() -> None:
    fabric = tiers(1, 1, 2, 2, 1, links=[(2, 4), (4, 6), (6, 5), (5, 3)])
    ports = fabric.ports
    way = tuple(
        next(
            port for port in range(ports.base[node], ports.base[node + 1]) if ports.node[ports.peer[port]] == following
        )
        for node, following in ((2, 4), (4, 6), (6, 5), (5, 3))
    )
    pin = Pin(sources=(0,), destinations=(1,), ports=way)
    job = sends(2, [Message(source=0, destination=1, size_bytes=1)])
    packet_input_of(fabric, job, routing=Routing(pins=(pin,)))
    with pytest.raises(ConfigError) as caught:
        packet_input_of(fabric, job, routing=Routing(pins=(pin,), up_down=True))
    assert [one.path for one in caught.value.mistakes] == ["fabric.pinned.0"]
    assert "goes down to 'n6' and up again" in caught.value.mistakes[0].text


@pytest.mark.parametrize(
    ("name", "what"), [("ugal", "takes ports that lie on no route"), ("valiant", "sends packets over other leaves")]
)
def test_a_policy_that_leaves_the_routes_is_refused(name: str, what: str) -> None:
    fabric = tiers(1, 1, 2, links=[(2, 4), (4, 3)])
    job = sends(2, [Message(source=0, destination=1, size_bytes=1)])
    leaving = load("port_selection", str(POLICIES / f"{name}.py"), {})
    packet_input_of(fabric, job, port_selection=leaving)
    with pytest.raises(ConfigError) as caught:
        packet_input_of(fabric, job, port_selection=leaving, routing=UP_DOWN)
    assert [one.path for one in caught.value.mistakes] == ["transport.port_selection"]
    assert what in caught.value.mistakes[0].text
