"""RoCEv2 packets: BTH in UDP in IP, with the ICRC.

Their size on Ethernet is here too.
Source: IBTA vol. 1, annex A17.
Leaves out: the extended headers behind BTH, which are the start of ``body``; VLAN tags (4 bytes more a frame).
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Self

from weftwork.base.errors import UsageError
from weftwork.wire.ethernet import ETHERNET_HEADER_BYTES, FCS_BYTES, MINIMUM_FRAME_BYTES
from weftwork.wire.extended import AETH_BYTES, RETH_BYTES
from weftwork.wire.fields import MalformedPacket, check_fits
from weftwork.wire.ib import BTH_BYTES, CNP_BODY, Bth
from weftwork.wire.icrc import ICRC_BYTES, append_icrc, check_icrc
from weftwork.wire.ip import ECN_NOT_ECT, IpHeader, Ipv4Header, Ipv6Header, decode_ip, ip_header_bytes
from weftwork.wire.udp import ROCE_V2_PORT, UDP_HEADER_BYTES, UdpHeader

__all__ = [
    "RoceV2Packet",
    "cnp_frame_bytes",
    "rocev2_ack_frame_bytes",
    "rocev2_data_frame_bytes",
    "rocev2_packet",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class RoceV2Packet:
    """A packet from its IP header to its ICRC.

    ``encode`` computes the ICRC and ``decode`` verifies it.

    Parameters
    ----------
    ip, udp, bth : the headers; ``rocev2_packet`` fills their lengths in
    body : extended headers, payload and padding, a multiple of 4 bytes
    """

    ip: IpHeader
    udp: UdpHeader
    bth: Bth
    body: bytes

    def encode(self) -> bytes:
        """All bytes with the ICRC; UsageError for wrong fields or lengths."""
        if len(self.body) % 4:
            raise UsageError(f"body: found {len(self.body)} bytes, wanted a multiple of 4 with the padding")
        transport_bytes = BTH_BYTES + len(self.body) + ICRC_BYTES
        if self.udp.payload_bytes != transport_bytes:
            raise UsageError(f"udp.payload_bytes: found {self.udp.payload_bytes}, wanted {transport_bytes}")
        if self.ip.payload_bytes != transport_bytes + UDP_HEADER_BYTES:
            raise UsageError(
                f"ip.payload_bytes: found {self.ip.payload_bytes}, wanted {transport_bytes + UDP_HEADER_BYTES}"
            )
        return append_icrc(self.ip.encode() + self.udp.encode() + self.bth.encode() + self.body)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read a packet that starts with its IP header.

        Returns
        -------
        the record and what follows the packet, such as the padding of a short frame

        Raises
        ------
        MalformedPacket : not RoCEv2, a fragment, lengths that disagree, or a wrong ICRC
        """
        view = memoryview(data)
        ip, ip_payload = decode_ip(view)
        packet_bytes = ip.size_bytes + ip.payload_bytes
        check_icrc(view[:packet_bytes])
        if isinstance(ip, Ipv4Header) and ip.is_fragment:
            raise MalformedPacket("RoCEv2", "found a fragment of an IPv4 packet, wanted a whole one")
        udp, udp_payload = UdpHeader.decode(ip_payload)
        if udp.destination_port != ROCE_V2_PORT:
            raise MalformedPacket("RoCEv2", f"found UDP port {udp.destination_port}, wanted {ROCE_V2_PORT}")
        if len(udp_payload) + UDP_HEADER_BYTES != ip.payload_bytes:
            raise MalformedPacket(
                "RoCEv2", f"found {ip.payload_bytes} bytes in IP and {len(udp_payload)} in UDP, wanted 8 less"
            )
        bth, behind = Bth.decode(udp_payload)
        if len(behind) < ICRC_BYTES or len(behind) % 4:
            raise MalformedPacket("RoCEv2", f"found {len(behind)} bytes behind BTH, wanted a multiple of 4 and an ICRC")
        return cls(ip=ip, udp=udp, bth=bth, body=bytes(behind[:-ICRC_BYTES])), view[packet_bytes:]


