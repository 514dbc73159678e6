"""Packets of the InfiniBand transport without UDP.

They are RoCEv1 behind an Ethernet header, and native InfiniBand.
Source: IBTA vol. 1, 7.7 and 7.8, and annex A16 (RoCE, EtherType 0x8915).
Leaves out: the variant CRC of native InfiniBand, which differs on every link and stays in the rest.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self

from weftwork.base.errors import UsageError
from weftwork.wire.fields import MalformedPacket, split
from weftwork.wire.ib import BTH_BYTES, Bth
from weftwork.wire.icrc import ICRC_BYTES, append_icrc, check_icrc, check_native_icrc, native_icrc
from weftwork.wire.ip import IPV6_HEADER_BYTES, Ipv6Header
from weftwork.wire.lrh import LRH_BYTES, NEXT_HEADER_BTH, NEXT_IS_BTH, NEXT_IS_GRH, Lrh

__all__ = ["ETHERTYPE_ROCE_V1", "NativePacket", "RoceV1Packet"]

ETHERTYPE_ROCE_V1 = 0x8915  # IBTA vol. 1, annex A16; ETH_P_IBOE in Linux if_ether.h
_SHORTEST_BYTES = BTH_BYTES + ICRC_BYTES


@dataclass(frozen=True, kw_only=True, slots=True)
class RoceV1Packet:
    """A RoCEv1 packet from its GRH to its ICRC.

    ``encode`` computes the ICRC and ``decode`` verifies it.

    Parameters
    ----------
    grh : the global route header, whose layout is that of IPv6; ``next_header`` 0x1B, ``payload_bytes`` to the ICRC
    bth : base transport header
    body : extended headers, payload and padding, a multiple of 4 bytes
    """

    grh: Ipv6Header
    bth: Bth
    body: bytes

    def encode(self) -> bytes:
        """All bytes with the ICRC; UsageError for wrong fields or lengths."""
        _check_grh(self.grh, self.body)
        return append_icrc(self.grh.encode() + self.bth.encode() + self.body)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read a packet that starts with its GRH.

        Returns
        -------
        the record and what follows the packet, such as the padding of a short frame

        Raises
        ------
        MalformedPacket : not RoCEv1, lengths that disagree, or a wrong ICRC
        """
        view = memoryview(data)
        grh, payload = _grh(view)
        bth, body = _bth_and_body(payload, "RoCEv1")
        packet_bytes = IPV6_HEADER_BYTES + grh.payload_bytes
        check_icrc(view[:packet_bytes])
        return cls(grh=grh, bth=bth, body=body), view[packet_bytes:]


@dataclass(frozen=True, kw_only=True, slots=True)
class NativePacket:
    """A packet of native InfiniBand from LRH to ICRC.

    ``encode`` computes the ICRC and ``decode`` verifies it.

    Parameters
    ----------
    lrh : local route header; ``packet_words`` counts to the ICRC
    grh : global route header as of ``RoceV1Packet``, or None inside a subnet
    bth : base transport header
    body : extended headers, payload and padding, a multiple of 4 bytes
    """

    lrh: Lrh
    grh: Ipv6Header | None
    bth: Bth
    body: bytes

    def encode(self) -> bytes:
        """All bytes with the ICRC; UsageError for wrong fields or lengths."""
        next_header = NEXT_IS_BTH if self.grh is None else NEXT_IS_GRH
        if self.lrh.next_header != next_header:
            raise UsageError(f"lrh.next_header: found {self.lrh.next_header}, wanted {next_header}")
        if self.grh is not None:
            _check_grh(self.grh, self.body)
        elif len(self.body) % 4:
            raise UsageError(f"body: found {len(self.body)} bytes, wanted a multiple of 4 with the padding")
        packet_bytes = LRH_BYTES + (0 if self.grh is None else IPV6_HEADER_BYTES) + _SHORTEST_BYTES + len(self.body)
        if self.lrh.packet_words * 4 != packet_bytes:
            raise UsageError(f"lrh.packet_words: found {self.lrh.packet_words}, wanted {packet_bytes // 4}")
        grh = b"" if self.grh is None else self.grh.encode()
        packet = self.lrh.encode() + grh + self.bth.encode() + self.body
        return packet + struct.pack("<I", native_icrc(packet))

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read a packet that starts with its LRH.

        Returns
        -------
        the record and what follows the ICRC, such as the variant CRC

        Raises
        ------
        MalformedPacket : no BTH in it, lengths that disagree, or a wrong ICRC
        """
        view = memoryview(data)
        lrh, _ = Lrh.decode(view)
        packet, rest = split(view, lrh.packet_words * 4, "LRH")
        behind = packet[LRH_BYTES:]
        grh = None
        if lrh.next_header == NEXT_IS_GRH:
            grh, payload = _grh(behind)
            if IPV6_HEADER_BYTES + grh.payload_bytes != len(behind):
                raise MalformedPacket("GRH", f"found {grh.payload_bytes} bytes, wanted {len(behind) - 40} as in LRH")
            behind = payload
        elif lrh.next_header != NEXT_IS_BTH:
            raise MalformedPacket("LRH", f"found next header {lrh.next_header}, wanted BTH (2) or GRH (3)")
        bth, body = _bth_and_body(behind, "InfiniBand")
        check_native_icrc(packet)
        return cls(lrh=lrh, grh=grh, bth=bth, body=body), rest


def _check_grh(grh: Ipv6Header, body: bytes) -> None:
    if len(body) % 4:
        raise UsageError(f"body: found {len(body)} bytes, wanted a multiple of 4 with the padding")
    if grh.next_header != NEXT_HEADER_BTH:
        raise UsageError(f"grh.next_header: found {grh.next_header}, wanted {NEXT_HEADER_BTH}")
    if grh.payload_bytes != _SHORTEST_BYTES + len(body):
        raise UsageError(f"grh.payload_bytes: found {grh.payload_bytes}, wanted {_SHORTEST_BYTES + len(body)}")


def _grh(data: memoryview) -> tuple[Ipv6Header, memoryview]:
    grh, payload = Ipv6Header.decode(data)
    if grh.next_header != NEXT_HEADER_BTH:
        raise MalformedPacket("GRH", f"found next header {grh.next_header:#04x}, wanted {NEXT_HEADER_BTH:#04x} (BTH)")
    return grh, payload


def _bth_and_body(payload: memoryview, layer: str) -> tuple[Bth, bytes]:
    bth, behind = Bth.decode(payload)
    if len(behind) < ICRC_BYTES or len(behind) % 4:
        raise MalformedPacket(layer, f"found {len(behind)} bytes behind BTH, wanted a multiple of 4 and an ICRC")
    return bth, bytes(behind[:-ICRC_BYTES])
