"""The largest direct networks against published numbers, and against networks that the generators make."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from helpers.sketched_networks import cubes, random_graph

from weftwork.spec.fabric import SWITCH
from weftwork.topology.build import fabric_of
from weftwork.topology.direct_limits import dragonfly, dragonfly_plus, hyperx, is_prime_power, slim_fly
from weftwork.topology.largest import fabric_limits
from weftwork.topology.measures import measure


@pytest.mark.parametrize(
    ("size", "endpoints", "switches", "switch_links"),
    [
        (dragonfly(16, 32, 16), 262_656, 16_416, 513 * 496 + 513 * 512 // 2),  # balanced at 64 ports (63 in use)
        (dragonfly(16, 32, 17), 279_040, 17_440, 545 * 496 + 545 * 544 // 2),  # Slingshot's 16 + 31 + 17
        (dragonfly_plus(32, 32, 32, 32), 1_049_600, 65_600, 1_025 * 1_024 + 1_025 * 512),  # k^2/4 (k^2/4 + 1)
        (slim_fly(64), 35_322, 1_682, 841 * 43),  # q = 29
        (slim_fly(128), 224_720, 5_618, 53 * 53 * 79),  # q = 53
        (hyperx(64, 1), 1_024, 32, 32 * 31 // 2),  # a full mesh of 32 + 31 ports
    ],
)
def test_published_and_derived_sizes(size: Any, endpoints: int, switches: int, switch_links: int) -> None:
    assert (size.endpoints, size.switches, size.switch_links) == (endpoints, switches, switch_links)


def test_no_slim_fly_over_28_elements() -> None:
    assert not is_prime_power(28)
    assert all(is_prime_power(q) for q in (4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29))


@pytest.mark.parametrize(
    ("keys", "size"),
    [
        ({"topology": "dragonfly", "routers_per_group": 4, "hosts_per_router": 2, "global_ports": 2},
         dragonfly(2, 4, 2)),
        ({"topology": "dragonfly-plus", "leaves_per_group": 3, "spines_per_group": 3, "hosts_per_leaf": 3,
          "global_ports": 3}, dragonfly_plus(3, 3, 3, 3)),
        ({"topology": "hyperx", "sides": (4, 4, 4), "hosts_per_router": 4}, hyperx(13, 3)),
    ],
)  # fmt: skip
def test_the_generators_make_networks_of_these_sizes(keys: dict[str, Any], size: Any) -> None:
    found = measure(fabric_of(**keys))
    assert (found.hosts, found.switches, found.switch_links) == (size.endpoints, size.switches, size.switch_links)
    assert found.diameter_hops == size.diameter_links + 2


def _limits(fabric: Any) -> Any:
    found = fabric_limits(fabric).direct
    assert found is not None
    return found


@pytest.mark.parametrize(("ports", "most"), [(136, 68), (288, 144)])
def test_cubes_end_with_the_ports_of_an_optical_switch(ports: int, most: int) -> None:
    fabric = cubes(4)
    assert fabric.direct is not None
    assert fabric.direct.optical is not None
    optical = replace(fabric.direct.optical, ports=ports)
    found = _limits(replace(fabric, direct=replace(fabric.direct, optical=optical)))
    inside = int((fabric.node_kind == SWITCH).sum()) // 4
    assert found.sizes[-1].switches == most * inside
    assert found.sizes[0].switches == (ports - 8) // 2 * inside  # 64 cubes with Google's 8 spare ports
    assert "each cube takes 2 of them" in found.ends


def test_a_hyperx_of_one_more_dimension_is_larger() -> None:
    fabric = fabric_of(topology="hyperx", sides=(4, 4), hosts_per_router=4, radix=64)
    assert [size.endpoints for size in _limits(fabric).sizes] == [22**3, 16**4]


def test_a_random_graph_has_no_end() -> None:
    fabric = random_graph(40, 5)
    assert not _limits(fabric).ends
