"""Measures of fabrics: closed forms, and networkx where there is none."""

from __future__ import annotations

import pytest

from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.build import fabric_of
from weftwork.topology.measures import measure

GBPS = 10**9


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
