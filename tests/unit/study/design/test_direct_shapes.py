"""Shapes of direct networks for servers: they fit the ports, hold the servers, and waste few switches."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weftwork.spec.scenario.choices import TOPOLOGIES
from weftwork.spec.scenario.topology_growth import ServersAndSwitch
from weftwork.topology.torus_lattice import near_cube


def shape_for(topology: str, servers: int, ports: int, radix: int) -> Mapping[str, Any] | None:
    """Keys of the shape that a topology of the catalogue chooses."""
    space = TOPOLOGIES[topology].design
    assert space is not None
    assert space.shape is not None
    return space.shape(ServersAndSwitch(servers=servers, ports=ports, radix=radix, gpu_rate_bps=400_000_000_000))


@given(servers=st.integers(2, 5_000), ports=st.sampled_from([1, 4, 8]), radix=st.sampled_from([32, 64, 128, 512]))
def test_a_dragonfly_holds_the_servers_within_its_ports(servers: int, ports: int, radix: int) -> None:
    shape = shape_for("dragonfly", servers, ports, radix)
    if shape is None:
        assert min((radix + 1) // 4, servers * ports) < 4
        return
    p, a, h, groups = (shape[key] for key in ("hosts_per_router", "routers_per_group", "global_ports", "groups"))
    assert p + a - 1 + h <= radix
    assert a <= 2 * p
    assert a * p * groups >= servers * ports
    assert (a - 1) * p * groups < servers * ports  # a router less in each group would not do


@given(servers=st.integers(2, 5_000), ports=st.sampled_from([1, 4, 8]), radix=st.sampled_from([32, 64, 128, 512]))
def test_a_dragonfly_plus_holds_the_servers_within_its_ports(servers: int, ports: int, radix: int) -> None:
    shape = shape_for("dragonfly-plus", servers, ports, radix)
    if shape is None:
        assert min(radix // 2, servers * ports) < 4
        return
    p, leaves, spines, h = (
        shape[key] for key in ("hosts_per_leaf", "leaves_per_group", "spines_per_group", "global_ports")
    )
    assert p + spines <= radix
    assert leaves + h <= radix
    assert leaves * p * shape["groups"] >= servers * ports


@given(servers=st.integers(1, 20_000))
def test_a_torus_wastes_few_switches(servers: int) -> None:
    sides = near_cube(servers)
    assert servers <= prod(sides) <= servers + max(4, servers // 8)
    assert sides == tuple(sorted(sides))
    assert max(sides) <= 2 * servers ** (1 / 3) + 1


def test_a_slim_fly_takes_the_least_field_that_exists() -> None:
    # 2 x 11 x 11 routers of degree 17 carry 9 places each at full rate; q = 9 and its 162 routers would need 13
    assert shape_for("slim-fly", 256, 8, 128) == {"q": 11, "hosts_per_switch": 9}
    assert shape_for("slim-fly", 5_000, 8, 32) is None


def test_a_dragonfly_of_2048_servers_fills_its_switches_evenly() -> None:
    assert shape_for("dragonfly", 2_048, 8, 128) == {
        "hosts_per_router": 32, "routers_per_group": 64, "global_ports": 32, "groups": 8,
    }  # fmt: skip


def test_no_port_of_the_rate_makes_no_direct_network() -> None:
    direct = [one.design for one in TOPOLOGIES.values() if one.limits is not None and one.design is not None]
    asked = ServersAndSwitch(servers=64, ports=8, radix=None, gpu_rate_bps=400_000_000_000)
    assert [space.shape(asked) for space in direct if space.shape is not None] == [None] * 5
