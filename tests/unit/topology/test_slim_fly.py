"""Slim Fly: diameter 2 for every size, known graphs, published counts, and sizes that do not exist.

Sources: McKay, Miller and Siran, 1998; Besta and Hoefler, SC 2014; Hoffman and Singleton, 1960, for q = 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.findings import sound
from helpers.switch_graph import switch_ends

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.routing_plan import planned_routing


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


def test_q_of_five_is_the_hoffman_singleton_graph() -> None:
    """It is the only graph with A^2 + A = 6 I + J: no triangles, no squares, diameter 2."""
    links = adjacency(slim_fly(q=5))
    assert links.shape == (50, 50)
    assert (links @ links + links == 6 * np.eye(50) + np.ones((50, 50))).all()


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


@pytest.mark.parametrize(("routing", "channels"), [("minimal", 2), ("valiant", 4), ("ugal", 4)])
def test_a_channel_for_each_hop(routing: str, channels: int) -> None:
    assert sound(planned_routing, slim_fly(q=4), routing).channels == channels
