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


@pytest.mark.parametrize(("tiers", "radix"), [(2, 4), (2, 64), (3, 4), (3, 6), (3, 32)])
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


def test_oversubscription_is_what_the_halves_can_exchange() -> None:
    found = measure(fabric_of(topology="leaf-spine", hosts=192, radix=64, oversubscription=3))
    assert found.oversubscription_by_tier == {1: 3.0}
    assert found.bisection.rate_bps == found.bisection.hosts_bps // 3
    assert found.bisection.method == "max-flow over 5 kinds of equal nodes of 197"


def test_base_rtt_adds_up() -> None:
    # two links of 100 ns to hosts, two of 200 ns between switches, three switches of 500 ns, a NIC of 300 ns
    fabric = fabric_of(
        topology="leaf-spine", leaves=2, spines=2, hosts_per_leaf=2, link_delay_ps=200_000, host_link_delay_ps=100_000,
        nic=Nic(receive_latency_ps=300_000), switch=Switch(forwarding_latency_ps=500_000),
    )  # fmt: skip
    near, far = measure(fabric).paths
    assert near.rtt_min_ps == near.rtt_max_ps == 2 * (200_000 + 500_000 + 300_000)
    assert far.rtt_min_ps == far.rtt_max_ps == 2 * (200_000 + 400_000 + 3 * 500_000 + 300_000)


def star(delays_ps: list[int]) -> Fabric:
    hosts = len(delays_ps)
    return assemble(
        name="star", node_names=[f"h{i}" for i in range(hosts)] + ["s"], node_kind=[HOST] * hosts + [SWITCH],
        node_tier=[0] * hosts + [1], switches=(Switch(forwarding_latency_ps=0),), nics=(Nic(),),
        links=links_between(range(hosts), [hosts] * hosts, rate_bps=GBPS, delay_ps=delays_ps),
    )  # fmt: skip


def test_base_rtt_spans_the_nearest_and_the_farthest_two() -> None:
    (row,) = measure(star([1_000, 2_000, 5_000, 7_000])).paths
    assert (row.rtt_min_ps, row.rtt_max_ps) == (2 * 3_000, 2 * 12_000)


def test_two_hosts_on_a_wire_are_one_hop_apart() -> None:
    fabric = assemble(
        name="wire", node_names=["x", "y"], node_kind=[HOST, HOST], node_tier=[0, 0],
        links=links_between([0], [1], rate_bps=10**9, delay_ps=5_000), switches=(), nics=(Nic(),),
    )  # fmt: skip
    found = measure(fabric)
    assert [(row.hops, row.share, row.rtt_min_ps) for row in found.paths] == [(1, 1.0, 10_000)]
    assert (found.bisection.rate_bps, found.switches, found.diameter_hops) == (10**9, 0, 1)


def test_the_median_counts_pairs() -> None:
    # h0 is alone behind s0; h1, h2 share s1, which two links join to s0
    fabric = assemble(
        name="uneven", node_names=["h0", "h1", "h2", "h3", "s0", "s1", "s2"], node_kind=[HOST] * 4 + [SWITCH] * 3,
        node_tier=[0] * 4 + [1] * 3, nics=(Nic(),), switches=(Switch(),),
        links=links_between([0, 1, 2, 3, 4, 4, 4], [4, 5, 5, 6, 5, 5, 6], rate_bps=10**9, delay_ps=5_000),
    )  # fmt: skip
    three = next(row for row in measure(fabric).paths if row.hops == 3)
    assert (three.paths_min, three.paths_median, three.paths_max) == (1, 2.0, 2)
    assert three.share == pytest.approx(6 / 12)


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
