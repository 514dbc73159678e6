"""Routes that never go down and then up again: networkx on random tiers, and all engines on lossy trees."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from helpers.both import both
from helpers.cases import Saw, case_count
from helpers.kept_seeds import kept_first
from helpers.tiny import Message, flow_input_of, packet_input_of, sends
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.test_flow_paths import cases, compare, family
from laws.test_routes import walks
from numpy.typing import NDArray
from runs.topology.test_valleys import has_valley, switches_of, tiered_fabrics

from weftwork.base.clock import US_PS
from weftwork.engine.flow import run as flow
from weftwork.engine.flow.paths import FlowPaths, RoutingMode
from weftwork.engine.instants import Fault, lower_faults
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.routing import Routing
from weftwork.spec.transport import Transport
from weftwork.topology.build import fabric_of
from weftwork.topology.routing import UNREACHABLE, attachments, hops_left, routes
from weftwork.topology.valleys import leaves_below, leaves_left, valleys
from weftwork.topology.weights import weighted

UP_DOWN = Routing(up_down=True)
MODES: tuple[RoutingMode, ...] = ("spray", "hashed", "deterministic", "weighted")
TREES = ("fat tree of 3 tiers", "leaf-spine, parallel links", "rails, 3 tiers", "two planes")
SMALL: tuple[dict[str, Any], ...] = (
    {"topology": "leaf-spine", "leaves": 4, "spines": 3, "hosts_per_leaf": 1},
    {"topology": "fat-tree", "tiers": 3, "radix": 4},
)
CASES = case_count(plain=20, deep=300)


def legal_graph(fabric: Fabric, graph: nx.Graph, target: int) -> nx.DiGraph:
    """The hops that the rule allows: down where anything leads down to the target, and up from anywhere else."""
    tier = fabric.node_tier
    down = nx.DiGraph((a, b) for a, b in (*graph.edges, *(edge[::-1] for edge in graph.edges)) if tier[b] < tier[a])
    down.add_nodes_from(graph.nodes)
    falls = nx.ancestors(down, target) | {target}
    allowed = nx.DiGraph((a, b) for a, b in down.edges if a in falls and b in falls)
    allowed.add_edges_from((b, a) for a, b in down.edges if b not in falls)
    allowed.add_nodes_from(graph.nodes)
    return allowed


@given(drawn=tiered_fabrics())
def test_routes_are_the_shortest_ones_of_the_rule(drawn: tuple[Fabric, NDArray[np.bool_]]) -> None:
    fabric, link_up = drawn
    graph, table = switches_of(fabric, link_up), routes(fabric, link_up, up_down=True)
    left = hops_left(fabric, link_up, table.attach_node, up_down=True)
    neighbours = all(abs(int(fabric.node_tier[a]) - int(fabric.node_tier[b])) == 1 for a, b in graph.edges)
    for column, target in enumerate(table.attach_node.tolist()):
        allowed = legal_graph(fabric, graph, target)
        for node in graph.nodes:
            simple = list(nx.all_simple_paths(graph, node, target)) if node != target else [[node]]
            legal = [path for path in simple if not has_valley(fabric, path)]
            if not legal:
                assert table.group_of[node, column] == UNREACHABLE
                assert left.hops[node, column] == -1
                continue
            expected = {tuple(path) for path in nx.all_shortest_paths(allowed, node, target)}
            assert walks(fabric, table, node, column) == expected
            assert {len(path) - 1 for path in expected} == {int(left.hops[node, column])}
            assert not any(has_valley(fabric, list(path)) for path in expected)
            if neighbours:  # no tier is skipped: the rule then finds the shortest of all paths without a valley
                assert int(left.hops[node, column]) == min(map(len, legal)) - 1


@given(drawn=tiered_fabrics())
def test_weights_are_of_the_same_candidates(drawn: tuple[Fabric, NDArray[np.bool_]]) -> None:
    fabric, link_up = drawn
    table = routes(fabric, link_up, up_down=True)
    found, weights = weighted(fabric, link_up, table, up_down=True)
    assert (weights > 0).all()
    for node in np.flatnonzero(fabric.node_kind == SWITCH).tolist():
        for column in range(len(table.attach_node)):
            assert found.candidates(node, column).tolist() == table.candidates(node, column).tolist()


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=case_count(plain=15, deep=100))
@given(drawn=tiered_fabrics(), data=st.data())
def test_flows_take_them_in_any_fabric(
    mode: RoutingMode, drawn: tuple[Fabric, NDArray[np.bool_]], data: st.DataObject
) -> None:
    fabric, link_up = drawn
    _, flows = data.draw(cases(fabric, down=False))
    compare(fabric, FlowPaths(fabric, mode, routing=UP_DOWN), link_up, flows, up_down=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", TREES)
@settings(max_examples=case_count(plain=5, deep=40))
@given(data=st.data())
def test_flows_take_them_around_losses_of_a_tree(name: str, mode: RoutingMode, data: st.DataObject) -> None:
    fabric = family(name)
    link_up, flows = data.draw(cases(fabric, down=True))
    compare(fabric, FlowPaths(fabric, mode, routing=UP_DOWN), link_up, flows, up_down=True)


@pytest.mark.parametrize("name", TREES)
@settings(max_examples=case_count(plain=15, deep=60))
@given(data=st.data())
def test_valleys_come_to_leaves_below_a_loss_alone(name: str, data: st.DataObject) -> None:
    fabric = family(name)
    link_up, _ = data.draw(cases(fabric, down=True))
    leaves = leaves_left(fabric, link_up)
    near = leaves_below(fabric, ~link_up, leaves)
    some, every = valleys(fabric, link_up, leaves, near), valleys(fabric, link_up, leaves)
    assert some is not None
    assert every is not None
    assert (some.pairs_bent, some.pairs_only_bent) == (every.pairs_bent, every.pairs_only_bent)
    assert some.pairs_joined - some.pairs_legal == every.pairs_joined - every.pairs_legal


def lossy(seed: int) -> tuple[Fabric, list[Message], list[Fault], str]:
    """A small tree that loses a third of its links between switches at once, and gets some of them back."""
    rng = Random(f"up-down {seed}")
    fabric = fabric_of(**rng.choice(SMALL), link_delay_ps=500_000)
    links = fabric.links
    between = np.flatnonzero((fabric.node_kind[links["a"]] != HOST) & (fabric.node_kind[links["b"]] != HOST)).tolist()
    faults = []
    for link in rng.sample(between, len(between) // 3):
        faults.append(Fault(at_ps=US_PS, event="down", link=link))
        if rng.random() < 0.3:
            faults.append(Fault(at_ps=rng.randrange(2, 60) * US_PS, event="up", link=link))
    hosts = len(fabric.hosts)
    messages = []
    for _ in range(rng.randint(4, 10)):
        source, destination = rng.sample(range(hosts), 2)
        at_ps = rng.randrange(30 * US_PS)
        messages.append(
            Message(source=source, destination=destination, size_bytes=4096 * rng.randint(1, 12), at_ps=at_ps)
        )
    return fabric, messages, faults, rng.choice(["ecmp", "spray", "destination-modulo", "wcmp", "least-loaded"])


def bends(fabric: Fabric, faults: list[Fault]) -> int:
    """Pairs of leaves that lose their last route without a valley, but not their last path, at some time."""
    _, tables = lower_faults(fabric, faults, 0, table=lambda _, link_up, __: link_up)
    attach, found = attachments(fabric)[0], 0
    for link_up in tables:
        any_path = hops_left(fabric, link_up, attach).hops[attach]
        found += int(((hops_left(fabric, link_up, attach, up_down=True).hops[attach] < 0) & (any_path >= 0)).sum())
    return found


@pytest.mark.sanitize
def test_both_packet_engines_agree_on_them(saw: Saw) -> None:
    found: Counter[str] = Counter()
    for seed in kept_first("test_up_down_routes", range(CASES)):
        fabric, messages, faults, selection = lossy(seed)
        transport = Transport(recovery="selective-repeat", retransmission_timeout_ps=20 * US_PS, retry_limit=3)
        outcomes = [
            both(
                packet_input_of(
                    fabric, sends(len(fabric.hosts), messages), transport=transport, port_selection=selection,
                    faults=faults, routing=routing, reconvergence_delay_ps=2 * US_PS,
                ),
                f"case {seed}, {routing}",
            )
            for routing in (UP_DOWN, Routing())
        ]  # fmt: skip
        found["a pair without a legal route"] += bends(fabric, faults) > 0
        found["another result than by shortest paths"] += outcomes[0].digest() != outcomes[1].digest()
        found["a message that comes around a fault"] += bool(
            (outcomes[0].messages["delivered_at_ps"] > 5 * US_PS).any()
        )
        if selection == "least-loaded":
            continue
        given = flow_input_of(
            fabric, sends(len(fabric.hosts), messages), port_selection=selection, faults=faults, routing=UP_DOWN,
            reconvergence_delay_ps=2 * US_PS,
        )  # fmt: skip
        ended = flow.run(given).packets.messages
        done = ended["delivered_at_ps"] >= 0
        legal = hops_left(fabric, last_links(fabric, faults), attachments(fabric)[0], up_down=True).hops
        leaf = fabric.ports.node[fabric.ports.peer[fabric.ports.base[fabric.hosts]]]
        column = attachments(fabric)[1][fabric.ports.base[fabric.hosts]]
        for row, is_done in zip(ended, done.tolist(), strict=True):
            if legal[leaf[row["source"]], column[row["destination"]]] >= 0:
                assert is_done, f"case {seed}: flow {row}"
            found["a flow that waits for a legal route for ever"] += not is_done
    saw(CASES, ", ".join(f"{name}: {found[name]}" for name in sorted(found)))
    assert len(found) == 4
    assert min(found.values()) >= CASES // 10, found


def last_links(fabric: Fabric, faults: list[Fault]) -> NDArray[np.bool_]:
    """Links that are up when all has happened."""
    link_up = np.ones(len(fabric.links), np.bool_)
    for fault in sorted(faults, key=lambda one: one.at_ps):
        link_up[fault.link] = fault.event == "up"
    return link_up
