"""Segments of DDP that both directions share.

Source: RFC 5041, section 5 (segmentation), and RFC 5040, 4.2.
Leaves out: the framing in the stream, see `framing`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from weftwork.wire.ddp import TAGGED_BYTES, DdpTagged
from weftwork.wire.rdmap import RdmapOpcode, rdmap_control

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CONTROL", "MESSAGE_NUMBERS", "Segment", "SegmentReader", "next_number", "tagged_segments"]

Segment = tuple["memoryview | bytes", ...]
SegmentReader = Callable[[int, int], tuple[memoryview, ...]]
MESSAGE_NUMBERS: Final = 1 << 32  # RFC 5041, 4.3: an MSN has 32 bits
CONTROL: Final = {opcode: rdmap_control(opcode) for opcode in RdmapOpcode}


def next_number(message: int) -> int:
    """MSN behind another one; the first message of a queue has number 1."""
    return (message + 1) % MESSAGE_NUMBERS


def tagged_segments(
    opcode: RdmapOpcode, place: tuple[int, int], length: int, read: SegmentReader, most_ulpdu_bytes: int
) -> Iterator[Segment]:
    """Cut a tagged message into segments; an empty message has one.

    Parameters
    ----------
    opcode : WRITE or READ_RESPONSE
    place : STag and offset at the receiver
    length : bytes of the message
    read : gives bytes of the message, by offset and size
    most_ulpdu_bytes : largest segment
    """
    stag, start = place
    most = most_ulpdu_bytes - TAGGED_BYTES
    for offset in range(0, max(1, length), most):
        size_bytes = min(most, length - offset)
        header = DdpTagged(CONTROL[opcode], stag, (start + offset) % (1 << 64), offset + size_bytes == length)
        yield header.encode(), *(read(offset, size_bytes) if size_bytes else ())
