"""Dragonfly+ (Megafly): groups of leaves and spines, and links between the spines of all groups.

In a group, every leaf is linked to every spine. A leaf has p ports to hosts, and a spine has h global ports. With s
spines in a group, at most s x h + 1 groups have a link for each pair. It is balanced if leaves, spines, p and h are
half of a switch's ports. Leaves of all groups come first, then spines.
Source: Shpiner et al., Dragonfly+, HiPINEB 2017; Flajslik et al., Megafly, ISC 2018.
Leaves out: several links between a leaf and a spine, groups of different sizes, and global links of another rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, isqrt
from typing import Any, Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.spec.fabric import SWITCH, Fabric
from weftwork.spec.plug_in import (
    DesignSpace,
    DirectLimits,
    FabricSize,
    Findings,
    Ground,
    MeasuredNetwork,
    Parts,
    Record,
    ServersAndSwitch,
    Topology,
    Whole,
    row,
)
from weftwork.topology.direct_fabric import SwitchLinks, direct_fabric, direct_size, resolved_shape, sound_shape
from weftwork.topology.direct_limits import dragonfly_plus, grown
from weftwork.topology.group_links import (
    DIMENSIONS,
    SwitchGroups,
    arrangement_row,
    global_links,
    groups_row,
    links_per_pair_row,
    plan_groups,
    whole_servers,
)

__all__ = ["TOPOLOGY"]

SOURCE: Final = "Shpiner et al., Dragonfly+, HiPINEB 2017"


class Keys(Record):
    """The keys of a dragonfly+."""

    hosts_per_leaf: int | None = row(
        "hosts_per_leaf",
        Whole(low=1, high=1_024, unit="ports"),
        absent="balanced: as many as spines in a group; by default half of the ports of the switch",
        text="Ports of a leaf that lead to hosts (p); a server with four NIC ports takes four of them.",
        source=SOURCE,
    )
    leaves_per_group: int | None = row(
        "leaves_per_group",
        Whole(low=1, high=4_096, unit="switches"),
        absent="balanced: as many as global ports of a spine; by default half of the ports of the switch",
        text="Leaves of a group, each linked to all spines of the group.",
        source=SOURCE,
    )
    spines_per_group: int | None = row(
        "spines_per_group",
        Whole(low=1, high=4_096, unit="switches"),
        absent="balanced: as many as ports of a leaf to hosts; by default half of the ports of the switch",
        text="Spines of a group, which have its links to other groups.",
        source=SOURCE,
    )
    global_ports: int | None = row(
        "global_ports",
        Whole(low=0, high=1_024, unit="ports"),
        absent="balanced: as many as leaves in a group; by default half of the ports of the switch",
        text="Ports of a spine for links to other groups (h).",
        source=SOURCE,
    )
    groups: int | None = groups_row(SOURCE)
    links_per_group_pair: int | None = links_per_pair_row()
    arrangement: str = arrangement_row()


@dataclass(frozen=True, kw_only=True, slots=True)
class DragonflyPlusShape:
    """Counts of a dragonfly+."""

    hosts_per_leaf: int
    leaves: int  # of a group
    between: SwitchGroups

    @property
    def all_leaves(self) -> int:
        return self.between.groups * self.leaves

    @property
    def all_spines(self) -> int:
        return self.between.groups * self.between.linkers

    @property
    def places(self) -> int:
        return self.all_leaves * self.hosts_per_leaf

    @property
    def links(self) -> int:
        """Links between switches."""
        return self.all_leaves * self.between.linkers + self.between.links


def _half(keys: Keys, ports: int, endpoints: int | None) -> int:
    """Half of the ports of a balanced switch; 0 where nothing decides them."""
    given = (keys.global_ports, keys.leaves_per_group, keys.hosts_per_leaf, keys.spines_per_group)
    for count in given:
        if count:
            return count
    if ports:
        return ports // 2
    if endpoints is None:
        return 0
    half = 1
    while half * half * (half * half + 1) < endpoints:
        half += 1
    return half


def _shape(keys: Keys, ports: int, endpoints: int | None, found: Findings, blamed: str) -> DragonflyPlusShape | None:
    """Counts of the shape, given or derived; see `weftwork.topology.shapes.dragonfly`."""
    half = _half(keys, ports, endpoints)
    if half == 0 and ports:
        found.wrong(blamed, f"found {ports} port, wanted at least 2: a leaf has a port to a host and one to a spine")
        return None
    if half == 0:
        text = "missing: give hosts_per_leaf, leaves_per_group, spines_per_group or global_ports, or radix, or hosts"
        found.wrong("hosts_per_leaf", text)
        return None
    up, down = keys.global_ports, keys.hosts_per_leaf  # of spines and of leaves, the ports outside the group
    leaves = keys.leaves_per_group or up or half
    spines = keys.spines_per_group or down or half
    p = down or spines
    h = leaves if up is None else up
    for what, inside, across, others in (("leaf", spines, p, "hosts"), ("spine", leaves, h, "other groups")):
        if ports and inside + across > ports:
            text = (
                f"found {plural(ports, 'port')}, but a {what} needs {inside + across:,}: {inside:,} in its group and "
                f"{across:,} to {others}"
            )
            found.wrong(blamed, text)
    between = plan_groups(
        found, groups=keys.groups, links_per_pair=keys.links_per_group_pair, linkers=spines, global_ports=h,
        places=leaves * p, endpoints=endpoints,
    )  # fmt: skip
    return None if between is None else DragonflyPlusShape(hosts_per_leaf=p, leaves=leaves, between=between)


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    return resolved_shape(
        _shape, keys, ground, found, key="groups",
        is_given=any((keys.hosts_per_leaf, keys.leaves_per_group, keys.spines_per_group, keys.global_ports)),
        filled=lambda shape: {
            "hosts_per_leaf": shape.hosts_per_leaf,
            "leaves_per_group": shape.leaves,
            "spines_per_group": shape.between.linkers,
            "global_ports": shape.between.global_ports,
            "groups": shape.between.groups,
            "links_per_group_pair": shape.between.links_per_pair or keys.links_per_group_pair,
        },
    )  # fmt: skip


def _size(keys: Keys, parts: Parts) -> FabricSize:
    shape = sound_shape(_shape, keys, parts)
    size = direct_size(parts, switches=shape.all_leaves, per_switch=shape.hosts_per_leaf, links=shape.links)
    return replace(size, switches=shape.all_leaves + shape.all_spines)


def _build(keys: Keys, parts: Parts) -> Fabric:
    shape = sound_shape(_shape, keys, parts)
    between = shape.between
    leaf, spine = np.arange(shape.all_leaves), np.arange(shape.all_spines)
    group = np.concatenate([leaf // shape.leaves, spine // between.linkers])
    index = np.concatenate([leaf % shape.leaves, shape.leaves + spine % between.linkers])
    low = np.repeat(leaf, between.linkers)
    high = low // shape.leaves * between.linkers + np.tile(np.arange(between.linkers), len(leaf))
    far = global_links(between, keys.arrangement)
    name = f"dragonfly+, {plural(between.groups, 'group')} of {plural(shape.leaves, 'leaf', 'leaves')} and "
    return direct_fabric(
        replace(parts, caveats={**parts.caveats, **between.caveats()}),
        name=name + plural(between.linkers, "spine"),
        family="dragonfly-plus",
        dimensions=DIMENSIONS,
        switches=[("leaf", len(leaf)), ("spine", len(spine))],
        per_switch=shape.hosts_per_leaf,
        links=SwitchLinks(
            a=np.concatenate([low, len(leaf) + far[0]]),
            b=np.concatenate([len(leaf) + high, len(leaf) + far[1]]),
            dimension=np.repeat([0, 1], [len(low), len(far[0])]).astype(np.int8),
        ),
        axes=("group", "switch"),
        sides=(between.groups, shape.leaves + between.linkers),
        coordinates=np.stack([group, index], axis=1),
        group=group,
        tier=np.repeat([1, 2], [len(leaf), len(spine)]),
    )


def _limits(found: MeasuredNetwork) -> DirectLimits:
    """The global ports of a group end it; then the balance."""
    tier = found.fabric.node_tier[found.fabric.node_kind == SWITCH]
    groups = found.direct.sides[0]
    spines = int((tier == tier.max()).sum()) // groups
    leaves = int((tier == tier.min()).sum()) // groups
    h, k = found.degree(1), found.ports
    sizes = [dragonfly_plus(found.hosts, leaves, spines, h)]
    if k >= 2:
        sizes.append(dragonfly_plus(k // 2, k // 2, k // 2, k // 2))
    ends = f"The {plural(spines * h, 'global port')} of a group end this fabric: one link to each of "
    return DirectLimits(family=found.direct.family, ports=k, ends=f"{ends}{plural(spines * h, 'other group')}",
                        sizes=grown(sizes))  # fmt: skip


def _shape_for(asked: ServersAndSwitch) -> dict[str, Any] | None:
    """Groups of as many leaves as spines, with p = h, as large as two groups of servers allow."""
    if asked.radix is None:
        return None
    endpoints = asked.servers * asked.ports
    p = whole_servers(min(asked.radix // 2, isqrt(endpoints // 2)), asked.ports)
    if p < 1:
        return None
    groups = max(2, ceil(endpoints / (p * p)))
    leaves = ceil(endpoints / (p * groups))
    return {"hosts_per_leaf": p, "leaves_per_group": leaves, "spines_per_group": p, "global_ports": p, "groups": groups}


TOPOLOGY: Final = Topology(
    keys=Keys,
    resolve=_resolve,
    build=_build,
    size=_size,
    limits=_limits,
    design=DesignSpace(shape=_shape_for, usual={"routing": "minimal"}, order=10),
    source=SOURCE,
)
