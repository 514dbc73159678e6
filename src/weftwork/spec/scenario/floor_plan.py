"""The keys of ``fabric.floor_plan``: positions of racks.

The length of every cable follows from them.
Leaves out: the lengths themselves (`weftwork.topology.floor_plan`).
"""

from __future__ import annotations

from weftwork.base.units import LENGTH
from weftwork.spec.device import Record
from weftwork.spec.scenario.kinds import Measure, Whole
from weftwork.spec.scenario.rows import row

__all__ = ["FloorPlanSection"]

_LAY = "smallcat9603/simgrid, lay.rb"


class FloorPlanSection(Record):
    """Racks in rows; cables run along rows and across them in trays above."""

    servers_per_rack: int = row(
        "servers_per_rack",
        Whole(low=1, high=1_024, unit="servers"),
        default=4,
        text="Servers of a rack.",
        source="NVIDIA, DGX SuperPOD H100 reference architecture: up to four DGX in a rack",
    )
    switches_per_rack: int = row(
        "switches_per_rack",
        Whole(low=1, high=1_024, unit="switches"),
        default=16,
        text="Switches in a rack for switches. A switch whose servers all stand in one rack stands in that rack.",
        source="chosen: 16 switches of one or two units and their cables fill a rack",
    )
    racks_per_row: int | None = row(
        "racks_per_row",
        Whole(low=1, high=100_000, unit="racks"),
        absent="as many as make the floor nearly square",
        text="Racks of a row.",
        source=f"{_LAY}: a near-square grid",
    )
    rack_pitch_m: float = row(
        "rack_pitch",
        Measure(quantity=LENGTH),
        default="0.6m",
        text="From one rack of a row to the next.",
        source=_LAY,
    )
    row_pitch_m: float = row(
        "row_pitch",
        Measure(quantity=LENGTH),
        default="2.1m",
        text="From one row of racks to the next, aisles included.",
        source=_LAY,
    )
    tray_height_m: float = row(
        "tray_height",
        Measure(quantity=LENGTH),
        default="2m",
        text="From a port up to the tray above its rack, which a cable to another rack climbs at both ends.",
        source=f"{_LAY}: 4 m beside the way along the floor",
    )
    rack_cable_m: float = row(
        "rack_cable",
        Measure(quantity=LENGTH),
        default="2m",
        text="Length of a cable inside a rack.",
        source=_LAY,
    )
