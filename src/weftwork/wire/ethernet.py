"""Ethernet: header, one VLAN tag, padding and frame check sequence.

The tag is optional.
Source: IEEE 802.3-2022, clause 3 (frame, FCS) and 4.4.2 (minimum frame, gap); IEEE 802.1Q-2022, clause 9 (tag).
Leaves out: length-typed LLC frames and second tags, which stay in the payload; the preamble, which is only counted.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self

from weftwork.base.errors import UsageError
from weftwork.wire.checksum import crc32
from weftwork.wire.fields import MalformedPacket, check_bytes, check_fits, split

__all__ = [
    "ETHERNET_HEADER_BYTES",
    "ETHERTYPE_IPV4",
    "ETHERTYPE_IPV6",
    "ETHERTYPE_MAC_CONTROL",
    "ETHERTYPE_VLAN",
    "FCS_BYTES",
    "MAC_ADDRESS_BYTES",
    "MINIMUM_FRAME_BYTES",
    "PREAMBLE_AND_GAP_BYTES",
    "VLAN_TAG_BYTES",
    "EthernetFrame",
    "EthernetHeader",
    "VlanTag",
]

MAC_ADDRESS_BYTES = 6  # IEEE 802.3, 3.2.3
ETHERNET_HEADER_BYTES = 14  # IEEE 802.3, 3.1.1: two addresses and the type
FCS_BYTES = 4  # IEEE 802.3, 3.2.9
MINIMUM_FRAME_BYTES = 64  # IEEE 802.3, 4.4.2: minFrameSize of 512 bits, FCS included
PREAMBLE_AND_GAP_BYTES = 20  # IEEE 802.3, 3.2.1, 3.2.2 and 4.4.2: 7 + 1 bytes before each frame, 96 bit times after it
VLAN_TAG_BYTES = 4  # IEEE 802.1Q, 9.3

ETHERTYPE_IPV4 = 0x0800  # RFC 894
ETHERTYPE_VLAN = 0x8100  # IEEE 802.1Q, table 9-1
ETHERTYPE_IPV6 = 0x86DD  # RFC 2464, section 3
ETHERTYPE_MAC_CONTROL = 0x8808  # IEEE 802.3, 31.4.1.3


@dataclass(frozen=True, kw_only=True, slots=True)
class VlanTag:
    """The 16 bits of an IEEE 802.1Q tag.

    Parameters
    ----------
    priority : priority code point, 0 to 7
    vlan_id : 0 (priority only) to 4,095
    drop_eligible : may be dropped first
    """

    priority: int = 0
    vlan_id: int = 0
    drop_eligible: bool = False

    def encode(self) -> bytes:
        """Two bytes; UsageError for a field that does not fit."""
        check_fits("priority", self.priority, 3)
        check_fits("vlan_id", self.vlan_id, 12)
        return struct.pack(">H", self.priority << 13 | self.drop_eligible << 12 | self.vlan_id)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read two bytes; returns record and rest, or raises MalformedPacket."""
        head, rest = split(data, 2, "VLAN tag")
        (bits,) = struct.unpack(">H", head)
        return cls(priority=bits >> 13, vlan_id=bits & 0xFFF, drop_eligible=bool(bits >> 12 & 1)), rest


@dataclass(frozen=True, kw_only=True, slots=True)
class EthernetHeader:
    """Addresses, an optional VLAN tag and the EtherType.

    Parameters
    ----------
    destination, source : MAC addresses, 6 bytes each
    ethertype : type of the payload, behind the tag where there is one
    vlan : the tag, or None
    """

    destination: bytes
    source: bytes
    ethertype: int
    vlan: VlanTag | None = None

    @property
    def size_bytes(self) -> int:
        """14, or 18 with a tag."""
        return ETHERNET_HEADER_BYTES + (0 if self.vlan is None else VLAN_TAG_BYTES)

    def encode(self) -> bytes:
        """``size_bytes`` bytes; UsageError for a field that does not fit."""
        check_bytes("destination", self.destination, MAC_ADDRESS_BYTES)
        check_bytes("source", self.source, MAC_ADDRESS_BYTES)
        check_fits("ethertype", self.ethertype, 16)
        if self.vlan is not None:
            tag = struct.pack(">H", ETHERTYPE_VLAN) + self.vlan.encode()
        elif self.ethertype == ETHERTYPE_VLAN:
            raise UsageError("ethertype: found 0x8100 (VLAN) without a tag, wanted the tag in the field 'vlan'")
        else:
            tag = b""
        return self.destination + self.source + tag + struct.pack(">H", self.ethertype)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read the header and its tag; returns the record and the rest.

        Raises MalformedPacket for too few bytes.
        """
        head, rest = split(data, ETHERNET_HEADER_BYTES, "Ethernet")
        destination, source, ethertype = struct.unpack(">6s6sH", head)
        vlan = None
        if ethertype == ETHERTYPE_VLAN:
            vlan, rest = VlanTag.decode(rest)
            inner, rest = split(rest, 2, "Ethernet")
            (ethertype,) = struct.unpack(">H", inner)
        return cls(destination=destination, source=source, ethertype=ethertype, vlan=vlan), rest


@dataclass(frozen=True, kw_only=True, slots=True)
class EthernetFrame:
    """A whole frame on a link, from address to check sequence.

    It begins at the destination address. Ethernet does not say how long the padding is: after ``decode`` it is the end
    of ``payload``; the IP header knows.
    """

    header: EthernetHeader
    payload: bytes

    def encode(self) -> bytes:
        """Header, payload, padding and check sequence; UsageError for wrong fields.

        Padding is zeros up to the minimum.
        """
        body = self.header.encode() + self.payload
        body = body.ljust(MINIMUM_FRAME_BYTES - FCS_BYTES, b"\0")
        # The FCS leaves highest power first in reflected bytes: the little-endian form of zlib's value (802.3, 3.2.9).
        return body + struct.pack("<I", crc32(body))

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Check the sequence and read the header.

        A frame has no length of its own, so ``data`` has to be exactly one frame and the rest is empty.

        Raises
        ------
        MalformedPacket : shorter than the minimum frame, or the check sequence is wrong
        """
        view = memoryview(data)
        if len(view) < MINIMUM_FRAME_BYTES:
            raise MalformedPacket(
                "Ethernet", f"found a frame of {len(view)} bytes, wanted at least {MINIMUM_FRAME_BYTES}"
            )
        body, check = split(view, len(view) - FCS_BYTES, "Ethernet")
        (found,) = struct.unpack("<I", check)
        wanted = crc32(body)
        if found != wanted:
            raise MalformedPacket("Ethernet", f"found frame check sequence {found:#010x}, wanted {wanted:#010x}")
        header, payload = EthernetHeader.decode(body)
        return cls(header=header, payload=bytes(payload)), view[len(view) :]
