"""Where fabrics end: closed forms, the generators that build just as far, and ports, ratios and trees of any kind."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.build import fabric_of
from weftwork.topology.largest import NextStep, TreeEnding, fabric_limits
from weftwork.topology.limits import (
    SwitchPorts,
    TreeEnd,
    best_split,
    ends_by_radix,
    larger_switches,
    tree_limit,
    widest_tree,
)
from weftwork.topology.tree_plan import tree_plan

G = 1_000_000_000


def ending(fabric: Fabric) -> TreeEnding:
    found = fabric_limits(fabric)
    assert found.ending is not None, found.unknown
    return found.ending


def steps(end: TreeEnding) -> dict[tuple[str, int], NextStep]:
    return {(step.step, step.count): step for step in end.steps}


@given(half=st.integers(1, 256), tiers=st.integers(1, 6))
def test_a_tree_that_does_not_block_has_the_closed_forms(half: int, tiers: int) -> None:
    """N = 2(k/2)^t, (2t-1)(k/2)^(t-1) switches, (t-1)N switch links, 2t-1 switches on the longest path."""
    limit = tree_limit(widest_tree(2 * half, tiers))
    assert limit.servers == limit.host_links == 2 * half**tiers
    assert limit.switches == (2 * tiers - 1) * half ** (tiers - 1)
    assert limit.switch_links == (tiers - 1) * limit.servers
    assert limit.longest_path_switches == 2 * tiers - 1


def test_the_switches_of_the_catalogue_end_where_the_table_says() -> None:
    """144 ports: 10,368 endpoints of two tiers are the vendor's figure too (NVIDIA, Quantum-X800)."""
    found = {row.radix: (row.two_tiers, row.three_tiers) for row in ends_by_radix()}
    assert found == {
        32: (512, 8_192), 64: (2_048, 65_536), 128: (8_192, 524_288), 144: (10_368, 746_496), 256: (32_768, 4_194_304),
        512: (131_072, 33_554_432),
    }  # fmt: skip
    switches = {row.radix: row.switches for row in ends_by_radix()}
    assert switches[144] == {"quantum-x800": 800 * G}
    assert (switches[64]["quantum-2"], switches[64]["tomahawk-5"], switches[512]["tomahawk-6"]) == (
        400 * G, 800 * G, 200 * G,
    )  # fmt: skip


def test_ports_that_are_split_into_planes_multiply_the_radix() -> None:
    whole = SwitchPorts(ports=64, capacity_bps=64 * 800 * G, most_ports=256)
    assert [whole.split(parts).ports for parts in (1, 2, 4, 8)] == [64, 128, 256, 256]
    split = whole.split(4).ports  # 51.2 Tb/s: 64 x 800 Gb/s carry 2,048, four planes of 200 Gb/s 32,768
    assert [tree_limit(widest_tree(ports, 2)).servers for ports in (64, split)] == [2_048, 32_768]


def test_hpn_is_counted_by_its_paper() -> None:
    """Qian et al., SIGCOMM 2024: 128 x 200 Gb/s down and 60 x 400 Gb/s up, 15 segments of 128 servers, two planes."""
    tor = SwitchPorts(ports=256, capacity_bps=51_200 * G)
    assert best_split(tor, ratio=Fraction(16, 15), down_bps=200 * G, up_bps=400 * G) == (128, 60)
    agg = SwitchPorts(ports=128)
    assert best_split(agg, ratio=Fraction(15), down_bps=400 * G, up_bps=400 * G) == (120, 8)
    pod = tree_limit(TreeEnd(down=(128, 120), up=(60,), spread=(8,), networks=2))
    assert (8 * pod.servers, pod.switches_by_tier) == (15_360, (240, 120))
    rails = tree_limit(TreeEnd(down=(128, 120), up=(60,), spread=(1,), networks=16))
    assert 8 * rails.servers == 122_880  # the variant whose second tier is rail-only


