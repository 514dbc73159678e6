"""DGX SuperPOD: rail-optimized scalable units of NVIDIA's reference architectures.

A unit has one leaf for each rail (and plane): 32 servers of 8 GPUs with Quantum-2, 64 with Spectrum-4 in two planes of
400G, 72 with Quantum-X800. Units are built whole; servers that are missing leave ports empty. Up to 8 units (with
Quantum-2) have two tiers, more have cores.
Source: NVIDIA, DGX SuperPOD reference architectures H100, B200, B300 and B300 XDR, tables of the compute fabric.
Leaves out: the storage and management networks, and GB200, whose switch counts the documents do not give by size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weftwork.base.grammar import plural
from weftwork.spec.device import Record
from weftwork.spec.fabric_extras import Extra
from weftwork.spec.plug_in import Choice, DesignSpace, Findings, Flag, Ground, Parts, Whole, row
from weftwork.spec.rails import rail_mistakes
from weftwork.spec.scenario.topology import full
from weftwork.topology.pgft import Pgft
from weftwork.topology.rails_tree import RailKeys, rail_tree
from weftwork.topology.tree_topology import tree_topology

__all__ = ["TOPOLOGY"]

RAILS: Final = 8  # of every server of the tables
# Servers of a scalable unit, and planes that the port of a GPU is split into, by node. NVIDIA's documents, see above.
UNITS: Final = {
    ("dgx-h100", 8): (32, 1),
    ("dgx-h200", 8): (32, 1),
    ("dgx-b200", 8): (32, 1),
    ("dgx-b300", 16): (64, 2),
    ("dgx-b300", 8): (72, 1),
}
MANAGER_CABLES: Final = 4  # of the fabric manager (UFM), which takes the place of one server; DGX SuperPOD H100


class Keys(Record):
    """The keys of a SuperPOD."""

    scalable_units: int | None = row(
        "scalable_units",
        Whole(low=1, high=1_024, unit="units"),
        absent="follows from the servers",
        text="Units of servers that are built, each with a leaf for every rail.",
        source="NVIDIA, DGX SuperPOD reference architectures",
    )
    nodes_per_unit: int | None = row(
        "nodes_per_unit",
        Whole(low=1, high=1_024, unit="servers"),
        absent="as NVIDIA's table of the node says",
        text="Servers of a scalable unit.",
        source="NVIDIA, DGX SuperPOD reference architectures",
    )
    fabric_manager: bool = row(
        "fabric_manager",
        Flag(),
        default=False,
        text="Whether a fabric manager takes the place of the last server, with 4 cables to leaves, which the bill of"
        " materials counts and no job uses.",
        source="NVIDIA, DGX SuperPOD H100 reference architecture: 31 servers in one unit, 127 in four",
    )
    core_groups: str = row(
        "core_groups",
        Choice(options=("units", "rails")),
        default="units",
        text="With three tiers, which leaves share spines: those of whole units, or those of one rail in many units.",
        source="chosen: NVIDIA's tables do not say",
    )


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    server = ground.server
    if server is None or not found.is_sound("hosts", "gpus", "node"):
        return keys, ground.hosts
    per_unit = keys.nodes_per_unit
    entry = UNITS.get((server.name, server.nic_ports))
    planes = 1 if entry is None else entry[1]
    for _, text, _ in rail_mistakes(server, rails=RAILS, planes=planes):
        found.wrong("node", text)
        return keys, ground.hosts
    if per_unit is None:
        if entry is None:
            known = ", ".join(f"{name} with {plural(ports, 'NIC port')}" for name, ports in UNITS)
            text = (
                f"missing: NVIDIA's tables lack '{server.name}' with {plural(server.nic_ports, 'NIC port')}; they "
                f"have {known}"
            )
            found.wrong("nodes_per_unit", text)
            return keys, ground.hosts
        per_unit = entry[0]
    hosts, units = ground.hosts, keys.scalable_units
    spare = int(keys.fabric_manager)
    if hosts is None:
        if units is None:
            found.wrong("scalable_units", "missing: give scalable_units, or gpus (or hosts, the servers)")
            return keys, None
        hosts = full(units * per_unit - spare, "scalable_units", found)
        if not hosts:
            found.wrong("fabric_manager", "found true, but one unit of one server leaves no server beside it")
            return keys, None
    wanted = -(-(hosts + spare) // per_unit)
    if units is not None and units < wanted:
        text = f"found {units:,}, but {plural(hosts + spare, 'place')} of {per_unit} a unit take {wanted:,}"
        found.wrong("scalable_units", text, str(wanted))
    update = {"nodes_per_unit": per_unit, "scalable_units": wanted if units is None else units}
    return keys.model_copy(update=update), hosts


def _tree(keys: Keys, parts: Parts) -> Pgft:
    told = UNITS.get((parts.server.name, parts.server.nic_ports), (0, 1))
    per_unit = keys.nodes_per_unit or told[0]
    servers = parts.hosts or 0
    units = keys.scalable_units or -(-servers // per_unit)
    # the derivation counts pods by servers, and units are built whole
    rails = RailKeys(nodes_per_pod=per_unit, rails=RAILS, planes=told[1])
    tree = rail_tree(rails, replace(parts, hosts=units * per_unit))
    return replace(tree, servers=servers, is_rail_major=keys.core_groups == "rails")


def _name(tree: Pgft) -> str:
    planes = "" if tree.planes == 1 else f", {plural(tree.planes, 'plane')}"
    return f"superpod, {plural(tree.pods, 'unit')} of {plural(tree.per_leaf, 'server')}{planes}"


def _extras(keys: Keys) -> tuple[Extra, ...]:
    return (Extra(item="fabric manager", ports=MANAGER_CABLES),) if keys.fabric_manager else ()


TOPOLOGY: Final = tree_topology(
    keys=Keys,
    resolve=_resolve,
    tree=_tree,
    name=_name,
    extras=_extras,
    defaults={"node": "dgx-h100", "switch": "quantum-2"},
    design=DesignSpace(order=7),
    source="NVIDIA, DGX SuperPOD reference architectures H100, B200, B300 and B300 XDR",
)
