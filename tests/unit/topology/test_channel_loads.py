"""Loads of links under uniform traffic against closed forms and published numbers."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.sketched_networks import random_graph, torus

from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.channel_loads import designed_cut, uniform_loads, uniform_traffic


def _loads(fabric: Fabric) -> np.ndarray:
    found = uniform_loads(fabric, (fabric.node_kind == SWITCH).astype(np.float64))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("shape", "regular", "twisted"),
    [((4, 4, 8), 128, 73.33), ((4, 8, 8), 256, 184)],
)
def test_a_twisted_torus_lowers_the_fullest_link(shape: tuple[int, ...], regular: float, twisted: float) -> None:
    """One unit for each pair of chips, over all shortest paths with equal shares: max(d) N / 8 and N meandist / 6."""
    assert _loads(fabric_of(topology="torus", shape=shape)).max() == pytest.approx(regular)
    assert _loads(fabric_of(topology="twisted-torus", shape=shape)).max() == pytest.approx(twisted, abs=0.01)


def test_all_loads_together_are_all_distances() -> None:
    fabric = random_graph(24, 5)
    ports = fabric.ports
    distance = np.full((24, 24), 99)
    np.fill_diagonal(distance, 0)
    first = int(np.flatnonzero(fabric.node_kind == SWITCH)[0])
    for one, other in zip(fabric.links["a"] - first, fabric.links["b"] - first, strict=True):
        if one >= 0:
            distance[one, other] = distance[other, one] = 1
    for middle in range(24):
        distance = np.minimum(distance, distance[:, [middle]] + distance[[middle], :])
    loads = _loads(fabric)
    assert loads.sum() == pytest.approx(distance.sum())
    assert not loads[fabric.node_kind[ports.node] == HOST].any()


def test_an_even_torus_carries_eight_over_its_longest_side() -> None:
    """Dally and Towles: each link of a ring of k carries k/8 of a node's rate, in each direction."""
    found = uniform_traffic(torus(8, 8))
    assert found is not None
    assert found.load == pytest.approx(8 / 8 * 64 / 63)  # to the 63 others
    assert found.share == pytest.approx(63 / 64)


def test_a_balanced_dragonfly_carries_uniform_traffic_and_half_of_its_global_ports_carry_half() -> None:
    balanced = fabric_of(topology="dragonfly", routers_per_group=8, hosts_per_router=4, global_ports=4)
    found = uniform_traffic(balanced)
    assert found is not None
    assert found.share == pytest.approx(1.0, abs=0.04)  # p/h, and the local links are half full
    crowded = uniform_traffic(fabric_of(topology="dragonfly", routers_per_group=8, hosts_per_router=4, global_ports=2))
    assert crowded is not None
    assert crowded.share == pytest.approx(16 * 543 / (32 * 512))  # of 544 hosts, 32 send over the 16 links of a group
    assert crowded.dimension == "global"


def test_the_designed_cut_of_a_torus_and_of_a_dragonfly() -> None:
    cut = designed_cut(torus(4, 4, 8))
    assert cut is not None
    assert (cut.axis, cut.links) == ("z", 2 * 128 // 8)
    group = designed_cut(fabric_of(topology="dragonfly", routers_per_group=8, hosts_per_router=4, global_ports=4))
    assert group is not None
    assert (group.axis, group.links) == ("group", 16 * 17)  # one link for each pair of groups of 33
    order = designed_cut(random_graph(30, 4))
    assert order is not None
    assert order.axis == ""


def test_trees_have_neither() -> None:
    tree = fabric_of(topology="fat-tree", tiers=2, radix=8)
    assert uniform_traffic(tree) is None
    assert designed_cut(tree) is None
