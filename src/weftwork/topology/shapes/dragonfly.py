"""Dragonfly: groups of routers, all linked to each other, and links between all groups.

A router has p ports to hosts, one port to each other router of its group, and h global ports. With a routers in a
group, at most a x h + 1 groups have a link for each pair; fewer groups have several. It is balanced if a = 2p = 2h.
Router i of group G has the number ``G x a + i``; its ports lead to hosts, then to its group, then to other groups.
Source: Kim, Dally, Scott and Abts, ISCA 2008, doi:10.1109/ISCA.2008.19; ids as in sst-elements (merlin).
Leaves out: groups that are not fully linked (Cascade's two-dimensional groups), groups of different sizes, and global
links of another rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weftwork.base.grammar import plural
from weftwork.spec.fabric import Fabric
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
from weftwork.topology.direct_limits import dragonfly, grown
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

SOURCE: Final = "Kim, Dally, Scott and Abts, ISCA 2008, doi:10.1109/ISCA.2008.19"


class Keys(Record):
    """The keys of a dragonfly."""

    hosts_per_router: int | None = row(
        "hosts_per_router",
        Whole(low=1, high=1_024, unit="ports"),
        absent="balanced: half of the routers of a group",
        text="Ports of a router that lead to hosts (p); a server with four NIC ports takes four of them.",
        source=f"{SOURCE}, section 3",
    )
    routers_per_group: int | None = row(
        "routers_per_group",
        Whole(low=1, high=4_096, unit="routers"),
        absent="balanced: twice the global ports; by default as many as the ports of the switch allow",
        text="Routers of a group (a), all linked to each other.",
        source=f"{SOURCE}, section 3",
    )
    global_ports: int | None = row(
        "global_ports",
        Whole(low=0, high=1_024, unit="ports"),
        absent="balanced: half of the routers of a group",
        text="Ports of a router for links to other groups (h).",
        source=f"{SOURCE}, section 3",
    )
    groups: int | None = groups_row(SOURCE)
    links_per_group_pair: int | None = links_per_pair_row()
    arrangement: str = arrangement_row()


@dataclass(frozen=True, kw_only=True, slots=True)
class DragonflyShape:
    """Counts of a dragonfly."""

    hosts_per_router: int
    between: SwitchGroups

    @property
    def per_group(self) -> int:
        return self.between.linkers

    @property
    def routers(self) -> int:
        return self.between.groups * self.per_group

    @property
    def places(self) -> int:
        return self.routers * self.hosts_per_router

    @property
    def links(self) -> int:
        """Links between routers."""
        return self.between.groups * self.per_group * (self.per_group - 1) // 2 + self.between.links


def _balanced(keys: Keys, ports: int, endpoints: int | None) -> int:
    """Global ports of a balanced router; 0 where nothing decides them."""
    if keys.global_ports:
        return keys.global_ports
    if keys.hosts_per_router is not None:
        return keys.hosts_per_router
    if keys.routers_per_group is not None:
        return -(-keys.routers_per_group // 2)
    if ports:
        return (ports + 1) // 4
    if endpoints is None:
        return 0
    h = 1
    while 2 * h * h * (2 * h * h + 1) < endpoints:
        h += 1
    return h


def _shape(keys: Keys, ports: int, endpoints: int | None, found: Findings, blamed: str) -> DragonflyShape | None:
    """Counts of the shape, given or derived.

    Parameters
    ----------
    keys : given
    ports : of a switch; 0: any number
    endpoints : NIC ports of the hosts; None where nobody says
    found : notes counts that do not fit
    blamed : key that gives the number of ports
    """
    h = _balanced(keys, ports, endpoints)
    if h == 0 and ports:
        text = f"found {plural(ports, 'port')}, wanted at least 3: to a host, to the group, and to another group"
        found.wrong(blamed, text)
        return None
    if h == 0:
        text = "missing: give hosts_per_router, routers_per_group or global_ports, or radix, or hosts"
        found.wrong("hosts_per_router", text)
        return None
    p = keys.hosts_per_router or h
    a = keys.routers_per_group or 2 * h
    h = h if keys.global_ports is None else keys.global_ports
    needed = p + a - 1 + h
    if ports and needed > ports:
        text = (
            f"found {plural(ports, 'port')}, but a router needs {needed:,}: {p:,} to hosts, {a - 1:,} to its group and "
            f"{h:,} to other groups"
        )
        found.wrong(blamed, text)
    between = plan_groups(
        found, groups=keys.groups, links_per_pair=keys.links_per_group_pair, linkers=a, global_ports=h, places=a * p,
        endpoints=endpoints,
    )  # fmt: skip
    return None if between is None else DragonflyShape(hosts_per_router=p, between=between)


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    return resolved_shape(
        _shape, keys, ground, found, key="groups",
        is_given=bool(keys.hosts_per_router or keys.routers_per_group or keys.global_ports),
        filled=lambda shape: {
            "hosts_per_router": shape.hosts_per_router,
            "routers_per_group": shape.per_group,
            "global_ports": shape.between.global_ports,
            "groups": shape.between.groups,
            "links_per_group_pair": shape.between.links_per_pair or keys.links_per_group_pair,
        },
    )  # fmt: skip


def _size(keys: Keys, parts: Parts) -> FabricSize:
    shape = sound_shape(_shape, keys, parts)
    return direct_size(parts, switches=shape.routers, per_switch=shape.hosts_per_router, links=shape.links)


def local_links(groups: int, routers: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Links between all routers of every group."""
    low, high = np.triu_indices(routers, 1)
    start = np.repeat(np.arange(groups) * routers, len(low))
    return start + np.tile(low, groups), start + np.tile(high, groups)


