"""Rows of a fabric: switches, NICs, pinned queue pairs, and the instants at which something changes.

Source: `weftwork.spec.device`; docs/models/packet-engine.md. `weftwork.engine.lower` and `weftwork.engine.instants`
fill them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from weftwork.engine.rows.declare import Enum, Header, RowType, real, whole
from weftwork.policies.interface import MOST_CLASSES

__all__ = [
    "HEADER",
    "INSTANT_DTYPE",
    "INSTANT_ROW",
    "NIC_DTYPE",
    "NIC_ROW",
    "PIN_DTYPE",
    "PIN_ROW",
    "SWITCH_DTYPE",
    "SWITCH_ROW",
    "HashAlgorithm",
    "HashField",
    "Instant",
]  # fmt: skip


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


class Instant(IntEnum):
    """Codes of ``INSTANT_DTYPE.code``."""

    LINK_DOWN = 0
    LINK_UP = 1
    RATE = 2
    ROUTES = 3
    LOSS = 4
    HOST_RATE = 5
    FAILOVER = 6


SWITCH_ROW: Final = RowType(
    struct="SwitchRow",
    text="Settings that switches of one kind share.",
    fields=(
        whole("reserve_bytes", "of the buffer, for each port and priority in use"),
        real("alpha", "Xoff above alpha x free shared bytes"),
        real("egress_alpha", "lossy queues drop above egress_alpha x free shared bytes"),
        whole("xon_offset_bytes", "of Xon below the threshold"),
        whole("pause_quanta", "of a pause"),
        real("pmax", "largest probability of a mark below Kmax"),
        whole("mark_at_dequeue", "1: packets are marked as they leave, not as they come"),
        whole("hash_algorithm", "by which flows are spread"),
        whole("hash_seed", "of the hash"),
        whole("hash_offset", "by which the digest is shifted to the right"),
        whole("hash_fields", "bits of the headers that are hashed"),
        whole("telemetry", "1: writes queue, bytes, rate and time into packets"),
        whole("weight", "of deficit round robin by class index; 0: strict", size=MOST_CLASSES),
    ),
)
NIC_ROW: Final = RowType(
    struct="NicRow",
    text="Settings that NICs of one kind share.",
    fields=(
        whole("pcie_rate_bps", "of the host interface; 0: the host is never the bottleneck"),
        whole("pcie_latency_ps", "of the host interface"),
        whole("receive_buffer_bytes", "between the port and the host"),
        whole("xoff_bytes", "in the receive buffer"),
        whole("xon_bytes", "in the receive buffer"),
        whole("pause_quanta", "of a pause"),
    ),
)
PIN_ROW: Final = RowType(
    struct="PinRow",
    text="A queue pair whose own entropy is given.",
    fields=(
        whole("source", "rank"),
        whole("destination", "rank"),
        whole("channel", "-1: every one that has no row"),
        whole("entropy", "of the queue pair"),
    ),
)
INSTANT_ROW: Final = RowType(
    struct="InstantRow",
    text="A change of a link, of a host interface or of routes.",
    fields=(
        whole("at_ps", "when it happens"),
        whole("code", "of the change"),
        whole("port", "the lower port id of the link; HOST_RATE: the NIC_ROW port"),
        whole(
            "value",
            "RATE, HOST_RATE: rate_bps; ROUTES: index of a route table; LOSS: probability in parts of 10^9",
        ),
    ),
)

SWITCH_DTYPE: Final = SWITCH_ROW.dtype
NIC_DTYPE: Final = NIC_ROW.dtype
PIN_DTYPE: Final = PIN_ROW.dtype
INSTANT_DTYPE: Final = INSTANT_ROW.dtype
HEADER: Final = Header(
    name="fabric",
    text="A fabric as both engines take it, and its changes over time.",
    parts=(
        Enum.of(HashAlgorithm, name="HashAlgorithm", text="Hash functions of switches."),
        Enum.of(HashField, name="HashField", text="Bits of the headers that a switch hashes.", is_bits=True),
        SWITCH_ROW,
        NIC_ROW,
        PIN_ROW,
        Enum.of(Instant, name="InstantCode", text="Codes of instants."),
        INSTANT_ROW,
    ),
)
