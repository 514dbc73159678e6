"""The base transport header (BTH) of InfiniBand, CNPs and PSN arithmetic.

A CNP is a congestion notification packet.
Source: IBTA vol. 1, chapter 9 and annex A17 (CNP), as encoded in Linux include/rdma/ib_pack.h and
drivers/infiniband/sw/rxe; checked against scapy and tshark by tests.
Leaves out: what follows, see ``extended``, and which opcode brings what, see ``opcodes``.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple, Self

from weftwork.wire.fields import MalformedPacket, check_fits
from weftwork.wire.opcodes import Opcode

__all__ = [
    "BTH_BYTES",
    "CNP_BODY",
    "DEFAULT_PARTITION_KEY",
    "PSN_MODULUS",
    "Bth",
    "cnp_bth",
    "psn_add",
    "psn_compare",
]

BTH_BYTES = 12  # IBTA vol. 1, 9.2; IB_BTH_BYTES in Linux ib_pack.h
CNP_BODY = bytes(16)  # IBTA vol. 1, annex A17: 16 reserved bytes, all zero
DEFAULT_PARTITION_KEY = 0xFFFF  # BTH_DEF_PKEY in Linux drivers/infiniband/sw/rxe/rxe_hdr.h
PSN_MODULUS = 1 << 24  # IBTA vol. 1, 9.2

_BTH = Struct(">BBHII")


class Bth(NamedTuple):
    """The base transport header.

    ``decode`` keeps every bit and judges none: that is the queue pair's affair.

    Parameters
    ----------
    opcode : an ``Opcode``, or any other 8 bits
    destination_qp : 24 bits
    psn : packet sequence number, 24 bits
    ack_request : the responder is to acknowledge
    pad_bytes : 0 to 3 zeros behind the payload, so that it ends on a multiple of four
    partition_key : 16 bits
    solicited_event : the receiver is to raise an event
    migrated : the migration bit; hardware sets it, Linux rxe does not, nobody may reject on it
    transport_version : 0; others have to be dropped by the receiver
    fecn, becn : congestion was met by this packet, or by one of the other direction
    reserved6, reserved7 : sent as 0; the ICRC does not cover the first and covers the second
    """

    opcode: int
    destination_qp: int
    psn: int
    ack_request: bool = False
    pad_bytes: int = 0
    partition_key: int = DEFAULT_PARTITION_KEY
    solicited_event: bool = False
    migrated: bool = False
    transport_version: int = 0
    fecn: bool = False
    becn: bool = False
    reserved6: int = 0
    reserved7: int = 0

    def encode(self) -> bytes:
        """Twelve bytes; UsageError for a field that does not fit."""
        check_fits("opcode", self.opcode, 8)
        check_fits("destination_qp", self.destination_qp, 24)
        check_fits("psn", self.psn, 24)
        check_fits("pad_bytes", self.pad_bytes, 2)
        check_fits("partition_key", self.partition_key, 16)
        check_fits("transport_version", self.transport_version, 4)
        check_fits("reserved6", self.reserved6, 6)
        check_fits("reserved7", self.reserved7, 7)
        flags = self.solicited_event << 7 | self.migrated << 6 | self.pad_bytes << 4 | self.transport_version
        congestion = self.fecn << 7 | self.becn << 6 | self.reserved6
        return _BTH.pack(
            self.opcode,
            flags,
            self.partition_key,
            congestion << 24 | self.destination_qp,
            (self.ack_request << 7 | self.reserved7) << 24 | self.psn,
        )

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read twelve bytes; returns record and rest, or raises MalformedPacket."""
        if len(data) < BTH_BYTES:
            raise MalformedPacket("BTH", f"found {len(data)} bytes, wanted at least {BTH_BYTES}")
        opcode, flags, partition_key, qp_word, psn_word = _BTH.unpack_from(data)
        record = cls(  # by place, since every packet comes through here
            opcode,
            qp_word & 0xFFFFFF,
            psn_word & 0xFFFFFF,
            psn_word >> 31 == 1,  # ACK request
            flags >> 4 & 0b11,
            partition_key,
            flags >> 7 == 1,
            flags >> 6 & 1 == 1,
            flags & 0xF,
            qp_word >> 31 == 1,  # FECN
            qp_word >> 30 & 1 == 1,  # BECN
            qp_word >> 24 & 0x3F,
            psn_word >> 24 & 0x7F,
        )
        return record, memoryview(data)[BTH_BYTES:]


def cnp_bth(destination_qp: int, partition_key: int = DEFAULT_PARTITION_KEY) -> Bth:
    """Header of a congestion notification packet to a marked flow's sender.

    ``CNP_BODY`` follows it.

    Parameters
    ----------
    destination_qp : queue pair at the sender of the marked packet
    partition_key : that of the flow
    """
    return Bth(opcode=Opcode.CNP, destination_qp=destination_qp, psn=0, partition_key=partition_key, becn=True)


def psn_add(psn: int, packets: int) -> int:
    """The PSN ``packets`` later, modulo 2^24; earlier for negative numbers.

    Examples
    --------
    >>> psn_add(0xFFFFFF, 2), psn_add(0, -1) == 0xFFFFFF
    (1, True)
    """
    return (psn + packets) % PSN_MODULUS


def psn_compare(psn: int, other: int) -> int:
    """Packets from ``other`` to ``psn``: negative if behind, 0 if equal.

    It is positive if ``psn`` is ahead. Half of the circle is ahead, half behind (IBTA vol. 1, 9.7.1); exactly opposite
    counts as behind, as in ``psn_compare`` of Linux drivers/infiniband/sw/rxe.

    Returns
    -------
    -2^23 to 2^23 - 1

    Examples
    --------
    >>> psn_compare(1, 0xFFFFFF), psn_compare(0xFFFFFF, 1)
    (2, -2)
    """
    half = PSN_MODULUS // 2
    return (psn - other + half) % PSN_MODULUS - half
