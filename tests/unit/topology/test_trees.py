"""Trees of every name: vendors' tables, one generator behind all, and routing by destination that meets nobody.

Tables: NVIDIA, DGX SuperPOD reference architectures H100, B200, B300 and B300 XDR; Qian et al., SIGCOMM 2024 (HPN);
Grattafiori et al., arXiv:2407.21783 (Meta); DeepSeek-AI, ISCA 2025, table 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.topology_trees import DGX, by_tier, links_below

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.choices import TOPOLOGIES
from weftwork.topology.build import fabric_of, tree_of
from weftwork.topology.oversubscription import oversubscription_by_tier
from weftwork.topology.pgft import Pgft, Tier
from weftwork.topology.tree_topology import TreeTopology

B300 = {"node": {"model": "dgx-b300", "nic_ports": 16}, "link_rate_bps": 400_000_000_000, "switch": "spectrum-4"}


XDR = {"node": "dgx-b300", "switch": "quantum-x800"}


G = 1_000_000_000


@pytest.mark.parametrize(
    ("units", "leaf", "spine", "core"),
    [(2, 16, 8, 0), (4, 32, 16, 0), (8, 64, 32, 0), (16, 128, 128, 64), (32, 256, 256, 128), (64, 512, 512, 256)],
)
@pytest.mark.parametrize("core_groups", ["units", "rails"])
def test_superpods_have_the_switches_and_cables_of_the_table(
    units: int, leaf: int, spine: int, core: int, core_groups: str
) -> None:
    """H100 and B200: units of 32 servers; each tier has as many cables as GPUs."""
    fabric = fabric_of(topology="superpod", scalable_units=units, core_groups=core_groups)
    assert fabric.gpus == 256 * units
    assert by_tier(fabric) == [32 * units, leaf, spine, *([core] if core else [])]
    assert links_below(fabric) == [256 * units] * (3 if core else 2)
    assert set(oversubscription_by_tier(fabric).values()) == {1}


@pytest.mark.parametrize(
    ("keys", "per_unit", "units", "leaf", "spine"),
    [
        *((B300, 64, units, 16 * units, 8 * units) for units in (1, 2, 4, 8, 16)),
        *((XDR, 72, units, 8 * units, spine) for units, spine in ((1, 4), (2, 8), (4, 18), (8, 36), (18, 72))),
    ],
)
def test_superpods_of_b300(keys: dict[str, Any], per_unit: int, units: int, leaf: int, spine: int) -> None:
    """B300 Ethernet in two planes of 400G; B300 XDR by the rule that the spines divide the uplinks evenly."""
    fabric = fabric_of(topology="superpod", scalable_units=units, **keys)
    gpus = 8 * per_unit * units
    assert fabric.gpus == gpus
    assert by_tier(fabric) == [per_unit * units, leaf, spine]
    assert links_below(fabric) == [len(fabric.hosts) * fabric.servers[0].nic_ports] * 2


@pytest.mark.parametrize(("units", "nodes", "cables"), [(1, 31, (252, 256)), (4, 127, (1_020, 1_024))])
def test_real_builds_give_a_server_to_the_fabric_manager(units: int, nodes: int, cables: tuple[int, int]) -> None:
    fabric = fabric_of(topology="superpod", scalable_units=units, fabric_manager=True)
    assert len(fabric.hosts) == nodes
    to_hosts, between = links_below(fabric)
    assert (to_hosts + sum(extra.ports * extra.count for extra in fabric.extras), between) == cables


@pytest.mark.parametrize("units", [2, 4, 8, 16, 32, 64])
def test_superpods_have_the_form_of_a_pgft(units: int) -> None:
    """The forms by which the generator says the table: (2; 32, 8 SU; ...) and (3; 32, 32, SU / 4; ...)."""
    if units <= 8:
        keys = {"children": (32, 8 * units), "parents": (1, 4 * units), "cables": (1, 8 // units)}
    else:
        keys = {"children": (32, 32, units // 4), "parents": (1, 32, units // 8), "cables": (1, 1, 256 // units)}
    as_pgft = fabric_of(topology="pgft", node="dgx-h100", switch="quantum-2", rails=8, **keys)
    superpod = fabric_of(topology="superpod", scalable_units=units)
    assert (as_pgft.links == superpod.links).all()
    assert as_pgft.node_names == superpod.node_names


def test_a_pod_of_hpn() -> None:
    fabric = fabric_of(topology="hpn")
    assert (fabric.gpus, by_tier(fabric), links_below(fabric)) == (15_360, [1_920, 240, 120], [30_720, 14_400])
    assert oversubscription_by_tier(fabric)[1] == pytest.approx(25.6 / 24)
    assert [Pgft.notation(named_tree("hpn"))] == ["PGFT(2; 128,120; 2,60; 1,1)"]
    three = fabric_of(topology="hpn", segments=45)
    assert links_below(three)[2] == 3 * 960
    assert oversubscription_by_tier(three)[2] == 15
    # every ToR pair of a rail: 16 in each segment, and planes that no link joins
    assert by_tier(fabric_of(topology="hpn", segments=1))[1] == 16


def test_the_cluster_of_meta() -> None:
    fabric = fabric_of(topology="meta-24k")
    assert fabric.gpus == 24_576
    assert fabric_of(topology="meta-24k", pods=1).gpus == 3_072
    ratios = oversubscription_by_tier(fabric)
    assert ratios[1] == 0.5
    assert ratios[2] == pytest.approx(7, rel=0.003)  # 384 links over 55: a whole number of links has no exact seventh


@pytest.mark.parametrize(
    ("keys", "switches", "ratios"),
    [
        ({"hosts": 1_008, "oversubscription": {"access": 3, "aggregation": 4}}, [21, 14, 4], {1: 3, 2: 4}),
        ({"hosts": 480, "oversubscription": 3}, None, {1: 3, 2: 1}),
        ({"hosts": 64}, [2, 2, 4], {1: 1, 2: 1}),
        (
            {"hosts": 960, "oversubscription": {"access": 3}, "uplink_rate_bps": {"aggregation": 800 * G}},
            None,
            {1: 3, 2: 1},
        ),
    ],
)
def test_three_tiers_converge_as_asked(
    keys: dict[str, Any], switches: list[int] | None, ratios: dict[int, float]
) -> None:
    fabric = fabric_of(topology="three-tier", radix=64, **keys)
    assert oversubscription_by_tier(fabric) == ratios
    if switches is not None and len(keys) == 2 and isinstance(keys["oversubscription"], dict):
        assert by_tier(fabric)[1:] == switches


def named_tree(name: str, **keys: Any) -> Pgft:
    tree = tree_of(topology=name, **keys)
    assert tree is not None
    return tree


TREES = {
    "fat-tree": [{"radix": 8}, {"radix": 8, "tiers": 2, "hosts": 20}, {"radix": 8, "hosts": 40}],
    "leaf-spine": [{"hosts": 96, "radix": 32, "oversubscription": 3}, {"hosts": 7, "radix": 8}],
    "rail-optimized": [
        {"node": DGX, "gpus": 1_024, "radix": 64},
        {"node": DGX, "gpus": 2_048, "radix": 32},
        {"node": {"gpus": 8, "nic_ports": 16}, "gpus": 512, "radix": 64, "planes": 2},
    ],
    "rail-only": [{"node": DGX, "gpus": 256, "radix": 64}, {"node": DGX, "gpus": 2_048, "radix": 32}],
    "superpod": [{"scalable_units": 3}, {"gpus": 4_096}],
    "multi-plane": [{"node": DGX, "gpus": 1_024, "radix": 32}],
    "hpn": [{"segments": 2, "nodes_per_segment": 4}, {"segments": 4, "segments_per_pod": 2, "nodes_per_segment": 4}],
    "meta-24k": [{"pods": 2, "racks_per_pod": 6}],
    "three-tier": [{"hosts": 960, "radix": 64, "oversubscription": {"access": 3, "aggregation": 4}}],
    "pgft": [{"children": (3, 4, 2), "parents": (1, 2, 3), "cables": (1, 2, 1)}],
}


def test_every_tree_of_the_catalogue_is_compared() -> None:
    assert set(TREES) == {name for name in TOPOLOGIES if isinstance(TOPOLOGIES.load(name), TreeTopology)}


@pytest.mark.parametrize(("name", "keys"), [(name, keys) for name, each in TREES.items() for keys in each])
def test_a_name_is_a_preset_of_the_one_generator(name: str, keys: dict[str, Any]) -> None:
    """The numbers of a name's tree, given to the generator by itself, make the same links."""
    named, tree = fabric_of(topology=name, **keys), named_tree(name, **keys)
    words = ("leaf", "spine", "core")
    rates = {word: tier.rate_bps for word, tier in zip(words, tree.tiers, strict=False)}
    plain = fabric_of(
        topology="pgft",
        children=(tree.per_leaf, *(tier.children for tier in tree.tiers)),
        parents=(tree.planes, *(tier.parents for tier in tree.tiers)),
        cables=(tree.cables_to_leaf, *(tier.cables for tier in tree.tiers)),
        rails=tree.rails,
        joined=tree.is_joined,
        hosts=tree.servers,
        node=tree.server,
        link_rate_bps=tree.host_rate_bps,
        uplink_rate_bps=rates or None,
    )
    assert (named.links == plain.links).all()
    assert named.node_kind.tolist() == plain.node_kind.tolist()
    assert by_tier(named)[1:] == tree.counts()
    assert links_below(named) == tree.links()
    degree = np.diff(named.ports.base)
    for tier, ports in enumerate(tree.ports(), 1):
        assert degree[named.node_tier == tier].max() <= ports
    for tier, ratio in enumerate(tree.oversubscription(), 1):
        assert oversubscription_by_tier(named)[tier] <= float(ratio) * (1 + 1e-12)


