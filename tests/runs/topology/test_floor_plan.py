"""Racks on a floor, and the lengths of cables that follow."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weftwork.spec.scenario.floor_plan import FloorPlanSection
from weftwork.topology.build import fabric_of
from weftwork.topology.floor_plan import floor_of


@given(
    keys=st.sampled_from([
        {"topology": "fat-tree", "radix": 8}, {"topology": "superpod", "scalable_units": 3},
        {"topology": "hpn", "segments": 2, "nodes_per_segment": 8}, {"topology": "meta-24k", "hosts": 24},
    ]),
    plan=st.builds(
        FloorPlanSection, servers_per_rack=st.integers(1, 9), switches_per_rack=st.integers(1, 40),
        racks_per_row=st.none() | st.integers(1, 12),
    ),
)  # fmt: skip
def test_racks_hold_what_they_may_and_cables_reach(keys: dict[str, Any], plan: FloorPlanSection) -> None:
    fabric = fabric_of(**keys)
    floor = floor_of(fabric, plan)
    hosts = np.bincount(floor.rack_of_node[fabric.hosts], minlength=floor.racks)
    assert hosts.max() <= plan.servers_per_rack
    assert sorted(set(floor.rack_of_node.tolist())) == list(range(floor.racks))
    rows = -(-floor.racks // floor.racks_per_row)
    longest = floor.racks_per_row * plan.rack_pitch_m + rows * plan.row_pitch_m + 2 * plan.tray_height_m
    assert floor.length_m.min() >= min(plan.rack_cable_m, 2 * plan.tray_height_m)
    assert floor.length_m.max() <= longest
    wider = plan.model_copy(update={"rack_pitch_m": 2 * plan.rack_pitch_m, "racks_per_row": floor.racks_per_row})
    assert (floor_of(fabric, wider).length_m >= floor.length_m - 1e-9).all()
