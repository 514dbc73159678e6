"""IPv4 and IPv6 headers, with the congestion bits that switches rewrite.

Source: RFC 791 (IPv4), RFC 8200 (IPv6), RFC 1071 (checksum), RFC 2474 (DSCP), RFC 3168, section 5 (ECN).
Leaves out: reassembly of fragments (their fields are kept), the meaning of options, IPv6 extension headers, jumbograms.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Self

from weftwork.base.errors import UsageError
from weftwork.wire.fields import MalformedPacket, check_fits, split

__all__ = [
    "DONT_FRAGMENT",
    "ECN_CE",
    "ECN_ECT0",
    "ECN_ECT1",
    "ECN_NOT_ECT",
    "IPV4_HEADER_BYTES",
    "IPV6_HEADER_BYTES",
    "MORE_FRAGMENTS",
    "PROTOCOL_UDP",
    "IpHeader",
    "Ipv4Header",
    "Ipv6Header",
    "decode_ip",
    "internet_checksum",
    "ip_header_bytes",
]

IPV4_HEADER_BYTES = 20  # RFC 791, section 3.1: five words, options apart
IPV6_HEADER_BYTES = 40  # RFC 8200, section 3
PROTOCOL_UDP = 17  # RFC 768

ECN_NOT_ECT = 0b00  # RFC 3168, figure 1
ECN_ECT1 = 0b01
ECN_ECT0 = 0b10
ECN_CE = 0b11

DONT_FRAGMENT = 0b010  # RFC 791, section 3.1
MORE_FRAGMENTS = 0b001

_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_IPV6 = struct.Struct(">IHBB16s16s")
_MAXIMUM_OPTIONS_BYTES = 40  # RFC 791, section 3.1: a header has at most 15 words


def internet_checksum(data: memoryview | bytes | bytearray) -> int:
    """Internet checksum (RFC 1071) of 16-bit words.

    It is the ones' complement of the ones' complement sum; an odd byte is padded with a zero.

    Examples
    --------
    >>> hex(internet_checksum(bytes.fromhex("00 01 f2 03 f4 f5 f6 f7")))  # RFC 1071, section 3: the sum is ddf2
    '0x220d'
    """
    padded = bytes(data) + b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


@dataclass(frozen=True, kw_only=True, slots=True)
class Ipv4Header:
    """An IPv4 header.

    Its checksum is computed by ``encode`` and verified by ``decode``, so it is no field.

    Parameters
    ----------
    source, destination : addresses
    payload_bytes : bytes behind the header, 0 to 65,515
    protocol : what the payload is; 17 is UDP
    dscp, ecn : the 6 and the 2 bits of the former type of service
    identification : tells the fragments of one packet from those of others
    flags : reserved, DONT_FRAGMENT, MORE_FRAGMENTS, from the highest bit down
    fragment_offset_bytes : a multiple of 8
    ttl : routers still to pass
    options : a multiple of 4 bytes, at most 40
    """

    source: IPv4Address
    destination: IPv4Address
    payload_bytes: int
    protocol: int = PROTOCOL_UDP
    dscp: int = 0
    ecn: int = ECN_NOT_ECT
    identification: int = 0
    flags: int = DONT_FRAGMENT
    fragment_offset_bytes: int = 0
    ttl: int = 64  # RFC 1700, "IP time to live": the recommended default
    options: bytes = b""

    @property
    def size_bytes(self) -> int:
        """Size of the header: 20 bytes plus options."""
        return IPV4_HEADER_BYTES + len(self.options)

    @property
    def is_fragment(self) -> bool:
        """Whether the packet is a fragment."""
        return self.fragment_offset_bytes > 0 or bool(self.flags & MORE_FRAGMENTS)

    def encode(self) -> bytes:
        """``size_bytes`` bytes with the checksum; UsageError for a field that does not fit."""
        check_fits("payload_bytes + header", self.payload_bytes + self.size_bytes, 16)
        check_fits("payload_bytes", self.payload_bytes, 16)
        check_fits("protocol", self.protocol, 8)
        check_fits("dscp", self.dscp, 6)
        check_fits("ecn", self.ecn, 2)
        check_fits("identification", self.identification, 16)
        check_fits("flags", self.flags, 3)
        check_fits("fragment_offset_bytes", self.fragment_offset_bytes, 16)
        check_fits("ttl", self.ttl, 8)
        if self.fragment_offset_bytes % 8:
            raise UsageError(f"fragment_offset_bytes: found {self.fragment_offset_bytes}, wanted a multiple of 8")
        if len(self.options) % 4 or len(self.options) > _MAXIMUM_OPTIONS_BYTES:
            raise UsageError(f"options: found {len(self.options)} bytes, wanted a multiple of 4, at most 40")
        header = bytearray(
            _IPV4.pack(
                4 << 4 | self.size_bytes // 4,
                self.dscp << 2 | self.ecn,
                self.size_bytes + self.payload_bytes,
                self.identification,
                self.flags << 13 | self.fragment_offset_bytes // 8,
                self.ttl,
                self.protocol,
                0,
                self.source.packed,
                self.destination.packed,
            )
        )
        header += self.options
        struct.pack_into(">H", header, 10, internet_checksum(header))
        return bytes(header)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read a header and cut the payload to its length.

        Returns
        -------
        the record and the payload; what the link padded behind it is left away

        Raises
        ------
        MalformedPacket : too few bytes, another version, impossible lengths, or a wrong checksum
        """
        head, _ = split(data, IPV4_HEADER_BYTES, "IPv4")
        version_words, tos, total_bytes, identification, fragment, ttl, protocol, found, source, destination = (
            _IPV4.unpack(head)
        )
        if version_words >> 4 != 4:
            raise MalformedPacket("IPv4", f"found version {version_words >> 4}, wanted 4")
        header_bytes = (version_words & 0xF) * 4
        if header_bytes < IPV4_HEADER_BYTES:
            raise MalformedPacket(
                "IPv4", f"found a header of {header_bytes} bytes, wanted at least {IPV4_HEADER_BYTES}"
            )
        header, behind = split(data, header_bytes, "IPv4")
        if total_bytes < header_bytes:
            raise MalformedPacket("IPv4", f"found a total length of {total_bytes}, wanted at least {header_bytes}")
        payload, _ = split(behind, total_bytes - header_bytes, "IPv4 payload")
        # Recomputed rather than summed with the field: 0xFFFF for 0 sums right too, but no sender makes it (RFC 1624).
        wanted = internet_checksum(bytes(header[:10]) + b"\0\0" + bytes(header[12:]))
        if found != wanted:
            raise MalformedPacket("IPv4", f"found header checksum {found:#06x}, wanted {wanted:#06x}")
        record = cls(
            source=IPv4Address(source),
            destination=IPv4Address(destination),
            payload_bytes=len(payload),
            protocol=protocol,
            dscp=tos >> 2,
            ecn=tos & 0b11,
            identification=identification,
            flags=fragment >> 13,
            fragment_offset_bytes=(fragment & 0x1FFF) * 8,
            ttl=ttl,
            options=bytes(header[IPV4_HEADER_BYTES:]),
        )
        return record, payload


