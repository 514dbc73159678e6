"""RDMAP: operations of iWARP, their headers, and the codes of a Terminate.

Source: RFC 5040, section 4 (RDMAP); RFC 7306, sections 5 and 6 (atomics, immediate data); RFC 5041, 6.2 and RFC 5044,
8 (codes of the layers below); as encoded in Linux drivers/infiniband/sw/siw/iwarp.h; tshark agrees.
Leaves out: the headers below, see `ddp` and `mpa`.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from struct import Struct
from typing import Final, NamedTuple, Self

from weftwork.wire.ddp import TAGGED_BYTES, UNTAGGED_BYTES
from weftwork.wire.fields import MalformedPacket, check_fits, split

__all__ = [
    "QUEUE_OF",
    "RDMAP_VERSION",
    "AtomicOpcode",
    "AtomicRequest",
    "AtomicResponse",
    "ImmediateMessage",
    "RdmapOpcode",
    "RdmapQueue",
    "ReadRequest",
    "Terminate",
    "TerminateCode",
    "rdmap_control",
]

RDMAP_VERSION: Final = 1  # RFC 5040, 4.1

_READ: Final = Struct(">IQIIQ")
_ATOMIC: Final = Struct(">IIIQQQQQ")
_ATOMIC_RESPONSE: Final = Struct(">IQ")
_TERMINATE: Final = Struct(">BBH")
_LENGTH: Final = Struct(">H")
_LOW28: Final = (1 << 28) - 1
_ONES64: Final = (1 << 64) - 1


class RdmapOpcode(IntEnum):
    """Operation of a message (RFC 5040, 4.1; RFC 7306, 4)."""

    __hash__ = int.__hash__  # that of an Enum takes long

    WRITE = 0x0
    READ_REQUEST = 0x1
    READ_RESPONSE = 0x2
    SEND = 0x3
    SEND_INVALIDATE = 0x4
    SEND_SOLICITED = 0x5
    SEND_SOLICITED_INVALIDATE = 0x6
    TERMINATE = 0x7
    IMMEDIATE = 0x8
    IMMEDIATE_SOLICITED = 0x9
    ATOMIC_REQUEST = 0xA
    ATOMIC_RESPONSE = 0xB


class RdmapQueue(IntEnum):
    """Untagged queues of DDP (RFC 5040, 4.2; RFC 7306, 5)."""

    __hash__ = int.__hash__  # that of an Enum takes long

    SEND = 0
    READ_REQUEST = 1
    TERMINATE = 2
    ATOMIC_RESPONSE = 3


# The queue of each operation; None of tagged messages.
QUEUE_OF: Final[dict[int, RdmapQueue | None]] = {
    RdmapOpcode.WRITE: None,
    RdmapOpcode.READ_REQUEST: RdmapQueue.READ_REQUEST,
    RdmapOpcode.READ_RESPONSE: None,
    RdmapOpcode.SEND: RdmapQueue.SEND,
    RdmapOpcode.SEND_INVALIDATE: RdmapQueue.SEND,
    RdmapOpcode.SEND_SOLICITED: RdmapQueue.SEND,
    RdmapOpcode.SEND_SOLICITED_INVALIDATE: RdmapQueue.SEND,
    RdmapOpcode.TERMINATE: RdmapQueue.TERMINATE,
    RdmapOpcode.IMMEDIATE: RdmapQueue.SEND,
    RdmapOpcode.IMMEDIATE_SOLICITED: RdmapQueue.SEND,
    RdmapOpcode.ATOMIC_REQUEST: RdmapQueue.READ_REQUEST,
    RdmapOpcode.ATOMIC_RESPONSE: RdmapQueue.ATOMIC_RESPONSE,
}


def rdmap_control(opcode: int, version: int = RDMAP_VERSION, reserved: int = 0) -> int:
    """The 8 bits of RDMAP in a header of DDP.

    Examples
    --------
    >>> hex(rdmap_control(RdmapOpcode.SEND))
    '0x43'
    """
    check_fits("opcode", opcode, 4)
    check_fits("version", version, 2)
    check_fits("reserved", reserved, 2)
    return version << 6 | reserved << 4 | opcode


class ReadRequest(NamedTuple):
    """Header of a READ request (RFC 5040, 4.4).

    Parameters
    ----------
    sink_stag, sink_offset : memory of the asking end, 32 and 64 bits; the response names it
    size_bytes : 32 bits
    source_stag, source_offset : memory of the answering end, 32 and 64 bits
    """

    sink_stag: int
    sink_offset: int
    size_bytes: int
    source_stag: int
    source_offset: int

    def encode(self) -> bytes:
        """Twenty-eight bytes; UsageError for a field that does not fit."""
        for name, bits in zip(self._fields, (32, 64, 32, 32, 64), strict=True):
            check_fits(name, getattr(self, name), bits)
        return _READ.pack(*self)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read twenty-eight bytes; returns record and rest, or raises MalformedPacket."""
        front, rest = split(data, _READ.size, "RDMAP READ request")
        return cls(*_READ.unpack(front)), rest


