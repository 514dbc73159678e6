"""Leaf-spine fabrics: shapes, parallel links and shapes derived from an oversubscription."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import Fabric
from weftwork.topology.shapes.leaf_spine import leaf_spine, leaf_spine_counts

GBPS = 10**9


def small(**changes: object) -> Fabric:
    values: dict[str, object] = {
        "leaves": 3, "spines": 2, "hosts_per_leaf": 4, "host_rate_bps": 100 * GBPS, "fabric_rate_bps": 400 * GBPS,
        "host_delay_ps": 10_000, "fabric_delay_ps": 100_000, "switch": Switch(), "nic": Nic(),
    }  # fmt: skip
    return leaf_spine(**(values | changes))  # type: ignore[arg-type]


def test_every_leaf_meets_every_spine_by_all_links_of_the_pair() -> None:
    fabric = small(links_per_pair=2)
    assert len(fabric.hosts) == 12
    assert len(fabric.links) == 12 + 3 * 2 * 2
    assert "leaf2-spine1" in fabric.link_names
    assert "leaf2-spine1.2" in fabric.link_names
    assert fabric.link_names[7] == "host7-leaf1"
    assert np.diff(fabric.ports.base).tolist() == [1] * 12 + [8] * 3 + [6] * 2


def test_the_last_leaf_may_be_filled_in_part() -> None:
    fabric = small(hosts=9)
    assert fabric.link_names[8] == "host8-leaf2"
    assert len(fabric.links) == 9 + 6


@pytest.mark.parametrize(
    ("changes", "path"),
    [({"leaves": 0}, "fabric.leaves"), ({"spines": 0}, "fabric.spines"),
     ({"hosts_per_leaf": 0}, "fabric.hosts_per_leaf"),
     ({"links_per_pair": 0}, "fabric.links_per_pair"), ({"hosts": 13}, "fabric.hosts"),
     ({"switch": Switch(radix=5)}, "nodes.leaf0")],
)  # fmt: skip
def test_impossible_shapes_are_refused(changes: dict[str, object], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        small(**changes)
    assert path in [mistake.path for mistake in caught.value.mistakes]


@pytest.mark.parametrize(
    ("ratio", "hosts_per_leaf", "uplinks"),
    [(1, 32, 32), (3, 48, 16), (1.5, 36, 24), (Fraction(5, 3), 40, 24), (0.5, 21, 42)],
)
def test_counts_take_exactly_the_wanted_ratio(ratio: float, hosts_per_leaf: int, uplinks: int) -> None:
    hosts = 8 * hosts_per_leaf
    counts = leaf_spine_counts(hosts=hosts, radix=64, oversubscription=ratio, host_rate_bps=1, fabric_rate_bps=1)
    assert (counts.hosts_per_leaf, counts.spines * counts.links_per_pair) == (hosts_per_leaf, uplinks)
    assert counts.oversubscription == Fraction(ratio)


def test_too_many_hosts_for_two_tiers_are_refused() -> None:
    with pytest.raises(ConfigError, match="a fat tree of 3 tiers carries more"):
        leaf_spine_counts(hosts=2_049, radix=64, host_rate_bps=1, fabric_rate_bps=1)


def test_a_given_number_of_hosts_per_leaf_decides_the_uplinks() -> None:
    counts = leaf_spine_counts(
        hosts=32, radix=64, oversubscription=2, host_rate_bps=1, fabric_rate_bps=1, hosts_per_leaf=8
    )
    assert (counts.leaves, counts.spines * counts.links_per_pair) == (4, 4)
    with pytest.raises(ConfigError, match="wanted at most 64"):
        leaf_spine_counts(hosts=64, radix=64, host_rate_bps=1, fabric_rate_bps=1, hosts_per_leaf=40)
    with pytest.raises(ConfigError, match="64 hosts do not divide into equal leaves of 40; 40 or 80 hosts do"):
        leaf_spine_counts(hosts=64, radix=96, oversubscription=1, host_rate_bps=1, fabric_rate_bps=1, hosts_per_leaf=40)
