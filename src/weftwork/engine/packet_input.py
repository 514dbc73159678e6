"""The input of both packet engines: plain arrays.

They come from a fabric, a job and a transport. `docs/models/packet-engine.md` says what the numbers mean,
`weftwork.engine.lower` makes it; nothing is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import serialisation_ps
from weftwork.spec.fabric import SWITCH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from weftwork.policies.interface import Need
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.transport import Transport

__all__ = [
    "AXIS_DTYPE", "COLLECT_DTYPE", "DIGIT_DTYPE", "DROP_REASONS", "GPU_DTYPE", "INSTANT_DTYPE",
    "LEAST_WATCH_PS", "NIC_DTYPE", "OP_DTYPE", "PAUSE_UNIT_BYTES", "PIN_DTYPE", "STREAM_DTYPE", "SWITCH_DTYPE",
    "HashAlgorithm", "HashField", "Instant", "Op", "PacketInput", "RouteTable", "Rule", "is_asked",
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


class Op(IntEnum):
    """Codes of `OP_DTYPE.code`."""

    STOP = 0
    COMPUTE = 1  # value: duration_ps
    AT = 2  # value: at_ps
    SEND = 3
    RECEIVE = 4
    WAIT = 5
    NOTIFY = 6  # value: token, after_ps
    AWAIT = 7  # value: token
    MILESTONE = 8  # value: name
    LOOP = 9  # value: count, target: index after the matching END
    END = 10  # target: index of the first operation of the body
    COLLECT = 11  # value: row of COLLECT_DTYPE; only for the flow engine


class Rule(IntEnum):
    """Codes of `OP_DTYPE.rule`; see `weftwork.spec.job.Peer`."""

    SHIFT = 0
    XOR = 1
    TABLE = 2
    RANK = 3


OP_DTYPE: Final = np.dtype(
    [
        ("code", np.int64),
        ("value", np.int64),
        ("target", np.int64),
        ("rule", np.int64),
        ("stride", np.int64),
        ("size", np.int64),  # of the group
        (
            "members",
            np.int64,
        ),  # -1, or index in PacketInput.tables: coordinate of each rank, then rank of each coordinate
        ("shift", np.int64),
        ("step", np.int64),
        ("table", np.int64),  # TABLE: index of the first entry in PacketInput.tables, one entry per rank
        ("total_bytes", np.int64),
        ("parts", np.int64),
        ("part_offset", np.int64),
        ("first_digit", np.int64),  # in PacketInput.digits
        ("digits", np.int64),  # how many
        ("span", np.int64),
        ("span_stride", np.int64),
        ("copies", np.int64),
        ("channel", np.int64),
        ("data_class", np.int64),  # class index of the message's packets
        ("nic", np.int64),  # column of PacketInput.rank_ports
        ("peer_rail", np.int64),  # 1: the receiver's port numbers at both ends
        ("after_ps", np.int64),
        ("label", np.int64),  # what the time goes to, -1: nothing in particular; only the flow engine reads it
    ]
)

DIGIT_DTYPE: Final = np.dtype(
    [
        ("rule", np.int64),  # SHIFT or XOR
        ("stride", np.int64),
        ("size", np.int64),
        ("members", np.int64),  # as OP_DTYPE.members
        ("shift", np.int64),
        ("step", np.int64),
        ("weight", np.int64),
    ]
)

COLLECT_DTYPE: Final = np.dtype(  # of `Op.COLLECT`, whose value is a row of it; only the flow engine reads it
    [
        ("first_axis", np.int64),  # in FlatJob.axes
        ("axes", np.int64),  # how many
        ("pattern", np.int64),  # 0 ring, 1 all-to-all
        ("amount_bytes", np.int64),
        ("size_bytes", np.int64),
        ("overhead_ps", np.int64),
        ("local_efficiency", np.float64),
        ("network_efficiency", np.float64),
        ("network_share", np.float64),
        ("queue_pairs", np.int64),
    ]
)
AXIS_DTYPE: Final = np.dtype([("stride", np.int64), ("size", np.int64)])

STREAM_DTYPE: Final = np.dtype([("rank_program", np.int64), ("first_op", np.int64)])  # ordered by program


class Instant(IntEnum):
    """Codes of `INSTANT_DTYPE.code`."""

    LINK_DOWN = 0
    LINK_UP = 1
    RATE = 2
    ROUTES = 3
    LOSS = 4
    HOST_RATE = 5
    FAILOVER = 6


INSTANT_DTYPE: Final = np.dtype(
    [
        ("at_ps", np.int64),
        ("code", np.int64),
        ("port", np.int64),  # the lower port id of the link; HOST_RATE: the NIC port
        # RATE, HOST_RATE: rate_bps; ROUTES: index into PacketInput.routes; LOSS: probability in parts of 10^9
        ("value", np.int64),
    ]
)


class HashAlgorithm(IntEnum):
    """Codes of ``SWITCH_DTYPE.hash_algorithm``."""

    CRC32 = 0
    CRC32C = 1
    CRC16_CCITT = 2
    XOR = 3
    MIX = 4


class HashField(IntEnum):
    """Bits of ``SWITCH_DTYPE.hash_fields``, in the order of concatenation."""

    SRC_IP = 1
    DST_IP = 2
    PROTOCOL = 4
    SRC_PORT = 8
    DST_PORT = 16
    IN_PORT = 32
    DESTINATION_QP = 64


SWITCH_DTYPE: Final = np.dtype(
    [
        ("reserve_bytes", np.int64),
        ("alpha", np.float64),
        ("egress_alpha", np.float64),
        ("xon_offset_bytes", np.int64),
        ("pause_quanta", np.int64),
        ("pmax", np.float64),
        ("mark_at_dequeue", np.int64),
        ("hash_algorithm", np.int64),
        ("hash_seed", np.int64),
        ("hash_offset", np.int64),
        ("hash_fields", np.int64),
        ("telemetry", np.int64),
        ("weight", np.int64, (8,)),  # by class index
    ]
)

NIC_DTYPE: Final = np.dtype(
    [
        ("pcie_rate_bps", np.int64),
        ("pcie_latency_ps", np.int64),
        ("receive_buffer_bytes", np.int64),
        ("xoff_bytes", np.int64),
        ("xon_bytes", np.int64),
        ("pause_quanta", np.int64),
    ]
)

GPU_DTYPE: Final = np.dtype(  # one row per rank: its ports inside the server
    [
        ("nvlink_domain", np.int64),  # NVLink domain, unique in its server; -1: none
        ("nvlink_rate_bps", np.int64),
        ("nvlink_latency_ps", np.int64),
        ("pcie_rate_bps", np.int64),
        ("pcie_latency_ps", np.int64),
        ("slice_bytes", np.int64),
    ]
)


PIN_DTYPE: Final = np.dtype(
    [
        ("source", np.int64),  # rank
        ("destination", np.int64),  # rank
        ("channel", np.int64),  # -1: every one that has no row of its own
        ("entropy", np.int64),  # of the queue pair
    ]
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RouteTable:
    """Next hops at one time.

    Attributes
    ----------
    group_of : shape (nodes, attachments), int32: candidate group, -1 unreachable, -2 this node is the attachment
    group_ptr : shape (groups + 1,), int64
    group_ports : int32, global ids of the candidate ports, ascending within a group
    group_weights : int32, weight of each candidate
    second_of : shape (nodes, attachments), int32: group of the ports to other switches from which an attachment can be
        reached and that are on no shortest path, -1: none; shape (0, 0) where no policy asks
    distance : shape (nodes, attachments), int16: hops over switches, -1 unreachable; shape (0, 0) where no policy asks
    layer_group : shape (layers, nodes, attachments), int32: candidate group in each layer, -1: the shortest paths hold
    layer_of : shape (attachments, attachments, ways), int32: layer of each way from the first to the second, -1: the
        shortest paths; ways are chosen by entropy
    pinned_ways : how many of the ways, the first ones, are chosen by entropies below this number alone
    """

    group_of: NDArray[np.int32]
    group_ptr: NDArray[np.int64]
    group_ports: NDArray[np.int32]
    group_weights: NDArray[np.int32]
    second_of: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 0), np.int32))
    distance: NDArray[np.int16] = field(default_factory=lambda: np.empty((0, 0), np.int16))
    layer_group: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 0, 0), np.int32))
    layer_of: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 0, 0), np.int32))
    pinned_ways: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PacketInput:
    """All input of a packet engine.

    Shapes: N nodes, P ports, C classes, R ranks.

    Attributes
    ----------
    seed, until_ps : the run's seed; the run ends before the first event at or after ``until_ps`` (NEVER_PS: quiescence)
    node_kind, node_device : (N,), `weftwork.spec.fabric.HOST` or `SWITCH`; row of ``nics`` or ``switches``
    port_base : (N + 1,), first port of each node; ports of a node are contiguous
    port_node, port_peer : (P,), int32
    port_rate_bps, port_delay_ps : (P,), int64; of the direction that leaves the port
    port_loss, port_corruption : (P,), float64
    port_headroom_bytes : (P,), of each lossless class whose ingress is the port
    port_kmin_bytes, port_kmax_bytes : (P,), ECN thresholds of a switch's egress; 0 at hosts
    shared_bytes : (N,), size of the shared part of a switch's buffer
    port_credit_bytes : (P,), room of each lane whose ingress is the port; 0 without credits between links
    node_tier, node_group : (N,), tier (0: hosts), and pod or group (-1: none)
    attachment : (P,), index of the attachment for the port of a host, else -1
    destination_number, port_stride : (P,), what a port selection by destination sees; see `weftwork.topology.digits`
    attach_node : (A,), node of each attachment
    port_kind : (P,), kind of the port's link, as ``channel_rule`` tells them apart; -1: a link of a host
    channel_rule : shape (2, kinds + 1, virtual channels, kinds), next virtual channel by whether a new part of the way
        begins, kind of the link in (links of hosts first), channel held and kind of the link out
    detour_order, detour_base, detour_group : attachments that a detour may go by, those of a group one after the
        other; where each group begins; (A,), the group of each attachment
    detour_by_group : whether detours avoid the group of the destination too; else only the source's
    class_priority, class_lossless : (C,), ascending priorities in use, each ``virtual_channels`` times
    control_class : index of the class of ACK, NAK, CNP, CREDIT, REQUEST and PROBE
    trim_class : index of the class of packets that were cut
    virtual_channels : classes of one priority, which follow each other
    fabric_base_rtt_ps : longest base RTT of any two NIC ports, 0 where no policy reads it
    routes : tables; the first holds from time 0
    instants : `INSTANT_DTYPE`, ordered by time and then as they are applied
    ops, streams, tables : the job's programs; streams of one program are contiguous and in order
    digits : `DIGIT_DTYPE`, terms of the numbers of parts
    rank_program : (R,), program of each rank
    rank_ports : (R, K), global ids of the NIC ports of each rank, the usual one first
    rank_gpu : (R,), `GPU_DTYPE`
    tokens : how many tokens a rank has
    has_receives : whether any program has a `Receive`
    pins : `PIN_DTYPE`, queue pairs whose own entropy is given, so that they take a pinned way; no two for one
    congestion_control, path_selection, port_selection : policies; no path selection means constant entropy
    """

    seed: int
    until_ps: int
    node_kind: NDArray[np.int8]
    node_device: NDArray[np.int32]
    port_base: NDArray[np.int64]
    port_node: NDArray[np.int32]
    port_peer: NDArray[np.int32]
    port_rate_bps: NDArray[np.int64]
    port_delay_ps: NDArray[np.int64]
    port_loss: NDArray[np.float64]
    port_corruption: NDArray[np.float64]
    port_headroom_bytes: NDArray[np.int64]
    port_kmin_bytes: NDArray[np.int64]
    port_kmax_bytes: NDArray[np.int64]
    port_credit_bytes: NDArray[np.int64]
    shared_bytes: NDArray[np.int64]
    node_tier: NDArray[np.int64]
    node_group: NDArray[np.int64]
    attachment: NDArray[np.int32]
    destination_number: NDArray[np.int64]
    port_stride: NDArray[np.int64]
    attach_node: NDArray[np.int32]
    port_kind: NDArray[np.int64]
    channel_rule: NDArray[np.int8]
    detour_order: NDArray[np.int32]
    detour_base: NDArray[np.int64]
    detour_group: NDArray[np.int32]
    detour_by_group: bool
    switches: NDArray[np.void]
    nics: NDArray[np.void]
    class_priority: NDArray[np.int64]
    class_lossless: NDArray[np.int64]
    control_class: int
    trim_class: int
    virtual_channels: int
    fabric_base_rtt_ps: int
    routes: tuple[RouteTable, ...]
    instants: NDArray[np.void]
    ops: NDArray[np.void]
    streams: NDArray[np.void]
    tables: NDArray[np.int64]
    digits: NDArray[np.void]
    rank_program: NDArray[np.int32]
    rank_ports: NDArray[np.int32]
    rank_gpu: NDArray[np.void]
    tokens: int
    has_receives: bool
    pins: NDArray[np.void]
    transport: Transport
    congestion_control: LoadedPolicy
    path_selection: LoadedPolicy | None
    port_selection: LoadedPolicy

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