class AtomicOpcode(IntEnum):
    """Atomic operation (RFC 7306, 5.2.1)."""

    FETCH_ADD = 0
    COMPARE_SWAP = 2


class AtomicRequest(NamedTuple):
    """Header of an atomic request (RFC 7306, 5.2.1).

    Parameters
    ----------
    operation : 4 bits, an ``AtomicOpcode``
    request : 32 bits; the response repeats them
    stag, offset : eight bytes of the answering end, 32 and 64 bits
    add_or_swap : 64 bits
    add_or_swap_mask : 64 bits: of FETCH_ADD each set bit ends a field, of COMPARE_SWAP it is replaced
    compare : 64 bits
    compare_mask : 64 bits: those that are compared
    reserved : 28 bits, sent as 0
    """

    operation: int
    request: int
    stag: int
    offset: int
    add_or_swap: int
    add_or_swap_mask: int = 0
    compare: int = 0
    compare_mask: int = _ONES64
    reserved: int = 0

    def encode(self) -> bytes:
        """Fifty-two bytes; UsageError for a field that does not fit."""
        for name, bits in zip(self._fields, (4, 32, 32, 64, 64, 64, 64, 64, 28), strict=True):
            check_fits(name, getattr(self, name), bits)
        return _ATOMIC.pack(self.reserved << 4 | self.operation, *self[1:-1])

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read fifty-two bytes; returns record and rest, or raises MalformedPacket."""
        front, rest = split(data, _ATOMIC.size, "RDMAP atomic request")
        word, request, stag, offset, value, value_mask, compare, compare_mask = _ATOMIC.unpack(front)
        return cls(word & 0xF, request, stag, offset, value, value_mask, compare, compare_mask, word >> 4), rest

    def result(self, original: int) -> int | None:
        """Value of the eight bytes afterwards; None for an unknown operation.

        Examples
        --------
        >>> AtomicRequest(AtomicOpcode.FETCH_ADD, 0, 0, 0, add_or_swap=1).result(41)
        42
        >>> AtomicRequest(AtomicOpcode.FETCH_ADD, 0, 0, 0, add_or_swap=1, add_or_swap_mask=0xFF).result(0x1FF) >> 8
        1
        """
        if self.operation == AtomicOpcode.COMPARE_SWAP:
            if (original ^ self.compare) & self.compare_mask:
                return original
            return original & ~self.add_or_swap_mask | self.add_or_swap & self.add_or_swap_mask
        if self.operation == AtomicOpcode.FETCH_ADD:
            return _add_by_fields(original, self.add_or_swap, self.add_or_swap_mask)
        return None


def _add_by_fields(value: int, addend: int, ends: int) -> int:
    """Add modulo 2^64 without a carry out of any bit of ``ends``."""
    # Without the last bits of the fields no carry leaves a field; these bits are added without a carry.
    inner = (value & ~ends) + (addend & ~ends)
    return (inner ^ (value ^ addend) & ends) & _ONES64


class AtomicResponse(NamedTuple):
    """Header of an atomic response (RFC 7306, 5.2.2).

    Parameters
    ----------
    request : of the request, 32 bits
    original : value before, 64 bits
    """

    request: int
    original: int

    def encode(self) -> bytes:
        """Twelve bytes; UsageError for a field that does not fit."""
        check_fits("request", self.request, 32)
        check_fits("original", self.original, 64)
        return _ATOMIC_RESPONSE.pack(*self)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read twelve bytes; returns record and rest, or raises MalformedPacket."""
        front, rest = split(data, _ATOMIC_RESPONSE.size, "RDMAP atomic response")
        return cls(*_ATOMIC_RESPONSE.unpack(front)), rest


