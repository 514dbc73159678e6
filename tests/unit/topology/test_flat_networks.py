"""Jellyfish and Xpander: counts, seeds, ports split between hosts and links, and sizes that do not fit.

Sources: Singla et al., Jellyfish, NSDI 2012; Valadarsky et al., Xpander, CoNEXT 2016.
"""

from __future__ import annotations

from typing import Any

import pytest
from helpers.findings import sound
from helpers.switch_graph import diameter_and_mean

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.flat_network import FlatPorts
from weftwork.topology.routing_plan import planned_routing


def built(topology: str, **keys: Any) -> Fabric:
    return fabric_of(topology=topology, link_rate_bps=400_000_000_000, **keys)


def switches(fabric: Fabric) -> int:
    return len(fabric.node_names) - len(fabric.hosts)


def refusal(topology: str, **keys: Any) -> str:
    with pytest.raises(ConfigError) as wrong:
        built(topology, **keys)
    return str(wrong.value)


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


def test_too_many_hosts_for_the_links_are_reported() -> None:
    """6 hosts on each of 10 switches with 3 links: a mean of 5/3 links over 9 of 10 destinations, 3 / (6 x 1.5)."""
    fabric = built("jellyfish", switches=10, network_ports=3, hosts_per_switch=6)
    text = fabric.caveats["fabric.hosts_per_switch"].text
    assert "6 hosts and 3 links for each of 10 switches: uniform traffic runs at 33.3% of the rate of a host" in text
    assert not built("jellyfish", switches=10, network_ports=3, hosts_per_switch=2).caveats
    assert built("xpander", lifts=[4], network_ports=3, hosts_per_switch=6).caveats


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
    channels = {name: sound(planned_routing, fabric, name).channels for name in ("minimal", "valiant", "ugal")}
    assert channels == {"minimal": diameter, "valiant": 2 * diameter, "ugal": 2 * diameter}