def _build(keys: Keys, parts: Parts) -> Fabric:
    shape = sound_shape(_shape, keys, parts)
    between = shape.between
    local, far = local_links(between.groups, shape.per_group), global_links(between, keys.arrangement)
    router = np.arange(shape.routers)
    group = router // shape.per_group
    return direct_fabric(
        replace(parts, caveats={**parts.caveats, **between.caveats()}),
        name=f"dragonfly, {plural(between.groups, 'group')} of {plural(shape.per_group, 'router')}",
        family="dragonfly",
        dimensions=DIMENSIONS,
        switches=[("router", shape.routers)],
        per_switch=shape.hosts_per_router,
        links=SwitchLinks(
            a=np.concatenate([local[0], far[0]]),
            b=np.concatenate([local[1], far[1]]),
            dimension=np.repeat([0, 1], [len(local[0]), len(far[0])]).astype(np.int8),
        ),
        axes=("group", "router"),
        sides=(between.groups, shape.per_group),
        coordinates=np.stack([group, router % shape.per_group], axis=1),
        group=group,
    )


def _limits(found: MeasuredNetwork) -> DirectLimits:
    """The global ports of a group end it; then all ports of a router, and the balance."""
    p, a, h, k = found.hosts, found.direct.sides[1], found.degree(1), found.ports
    sizes = [dragonfly(p, a, h)]
    spare = k - p - (a - 1) if k else h
    if spare > h:
        sizes.append(dragonfly(p, a, spare))
    if k >= 3:
        half = (k + 1) // 4
        sizes.append(dragonfly(half, 2 * half, half))
    ends = f"The {plural(a * h, 'global port')} of a group end this fabric: one link to each of "
    ends += plural(a * h, "other group")
    return DirectLimits(family=found.direct.family, ports=k, ends=ends, sizes=grown(sizes))


def _shape_for(asked: ServersAndSwitch) -> dict[str, Any] | None:
    """Groups of a = 2p routers with p = h, as large as two groups of servers allow."""
    if asked.radix is None:
        return None
    endpoints = asked.servers * asked.ports
    p = whole_servers(min((asked.radix + 1) // 4, isqrt(endpoints // 4)), asked.ports)
    if p < 1:
        return None
    groups = max(2, ceil(endpoints / (2 * p * p)))
    routers = ceil(endpoints / (p * groups))
    return {"hosts_per_router": p, "routers_per_group": routers, "global_ports": p, "groups": groups}


TOPOLOGY: Final = Topology(
    keys=Keys,
    resolve=_resolve,
    build=_build,
    size=_size,
    limits=_limits,
    design=DesignSpace(shape=_shape_for, usual={"routing": "minimal"}, order=9),
    source=SOURCE,
)
