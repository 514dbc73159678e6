"""What is left when something is lost: names, who reaches whom, bandwidth by rail and between two hosts."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.spec.fabric import HOST, Fabric
from weftwork.spec.rails import ports_of_gpu
from weftwork.topology.build import fabric_of
from weftwork.topology.reach import reach
from weftwork.topology.without import find_lost, lose, measure_loss, worst_pair

TBPS = 10**12


RAILS = fabric_of(topology="rail-optimized", gpus=1_024, node="dgx-h100", switch="quantum-2")


def test_a_lost_leaf_costs_one_rail_of_its_pod() -> None:
    loss = measure_loss(RAILS, ["leaf3"])
    assert (loss.nodes, loss.links, loss.links_lost) == (("leaf3",), (), 64)
    assert loss.after.host_pairs_joined == loss.before.host_pairs_joined == 128 * 127 // 2
    assert (loss.gpus_without, loss.gpus_with_less, loss.after.gpus_alone) == (32, 0, 32)
    assert loss.before.gpu_pairs == 1_024 * (1_024 - 8) // 2
    joined = 992 * 991 - (32 * 7 * 6 + 96 * 8 * 7)  # ordered pairs of GPUs with a port, less those of one server
    assert loss.after.gpu_pairs_joined == joined // 2
    assert (loss.bisection_before.rate_bps, loss.bisection_after.rate_bps) == (
        512 * 4 * TBPS // 10,
        480 * 4 * TBPS // 10,
    )
    rail = loss.rails[3]
    assert (rail.ports, rail.hosts_before, rail.hosts_after) == ((3,), 128, 96)
    assert (rail.before.rate_bps, rail.after.rate_bps) == (25_600_000_000_000, 12_800_000_000_000)
    assert all(other.after.rate_bps == other.before.rate_bps for other in loss.rails[:3] + loss.rails[4:])
    assert loss.worst_before is not None
    assert loss.worst_after is not None
    assert (loss.worst_before.rate_bps, loss.worst_after.rate_bps) == (3_200_000_000_000, 2_800_000_000_000)


def test_a_lost_spine_costs_every_rail_its_share() -> None:
    loss = measure_loss(RAILS, ["spine0"])
    assert (loss.gpus_without, loss.gpus_with_less) == (0, 0)
    assert loss.bisection_after.rate_bps == loss.bisection_before.rate_bps * 15 // 16
    assert {rail.after.rate_bps for rail in loss.rails} == {25_600_000_000_000 * 15 // 16}


def test_two_planes_survive_the_loss_of_one() -> None:
    node = {"model": "dgx-h100", "nic_ports": 16}
    fabric = fabric_of(
        topology="rail-optimized", gpus=128, node=node, link_rate_bps=200_000_000_000, radix=32, planes=2
    )
    first_plane = [f"leaf{number}" for number in range(8)]
    loss = measure_loss(fabric, first_plane)
    assert (loss.before.networks, loss.after.networks) == (2, 1)
    assert (loss.gpus_with_less, loss.gpus_without) == (128, 0)
    assert loss.after.gpu_pairs_joined == loss.before.gpu_pairs_joined == loss.before.gpu_pairs
    assert loss.bisection_after.rate_bps * 2 == loss.bisection_before.rate_bps


@pytest.mark.parametrize("planes", [2, 4])
def test_a_port_split_plane_leaves_the_others(planes: int) -> None:
    node = {"model": "dgx-h100", "nic_ports": 8 * planes}
    rate_bps = 4 * 10**11 // planes
    fabric = fabric_of(
        topology="rail-optimized", hosts=16, node=node, link_rate_bps=rate_bps, radix=16, planes=planes, rails=1
    )
    loss = measure_loss(fabric, ["plane1"])
    assert loss.bisection_after.rate_bps * planes == loss.bisection_before.rate_bps * (planes - 1)
    assert (loss.gpus_with_less, loss.gpus_without) == (128, 0)
    assert loss.worst_before is not None
    assert loss.worst_after is not None
    assert loss.worst_after.rate_bps * planes == loss.worst_before.rate_bps * (planes - 1)


@pytest.mark.parametrize("spines", [2, 3, 8])
def test_a_spine_lost_leaves_the_others_their_share(spines: int) -> None:
    fabric = fabric_of(topology="leaf-spine", leaves=4, spines=spines, links_per_pair=2, hosts_per_leaf=2 * spines)
    loss = measure_loss(fabric, ["spine1"])
    assert loss.bisection_after.rate_bps * spines == loss.bisection_before.rate_bps * (spines - 1)
    assert loss.legal_before is not None
    assert loss.legal_after is not None
    assert loss.legal_after.rate_bps == loss.bisection_after.rate_bps
    assert loss.disjoint_before is not None
    assert loss.disjoint_after is not None
    assert (loss.disjoint_before.paths, loss.disjoint_after.paths) == (2 * spines, 2 * (spines - 1))
    assert loss.valleys_after == loss.valleys_before


def test_large_fabrics_are_not_measured_pair_by_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weftwork.topology.without.MOST_WORK", 10_000)
    loss = measure_loss(RAILS, ["leaf3"])
    assert loss.rails == ()
    assert loss.worst_before is None
    assert loss.bisection_after.rate_bps == loss.bisection_before.rate_bps - 32 * 400_000_000_000


SMALL = {
    "rails": fabric_of(topology="rail-optimized", hosts=6, node={"gpus": 2, "nic_ports": 4}, radix=8, rails=2),
    "rail-only": fabric_of(topology="rail-optimized", hosts=6, node={"gpus": 4, "nic_ports": 4}, radix=8, spines=0),
    "dual": fabric_of(topology="leaf-spine", hosts=6, node={"gpus": 2, "nic_ports": 2}, radix=8, dual_homed=True),
    "tree": fabric_of(topology="fat-tree", radix=4, tiers=3, hosts=10),
}


@given(name=st.sampled_from(sorted(SMALL)), data=st.data())
def test_reach_and_worst_pair_agree_with_networkx(name: str, data: st.DataObject) -> None:
    fabric = SMALL[name]
    lost = sorted(data.draw(st.sets(st.sampled_from([*fabric.node_names, *fabric.link_names]), max_size=6)))
    _, links = find_lost(fabric, lost)
    left, graph = lose(fabric, links), nx.DiGraph()
    switches = nx.Graph()
    for link in left.links.tolist():
        for tail, head in (link[:2], link[1::-1]):
            is_host = fabric.node_kind[head] == HOST
            key = (tail, f"to {head}") if is_host else (tail, head)
            old = graph.get_edge_data(*key, default={"capacity": 0})["capacity"]
            graph.add_edge(*key, capacity=old + link[2])
            if not is_host and fabric.node_kind[tail] != HOST:
                switches.add_edge(tail, head)
    found = reach(fabric, ~links)
    attached = _attached(fabric, links)

    def meet(one: set[int], other: set[int]) -> bool:
        return any(
            a == b or (a in switches and b in switches and nx.has_path(switches, a, b)) for a in one for b in other
        )

    hosts = fabric.hosts.tolist()
    pairs = [pair for pair in combinations(hosts, 2) if meet(attached[pair[0], -1], attached[pair[1], -1])]
    assert found.host_pairs_joined == len(pairs)
    gpus = [(host, gpu) for host in hosts for gpu in range(fabric.server(host).gpus)]
    far = [(one, other) for one, other in combinations(gpus, 2) if one[0] != other[0]]
    assert found.gpu_pairs == len(far)
    assert found.gpu_pairs_joined == sum(meet(attached[one], attached[other]) for one, other in far)
    worst = worst_pair(left)
    flows = [nx.maximum_flow_value(graph, one, f"to {other}") for one, other in pairs]
    assert (None if worst is None else worst.rate_bps) == (min(flows) if flows else None)


def _attached(fabric: Fabric, lost: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> dict[tuple[int, int], set[int]]:
    """Switches at the ports of every GPU, and of all of a host under -1."""
    ports, found = fabric.ports, {}
    for host in fabric.hosts.tolist():
        own = range(int(ports.base[host]), int(ports.base[host + 1]))
        up = [None if lost[ports.link[port]] else int(ports.node[ports.peer[port]]) for port in own]
        found[host, -1] = {switch for switch in up if switch is not None}
        gpus = fabric.server(host).gpus
        for gpu in range(gpus):
            mine = (up[port] for port in ports_of_gpu(len(up), gpus, gpu))
            found[host, gpu] = {switch for switch in mine if switch is not None}
    return found