@given(ports=st.integers(4, 128), more=st.integers(1, 64), tiers=st.integers(1, 4))
def test_more_ports_carry_at_least_as_many(ports: int, more: int, tiers: int) -> None:
    few, many = (tree_limit(widest_tree(count, tiers)).servers for count in (ports, ports + more))
    assert few <= many


def test_a_ratio_that_no_leaf_has_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"fabric\.oversubscription .*no split of 4 ports has"):
        widest_tree(4, 2, ratio=Fraction(1, 100))


def test_a_split_of_a_billion_ports_is_found_at_once() -> None:
    split = best_split(SwitchPorts(ports=10**9), ratio=Fraction(3), down_bps=1, up_bps=1)
    assert split == (750_000_000, 250_000_000)


def test_the_next_larger_switch_has_ports_of_both_rates() -> None:
    assert larger_switches(64, 400 * G) == (128, ("tomahawk-5", "tomahawk-ultra", "spectrum-4"))
    assert larger_switches(64, 400 * G, fastest_bps=1_600 * G) == (256, ("tomahawk-6",))
    assert larger_switches(1_024, 100 * G) is None


PLAIN_2 = {"model": "plain", "gpus": 2, "nic_ports": 2}


DUAL_PLANE = {"model": "plain", "gpus": 2, "nic_ports": 4}


DUAL_HOMED = {"model": "plain", "nic_ports": 2}


SHAPES: list[tuple[dict[str, Any], int]] = [  # a kind, and servers of a small fabric of it with one full group
    ({"topology": "fat-tree", "tiers": 2, "radix": 8}, 5),
    ({"topology": "fat-tree", "tiers": 3, "radix": 6}, 10),
    ({"topology": "leaf-spine", "radix": 12}, 7),
    ({"topology": "leaf-spine", "radix": 15}, 9),
    ({"topology": "leaf-spine", "radix": 16, "oversubscription": 3}, 24),
    ({"topology": "leaf-spine", "radix": 12, "fabric_rate_bps": 800 * G, "oversubscription": 1}, 16),
    ({"topology": "leaf-spine", "radix": 12, "dual_homed": True, "node": DUAL_HOMED}, 8),
    ({"topology": "rail-optimized", "radix": 16, "node": "dgx-h100", "tiers": 2}, 9),
    ({"topology": "rail-optimized", "radix": 16, "node": "dgx-h100", "oversubscription": 3, "tiers": 2}, 12),
    ({"topology": "rail-optimized", "radix": 8, "node": PLAIN_2, "tiers": 3}, 9),
    ({"topology": "rail-optimized", "radix": 8, "node": DUAL_PLANE, "planes": 2, "tiers": 2}, 5),
    ({"topology": "rail-only", "radix": 8, "node": "dgx-h100", "tiers": 2}, 9),
    ({"topology": "rail-only", "radix": 8, "node": "dgx-h100"}, 5),
]


