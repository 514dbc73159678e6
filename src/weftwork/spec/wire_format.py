"""The wire format of a transport: what a captured packet of a run looks like behind its Ethernet header.

A run has packets without bytes. A capture of it hands each packet over as a `SentPacket`, in the words that headers
need, and the transport's `WireFormat` makes the bytes. What has no field there is named, never made up.
Leaves out: Ethernet headers, PFC frames and telemetry behind the packet, which are the same for every transport.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from weftwork.spec.transport import Transport

__all__ = [
    "PACKET_KINDS", "CaptureFacts", "CommonNotes", "PacketKind", "PlaceInMessage", "PostedMessages", "SentPacket",
    "WireFormat", "all_common",
]  # fmt: skip

PacketKind = Literal["DATA", "ACK", "NAK", "CNP", "CREDIT", "PROBE", "REQUEST"]
PACKET_KINDS: Final[tuple[PacketKind, ...]] = ("DATA", "ACK", "NAK", "CNP", "CREDIT", "PROBE", "REQUEST")


class PlaceInMessage(NamedTuple):
    """Place of a data packet in its message.

    Parameters
    ----------
    is_first, is_last : packet of the message
    message_bytes : of the whole message
    bytes_before : of earlier messages of its queue pair
    """

    is_first: bool
    is_last: bool
    message_bytes: int
    bytes_before: int


class PostedMessages:
    """The messages of one queue pair, cut into packets.

    Parameters
    ----------
    sizes_bytes : shape (messages,), in the order in which they were posted
    mtu_bytes : payload of a full packet
    """

    def __init__(self, sizes_bytes: NDArray[np.int64], mtu_bytes: int) -> None:
        self.sizes_bytes = sizes_bytes
        self.mtu_bytes = mtu_bytes
        self.ends = np.cumsum(np.maximum(1, -(-sizes_bytes // mtu_bytes)))
        self.bytes_before = np.cumsum(sizes_bytes) - sizes_bytes

    def place(self, seq: int) -> PlaceInMessage:
        """Place of a packet by its number on the queue pair, from 0."""
        ordinal = int(np.searchsorted(self.ends, seq, side="right"))
        first = int(self.ends[ordinal - 1]) if ordinal else 0
        return PlaceInMessage(
            is_first=seq == first,
            is_last=seq + 1 == self.ends[ordinal],
            message_bytes=int(self.sizes_bytes[ordinal]),
            bytes_before=int(self.bytes_before[ordinal]),
        )

    def position_bytes(self, seq: int) -> int:
        """Payload of the queue pair before a packet; before the packet behind the last one: all of it."""
        ordinal = int(np.searchsorted(self.ends, seq, side="right"))
        if ordinal == len(self.ends):
            return int(self.sizes_bytes.sum())
        first = int(self.ends[ordinal - 1]) if ordinal else 0
        return int(self.bytes_before[ordinal]) + (seq - first) * self.mtu_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class SentPacket:
    """One packet as it leaves a port.

    Attributes
    ----------
    kind : of the packet; CREDIT grants, REQUEST asks for bytes, PROBE asks for an ACK
    source, target : IP addresses of the NIC ports that it comes from and goes to
    ttl : 64 less the switches that it has passed
    dscp : of its priority, as a class selector
    entropy : 16 bits, by which switches choose paths
    queue_pair : 24 bits of the queue pair's identity, the same in both directions
    seq : of DATA its number on the queue pair, from 0; of an answer the next number expected
    payload_bytes : 0 unless it is DATA
    asks_ack : whether DATA asks for an acknowledgement
    is_marked : whether DATA was marked by a switch, or the answer tells of a mark
    is_cut : whether a switch cut it to its headers, or a NAK answers such a packet
    messages_done : of an answer, messages received whole
    credit_code : of an ACK, end-to-end credits as a code
    refused_seq : of a NAK, the packet that it refuses or tells of; below 0: none
    amount_bytes : of CREDIT, granted so far; of REQUEST, wanted
    posted : messages of its queue pair
    transport : resolved for the run
    """

    kind: PacketKind
    source: IPv4Address
    target: IPv4Address
    ttl: int
    dscp: int
    entropy: int
    queue_pair: int
    seq: int
    payload_bytes: int
    asks_ack: bool
    is_marked: bool
    is_cut: bool
    messages_done: int
    credit_code: int
    refused_seq: int
    amount_bytes: int
    posted: PostedMessages
    transport: Transport

    @property
    def place(self) -> PlaceInMessage:
        """Place of a DATA packet in its message."""
        return self.posted.place(self.seq)

    @property
    def position_bytes(self) -> int:
        """Payload of the queue pair before the packet ``seq``."""
        return self.posted.position_bytes(self.seq)


@dataclass(frozen=True, kw_only=True, slots=True)
class CommonNotes:
    """Simulated facts that no transport has a field for, in words; empty where a capture has none of them."""

    copies: str = ""
    left_out: str = ""
    cut: str = ""
    telemetry: str = ""
    data_fields: str = ""
    answer_fields: str = ""
    link_credits: str = ""
    answer_hops: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptureFacts:
    """A whole capture, for the notes on it.

    Attributes
    ----------
    rows : captured rows by kind (``engine.outcome.CAPTURE_DTYPE``)
    messages : of the run (``MESSAGE_DTYPE``)
    transport : resolved for the run
    common : notes on what no transport has a field for
    """

    rows: Mapping[str, NDArray[np.void]]
    messages: NDArray[np.void]
    transport: Transport
    common: CommonNotes


def all_common(facts: CaptureFacts) -> tuple[str, ...]:
    """Notes of a wire format that has none of its own."""
    notes = facts.common
    return (
        notes.copies, notes.left_out, notes.cut, notes.telemetry, notes.data_fields, notes.answer_fields,
        notes.link_credits, notes.answer_hops,
    )  # fmt: skip


def _no_comment(_: SentPacket) -> str:
    return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class WireFormat:
    """Packets of a transport as bytes.

    Parameters
    ----------
    name : as people call it, such as ``RoCEv2``
    encode : bytes of a packet from its IPv4 header on
    data_frame_bytes : Ethernet frame, FCS included, of a payload without fields of policies; the second argument says
        whether it is the first packet of a message
    answer_frame_bytes : the same for an ACK or NAK
    kinds : of packets that it has a form for; others are left out of captures, and counted
    comment : what the frame of a packet cannot carry; empty: nothing
    notes : what a capture cannot show, one text for each; empty texts are passed over
    """

    name: str
    encode: Callable[[SentPacket], bytes]
    data_frame_bytes: Callable[[int, bool], int]
    answer_frame_bytes: int
    kinds: tuple[PacketKind, ...] = PACKET_KINDS
    comment: Callable[[SentPacket], str] = _no_comment
    notes: Callable[[CaptureFacts], tuple[str, ...]] = all_common
