"""Measures of fabrics: closed forms, and networkx where there is none."""

from __future__ import annotations

import time
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.build import fabric_of
from weftwork.topology.measures import bisection, measure, paths

GBPS = 10**9


@pytest.mark.parametrize(
    ("tiers", "radix"), [(2, 4), (2, 64), (3, 4), (3, 6), pytest.param(3, 32, marks=pytest.mark.deep)]
)
def test_a_fat_tree_has_its_closed_forms(tiers: int, radix: int) -> None:
    found = measure(fabric_of(topology="fat-tree", tiers=tiers, radix=radix, link_rate_bps=400 * GBPS))
    assert found.bisection.rate_bps == found.bisection.hosts_bps == found.hosts // 2 * 400 * GBPS
    assert set(found.oversubscription_by_tier.values()) == {1.0}
    assert found.diameter_hops == 2 * tiers
    spread = [(row.hops, row.paths_min, row.paths_max) for row in found.paths]
    assert spread == [(2 * up, (radix // 2) ** (up - 1), (radix // 2) ** (up - 1)) for up in range(1, tiers + 1)]
    assert sum(row.share for row in found.paths) == pytest.approx(1)
    pod = radix // 2
    assert found.paths[0].share == pytest.approx((pod - 1) / (found.hosts - 1))


@pytest.mark.deep
def test_65536_hosts_are_measured_in_seconds_and_say_that_paths_are_a_sample() -> None:
    fabric = fabric_of(topology="fat-tree", tiers=3, radix=64)
    began = time.process_time()
    found = measure(fabric)
    assert time.process_time() - began < 10
    assert found.sample < found.attachments == 2_048
    assert found.bisection.rate_bps == 65_536 // 2 * 400 * GBPS
    assert [row.paths_max for row in found.paths] == [1, 32, 1_024]
    assert found.diameter_hops == 6


@st.composite
def connected(draw: st.DrawFn) -> Fabric:
    """Random fabrics with several rates, parallel links and dual-homed hosts."""
    switches, hosts = draw(st.integers(1, 6)), draw(st.integers(2, 6))
    ends = [(switch, draw(st.integers(0, switch - 1))) for switch in range(1, switches)]
    extra = st.tuples(st.integers(0, switches - 1), st.integers(0, switches - 1))
    ends += [(a, b) for a, b in draw(st.lists(extra, max_size=8)) if a != b]
    for host in range(switches, switches + hosts):
        ends += [(host, at) for at in draw(st.lists(st.integers(0, switches - 1), min_size=1, max_size=2))]
    rates = draw(st.lists(st.sampled_from([1, 2, 4, 7]), min_size=len(ends), max_size=len(ends)))
    links = links_between(
        [a for a, _ in ends], [b for _, b in ends], rate_bps=[rate * GBPS for rate in rates], delay_ps=2_000
    )
    return assemble(
        name="random",
        node_names=[f"n{i}" for i in range(switches + hosts)],
        node_kind=[SWITCH] * switches + [HOST] * hosts,
        node_tier=[1] * switches + [0] * hosts,
        links=links,
        switches=(Switch(),),
        nics=(Nic(),),
    )


@given(fabric=connected())
def test_bisection_equals_a_max_flow_without_symmetry(fabric: Fabric) -> None:
    graph = nx.DiGraph()
    hosts = fabric.hosts.tolist()
    senders, receivers = set(hosts[: len(hosts) // 2]), set(hosts[len(hosts) // 2 :])
    for link in fabric.links:
        for a, b in ((int(link["a"]), int(link["b"])), (int(link["b"]), int(link["a"]))):
            if b not in senders and a not in receivers:
                before = graph.get_edge_data(a, b, {"capacity": 0})["capacity"]
                graph.add_edge(a, b, capacity=before + int(link["rate_bps"]))
    for host in senders:
        graph.add_edge("all senders", host)  # no capacity: unlimited
    for host in receivers:
        graph.add_edge(host, "all receivers")
    assert bisection(fabric).rate_bps == nx.maximum_flow_value(graph, "all senders", "all receivers")


@given(fabric=connected())
def test_paths_equal_those_that_networkx_counts(fabric: Fabric) -> None:
    graph = nx.MultiGraph()
    for link in fabric.links:
        if fabric.node_kind[link["a"]] == fabric.node_kind[link["b"]] == SWITCH:
            graph.add_edge(int(link["a"]), int(link["b"]))
    ports = fabric.ports
    attached = ports.node[ports.peer[np.flatnonzero(fabric.node_kind[ports.node] == HOST)]].tolist()
    graph.add_nodes_from(attached)
    counts: dict[int, list[int]] = {}
    for first, one in enumerate(attached):
        for second, other in enumerate(attached):
            if first != second:
                found = list(nx.all_shortest_paths(nx.Graph(graph), one, other))
                total = sum(
                    int(np.prod([graph.number_of_edges(a, b) for a, b in pairwise(path)], dtype=int)) for path in found
                )
                counts.setdefault(len(found[0]) + 1, []).append(total)
    rows = paths(fabric)
    assert [row.hops for row in rows] == sorted(counts)
    assert measure(fabric).diameter_hops == max(counts)
    for row in rows:
        values = counts[row.hops]
        assert (row.paths_min, row.paths_max) == (min(values), max(values))
        assert row.paths_median == sorted(values)[(len(values) - 1) // 2]
        assert row.share == pytest.approx(len(values) / (len(attached) * (len(attached) - 1)))
