"""What a name of routing comes to on a fabric: routes, detours, and the virtual channels that they need.

Source: the schemes of `weftwork.topology.virtual_channels`. Numbers of channels: dragonfly: Kim et al., ISCA 2008,
doi:10.1109/ISCA.2008.19 (minimal 2, Valiant and UGAL 3), Jiang et al., ISCA 2009, doi:10.1145/1555754.1555783 (one more
for PAR); torus: Dally and Seitz 1987 (2), twice for two parts of a way; others: one for each hop, or one for each part
of a way where routes in dimension order need one, as sst-elements (merlin) has them.
Leaves out: whether the result is free of circles (`weftwork.topology.channel_dependencies`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from weftwork.spec.fabric_direct import GLOBAL
from weftwork.spec.routing import USUAL_PATHS, ChannelScheme, Routing
from weftwork.spec.routings import ROUTINGS
from weftwork.topology.layers import layers_of
from weftwork.topology.routing import attachments, switch_distances
from weftwork.topology.valleys import climbs_once, is_tiered

if TYPE_CHECKING:
    from weftwork.base.findings import Findings
    from weftwork.spec.fabric import Fabric
    from weftwork.topology.layers import Layers

__all__ = ["RoutingPlan", "has_groups", "planned_routing"]


@dataclass(frozen=True, kw_only=True)
class RoutingPlan:
    """A routing of a fabric.

    Parameters
    ----------
    routing : for the engines, without pins
    name : of `ROUTINGS`
    fabric : whose routes
    """

    routing: Routing
    name: str
    fabric: Fabric = field(compare=False, repr=False)

    @cached_property
    def channels(self) -> int:
        """Virtual channels of each lossless priority; found when they are asked for, since paths are searched."""
        routing = self.routing
        parts = 1 if routing.detour == "never" else 2
        if routing.scheme == "global-hops":
            return 1 + parts + ROUTINGS[self.name].rethinks
        if routing.scheme == "dateline":
            return 2 * parts
        if routing.scheme == "turns":
            return parts
        if routing.scheme == "one":
            return 1
        layers = layers_of(self.fabric, self.fabric.links_at_start, routing)
        if routing.scheme == "valleys":
            return 1 if layers is None else max(1, _most_climbs(self.fabric, layers))
        hops = parts * _diameter(self.fabric) if layers is None else layers.most_switches - 1
        return max(1, hops)


def has_groups(fabric: Fabric) -> bool:
    """Whether the fabric is one of groups that links join, as a dragonfly is."""
    return fabric.direct is not None and GLOBAL in fabric.direct.dimensions and fabric.node_pod is not None


def planned_routing(fabric: Fabric, name: str, findings: Findings, *, paths: int | None = None) -> RoutingPlan:
    """Routes, detours and virtual channels of a name on a fabric.

    Parameters
    ----------
    fabric : all of whose links work
    name : of `ROUTINGS`
    findings : take the reason for which the fabric cannot have it
    paths : of ``k-shortest``; None: the usual number

    Returns
    -------
    the plan; one of shortest paths where the fabric cannot have it
    """
    direct, row = fabric.direct, ROUTINGS[name]
    if row.paths == "up then down":
        plan = RoutingPlan(routing=Routing(up_down=True), name=name, fabric=fabric)
        if direct is None:
            return plan
        text = f"found up-down, but '{fabric.name}' is a direct network, whose links lead neither up nor down"
        findings.wrong("fabric.routing", text, "minimal")
        return plan
    if row.paths == "several":
        scheme: ChannelScheme = "valleys" if is_tiered(fabric) else "hops"
        routing = Routing(paths=paths or USUAL_PATHS, scheme=scheme)
        return RoutingPlan(routing=routing, name=name, fabric=fabric)
    simple = RoutingPlan(routing=Routing(), name=name, fabric=fabric)
    if row.paths == "every shortest" or (row.is_plain_in_trees and (fabric.tree or climbs_once(fabric))):
        return simple
    by_group = has_groups(fabric)
    is_ordered = direct is not None and direct.is_ordered
    if row.in_order and not is_ordered:
        text = f"found dimension-order, but '{fabric.name}' has no dimensions to go through one after the other"
        findings.wrong("fabric.routing", text, "minimal")
        return simple
    if row.rethinks and not by_group:
        text = f"found par, which thinks again within the first group, but '{fabric.name}' has no groups"
        findings.wrong("fabric.routing", text, "ugal")
        return simple
    has_detours = row.detour != "never"
    in_order = is_ordered and (has_detours or row.in_order)
    if by_group:
        scheme = "global-hops"
    elif in_order and direct is not None:
        scheme = "dateline" if direct.link_wraps.any() else "turns"
    else:
        scheme = "hops"
    routing = Routing(
        dimension_order=in_order, fewest_global_hops=by_group, detour=row.detour,
        detour_by_group=by_group and has_detours, scheme=scheme,
    )  # fmt: skip
    return RoutingPlan(routing=routing, name=name, fabric=fabric)


def _diameter(fabric: Fabric) -> int:
    attach_node, _ = attachments(fabric)
    hops = switch_distances(fabric, fabric.links_at_start, attach_node)
    return int(hops[attach_node].max(initial=0))


def _most_climbs(fabric: Fabric, layers: Layers) -> int:
    """How often a path begins to go up, of the path that does so most often."""
    attach_node, _ = attachments(fabric)
    attach, tier, ports = attach_node.astype(np.int64), fabric.node_tier, fabric.ports
    source, goal, _ = np.nonzero(layers.layer_of >= 0)
    layer = layers.layer_of[layers.layer_of >= 0].astype(np.int64)
    node, rises, most = attach[source], np.zeros(len(source), np.bool_), 0
    climbs = np.zeros(len(source), np.int64)
    while len(node):
        port = layers.next_port[layer, node, goal]
        following = ports.node[ports.peer[port]].astype(np.int64)
        up = tier[following] > tier[node]
        climbs += up & ~rises
        most = max(most, int(climbs.max()))
        left = following != attach[goal]
        node, rises, climbs, layer, goal = following[left], up[left], climbs[left], layer[left], goal[left]
    return most
