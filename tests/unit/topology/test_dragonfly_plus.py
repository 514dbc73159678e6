"""Dragonfly+: counts of the balanced form, groups of leaves and spines, and sizes that do not fit.

Source: Shpiner et al., Dragonfly+, HiPINEB 2017.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.switch_graph import degrees

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of


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
