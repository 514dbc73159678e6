"""Paths of flows: known counts, what is refused, and that fabrics of tiers need no search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.tiny import wired

from weftwork.base.errors import UsageError
from weftwork.base.random import Stream, draw
from weftwork.engine import packet
from weftwork.engine.flow.paths import FlowPaths
from weftwork.engine.lower import lower
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.fabric import HOST, Fabric
from weftwork.spec.transport import Transport
from weftwork.topology.build import fabric_of
from weftwork.workload.traffic.patterns.permutation import permutation


def nic_ports(fabric: Fabric) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.flatnonzero(fabric.node_kind[fabric.ports.node] == HOST)


def test_a_symmetric_fat_tree_has_two_bundles_for_each_leaf_and_each_pod() -> None:
    fabric = fabric_of(topology="fat-tree", tiers=3, radix=8)
    between = np.ones(len(fabric.ports.node), np.bool_)
    between[fabric.node_kind[fabric.ports.node] == HOST] = False
    between[fabric.node_kind[fabric.ports.node[fabric.ports.peer]] == HOST] = False
    bundles = np.unique(FlowPaths(fabric, "spray").bundles()[between])
    assert len(bundles) == 2 * 32 + 2 * 8  # 32 leaves and 8 pods, upwards and downwards


def test_a_sprayed_path_over_three_tiers_has_six_hops_of_bundles() -> None:
    fabric = fabric_of(topology="fat-tree", tiers=3, radix=8)
    ports = nic_ports(fabric)
    found = FlowPaths(fabric, "spray").paths(ports[:1], ports[-1:])
    assert found.hops["weight"].tolist() == pytest.approx([1, 1 / 4, 1 / 16, 1 / 16, 1 / 4, 1])
    assert found.about["links"].tolist() == [6]
    assert found.about["rate_bps"].tolist() == [400e9]


def test_all_links_of_a_bundle_are_its_members() -> None:
    fabric = fabric_of(topology="leaf-spine", leaves=2, spines=3, hosts_per_leaf=2, links_per_pair=2)
    router = FlowPaths(fabric, "spray")
    ports = nic_ports(fabric)
    found = router.paths(ports[:1], ports[-1:])
    loads = router.port_loads(found, np.array([6.0]))
    assert sorted(loads[loads > 0].tolist()) == pytest.approx([1.0] * 12 + [6.0] * 2)


@pytest.mark.parametrize("slow", [4, 5])
def test_a_sprayed_message_is_there_with_the_part_on_the_longest_path(slow: int) -> None:
    """One switch in the middle is three times as far away as the other, whichever of them comes first."""
    links = [(0, 2), (1, 3), (2, 4), (2, 5), (4, 3), (5, 3)]
    delays_ps = [10_000, 20_000, *[3_000_000 if slow in link else 1_000_000 for link in links[2:]]]
    ports = nic_ports(fabric := wired(links, hosts=2, delays_ps=delays_ps))
    found = FlowPaths(fabric, "spray").paths(ports[:1], ports[-1:])
    assert found.about["latency_ps"].tolist() == [10_000 + 2 * 3_000_000 + 20_000]


def test_to_one_destination_all_flows_come_down_one_path() -> None:
    fabric = fabric_of(topology="fat-tree", tiers=3, radix=8)
    ports = nic_ports(fabric)
    router = FlowPaths(fabric, "deterministic")
    for target in ports[[0, 5, -1]].tolist():
        sources = ports[ports != target]
        found = router.paths(sources, np.full(len(sources), target))
        tier = fabric.node_tier
        used = np.unique(found.hops["link"])
        downwards = used[tier[fabric.ports.node[used]] > tier[fabric.ports.node[fabric.ports.peer[used]]]]
        owners, count = np.unique(fabric.ports.node[downwards], return_counts=True)
        assert (count == 1).all()
        assert sorted(tier[owners].tolist()) == [1, 2, 3]  # one leaf, one agg, one core


def test_by_destination_a_shift_of_all_hosts_meets_nobody() -> None:
    """A non-blocking tree carries every shift permutation without two flows on one link (Zahavi et al. 2012)."""
    fabric = fabric_of(topology="fat-tree", tiers=3, radix=8)
    ports = nic_ports(fabric)
    router = FlowPaths(fabric, "deterministic")
    for shift in (1, 4, 17, 64, 100):
        found = router.paths(ports, np.roll(ports, -shift))
        assert np.bincount(found.hops["link"]).max() == 1


def test_by_destination_rails_of_three_tiers_are_balanced() -> None:
    fabric = fabric_of(topology="rail-optimized", hosts=64, node={"gpus": 4, "nic_ports": 4}, radix=16, tiers=3)
    ports = nic_ports(fabric)
    found = FlowPaths(fabric, "deterministic").paths(ports, np.roll(ports, -4 * 8))  # every server to the next pod
    assert np.bincount(found.hops["link"]).max() == 1


def test_rails_that_nothing_joins_do_not_reach_each_other() -> None:
    fabric = fabric_of(topology="rail-only", hosts=8, node={"gpus": 2, "nic_ports": 2}, radix=8, nodes_per_pod=2)
    ports = nic_ports(fabric)
    found = FlowPaths(fabric, "hashed").paths(ports[[0, 0]], ports[[4, 5]])
    assert found.about["reachable"].tolist() == [1, 0]
    assert np.diff(found.hop_ptr).tolist()[1] == 0


def test_only_flows_between_two_nic_ports_have_paths() -> None:
    fabric = fabric_of(topology="leaf-spine", leaves=2, spines=2, hosts_per_leaf=2)
    router = FlowPaths(fabric, "hashed")
    ports = nic_ports(fabric)
    with pytest.raises(UsageError, match="two different NIC ports"):
        router.paths(ports[:1], ports[:1])
    with pytest.raises(UsageError, match="two different NIC ports"):
        router.paths(ports[:1], ports[-1:] + 1)
    with pytest.raises(UsageError, match="wanted 0 to"):
        router.paths(ports[:1], np.array([10_000]))
    with pytest.raises(UsageError, match="link_up has shape"):
        router.use(np.ones(3, np.bool_))


@pytest.mark.parametrize("balancing", ["ecmp", "destination-modulo"])
@pytest.mark.parametrize(
    "shape",
    [
        {"topology": "fat-tree", "tiers": 3, "radix": 4},
        {"topology": "leaf-spine", "leaves": 4, "spines": 3, "hosts_per_leaf": 4, "links_per_pair": 2},
        {"topology": "rail-optimized", "hosts": 16, "radix": 8, "tiers": 3},
    ],
)
def test_a_flow_takes_the_ports_that_its_packets_took(shape: dict[str, Any], balancing: str) -> None:
    """The packet engine itself sends a permutation; the flow engine's router names the same ports."""
    fabric = fabric_of(**shape)
    hosts = len(fabric.hosts)
    engine_input = lower(
        fabric=fabric,
        job=permutation(hosts=hosts, size_bytes=10_000, seed=3),
        transport=Transport(),
        congestion_control=load("congestion_control", "none"),
        settings=EngineSettings(port_selection=load("port_selection", balancing)),
    )
    told = packet.run(engine_input, series=packet.Series(path_sample=1))
    pairs = sorted({(int(row["source"]), int(row["destination"])) for row in told.messages})
    flows = [source << 40 | destination << 16 for source, destination in pairs]
    found = FlowPaths(fabric, "hashed" if balancing == "ecmp" else "deterministic").paths(
        engine_input.rank_ports[[source for source, _ in pairs], 0],
        engine_input.rank_ports[[destination for _, destination in pairs], 0],
        entropy=np.array([0xC000 | draw(engine_input.seed, Stream.PATH_CHOICE, flow, 0, 0) & 0x3FFF for flow in flows]),
        destination_qp=np.array([draw(0, Stream.PATH_CHOICE, flow, 1, 0) & 0xFFFFFF for flow in flows]),
    )
    for number in range(len(pairs)):
        taken = told.paths["port"][told.paths["queue_pair"] == number]
        hops = found.hops["link"][found.hop_ptr[number] : found.hop_ptr[number + 1]]
        assert sorted(taken.tolist()) == sorted(hops.tolist())
