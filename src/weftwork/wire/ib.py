"""InfiniBand transport headers of a reliable connection: BTH, AETH with its credits, the CNP, and the PSN arithmetic.

Source: IBTA vol. 1, chapter 9 and annex A17 (CNP), as encoded in Linux include/rdma/ib_pack.h, ib_hdrs.h and
drivers/infiniband/sw/{rxe,rdmavt}; checked against scapy and tshark by tests.
Leaves out: the codecs of the other extended headers (of RETH only the size is here), native link headers.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from weftwork.base.errors import UsageError
from weftwork.wire.fields import check_fits, split

__all__ = [
    "AETH_BYTES",
    "BTH_BYTES",
    "CNP_BODY",
    "CREDITS_BY_CODE",
    "DEFAULT_PARTITION_KEY",
    "NO_CREDIT_COUNT",
    "PSN_MODULUS",
    "RETH_BYTES",
    "Aeth",
    "AethKind",
    "Bth",
    "Nak",
    "Opcode",
    "cnp_bth",
    "code_to_credits",
    "credits_to_code",
    "psn_add",
    "psn_compare",
]

BTH_BYTES = 12  # IBTA vol. 1, 9.2; IB_BTH_BYTES in Linux ib_pack.h
AETH_BYTES = 4  # IBTA vol. 1, 9.3.5
RETH_BYTES = 16  # IBTA vol. 1, 9.3.3: virtual address, key and length, in the first packet of a WRITE and in a READ
CNP_BODY = bytes(16)  # IBTA vol. 1, annex A17: 16 reserved bytes, all zero
DEFAULT_PARTITION_KEY = 0xFFFF  # BTH_DEF_PKEY in Linux drivers/infiniband/sw/rxe/rxe_hdr.h
PSN_MODULUS = 1 << 24  # IBTA vol. 1, 9.2

# IBTA vol. 1, table 45; credit_table in Linux drivers/infiniband/sw/rdmavt/rc.c. Each step is a half or a third more.
CREDITS_BY_CODE = (
    *(0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192),
    *(256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768),
)
NO_CREDIT_COUNT = 31  # IBTA vol. 1, table 45: the responder counts no credits, the requester need not either


class Opcode(IntEnum):
    """Opcodes of a reliable connection that Weftwork sends so far, and the CNP (IBTA vol. 1, 9.2.1 and annex A17)."""

    SEND_FIRST = 0x00
    SEND_MIDDLE = 0x01
    SEND_LAST = 0x02
    SEND_ONLY = 0x04
    WRITE_FIRST = 0x06
    WRITE_MIDDLE = 0x07
    WRITE_LAST = 0x08
    WRITE_ONLY = 0x0A
    ACKNOWLEDGE = 0x11
    CNP = 0x81


class AethKind(IntEnum):
    """Bits 6 and 5 of the syndrome (IBTA vol. 1, 9.3.5)."""

    ACK = 0b00
    RNR_NAK = 0b01
    RESERVED = 0b10
    NAK = 0b11


class Nak(IntEnum):
    """Codes of a NAK, bits 4 to 0 of the syndrome (IBTA vol. 1, 9.7.5.2; IB_NAK_* in Linux ib_hdrs.h)."""

    PSN_SEQUENCE_ERROR = 0
    INVALID_REQUEST = 1
    REMOTE_ACCESS_ERROR = 2
    REMOTE_OPERATIONAL_ERROR = 3
    INVALID_RD_REQUEST = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Bth:
    """The base transport header. ``decode`` keeps every bit and judges none: that is the queue pair's affair.

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
        return struct.pack(
            ">BBHII",
            self.opcode,
            flags,
            self.partition_key,
            congestion << 24 | self.destination_qp,
            (self.ack_request << 7 | self.reserved7) << 24 | self.psn,
        )

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read twelve bytes; returns the record and the rest, raises MalformedPacket for fewer."""
        head, rest = split(data, BTH_BYTES, "BTH")
        opcode, flags, partition_key, qp_word, psn_word = struct.unpack(">BBHII", head)
        record = cls(
            opcode=opcode,
            destination_qp=qp_word & 0xFFFFFF,
            psn=psn_word & 0xFFFFFF,
            ack_request=bool(psn_word >> 31),
            pad_bytes=flags >> 4 & 0b11,
            partition_key=partition_key,
            solicited_event=bool(flags >> 7),
            migrated=bool(flags >> 6 & 1),
            transport_version=flags & 0xF,
            fecn=bool(qp_word >> 31),
            becn=bool(qp_word >> 30 & 1),
            reserved6=qp_word >> 24 & 0x3F,
            reserved7=psn_word >> 24 & 0x7F,
        )
        return record, rest


@dataclass(frozen=True, kw_only=True, slots=True)
class Aeth:
    """The acknowledgement header.

    Parameters
    ----------
    kind : what is acknowledged or refused
    value : 5 bits; the credit code of an ACK, the timer code of an RNR NAK, the ``Nak`` of a NAK
    msn : messages completed by the responder, modulo 2^24
    reserved_bit : highest bit of the syndrome, sent as 0
    """

    kind: AethKind
    value: int
    msn: int
    reserved_bit: bool = False

    @property
    def syndrome(self) -> int:
        """The eight bits as on the wire."""
        return self.reserved_bit << 7 | self.kind << 5 | self.value

    @property
    def credits(self) -> int | None:
        """Receives that the responder has posted beyond ``msn``; None where the header carries no count."""
        return code_to_credits(self.value) if self.kind is AethKind.ACK else None

    def encode(self) -> bytes:
        """Four bytes; UsageError for a field that does not fit."""
        check_fits("value", self.value, 5)
        check_fits("msn", self.msn, 24)
        return struct.pack(">I", self.syndrome << 24 | self.msn)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read four bytes; returns the record and the rest, raises MalformedPacket for fewer."""
        head, rest = split(data, AETH_BYTES, "AETH")
        (word,) = struct.unpack(">I", head)
        syndrome = word >> 24
        record = cls(
            kind=AethKind(syndrome >> 5 & 0b11),
            value=syndrome & 0x1F,
            msn=word & 0xFFFFFF,
            reserved_bit=bool(syndrome >> 7),
        )
        return record, rest


