"""MPA: frames of the start-up, FPDUs and markers of iWARP in a TCP stream.

An FPDU is a framed unit of DDP: its length, the DDP segment (ULPDU), padding and a CRC-32C. Markers lie in the stream
every 512 bytes, so that a receiver finds the next FPDU behind a gap; each end says whether it wants them.
Source: RFC 5044, sections 4 and 7.1; RFC 6581, sections 4 and 9 (revision 2); as encoded in Linux
drivers/infiniband/sw/siw/iwarp.h; tshark agrees, CRC and markers included.
Leaves out: resynchronisation behind a gap, which TCP does not leave.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from weftwork.base.errors import UsageError
from weftwork.wire.crc32c import crc32c
from weftwork.wire.fields import MalformedPacket, check_fits, split

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "CRC_BYTES",
    "FRAME_HEADER_BYTES",
    "LENGTH_BYTES",
    "MARKER_BYTES",
    "MARKER_INTERVAL_BYTES",
    "MOST_PRIVATE_BYTES",
    "MOST_ULPDU_BYTES",
    "REPLY_KEY",
    "REQUEST_KEY",
    "EnhancedSetup",
    "Marker",
    "MpaCrcError",
    "MpaFrame",
    "MpaMarkerError",
    "decode_fpdu",
    "encode_fpdu",
    "fpdu_bytes",
    "fpdu_stream_bytes",
    "marker_count",
    "most_ulpdu_bytes",
]

REQUEST_KEY: Final = b"MPA ID Req Frame"  # RFC 5044, 7.1.1
REPLY_KEY: Final = b"MPA ID Rep Frame"  # RFC 5044, 7.1.1
FRAME_HEADER_BYTES: Final = 20  # RFC 5044, 7.1.1: key, flags, revision, length
MOST_PRIVATE_BYTES: Final = 512  # RFC 5044, 7.1.1
LENGTH_BYTES: Final = 2  # RFC 5044, 4.1
CRC_BYTES: Final = 4  # RFC 5044, 4.1
MOST_ULPDU_BYTES: Final = 0xFFFF  # what the length field holds
MARKER_INTERVAL_BYTES: Final = 512  # RFC 5044, 4.3
MARKER_BYTES: Final = 4  # RFC 5044, 4.3
_BETWEEN_MARKERS_BYTES: Final = MARKER_INTERVAL_BYTES - MARKER_BYTES
_ALIGNMENT_BYTES: Final = 4  # RFC 5044, 4.1: an FPDU is a multiple of four bytes

_FRAME: Final = Struct(">16sBBH")
_SETUP: Final = Struct(">HH")
_MARKER: Final = Struct(">HH")
_LENGTH: Final = Struct(">H")
_CRC: Final = Struct("<I")  # in the order of iSCSI, lowest byte first (RFC 5044, 4.4)
_LOW14: Final = 0x3FFF


class MpaCrcError(MalformedPacket):
    """The CRC of an FPDU is wrong."""


class MpaMarkerError(MalformedPacket):
    """A marker points elsewhere than to the start of its FPDU."""


class MpaFrame(NamedTuple):
    """A frame of the start-up: the request of the initiator or the reply of the responder.

    Parameters
    ----------
    is_reply : by its key
    revision : 8 bits; 1 of RFC 5044, 2 of RFC 6581
    wants_markers : the sender of the frame wants to receive markers
    wants_crc : the sender wants CRCs; both ends use them if one end wants so
    rejects : of a reply; the connection is refused
    is_enhanced : of revision 2; the private data starts with an ``EnhancedSetup``
    private_data : at most 512 bytes
    reserved : 4 bits, sent as 0
    """

    is_reply: bool
    revision: int = 1
    wants_markers: bool = False
    wants_crc: bool = True
    rejects: bool = False
    is_enhanced: bool = False
    private_data: bytes = b""
    reserved: int = 0

    def encode(self) -> bytes:
        """The frame; UsageError for a field that does not fit."""
        check_fits("revision", self.revision, 8)
        check_fits("reserved", self.reserved, 4)
        if len(self.private_data) > MOST_PRIVATE_BYTES:
            raise UsageError(f"private_data: found {len(self.private_data)} bytes, wanted up to {MOST_PRIVATE_BYTES}")
        flags = self.wants_markers << 7 | self.wants_crc << 6 | self.rejects << 5 | self.is_enhanced << 4
        key = REPLY_KEY if self.is_reply else REQUEST_KEY
        return _FRAME.pack(key, flags | self.reserved, self.revision, len(self.private_data)) + self.private_data

    @classmethod
    def missing_bytes(cls, data: memoryview | bytes) -> int:
        """Bytes that are still missing of a frame; 0 if it is complete.

        A frame that cannot become right raises MalformedPacket as soon as that shows.
        """
        key = bytes(data[: len(REQUEST_KEY)])
        if not REQUEST_KEY.startswith(key) and not REPLY_KEY.startswith(key):
            raise MalformedPacket("MPA", f"found the key {key!r}, wanted that of a request or a reply")
        if len(data) < FRAME_HEADER_BYTES:
            return FRAME_HEADER_BYTES - len(data)
        size_bytes: int = _FRAME.unpack_from(data)[3]
        if size_bytes > MOST_PRIVATE_BYTES:
            raise MalformedPacket("MPA", f"found {size_bytes} bytes of private data, wanted up to {MOST_PRIVATE_BYTES}")
        return max(0, FRAME_HEADER_BYTES + size_bytes - len(data))

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read a frame; returns record and rest, or raises MalformedPacket."""
        missing_bytes = cls.missing_bytes(data)
        if missing_bytes:
            raise MalformedPacket("MPA", f"found {len(data)} bytes, wanted at least {len(data) + missing_bytes}")
        key, flags, revision, size_bytes = _FRAME.unpack_from(data)
        private_data, rest = split(memoryview(data)[FRAME_HEADER_BYTES:], size_bytes, "MPA")
        record = cls(
            is_reply=key == REPLY_KEY,
            revision=revision,
            wants_markers=flags >> 7 == 1,
            wants_crc=flags >> 6 & 1 == 1,
            rejects=flags >> 5 & 1 == 1,
            is_enhanced=flags >> 4 & 1 == 1,
            private_data=bytes(private_data),
            reserved=flags & 0xF,
        )
        return record, rest


