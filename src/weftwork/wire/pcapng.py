"""Capture files in the format of Wireshark (pcapng), read and written.

Source: draft-ietf-opsawg-pcapng: blocks 4.1 (section), 4.2 (interface), 4.3 (packet), 4.4 (simple packet), A (packet).
Leaves out: names, statistics, secrets and custom blocks, which are skipped.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from weftwork.base.errors import UsageError
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.foreign_captures import foreign_capture
from weftwork.wire.pcap import CapturedPacket, is_pcap, read_pcap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["encode_pcapng", "read_capture", "read_pcapng"]

_SECTION: Final = 0x0A0D0D0A  # the same in either byte order
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 1, 2, 3, 6
_ORDER_BY_MAGIC: Final = {bytes.fromhex("4d3c2b1a"): "<", bytes.fromhex("1a2b3c4d"): ">"}
_COMMENT, _INTERFACE_NAME, _APPLICATION, _TIME_RESOLUTION, _TIME_OFFSET = 1, 2, 4, 9, 14  # option codes
_NANOSECONDS: Final = 9  # negative power of ten
_MICROSECONDS: Final = 6  # 4.2: where no option says otherwise
_SECOND_NS: Final = 1_000_000_000
_EDGE_BYTES: Final = 12  # type, length, and the length again at the end


class _Interface(NamedTuple):
    link_type: int
    snap_bytes: int  # 0 for no limit
    name: str
    resolution: int  # if_tsresol: a negative power of ten, or of two where the highest bit is set
    offset_s: int

    def time_ns(self, ticks: int) -> int:
        power = self.resolution & 0x7F
        base = 2 if self.resolution & 0x80 else 10
        units_per_second = int(base**power)
        return ticks * _SECOND_NS // units_per_second + self.offset_s * _SECOND_NS


class _FileBlock(NamedTuple):
    at: int
    kind: int
    body: memoryview
    order: str

    def numbers(self, layout: str, from_byte: int = 0) -> tuple[int, ...]:
        struct = Struct(self.order + layout)
        if len(self.body) < from_byte + struct.size:
            self.refuse(f"found a body of {len(self.body)} bytes, wanted at least {from_byte + struct.size}")
        return struct.unpack_from(self.body, from_byte)

    def data(self, from_byte: int, size_bytes: int) -> memoryview:
        if len(self.body) - from_byte < size_bytes:
            self.refuse(f"found {len(self.body) - from_byte} bytes of a packet, wanted {size_bytes}")
        return self.body[from_byte : from_byte + size_bytes]

    def options(self, from_byte: int) -> dict[int, bytes]:
        """Options by code; the first of repeated options counts."""
        found: dict[int, bytes] = {}
        while len(self.body) - from_byte >= 4:
            code, size_bytes = self.numbers("HH", from_byte)
            if code == 0:
                break
            found.setdefault(code, bytes(self.data(from_byte + 4, size_bytes)))
            from_byte += 4 + size_bytes + -size_bytes % 4
        return found

    def refuse(self, text: str) -> NoReturn:
        raise MalformedPacket("pcapng", f"at byte {self.at}: {text}")


def _blocks(view: memoryview) -> Iterator[_FileBlock]:
    at, order = 0, ""
    while at < len(view):
        if len(view) - at < _EDGE_BYTES:
            raise MalformedPacket(
                "pcapng", f"at byte {at}: found {len(view) - at} bytes, wanted a block of at least 12"
            )
        # the type of a section is the same in either byte order, which only its magic number gives
        if bytes(view[at : at + 4]) == _SECTION.to_bytes(4, "big"):
            magic = bytes(view[at + 8 : at + 12])
            if magic not in _ORDER_BY_MAGIC:
                raise MalformedPacket("pcapng", f"at byte {at + 8}: found magic number {magic.hex()}, wanted 1a2b3c4d")
            order = _ORDER_BY_MAGIC[magic]
        elif not order:
            raise MalformedPacket(
                "pcapng", f"at byte {at}: found {bytes(view[:4]).hex()}, wanted a capture: pcapng or pcap"
            )
        kind, size_bytes = Struct(order + "II").unpack_from(view, at)
        if size_bytes < _EDGE_BYTES or size_bytes % 4 or len(view) - at < size_bytes:
            left = f"a multiple of 4 from 12 to {len(view) - at}, which is what the file has left"
            raise MalformedPacket("pcapng", f"at byte {at}: found a block of {size_bytes} bytes, wanted {left}")
        (again,) = Struct(order + "I").unpack_from(view, at + size_bytes - 4)
        if again != size_bytes:
            text = (
                f"at byte {at + size_bytes - 4}: found a length of {again} at the end of a block, wanted {size_bytes}"
            )
            raise MalformedPacket("pcapng", text)
        yield _FileBlock(at, kind, view[at + 8 : at + size_bytes - 4], order)
        at += size_bytes


def _interface(block: _FileBlock) -> _Interface:
    link_type, _, snap_bytes = block.numbers("HHI")
    options = block.options(8)
    offset = options.get(_TIME_OFFSET, b"")
    return _Interface(
        link_type=link_type,
        snap_bytes=snap_bytes,
        name=options.get(_INTERFACE_NAME, b"").decode("utf-8", "replace"),
        resolution=(options.get(_TIME_RESOLUTION) or bytes([_MICROSECONDS]))[0],
        offset_s=Struct(block.order + "q").unpack(offset)[0] if len(offset) == 8 else 0,
    )


def read_pcapng(data: memoryview | bytes) -> Iterator[CapturedPacket]:
    """Read the packets of a pcapng file in order.

    Parameters
    ----------
    data : the whole file

    Raises
    ------
    MalformedPacket : not a pcapng file, or a block contradicts itself; the message says at which byte
    """
    interfaces: list[_Interface] = []
    for block in _blocks(memoryview(data)):
        if block.kind == _SECTION:
            interfaces = []
        elif block.kind == _INTERFACE:
            interfaces.append(_interface(block))
        elif block.kind in {_PACKET, _OLD_PACKET, _SIMPLE_PACKET}:
            yield _packet(block, interfaces)


def _packet(block: _FileBlock, interfaces: list[_Interface]) -> CapturedPacket:
    number, ticks = 0, 0
    if block.kind == _SIMPLE_PACKET:
        (original_bytes,) = block.numbers("I")
        begin, captured_bytes = 4, original_bytes
    else:
        # the old block counts drops beside the number of the interface
        layout = "HHIIII" if block.kind == _OLD_PACKET else "IIIII"
        number, *_, high, low, captured_bytes, original_bytes = block.numbers(layout)
        begin, ticks = 20, high << 32 | low
    if number >= len(interfaces):
        block.refuse(f"found a packet of interface {number}, wanted one of the {len(interfaces)} described before it")
    interface = interfaces[number]
    if block.kind == _SIMPLE_PACKET and interface.snap_bytes:
        captured_bytes = min(captured_bytes, interface.snap_bytes)
    packet = block.data(begin, captured_bytes)
    behind = begin + captured_bytes + -captured_bytes % 4
    options = {} if block.kind == _SIMPLE_PACKET else block.options(behind)
    return CapturedPacket(
        time_ns=interface.time_ns(ticks),
        data=packet,
        original_bytes=original_bytes,
        link_type=interface.link_type,
        interface=interface.name,
        comment=options.get(_COMMENT, b"").decode("utf-8", "replace"),
    )


def read_capture(data: memoryview | bytes) -> Iterator[CapturedPacket]:
    """Read the packets of a capture file of either format.

    Raises
    ------
    MalformedPacket : neither format, or broken; the message says at which byte
    """
    if not data:
        raise MalformedPacket("capture", "at byte 0: found an empty file, wanted pcapng or pcap")
    if is_pcap(data):
        return read_pcap(data)
    if (form := foreign_capture(data)) is not None:
        raise MalformedPacket("capture", f"at byte 0: found {form.name}, wanted pcapng or pcap; {form.advice}")
    return read_pcapng(data)


def encode_pcapng(
    packets: Iterable[CapturedPacket], application: str = "weftwork", comment: str = ""
) -> Iterator[bytes]:
    """Write packets as a pcapng file, block by block.

    Times are in nanoseconds.

    Parameters
    ----------
    packets : of any interfaces; each is described in front of its first packet
    application : that the file names as its writer
    comment : on the whole file; empty for none

    Raises
    ------
    UsageError : a time that 64 bits do not hold, or a packet longer than on its link
    """
    section = Struct("<IHHq").pack(0x1A2B3C4D, 1, 0, -1)  # version 1.0, of a length that is not given
    told = _option(_COMMENT, comment.encode()) if comment else b""
    yield _block(_SECTION, section + told + _option(_APPLICATION, application.encode()) + bytes(4))
    numbers: dict[tuple[int, str], int] = {}
    for packet in packets:
        key = packet.link_type, packet.interface
        if key not in numbers:
            numbers[key] = len(numbers)
            options = _option(_INTERFACE_NAME, packet.interface.encode()) if packet.interface else b""
            options += _option(_TIME_RESOLUTION, bytes([_NANOSECONDS])) + bytes(4)
            yield _block(_INTERFACE, Struct("<HHI").pack(packet.link_type, 0, 0) + options)
        if not 0 <= packet.time_ns < 1 << 64:
            raise UsageError(f"time_ns: found {packet.time_ns}, wanted 0 to {(1 << 64) - 1}")
        size_bytes = len(packet.data)
        if size_bytes > packet.original_bytes:
            raise UsageError(f"original_bytes: found {packet.original_bytes}, wanted at least {size_bytes}")
        head = Struct("<IIIII").pack(
            numbers[key], packet.time_ns >> 32, packet.time_ns & 0xFFFFFFFF, size_bytes, packet.original_bytes
        )
        remark = _option(_COMMENT, packet.comment.encode()) + bytes(4) if packet.comment else b""
        yield _block(_PACKET, head + bytes(packet.data) + bytes(-size_bytes % 4) + remark)


def _option(code: int, value: bytes) -> bytes:
    if len(value) > 0xFFFF:
        raise UsageError(f"option {code}: found {len(value)} bytes, wanted up to 65535")
    return Struct("<HH").pack(code, len(value)) + value + bytes(-len(value) % 4)


def _block(kind: int, body: bytes) -> bytes:
    size_bytes = len(body) + _EDGE_BYTES
    return Struct("<II").pack(kind, size_bytes) + body + Struct("<I").pack(size_bytes)
