"""Jellyfish and Xpander: counts, seeds, ports split between hosts and links, and sizes that do not fit.

Sources: Singla et al., Jellyfish, NSDI 2012; Valadarsky et al., Xpander, CoNEXT 2016.
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
from weftwork.topology.flat_network import FlatPorts

seeds = st.integers(0, 2**32 - 1)


def built(topology: str, **keys: Any) -> Fabric:
    return fabric_of(topology=topology, link_rate_bps=400_000_000_000, **keys)


def switches(fabric: Fabric) -> int:
    return len(fabric.node_names) - len(fabric.hosts)


@given(n=st.integers(4, 24), per_switch=st.integers(1, 3), seed=seeds, data=st.data())
def test_any_jellyfish_is_regular_and_connected(n: int, per_switch: int, seed: int, data: st.DataObject) -> None:
    r = data.draw(st.integers(3, n - 1).filter(lambda r: n * r % 2 == 0))
    hosts = data.draw(st.integers(2, n * per_switch))
    keys = {"switches": n, "network_ports": r, "hosts_per_switch": per_switch, "seed": seed, "hosts": hosts}
    fabric = built("jellyfish", radix=r + per_switch, **keys)
    assert size_before(topology="jellyfish", **keys) == size_of(fabric)
    assert (len(fabric.hosts), switches(fabric)) == (hosts, n)
    assert (degrees(fabric) == r).all()
    assert diameter_and_mean(fabric)[0] < n  # infinite if apart
    assert fabric.name == f"jellyfish, {n} switches with {r} network ports, seed {seed}"
    assert fabric.direct is not None
    assert not fabric.direct.is_ordered
    assert fabric.node_pod is None


@given(d=st.integers(3, 6), lifts=st.lists(st.integers(1, 3), min_size=1, max_size=3), seed=seeds, data=st.data())
def test_any_xpander_has_groups_of_equal_size(d: int, lifts: list[int], seed: int, data: st.DataObject) -> None:
    each = int(np.prod(lifts))
    hosts = data.draw(st.integers(2, 2 * each * (d + 1)))
    keys = {"lifts": lifts, "network_ports": d, "hosts_per_switch": 2, "seed": seed, "hosts": hosts}
    fabric = built("xpander", **keys)
    assert size_before(topology="xpander", **keys) == size_of(fabric)
    assert switches(fabric) == each * (d + 1)
    assert (degrees(fabric) == d).all()
    assert diameter_and_mean(fabric)[0] < each * (d + 1)
    assert fabric.node_pod is not None
    group = fabric.node_pod[hosts:]
    assert np.bincount(group).tolist() == [each] * (d + 1)
    a, b = switch_ends(fabric)
    between = np.zeros((d + 1, d + 1), np.int64)
    np.add.at(between, (group[a], group[b]), 1)
    assert (between == np.triu(np.full((d + 1, d + 1), each), 1)).all()
    assert (fabric.node_pod[:hosts] == np.arange(hosts) // 2 // each).all()


@pytest.mark.parametrize("topology", ["jellyfish", "xpander"])
@given(radix=st.integers(4, 64), hosts=st.integers(2, 3_000))
def test_ports_give_the_most_hosts_that_run_at_full_rate(topology: str, radix: int, hosts: int) -> None:
    size = size_before(topology=topology, radix=radix, hosts=hosts)
    r = 2 * (size.links - hosts) // size.switches
    p = radix - r
    assert p * size.switches >= hosts
    shape = FlatPorts(switches=size.switches, network_ports=r, hosts_per_switch=p)
    assert shape.most_throughput >= 1 or p == 1
    if topology == "jellyfish" and r > 3:
        n = max(r, -(-hosts // (p + 1)))
        n += n * (r - 1) % 2
        assert FlatPorts(switches=n, network_ports=r - 1, hosts_per_switch=p + 1).most_throughput < 1


def test_known_splits_of_ports() -> None:
    size = size_before(topology="jellyfish", radix=64, hosts=2_048)
    assert (size.switches, size.links - size.hosts) == (82, 82 * 39 // 2)
    size = size_before(topology="xpander", radix=64, hosts=2_048)
    assert size.switches * (size.switches // 2) >= 2_048
    only_links = built("jellyfish", switches=6, network_ports=5)  # a full mesh: 5 hosts or 6 x 5 / 5 at full rate
    assert len(only_links.hosts) == 30
    by_switch = built("jellyfish", switches=6, switch={"model": "plain", "radix": 7})
    assert (len(by_switch.hosts), switches(by_switch)) == (18, 6)
    by_hosts = built("xpander", radix=8, hosts_per_switch=4, hosts=41)
    assert (switches(by_hosts), set(degrees(by_hosts).tolist())) == (15, {4})
