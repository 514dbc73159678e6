"""The extended transport headers, which follow the base transport header.

The opcode says which headers follow.
Source: IBTA vol. 1, 9.3, and annexes A14 (XRCETH) and A19 (FETH), as encoded in Linux include/rdma/ib_pack.h and
drivers/infiniband/sw/rxe/rxe_hdr.h; scapy and tshark agree.
Leaves out: the order of the headers behind an opcode, which is in ``opcodes``.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct
from typing import Final, NamedTuple, Protocol, Self

from weftwork.wire.credits import code_to_credits
from weftwork.wire.fields import MalformedPacket, check_fits

__all__ = [
    "AETH_BYTES",
    "HEADER_BYTES",
    "RETH_BYTES",
    "Aeth",
    "AethKind",
    "AtomicAckEth",
    "AtomicEth",
    "Deth",
    "ExtendedHeader",
    "Feth",
    "FlushPlacement",
    "Ieth",
    "ImmediateData",
    "Nak",
    "Rdeth",
    "Reth",
    "XrcEth",
]

AETH_BYTES = 4  # IBTA vol. 1, 9.3.5
RETH_BYTES = 16  # IBTA vol. 1, 9.3.3: virtual address, key and length, in the first packet of a WRITE and in a READ

_U32 = Struct(">I")
_U64 = Struct(">Q")
_RETH = Struct(">QII")
_DETH = Struct(">II")
_ATOMIC = Struct(">QIQQ")
_LOW24: Final = 0xFFFFFF


class ExtendedHeader(Protocol):
    """A header of fixed size that can follow BTH."""

    def encode(self) -> bytes:
        """The header in ``HEADER_BYTES`` bytes; UsageError for wrong fields."""

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read ``HEADER_BYTES`` bytes; returns record and rest, or raises MalformedPacket."""


def _cut(layout: Struct, data: memoryview | bytes, layer: str) -> tuple[tuple[int, ...], memoryview]:
    """Read a layout from the front of ``data`` without a copy.

    Returns the rest too.
    """
    if len(data) < layout.size:
        raise MalformedPacket(layer, f"found {len(data)} bytes, wanted at least {layout.size}")
    return layout.unpack_from(data), memoryview(data)[layout.size :]


class AethKind(IntEnum):
    """Bits 6 and 5 of the syndrome (IBTA vol. 1, 9.3.5)."""

    ACK = 0b00
    RNR_NAK = 0b01
    RESERVED = 0b10
    NAK = 0b11


class Nak(IntEnum):
    """Codes of a NAK, bits 4 to 0 of the syndrome.

    Source: IBTA vol. 1, 9.7.5.2; IB_NAK_* in Linux ib_hdrs.h.
    """

    PSN_SEQUENCE_ERROR = 0
    INVALID_REQUEST = 1
    REMOTE_ACCESS_ERROR = 2
    REMOTE_OPERATIONAL_ERROR = 3
    INVALID_RD_REQUEST = 4


_KINDS = tuple(AethKind)


class Aeth(NamedTuple):
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
        """Posted receives of the responder beyond ``msn``.

        None if the header carries no count.
        """
        return code_to_credits(self.value) if self.kind is AethKind.ACK else None

    def encode(self) -> bytes:
        """Four bytes; UsageError for a field that does not fit."""
        check_fits("value", self.value, 5)
        check_fits("msn", self.msn, 24)
        return _U32.pack(self.syndrome << 24 | self.msn)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read four bytes; returns record and rest, or raises MalformedPacket."""
        (word,), rest = _cut(_U32, data, "AETH")
        return cls(_KINDS[word >> 29 & 0b11], word >> 24 & 0x1F, word & _LOW24, bool(word >> 31)), rest


class Reth(NamedTuple):
    """The RDMA header: address, key and length in the responder's memory.

    Source: IBTA vol. 1, 9.3.3.

    Parameters
    ----------
    virtual_address : 64 bits
    remote_key : 32 bits, as the responder registered the memory
    dma_bytes : length of the whole message, 32 bits
    """

    virtual_address: int
    remote_key: int
    dma_bytes: int

    def encode(self) -> bytes:
        """Sixteen bytes; UsageError for a field that does not fit."""
        check_fits("virtual_address", self.virtual_address, 64)
        check_fits("remote_key", self.remote_key, 32)
        check_fits("dma_bytes", self.dma_bytes, 32)
        return _RETH.pack(*self)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read sixteen bytes; returns record and rest, or raises MalformedPacket."""
        values, rest = _cut(_RETH, data, "RETH")
        return cls(*values), rest


class Deth(NamedTuple):
    """The datagram header: the sender and the key of the receiver.

    The key admits the packet. Source: IBTA vol. 1, 9.3.2.

    Parameters
    ----------
    queue_key : 32 bits
    source_qp : 24 bits
    reserved8 : sent as 0
    """

    queue_key: int
    source_qp: int
    reserved8: int = 0

    def encode(self) -> bytes:
        """Eight bytes; UsageError for a field that does not fit."""
        check_fits("queue_key", self.queue_key, 32)
        check_fits("source_qp", self.source_qp, 24)
        check_fits("reserved8", self.reserved8, 8)
        return _DETH.pack(self.queue_key, self.reserved8 << 24 | self.source_qp)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read eight bytes; returns record and rest, or raises MalformedPacket."""
        (queue_key, word), rest = _cut(_DETH, data, "DETH")
        return cls(queue_key, word & _LOW24, word >> 24), rest


class AtomicEth(NamedTuple):
    """The header of an atomic request: its memory and its operands.

    The memory is eight bytes. Source: IBTA vol. 1, 9.3.4.

    Parameters
    ----------
    virtual_address : 64 bits
    remote_key : 32 bits
    swap_or_add : 64 bits; the new value, or the summand
    compare : 64 bits; the value to find, of COMPARE SWAP alone
    """

    virtual_address: int
    remote_key: int
    swap_or_add: int
    compare: int

    def encode(self) -> bytes:
        """28 bytes; UsageError for a field that does not fit."""
        check_fits("virtual_address", self.virtual_address, 64)
        check_fits("remote_key", self.remote_key, 32)
        check_fits("swap_or_add", self.swap_or_add, 64)
        check_fits("compare", self.compare, 64)
        return _ATOMIC.pack(*self)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read 28 bytes; returns record and rest, or raises MalformedPacket."""
        values, rest = _cut(_ATOMIC, data, "AtomicETH")
        return cls(*values), rest