@dataclass(frozen=True, kw_only=True, slots=True)
class Ipv6Header:
    """An IPv6 header.

    Parameters
    ----------
    source, destination : addresses
    payload_bytes : bytes behind the header, 0 to 65,535
    next_header : what follows; 17 is UDP
    dscp, ecn : the 6 and the 2 bits of the traffic class
    flow_label : 20 bits that a switch may hash
    hop_limit : routers still to pass
    """

    source: IPv6Address
    destination: IPv6Address
    payload_bytes: int
    next_header: int = PROTOCOL_UDP
    dscp: int = 0
    ecn: int = ECN_NOT_ECT
    flow_label: int = 0
    hop_limit: int = 64  # as the TTL of IPv4

    @property
    def size_bytes(self) -> int:
        """Always 40."""
        return IPV6_HEADER_BYTES

    def encode(self) -> bytes:
        """40 bytes; UsageError for a field that does not fit."""
        check_fits("payload_bytes", self.payload_bytes, 16)
        check_fits("next_header", self.next_header, 8)
        check_fits("dscp", self.dscp, 6)
        check_fits("ecn", self.ecn, 2)
        check_fits("flow_label", self.flow_label, 20)
        check_fits("hop_limit", self.hop_limit, 8)
        return _IPV6.pack(
            6 << 28 | self.dscp << 22 | self.ecn << 20 | self.flow_label,
            self.payload_bytes,
            self.next_header,
            self.hop_limit,
            self.source.packed,
            self.destination.packed,
        )

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read a header and cut the payload to its length.

        Returns
        -------
        the record and the payload; what the link padded behind it is left away

        Raises
        ------
        MalformedPacket : too few bytes, or another version
        """
        head, behind = split(data, IPV6_HEADER_BYTES, "IPv6")
        first_word, payload_bytes, next_header, hop_limit, source, destination = _IPV6.unpack(head)
        if first_word >> 28 != 6:
            raise MalformedPacket("IPv6", f"found version {first_word >> 28}, wanted 6")
        payload, _ = split(behind, payload_bytes, "IPv6 payload")
        record = cls(
            source=IPv6Address(source),
            destination=IPv6Address(destination),
            payload_bytes=payload_bytes,
            next_header=next_header,
            dscp=first_word >> 22 & 0x3F,
            ecn=first_word >> 20 & 0b11,
            flow_label=first_word & 0xFFFFF,
            hop_limit=hop_limit,
        )
        return record, payload


IpHeader = Ipv4Header | Ipv6Header


def decode_ip(data: memoryview | bytes) -> tuple[IpHeader, memoryview]:
    """Read an IPv4 or IPv6 header, by the version in its first four bits.

    Raises
    ------
    MalformedPacket : as the two ``decode`` do; another version is told as a wrong IPv4 one
    """
    first, _ = split(data, 1, "IP")
    if first[0] >> 4 == 6:
        return Ipv6Header.decode(data)
    return Ipv4Header.decode(data)


def ip_header_bytes(ip_version: int) -> int:
    """Size of a header without options; UsageError for other versions.

    It is 20 for version 4, 40 for version 6.
    """
    sizes_bytes = {4: IPV4_HEADER_BYTES, 6: IPV6_HEADER_BYTES}
    if ip_version not in sizes_bytes:
        raise UsageError(f"ip_version: found {ip_version}, wanted 4 or 6")
    return sizes_bytes[ip_version]
