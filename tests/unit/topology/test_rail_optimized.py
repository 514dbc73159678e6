"""Rail-optimized fabrics: closed forms, the leaf of each NIC port, three tiers, planes, rails that nothing joins."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from helpers.rail_optimized import leaves_of, rail_fabric

from weftwork.base.errors import ConfigError
from weftwork.spec.device import Server
from weftwork.spec.rails import default_rails, ports_by_rail
from weftwork.topology.measures import measure
from weftwork.topology.oversubscription import oversubscription_by_tier
from weftwork.topology.rail_counts import rail_counts
from weftwork.topology.routing import switch_distances

DGX = Server(name="dgx", gpus=8, nic_ports=8)


@pytest.mark.parametrize(("units", "leaves", "spines"), [(1, 8, 4), (2, 16, 8), (3, 24, 16), (4, 32, 16)])
def test_scalable_units_of_32_servers(units: int, leaves: int, spines: int) -> None:
    """Counts of NVIDIA's DGX SuperPOD H100 reference architecture for one to four units, with 64-port switches.

    Three units have 16 spines there, since the 32 uplinks of a leaf divide into 1, 2 or 4 links a spine.
    """
    counts = rail_counts(servers=32 * units, server=DGX, rails=8, radix=64)
    assert (counts.pods, counts.nodes_per_pod, counts.pods * counts.rails, counts.spines) == (units, 32, leaves, spines)
    assert counts.oversubscription == 1


@pytest.mark.parametrize(("radix", "gpus"), [(16, 1_024), (32, 8_192), (64, 65_536)])
def test_three_tiers_are_a_fat_tree_with_other_cables(radix: int, gpus: int) -> None:
    counts = rail_counts(servers=gpus // 8, server=DGX, rails=8, radix=radix)
    assert gpus == radix**3 // 4
    assert counts.switches == 5 * radix**2 // 4
    assert (counts.spines, counts.cores, counts.blocks) == (radix // 2, radix // 2, radix)


def test_a_built_fabric_has_the_counts_of_its_shape() -> None:
    fabric = rail_fabric(gpus=1_152, radix=32, oversubscription=3)
    counts = rail_counts(servers=144, server=DGX, rails=8, radix=32, oversubscription=3)
    measures = measure(fabric)
    assert measures.switches == counts.switches
    assert measures.oversubscription_by_tier[1] == 3
    assert measures.hosts == 144
    assert fabric.gpus == 1_152


def test_rails_that_are_not_joined_are_networks_of_their_own() -> None:
    fabric = rail_fabric(gpus=256, switch="quantum-2", spines=0)
    assert fabric.name == "rail-only, 1 pod x 8 rails"
    assert len(fabric.node_names) == 32 + 8
    distance = switch_distances(fabric, np.ones(len(fabric.links), np.bool_), np.arange(32, 40, dtype=np.int32))
    assert (distance[32:] >= 0).sum() == 8  # each leaf reaches itself only
    large = rail_fabric(topology="rail-only", gpus=1_024, radix=64)
    counts = rail_counts(servers=128, server=DGX, rails=8, radix=64, rail_only=True)
    assert (counts.networks, counts.pods, counts.spines, counts.links_per_pair) == (8, 4, 2, 16)
    assert len(large.node_names) - 128 == counts.switches == 32 + 16
    spines_of_leaf = large.links["b"][1_024:].reshape(4, 8, 32)  # by pod, rail and uplink
    for rail in range(8):
        own = np.unique(spines_of_leaf[:, rail])
        assert own.tolist() == [160 + 2 * rail, 161 + 2 * rail]


def test_two_planes_share_no_switch() -> None:
    node = {"model": "dgx-h100", "nic_ports": 16}
    fabric = rail_fabric(gpus=512, node=node, link_rate_bps=200_000_000_000, switch="tomahawk-5", planes=2)
    leaves = leaves_of(fabric)
    assert not set(leaves[:, 0::2].ravel().tolist()) & set(leaves[:, 1::2].ravel().tolist())
    assert fabric.name == "rail-optimized, 1 pod x 8 rails x 2 planes"


def test_a_rack_of_72_has_four_rails() -> None:
    fabric = rail_fabric(gpus=288, node="gb200-nvl72", switch="quantum-2")
    leaves = leaves_of(fabric)
    assert all(leaves[0, port] == leaves[0, port % 4] for port in range(72))
    assert len(set(leaves[0].tolist())) == 4


def test_ports_of_one_gpu_share_a_rail_by_default() -> None:
    plane, rail = ports_by_rail(Server(gpus=8, nic_ports=32), rails=8, planes=1)
    assert rail.tolist() == [port // 4 for port in range(32)]
    assert set(plane.tolist()) == {0}
    _, rail = ports_by_rail(Server(gpus=8, nic_ports=32), rails=32, planes=1)
    assert rail.tolist() == list(range(32))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"gpus": 64, "planes": 2, "radix": 64}, "planes  found 2, wanted a divisor of 1, the NIC ports of a GPU"),
        ({"gpus": 64, "rails": 3, "radix": 64}, "rails  found 3, wanted 1, 2, 4 or 8.*did you mean '2'"),
        ({"gpus": 1_024, "spines": 0, "switch": "quantum-2"}, "spines  found 0, but 128 servers with one port each on"),
        ({"gpus": 1_024, "spines": 0, "radix": 64, "pods": 4}, "spines  found 0, but the servers are in 4 pods"),
        ({"gpus": 1_024, "radix": 64, "tiers": 2, "nodes_per_pod": 8}, "tiers  found 2, but 128 leaves"),
        ({"gpus": 1_024, "radix": 64, "pods": 4, "nodes_per_pod": 16}, "pods  found 4, but 128 servers in pods of 16"),
        ({"gpus": 64}, "radix  is needed"),
        ({"gpus": 100, "radix": 64}, "gpus  found 100, wanted a multiple of 8"),
        ({"gpus": 64, "hosts": 7, "radix": 64}, "gpus  found 64, wanted 56, 7 hosts of 8 GPUs each"),
        ({"radix": 64}, "gpus  missing"),
        ({"gpus": 64, "radix": 64, "links_per_pair": 2}, "links_per_pair  follows from the uplinks"),
        ({"gpus": 64, "radix": 64, "leaves": 2}, "leaves  means nothing with topology rail-optimized"),
        ({"gpus": 512, "pods": 1, "spines": 4, "links_per_pair": 4, "radix": 64}, "nodes_per_pod .*80 ports of a"),
        ({"gpus": 512, "pods": 2, "spines": 16, "oversubscription": 3, "radix": 64}, "oversubscription .*make 2:1;"),
        ({"gpus": 64, "radix": 8, "node": {"gpus": 8, "nic_ports": 64}, "rails": 8}, "oversubscription .*one server"),
        ({"gpus": 8_192, "radix": 8}, "rails  found 8, wanted at most 4"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(keys: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"fabric\.{message}"):
        rail_fabric(**keys)


def test_given_spines_are_kept() -> None:
    counts = rail_counts(servers=64, server=DGX, rails=8, radix=64, spines=8)
    assert (counts.spines, counts.links_per_pair, counts.oversubscription) == (8, 1, Fraction(4))
    assert counts.nodes_per_pod == 32


def test_default_rails() -> None:
    assert default_rails(Server(gpus=72, nic_ports=72), 4) == 4
    assert default_rails(Server(gpus=8, nic_ports=32)) == 8
    assert default_rails(Server(gpus=8, nic_ports=4)) == 4


@pytest.mark.parametrize("rails", [1, 2, 4])
@pytest.mark.parametrize("rail_only", [False, True])
def test_no_switch_of_three_tiers_needs_more_ports_than_it_has(*, rails: int, rail_only: bool) -> None:
    radix, seen = 16, set()
    server = Server(gpus=4, nic_ports=4)
    for servers in range(1, 260, 7):
        try:
            shape = rail_counts(servers=servers, server=server, rails=rails, radix=radix, rail_only=rail_only, tiers=3)
        except ConfigError as refused:
            assert "ports" in str(refused)  # noqa: PT017 - more servers than the ports join
            continue
        if not shape.cores:
            continue
        down = shape.pods_per_block * (1 if rail_only else rails) * shape.links_per_pair
        up = shape.cores * shape.links_per_core
        assert down == up <= radix // 2
        assert shape.blocks * shape.links_per_core <= radix
        seen.add((shape.blocks, shape.pods % shape.pods_per_block > 0))
    assert len({blocks for blocks, _ in seen}) > 1
    assert any(is_partial for _, is_partial in seen)


@pytest.mark.parametrize(("ratio", "per_pod", "switches"), [(1, 64, 48), (2, 64, 40), (4, 64, 36)])
def test_pods_at_a_ratio_are_equal(ratio: int, per_pod: int, switches: int) -> None:
    """2,048 GPUs on 128 ports: the most servers of a leaf at 2:1 are 84, but 256 servers make four pods of 64."""
    fabric = rail_fabric(gpus=2_048, radix=128, oversubscription=ratio)
    assert fabric.node_pod is not None
    assert np.bincount(fabric.node_pod[fabric.hosts]).tolist() == [per_pod] * 4
    assert oversubscription_by_tier(fabric) == {1: ratio}
    assert len(fabric.node_names) - len(fabric.hosts) == switches


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"gpus": 2_032, "oversubscription": 2},
         "254 servers (2,032 GPUs) do not divide into equal pods of at most 84 with this ratio; the nearest possible"),
        ({"gpus": 2_032, "oversubscription": 2}, "are 252 or 256 servers (2,016 or 2,048 GPUs)"),
        ({"gpus": 2_048, "oversubscription": 1.5}, "the nearest possible ratios are 64:43 and 32:21"),
        ({"gpus": 2_048, "oversubscription": 2, "nodes_per_pod": 84},
         "but 256 servers (2,048 GPUs) do not divide into equal pods of 84; 252 or 336 servers"),
        ({"gpus": 2_048, "oversubscription": 2, "pods": 3},
         "but 256 servers (2,048 GPUs) do not divide into equal pods of 86; 172 or 258 servers"),
        ({"gpus": 2_048, "oversubscription": 3, "pods": 4}, "gives a leaf of 64 hosts 21.3333 uplinks; a whole number"),
        ({"gpus": 256, "oversubscription": 2, "topology": "rail-only"}, "nothing is above these leaves"),
        ({"gpus": 256, "oversubscription": {"leaf": 2}, "pods": 1, "spines": 0}, "nothing is above these leaves"),
        ({"gpus": 2_048, "oversubscription": {"leaf": 2, "spine": 2}}, "found a ratio of 'spine', but these spines"),
        ({"gpus": 2_048, "oversubscription": {"core": 2}}, "found a ratio of 'core', wanted one of leaf or spine"),
        ({"gpus": 2_048, "oversubscription": {"leaf": 0}}, "leaf: found '0', wanted a ratio such as 2:1"),
        ({"gpus": 32_768, "tiers": 3, "oversubscription": {"spine": 1.7}}, "which no split of the 128 ports of a spin"),
        ({"hosts": 67 * 64, "tiers": 3, "oversubscription": {"spine": 4}, "nodes_per_pod": 64},
         "found 4:1 of 'spine', but 67 pods do not divide into equal blocks of at most 12; 66 or 70 pods do"),
    ],
)  # fmt: skip
def test_what_makes_no_equal_pods_is_refused_with_what_does(keys: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        rail_fabric(**{"radix": 128, **keys})
    assert [mistake.path for mistake in caught.value.mistakes] == ["fabric.oversubscription"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"leaf": 2, "spine": 3}, {1: 2, 2: 3}),
        ({"spine": 3}, {1: 1, 2: 3}),
        (2, {1: 2, 2: 1}),
        (None, {1: 1, 2: 1}),
    ],
)
def test_every_tier_has_its_ratio(asked: object, found: dict[int, float]) -> None:
    fabric = rail_fabric(gpus=6_144, radix=32, tiers=3, oversubscription=asked)
    assert oversubscription_by_tier(fabric) == pytest.approx(found)


def test_a_tier_without_a_ratio_is_left_to_the_counts() -> None:
    """Only a ratio that is asked for makes groups equal: the last pod of 127 servers has one less."""
    fabric = rail_fabric(gpus=1_016, radix=64)
    assert fabric.node_pod is not None
    assert np.bincount(fabric.node_pod[fabric.hosts]).tolist() == [32, 32, 32, 31]
