"""Racks on a floor, and the lengths of cables that follow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.floor_plan import FloorPlanSection
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.written import dump
from weftwork.topology.build import fabric_of, fabric_of_section
from weftwork.topology.floor_plan import floor_of, with_floor_plan


def test_a_rack_with_its_switch_and_a_row() -> None:
    """Two racks of two servers with a leaf each; two spines in a rack of their own stand between the two."""
    fabric = fabric_of(topology="leaf-spine", leaves=2, spines=2, hosts_per_leaf=2)
    plan = FloorPlanSection(servers_per_rack=2, racks_per_row=3)
    floor = floor_of(fabric, plan)
    assert (floor.racks, floor.racks_per_row) == (3, 3)
    assert floor.rack_of_node.tolist() == [0, 0, 2, 2, 0, 2, 1, 1]
    to_hosts, between = floor.length_m[:4], floor.length_m[4:]
    assert to_hosts.tolist() == [2.0] * 4
    assert between.tolist() == pytest.approx([0.6 + 4] * 4)  # one rack along, up and down
    delays = with_floor_plan(fabric, plan).links["delay_ps"]
    assert delays.tolist() == [10_000] * 4 + [23_000] * 4  # 5 ns/m
    rows = floor_of(fabric, FloorPlanSection(servers_per_rack=2, racks_per_row=1))
    assert rows.length_m[4:].tolist() == pytest.approx([2.1 + 4] * 4)


def test_leaves_of_rails_stand_amid_their_pod() -> None:
    """A unit of 32 servers fills 8 racks; its 8 leaves serve all of them and stand in one rack in their middle."""
    fabric = fabric_of(topology="superpod", scalable_units=2)
    floor = floor_of(fabric, FloorPlanSection(switches_per_rack=8))
    leaves = floor.rack_of_node[64:80]
    assert [np.unique(leaves[:8]).tolist(), np.unique(leaves[8:]).tolist()] == [[4], [14]]
    assert floor.racks == 16 + 2 + 1
    assert floor.length_m.max() < 12


def test_a_scenario_keeps_its_floor_and_no_other_delay() -> None:
    text = """schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, floor_plan: {servers_per_rack: 2}%s}
traffic: {pattern: permutation, size: 1KiB}
"""
    scenario = loads(text % "")
    assert loads(dump(scenario)).fabric == scenario.fabric
    built = fabric_of_section(scenario.fabric, directory=Path())
    assert np.unique(built.links["delay_ps"]).tolist() == [10_000, 23_000]
    with pytest.raises(ConfigError, match=r"fabric.cable_length\s+follows from fabric.floor_plan"):
        loads(text % ", cable_length: 3m")
    with pytest.raises(ConfigError, match="wanted at least 20cm"):
        loads((text % "").replace("servers_per_rack: 2", "rack_cable: 1mm"))


def test_groups_of_a_dragonfly_stand_together() -> None:
    """Links inside a group are shorter than links between groups, as in the cabinets of Slingshot."""
    fabric = fabric_of(topology="dragonfly", routers_per_group=8, hosts_per_router=4, global_ports=4)
    assert fabric.direct is not None
    length_m = floor_of(fabric, FloorPlanSection(servers_per_rack=16, switches_per_rack=8)).length_m
    local, far = (length_m[fabric.direct.link_dimension == dimension].mean() for dimension in (0, 1))
    assert local < far / 2
