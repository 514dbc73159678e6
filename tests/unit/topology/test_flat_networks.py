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

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.flat_network import FlatPorts
from weftwork.topology.routing_plan import planned_routing

seeds = st.integers(0, 2**32 - 1)


def built(topology: str, **keys: Any) -> Fabric:
    return fabric_of(topology=topology, link_rate_bps=400_000_000_000, **keys)


def switches(fabric: Fabric) -> int:
    return len(fabric.node_names) - len(fabric.hosts)


def refusal(topology: str, **keys: Any) -> str:
    with pytest.raises(ConfigError) as wrong:
        built(topology, **keys)
    return str(wrong.value)


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
def test_the_seed_makes_the_network(topology: str) -> None:
    keys = {"network_ports": 5, "hosts_per_switch": 2, "hosts": 96}
    first, same, other = (built(topology, seed=seed, **keys) for seed in (1, 1, 2))
    assert first.links.tolist() == same.links.tolist() != other.links.tolist()
    assert first.links.tolist() == built(topology, **keys).links.tolist()
    assert first.name.endswith("seed 1")
    assert other.name.endswith("seed 2")


def test_random_networks_come_close_to_the_bound_of_the_mean_distance() -> None:
    """Within 10 %, as the papers say of networks with a few hundred switches."""
    shape = {"network_ports": 12, "hosts_per_switch": 1}
    for fabric in (built("jellyfish", switches=208, **shape), built("xpander", lifts=[16], **shape)):
        assert switches(fabric) == 208
        _, mean = diameter_and_mean(fabric)
        bound = (12 + 2 * 132 + 3 * 63) / 207
        assert bound < mean < 1.1 * bound


def test_the_bound_allows_a_quarter_more_hosts_than_a_fat_tree_of_the_same_switches() -> None:
    """The bound allows the 25 % of Singla et al.: a fat tree of 16 ports has 1,024 hosts on 320 switches."""
    shape = FlatPorts(switches=320, network_ports=12, hosts_per_switch=4)
    assert shape.places == 1_024 * 5 // 4
    assert shape.most_throughput > 1


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


def test_too_many_hosts_for_the_links_are_reported() -> None:
    """6 hosts on each of 10 switches with 3 links: a mean of 5/3 links over 9 of 10 destinations, 3 / (6 x 1.5)."""
    fabric = built("jellyfish", switches=10, network_ports=3, hosts_per_switch=6)
    text = fabric.caveats["fabric.hosts_per_switch"].text
    assert "6 hosts and 3 links for each of 10 switches: uniform traffic runs at 33.3% of the rate of a host" in text
    assert not built("jellyfish", switches=10, network_ports=3, hosts_per_switch=2).caveats
    assert built("xpander", lifts=[4], network_ports=3, hosts_per_switch=6).caveats


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


@pytest.mark.parametrize(
    ("topology", "keys", "told"),
    [
        (
            "jellyfish",
            {"switches": 4, "network_ports": 5},
            "5 network ports each, but a switch has 3 other switches to link to; did you mean '3'?",
        ),
        (
            "jellyfish",
            {"switches": 7, "network_ports": 5},
            "an odd number of ports, so one port stays empty; wanted 6 or 8 switches, or 4 or 6 network ports",
        ),
        (
            "jellyfish",
            {"switches": 8, "network_ports": 5, "hosts_per_switch": 4, "radix": 8},
            "found 8 ports, but a switch needs 9: 4 to hosts and 5 to other switches",
        ),
        ("jellyfish", {"switches": 8, "radix": 3}, "found 3 ports, wanted at least 4: 1 host and 3 links to other"),
        ("jellyfish", {"switches": 8}, "missing: give network_ports, or radix"),
        ("jellyfish", {"network_ports": 4}, "missing: give switches, or hosts"),
        ("jellyfish", {"switches": 8, "radix": 10, "hosts_per_switch": 2}, "found 8 switches with 8 network ports"),
        ("jellyfish", {"switches": 8, "radix": 10, "hosts_per_switch": 2}, "did you mean '9'?"),
        (
            "jellyfish",
            {"switches": 6, "network_ports": 3, "hosts_per_switch": 2, "hosts": 13},
            "found 13, wanted at most 12",
        ),
        ("jellyfish", {"hosts": 200_000, "network_ports": 4, "hosts_per_switch": 1}, "which need 200,000 switches"),
        (
            "jellyfish",
            {"switches": 6, "switch": {"model": "plain", "radix": 4}, "network_ports": 4, "hosts_per_switch": 1},
            "found 4 ports, but a switch needs 5",
        ),
        ("xpander", {"network_ports": 4}, "missing: give lifts, such as [8], or hosts"),
        ("xpander", {"lifts": [300, 300], "network_ports": 4}, "makes 90,000 switches in a group"),
        ("xpander", {"lifts": [60_000], "network_ports": 4}, "makes 300,000 switches, wanted at most 65,536"),
        ("xpander", {"lifts": [2], "network_ports": 3, "hosts_per_switch": 1, "hosts": 9}, "wanted at most 8"),
        ("xpander", {"lifts": [2], "radix": 3}, "found 3 ports, wanted at least 4"),
        ("xpander", {"lifts": [2], "network_ports": 5, "hosts_per_switch": 3, "radix": 7}, "a switch needs 8"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(topology: str, keys: dict[str, Any], told: str) -> None:
    assert told in refusal(topology, **keys)


@pytest.mark.parametrize(
    ("topology", "keys"),
    [("jellyfish", {"switches": 20, "network_ports": 5}), ("xpander", {"lifts": [4], "network_ports": 5, "seed": 2})],
)
def test_channels_of_the_pages(topology: str, keys: dict[str, Any]) -> None:
    fabric = built(topology, hosts_per_switch=2, **keys)
    diameter, _ = diameter_and_mean(fabric)
    assert diameter == {"jellyfish": 3, "xpander": 4}[topology]
    channels = {name: planned_routing(fabric, name)[0].channels for name in ("minimal", "valiant", "ugal")}
    assert channels == {"minimal": diameter, "valiant": 2 * diameter, "ugal": 2 * diameter}