class EnhancedSetup(NamedTuple):
    """The first four bytes of private data of an enhanced frame.

    Source: RFC 6581, section 9.

    Parameters
    ----------
    inbound_depth : IRD, 14 bits: READs and atomics that the sender of the frame takes at once
    outbound_depth : ORD, 14 bits: READs and atomics that it asks for at once
    is_peer_to_peer : control flag A: the initiator sends a message (RTR) before the responder may send
    send_rtr, write_rtr, read_rtr : control flags B, C, D: kinds of that message, each empty
    """

    inbound_depth: int
    outbound_depth: int
    is_peer_to_peer: bool = False
    send_rtr: bool = False
    write_rtr: bool = False
    read_rtr: bool = False

    def encode(self) -> bytes:
        """Four bytes; UsageError for a field that does not fit."""
        check_fits("inbound_depth", self.inbound_depth, 14)
        check_fits("outbound_depth", self.outbound_depth, 14)
        return _SETUP.pack(
            self.is_peer_to_peer << 15 | self.send_rtr << 14 | self.inbound_depth,
            self.write_rtr << 15 | self.read_rtr << 14 | self.outbound_depth,
        )

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read four bytes; returns record and rest, or raises MalformedPacket."""
        front, rest = split(data, _SETUP.size, "MPA")
        inbound, outbound = _SETUP.unpack(front)
        record = cls(
            inbound_depth=inbound & _LOW14,
            outbound_depth=outbound & _LOW14,
            is_peer_to_peer=inbound >> 15 == 1,
            send_rtr=inbound >> 14 & 1 == 1,
            write_rtr=outbound >> 15 == 1,
            read_rtr=outbound >> 14 & 1 == 1,
        )
        return record, rest


class Marker(NamedTuple):
    """A marker (RFC 5044, 4.3).

    Parameters
    ----------
    fpdu_pointer : bytes of the stream from the length field of its FPDU to the marker; 0 in front of that field
    reserved : 16 bits, sent as 0
    """

    fpdu_pointer: int
    reserved: int = 0

    def encode(self) -> bytes:
        """Four bytes; UsageError for a field that does not fit."""
        check_fits("fpdu_pointer", self.fpdu_pointer, 16)
        check_fits("reserved", self.reserved, 16)
        return _MARKER.pack(self.reserved, self.fpdu_pointer)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read four bytes; returns record and rest, or raises MalformedPacket."""
        front, rest = split(data, MARKER_BYTES, "MPA marker")
        reserved, pointer = _MARKER.unpack(front)
        return cls(pointer, reserved), rest


