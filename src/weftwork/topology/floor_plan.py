"""Place racks on the floor, and measure every cable.

The length of a cable gives its delay and its price. Servers fill racks in their order. A switch all of whose servers
stand in one rack stands there, too; other switches fill racks of their own, tier by tier, which stand amid the racks
that they serve. Racks stand in rows. A cable inside a rack has one length; one between racks climbs to the tray, runs
along and across the rows, and comes down.
Source: smallcat9603/simgrid, lay.rb: Manhattan distance on a near-square grid of 0.6 m by 2.1 m, and 4 m.
Leaves out: walls, doors, several halls, and slack: a cable is as long as its way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from weftwork.base.units import PROPAGATION_PS_PER_M
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.scenario.floor_plan import FloorPlanSection

__all__ = ["Floor", "floor_of", "with_floor_plan"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Floor:
    """Racks on the floor.

    Attributes
    ----------
    rack_of_node : shape (nodes,), number of the rack in which a node stands, in the order of the racks along the rows
    racks, racks_per_row : how many
    length_m : shape (links,), of every cable
    """

    rack_of_node: NDArray[np.int64]
    racks: int
    racks_per_row: int
    length_m: NDArray[np.float64]


def floor_of(fabric: Fabric, plan: FloorPlanSection) -> Floor:
    """Put the nodes of a fabric into racks, and measure its cables.

    Parameters
    ----------
    fabric : whose tiers say what stands where
    plan : pitches and heights in metres
    """
    rack_of_node, place_of_rack = _racks(fabric, plan)
    order = np.argsort(place_of_rack, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    rack_of_node = rank[rack_of_node]
    per_row = plan.racks_per_row or _near_square(len(order), plan)
    low, high = rack_of_node[fabric.links["a"]], rack_of_node[fabric.links["b"]]
    along = np.abs(low % per_row - high % per_row) * plan.rack_pitch_m
    across = np.abs(low // per_row - high // per_row) * plan.row_pitch_m
    length_m = np.where(low == high, plan.rack_cable_m, along + across + 2 * plan.tray_height_m)
    return Floor(rack_of_node=rack_of_node, racks=len(order), racks_per_row=per_row, length_m=length_m)


def with_floor_plan(fabric: Fabric, plan: FloorPlanSection) -> Fabric:
    """Give the links of a fabric the delays of their cables.

    Parameters
    ----------
    fabric, plan : see `floor_of`
    """
    links = fabric.links.copy()
    links["delay_ps"] = np.rint(floor_of(fabric, plan).length_m * PROPAGATION_PS_PER_M).astype(np.int64)
    return replace(fabric, links=links)


def _near_square(racks: int, plan: FloorPlanSection) -> int:
    """Number of racks in a row for a nearly square floor."""
    pitch = plan.row_pitch_m / plan.rack_pitch_m if plan.rack_pitch_m else 1.0
    return max(1, ceil(sqrt(racks * pitch)))


def _racks(fabric: Fabric, plan: FloorPlanSection) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rack of every node, and position of every rack in the order of racks.

    Switches stand amid the nodes that they serve.
    """
    count = len(fabric.node_names)
    rack = np.full(count, -1, np.int64)
    rack[fabric.hosts] = np.arange(len(fabric.hosts)) // plan.servers_per_rack
    servers = ceil(len(fabric.hosts) / plan.servers_per_rack)
    places = [np.arange(servers, dtype=np.float64)]
    middle = np.zeros(count)  # of what a node serves, as a place in the order of racks
    middle[fabric.hosts] = rack[fabric.hosts]
    racks = servers
    switches = fabric.node_kind == SWITCH
    for tier in np.unique(fabric.node_tier[switches]).tolist():
        mine = np.flatnonzero(switches & (fabric.node_tier == tier))
        least, most, middle[mine] = _served(fabric, mine, middle)
        inside = least == most if tier == fabric.node_tier[switches].min() else np.zeros(len(mine), np.bool_)
        rack[mine[inside]] = least[inside].astype(np.int64)
        others = mine[~inside]
        others = others[np.argsort(middle[others], kind="stable")]
        own = np.arange(len(others)) // plan.switches_per_rack
        rack[others] = racks + own
        if len(others):
            filled = int(own[-1]) + 1
            places.append(np.bincount(own, middle[others], minlength=filled) / np.bincount(own, minlength=filled))
            racks += filled
    return rack, np.concatenate(places)


def _served(
    fabric: Fabric, mine: NDArray[np.int64], middle: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Least, greatest and mean position of the nodes below some switches.

    Without nodes below it is the position of the switches' tier.
    """
    tier, links = fabric.node_tier, fabric.links
    links = links[tier[links["a"]] != tier[links["b"]]]  # switches of one tier do not serve each other
    is_a_lower = tier[links["a"]] < tier[links["b"]]
    low = np.where(is_a_lower, links["a"], links["b"]).astype(np.int64)
    high = np.where(is_a_lower, links["b"], links["a"]).astype(np.int64)
    count = len(fabric.node_names)
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, high, middle[low])
    np.maximum.at(most, high, middle[low])
    total, many = np.bincount(high, middle[low], minlength=count), np.bincount(high, minlength=count)
    mean = np.divide(total, many, out=np.full(count, float(middle[fabric.node_kind == HOST].mean())), where=many > 0)
    return least[mine], most[mine], mean[mine]
