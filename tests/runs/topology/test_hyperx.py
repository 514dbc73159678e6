"""HyperX and flattened butterfly: closed forms, distances by search, and sizes that do not fit.

Sources: Ahn et al., HyperX, SC 2009; Kim, Dally and Abts, Flattened Butterfly, ISCA 2007.
"""

from __future__ import annotations

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
