"""Captures of made-up conversations, packet by packet, for tests of what explains them."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address
from pathlib import Path

from weftwork.wire.cm import CmMessage, encode_cm
from weftwork.wire.ethernet import ETHERTYPE_IPV4, EthernetHeader
from weftwork.wire.extended import Aeth, AethKind, Deth, Nak, Reth
from weftwork.wire.ib import CNP_BODY, Bth, cnp_bth, psn_add
from weftwork.wire.ip import ECN_ECT0
from weftwork.wire.mad import GENERAL_SERVICES_QP, GENERAL_SERVICES_QUEUE_KEY
from weftwork.wire.opcodes import Opcode
from weftwork.wire.pcap import CapturedPacket
from weftwork.wire.pcapng import encode_pcapng
from weftwork.wire.rocev2 import rocev2_packet
from weftwork.wire.transport import TransportPacket, transport_packet

PATH_MTU_BYTES = 256
HOSTS = {"a": (IPv4Address("10.0.0.1"), bytes.fromhex("020000000001"), 0x11)}
HOSTS["b"] = (IPv4Address("10.0.0.2"), bytes.fromhex("020000000002"), 0x22)


def other(host: str) -> str:
    return "b" if host == "a" else "a"


def frame(sender: str, packet: TransportPacket, ecn: int = ECN_ECT0, port: int = 0xC123) -> bytes:
    """An Ethernet frame, without its check sequence, as captures have it."""
    source, source_mac, _ = HOSTS[sender]
    destination, destination_mac, _ = HOSTS[other(sender)]
    roce = rocev2_packet(
        source=source, destination=destination, source_port=port, bth=packet.bth, body=packet.body(), ecn=ecn
    )
    header = EthernetHeader(destination=destination_mac, source=source_mac, ethertype=ETHERTYPE_IPV4)
    return header.encode() + roce.encode()


def bth(sender: str, opcode: int, psn: int) -> Bth:
    return Bth(opcode, destination_qp=HOSTS[other(sender)][2], psn=psn)


def write(sender: str, first_psn: int, packets: int) -> list[bytes]:
    """All packets of a WRITE; the last asks for an ACK."""
    size_bytes = packets * PATH_MTU_BYTES
    frames = []
    for number in range(packets):
        is_first, is_last = number == 0, number == packets - 1
        opcode = {(1, 0): Opcode.WRITE_FIRST, (0, 0): Opcode.WRITE_MIDDLE, (0, 1): Opcode.WRITE_LAST}.get(
            (is_first, is_last), Opcode.WRITE_ONLY
        )
        header = bth(sender, opcode, psn_add(first_psn, number))._replace(ack_request=is_last)
        headers = (Reth(0x7F0000, 0x1234, size_bytes),) if is_first else ()
        frames.append(frame(sender, transport_packet(header, headers, bytes(PATH_MTU_BYTES))))
    return frames


def read(sender: str, psn: int, size_bytes: int) -> bytes:
    return frame(sender, TransportPacket(bth(sender, Opcode.READ_REQUEST, psn), (Reth(0x7F0000, 0x1234, size_bytes),)))


def read_response(sender: str, first_psn: int, packets: int) -> list[bytes]:
    """All packets that answer a READ."""
    frames = []
    for number in range(packets):
        is_first, is_last = number == 0, number == packets - 1
        opcode = {
            (1, 0): Opcode.READ_RESPONSE_FIRST,
            (0, 0): Opcode.READ_RESPONSE_MIDDLE,
            (0, 1): Opcode.READ_RESPONSE_LAST,
        }.get((is_first, is_last), Opcode.READ_RESPONSE_ONLY)
        headers = (Aeth(AethKind.ACK, 31, 1),) if is_first or is_last else ()
        packet = transport_packet(bth(sender, opcode, psn_add(first_psn, number)), headers, bytes(PATH_MTU_BYTES))
        frames.append(frame(sender, packet))
    return frames


def answer(sender: str, psn: int, kind: AethKind = AethKind.ACK, value: int = 31) -> bytes:
    return frame(sender, TransportPacket(bth(sender, Opcode.ACKNOWLEDGE, psn), (Aeth(kind, value, 1),)))


def nak(sender: str, psn: int, code: Nak = Nak.PSN_SEQUENCE_ERROR) -> bytes:
    return answer(sender, psn, AethKind.NAK, code)


def cnp(sender: str) -> bytes:
    return frame(sender, TransportPacket(cnp_bth(HOSTS[other(sender)][2]), (), CNP_BODY))


def management(sender: str, message: CmMessage) -> bytes:
    header = Bth(Opcode.UD_SEND_ONLY, destination_qp=GENERAL_SERVICES_QP, psn=0)
    deth = Deth(GENERAL_SERVICES_QUEUE_KEY, GENERAL_SERVICES_QP)
    return frame(sender, transport_packet(header, (deth,), encode_cm(message, transaction=7)))


def captured(frames: Iterable[bytes], every_ns: int = 1_000) -> list[CapturedPacket]:
    return [CapturedPacket(number * every_ns, data, len(data)) for number, data in enumerate(frames)]


def write_capture(file: Path, frames: Iterable[bytes]) -> Path:
    packets = (packet._replace(interface="eth0") for packet in captured(frames))
    file.write_bytes(b"".join(encode_pcapng(packets)))
    return file
