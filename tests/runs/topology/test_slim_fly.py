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

from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of

SIZES = (3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29)


def slim_fly(**keys: Any) -> Fabric:
    return fabric_of(topology="slim-fly", link_rate_bps=400_000_000_000, **keys)


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


@pytest.mark.parametrize(
    ("radix", "q", "degree", "per_switch", "hosts"),
    [(62, 27, 41, 21, 30_618), (64, 29, 43, 21, 35_322), (128, 53, 79, 40, 224_720)],
)
def test_published_sizes_of_a_radix(radix: int, q: int, degree: int, per_switch: int, hosts: int) -> None:
    size = size_before(topology="slim-fly", radix=radix)
    assert (size.switches, size.hosts) == (2 * q * q, hosts)
    assert size.links == q * q * degree + hosts
    assert size.hosts == 2 * q * q * per_switch


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
