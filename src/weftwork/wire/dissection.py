"""Dissection of a captured packet into headers.

Every header with a codec is read, the ICRC is checked, and the end of reading is noted.
Source: the codecs of this floor.
Leaves out: second VLAN tags, tunnels, fragments; what RDMA packets mean to each other is in ``weftwork.rdma.capture``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from weftwork.wire.cm import CmMessage, decode_cm
from weftwork.wire.ethernet import (
    ETHERTYPE_IPV4,
    ETHERTYPE_IPV6,
    ETHERTYPE_MAC_CONTROL,
    EthernetHeader,
)
from weftwork.wire.fields import MalformedPacket, split
from weftwork.wire.ib import BTH_BYTES
from weftwork.wire.icrc import ICRC_BYTES, icrc, native_icrc
from weftwork.wire.infiniband import ETHERTYPE_ROCE_V1
from weftwork.wire.ip import PROTOCOL_UDP, IpHeader, Ipv4Header, Ipv6Header, decode_ip
from weftwork.wire.lrh import LRH_BYTES, NEXT_HEADER_BTH, NEXT_IS_GRH, Lrh
from weftwork.wire.mad import GENERAL_SERVICES_QP
from weftwork.wire.opcodes import SHAPES, TransportService
from weftwork.wire.pcap import LINK_ETHERNET, LINK_INFINIBAND, LINK_LINUX_COOKED, LINK_LINUX_COOKED_2, LINK_RAW_IP
from weftwork.wire.pfc import PriorityPause
from weftwork.wire.transport import TransportPacket
from weftwork.wire.udp import ROCE_V2_PORT, UDP_HEADER_BYTES, UdpHeader

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.wire.pcap import CapturedPacket

__all__ = ["Carrier", "Dissection", "dissect"]

_MAXIMUM_BYTES: Final = 1 << 17  # chosen: above any frame with an IP packet of 65,535 bytes; a file may claim more


class Carrier(Enum):
    """Carrier of the packet."""

    ROCE_V2 = "RoCEv2"
    ROCE_V1 = "RoCEv1"
    INFINIBAND = "InfiniBand"
    PFC = "PFC"
    OTHER = "other"


@dataclass(kw_only=True, slots=True)
class Dissection:
    """Parts of a packet that were read; other parts are None.

    Parameters
    ----------
    kind : what carries the packet
    ethernet, lrh, ip, udp, transport, pause, cm : the records; ``ip`` is the GRH where there is one
    icrc_found, icrc_wanted : as in the packet and as computed; None where a part of the packet was not captured
    problem : why reading ended, as the codec says it
    """

    kind: Carrier = Carrier.OTHER
    ethernet: EthernetHeader | None = None
    lrh: Lrh | None = None
    ip: IpHeader | None = None
    udp: UdpHeader | None = None
    transport: TransportPacket | None = None
    pause: PriorityPause | None = None
    cm: CmMessage | None = None
    icrc_found: int | None = None
    icrc_wanted: int | None = None
    problem: str = ""

    @property
    def has_wrong_icrc(self) -> bool:
        """Whether the packet has an ICRC that is wrong."""
        return self.icrc_found != self.icrc_wanted


def dissect(packet: CapturedPacket) -> Dissection:
    """Read a captured packet as far as possible, without any error."""
    found = Dissection()
    read = _BY_LINK.get(packet.link_type)
    if read is None:
        known = "Ethernet (1), raw IP (101), Linux cooked (113, 276) or InfiniBand (247)"
        found.problem = f"link type {packet.link_type} is not {known}"
        return found
    captured_bytes = len(packet.data)
    missing_bytes = min(packet.original_bytes, _MAXIMUM_BYTES) - captured_bytes
    # what was cut off counts as zeros, so that the lengths in the headers agree; nothing is read from it
    data = memoryview(bytes(packet.data) + bytes(missing_bytes)) if missing_bytes > 0 else memoryview(packet.data)
    try:
        read(found, data, captured_bytes)
    except MalformedPacket as error:
        found.problem = str(error)
    return found


def _ethernet(found: Dissection, data: memoryview, captured_bytes: int) -> None:
    found.ethernet, rest = EthernetHeader.decode(data)
    _by_ethertype(found, found.ethernet.ethertype, rest, captured_bytes - found.ethernet.size_bytes)


def _cooked(found: Dissection, data: memoryview, captured_bytes: int) -> None:
    header, rest = split(data, 16, "Linux cooked")
    _by_ethertype(found, int.from_bytes(header[14:16], "big"), rest, captured_bytes - 16)


def _cooked_2(found: Dissection, data: memoryview, captured_bytes: int) -> None:
    header, rest = split(data, 20, "Linux cooked")
    _by_ethertype(found, int.from_bytes(header[:2], "big"), rest, captured_bytes - 20)


def _by_ethertype(found: Dissection, ethertype: int, data: memoryview, captured_bytes: int) -> None:
    if ethertype in {ETHERTYPE_IPV4, ETHERTYPE_IPV6}:
        _ip(found, data, captured_bytes)
    elif ethertype == ETHERTYPE_ROCE_V1:
        found.kind = Carrier.ROCE_V1
        _global(found, data, captured_bytes, icrc, data)
    elif ethertype == ETHERTYPE_MAC_CONTROL:
        found.pause, _ = PriorityPause.decode(data)
        found.kind = Carrier.PFC


def _ip(found: Dissection, data: memoryview, captured_bytes: int) -> None:
    found.ip, payload = decode_ip(data)
    protocol = found.ip.protocol if isinstance(found.ip, Ipv4Header) else found.ip.next_header
    if protocol != PROTOCOL_UDP or (isinstance(found.ip, Ipv4Header) and found.ip.is_fragment):
        return
    found.udp, datagram = UdpHeader.decode(payload)
    if found.udp.destination_port != ROCE_V2_PORT:
        return
    found.kind = Carrier.ROCE_V2
    front_bytes = found.ip.size_bytes + UDP_HEADER_BYTES
    packet = data[: front_bytes + len(datagram)]
    _transport(found, datagram, captured_bytes - front_bytes, icrc, packet)


def _global(
    found: Dissection, data: memoryview, captured_bytes: int, crc: Callable[[memoryview], int], packet: memoryview
) -> None:
    found.ip, payload = Ipv6Header.decode(data)
    if found.ip.next_header != NEXT_HEADER_BTH:
        raise MalformedPacket("GRH", f"found next header {found.ip.next_header:#04x}, wanted {NEXT_HEADER_BTH:#04x}")
    front_bytes = found.ip.size_bytes
    behind_bytes = len(data) - front_bytes - len(payload)
    whole = packet[: len(packet) - behind_bytes]
    _transport(found, payload, captured_bytes - front_bytes, crc, whole)


def _native(found: Dissection, data: memoryview, captured_bytes: int) -> None:
    found.kind = Carrier.INFINIBAND
    found.lrh, rest = Lrh.decode(data)
    packet, _ = split(data, found.lrh.packet_words * 4, "LRH")
    payload = rest[: max(len(packet) - LRH_BYTES, 0)]
    if found.lrh.next_header == NEXT_IS_GRH:
        _global(found, payload, captured_bytes - LRH_BYTES, native_icrc, packet)
    else:
        _transport(found, payload, captured_bytes - LRH_BYTES, native_icrc, packet)


def _transport(
    found: Dissection, data: memoryview, captured_bytes: int, crc: Callable[[memoryview], int], packet: memoryview
) -> None:
    """Read BTH and everything behind it.

    ``packet`` is the bytes that the CRC covers and the CRC, ``data`` the same from BTH on.
    """
    if len(data) < BTH_BYTES + ICRC_BYTES:
        raise MalformedPacket("BTH", f"found {len(data)} bytes with the ICRC, wanted at least {BTH_BYTES + ICRC_BYTES}")
    is_whole = captured_bytes >= len(data)
    if is_whole:
        (found.icrc_found,) = struct.unpack("<I", packet[-ICRC_BYTES:])
        found.icrc_wanted = crc(packet[:-ICRC_BYTES])
    shape = SHAPES.get(data[0])
    needed_bytes = BTH_BYTES + (0 if shape is None else shape.headers_bytes)
    if captured_bytes < needed_bytes:
        raise MalformedPacket("capture", f"found {captured_bytes} bytes from BTH on, wanted {needed_bytes} of headers")
    found.transport, _ = TransportPacket.decode(data[:-ICRC_BYTES])
    bth = found.transport.bth
    is_management = found.transport.shape.service is TransportService.UD and bth.destination_qp == GENERAL_SERVICES_QP
    if is_management and is_whole:
        _, found.cm = decode_cm(found.transport.payload)


_BY_LINK: Final[dict[int, Callable[[Dissection, memoryview, int], None]]] = {
    LINK_ETHERNET: _ethernet,
    LINK_RAW_IP: _ip,
    LINK_LINUX_COOKED: _cooked,
    LINK_LINUX_COOKED_2: _cooked_2,
    LINK_INFINIBAND: _native,
}
