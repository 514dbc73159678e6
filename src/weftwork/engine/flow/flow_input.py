"""The input of the flow engine as plain arrays.

It has a fabric, a job and the costs of a transport. `docs/models/flow-engine.md` says what the numbers mean,
`weftwork.engine.flow.lower` makes it; nothing is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.engine.flow.route_rule import RouteRule
from weftwork.engine.packet_input import PIN_DTYPE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.engine.packet_input import RouteTable
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.transport import Transport
    from weftwork.topology.layers import Layers

__all__ = ["FOLDING", "FlowInput", "Mode"]

# auto: ranks that are alike run once, or, where too many are not, the critical core; never: every rank runs;
# exact: alike ones alone, however many are left; core: the critical core in any case
FOLDING: Final = ("auto", "never", "exact", "core")


class Mode(IntEnum):
    """Path choice of messages."""

    SPRAY = 0  # over all paths of the routes alike
    HASHED = 1  # one path for each connection, by the hash of its headers at every switch
    DETERMINISTIC = 2  # one path by the destination
    WEIGHTED = 3  # one path by the hash, into the weights of ports


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowInput:
    """All input of the flow engine.

    Shapes: N nodes, P ports, R ranks. What has the same name as in `weftwork.engine.packet_input.Plan` is the same.

    Attributes
    ----------
    mode : how messages choose their paths
    fold : one of `FOLDING`
    tier_names, tier_of_port : what links of the fabric join, such as ``host->leaf``, and (P,) which of them a port is;
        the last name is that of what is inside servers
    tolerance : load of a link that is left unsettled, as a share of its capacity
    labels, operations : names of `OP_DTYPE.label` and of the rows of ``collects``
    collects, axes : `COLLECT_DTYPE` and `AXIS_DTYPE`
    program_first_rank : by program, the rank from which its peers and groups count
    rank_host : (R,), node of each rank
    live : (tables, P), whether the link of each port is up as far as a table of routes knows; ROUTES takes one of them
    rank_factor : (R,), how many times longer a rank computes
    has_infinite_network : the job runs on a network that takes no time: no bytes, no latency of software
    attachment, routes : for ideal times of messages (`weftwork.study.results.ideal`); the engine does not read them
    rule : of routes, and the detours
    layers : of the same tables as ``live``; empty where the routes hold
    node_attachment : (N,), index of the attachment that a node is, or -1; empty without layers
    spreads_ways : every flow takes all ways of its pair of attachments alike, and not one by its entropy
    pins : `PIN_DTYPE`
    """

    seed: int
    until_ps: int
    mode: Mode
    fold: str
    tolerance: float
    node_kind: NDArray[np.int8]
    node_tier: NDArray[np.int8]
    node_device: NDArray[np.int32]
    port_base: NDArray[np.int64]
    port_node: NDArray[np.int32]
    port_peer: NDArray[np.int32]
    port_rate_bps: NDArray[np.int64]
    port_delay_ps: NDArray[np.int64]
    switches: NDArray[np.void]
    nics: NDArray[np.void]
    class_priority: NDArray[np.int64]
    live: NDArray[np.uint8]
    instants: NDArray[np.void]
    ops: NDArray[np.void]
    streams: NDArray[np.void]
    tables: NDArray[np.int64]
    digits: NDArray[np.void]
    collects: NDArray[np.void]
    axes: NDArray[np.void]
    rank_program: NDArray[np.int32]
    program_first_rank: NDArray[np.int64]
    rank_host: NDArray[np.int32]
    rank_ports: NDArray[np.int32]
    rank_gpu: NDArray[np.void]
    rank_factor: NDArray[np.float64]
    tokens: int
    tier_names: tuple[str, ...]
    tier_of_port: NDArray[np.int32]
    labels: tuple[str, ...]
    operations: tuple[str, ...]
    transport: Transport
    path_selection: LoadedPolicy | None
    port_selection: LoadedPolicy
    attachment: NDArray[np.int32]
    routes: tuple[RouteTable, ...]
    has_infinite_network: bool = False
    rule: RouteRule = field(default_factory=RouteRule)
    layers: tuple[Layers, ...] = ()
    node_attachment: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    spreads_ways: bool = False
    pins: NDArray[np.void] = field(default_factory=lambda: np.empty(0, PIN_DTYPE))