def cnp_bth(destination_qp: int, partition_key: int = DEFAULT_PARTITION_KEY) -> Bth:
    """Header of a congestion notification packet to the sender of the marked flow; ``CNP_BODY`` follows it.

    Parameters
    ----------
    destination_qp : queue pair at the sender of the marked packet
    partition_key : that of the flow
    """
    return Bth(opcode=Opcode.CNP, destination_qp=destination_qp, psn=0, partition_key=partition_key, becn=True)


def credits_to_code(credit_count: int) -> int:
    """Largest code that does not promise more than ``credit_count`` receives; UsageError for a negative count.

    Examples
    --------
    >>> credits_to_code(5), credits_to_code(6), credits_to_code(1_000_000)
    (4, 5, 30)
    """
    if credit_count < 0:
        raise UsageError(f"credit_count: found {credit_count}, wanted zero or more")
    return bisect_right(CREDITS_BY_CODE, credit_count) - 1


def code_to_credits(code: int) -> int | None:
    """Receives that a credit code stands for; None for 31, which means no count; UsageError beyond five bits."""
    check_fits("code", code, 5)
    return None if code == NO_CREDIT_COUNT else CREDITS_BY_CODE[code]


def psn_add(psn: int, packets: int) -> int:
    """The PSN ``packets`` later, or earlier where negative, modulo 2^24.

    Examples
    --------
    >>> psn_add(0xFFFFFF, 2), psn_add(0, -1) == 0xFFFFFF
    (1, True)
    """
    return (psn + packets) % PSN_MODULUS


def psn_compare(psn: int, other: int) -> int:
    """How many packets ``psn`` lies behind (negative) or ahead of (positive) ``other``; 0 if equal.

    Half of the circle is ahead, half behind (IBTA vol. 1, 9.7.1); exactly opposite counts as behind, as in
    ``psn_compare`` of Linux drivers/infiniband/sw/rxe.

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
