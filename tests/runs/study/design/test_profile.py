"""Bandwidth and hops by distance: known trees, and the order that they make."""

from __future__ import annotations

from itertools import permutations
from math import inf
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weftwork.study.design.profile import Profile, profile_of
from weftwork.topology.build import tree_of

GBPS = 10**9


def profile(**keys: Any) -> Profile:
    tree = tree_of(**keys)
    assert tree is not None
    return profile_of(tree)


def gbps(rates_bps: tuple[float, ...]) -> list[float]:
    return [round(rate / GBPS, 3) for rate in rates_bps]


def dgx(**keys: Any) -> Profile:
    return profile(**{"node": "dgx-h100", "switch": "tomahawk-5", "link_rate_bps": 400 * GBPS, **keys})


def test_a_fat_tree_has_its_rate_at_every_distance() -> None:
    found = profile(topology="fat-tree", radix=8, hosts=128)
    assert found.reach == (4.0, 16.0, inf)
    assert gbps(found.same_bps) == gbps(found.other_bps) == [400, 400, 400]
    assert found.same_hops == (2, 4, 6)
    assert found.port_bps == 400 * GBPS


def test_ratios_of_tiers_multiply() -> None:
    found = profile(topology="three-tier", radix=24, hosts=288, oversubscription={"access": 2, "aggregation": 2})
    assert found.reach == (16.0, 48.0, inf)
    assert gbps(found.same_bps) == gbps(found.other_bps) == [400, 200, 100]
    assert found.least_bps == 100 * GBPS


def test_rails_meet_above_the_leaves() -> None:
    """Each rail of 64 servers has one leaf; another rail is reached over the spines, at what their ratio leaves."""
    plain = dgx(topology="rail-optimized", gpus=4_096)
    assert plain.reach == (64.0, inf)
    assert gbps(plain.same_bps) == gbps(plain.other_bps) == [3_200, 3_200]
    thin = dgx(topology="rail-optimized", gpus=16_384, oversubscription={"leaf": 2, "spine": 4})
    assert gbps(thin.same_bps) == [3_200, 1_600, 400]
    assert gbps(thin.other_bps) == [1_600, 1_600, 400]


def test_three_tiers_of_rails_have_the_ratio_of_the_spines_at_the_end_alone() -> None:
    plain = dgx(topology="rail-optimized", gpus=16_384)
    thin = dgx(topology="rail-optimized", gpus=16_384, oversubscription={"leaf": 1, "spine": 4})
    assert thin.reach == plain.reach == (64.0, 512.0, inf)
    assert gbps(thin.same_bps) == [3_200, 3_200, 800]
    assert plain.dominates(thin)
    assert not thin.dominates(plain)


def test_rails_of_a_rail_only_fabric_meet_in_servers() -> None:
    found, joined = (dgx(topology=name, gpus=16_384) for name in ("rail-only", "rail-optimized"))
    assert found.other_bps == (0.0, 0.0)
    assert gbps(found.same_bps) == [3_200, 3_200]
    assert found.same_hops == (2, 4)
    assert not found.dominates(joined)  # its rails do not meet
    assert not joined.dominates(found)  # it is two hops longer
    small = dgx(topology="rail-only", gpus=1_024)
    assert (small.reach, small.same_hops) == ((inf,), (2,))


def test_planes_divide_the_rate_of_a_message_and_reach_further() -> None:
    whole = dgx(topology="rail-only", gpus=16_384)
    split = dgx(
        topology="rail-only", gpus=16_384, planes=2, link_rate_bps=200 * GBPS,
        node={"model": "dgx-h100", "nic_ports": 16},
    )  # fmt: skip
    assert split.reach == (128.0, inf)
    assert whole.reach == (64.0, inf)
    assert split.same_bps == whole.same_bps
    assert (split.port_bps, whole.port_bps) == (200 * GBPS, 400 * GBPS)
    assert not split.dominates(whole)
    assert not whole.dominates(split)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    tiers = draw(st.integers(1, 3))
    reach = sorted(draw(st.sets(st.sampled_from((4.0, 8.0, 16.0, 32.0)), min_size=tiers - 1, max_size=tiers - 1)))
    same = sorted(draw(st.lists(st.sampled_from((100.0, 200.0, 400.0)), min_size=tiers, max_size=tiers)), reverse=True)
    return Profile(
        reach=(*reach, inf),
        same_bps=tuple(same),
        same_hops=tuple(2 * (level + 1) for level in range(tiers)),
        other_bps=tuple(same) if draw(st.booleans()) else (0.0,) * tiers,
        port_bps=draw(st.sampled_from((50.0, 100.0))),
    )


def at(one: Profile, servers: float) -> tuple[float, float, float]:
    place = next(place for place, reach in enumerate(one.reach) if servers <= reach)
    return one.same_bps[place], -one.same_hops[place], one.other_bps[place]


@given(one=profiles(), other=profiles())
def test_to_dominate_is_to_be_as_good_at_every_distance(one: Profile, other: Profile) -> None:
    pairs = [(at(one, servers), at(other, servers)) for servers in (*range(1, 34), 1e9)]
    everywhere = all(mine >= its for own, others in pairs for mine, its in zip(own, others, strict=True))
    assert one.dominates(other) == (everywhere and one.port_bps >= other.port_bps)


@given(drawn=st.lists(profiles(), min_size=3, max_size=6))
def test_to_dominate_is_a_partial_order(drawn: list[Profile]) -> None:
    assert all(one.dominates(one) for one in drawn)
    for one, other in permutations(drawn, 2):
        if one.dominates(other) and other.dominates(one):
            assert [at(one, servers) for servers in range(1, 40)] == [at(other, servers) for servers in range(1, 40)]
    for one, other, third in permutations(drawn, 3):
        if one.dominates(other) and other.dominates(third):
            assert one.dominates(third)