class ImmediateMessage(NamedTuple):
    """Eight bytes of immediate data (RFC 7306, 6.1).

    The verbs have 32 bits of immediate data; they are the first four bytes, as in Linux drivers/infiniband/hw/cxgb4.

    Parameters
    ----------
    immediate : 32 bits
    more : 32 bits, sent as 0
    """

    immediate: int
    more: int = 0

    def encode(self) -> bytes:
        """Eight bytes; UsageError for a field that does not fit."""
        check_fits("immediate", self.immediate, 32)
        check_fits("more", self.more, 32)
        return (self.immediate << 32 | self.more).to_bytes(8, "big")

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read eight bytes; returns record and rest, or raises MalformedPacket."""
        front, rest = split(data, 8, "RDMAP immediate data")
        return cls(int.from_bytes(front[:4], "big"), int.from_bytes(front[4:], "big")), rest


class TerminateCode(Enum):
    """Layer, kind and code of an error, as a Terminate names them.

    Source: RFC 5040, 4.8 and 7.1 (layer 0), RFC 5041, 6.2 (layer 1), RFC 5044, 8 and RFC 6581, 9 (layer 2).
    """

    LOCAL_CATASTROPHIC = (0, 0, 0x00)
    RDMAP_INVALID_STAG = (0, 1, 0x00)
    RDMAP_BOUNDS = (0, 1, 0x01)
    RDMAP_ACCESS = (0, 1, 0x02)
    RDMAP_NOT_ASSOCIATED = (0, 1, 0x03)
    RDMAP_OFFSET_WRAP = (0, 1, 0x04)
    RDMAP_CANNOT_INVALIDATE = (0, 1, 0x09)
    RDMAP_PROTECTION = (0, 1, 0xFF)
    RDMAP_VERSION = (0, 2, 0x05)
    RDMAP_UNEXPECTED_OPCODE = (0, 2, 0x06)
    RDMAP_STREAM_CATASTROPHIC = (0, 2, 0x07)
    RDMAP_UNSPECIFIC = (0, 2, 0xFF)
    DDP_CATASTROPHIC = (1, 0, 0x00)
    DDP_INVALID_STAG = (1, 1, 0x00)
    DDP_BOUNDS = (1, 1, 0x01)
    DDP_NOT_ASSOCIATED = (1, 1, 0x02)
    DDP_OFFSET_WRAP = (1, 1, 0x03)
    DDP_TAGGED_VERSION = (1, 1, 0x04)
    DDP_INVALID_QUEUE = (1, 2, 0x01)
    DDP_NO_BUFFER = (1, 2, 0x02)
    DDP_MESSAGE_NUMBER = (1, 2, 0x03)
    DDP_MESSAGE_OFFSET = (1, 2, 0x04)
    DDP_TOO_LONG = (1, 2, 0x05)
    DDP_UNTAGGED_VERSION = (1, 2, 0x06)
    MPA_STREAM_LOST = (2, 0, 0x01)
    MPA_CRC = (2, 0, 0x02)
    MPA_FRAMING = (2, 0, 0x03)
    MPA_INVALID_FRAME = (2, 0, 0x04)
    MPA_LOCAL_CATASTROPHIC = (2, 0, 0x05)
    MPA_INSUFFICIENT_DEPTH = (2, 0, 0x06)
    MPA_NO_MATCHING_RTR = (2, 0, 0x07)


class Terminate(NamedTuple):
    """Body of a Terminate message (RFC 5040, 4.8).

    Parameters
    ----------
    layer, kind, code : 4, 4 and 8 bits, see ``TerminateCode``
    segment_bytes : size of the DDP segment that was refused, or None
    ddp_header : of this segment, 14 or 18 bytes; empty if none
    rdmap_header : of a request that was refused; empty if none
    reserved : 13 bits, sent as 0
    """

    layer: int
    kind: int
    code: int
    segment_bytes: int | None = None
    ddp_header: bytes = b""
    rdmap_header: bytes = b""
    reserved: int = 0

    @classmethod
    def of(
        cls, code: TerminateCode, segment_bytes: int | None = None, ddp_header: bytes = b"", rdmap_header: bytes = b""
    ) -> Self:
        """Make a Terminate of a known code."""
        return cls(*code.value, segment_bytes, ddp_header, rdmap_header)

    @property
    def known(self) -> TerminateCode | None:
        """The code by its name, or None."""
        value = (self.layer, self.kind, self.code)
        return next((code for code in TerminateCode if code.value == value), None)

    def encode(self) -> bytes:
        """The body; UsageError for a field that does not fit."""
        check_fits("layer", self.layer, 4)
        check_fits("kind", self.kind, 4)
        check_fits("code", self.code, 8)
        check_fits("reserved", self.reserved, 13)
        has = (self.segment_bytes is not None) << 15 | bool(self.ddp_header) << 14 | bool(self.rdmap_header) << 13
        body = _TERMINATE.pack(self.layer << 4 | self.kind, self.code, has | self.reserved)
        if self.segment_bytes is not None:
            check_fits("segment_bytes", self.segment_bytes, 16)
            body += _LENGTH.pack(self.segment_bytes)
        return body + self.ddp_header + self.rdmap_header

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read a body; returns record and rest, or raises MalformedPacket."""
        front, rest = split(data, _TERMINATE.size, "RDMAP Terminate")
        first, code, flags = _TERMINATE.unpack(front)
        segment_bytes: int | None = None
        ddp_header = rdmap_header = b""
        if flags >> 15:
            length, rest = split(rest, _LENGTH.size, "RDMAP Terminate")
            (segment_bytes,) = _LENGTH.unpack(length)
        if flags >> 14 & 1:
            if len(rest) == 0:
                raise MalformedPacket("RDMAP Terminate", "found 0 bytes, wanted the header of a DDP segment")
            header, rest = split(rest, TAGGED_BYTES if rest[0] >> 7 else UNTAGGED_BYTES, "RDMAP Terminate")
            ddp_header = bytes(header)
        if flags >> 13 & 1:
            if len(rest) == 0:
                raise MalformedPacket("RDMAP Terminate", "found 0 bytes, wanted the header of an RDMAP request")
            rdmap_header, rest = bytes(rest), rest[len(rest) :]
        return cls(first >> 4, first & 0xF, code, segment_bytes, ddp_header, rdmap_header, flags & 0x1FFF), rest
