"""HyperX and flattened butterfly: closed forms, distances by search, and sizes that do not fit.

Sources: Ahn et al., HyperX, SC 2009; Kim, Dally and Abts, Flattened Butterfly, ISCA 2007.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from helpers.switch_graph import degrees, diameter_and_mean, switch_ends

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.lattice import RouterLattice


def built(topology: str, **keys: Any) -> Fabric:
    return fabric_of(topology=topology, link_rate_bps=400_000_000_000, **keys)


def routers(fabric: Fabric) -> int:
    return len(fabric.node_names) - len(fabric.hosts)


def test_relative_bisection_is_the_cut_of_the_middle() -> None:
    """K S / (2 T), against links counted between the lower and the upper half of a dimension."""
    fabric = built("hyperx", sides=[4, 6], links_per_dimension=[3, 1], hosts_per_router=5)
    shape = RouterLattice(sides=(4, 6), cables=(3, 1), hosts_per_router=5)
    assert fabric.direct is not None
    at = fabric.direct.coordinates[len(fabric.hosts) :]
    low, high = switch_ends(fabric)
    for axis, ratio in enumerate(shape.relative_bisection()):
        upper = at[:, axis] >= shape.sides[axis] // 2
        cut = int((upper[low] != upper[high]).sum())
        assert Fraction(cut, len(fabric.hosts) // 2) == ratio


@pytest.mark.parametrize(
    ("keys", "hosts", "count", "degree", "diameter"),
    [
        ({"sides": [9], "hosts_per_router": 2}, 18, 9, 8, 1),  # a full mesh
        ({"sides": [2] * 5, "hosts_per_router": 1}, 32, 32, 5, 5),  # a hypercube
        ({"sides": [4, 4]}, 64, 16, 6, 2),  # T = S
        ({"sides": [4, 4], "radix": 8}, 32, 16, 6, 2),  # the ports leave two for hosts
        ({"sides": [4, 4], "switch": {"model": "plain", "radix": 8}}, 32, 16, 6, 2),
        ({"sides": [3, 4], "links_per_dimension": [2, 1]}, 48, 12, 7, 2),
    ],
)
def test_known_shapes(keys: dict[str, Any], hosts: int, count: int, degree: int, diameter: int) -> None:
    fabric = built("hyperx", **keys)
    assert (len(fabric.hosts), routers(fabric)) == (hosts, count)
    assert (degrees(fabric) == degree).all()
    assert diameter_and_mean(fabric)[0] == diameter


@pytest.mark.parametrize(
    ("topology", "keys", "told"),
    [
        ("hyperx", {"sides": [4, 4], "links_per_dimension": [1]}, "found 1 number, wanted 2, one for each side"),
        ("hyperx", {"sides": [4, 4], "hosts": 65}, "found 65, wanted at most 64"),
        (
            "hyperx",
            {"sides": [4, 4], "hosts_per_router": 4, "radix": 9},
            "found 9 ports, but a router needs 10: 4 to hosts and 6 to other routers",
        ),
        ("hyperx", {"radix": 8}, "missing: give sides, such as [8, 8], or hosts and radix"),
        ("hyperx", {"radix": 8, "hosts": 9, "links_per_dimension": [2]}, "found without sides"),
        ("hyperx", {"sides": [2] * 17}, "found 17 dimensions, wanted at most 16"),
        ("hyperx", {"sides": [4_096] * 3}, "68,719,476,736 routers, wanted at most 16,777,216"),
        (
            "hyperx",
            {"sides": [4, 4], "switch": {"model": "plain", "radix": 8}, "hosts": 40},
            "found 40 hosts, wanted at most 32",
        ),
        ("flattened-butterfly", {}, "missing: give ary, or radix, or hosts"),
        ("flattened-butterfly", {"radix": 3}, "found 3 ports, wanted at least 4 for 3 stages"),
        ("flattened-butterfly", {"ary": 4, "radix": 9}, "found 9 ports, but a router needs 10"),
        ("flattened-butterfly", {"ary": 4, "hosts": 65}, "found 65, wanted at most 64"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(topology: str, keys: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        built(topology, **keys)
    assert told in str(wrong.value)
