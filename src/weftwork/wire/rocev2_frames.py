"""Packets of a run as RoCEv2: every message an RDMA WRITE, answered by ACKs and NAKs.

The UDP source port is the entropy of the packet, the number of the queue pair is the same both ways, and the PSN is the
packet's number on its queue pair, from 0.
Source: IBTA vol. 1, chapter 9 and annex A17, as encoded in `weftwork.wire`.
Leaves out: what RoCEv2 has no field for, see `FORMAT`'s notes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.spec.wire_format import WireFormat
from weftwork.wire.credits import NO_CREDIT_COUNT
from weftwork.wire.extended import Aeth, AethKind, Nak, Reth
from weftwork.wire.ib import BTH_BYTES, CNP_BODY, PSN_MODULUS, Bth, cnp_bth, psn_add
from weftwork.wire.icrc import ICRC_BYTES
from weftwork.wire.ip import ECN_CE, ECN_ECT0, ECN_NOT_ECT, Ipv4Header
from weftwork.wire.opcodes import VENDOR_OPCODES, Opcode
from weftwork.wire.rocev2 import RoceV2Packet, rocev2_ack_frame_bytes, rocev2_data_frame_bytes
from weftwork.wire.transport import transport_packet
from weftwork.wire.udp import ROCE_V2_PORT, UDP_HEADER_BYTES, UdpHeader

if TYPE_CHECKING:
    from weftwork.spec.transport import Transport
    from weftwork.spec.wire_format import CaptureFacts, SentPacket

__all__ = ["FORMAT"]

_LONGEST_DMA_BYTES: Final = 0xFFFFFFFF  # IBTA vol. 1, 9.3.3: 32 bits
_OWN_OPCODES: Final = dict(zip(("CREDIT", "PROBE", "REQUEST"), VENDOR_OPCODES, strict=False))
_OWN_BODY: Final = bytes(4)  # as large as the AETH of an ACK, which these packets are as long as
_OPCODES: Final = {
    (True, True): Opcode.WRITE_ONLY,
    (True, False): Opcode.WRITE_FIRST,
    (False, False): Opcode.WRITE_MIDDLE,
    (False, True): Opcode.WRITE_LAST,
}


def _encode(packet: SentPacket) -> bytes:
    bth, body = _data(packet) if packet.kind == "DATA" else _control(packet)
    transport_bytes = BTH_BYTES + len(body) + ICRC_BYTES
    ip = Ipv4Header(
        source=packet.source,
        destination=packet.target,
        payload_bytes=UDP_HEADER_BYTES + transport_bytes,
        dscp=packet.dscp,
        ecn=(ECN_CE if packet.is_marked else ECN_ECT0) if packet.kind == "DATA" else ECN_NOT_ECT,
        ttl=packet.ttl,
    )
    udp = UdpHeader(source_port=packet.entropy, destination_port=ROCE_V2_PORT, payload_bytes=transport_bytes)
    return RoceV2Packet(ip=ip, udp=udp, bth=bth, body=body).encode()


def _data(packet: SentPacket) -> tuple[Bth, bytes]:
    place = packet.place
    bth = Bth(
        _OPCODES[place.is_first, place.is_last],
        destination_qp=packet.queue_pair,
        psn=packet.seq % PSN_MODULUS,
        ack_request=packet.asks_ack,
    )
    reth = Reth(
        virtual_address=place.bytes_before,
        remote_key=packet.queue_pair,
        dma_bytes=min(place.message_bytes, _LONGEST_DMA_BYTES),
    )
    made = transport_packet(bth, (reth,) if place.is_first else (), bytes(packet.payload_bytes))
    return made.bth, made.body()


def _control(packet: SentPacket) -> tuple[Bth, bytes]:
    kind, psn = packet.kind, packet.seq % PSN_MODULUS
    if kind == "CNP":
        return cnp_bth(packet.queue_pair), CNP_BODY
    if kind in _OWN_OPCODES:
        return Bth(_OWN_OPCODES[kind], packet.queue_pair, psn), _OWN_BODY
    is_ack = kind == "ACK"
    credit_code = packet.credit_code if packet.transport.end_to_end_credits else NO_CREDIT_COUNT
    aeth = Aeth(
        AethKind.ACK if is_ack else AethKind.NAK,
        credit_code if is_ack else Nak.PSN_SEQUENCE_ERROR,
        msn=packet.messages_done % PSN_MODULUS,
    )
    # an ACK names the last packet that it acknowledges, a NAK the one that is missing (IBTA vol. 1, 9.7.5)
    bth = Bth(Opcode.ACKNOWLEDGE, packet.queue_pair, psn_add(psn, -1) if is_ack else psn, becn=packet.is_marked)
    return bth, aeth.encode()


def _names_kept(transport: Transport) -> bool:
    """Whether a NAK names the packet that the receiver keeps behind a gap."""
    return transport.recovery == "selective-repeat"


def _comment(packet: SentPacket) -> str:
    kind = packet.kind
    if kind == "CREDIT":
        return f"CREDIT: {packet.amount_bytes} bytes granted so far"
    if kind == "REQUEST":
        return f"REQUEST: {packet.amount_bytes} bytes wanted"
    if kind == "PROBE":
        return "PROBE: asks for an ACK"
    if kind != "NAK" or packet.refused_seq < 0 or not (packet.is_cut or _names_kept(packet.transport)):
        return ""
    psn = packet.refused_seq % PSN_MODULUS
    return f"NAK of PSN {psn:#x}, which came {'cut to its headers' if packet.is_cut else 'early and is kept'}"


def _notes(facts: CaptureFacts) -> tuple[str, ...]:
    common, rows = facts.common, facts.rows
    vendor = sum(len(rows[kind]) for kind in _OWN_OPCODES)
    naks = rows["NAK"]
    named = int((naks["refused"] >= 0).sum()) if _names_kept(facts.transport) else int(naks["cut"].sum())
    padded = int((rows["DATA"]["payload_bytes"] % 4 > 0).sum())
    is_long = bool((facts.messages["size_bytes"] > _LONGEST_DMA_BYTES).any())
    return (
        common.copies,
        f"{vendor:,} CREDIT, PROBE or REQUEST: opcodes 0xc0 to 0xc2, left to vendors; amounts are comments"
        if vendor
        else "",
        common.cut,
        f"{plural(named, 'NAK names', 'NAKs name')} the packet behind the NAK: shown as a comment" if named else "",
        common.telemetry,
        common.data_fields,
        common.answer_fields,
        common.link_credits,
        f"{plural(padded, 'payload is', 'payloads are')} not a multiple of 4 bytes: padded in the capture only"
        if padded
        else "",
        "lengths of messages above 4 GiB: shown as the largest length of an RETH" if is_long else "",
        common.answer_hops,
    )


def _data_frame_bytes(payload_bytes: int, is_first: bool) -> int:  # noqa: FBT001 - as `WireFormat` has it
    return rocev2_data_frame_bytes(payload_bytes, first=is_first)


FORMAT: Final = WireFormat(
    name="RoCEv2",
    encode=_encode,
    data_frame_bytes=_data_frame_bytes,
    answer_frame_bytes=rocev2_ack_frame_bytes(),
    comment=_comment,
    notes=_notes,
)
