"""Routes that go down and up again: pairs of leaves that keep a route without one, against all paths of networkx."""

from __future__ import annotations

import numpy as np

from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.build import fabric_of
from weftwork.topology.lost_names import find_lost
from weftwork.topology.measures import bisection
from weftwork.topology.up_down import UpDown, disjoint_paths
from weftwork.topology.valleys import is_tiered, leaves_left, legal_pairs, valleys

GBPS = 10**9


def test_what_a_pair_of_leaves_keeps_when_they_share_no_spine() -> None:
    fabric = fabric_of(topology="leaf-spine", leaves=4, spines=4, hosts_per_leaf=2)
    _, lost = find_lost(fabric, ["leaf0-spine0", "leaf0-spine1", "leaf1-spine2", "leaf1-spine3"])
    leaves = leaves_left(fabric, ~lost)
    found = valleys(fabric, ~lost, leaves)
    assert found is not None
    assert (found.pairs_joined, found.pairs_legal, found.pairs_bent, found.pairs_only_bent) == (6, 5, 1, 1)
    assert {found.example[0], found.example[-1]} == {"leaf0", "leaf1"}
    assert len(found.example) == 5
    both = disjoint_paths(fabric, ~lost, leaves)
    assert both is not None
    assert [one.paths for one in both] == [4, 0]


def test_two_leaves_of_a_pod_that_share_no_aggregation_switch() -> None:
    """Their aggregation switches share no core either, so that every route between them has a valley."""
    fabric = fabric_of(topology="fat-tree", radix=6, tiers=3, hosts=54)
    _, lost = find_lost(fabric, ["leaf0-agg0", "leaf1-agg1", "leaf1-agg2"])
    found = valleys(fabric, ~lost, leaves_left(fabric, ~lost))
    assert found is not None
    assert found.pairs_legal == found.pairs_joined - 1
    assert (found.pairs_bent, found.pairs_only_bent) == (1, 1)
    _, lost = find_lost(fabric, ["leaf0-agg0", "leaf1-agg1"])
    found = valleys(fabric, ~lost, leaves_left(fabric, ~lost))
    assert found is not None
    assert (found.pairs_legal, found.pairs_bent) == (found.pairs_joined, 0)


def test_a_longer_route_without_a_valley_does_not_straighten_the_shortest() -> None:
    """Two switches of tier 2 meet below by 2 links, and above by 4: engines use the shorter way, which is a valley."""
    fabric = assemble(
        name="over the top",
        node_names=["x", "y", "one", "other", "below", "left", "right", "top"],
        node_kind=[HOST] * 2 + [SWITCH] * 6,
        node_tier=[0, 0, 2, 2, 1, 3, 3, 4],
        links=links_between([0, 1, 2, 3, 2, 5, 7, 6], [2, 3, 4, 4, 5, 7, 6, 3], rate_bps=GBPS, delay_ps=2_000),
        switches=(Switch(),),
        nics=(Nic(),),
    )
    up = np.ones(len(fabric.links), np.bool_)
    found = valleys(fabric, up, leaves_left(fabric, up))
    assert found is not None
    assert (found.pairs_joined, found.pairs_legal, found.pairs_bent, found.pairs_only_bent) == (1, 1, 1, 1)
    assert found.example in {("one", "below", "other"), ("other", "below", "one")}
    assert UpDown(fabric).bisection(up).rate_bps == GBPS


def test_valleys_mean_nothing_between_switches_of_one_tier() -> None:
    fabric = assemble(
        name="three in a ring",
        node_names=["a", "b", "c", "x", "y", "z"],
        node_kind=[HOST] * 3 + [SWITCH] * 3,
        node_tier=[0, 0, 0, 1, 1, 1],
        links=links_between([0, 1, 2, 3, 4, 5], [3, 4, 5, 4, 5, 3], rate_bps=GBPS, delay_ps=2_000),
        switches=(Switch(),),
        nics=(Nic(),),
    )
    up = np.ones(6, np.bool_)
    leaves = leaves_left(fabric, up)
    assert not is_tiered(fabric)
    assert (valleys(fabric, up, leaves), legal_pairs(fabric, up, leaves), disjoint_paths(fabric, up, leaves)) == (
        None, None, None,
    )  # fmt: skip
    assert UpDown(fabric).bisection(up).rate_bps == bisection(fabric).rate_bps == GBPS


def test_large_fabrics_are_looked_at_in_part() -> None:
    fabric = fabric_of(topology="leaf-spine", leaves=80, spines=2, hosts_per_leaf=2)
    up = np.ones(len(fabric.links), np.bool_)
    up[fabric.link("leaf5-spine0")] = up[fabric.link("leaf64-spine1")] = False
    leaves = leaves_left(fabric, up)
    whole = valleys(fabric, up, leaves)
    assert whole is not None
    assert (whole.sample, whole.pairs_joined, whole.pairs_legal) == (80, 80 * 79 // 2, 80 * 79 // 2 - 1)


def test_a_sample_of_leaves_counts_their_pairs_once(monkeypatch: object) -> None:
    fabric = fabric_of(topology="leaf-spine", leaves=80, spines=2, hosts_per_leaf=2)
    up = np.ones(len(fabric.links), np.bool_)
    monkeypatch.setattr("weftwork.topology.valleys.MOST_WORDS", 1)  # type: ignore[attr-defined]
    found = valleys(fabric, up, leaves_left(fabric, up))
    assert found is not None
    assert (found.leaves, found.sample) == (80, 64)
    assert found.pairs_joined == found.pairs_legal == 64 * 63 // 2 + 64 * 16
    assert legal_pairs(fabric, up, leaves_left(fabric, up)) is None
