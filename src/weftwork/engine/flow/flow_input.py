"""The input of the flow engine as plain arrays.

It has a fabric, a job and the costs of a transport. `docs/models/flow-engine.md` says what the numbers mean,
`weftwork.engine.flow.lower` makes it; nothing is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.engine.flow.losses import FlowLosses, no_losses, without_losses
from weftwork.engine.flow.route_rule import RouteRule
from weftwork.engine.rows.declare import column, setting
from weftwork.engine.rows.fabric import INSTANT_ROW, NIC_ROW, PIN_DTYPE, PIN_ROW, SWITCH_ROW
from weftwork.engine.rows.job import AXIS_ROW, COLLECT_ROW, DIGIT_ROW, GPU_ROW, OP_ROW, STREAM_ROW

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.engine.packet_input import RouteTable
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.transport import Transport
    from weftwork.topology.layers import Layers

__all__ = ["FOLDING", "FlowInput", "Mode", "Variant"]

# auto: ranks that are alike run once, or, where too many are not, the critical core; never: every rank runs;
# exact: alike ones alone, however many are left; core: the critical core in any case
FOLDING: Final = ("auto", "never", "exact", "core")


class Mode(IntEnum):
    """Path choice of messages."""

    SPRAY = 0  # over all paths of the routes alike
    HASHED = 1  # one path for each connection, by the hash of its headers at every switch
    DETERMINISTIC = 2  # one path by the destination
    WEIGHTED = 3  # one path by the hash, into the weights of ports


class Variant(IntEnum):
    """Question that a run of an input answers."""

    PLAIN = 0
    IDEAL = 1  # the network takes no time
    FASTEST = 2  # of a critical core: the job cannot end sooner
    SLOWEST = 3  # of a critical core: nor later


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowInput:
    """All input of the flow engine.

    Shapes: N nodes, P ports, R ranks. What has the same name as in `weftwork.engine.packet_input.Plan` is the same.

    Fields that cross into the core have their meaning in `weftwork.engine.rows.flow_run`.

    Attributes
    ----------
    mode : how messages choose their paths
    fold : one of `FOLDING`
    tier_names : what links of the fabric join, such as ``host->leaf``; the last one is that of what is inside servers
    labels, operations : names of the operations' labels and of the rows of ``collects``
    has_infinite_network : the job runs on a network that takes no time: no bytes, no latency of software
    attachment, routes : for ideal times of messages (`weftwork.study.results.ideal`); the engine does not read them
    rule : of routes, and the detours
    layers : of the same tables as ``live``; empty where the routes hold
    node_attachment : (N,), index of the attachment that a node is, or -1; empty without layers
    spreads_ways : every flow takes all ways of its pair of attachments alike, and not one by its entropy
    losses : of ports, and what they cost
    """

    seed: int = field(metadata=setting("of the run", "uint64", part="job"))
    until_ps: int = field(metadata=setting("the run ends before the first event at or after it"))
    mode: Mode = field(metadata=setting("how messages choose their paths", identity="Mode"))
    fold: str
    tolerance: float = field(
        metadata=setting("load of a link that is left unsettled, as a share of its capacity", "float64")
    )
    node_kind: NDArray[np.int8] = field(
        metadata=column("(N,), HOST or SWITCH of weftwork.spec.fabric", by="NodeId", part="fabric")
    )
    node_tier: NDArray[np.int8] = field(metadata=column("(N,), 0: hosts", by="NodeId", part="fabric"))
    node_device: NDArray[np.int32] = field(
        metadata=column("(N,), row of the NICs or switches", by="NodeId", holds="DeviceId", part="fabric")
    )
    port_base: NDArray[np.int64] = field(
        metadata=column("(N + 1,), first port of each node; ports of a node are contiguous", by="NodeId", part="fabric")
    )
    port_node: NDArray[np.int32] = field(
        metadata=column("(P,), node of each port", by="PortId", holds="NodeId", part="fabric")
    )
    port_peer: NDArray[np.int32] = field(
        metadata=column("(P,), far end of each port; -1 without a link", by="PortId", holds="PortId", part="fabric")
    )
    port_rate_bps: NDArray[np.int64] = field(
        metadata=column("(P,), of the direction that leaves the port", by="PortId", part="fabric")
    )
    port_delay_ps: NDArray[np.int64] = field(
        metadata=column("(P,), of the direction that leaves the port", by="PortId", part="fabric")
    )
    switches: NDArray[np.void] = field(
        metadata=column("settings of switches", by="DeviceId", rows=SWITCH_ROW, part="fabric")
    )
    nics: NDArray[np.void] = field(metadata=column("settings of NICs", by="DeviceId", rows=NIC_ROW))
    class_priority: NDArray[np.int64]
    live: NDArray[np.uint8] = field(
        metadata=column(
            "(tables, P), 1: the link of the port is up as far as the table of routes knows; ROUTES takes one of them"
        )
    )
    instants: NDArray[np.void] = field(
        metadata=column("changes of the fabric, ordered by time and then as they are applied", rows=INSTANT_ROW)
    )
    ops: NDArray[np.void] = field(
        metadata=column("operations of the job's programs", by="OpId", rows=OP_ROW, part="job")
    )
    streams: NDArray[np.void] = field(
        metadata=column("streams of the programs, ordered by program", rows=STREAM_ROW, part="job")
    )
    tables: NDArray[np.int64] = field(
        metadata=column("peers and coordinates of ranks that operations look up", part="job")
    )
    digits: NDArray[np.void] = field(metadata=column("terms of the numbers of parts", rows=DIGIT_ROW, part="job"))
    collects: NDArray[np.void] = field(
        metadata=column("collectives; the value of a COLLECT is a row", by="CollectId", rows=COLLECT_ROW, part="job")
    )
    axes: NDArray[np.void] = field(metadata=column("axes of their grids", rows=AXIS_ROW, part="job"))
    rank_program: NDArray[np.int32] = field(
        metadata=column("(R,), program of each rank", by="RankId", holds="ProgramId", part="job")
    )
    program_first_rank: NDArray[np.int64] = field(
        metadata=column(
            "by program, the rank from which its peers and groups count; empty: 0", by="ProgramId", part="job"
        )
    )
    rank_host: NDArray[np.int32] = field(
        metadata=column("(R,), node of each rank", by="RankId", holds="NodeId", part="job")
    )
    rank_ports: NDArray[np.int32] = field(
        metadata=column("(R, K), NIC ports of each rank, the usual one first", holds="PortId", part="job")
    )
    rank_gpu: NDArray[np.void] = field(
        metadata=column("(R,), ports of each rank inside its server", by="RankId", rows=GPU_ROW, part="job")
    )
    rank_factor: NDArray[np.float64] = field(
        metadata=column("(R,), how many times longer a rank computes; empty: 1", by="RankId", part="job")
    )
    tokens: int = field(metadata=setting("of a rank"))
    tier_names: tuple[str, ...]
    tier_of_port: NDArray[np.int32] = field(metadata=column("(P,), tier of each port's link", by="PortId"))
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
    pins: NDArray[np.void] = field(
        default_factory=lambda: np.empty(0, PIN_DTYPE),
        metadata=column("queue pairs whose entropy is given", rows=PIN_ROW, part="job"),
    )
    losses: FlowLosses = field(default_factory=no_losses)

    @property
    def has_losses(self) -> bool:
        """Whether a link loses packets at some time."""
        return len(self.losses.port_loss) > 0

    def loss_bounds(self) -> tuple[FlowInput, FlowInput]:
        """The same run where nothing is lost, and where almost the most is."""
        few = replace(self, losses=no_losses(), instants=without_losses(self.instants))
        return few, replace(self, losses=replace(self.losses, rules=self.losses.most))
