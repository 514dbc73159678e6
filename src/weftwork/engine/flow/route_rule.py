"""The rule of routes and the detours of the flow engine, as plain arrays.

Source: `weftwork.topology.routing` has the rules; `weftwork.engine.lower.detour_groups` has the intermediates.
Leaves out: paths in layers (`weftwork.engine.flow.paths`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from weftwork.engine.lower import detour_groups
from weftwork.engine.rows.declare import column, setting
from weftwork.spec.fabric_direct import GLOBAL
from weftwork.topology.routing import attachments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.routing import Routing

__all__ = ["RouteRule", "route_rule"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RouteRule:
    """The rule of routes of a run.

    Shapes: N nodes, P ports, A attachments. Arrays are empty where no route depends on them.

    The fields have their meaning in `weftwork.engine.rows.flow_run.ROUTE_RULE`.
    """

    up_down: bool = field(default=False, metadata=setting("as weftwork.spec.routing.Routing", "bool"))
    dimension_order: bool = field(default=False, metadata=setting("as weftwork.spec.routing.Routing", "bool"))
    fewest_global_hops: bool = field(default=False, metadata=setting("as weftwork.spec.routing.Routing", "bool"))
    port_dimension: NDArray[np.int8] = field(
        default_factory=lambda: np.empty(0, np.int8),
        metadata=column("(P,), dimension of each port's link", by="PortId"),
    )
    global_dimension: int = field(
        default=-2, metadata=setting("the dimension of links between groups; -2: there are none")
    )
    detour_order: NDArray[np.int32] = field(
        default_factory=lambda: np.empty(0, np.int32),
        metadata=column("(A,), attachments that a detour may go by, those of a group one after the other"),
    )
    detour_base: NDArray[np.int64] = field(
        default_factory=lambda: np.empty(0, np.int64),
        metadata=column("(groups + 1,), where each group of the detour order begins"),
    )
    detour_group: NDArray[np.int32] = field(
        default_factory=lambda: np.empty(0, np.int32), metadata=column("(A,), group of each attachment")
    )
    detour_by_group: bool = field(
        default=False,
        metadata=setting("detours avoid the group of the destination too; else only the source's", "bool"),
    )
    adapts: bool = field(
        default=False,
        metadata=setting(
            "flows divide themselves between shortest paths and detours, in place of detouring whole", "bool"
        ),
    )
    node_group: NDArray[np.int32] = field(
        default_factory=lambda: np.empty(0, np.int32),
        metadata=column("(N,), group of each switch, where detours turn at the first switch of a group", by="NodeId"),
    )


def route_rule(fabric: Fabric, routing: Routing) -> RouteRule:
    """The rule of a routing on a fabric.

    Parameters
    ----------
    fabric : a direct network, where the routing asks for dimensions or groups
    routing : whose rule and detours
    """
    direct, ports = fabric.direct, fabric.ports
    dimension, global_dimension = np.empty(0, np.int8), -2
    if direct is not None and (routing.dimension_order or routing.fewest_global_hops):
        dimension = np.ascontiguousarray(direct.link_dimension[ports.link], np.int8)
        if GLOBAL in direct.dimensions:
            global_dimension = direct.dimensions.index(GLOBAL)
    rule: dict[str, Any] = {
        "up_down": routing.up_down,
        "dimension_order": routing.dimension_order,
        "fewest_global_hops": routing.fewest_global_hops,
        "port_dimension": dimension,
        "global_dimension": global_dimension,
    }
    if routing.detour == "never":
        return RouteRule(**rule)
    attach_node, _ = attachments(fabric)
    groups = detour_groups(fabric, attach_node, by_group=routing.detour_by_group)
    node_group = np.empty(0, np.int32)
    if routing.detour_by_group and fabric.node_pod is not None:
        node_group = np.ascontiguousarray(fabric.node_pod, np.int32)
    adapts = routing.detour == "adaptive"
    return RouteRule(**rule, **groups, detour_by_group=routing.detour_by_group, adapts=adapts, node_group=node_group)
