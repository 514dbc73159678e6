"""Paths of flows between NIC ports: links, and load of each link.

Routes are all shortest paths, those without a valley, or layers of paths, as in the packet engine; a mode says how
switches choose among them.
The work is done in `native/flow/router.cpp`; `docs/models/flow-engine-paths.md` says what comes out.
Leaves out: adaptive routing, and links inside servers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np

from weftwork.base.errors import ConfigError, Mistake, UsageError
from weftwork.engine import _native
from weftwork.engine.columns import column
from weftwork.engine.flow.flow_input import Mode
from weftwork.engine.flow.route_rule import route_rule
from weftwork.engine.lower import port_delays_ps, switch_rows
from weftwork.engine.rows.flow_outcome import FLOW_ENDS_DTYPE, HOP_DTYPE, ROUTE_DTYPE
from weftwork.engine.rows.flow_run import FLOW_FABRIC, FLOW_LAYER, FLOW_LAYERS, FLOW_ROUTER, ROUTE_RULE
from weftwork.spec.routing import Routing
from weftwork.topology.layers import layers_of
from weftwork.topology.routing import attachments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.topology.layers import Layers

__all__ = ["MODES", "FlowPaths", "Paths", "RoutingMode", "fabric_arrays", "node_attachments", "raw_layers"]

RoutingMode = Literal["spray", "hashed", "deterministic", "weighted"]
MODES: Final[tuple[RoutingMode, ...]] = get_args(RoutingMode)  # names of weftwork.engine.flow.flow_input.Mode

MOST_STEPS: Final = 6_000_000_000  # chosen: about a minute, as native/flow/router.hpp


@dataclass(frozen=True, kw_only=True, slots=True)
class Paths:
    """Paths of some flows.

    Attributes
    ----------
    hop_ptr : shape (flows + 1,), where the hops of each flow begin
    hops : `HOP_DTYPE`; a link is the port that sends on it, or the port that stands for a bundle of links
    about : shape (flows,), `ROUTE_DTYPE`
    """

    hop_ptr: NDArray[np.int64]
    hops: NDArray[np.void]
    about: NDArray[np.void]


def fabric_arrays(fabric: Fabric) -> dict[str, NDArray[np.generic]]:
    """Fabric arrays for a router.

    They have the names of `FLOW_FABRIC`.
    """
    ports = fabric.ports
    switches, node_device = switch_rows(fabric)
    return {
        "node_kind": np.ascontiguousarray(fabric.node_kind, np.int8),
        "node_tier": np.ascontiguousarray(fabric.node_tier, np.int8),
        "node_device": node_device,
        "port_base": ports.base,
        "port_node": ports.node,
        "port_peer": ports.peer,
        "port_rate_bps": np.ascontiguousarray(fabric.links["rate_bps"][ports.link]),
        "port_delay_ps": port_delays_ps(fabric),
        "switches": switches,
    }


def node_attachments(fabric: Fabric) -> NDArray[np.int32]:
    """Attachment index of each node, or -1."""
    attach_node, _ = attachments(fabric)
    found = np.full(len(fabric.node_kind), -1, np.int32)
    found[attach_node] = np.arange(len(attach_node), dtype=np.int32)
    return found


def raw_layers(
    layers: Sequence[Layers], node_attachment: NDArray[np.int32], *, spreads_ways: bool
) -> dict[str, object]:
    """Layers of routes, as the native core takes them.

    The rule of routes holds where layers leave the route open; see flow/layers.hpp.

    Parameters
    ----------
    layers : by table of routes; empty where the rule holds for all
    node_attachment : of `node_attachments`
    spreads_ways : every flow takes all ways of its pair of attachments alike
    """
    tables = [FLOW_LAYER.values(each, {"ways": each.layer_of.shape[2]}) for each in layers]
    attachments = int(node_attachment.max(initial=-1)) + 1
    others = {"node_attachment": node_attachment, "attachments": attachments, "spreads_ways": spreads_ways}
    return {"layers": tables} | FLOW_LAYERS.values(None, others)


class FlowPaths:
    """The router of a fabric.

    Invariant: it follows the links given last, all of them at first.
    """

    def __init__(
        self,
        fabric: Fabric,
        mode: RoutingMode,
        *,
        most_steps: int = MOST_STEPS,
        routing: Routing | None = None,
        spreads_ways: bool = False,
    ) -> None:
        """Find the tiers of a fabric, and its bundles for ``spray``.

        Parameters
        ----------
        fabric, mode : whose routes, and how switches choose among them
        most_steps : links that a search for destinations may look at, where the links that are up form no tiers
        routing : asks for paths besides the shortest ones, or in their place; None: for none
        spreads_ways : with such paths, a flow takes all of its pair of switches alike, and not one by its entropy

        Raises
        ------
        ConfigError : the fabric has no tiers and is too large to be searched
        """
        self.fabric = fabric
        self.mode = mode
        self._most_steps = most_steps
        self._routing = Routing() if routing is None else routing
        self._spreads_ways = spreads_ways
        self._arrays = FLOW_FABRIC.values(None, fabric_arrays(fabric))
        try:
            self._router = self._made(fabric.links_at_start)
        except _native.LimitError as refused:
            raise ConfigError("fabric", [Mistake(path="fabric", text=str(refused))]) from refused

    def _made(self, link_up: NDArray[np.bool_]) -> _native.FlowRouter:
        """A router over all links, with layers over some links."""
        found = layers_of(self.fabric, link_up, self._routing)
        known = node_attachments(self.fabric) if found else np.empty(0, np.int32)
        raw = raw_layers([found] if found else [], known, spreads_ways=self._spreads_ways)
        raw |= ROUTE_RULE.values(route_rule(self.fabric, self._routing))
        raw |= FLOW_ROUTER.values(None, {"mode": Mode[self.mode.upper()], "most_steps": self._most_steps})
        return _native.FlowRouter(self._arrays | raw)

    def use(self, link_up: NDArray[np.bool_]) -> None:
        """Route over only these links.

        Parameters
        ----------
        link_up : shape (links,)

        Raises
        ------
        UsageError : ``link_up`` has not one entry per link
        ConfigError : the fabric is large, and the links that are left do not form tiers
        """
        if np.shape(link_up) != (len(self.fabric.links),):
            raise UsageError(f"link_up has shape {np.shape(link_up)}, wanted ({len(self.fabric.links)},)")
        live = np.ascontiguousarray(link_up[self.fabric.ports.link], np.uint8)
        try:
            if self._routing.has_layers:
                self._router = self._made(link_up)
            self._router.use(live)
        except _native.LimitError as refused:
            raise ConfigError("fabric", [Mistake(path="faults", text=str(refused))]) from refused

    def paths(
        self,
        source_ports: NDArray[np.integer],
        destination_ports: NDArray[np.integer],
        *,
        entropy: NDArray[np.integer] | int = 0,
        destination_qp: NDArray[np.integer] | int = 0,
        queue_pair_hash: NDArray[np.integer] | int = 0,
    ) -> Paths:
        """Find the paths of flows.

        Parameters
        ----------
        source_ports, destination_ports : shape (flows,), global ids of NIC ports, two different ones for each flow
        entropy, destination_qp : of each flow, what the switches' hash sees; only ``hashed`` reads them
        queue_pair_hash : of each flow, what draws its detour; only flows of one path read it

        Raises
        ------
        UsageError : ports that do not belong to hosts, or a flow from a port to itself
        """
        flows = np.empty(len(source_ports), FLOW_ENDS_DTYPE)
        flows["source_port"], flows["destination_port"] = source_ports, destination_ports
        flows["entropy"], flows["destination_qp"], flows["queue_pair_hash"] = entropy, destination_qp, queue_pair_hash
        ends = np.stack([flows["source_port"], flows["destination_port"]], axis=1)
        if len(flows) and not (ends.min() >= 0 and ends.max() < len(self.fabric.ports.node)):
            raise UsageError(f"found ports {ends.min()} to {ends.max()}, wanted 0 to {len(self.fabric.ports.node) - 1}")
        if self.fabric.node_kind[self.fabric.ports.node[ends]].any() or (ends[:, 0] == ends[:, 1]).any():
            raise UsageError("wanted flows between two different NIC ports")
        found = self._router.paths({"flows": column(flows)})
        return Paths(
            hop_ptr=found["hop_ptr"].view(np.int64),
            hops=found["hops"].view(HOP_DTYPE),
            about=found["about"].view(ROUTE_DTYPE),
        )

    def bundles(self) -> NDArray[np.int32]:
        """Representative port of each port's bundle.

        All links of a bundle carry the same bytes.

        Returns
        -------
        shape (ports,)
        """
        found: NDArray[np.int32] = self._router.bundles().view(np.int32)
        return found

    def port_loads(self, paths: Paths, amounts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Load of every port if each flow sends its amount.

        Parameters
        ----------
        paths : of `paths`, while the router follows the same links
        amounts : shape (flows,)

        Returns
        -------
        shape (ports,), in the unit of the amounts
        """
        each = np.repeat(amounts, np.diff(paths.hop_ptr)) * paths.hops["weight"]
        loads = np.zeros(len(self.fabric.ports.node), np.float64)
        np.add.at(loads, paths.hops["link"], each)
        return loads[self.bundles()]
