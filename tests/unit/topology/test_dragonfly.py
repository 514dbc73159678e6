"""Dragonfly: published counts, arrangements of global links, and sizes that do not fit.

Sources: Kim et al., ISCA 2008, doi:10.1109/ISCA.2008.19; DeepSeek-AI, ISCA 2025, table 3; Frontier by its groups of 32
switches with 64 ports of 200 Gb/s and 4 links for each pair of groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.switch_graph import degrees, diameter_and_mean
from helpers.topology_dragonfly import RATE, counts, dragonfly
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.topology.build import fabric_of
from weftwork.topology.group_links import ARRANGEMENTS, SwitchGroups, far_port, global_links

FRONTIER = {"groups": 74, "routers_per_group": 32, "hosts_per_router": 16, "links_per_group_pair": 4, "radix": 64}


def refusal(**keys: Any) -> str:
    with pytest.raises(ConfigError) as wrong:
        dragonfly(**keys)
    return str(wrong.value)


@pytest.mark.parametrize(
    ("arrangement", "mean"),
    [("circulant", 2.6768), ("relative", 2.6863), ("palm-tree", 2.6863), ("absolute", 2.6937)],
)
def test_arrangements_have_diameter_three_and_their_mean_distance(arrangement: str, mean: float) -> None:
    fabric = dragonfly(global_ports=4, arrangement=arrangement)
    assert counts(fabric) == (1_056, 264, 33 * 28, 33 * 16)
    diameter, found = diameter_and_mean(fabric)
    assert diameter == 3
    assert found == pytest.approx(mean, abs=5e-5)


def test_frontier() -> None:
    fabric = dragonfly(**FRONTIER, hosts=37_632)
    assert counts(fabric) == (37_632, 2_368, 36_704, 10_804)
    assert fabric.direct is not None
    rates, of = fabric.links["rate_bps"], fabric.direct.link_dimension
    out_bps = rates[of == 1].sum() * 2 / 74
    assert 32 * 16 * rates[0] == 102_400_000_000_000
    assert 32 * 16 * rates[0] / out_bps == pytest.approx(1.753, rel=0.001)
    assert "220 of the 512 global ports of each group stay empty" in fabric.caveats["fabric.global_ports"].text
    used = degrees(fabric) - 31  # of every router: those that are left over are spread evenly
    assert set(used.tolist()) == {9, 10}
    assert len(dragonfly(**FRONTIER).hosts) == 37_888


def test_ports_or_hosts_make_a_balanced_dragonfly() -> None:
    assert counts(dragonfly(radix=7)) == (72, 36, 9 * 6, 9 * 4)
    assert counts(dragonfly(radix=8)) == (72, 36, 9 * 6, 9 * 4)
    assert counts(dragonfly(hosts=73))[1] == 5 * 6  # h = 3: 18 places in a group of 6 routers
    assert counts(dragonfly(routers_per_group=4)) == counts(dragonfly(hosts_per_router=2)) == (72, 36, 54, 36)
    with_ports_of_switch = fabric_of(topology="dragonfly", switch={"model": "plain", "radix": 7}, **RATE)
    assert counts(with_ports_of_switch) == (72, 36, 54, 36)


def test_hosts_decide_the_groups() -> None:
    fabric = dragonfly(global_ports=2, hosts=20)
    assert counts(fabric) == (20, 12, 3 * 6, 3 * 4)  # three groups of 8 places, four links for each pair
    assert fabric.node_pod is not None
    assert fabric.node_pod[fabric.hosts].tolist() == [0] * 8 + [1] * 8 + [2] * 4


def test_a_group_alone_is_a_full_mesh() -> None:
    fabric = dragonfly(groups=1, routers_per_group=5, hosts_per_router=1, global_ports=0)
    assert counts(fabric) == (5, 5, 10, 0)
    assert not fabric.caveats
    assert "4 of the 4 global ports" in dragonfly(groups=1, routers_per_group=4, global_ports=1).caveats[
        "fabric.global_ports"
    ].text  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (
            {"global_ports": 4, "groups": 34},
            "found 34, wanted at most 33: a group has 32 global ports; did you mean '33'?",
        ),
        (
            {"global_ports": 4, "groups": 9, "links_per_group_pair": 5},
            "found 5, wanted at most 4: a group has 32 global ports for 8 other groups; did you mean '4'?",
        ),
        (
            {"global_ports": 4, "links_per_group_pair": 40},
            "found 40, but a group has 32 global ports; did you mean '32'?",
        ),
        (
            {"global_ports": 4, "radix": 8},
            "found 8 ports, but a router needs 15: 4 to hosts, 7 to its group and 4 to other groups",
        ),
        ({"global_ports": 4, "hosts": 1_057}, "found 1,057, wanted at most 1,056"),
        ({"radix": 2}, "found 2 ports, wanted at least 3"),
        ({"switch": {"model": "plain", "radix": 7}, "hosts": 73}, "found 73 hosts, wanted at most 72"),
        ({"switch": {"model": "plain", "radix": 14}, "global_ports": 4}, "found 14 ports, but a router needs 15"),
        ({}, "missing: give hosts_per_router, routers_per_group or global_ports, or radix, or hosts"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_with_the_nearest(keys: dict[str, Any], told: str) -> None:
    assert told in refusal(**keys)


def test_all_mistakes_are_told_at_once() -> None:
    told = refusal(global_ports=4, radix=8, groups=40)
    assert "a router needs 15" in told
    assert "wanted at most 33" in told


@given(
    arrangement=st.sampled_from(ARRANGEMENTS),
    linkers=st.integers(1, 7),
    ports=st.integers(1, 5),
    data=st.data(),
)
def test_global_links_join_every_pair_of_groups_equally(
    arrangement: str, linkers: int, ports: int, data: st.DataObject
) -> None:
    groups = data.draw(st.integers(2, linkers * ports + 1))
    each = data.draw(st.integers(1, linkers * ports // (groups - 1)))
    shape = SwitchGroups(groups=groups, linkers=linkers, global_ports=ports, links_per_pair=each)
    group, port = (array.ravel() for array in np.mgrid[:groups, : groups - 1])
    other, there = far_port(arrangement, group, port, groups)
    assert [array.tolist() for array in far_port(arrangement, other, there, groups)] == [group.tolist(), port.tolist()]
    assert (other != group).all()
    a, b = global_links(shape, arrangement)
    pairs = np.bincount(a // linkers * groups + b // linkers, minlength=groups**2).reshape(groups, groups)
    assert (pairs == np.triu(np.full((groups, groups), each), 1)).all()
    used = np.bincount(np.concatenate([a, b]), minlength=groups * linkers)
    assert used.max() <= ports
    assert used.max() - used.min() <= 1
    assert used.sum() == groups * shape.used == 2 * shape.links
