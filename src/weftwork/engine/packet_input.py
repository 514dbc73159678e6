"""The input of both packet engines: plain arrays.

They come from a fabric, a job and a transport. `docs/models/packet-engine.md` says what the numbers mean,
`weftwork.engine.lower` makes it; nothing is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import serialisation_ps
from weftwork.engine.rows.declare import Input, column, flag, members_of, setting, whole
from weftwork.engine.rows.fabric import INSTANT_ROW, NIC_ROW, PIN_ROW, SWITCH_ROW
from weftwork.engine.rows.job import DIGIT_ROW, GPU_ROW, OP_ROW, STREAM_ROW
from weftwork.spec.fabric import SWITCH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from weftwork.policies.interface import Need
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.transport import Transport

__all__ = [
    "DROP_REASONS", "LEAST_WATCH_PS", "PACKET_INPUT", "PAUSE_UNIT_BYTES", "ROUTE_TABLE", "PacketInput", "RouteTable",
    "is_asked",
]  # fmt: skip

PAUSE_UNIT_BYTES: Final = 64  # one quantum is 512 bit times: IEEE 802.3, annex 31B.2
LEAST_WATCH_PS: Final = 100_000_000  # chosen: some 100 windows, so that a look costs nothing
DROP_REASONS: Final = (
    "no_route",
    "link_down",
    "link_loss",
    "corrupted",
    "buffer_full",
    "egress_threshold",
    "headroom_full",
    "receive_buffer",
)


def is_asked(need: Need, policies: Iterable[LoadedPolicy | None]) -> bool:
    """Whether any policy has a need."""
    return any(need in policy.plugin.needs for policy in policies if policy is not None)


@dataclass(frozen=True, kw_only=True, slots=True)
class RouteTable:
    """Next hops at one time; the fields have their shape and meaning in `ROUTE_TABLE`."""

    group_of: NDArray[np.int32] = field(
        metadata=column("(nodes, attachments), candidate group, -1 unreachable, -2 this node is the attachment")
    )
    group_ptr: NDArray[np.int64] = field(metadata=column("(groups + 1,), first candidate of each group"))
    group_ports: NDArray[np.int32] = field(metadata=column("global ids of the candidates, ascending within a group"))
    group_weights: NDArray[np.int32] = field(metadata=column("weight of each candidate"))
    second_of: NDArray[np.int32] = field(
        default_factory=lambda: np.empty((0, 0), np.int32),
        metadata=column(
            "(nodes, attachments), group of the ports to other switches from which an attachment can be reached and "
            "that are on no shortest path, -1: none; (0, 0) where no policy asks"
        ),
    )
    distance: NDArray[np.int16] = field(
        default_factory=lambda: np.empty((0, 0), np.int16),
        metadata=column("(nodes, attachments), hops over switches, -1 unreachable; (0, 0) where no policy asks"),
    )
    layer_group: NDArray[np.int32] = field(
        default_factory=lambda: np.empty((0, 0, 0), np.int32),
        metadata=column(
            "(layers, nodes, attachments), candidate group in each layer, -1: the shortest paths hold; "
            "(0, 0, 0) without layers"
        ),
    )
    layer_of: NDArray[np.int32] = field(
        default_factory=lambda: np.empty((0, 0, 0), np.int32),
        metadata=column(
            "(attachments, attachments, ways), layer of each way from the first to the second, -1: the shortest paths; "
            "ways are chosen by entropy"
        ),
    )
    pinned_ways: int = field(
        default=0,
        metadata=setting("how many of the ways, the first ones, are chosen by entropies below this number alone"),
    )

    @property
    def ways(self) -> int:
        """Ways of each pair of attachments."""
        return int(self.layer_of.shape[2])


@dataclass(frozen=True, kw_only=True, slots=True)
class PacketInput:
    """All input of a packet engine.

    The fields have their meaning in `PACKET_INPUT`. Shapes: N nodes, P ports, C classes, R ranks, A attachments.

    Attributes
    ----------
    routes : tables; the first holds from time 0
    transport : sizes and recovery
    congestion_control, path_selection, port_selection : policies; no path selection means constant entropy
    """

    seed: int = field(metadata=setting("of the run", "uint64"))
    until_ps: int = field(
        metadata=setting("the run ends before the first event at or after it; NEVER_PS: at quiescence")
    )
    node_kind: NDArray[np.int8] = field(metadata=column("(N,), HOST or SWITCH of weftwork.spec.fabric", by="NodeId"))
    node_device: NDArray[np.int32] = field(
        metadata=column("(N,), row of the NICs or switches", by="NodeId", holds="DeviceId")
    )
    port_base: NDArray[np.int64] = field(
        metadata=column("(N + 1,), first port of each node; ports of a node are contiguous", by="NodeId")
    )
    port_node: NDArray[np.int32] = field(metadata=column("(P,), node of each port", by="PortId", holds="NodeId"))
    port_peer: NDArray[np.int32] = field(
        metadata=column("(P,), far end of each port; -1 without a link", by="PortId", holds="PortId")
    )
    port_rate_bps: NDArray[np.int64] = field(
        metadata=column("(P,), of the direction that leaves the port", by="PortId")
    )
    port_delay_ps: NDArray[np.int64] = field(
        metadata=column("(P,), of the direction that leaves the port", by="PortId")
    )
    port_loss: NDArray[np.float64] = field(metadata=column("(P,), probability", by="PortId"))
    port_corruption: NDArray[np.float64] = field(metadata=column("(P,), probability", by="PortId"))
    port_headroom_bytes: NDArray[np.int64] = field(
        metadata=column("(P,), of each lossless class whose ingress is the port", by="PortId")
    )
    port_kmin_bytes: NDArray[np.int64] = field(
        metadata=column("(P,), ECN threshold of a switch's egress; 0 at hosts", by="PortId")
    )
    port_kmax_bytes: NDArray[np.int64] = field(
        metadata=column("(P,), ECN threshold of a switch's egress; 0 at hosts", by="PortId")
    )
    port_credit_bytes: NDArray[np.int64] = field(
        metadata=column("(P,), room of each lane whose ingress is the port; 0 without link credits", by="PortId")
    )
    shared_bytes: NDArray[np.int64] = field(
        metadata=column("(N,), size of the shared part of a switch's buffer", by="NodeId")
    )
    node_tier: NDArray[np.int64] = field(metadata=column("(N,), 0: hosts", by="NodeId"))
    node_group: NDArray[np.int64] = field(metadata=column("(N,), pod or group; -1: none", by="NodeId"))
    attachment: NDArray[np.int32] = field(
        metadata=column("(P,), attachment for the port of a host, else -1", by="PortId", holds="AttachmentId")
    )
    destination_number: NDArray[np.int64] = field(
        metadata=column("(P,), for a port selection by destination; see weftwork.topology.digits", by="PortId")
    )
    port_stride: NDArray[np.int64] = field(
        metadata=column("(P,), for a port selection by destination; see weftwork.topology.digits", by="PortId")
    )
    attach_node: NDArray[np.int32] = field(metadata=column("(A,), node of each attachment"))
    port_kind: NDArray[np.int64] = field(
        metadata=column("(P,), kind of the port's link, as the channel rule has it; -1: a link of a host", by="PortId")
    )
    channel_rule: NDArray[np.int8] = field(
        metadata=column(
            "(2, kinds + 1, virtual channels, kinds), next virtual channel by whether a new part of the way begins, "
            "kind of the link in (links of hosts first), channel held and kind of the link out"
        )
    )
    detour_order: NDArray[np.int32] = field(
        metadata=column("(A,), attachments that a detour may go by, those of a group one after the other")
    )
    detour_base: NDArray[np.int64] = field(
        metadata=column("(groups + 1,), where each group of the detour order begins")
    )
    detour_group: NDArray[np.int32] = field(metadata=column("(A,), group of each attachment"))
    detour_by_group: bool = field(
        metadata=setting("detours avoid the group of the destination too; else only the source's", "bool")
    )
    switches: NDArray[np.void] = field(metadata=column("settings of switches", by="DeviceId", rows=SWITCH_ROW))
    nics: NDArray[np.void] = field(metadata=column("settings of NICs", by="DeviceId", rows=NIC_ROW))
    class_priority: NDArray[np.int64] = field(
        metadata=column("(C,), ascending priorities in use, once for each virtual channel", by="TrafficClass")
    )
    class_lossless: NDArray[np.int64] = field(metadata=column("(C,), 1: flow control", by="TrafficClass"))
    control_class: int = field(
        metadata=setting("class of ACK, NAK, CNP, CREDIT, REQUEST and PROBE", "int32", identity="TrafficClass")
    )
    trim_class: int = field(metadata=setting("class of packets that were cut", "int32", identity="TrafficClass"))
    virtual_channels: int = field(metadata=setting("classes of one priority, which follow each other", "int32"))
    fabric_base_rtt_ps: int = field(
        metadata=setting("longest base RTT of any two NIC ports, 0 where no policy reads it")
    )
    routes: tuple[RouteTable, ...]
    instants: NDArray[np.void] = field(
        metadata=column("changes of the fabric, ordered by time and then as they are applied", rows=INSTANT_ROW)
    )
    ops: NDArray[np.void] = field(metadata=column("operations of the job's programs", rows=OP_ROW))
    streams: NDArray[np.void] = field(
        metadata=column("streams of the programs; those of one program are contiguous and in order", rows=STREAM_ROW)
    )
    tables: NDArray[np.int64] = field(metadata=column("peers and coordinates of ranks that operations look up"))
    digits: NDArray[np.void] = field(metadata=column("terms of the numbers of parts", rows=DIGIT_ROW))
    rank_program: NDArray[np.int32] = field(
        metadata=column("(R,), program of each rank", by="RankId", holds="ProgramId")
    )
    rank_ports: NDArray[np.int32] = field(
        metadata=column("(R, K), NIC ports of each rank, the usual one first", holds="PortId")
    )
    rank_gpu: NDArray[np.void] = field(
        metadata=column("(R,), ports of each rank inside its server", by="RankId", rows=GPU_ROW)
    )
    tokens: int = field(metadata=setting("of a rank"))
    has_receives: bool = field(metadata=setting("any program has a Receive", "bool"))
    pins: NDArray[np.void] = field(
        metadata=column("queue pairs that take a pinned way, as their entropy is given; one row for each", rows=PIN_ROW)
    )
    transport: Transport
    congestion_control: LoadedPolicy
    path_selection: LoadedPolicy | None
    port_selection: LoadedPolicy

    @property
    def link_kinds(self) -> int:
        """Kinds of links between switches."""
        return int(self.channel_rule.shape[3])

    @property
    def has_telemetry(self) -> bool:
        """Whether a policy of the sender needs telemetry of switches."""
        return self._is_asked("telemetry")

    @property
    def has_path_load(self) -> bool:
        """Whether a policy of the sender needs the path load.

        It is the load of the busiest port on a path.
        """
        return self._is_asked("path-load")

    @property
    def echoes_time(self) -> bool:
        """Whether packets carry their departure time.

        ACKs and NAKs echo it.
        """
        return self._is_asked("rtt")

    @property
    def echoes_entropy(self) -> bool:
        """Whether ACKs and NAKs echo the entropy of their packet."""
        return self._is_asked("entropy")

    def _is_asked(self, need: Need) -> bool:
        return is_asked(need, (self.congestion_control, self.path_selection))

    @property
    def watch_ps(self) -> int:
        """Time between two checks for a deadlock.

        It is the longest pause of a switch, and at least `LEAST_WATCH_PS`.
        """
        quanta = np.zeros(len(self.port_node), np.int64)
        of_switch = (self.node_kind[self.port_node] == SWITCH) & (self.port_peer >= 0)
        quanta[of_switch] = self.switches["pause_quanta"][self.node_device[self.port_node[of_switch]]]
        pauses = np.unique(np.stack([quanta, self.port_rate_bps], axis=1)[of_switch], axis=0).tolist()
        longest_ps = (serialisation_ps(PAUSE_UNIT_BYTES * units, rate_bps) for units, rate_bps in pauses)
        return max(LEAST_WATCH_PS, *longest_ps, 0)


ROUTE_TABLE: Final = Input(
    struct="RouteTable",
    text="Next hops at one time.",
    members=(*members_of(RouteTable), whole("ways", "of each pair of attachments")),
)
PACKET_INPUT: Final = Input(
    struct="PacketInputRows",
    text="What crosses of weftwork.engine.packet_input.PacketInput.",
    members=(
        *members_of(PacketInput),
        whole("link_kinds", "kinds of links between switches in the channel rule"),
        flag("has_telemetry", "a policy of the sender needs telemetry of switches"),
        flag("has_path_load", "a policy of the sender needs the load of the busiest port on a path"),
        flag("echoes_time", "packets carry their departure time, which ACKs and NAKs echo"),
        flag("echoes_entropy", "ACKs and NAKs echo the entropy of their packet"),
        flag("extended", "a policy reads what only an extended packet carries"),
        flag("wide", "a policy reads or writes what only a wide packet carries"),
        flag("keeps_segments", "a control sends several packets back to back"),
        whole("watch_ps", "between two checks for a deadlock"),
        whole("stop_before_call", "of a step: the run stops there with its records; 0: nowhere"),
    ),
)
