"""Routes on random fabrics equal all shortest paths as networkx finds them."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.routing import DELIVER, UNREACHABLE, Routes, routes


@st.composite
def fabrics(draw: st.DrawFn) -> tuple[Fabric, list[bool]]:
    """Connected random fabrics with parallel links, dual-homed hosts and some links down."""
    switches, hosts = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    total = switches + hosts
    ends = [(switch, draw(st.integers(0, switch - 1))) for switch in range(1, switches)]  # a spanning tree
    extra = st.tuples(st.integers(0, switches - 1), st.integers(0, switches - 1))
    ends += [(a, b) for a, b in draw(st.lists(extra, max_size=8)) if a != b]
    for host in range(switches, total):
        ends += [(host, at) for at in draw(st.lists(st.integers(0, switches - 1), min_size=1, max_size=2))]
    links = links_between([a for a, _ in ends], [b for _, b in ends], rate_bps=10**9, delay_ps=2_000)
    try:
        fabric = assemble(
            name="random", node_names=[f"n{i}" for i in range(total)], node_tier=[1] * switches + [0] * hosts,
            node_kind=[SWITCH] * switches + [HOST] * hosts, links=links, switches=(Switch(),), nics=(Nic(),),
        )  # fmt: skip
    except ConfigError as refused:  # switches are a spanning tree, so nothing can be wrong
        raise AssertionError(str(refused)) from refused
    up = draw(st.lists(st.sampled_from([True, True, True, False]), min_size=len(ends), max_size=len(ends)))
    return fabric, up


def walks(fabric: Fabric, table: Routes, node: int, column: int) -> set[tuple[int, ...]]:
    """Node sequences that the groups allow from a switch to an attachment."""
    if table.group_of[node, column] == DELIVER:
        return {(node,)}
    ports = fabric.ports
    found = set()
    for port in table.candidates(node, column):
        for rest in walks(fabric, table, int(ports.node[ports.peer[port]]), column):
            found.add((node, *rest))
    return found


@given(drawn=fabrics())
def test_routes_are_all_shortest_paths(drawn: tuple[Fabric, list[bool]]) -> None:
    fabric, link_up = drawn
    table = routes(fabric, np.array(link_up))
    graph = nx.Graph()
    switches = np.flatnonzero(fabric.node_kind == SWITCH).tolist()
    graph.add_nodes_from(switches)
    parallel: dict[tuple[int, int], int] = {}
    for link, up in zip(fabric.links, link_up, strict=True):
        a, b = int(link["a"]), int(link["b"])
        if up and fabric.node_kind[a] == SWITCH and fabric.node_kind[b] == SWITCH:
            graph.add_edge(a, b)
            key = (min(a, b), max(a, b))
            parallel[key] = parallel.get(key, 0) + 1
    for column, target in enumerate(table.attach_node.tolist()):
        for node in switches:
            if nx.has_path(graph, node, target):
                expected = {tuple(path) for path in nx.all_shortest_paths(graph, node, target)}
                assert walks(fabric, table, node, column) == expected
                first_hops = {path[1] for path in expected if len(path) > 1}
                count = sum(parallel[min(node, hop), max(node, hop)] for hop in first_hops)
                assert len(table.candidates(node, column)) == count  # every parallel link is a candidate
            else:
                assert table.group_of[node, column] == UNREACHABLE
    groups = (
        [tuple(part) for part in np.split(table.group_ports, table.group_ptr[1:-1])] if len(table.group_ports) else []
    )
    assert len(set(groups)) == len(groups)
    assert all(list(group) == sorted(group) and group for group in groups)


@given(drawn=fabrics())
def test_attachments_follow_the_wiring(drawn: tuple[Fabric, list[bool]]) -> None:
    fabric, link_up = drawn
    table = routes(fabric, np.array(link_up))
    ports = fabric.ports
    for port, node in enumerate(ports.node.tolist()):
        column = int(table.attach_of_port[port])
        if fabric.node_kind[node] == HOST:
            assert table.attach_node[column] == ports.node[ports.peer[port]]
        else:
            assert column == UNREACHABLE
