"""The local route header of native InfiniBand, which RoCE lacks.

The numbers of the headers after the GRH are here too.
Source: IBTA vol. 1, 7.7 and 8.3, as encoded in struct ib_unpacked_lrh of Linux include/rdma/ib_pack.h.
Leaves out: raw packets without BTH. The global route header (GRH) has the layout of IPv6: see ``ip.Ipv6Header``.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple, Self

from weftwork.wire.fields import MalformedPacket, check_fits

__all__ = ["LRH_BYTES", "NEXT_HEADER_BTH", "NEXT_IS_BTH", "NEXT_IS_GRH", "Lrh"]

LRH_BYTES = 8  # IBTA vol. 1, 7.7
NEXT_HEADER_BTH = 0x1B  # IBTA vol. 1, 8.3: next header of GRH
NEXT_IS_BTH = 0b10  # IB_LNH_IBA_LOCAL in Linux ib_pack.h: local transport
NEXT_IS_GRH = 0b11  # IB_LNH_IBA_GLOBAL in Linux ib_pack.h: global transport

_LRH = Struct(">BBHHH")


class Lrh(NamedTuple):
    """The local route header.

    Parameters
    ----------
    destination_lid, source_lid : addresses in the subnet, 16 bits each
    packet_words : words of four bytes from this header to the ICRC, both included; 11 bits
    next_header : 2 bits, see ``NEXT_IS_BTH`` and ``NEXT_IS_GRH``
    virtual_lane : 4 bits, which a switch may change
    service_level : 4 bits
    link_version : 0
    reserved2, reserved5 : sent as 0
    """

    destination_lid: int
    source_lid: int
    packet_words: int
    next_header: int = NEXT_IS_BTH
    virtual_lane: int = 0
    service_level: int = 0
    link_version: int = 0
    reserved2: int = 0
    reserved5: int = 0

    def encode(self) -> bytes:
        """Eight bytes; UsageError for a field that does not fit."""
        check_fits("destination_lid", self.destination_lid, 16)
        check_fits("source_lid", self.source_lid, 16)
        check_fits("packet_words", self.packet_words, 11)
        check_fits("next_header", self.next_header, 2)
        check_fits("virtual_lane", self.virtual_lane, 4)
        check_fits("service_level", self.service_level, 4)
        check_fits("link_version", self.link_version, 4)
        check_fits("reserved2", self.reserved2, 2)
        check_fits("reserved5", self.reserved5, 5)
        return _LRH.pack(
            self.virtual_lane << 4 | self.link_version,
            self.service_level << 4 | self.reserved2 << 2 | self.next_header,
            self.destination_lid,
            self.reserved5 << 11 | self.packet_words,
            self.source_lid,
        )

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read eight bytes; returns record and rest, or raises MalformedPacket."""
        if len(data) < LRH_BYTES:
            raise MalformedPacket("LRH", f"found {len(data)} bytes, wanted at least {LRH_BYTES}")
        lane, level, destination_lid, length, source_lid = _LRH.unpack_from(data)
        record = cls(
            destination_lid=destination_lid,
            source_lid=source_lid,
            packet_words=length & 0x7FF,
            next_header=level & 0b11,
            virtual_lane=lane >> 4,
            service_level=level >> 4,
            link_version=lane & 0xF,
            reserved2=level >> 2 & 0b11,
            reserved5=length >> 11,
        )
        return record, memoryview(data)[LRH_BYTES:]