def test_a_rate_of_a_tier_changes_its_ratio() -> None:
    slow = fabric_of(topology="rail-optimized", node=DGX, gpus=2_048, radix=32, tiers=3)
    fast = fabric_of(
        topology="rail-optimized", node=DGX, gpus=2_048, radix=32, tiers=3, uplink_rate_bps={"spine": 800 * G},
        spines=16, nodes_per_pod=16,
    )  # fmt: skip
    assert by_tier(fast)[3] < by_tier(slow)[3]
    assert oversubscription_by_tier(fast) == {1: 1, 2: 1}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"topology": "superpod", "gpus": 64, "node": "p5"}, "NVIDIA's tables lack 'p5'"),
        ({"topology": "superpod"}, "give scalable_units, or gpus"),
        ({"topology": "superpod", "scalable_units": 1, "gpus": 2_048}, "256 places of 32 a unit take 8"),
        ({"topology": "hpn", "node": "dgx-h100"}, "HPN has 8 rails and 2 planes"),
        ({"topology": "hpn", "segments": 1, "gpus": 4_096}, "512 servers in segments of 128 take 4"),
        ({"topology": "meta-24k", "pods": 1, "gpus": 4_096}, "512 servers in pods of 384 take 2"),
        ({"topology": "multi-plane", "gpus": 64, "node": DGX, "radix": 8, "planes": 3}, "wanted a divisor of 8"),
        ({"topology": "multi-plane", "gpus": 64, "node": DGX}, "wanted the ports of every switch"),
        ({"topology": "three-tier", "hosts": 1_000, "radix": 64, "oversubscription": 3}, "990 or 1,008 servers do"),
        ({"topology": "three-tier", "hosts": 100_000, "radix": 16}, "the 16 ports of a core join"),
        ({"topology": "three-tier", "hosts": 64, "radix": 64, "hosts_per_access": 5}, "28, 30, 32 would do"),
        ({"topology": "pgft", "parents": (1, 2, 3)}, "found 3 numbers, wanted 2"),
        ({"topology": "pgft", "cables": (2, 1)}, "found 2 to a leaf, wanted 1"),
        ({"topology": "pgft", "hosts": 33}, "found 33, wanted at most 32"),
        ({"topology": "pgft", "uplink_rate_bps": {"spine": 10**9}}, "a tree of 2 tiers has nothing above it"),
        ({"topology": "fat-tree", "radix": 8, "spines": 2}, "means nothing with three tiers"),
        ({"topology": "fat-tree", "radix": 8, "tiers": 2, "spines": 3}, "found 3, wanted a divisor of 4"),
    ],
)  # fmt: skip
def test_what_no_tree_can_be_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fabric_of(**keys)
    assert message in str(caught.value)


def test_tiers_are_records() -> None:
    tree = Pgft(
        servers=4, server=named_tree("pgft").server, per_leaf=2, pods=2, host_rate_bps=G,
        tiers=(Tier(word="spine", children=2, parents=2, cables=1, rate_bps=G),),
    )  # fmt: skip
    assert (tree.counts(), tree.links(), tree.notation()) == ([2, 2], [4, 4], "PGFT(2; 2,2; 1,2; 1,1)")
    assert tree.size().nodes == 8
