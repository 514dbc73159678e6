"""A packet of the reference engine, as plain values.

Among them are the addresses of the NIC ports at both ends.
Source: `docs/models/packet-engine.md`, section Packets.
Leaves out: bytes of headers, which only have a size; see `weftwork.wire` for those.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from weftwork.base.random import Stream, draw
from weftwork.engine.reference.flow import Flow

__all__ = ["HopTelemetry", "Packet", "PacketKind"]


class PacketKind(IntEnum):
    """Kind of a packet, whose number is part of the packet's identity."""

    DATA = 0
    ACK = 1
    NAK = 2
    CNP = 3
    CREDIT = 4
    PROBE = 5
    REQUEST = 6


@dataclass(kw_only=True, slots=True)
class HopTelemetry:
    """Telemetry of one switch in a data packet."""

    queue_bytes: int
    tx_bytes: int
    rate_bps: int
    at_ps: int
    port: int  # global id of the port by which the packet left


@dataclass(kw_only=True, slots=True)
class Packet:
    """One packet on its path.

    Fields that its kind does not have stay at 0.
    """

    flow: Flow
    origin: int  # port ids of the NIC ports with which it was sent or queued
    destination: int
    kind: PacketKind
    seq: int
    attempt: int
    size_bytes: int  # of the frame
    traffic_class: int
    entropy: int  # UDP source port: of the headers, and what an ACK echoes
    payload_bytes: int = 0
    ends_message: bool = False  # DATA: the last one of its message
    message: int = 0  # DATA: ordinal of its message on the queue pair
    message_packets: int = 0  # DATA: of how many packets its message is
    asks_ack: bool = False
    is_marked: bool = False  # DATA: by a switch; ACK, NAK: echoed
    sent_at_ps: int = 0  # DATA: start of transmission at the NIC
    arrived_at_ps: int = 0  # DATA: at the receiving NIC
    hops: list[HopTelemetry] = field(default_factory=list)
    path_load_code: int = 0  # DATA: the largest of the switches that it has passed
    credit_bytes: int = 0
    msn: int = 0
    credit_code: int = 0
    echo: Packet | None = None  # ACK, NAK: the data packet that caused it
    host_delay_ps: int = 0  # DATA, once handled, and read through the echo
    ingress: int = -1  # id of the port by which it came into this switch
    arrival_class: int = 0  # class by which it came into this switch
    word: int = 0  # of port selection
    via: int = -1  # attachment that it passes first, or OFF
    hop_count: int = 0  # DATA, REQUEST: switches that it has passed
    is_cut: bool = False  # DATA: its payload was cut at a switch; `payload_bytes` tells what it had
    is_cut_at_last_hop: bool = False  # at that of the destination
    request_bytes: int = 0  # DATA, REQUEST: what the sender's state said
    marked_bytes: int = 0  # ACK, NAK: the receiver's count

    @property
    def identity(self) -> int:
        """Identity within the flow; every transmission has another."""
        return self.seq | self.attempt << 32 | self.kind << 48

    def draw(self, seed: int, stream: Stream, place: int) -> int:
        """64 random bits of this packet at a port or node."""
        return draw(seed, stream, self.flow.id, self.identity, place)
