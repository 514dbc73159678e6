"""Dragonfly+: counts of the balanced form, groups of leaves and spines, and sizes that do not fit.

Source: Shpiner et al., Dragonfly+, HiPINEB 2017.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.fabric_sizes import size_before, size_of
from helpers.switch_graph import degrees, diameter_and_mean, switch_ends
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.group_links import ARRANGEMENTS


def plus(**keys: Any) -> Fabric:
    return fabric_of(topology="dragonfly-plus", link_rate_bps=400_000_000_000, **keys)


@pytest.mark.parametrize("k", [2, 4, 6])
def test_a_balanced_network_has_its_closed_form(k: int) -> None:
    fabric = plus(radix=k)
    half = k // 2
    groups = half * half + 1
    assert len(fabric.hosts) == half * half * groups
    assert np.bincount(fabric.node_tier).tolist() == [half * half * groups, half * groups, half * groups]
    assert (degrees(fabric) == np.repeat([half, k], half * groups)).all()  # leaves have hosts besides
    assert not fabric.caveats


def test_the_largest_network_of_64_ports() -> None:
    node = {"model": "plain", "gpus": 8, "nic_ports": 8}  # Weftwork numbers fewer than 1,049,600 hosts
    size = size_before(topology="dragonfly-plus", radix=64, node=node)
    assert (size.hosts * 8, size.switches) == (1_049_600, 1_025 * 64)
    assert size.links - size.hosts * 8 == 1_025 * 32 * 32 + 1_025 * 1_024 // 2


def test_a_larger_radix_or_more_hosts_leave_ports() -> None:
    assert len(plus(radix=5).hosts) == len(plus(radix=4).hosts) == 20
    partial = plus(radix=8, hosts=40)  # 16 places in a group: three groups, eight links for each pair
    assert partial.direct is not None
    assert partial.direct.sides == (3, 8)
    assert int((partial.direct.link_dimension == 1).sum()) == 24
    assert partial.node_pod is not None
    assert partial.node_pod[partial.hosts].tolist() == [0] * 16 + [1] * 16 + [2] * 8
    assert len(plus(hosts=21).hosts) == 21
    assert len(fabric_of(topology="dragonfly-plus", switch={"model": "plain", "radix": 4}).hosts) == 20


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"radix": 8, "groups": 18}, "found 18, wanted at most 17: a group has 16 global ports; did you mean '17'?"),
        ({"radix": 1}, "found 1 port, wanted at least 2"),
        ({"radix": 7, "leaves_per_group": 4}, "found 7 ports, but a leaf needs 8: 4 in its group and 4 to hosts"),
        ({"radix": 8, "hosts": 273}, "found 273, wanted at most 272"),
        ({"switch": {"model": "plain", "radix": 4}, "hosts": 21}, "found 21 hosts, wanted at most 20"),
        ({}, "missing: give hosts_per_leaf, leaves_per_group, spines_per_group or global_ports, or radix, or hosts"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(keys: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        plus(**keys)
    assert told in str(wrong.value)


@given(
    p=st.integers(1, 3),
    leaves=st.integers(1, 4),
    spines=st.integers(1, 4),
    h=st.integers(1, 3),
    arrangement=st.sampled_from(ARRANGEMENTS),
    data=st.data(),
)
def test_any_network_has_its_counts_groups_and_distances(
    p: int, leaves: int, spines: int, h: int, arrangement: str, data: st.DataObject
) -> None:
    groups = data.draw(st.integers(2, min(spines * h + 1, 10)))
    keys = {
        "hosts_per_leaf": p, "leaves_per_group": leaves, "spines_per_group": spines, "global_ports": h,
        "groups": groups, "arrangement": arrangement,
    }  # fmt: skip
    fabric = plus(**keys)
    assert size_before(topology="dragonfly-plus", **keys) == size_of(fabric)
    direct, hosts = fabric.direct, len(fabric.hosts)
    assert direct is not None
    assert fabric.node_pod is not None
    each = spines * h // (groups - 1)
    low, high = switch_ends(fabric)
    of = direct.link_dimension[hosts:]
    pod, tier = fabric.node_pod[hosts:], fabric.node_tier[hosts:]
    assert ((pod[low] == pod[high]) == (of == 0)).all()
    assert (tier[low] + tier[high] == np.where(of == 0, 3, 4)).all()  # leaf to spine, spine to spine
    assert int((of == 1).sum()) == each * groups * (groups - 1) // 2
    diameter, _ = diameter_and_mean(fabric, among=groups * leaves)
    assert diameter == 3
    assert degrees(fabric)[groups * leaves :].max() <= leaves + h
    at = direct.coordinates[hosts:]
    assert (at[:, 0] == pod).all()
    assert len(np.unique(at, axis=0)) == len(at)