class AtomicAckEth(NamedTuple):
    """The answer to an atomic request (IBTA vol. 1, 9.3).

    Parameters
    ----------
    original_data : 64 bits, the value before
    """

    original_data: int

    def encode(self) -> bytes:
        """Eight bytes; UsageError for a field that does not fit."""
        check_fits("original_data", self.original_data, 64)
        return _U64.pack(*self)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read eight bytes; returns record and rest, or raises MalformedPacket."""
        values, rest = _cut(_U64, data, "AtomicAckETH")
        return cls(*values), rest


class ImmediateData(NamedTuple):
    """Four bytes for the completion of the receiver (IBTA vol. 1, 9.3.6).

    Parameters
    ----------
    immediate : 32 bits, which the NIC does not interpret
    """

    immediate: int

    def encode(self) -> bytes:
        """Four bytes; UsageError for a field that does not fit."""
        check_fits("immediate", self.immediate, 32)
        return _U32.pack(*self)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read four bytes; returns record and rest, or raises MalformedPacket."""
        values, rest = _cut(_U32, data, "ImmDt")
        return cls(*values), rest


class Ieth(NamedTuple):
    """The key that the receiver is to invalidate (IBTA vol. 1, 9.3.7).

    Parameters
    ----------
    remote_key : 32 bits
    """

    remote_key: int

    def encode(self) -> bytes:
        """Four bytes; UsageError for a field that does not fit."""
        check_fits("remote_key", self.remote_key, 32)
        return _U32.pack(*self)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read four bytes; returns record and rest, or raises MalformedPacket."""
        values, rest = _cut(_U32, data, "IETH")
        return cls(*values), rest


class XrcEth(NamedTuple):
    """The shared receive queue of an extended reliable connection (IBTA vol. 1, annex A14).

    Parameters
    ----------
    srq : number of the queue, 24 bits
    reserved8 : sent as 0
    """

    srq: int
    reserved8: int = 0

    def encode(self) -> bytes:
        """Four bytes; UsageError for a field that does not fit."""
        check_fits("srq", self.srq, 24)
        check_fits("reserved8", self.reserved8, 8)
        return _U32.pack(self.reserved8 << 24 | self.srq)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read four bytes; returns record and rest, or raises MalformedPacket."""
        (word,), rest = _cut(_U32, data, "XRCETH")
        return cls(word & _LOW24, word >> 24), rest


class Rdeth(NamedTuple):
    """The end-to-end context of a reliable datagram (IBTA vol. 1, 9.3.1).

    Parameters
    ----------
    ee_context : 24 bits
    reserved8 : sent as 0
    """

    ee_context: int
    reserved8: int = 0

    def encode(self) -> bytes:
        """Four bytes; UsageError for a field that does not fit."""
        check_fits("ee_context", self.ee_context, 24)
        check_fits("reserved8", self.reserved8, 8)
        return _U32.pack(self.reserved8 << 24 | self.ee_context)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read four bytes; returns record and rest, or raises MalformedPacket."""
        (word,), rest = _cut(_U32, data, "RDETH")
        return cls(word & _LOW24, word >> 24), rest


class FlushPlacement(IntFlag):
    """Required placement of flushed bytes (IBTA vol. 1, annex A19)."""

    GLOBAL_VISIBILITY = 0b01
    PERSISTENCE = 0b10


class Feth(NamedTuple):
    """Target of a FLUSH (IBTA vol. 1, annex A19).

    Bits are as in FETH_PLT_MASK and FETH_SEL_MASK of Linux rxe_hdr.h.

    Parameters
    ----------
    placement : 4 bits, see ``FlushPlacement``
    selectivity : 2 bits; 0 a range of memory, 1 the whole region
    reserved26 : sent as 0
    """

    placement: int
    selectivity: int
    reserved26: int = 0

    def encode(self) -> bytes:
        """Four bytes; UsageError for a field that does not fit."""
        check_fits("placement", self.placement, 4)
        check_fits("selectivity", self.selectivity, 2)
        check_fits("reserved26", self.reserved26, 26)
        return _U32.pack(self.reserved26 << 6 | self.selectivity << 4 | self.placement)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read four bytes; returns record and rest, or raises MalformedPacket."""
        (word,), rest = _cut(_U32, data, "FETH")
        return cls(word & 0xF, word >> 4 & 0b11, word >> 6), rest


HEADER_BYTES: Final[dict[type[ExtendedHeader], int]] = {
    Reth: RETH_BYTES,
    Deth: _DETH.size,
    Aeth: AETH_BYTES,
    AtomicEth: _ATOMIC.size,
    AtomicAckEth: _U64.size,
    ImmediateData: _U32.size,
    Ieth: _U32.size,
    XrcEth: _U32.size,
    Rdeth: _U32.size,
    Feth: _U32.size,
}
