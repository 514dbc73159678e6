"""A frame for each row of the table of encapsulations, with the same packet of RDMA inside."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from struct import pack
from typing import Final

from weftwork.wire.dissection import Carrier
from weftwork.wire.encapsulations import EXTENSION_HEADERS
from weftwork.wire.ethernet import ETHERTYPE_IPV4, ETHERTYPE_IPV6, EthernetHeader
from weftwork.wire.ib import Bth
from weftwork.wire.infiniband import ETHERTYPE_ROCE_V1, NativePacket, RoceV1Packet
from weftwork.wire.ip import Ipv4Header, Ipv6Header
from weftwork.wire.layers import Selector
from weftwork.wire.lrh import Lrh
from weftwork.wire.opcodes import Opcode
from weftwork.wire.pcap import CapturedPacket
from weftwork.wire.pfc import PriorityPause
from weftwork.wire.rocev2 import rocev2_packet
from weftwork.wire.udp import UdpHeader
from weftwork.wire.vcrc import append_vcrc

PSN: Final = 0x1234
_PAYLOAD: Final = bytes(range(64))
SEND: Final = Bth(Opcode.SEND_ONLY, destination_qp=0x12, psn=PSN)
_MACS: Final = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
_GRH: Final = Ipv6Header(
    source=IPv6Address("fe80::1"), destination=IPv6Address("fe80::2"), payload_bytes=80, next_header=0x1B
)


def _roce(ip_version: int) -> bytes:
    addresses: tuple[IPv4Address | IPv6Address, ...] = (IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2"))
    if ip_version == 6:
        addresses = (IPv6Address("fd00::1"), IPv6Address("fd00::2"))
    return rocev2_packet(
        source=addresses[0], destination=addresses[1], source_port=0xC123, bth=SEND, body=_PAYLOAD
    ).encode()


IPV4, IPV6 = _roce(4), _roce(6)
ROCE_V1 = RoceV1Packet(grh=_GRH, bth=SEND, body=_PAYLOAD).encode()
NATIVE = append_vcrc(NativePacket(lrh=Lrh(3, 4, packet_words=22), grh=None, bth=SEND, body=_PAYLOAD).encode())
NATIVE_WITH_GRH = append_vcrc(
    NativePacket(lrh=Lrh(3, 4, packet_words=32, next_header=3), grh=_GRH, bth=SEND, body=_PAYLOAD).encode()
)
PAUSE = PriorityPause(class_enable_vector=8, quanta=(0, 0, 0, 9, 0, 0, 0, 0)).frame(_MACS[0]).encode()


def ethernet(ethertype: int, payload: bytes) -> bytes:
    return EthernetHeader(destination=_MACS[1], source=_MACS[0], ethertype=ethertype).encode() + payload


FRAME = ethernet(ETHERTYPE_IPV4, IPV4)


def tagged(ethertype: int, payload: bytes, *tags: int) -> bytes:
    """A frame with tags; each tag is named by the EtherType in front of it."""
    inner = b"".join(pack(">HH", 100 + at, following) for at, following in enumerate([*tags[1:], ethertype]))
    return _MACS[1] + _MACS[0] + pack(">H", tags[0]) + inner + payload


def in_ipv4(protocol: int, payload: bytes) -> bytes:
    outer = Ipv4Header(
        source=IPv4Address("192.0.2.1"),
        destination=IPv4Address("192.0.2.2"),
        payload_bytes=len(payload),
        protocol=protocol,
    )
    return outer.encode() + payload


def in_udp(port: int, payload: bytes) -> bytes:
    return in_ipv4(
        17, UdpHeader(source_port=0xC000, destination_port=port, payload_bytes=len(payload)).encode() + payload
    )


def erf(kind: int, payload: bytes, *, extensions: int = 0, pad_bytes: int = 0) -> bytes:
    """A record of ERF, as a card of Endace writes it: 16 bytes, further headers of 8, padding in front of Ethernet."""
    more = b"".join(bytes([0x80 * (at + 1 < extensions)]) + bytes(7) for at in range(extensions))
    size_bytes = 16 + len(more) + pad_bytes + len(payload)
    head = bytes(8) + bytes([kind | 0x80 * bool(extensions), 4]) + pack(">HHH", size_bytes, 0, len(payload))
    return head + more + bytes(pad_bytes) + payload


def with_extension(number: int, header: bytes) -> bytes:
    """The packet over IPv6 with a further header between IPv6 and UDP; ``header`` lacks its first byte."""
    size_bytes = int.from_bytes(IPV6[4:6], "big") + 1 + len(header)
    return IPV6[:4] + pack(">HB", size_bytes, number) + IPV6[7:40] + b"\x11" + header + IPV6[40:]


def label(payload: bytes) -> bytes:
    return bytes.fromhex("0001000a0002010a") + payload


def gre(protocol: int, payload: bytes, flags: int = 0) -> bytes:
    words = (flags & 0xB000).bit_count()
    return in_ipv4(47, pack(">HH", flags, protocol) + bytes(4 * words) + payload)


def _link(number: int) -> bytes:
    return {
        1: FRAME,
        113: bytes(14) + pack(">H", ETHERTYPE_IPV4) + IPV4,
        276: pack(">H", ETHERTYPE_IPV4) + bytes(18) + IPV4,
        197: erf(2, FRAME, pad_bytes=2),
        247: NATIVE,
        0: pack("<I", 2) + IPV4,
        108: pack(">I", 2) + IPV4,
        101: IPV4,
        12: IPV4,
        14: IPV6,
        228: IPV4,
        229: IPV6,
        242: bytes(40) + pack(">HH", ETHERTYPE_IPV4, 0) + IPV4,
    }[number]


def _ethertype(number: int) -> bytes:
    return {
        ETHERTYPE_IPV4: FRAME,
        ETHERTYPE_IPV6: ethernet(ETHERTYPE_IPV6, IPV6),
        ETHERTYPE_ROCE_V1: ethernet(ETHERTYPE_ROCE_V1, ROCE_V1),
        0x8808: PAUSE,
        0x8100: tagged(ETHERTYPE_IPV4, IPV4, 0x8100, 0x8100),
        0x88A8: tagged(ETHERTYPE_IPV4, IPV4, 0x88A8, 0x8100),
        0x9100: tagged(ETHERTYPE_IPV4, IPV4, 0x9100, 0x8100),
        0x9200: tagged(ETHERTYPE_IPV4, IPV4, 0x9200),
        0x9300: tagged(ETHERTYPE_IPV4, IPV4, 0x9300, 0x9300, 0x8100),
        0x8847: ethernet(0x8847, label(IPV4)),
        0x8848: ethernet(0x8848, label(IPV6)),
        0x6558: ethernet(ETHERTYPE_IPV4, gre(0x6558, FRAME, 0x2000)),
        0x88BE: ethernet(ETHERTYPE_IPV4, gre(0x88BE, pack(">II", 0x10000000, 0) + FRAME, 0x1000)),
        0x22EB: ethernet(ETHERTYPE_IPV4, gre(0x22EB, pack(">III", 0x20000000, 0, 1) + bytes(8) + FRAME, 0x1000)),
    }[number]


def _protocol(number: int) -> bytes:
    if number == 43:  # of segment routing, RFC 8754, section 2: one segment, none left
        return ethernet(ETHERTYPE_IPV6, with_extension(number, b"\x02\x04" + bytes(5) + IPV6[24:40]))
    if number in EXTENSION_HEADERS:
        return ethernet(ETHERTYPE_IPV6, with_extension(number, b"\x01" + bytes(14)))
    return {
        17: FRAME,
        4: ethernet(ETHERTYPE_IPV4, in_ipv4(4, IPV4)),
        41: ethernet(ETHERTYPE_IPV4, in_ipv4(41, IPV6)),
        47: ethernet(ETHERTYPE_IPV4, gre(ETHERTYPE_IPV4, IPV4, 0xB000)),
        137: ethernet(ETHERTYPE_IPV4, in_ipv4(137, label(IPV4))),
        44: ethernet(ETHERTYPE_IPV6, with_extension(44, bytes(7))),
    }[number]


def _port(number: int) -> bytes:
    vxlan = bytes.fromhex("0800000000006400")
    return {
        4791: FRAME,
        4789: ethernet(ETHERTYPE_IPV4, in_udp(4789, vxlan + FRAME)),
        8472: ethernet(ETHERTYPE_IPV4, in_udp(8472, vxlan + ethernet(ETHERTYPE_IPV6, IPV6))),
        4790: ethernet(ETHERTYPE_IPV4, in_udp(4790, bytes.fromhex("0c00000100006400") + IPV4)),
        6081: ethernet(ETHERTYPE_IPV4, in_udp(6081, bytes.fromhex("0200655800006400") + bytes(8) + FRAME)),
        6635: ethernet(ETHERTYPE_IPV4, in_udp(6635, label(IPV4))),
    }[number]


def _erf_type(number: int) -> bytes:
    payload = {21: NATIVE, 22: IPV4, 23: IPV6}.get(number, FRAME)
    return erf(number, payload, extensions=2, pad_bytes=0 if number in {21, 22, 23} else 2)


def _family(number: int) -> bytes:
    return pack("<I", number) + (IPV4 if number == 2 else IPV6)


_MAKERS: Final[dict[Selector, Callable[[int], bytes]]] = {
    Selector.LINK_TYPE: _link,
    Selector.ETHERTYPE: _ethertype,
    Selector.IP_PROTOCOL: _protocol,
    Selector.UDP_PORT: _port,
    Selector.ERF_TYPE: _erf_type,
    Selector.ADDRESS_FAMILY: _family,
}
_LINKS: Final = {Selector.ERF_TYPE: 197, Selector.ADDRESS_FAMILY: 0}


def frame_of(selector: Selector, number: int) -> CapturedPacket:
    """A frame that a row of the table reads, with a SEND of ``PSN`` inside (PFC: a pause)."""
    data = _MAKERS[selector](number)
    link_type = number if selector is Selector.LINK_TYPE else _LINKS.get(selector, 1)
    return CapturedPacket(0, data, len(data), link_type)


CARRIER_OF: Final = {
    (Selector.ETHERTYPE, 0x8808): Carrier.PFC,
    (Selector.ETHERTYPE, ETHERTYPE_ROCE_V1): Carrier.ROCE_V1,
    (Selector.LINK_TYPE, 247): Carrier.INFINIBAND,
    (Selector.ERF_TYPE, 21): Carrier.INFINIBAND,
}
