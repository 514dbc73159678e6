"""What is left when something is lost: names, who reaches whom, bandwidth by rail and between two hosts."""

from __future__ import annotations

import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.build import fabric_of
from weftwork.topology.lost_names import planes_of
from weftwork.topology.reach import reach
from weftwork.topology.without import find_lost, lose, measure_loss

TBPS = 10**12


RAILS = fabric_of(topology="rail-optimized", gpus=1_024, node="dgx-h100", switch="quantum-2")


def test_a_single_homed_host_is_cut_off_and_a_dual_homed_one_is_not() -> None:
    single = measure_loss(fabric_of(topology="leaf-spine", hosts=64, radix=32), ["leaf3"])
    assert (single.after.hosts_alone, single.after.host_pairs_joined) == (16, 48 * 47 // 2)
    dual = fabric_of(topology="leaf-spine", hosts=64, node={"nic_ports": 2}, radix=32, dual_homed=True)
    loss = measure_loss(dual, ["leaf3"])
    assert (loss.after.hosts_alone, loss.gpus_with_less) == (0, 16)
    assert loss.after.host_pairs_joined == loss.before.host_pairs_joined


def test_rails_that_nothing_joins_are_eight_networks() -> None:
    fabric = fabric_of(topology="rail-optimized", gpus=64, node="dgx-h100", radix=16, spines=0)
    found = reach(fabric)
    assert (found.networks, found.host_pairs_joined) == (8, 28)
    assert (found.gpu_pairs, found.gpu_pairs_joined) == (64 * 56 // 2, 8 * 28)


def test_names_of_all_kinds() -> None:
    nodes, links = find_lost(RAILS, ["host3/nic2", "leaf8-spine1", "leaf8-spine1.2", "spine4"])
    names = np.array(RAILS.link_names)[links].tolist()
    assert names[0] == "host3-leaf2"
    assert {"leaf8-spine1", "leaf8-spine1.2"} <= set(names)
    assert int(links.sum()) == 3 + 64
    assert np.array(RAILS.node_names)[nodes].tolist() == ["spine4"]
    left = lose(RAILS, links)
    assert len(left.links) == len(left.link_names) == 2_048 - 67
    assert "host3-leaf2" not in left.link_names


def test_names_that_are_wrong_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        measure_loss(RAILS, ["leaf77", "leaf0/nic1", "host1/nic8", "host3-leaf9", "leaf2-host3"])
    text = str(caught.value)
    assert "5 mistakes" in text
    assert "did you mean 'host3-leaf2'" in text
    assert "did you mean 'leaf7'" in text
    assert "'leaf0' is a switch, wanted a host" in text
    assert "wanted nic0 to nic7; did you mean 'host1/nic7'" in text


def test_a_bundle_and_uplinks_are_lost_together() -> None:
    fabric = fabric_of(topology="leaf-spine", leaves=4, spines=2, links_per_pair=3, hosts_per_leaf=2)
    _, links = find_lost(fabric, ["leaf1-spine0.all"])
    names = np.array(fabric.link_names)[links].tolist()
    assert names == ["leaf1-spine0", "leaf1-spine0.2", "leaf1-spine0.3"]
    assert (find_lost(fabric, names)[1] == links).all()
    nodes, up = find_lost(fabric, ["leaf2/up"])
    assert (int(nodes.sum()), int(up.sum())) == (0, 6)
    assert all(name.startswith("leaf2-spine") for name in np.array(fabric.link_names)[up].tolist())


def test_planes_and_networks_by_number() -> None:
    node = {"model": "dgx-h100", "nic_ports": 16}
    two = fabric_of(topology="rail-optimized", gpus=128, node=node, link_rate_bps=2 * 10**11, radix=32, planes=2)
    assert planes_of(two) == [[0], [1]]
    for number in (0, 1):
        by_plane, by_network = find_lost(two, [f"plane{number}"]), find_lost(two, [f"network{number}"])
        assert (by_plane[0] == by_network[0]).all()
        assert (by_plane[1] == by_network[1]).all()
        ports = two.ports
        lost = by_plane[1][ports.link[ports.base[two.hosts[0]] : ports.base[two.hosts[0] + 1]]]
        assert lost.tolist() == [port % 2 == number for port in range(16)]
    rails = fabric_of(topology="rail-optimized", gpus=64, node="dgx-h100", radix=16, spines=0)
    assert planes_of(rails) == [list(range(8))]
    nodes, links = find_lost(rails, ["network3"])
    assert np.array(rails.node_names)[nodes].tolist() == ["leaf3"]
    assert int(links.sum()) == 8
    own_rails = fabric_of(topology="rail-optimized", gpus=64, node=node, link_rate_bps=2 * 10**11, radix=32, planes=2,
                          spines=0)  # fmt: skip
    assert planes_of(own_rails) == [list(range(0, 16, 2)), list(range(1, 16, 2))]
    assert int(find_lost(own_rails, ["plane1"])[0].sum()) == 8


def test_names_of_groups_that_are_wrong_are_told_at_once() -> None:
    rails = fabric_of(topology="rail-optimized", gpus=64, node="dgx-h100", radix=16, spines=0)
    names = ["plane0", "network8", "leaf3/up", "host2/up", "leaf0/upp", "spine0-leaf3.all", "netwrk1", "random:5%"]
    with pytest.raises(ConfigError) as caught:
        find_lost(rails, names)
    text = str(caught.value)
    assert f"{len(names)} mistakes" in text
    for words in (
        "found 'plane0', but the fabric is one plane of 8 networks, wanted network0 to network7",
        "wanted network0 to network7; did you mean 'network7'",
        "nothing is above 'leaf3'",
        "'host2' is a host, wanted a switch",
        "did you mean 'leaf0/up'",
        "did you mean 'network0'",
        "random:5%@17 for one seed",
    ):
        assert words in text
    with pytest.raises(ConfigError, match=r"did you mean 'leaf8-spine1\.all'"):
        find_lost(RAILS, ["spine1-leaf8.all"])
    with pytest.raises(ConfigError, match="the fabric is one network"):
        find_lost(RAILS, ["network1"])


def test_a_node_that_is_called_like_a_group_is_meant_first() -> None:
    fabric = assemble(
        name="odd names", node_names=["a", "b", "plane1", "leaf/up"], node_kind=[HOST, HOST, SWITCH, SWITCH],
        node_tier=[0, 0, 1, 2], links=links_between([0, 1, 2], [2, 2, 3], rate_bps=TBPS, delay_ps=2_000),
        switches=(Switch(),), nics=(Nic(),),
    )  # fmt: skip
    assert find_lost(fabric, ["plane1"])[0].tolist() == [False, False, True, False]
    assert find_lost(fabric, ["leaf/up"])[0].tolist() == [False, False, False, True]


def test_an_aggregation_switch_of_two_planes_lost_leaves_59_of_60() -> None:
    """Shape of HPN 7.0 in small: a leaf per rail and plane, one link of each leaf to each of 60 switches of its plane.

    Source: Qian et al., SIGCOMM 2024, doi:10.1145/3651890.3672265, section 3.
    """
    node = {"gpus": 1, "nic_ports": 2}
    fabric = fabric_of(
        topology="rail-optimized", hosts=120, node=node, link_rate_bps=2 * 10**11, radix=128, planes=2, rails=1,
        nodes_per_pod=60, spines=60, links_per_pair=1,
    )  # fmt: skip
    loss = measure_loss(fabric, ["spine7"])
    of_plane = loss.bisection_before.rate_bps // 2
    assert loss.bisection_after.rate_bps == of_plane + of_plane * 59 // 60
    assert loss.disjoint_after is not None
    assert loss.disjoint_after.paths == 59


def test_everything_may_be_lost() -> None:
    star = fabric_of(topology="leaf-spine", leaves=1, spines=1, hosts_per_leaf=4)
    loss = measure_loss(star, ["leaf0"])
    assert (loss.after.hosts_alone, loss.after.host_pairs_joined, loss.bisection_after.rate_bps) == (4, 0, 0)
    assert loss.worst_after is None