def fpdu_bytes(ulpdu_bytes: int) -> int:
    """Bytes of an FPDU without its markers.

    Examples
    --------
    >>> fpdu_bytes(0), fpdu_bytes(3), fpdu_bytes(14)
    (8, 12, 20)
    """
    used_bytes = LENGTH_BYTES + ulpdu_bytes
    return used_bytes + -used_bytes % _ALIGNMENT_BYTES + CRC_BYTES


def marker_count(size_bytes: int, to_marker_bytes: int) -> int:
    """Number of markers that fall into an FPDU.

    Parameters
    ----------
    size_bytes : of the FPDU without markers
    to_marker_bytes : from its start to the next place of a marker; 0 if a marker comes first
    """
    return 0 if size_bytes <= to_marker_bytes else 1 + (size_bytes - 1 - to_marker_bytes) // _BETWEEN_MARKERS_BYTES


def most_ulpdu_bytes(segment_bytes: int, *, markers: bool) -> int:
    """MULPDU: the largest DDP segment whose FPDU fits a TCP segment.

    Source: RFC 5044, 5.1: EMSS - (6 + 4 x ceil(EMSS / 512) + EMSS mod 4).

    Examples
    --------
    >>> most_ulpdu_bytes(1460, markers=True), most_ulpdu_bytes(1460, markers=False)
    (1442, 1454)
    """
    marked_bytes = MARKER_BYTES * -(-segment_bytes // MARKER_INTERVAL_BYTES) if markers else 0
    used_bytes = LENGTH_BYTES + CRC_BYTES + marked_bytes + segment_bytes % _ALIGNMENT_BYTES
    return min(MOST_ULPDU_BYTES, segment_bytes - used_bytes)


def encode_fpdu(pieces: Sequence[memoryview | bytes], *, to_marker_bytes: int | None = None, crc: bool = True) -> bytes:
    """Frame a DDP segment.

    Parameters
    ----------
    pieces : of the segment, in order
    to_marker_bytes : from the start of the FPDU to the next place of a marker, a multiple of 4; None without markers
    crc : compute the CRC; otherwise its field is 0

    Raises
    ------
    UsageError : more than 65,535 bytes
    """
    ulpdu_bytes = sum(map(len, pieces))
    check_fits("ULPDU", ulpdu_bytes, 16)
    pad_bytes = -(LENGTH_BYTES + ulpdu_bytes) % _ALIGNMENT_BYTES
    body = b"".join((_LENGTH.pack(ulpdu_bytes), *pieces, bytes(pad_bytes)))
    if to_marker_bytes is None:
        return body + _CRC.pack(crc32c(body) if crc else 0)
    # The CRC covers the markers; one that falls right in front of the CRC belongs to the FPDU too.
    marked = _with_markers(body, len(body) + CRC_BYTES, to_marker_bytes)
    return marked + _CRC.pack(crc32c(marked) if crc else 0)


def _with_markers(body: bytes, size_bytes: int, to_marker_bytes: int) -> bytes:
    """Put markers into an FPDU whose CRC is missing."""
    pieces: list[bytes] = []
    at = 0
    start_bytes = MARKER_BYTES if to_marker_bytes == 0 else 0  # the length field is behind a first marker
    place = to_marker_bytes
    for number in range(marker_count(size_bytes, to_marker_bytes)):
        pieces.append(body[at:place])
        in_stream = place + number * MARKER_BYTES
        pieces.append(Marker(max(0, in_stream - start_bytes)).encode())
        at, place = place, place + _BETWEEN_MARKERS_BYTES
    pieces.append(body[at:])
    return b"".join(pieces)


def decode_fpdu(
    data: memoryview | bytes, *, to_marker_bytes: int | None = None, crc: bool = True
) -> tuple[memoryview, memoryview]:
    """Read an FPDU, and check its markers and its CRC.

    Parameters
    ----------
    data : the stream from the FPDU on
    to_marker_bytes, crc : as in `encode_fpdu`

    Returns
    -------
    the DDP segment, without a copy unless there are markers, and the rest

    Raises
    ------
    MalformedPacket : too few bytes, a marker that points elsewhere, or a wrong CRC
    """
    view = memoryview(data)
    size_bytes = fpdu_stream_bytes(view, to_marker_bytes)
    if size_bytes is None:
        raise MalformedPacket("MPA", f"found {len(view)} bytes, wanted at least those of the length field")
    fpdu, rest = split(view, size_bytes, "MPA")
    if crc and crc32c(fpdu[:-CRC_BYTES]) != _CRC.unpack(fpdu[-CRC_BYTES:])[0]:
        raise MpaCrcError("MPA", "found a wrong CRC-32C")
    if to_marker_bytes is not None:
        fpdu = _without_markers(fpdu, to_marker_bytes)
    (ulpdu_bytes,) = _LENGTH.unpack_from(fpdu)
    return fpdu[LENGTH_BYTES : LENGTH_BYTES + ulpdu_bytes], rest


def fpdu_stream_bytes(data: memoryview, to_marker_bytes: int | None = None) -> int | None:
    """Bytes of the stream that an FPDU takes, markers included.

    Parameters
    ----------
    data : the stream from the FPDU on
    to_marker_bytes : as in `encode_fpdu`

    Returns
    -------
    None if the length field has not come yet
    """
    start_bytes = MARKER_BYTES if to_marker_bytes == 0 else 0
    if len(data) < start_bytes + LENGTH_BYTES:
        return None
    size_bytes = fpdu_bytes(_LENGTH.unpack_from(data, start_bytes)[0])
    if to_marker_bytes is None:
        return size_bytes
    return size_bytes + MARKER_BYTES * marker_count(size_bytes, to_marker_bytes)


def _without_markers(fpdu: memoryview, to_marker_bytes: int) -> memoryview:
    """Take the markers out of an FPDU; MalformedPacket if one points elsewhere."""
    pieces = []
    at = 0
    start_bytes = MARKER_BYTES if to_marker_bytes == 0 else 0
    for place in range(to_marker_bytes, len(fpdu), MARKER_INTERVAL_BYTES):
        pieces.append(fpdu[at:place])
        marker, _ = Marker.decode(fpdu[place:])
        wanted = max(0, place - start_bytes)
        if marker.fpdu_pointer != wanted:
            raise MpaMarkerError("MPA marker", f"found a pointer of {marker.fpdu_pointer} bytes, wanted {wanted}")
        at = place + MARKER_BYTES
    pieces.append(fpdu[at:])
    return memoryview(b"".join(pieces))