def rocev2_packet(
    *,
    source: IPv4Address | IPv6Address,
    destination: IPv4Address | IPv6Address,
    source_port: int,
    bth: Bth,
    body: bytes = b"",
    dscp: int = 0,
    ecn: int = ECN_NOT_ECT,
) -> RoceV2Packet:
    """Put headers with correct lengths around a body.

    ``dataclasses.replace`` sets the rarer fields.

    Parameters
    ----------
    source, destination : both IPv4 or both IPv6
    source_port : see ``roce_source_port``
    bth : its ``pad_bytes`` say how much of the end of ``body`` is padding
    body : extended headers, payload and padding, a multiple of 4 bytes
    dscp, ecn : of the IP header

    Raises
    ------
    UsageError : the addresses are of two versions
    """
    udp_payload_bytes = BTH_BYTES + len(body) + ICRC_BYTES
    ip_payload_bytes = UDP_HEADER_BYTES + udp_payload_bytes
    ip: IpHeader
    if isinstance(source, IPv4Address) and isinstance(destination, IPv4Address):
        ip = Ipv4Header(source=source, destination=destination, payload_bytes=ip_payload_bytes, dscp=dscp, ecn=ecn)
    elif isinstance(source, IPv6Address) and isinstance(destination, IPv6Address):
        ip = Ipv6Header(source=source, destination=destination, payload_bytes=ip_payload_bytes, dscp=dscp, ecn=ecn)
    else:
        raise UsageError(f"source and destination: found {source} and {destination}, wanted one IP version")
    udp = UdpHeader(source_port=source_port, destination_port=ROCE_V2_PORT, payload_bytes=udp_payload_bytes)
    return RoceV2Packet(ip=ip, udp=udp, bth=bth, body=body)


def _frame_bytes(body_bytes: int, ip_version: int) -> int:
    transport_bytes = UDP_HEADER_BYTES + BTH_BYTES + body_bytes + ICRC_BYTES
    frame_bytes = ETHERNET_HEADER_BYTES + ip_header_bytes(ip_version) + transport_bytes + FCS_BYTES
    return max(frame_bytes, MINIMUM_FRAME_BYTES)


def rocev2_data_frame_bytes(payload_bytes: int, ip_version: int = 4, *, first: bool = False) -> int:
    """Ethernet frame size for ``payload_bytes`` of a message, FCS included.

    Preamble and gap are not counted: add ``PREAMBLE_AND_GAP_BYTES`` for the time on a line.

    Parameters
    ----------
    payload_bytes : bytes of the message in this packet, zero or more; padded to a multiple of 4
    ip_version : 4 or 6
    first : the packet carries an RETH, as the first (or only) one of a WRITE does

    Returns
    -------
    bytes, at least 64

    Raises
    ------
    UsageError : a negative payload or one beyond 16 bits, another IP version

    Examples
    --------
    >>> rocev2_data_frame_bytes(4096), rocev2_data_frame_bytes(4096, first=True), rocev2_data_frame_bytes(4096, 6)
    (4158, 4174, 4178)
    """
    check_fits("payload_bytes", payload_bytes, 16)
    padded_bytes = -(-payload_bytes // 4) * 4
    return _frame_bytes(padded_bytes + (RETH_BYTES if first else 0), ip_version)


def rocev2_ack_frame_bytes(ip_version: int = 4) -> int:
    """Ethernet frame size of an ACK or NAK, FCS included.

    It is 66 over IPv4, 86 over IPv6.
    """
    return _frame_bytes(AETH_BYTES, ip_version)


def cnp_frame_bytes(ip_version: int = 4) -> int:
    """Ethernet frame size of a congestion notification packet, FCS included.

    It is 78 over IPv4, 98 over IPv6.
    """
    return _frame_bytes(len(CNP_BODY), ip_version)
