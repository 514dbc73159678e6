"""TCP's headers and rules, as far as the engines have them: segments with timestamps, SACK, no pauses.

A connection is a queue pair. For tests, not for results: one file in the folder of transports is all that a transport
of another family needs to be listed, run on packets and on flows, captured, and compared.

Source: RFC 9293, section 3.1; RFC 7323, section 3.2 (timestamps); RFC 2018, section 3 (SACK).
Leaves out: the handshake, windows that the receiver announces, SACK blocks in the header, segments that are no power of
two.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from weftwork.spec.scenario.choice import NoKeys, TransportKind
from weftwork.spec.wire_format import CaptureFacts, SentPacket, WireFormat, all_common
from weftwork.transports.rocev2 import transport
from weftwork.wire.ethernet import ETHERNET_HEADER_BYTES, FCS_BYTES
from weftwork.wire.ip import ECN_CE, ECN_ECT0, ECN_NOT_ECT, IPV4_HEADER_BYTES, Ipv4Header, internet_checksum

if TYPE_CHECKING:
    from weftwork.spec.scenario.transport import TransportSection
    from weftwork.spec.transport import Transport

__all__ = ["TRANSPORT"]

PROTOCOL = 6  # IANA, protocol numbers
PORT = 5201  # chosen: that of iperf3
TIMESTAMPS_BYTES = 12  # RFC 7323, appendix A: two NOPs and the option
TCP_BYTES = 20 + TIMESTAMPS_BYTES
HEADERS_BYTES = ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + TCP_BYTES + FCS_BYTES
ACK, PSH = 0x10, 0x08


def build(section: TransportSection, _: NoKeys | None = None) -> Transport:
    """RoCEv2's rules with TCP's headers; the time that a policy asks for is in the option already."""
    changes = {
        "name": "tcp",
        "data_overhead_bytes": HEADERS_BYTES,
        "first_extra_bytes": 0,
        "ack_bytes": HEADERS_BYTES,
        "timestamp_bytes": 0,
    }
    return transport(section).model_copy(update=changes)


def encode(packet: SentPacket) -> bytes:
    """A segment: numbers count bytes, from 1; an ACK names the next byte."""
    is_data = packet.kind == "DATA"
    position = (1 + packet.position_bytes) & 0xFFFFFFFF
    numbers = (position, 1) if is_data else (1, position)
    ports = (packet.entropy, PORT) if is_data else (PORT, packet.entropy)
    flags = ACK | (PSH if is_data and packet.place.is_last else 0)
    options = struct.pack(">BBBBII", 1, 1, 8, 10, 0, 0)
    segment = struct.pack(">HHIIBBHHH", *ports, *numbers, TCP_BYTES // 4 << 4, flags, 0xFFFF, 0, 0) + options
    segment += bytes(packet.payload_bytes)
    pseudo = struct.pack(">4s4sBBH", packet.source.packed, packet.target.packed, 0, PROTOCOL, len(segment))
    checksum = internet_checksum(pseudo + segment)
    ip = Ipv4Header(
        source=packet.source,
        destination=packet.target,
        payload_bytes=len(segment),
        protocol=PROTOCOL,
        dscp=packet.dscp,
        ecn=(ECN_CE if packet.is_marked else ECN_ECT0) if is_data else ECN_NOT_ECT,
        ttl=packet.ttl,
    )
    return ip.encode() + segment[:16] + struct.pack(">H", checksum) + segment[18:]


def frame_bytes(payload_bytes: int, _: bool) -> int:  # noqa: FBT001 - as `WireFormat` has it
    return payload_bytes + HEADERS_BYTES


def notes(facts: CaptureFacts) -> tuple[str, ...]:
    """NAKs are ACKs here, as SACK blocks are left out."""
    naks = len(facts.rows["NAK"])
    return (*all_common(facts), f"{naks:,} NAKs: shown as duplicate ACKs" if naks else "")


TRANSPORT = TransportKind(
    source="RFC 9293, section 3.1",
    build=build,
    defaults={
        "congestion_control": "cubic",
        "recovery": "selective-repeat",
        "reorder_threshold": 2,
        "flow_control": "none",
    },
    wire=WireFormat(
        name="TCP",
        encode=encode,
        data_frame_bytes=frame_bytes,
        answer_frame_bytes=HEADERS_BYTES,
        kinds=("DATA", "ACK", "NAK"),
        notes=notes,
    ),
)
