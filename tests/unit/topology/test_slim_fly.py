"""Slim Fly: diameter 2 for every size, known graphs, published counts, and sizes that do not exist.

Sources: McKay, Miller and Siran, 1998; Besta and Hoefler, SC 2014; Hoffman and Singleton, 1960, for q = 5.
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
from weftwork.topology.routing_plan import planned_routing

SIZES = (3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29)


def slim_fly(**keys: Any) -> Fabric:
    return fabric_of(topology="slim-fly", link_rate_bps=400_000_000_000, **keys)


def adjacency(fabric: Fabric) -> np.ndarray:
    count = len(fabric.node_names) - len(fabric.hosts)
    found = np.zeros((count, count), np.int64)
    a, b = switch_ends(fabric)
    np.add.at(found, (np.concatenate([a, b]), np.concatenate([b, a])), 1)
    return found


def refusal(**keys: Any) -> str:
    with pytest.raises(ConfigError) as wrong:
        slim_fly(**keys)
    return str(wrong.value)


@pytest.mark.parametrize("q", SIZES)
def test_every_size_is_regular_and_has_diameter_two(q: int) -> None:
    fabric = slim_fly(q=q, hosts_per_switch=1)
    degree = {0: 3 * q // 2, 1: (3 * q - 1) // 2, 3: (3 * q + 1) // 2}[q % 4]
    assert size_of(fabric) == size_before(topology="slim-fly", q=q, hosts_per_switch=1)
    assert len(fabric.hosts) == 2 * q * q
    assert (degrees(fabric) == degree).all()
    a, b = switch_ends(fabric)
    assert len(a) == q * q * degree
    assert len(np.unique(np.sort(np.stack([a, b]), axis=0), axis=1).T) == len(a)  # no two are parallel
    assert diameter_and_mean(fabric)[0] == 2


def test_q_of_five_is_the_hoffman_singleton_graph() -> None:
    """It is the only graph with A^2 + A = 6 I + J: no triangles, no squares, diameter 2."""
    links = adjacency(slim_fly(q=5))
    assert links.shape == (50, 50)
    assert (links @ links + links == 6 * np.eye(50) + np.ones((50, 50))).all()


@pytest.mark.parametrize(
    ("radix", "q", "degree", "per_switch", "hosts"),
    [(62, 27, 41, 21, 30_618), (64, 29, 43, 21, 35_322), (128, 53, 79, 40, 224_720)],
)
def test_published_sizes_of_a_radix(radix: int, q: int, degree: int, per_switch: int, hosts: int) -> None:
    size = size_before(topology="slim-fly", radix=radix)
    assert (size.switches, size.hosts) == (2 * q * q, hosts)
    assert size.links == q * q * degree + hosts
    assert size.hosts == 2 * q * q * per_switch


def test_counts_of_racks() -> None:
    """q racks of 2q routers, 2q links for each pair of racks: q^2 (q - 1) links between racks."""
    q = 7
    fabric = slim_fly(q=q)
    assert fabric.node_pod is not None
    assert fabric.direct is not None
    hosts = len(fabric.hosts)
    rack = fabric.node_pod[hosts:]
    assert np.bincount(rack).tolist() == [2 * q] * q
    a, b = switch_ends(fabric)
    pairs = np.zeros((q, q), np.int64)
    np.add.at(pairs, (rack[a], rack[b]), 1)
    pairs += pairs.T
    assert (pairs[~np.eye(q, dtype=bool)] == 2 * q).all()
    between = fabric.direct.link_dimension[hosts:] == 1
    assert int((rack[a] != rack[b]).sum()) == q * q * (q - 1)
    assert int(between.sum()) == q**3
    half = fabric.direct.coordinates[hosts:, 1]
    assert ((half[a] != half[b]) == between).all()
    assert not fabric.direct.is_ordered


def test_default_hosts_balance_uniform_traffic() -> None:
    """Two directions of each link against the load of all pairs: at the default within 1 % for q = 27."""
    fabric = slim_fly(q=27)
    _, mean = diameter_and_mean(slim_fly(q=27, hosts_per_switch=1))
    routers, hosts = 2 * 27 * 27, len(fabric.hosts)
    links = len(fabric.links) - hosts
    load = hosts * mean * (routers - 1) / routers  # of all hosts at full rate, to any router
    assert load / (2 * links) == pytest.approx(1.009, abs=0.001)
    assert "allows 20.8, so the links between routers are oversubscribed by 0.9%" in (
        fabric.caveats["fabric.hosts_per_switch"].text
    )
    assert not slim_fly(q=27, hosts_per_switch=20).caveats


def test_hosts_choose_the_smallest_and_fill_it_rack_by_rack() -> None:
    fabric = slim_fly(hosts=97)  # q = 4 has 96 places
    assert len(fabric.node_names) - 97 == 50
    assert len(fabric.hosts) == 97
    assert fabric.node_pod is not None
    assert fabric.node_pod[:97].tolist() == [0] * 40 + [1] * 40 + [2] * 17
    assert size_before(topology="slim-fly", hosts=97) == size_of(fabric)
    four_ports = slim_fly(hosts=24, node={"gpus": 4, "nic_ports": 4})
    assert len(four_ports.node_names) - 24 == 32
    with_ports_of_switch = slim_fly(switch={"model": "plain", "radix": 11})
    assert len(with_ports_of_switch.hosts) == 200


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"q": 28}, "found 28, which is no power of a prime: no field has 28 elements; the nearest that exist are 27"),
        ({"q": 28}, "27 and 29; did you mean '27'?"),
        ({"q": 6}, "and q - 1, q or q + 1 has to be a multiple of 4; the nearest that exist are 5 and 7"),
        ({"q": 15}, "the nearest that exist are 13 and 16; did you mean '16'?"),
        ({"q": 5, "radix": 7}, "found 7 ports, but a router needs 8: 7 to other routers and 1 to hosts; q = 4 fits"),
        ({"q": 5, "hosts_per_switch": 9, "radix": 12}, "a router needs 16: 7 to other routers and 9 to hosts"),
        ({"q": 5, "hosts": 201}, "found 201, wanted at most 200"),
        ({"radix": 6}, "found 6 ports, but a router of the smallest network, q = 3, needs 8: 5 to other routers and 3"),
        ({"radix": 11, "hosts": 201}, "found 201 NIC ports, more than any Slim Fly has places for with 11 ports"),
        ({"radix": 11, "hosts": 201}, "the largest has 200, with q = 5"),
        ({"switch": {"model": "plain", "radix": 9}, "q": 5, "hosts": 101}, "found 101 hosts, wanted at most 100"),
        ({}, "missing: give q, such as 5, or radix, or hosts"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_with_the_nearest(keys: dict[str, Any], told: str) -> None:
    assert told in refusal(**keys)


@given(q=st.sampled_from([3, 4, 5, 7, 8, 9]), per_switch=st.integers(1, 5), data=st.data())
def test_partly_filled_networks_of_any_size(q: int, per_switch: int, data: st.DataObject) -> None:
    hosts = data.draw(st.integers(2, 2 * q * q * per_switch))
    keys = {"q": q, "hosts_per_switch": per_switch, "hosts": hosts}
    fabric = slim_fly(**keys)
    assert size_before(topology="slim-fly", **keys) == size_of(fabric)
    assert len(fabric.hosts) == hosts
    home = fabric.links["b"][:hosts] - hosts
    assert (home == np.arange(hosts) // per_switch).all()
    direct = fabric.direct
    assert direct is not None
    router = np.arange(2 * q * q)
    at = direct.coordinates[hosts:]
    assert (at[:, 0] * 2 * q + at[:, 1] * q + at[:, 2] == router).all()
    assert (direct.coordinates[:hosts] == at[home]).all()


@pytest.mark.parametrize(("routing", "channels"), [("minimal", 2), ("valiant", 4), ("ugal", 4)])
def test_a_channel_for_each_hop(routing: str, channels: int) -> None:
    plan, mistakes = planned_routing(slim_fly(q=4), routing)
    assert not mistakes
    assert plan.channels == channels
