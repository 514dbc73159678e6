"""FPDUs out of a stream of bytes and into it.

Source: RFC 5044, sections 4 (framing, markers, CRC) and 5.
Leaves out: the bytes of an FPDU, see ``weftwork.wire.mpa``; resynchronisation, since TCP leaves no gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.wire.mpa import (
    LENGTH_BYTES,
    MARKER_BYTES,
    MARKER_INTERVAL_BYTES,
    decode_fpdu,
    encode_fpdu,
    fpdu_stream_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["FpduReader", "FpduWriter"]


class _Framing:
    """A direction of the stream.

    Parameters
    ----------
    crc : both ends compute CRCs
    markers : the receiver of this direction wants markers
    """

    def __init__(self, *, crc: bool, markers: bool) -> None:
        self._crc: Final = crc
        self._markers: Final = markers
        self._position = 0  # of the next FPDU in the stream; it starts with full operation

    @property
    def _to_marker_bytes(self) -> int | None:
        return -self._position % MARKER_INTERVAL_BYTES if self._markers else None


class FpduWriter(_Framing):
    """DDP segments that become FPDUs."""

    def frame(self, pieces: Sequence[memoryview | bytes]) -> bytes:
        """Frame the next segment; it is copied once."""
        made = encode_fpdu(pieces, to_marker_bytes=self._to_marker_bytes, crc=self._crc)
        self._position += len(made)
        return made


class FpduReader(_Framing):
    """FPDUs that become DDP segments.

    It holds at most one FPDU that is not whole yet.
    """

    def __init__(self, *, crc: bool, markers: bool) -> None:
        super().__init__(crc=crc, markers=markers)
        self._held = bytearray()

    @property
    def held_bytes(self) -> int:
        """Bytes of an FPDU that is not whole yet."""
        return len(self._held)

    def feed(self, data: memoryview) -> Iterator[memoryview]:
        """Take the next bytes of the stream, and give the segments that are whole.

        Parameters
        ----------
        data : in any pieces; each segment is a view of them where it can be, and is valid until the next one

        Raises
        ------
        MalformedPacket : a wrong CRC or marker; the stream cannot be read any further
        """
        while len(data) > 0:
            if self._held:
                missing_bytes = self._wanted_bytes(memoryview(self._held)) - len(self._held)
                self._held += data[:missing_bytes]
                data = data[missing_bytes:]
                if len(self._held) < self._wanted_bytes(memoryview(self._held)):
                    continue
                fpdu, self._held = memoryview(self._held), bytearray()
            else:
                wanted_bytes = self._wanted_bytes(data)
                if len(data) < wanted_bytes:
                    self._held += data
                    return
                fpdu, data = data[:wanted_bytes], data[wanted_bytes:]
            ulpdu, _ = decode_fpdu(fpdu, to_marker_bytes=self._to_marker_bytes, crc=self._crc)
            self._position += len(fpdu)
            yield ulpdu

    def _wanted_bytes(self, start: memoryview) -> int:
        """Bytes of the stream up to the end of an FPDU, or of its length field if that is missing."""
        to_marker_bytes = self._to_marker_bytes
        found = fpdu_stream_bytes(start, to_marker_bytes)
        if found is not None:
            return found
        return LENGTH_BYTES + (MARKER_BYTES if to_marker_bytes == 0 else 0)