@pytest.mark.parametrize(("kind", "few"), SHAPES)
def test_the_largest_fabric_builds_and_one_server_more_is_refused(kind: dict[str, Any], few: int) -> None:
    small = ending(fabric_of(**kind, hosts=few))
    assert small.limit.servers > few
    full = fabric_of(**kind, hosts=small.limit.servers)
    at_end = ending(full)
    assert (at_end.gpus, at_end.limit, at_end.today) == (full.gpus, small.limit, small.limit)
    is_switch = full.node_kind != HOST
    assert tuple(np.bincount(full.node_tier[is_switch])[1:].tolist()) == small.limit.switches_by_tier
    assert (len(full.links), full.gpus) == (small.limit.links, small.gpus)
    if kind["topology"] == "rail-only" and "tiers" not in kind:  # goes on with spines, as the step of another tier says
        more = fabric_of(**kind, hosts=small.limit.servers + 1)
        assert ending(more).gpus == steps(small)["tier", 2].gpus
        return
    with pytest.raises(ConfigError):
        fabric_of(**kind, hosts=small.limit.servers + 1)
    if "oversubscription" in kind:  # refused for want of ports, not for groups that are not equal
        with pytest.raises(ConfigError, match=r"wanted at most|need a third"):
            fabric_of(**kind, hosts=small.limit.servers + small.end.down[0] // small.end.each)


@pytest.mark.parametrize(
    ("section", "gpus", "today"),
    [
        ({"topology": "superpod", "scalable_units": 4}, 2_048, 1_024),  # two links from a spine to each leaf
        ({"topology": "superpod", "scalable_units": 8}, 2_048, 2_048),
        ({"topology": "superpod", "scalable_units": 16, "core_groups": "units"}, 65_536, 4_096),
        ({"topology": "hpn", "segments": 3}, 16_384, 16_384),  # all 128 ports of an aggregation switch down
    ],
)
def test_what_vendors_build_ends_where_they_say(section: dict[str, Any], gpus: int, today: int) -> None:
    end = ending(fabric_of(**section))
    assert (end.gpus, end.today.servers * end.plan.gpus) == (gpus, today)


def test_hpn_with_cores_has_its_ratios() -> None:
    """Two pods: 8 of 128 ports of an aggregation switch go up, 15:1, so that a pod ends at 15 segments."""
    end = ending(fabric_of(topology="hpn", segments=30))
    assert end.plan.ratios == (Fraction(16, 15), Fraction(15))
    assert end.gpus == 15_360 * end.end.down[-1]


def test_a_tor_of_hpn_keeps_the_eight_ports_of_its_backup() -> None:
    """51.2 Tb/s - 128 x 200 Gb/s - 60 x 400 Gb/s leave eight ports of 200 Gb/s, which the paper has."""
    tor = fabric_limits(fabric_of(topology="hpn", segments=1)).ports[0]
    assert (tor.used_min, tor.used_max, tor.ports, tor.left) == (188, 188, 196, 8 * 16)


def test_every_step_past_a_superpod_has_its_price() -> None:
    end = ending(fabric_of(topology="superpod", scalable_units=8))
    found = steps(end)
    assert {key: step.gpus for key, step in found.items()} == {
        ("tier", 3): 65_536, ("planes", 2): 8_192, ("switches", 128): 8_192, ("rails", 8): 16_384,
    }  # fmt: skip
    tier = found["tier", 3]
    # another tier: 2/k switches and one link more for each endpoint, two hops
    assert tier.limit.switches / tier.gpus - end.limit.switches / end.gpus == pytest.approx(2 / 64)
    assert tier.limit.links / tier.gpus - end.limit.links / end.gpus == pytest.approx(1)
    assert tier.limit.longest_path_switches == end.limit.longest_path_switches + 2
    planes = found["planes", 2]  # as many switches for a GPU, twice the links, ports of half the rate
    assert planes.limit.switches / planes.gpus == end.limit.switches / end.gpus
    assert (planes.limit.links / planes.gpus, planes.rate_bps) == (2 * end.limit.links / end.gpus, 200 * G)
    assert found["rails", 8].limit.switches / found["rails", 8].gpus == end.limit.switches / end.gpus
    assert found["switches", 128].switches == ("tomahawk-5", "tomahawk-ultra", "spectrum-4")


def test_a_switch_whose_ports_do_not_split_gets_no_planes() -> None:
    end = ending(fabric_of(topology="fat-tree", tiers=2, switch="quantum-x800", link_rate_bps=800 * G, hosts=288))
    assert end.closed["planes"] == "a switch has no more ports at a lower rate"
    assert "planes" not in {step.step for step in end.steps}


def test_ports_of_a_gpu_on_one_leaf_go_to_planes_first() -> None:
    end = ending(fabric_of(topology="rail-only", gpus=256, node="p5", radix=128, spines=0))
    (planes,) = (step for step in end.steps if step.step == "planes")
    assert (planes.count, planes.rate_bps, planes.gpus, end.gpus) == (4, 100 * G, 1_024, 256)
    assert planes.limit.host_links / planes.gpus == end.limit.host_links / end.gpus


def test_the_largest_switch_of_the_catalogue_has_no_larger_one() -> None:
    end = ending(fabric_of(topology="leaf-spine", hosts=32, switch="tomahawk-6", link_rate_bps=100 * G))
    assert end.closed["switches"].startswith("the catalogue has no switch with more than 1,024 ports")


def test_a_lone_group_that_is_not_full_counts_as_filled_and_says_so() -> None:
    end = ending(fabric_of(topology="fat-tree", tiers=3, radix=8, hosts=8))
    assert (end.plan.part_filled, end.gpus) == ((2,), 128)
    racks = tree_plan(fabric_of(topology="leaf-spine", leaves=4, spines=4, hosts_per_leaf=2, radix=16))
    assert (racks.ratios, racks.part_filled) == ((Fraction(1, 2),), ())  # four leaves show that 1:2 is wanted


def built(
    switch_tier: list[int], pairs: list[tuple[int, int]], *, radix: int = 8, rates: list[int] | None = None
) -> Fabric:
    """Four hosts, 0 to 3, and switches from 4 on, joined by pairs."""
    a, b = zip(*pairs, strict=True)
    return assemble(
        name="by hand",
        node_names=[f"n{number}" for number in range(4 + len(switch_tier))],
        node_kind=[HOST] * 4 + [SWITCH] * len(switch_tier),
        node_tier=[0] * 4 + switch_tier,
        links=links_between(a, b, rate_bps=rates or 400 * G, delay_ps=100_000),
        switches=[Switch(radix=radix)],
        nics=[Nic()],
    )


UNEVEN = "its servers are not all attached alike to leaves and groups of switches"


HOSTS = [(0, 4), (1, 4), (2, 5), (3, 5)]


@pytest.mark.parametrize(
    ("fabric", "reason"),
    [
        (built([1, 1], [*HOSTS, (4, 5)]), "links join nodes of one tier"),
        (built([1, 1, 3], [*HOSTS, (4, 6), (5, 6)]), "links pass over a tier"),
        (built([1, 1, 2], [*HOSTS, (4, 6), (5, 6), (5, 6)]), "switches of tier 1 have different numbers of links up"),
        (built([1, 1, 2], [*HOSTS, (4, 6), (5, 6)], rates=[1, 2, 1, 1, 1, 1]),
         "links below tier 1 have different rates"),
        (built([1, 1, 1, 2, 2], [(0, 4), (1, 4), (2, 5), (3, 6), (4, 7), (4, 8), (5, 7), (5, 7), (6, 8), (6, 8)]),
         "n7 does not reach all leaves that are connected below its tier"),
        (built([1, 1, 2], [*HOSTS, (0, 5), (4, 6), (5, 6)]), UNEVEN),
        (built([1, 1], [(0, 4), (1, 4), (2, 4), (3, 4), (0, 5), (1, 5)]), UNEVEN),
        (built([1, 1, 1], [(0, 4), (0, 5), (1, 5), (1, 6), (2, 4), (2, 6), (3, 4), (3, 5)]),
         "its servers are not all attached to the same networks"),
    ],
)  # fmt: skip
def test_of_what_is_no_tree_only_ports_are_known(fabric: Fabric, reason: str) -> None:
    found = fabric_limits(fabric)
    assert (found.ending, found.unknown, found.is_endless) == (None, reason, False)
    used = np.diff(fabric.ports.base)[fabric.node_kind == SWITCH]
    assert sum(row.left for row in found.ports) == (8 - used).sum()


def test_a_tree_by_hand_is_a_tree_whatever_its_name() -> None:
    end = ending(built([1, 1, 2], [*HOSTS, (4, 6), (4, 6), (5, 6), (5, 6)]))
    assert (end.gpus, end.limit.switches_by_tier) == (32, (8, 4))
    assert (end.today.servers, end.today.switches_by_tier) == (8, (4, 1))


def test_any_number_of_ports_ends_nowhere() -> None:
    found = fabric_limits(fabric_of(topology="leaf-spine", leaves=2, spines=2, hosts_per_leaf=4))
    assert (found.is_endless, found.unknown) == (True, "leaf0 ('plain') has any number of ports")
    assert [(row.ports, row.left) for row in found.ports] == [(0, 0), (0, 0)]
