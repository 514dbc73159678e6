"""HyperX and flattened butterfly: closed forms, distances by search, and sizes that do not fit.

Sources: Ahn et al., HyperX, SC 2009; Kim, Dally and Abts, Flattened Butterfly, ISCA 2007.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
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
from weftwork.topology.lattice import RouterLattice


def built(topology: str, **keys: Any) -> Fabric:
    return fabric_of(topology=topology, link_rate_bps=400_000_000_000, **keys)


def routers(fabric: Fabric) -> int:
    return len(fabric.node_names) - len(fabric.hosts)


@given(
    shape=st.lists(st.tuples(st.integers(2, 4), st.integers(1, 3)), min_size=1, max_size=4),
    per_router=st.integers(1, 3),
)
def test_any_hyperx_has_its_closed_forms(shape: list[tuple[int, int]], per_router: int) -> None:
    sides, cables = [list(column) for column in zip(*shape, strict=True)]
    keys = {"sides": sides, "links_per_dimension": cables, "hosts_per_router": per_router}
    fabric = built("hyperx", **keys)
    assert size_before(topology="hyperx", **keys) == size_of(fabric)
    count, degree = prod(sides), sum(cable * (side - 1) for side, cable in shape)
    assert (len(fabric.hosts), routers(fabric)) == (count * per_router, count)
    assert (degrees(fabric) == degree).all()
    diameter, mean = diameter_and_mean(fabric)
    assert diameter == len(sides)
    # each coordinate of another router differs with the probability (S - 1) / S, the router itself included
    assert mean == pytest.approx(sum((side - 1) / side for side in sides) * count / (count - 1))
    direct, hosts = fabric.direct, len(fabric.hosts)
    assert direct is not None
    assert direct.is_ordered
    at = direct.coordinates[hosts:]
    assert sorted(map(tuple, at.tolist())) == sorted(map(tuple, np.ndindex(*sides)))
    low, high = switch_ends(fabric)
    differs = at[low] != at[high]
    assert (differs.sum(axis=1) == 1).all()
    assert (differs.argmax(axis=1) == direct.link_dimension[hosts:]).all()
    pairs, parallel = np.unique(np.sort(np.stack([low, high]), axis=0), axis=1, return_counts=True)
    dimension = (at[pairs[0]] != at[pairs[1]]).argmax(axis=1)
    assert (parallel == np.array(cables)[dimension]).all()


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


@given(ports=st.integers(4, 24), hosts=st.integers(2, 300))
def test_hosts_and_ports_make_the_fewest_routers(ports: int, hosts: int) -> None:
    """Against a search over all regular shapes."""
    fitting = [
        side**dimensions
        for dimensions in range(1, 17)
        for side in range(2, 25)
        for places in range(1, side + 1)
        if places + dimensions * (side - 1) <= ports and places * side**dimensions >= hosts
    ]
    if not fitting:
        with pytest.raises(ConfigError, match="too few for"):
            built("hyperx", radix=ports, hosts=hosts)
        return
    size = size_before(topology="hyperx", radix=ports, hosts=hosts)
    assert (size.hosts, size.switches) == (hosts, min(fitting))


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("k", [2, 3])
def test_flattened_butterflies_have_their_closed_form(k: int, stages: int) -> None:
    """A k-ary n-fly: k^n hosts on k^(n-1) routers of n (k - 1) + 1 ports, and n - 1 links at most between two."""
    ports = stages * (k - 1) + 1
    fabric = built("flattened-butterfly", radix=ports, stages=stages)
    assert (len(fabric.hosts), routers(fabric)) == (k**stages, k ** (stages - 1))
    assert (degrees(fabric) == ports - k).all()
    assert diameter_and_mean(fabric)[0] == stages - 1
    same = built("hyperx", sides=[k] * (stages - 1), hosts_per_router=k)
    assert (same.links == fabric.links).all()
    assert size_before(topology="flattened-butterfly", ary=k, stages=stages) == size_of(fabric)


def test_hosts_choose_the_smallest_flattened_butterfly() -> None:
    assert routers(built("flattened-butterfly", hosts=27)) == 9
    assert routers(built("flattened-butterfly", hosts=28)) == 16
    assert len(built("flattened-butterfly", hosts=28).hosts) == 28
    switch = {"model": "plain", "radix": 64}
    assert len(built("flattened-butterfly", switch=switch, hosts=64).hosts) == 64
    size = size_before(topology="flattened-butterfly", switch=switch)
    assert (size.hosts, size.switches) == (22**3, 22**2)


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
