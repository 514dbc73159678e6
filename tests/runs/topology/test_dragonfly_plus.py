"""Dragonfly+: counts of the balanced form, groups of leaves and spines, and sizes that do not fit.

Source: Shpiner et al., Dragonfly+, HiPINEB 2017.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from helpers.fabric_sizes import size_before, size_of
from helpers.switch_graph import degrees, diameter_and_mean, switch_ends
from hypothesis import given
from hypothesis import strategies as st

from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.group_links import ARRANGEMENTS


def plus(**keys: Any) -> Fabric:
    return fabric_of(topology="dragonfly-plus", link_rate_bps=400_000_000_000, **keys)


def test_the_largest_network_of_64_ports() -> None:
    node = {"model": "plain", "gpus": 8, "nic_ports": 8}  # Weftwork numbers fewer than 1,049,600 hosts
    size = size_before(topology="dragonfly-plus", radix=64, node=node)
    assert (size.hosts * 8, size.switches) == (1_049_600, 1_025 * 64)
    assert size.links - size.hosts * 8 == 1_025 * 32 * 32 + 1_025 * 1_024 // 2


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
