"""Where fabrics end: closed forms, the generators that build just as far, and ports, ratios and trees of any kind."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.largest import TreeEnding, fabric_limits
from weftwork.topology.limits import (
    SwitchPorts,
    best_split,
    tree_limit,
    widest_tree,
)


def ending(fabric: Fabric) -> TreeEnding:
    found = fabric_limits(fabric)
    assert found.ending is not None, found.unknown
    return found.ending


@given(
    ports=st.integers(2, 300),
    over=st.integers(1, 20),
    under=st.integers(1, 20),
    down=st.sampled_from([100, 200, 400]),
    up=st.sampled_from([100, 200, 400, 800]),
    each=st.integers(1, 4),
    capacity=st.sampled_from([0, 12_800, 25_600, 51_200]),
)
def test_a_split_has_the_ratio_and_the_most_ports_down(
    ports: int, over: int, under: int, down: int, up: int, each: int, capacity: int
) -> None:
    switch, ratio = SwitchPorts(ports=ports, capacity_bps=capacity), Fraction(over, under)
    fitting = [
        (below, above)
        for below in range(each, ports + 1, each)
        for above in range(1, ports - below + 1)
        if (not capacity or below * down + above * up <= capacity)
    ]
    exact = [one for one in fitting if abs(Fraction(one[0] * down, one[1] * up) - ratio) <= ratio / 1000]
    lower = [one for one in fitting if Fraction(one[0] * down, one[1] * up) <= ratio]
    found = best_split(switch, ratio=ratio, down_bps=down, up_bps=up, each=each)
    if not exact and not lower:
        assert found is None
    else:
        assert found in fitting
        assert found[0] == max(one[0] for one in (exact or lower))


@settings(max_examples=20)
@given(half=st.integers(2, 5), tiers=st.sampled_from([2, 3]), share=st.floats(0.01, 1))
def test_any_part_of_a_fat_tree_tells_the_same_end(half: int, tiers: int, share: float) -> None:
    most = 2 * half**tiers
    fabric = fabric_of(topology="fat-tree", tiers=tiers, radix=2 * half, hosts=max(1, int(share * most)))
    assert ending(fabric).gpus == most


@settings(max_examples=20)
@given(radix=st.integers(8, 24), ratio=st.sampled_from([1, 2, 3, Fraction(3, 2)]), groups=st.integers(2, 4))
def test_any_leaf_spine_of_a_ratio_tells_the_end_of_that_ratio(radix: int, ratio: Fraction, groups: int) -> None:
    split = best_split(SwitchPorts(ports=radix), ratio=Fraction(ratio), down_bps=1, up_bps=1)
    assert split is not None
    if Fraction(*split) != ratio:
        return
    fabric = fabric_of(topology="leaf-spine", radix=radix, hosts=groups * split[0], oversubscription=float(ratio))
    assert ending(fabric).limit == tree_limit(widest_tree(radix, 2, ratio=Fraction(ratio)))
