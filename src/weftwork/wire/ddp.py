"""DDP: the headers of segments that say where their bytes are placed.

A tagged segment names memory of the receiver; an untagged segment names a queue of buffers that the receiver has
posted.
Source: RFC 5041, section 4, as encoded in Linux drivers/infiniband/sw/siw/iwarp.h; tshark agrees.
Leaves out: the meaning of the bits for the protocol above, see `rdmap`.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple, Self

from weftwork.wire.fields import MalformedPacket, check_fits

__all__ = ["DDP_VERSION", "TAGGED_BYTES", "UNTAGGED_BYTES", "DdpTagged", "DdpUntagged", "decode_ddp"]

DDP_VERSION: Final = 1  # RFC 5041, 4.1
TAGGED_BYTES: Final = 14  # RFC 5041, 4.2
UNTAGGED_BYTES: Final = 18  # RFC 5041, 4.3

_TAGGED: Final = Struct(">BBIQ")
_UNTAGGED: Final = Struct(">BBIIII")


class DdpTagged(NamedTuple):
    """Header of a tagged segment.

    Parameters
    ----------
    upper : 8 bits of the protocol above
    stag : steering tag, 32 bits: the memory of the receiver
    offset : tagged offset, 64 bits: where in this memory
    is_last : the message ends with this segment
    version : 2 bits
    reserved : 4 bits, sent as 0
    """

    upper: int
    stag: int
    offset: int
    is_last: bool = True
    version: int = DDP_VERSION
    reserved: int = 0

    def encode(self) -> bytes:
        """Fourteen bytes; UsageError for a field that does not fit."""
        check_fits("upper", self.upper, 8)
        check_fits("stag", self.stag, 32)
        check_fits("offset", self.offset, 64)
        return _TAGGED.pack(_control(self, is_tagged=True), self.upper, self.stag, self.offset)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read fourteen bytes; returns record and rest, or raises MalformedPacket."""
        if len(data) < TAGGED_BYTES or data[0] >> 7 == 0:
            raise MalformedPacket("DDP", f"found {len(data)} bytes, wanted at least {TAGGED_BYTES} of a tagged segment")
        control, upper, stag, offset = _TAGGED.unpack_from(data)
        record = cls(upper, stag, offset, control >> 6 & 1 == 1, control & 0b11, control >> 2 & 0xF)
        return record, memoryview(data)[TAGGED_BYTES:]


class DdpUntagged(NamedTuple):
    """Header of an untagged segment.

    Parameters
    ----------
    upper : 8 bits of the protocol above
    upper_word : 32 more bits of it
    queue : QN, 32 bits: a queue of the receiver
    message : MSN, 32 bits: number of the message in this queue, from 1
    offset : MO, 32 bits: bytes of the message in front of this segment
    is_last : the message ends with this segment
    version : 2 bits
    reserved : 4 bits, sent as 0
    """

    upper: int
    upper_word: int
    queue: int
    message: int
    offset: int = 0
    is_last: bool = True
    version: int = DDP_VERSION
    reserved: int = 0

    def encode(self) -> bytes:
        """Eighteen bytes; UsageError for a field that does not fit."""
        check_fits("upper", self.upper, 8)
        for name in ("upper_word", "queue", "message", "offset"):
            check_fits(name, getattr(self, name), 32)
        control = _control(self, is_tagged=False)
        return _UNTAGGED.pack(control, self.upper, self.upper_word, self.queue, self.message, self.offset)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read eighteen bytes; returns record and rest, or raises MalformedPacket."""
        if len(data) < UNTAGGED_BYTES or data[0] >> 7 == 1:
            text = f"found {len(data)} bytes, wanted at least {UNTAGGED_BYTES} of an untagged segment"
            raise MalformedPacket("DDP", text)
        control, upper, word, queue, message, offset = _UNTAGGED.unpack_from(data)
        record = cls(upper, word, queue, message, offset, control >> 6 & 1 == 1, control & 0b11, control >> 2 & 0xF)
        return record, memoryview(data)[UNTAGGED_BYTES:]


def _control(header: DdpTagged | DdpUntagged, *, is_tagged: bool) -> int:
    check_fits("version", header.version, 2)
    check_fits("reserved", header.reserved, 4)
    return is_tagged << 7 | header.is_last << 6 | header.reserved << 2 | header.version


def decode_ddp(data: memoryview | bytes) -> tuple[DdpTagged | DdpUntagged, memoryview]:
    """Read the header of a segment; returns record and rest, or raises MalformedPacket."""
    if len(data) == 0:
        raise MalformedPacket("DDP", "found 0 bytes, wanted a header")
    return DdpTagged.decode(data) if data[0] >> 7 else DdpUntagged.decode(data)
