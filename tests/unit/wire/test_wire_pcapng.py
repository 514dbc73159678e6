"""Capture files: both formats by hand, byte orders, resolutions of time, and files that break off."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from weftwork.base.errors import UsageError
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.pcap import LINK_INFINIBAND, CapturedPacket
from weftwork.wire.pcapng import encode_pcapng, read_capture

TIME_NS = 1_700_000_000_123_456_789
PACKET = CapturedPacket(TIME_NS, b"hello", 9, interface="leaf0", comment="dropped behind it")


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(options: bytes = b"", order: str = "<", snap_bytes: int = 0) -> bytes:
    return block(1, struct.pack(order + "HHI", 1, 0, snap_bytes) + options, order)


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def packet(ticks: int, order: str = "<", number: int = 0, data: bytes = b"hello") -> bytes:
    head = struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), 9)
    return block(6, head + data + bytes(-len(data) % 4), order)


def pcap(magic: int, order: str, seconds: int, units: int) -> bytes:
    header = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
    return header + struct.pack(order + "IIII", seconds, units, 5, 9) + b"hello"


@pytest.mark.parametrize(
    ("file", "time_ns"),
    [
        (pcap(0xA1B2C3D4, "<", 1_700_000_000, 123_456), 1_700_000_000_123_456_000),
        (pcap(0xA1B2C3D4, ">", 1_700_000_000, 123_456), 1_700_000_000_123_456_000),
        (pcap(0xA1B23C4D, "<", 1_700_000_000, 123_456_789), TIME_NS),
        (pcap(0xA1B23C4D, ">", 1_700_000_000, 123_456_789), TIME_NS),
        (section() + interface() + packet(TIME_NS // 1000), TIME_NS // 1000 * 1000),
        (section(">") + interface(order=">") + packet(TIME_NS // 1000, ">"), TIME_NS // 1000 * 1000),
        (section() + interface(option(9, b"\x09")) + packet(TIME_NS), TIME_NS),
        (section() + interface(option(9, b"\x8a")) + packet(3 << 9), 1_500_000_000),  # 1/1024 s
        (section() + interface(option(9, b"\x0c")) + packet(7_999), 7),  # picoseconds
        (section() + interface(option(14, struct.pack("<q", 10))) + packet(1), 10_000_001_000),
        (section() + interface() + block(0x0BAD, b"skip") + packet(1), 1_000),
        (section() + interface() + section() + interface(option(9, b"\x09")) + packet(1), 1),
    ],
)
def test_a_packet_and_its_time_are_read(file: bytes, time_ns: int) -> None:
    (found,) = read_capture(file)
    assert (found.time_ns, bytes(found.data), found.original_bytes, found.link_type) == (time_ns, b"hello", 9, 1)


def test_packets_without_a_time_and_of_the_old_kind_are_read() -> None:
    old = block(2, struct.pack("<HHIIII", 0, 5, 0, 7, 5, 9) + b"hello\0\0\0")
    simple = block(3, struct.pack("<I", 9) + b"hell")
    found = list(read_capture(section() + interface(snap_bytes=4) + old + simple))
    assert [(one.time_ns, bytes(one.data), one.original_bytes) for one in found] == [
        (7_000, b"hello", 9),
        (0, b"hell", 9),
    ]


def test_what_is_written_comes_back_to_the_field() -> None:
    packets = [
        PACKET,
        PACKET._replace(time_ns=0, data=b"", original_bytes=0, comment=""),
        PACKET._replace(interface="spine1", link_type=LINK_INFINIBAND, data=b"12345678", comment="é"),
        PACKET._replace(interface=""),
    ]
    file = b"".join(encode_pcapng(packets))
    assert list(read_capture(file)) == packets
    assert len(file) % 4 == 0
    assert file.count(b"leaf0") == 1


def test_a_comment_on_the_file_is_an_option_of_its_section() -> None:
    file = b"".join(encode_pcapng([PACKET], comment="all of it"))
    assert struct.pack("<HH", 1, 9) + b"all of it\0\0\0" in file[: file.index(b"weftwork")]
    assert list(read_capture(file)) == [PACKET]


def test_a_written_file_is_as_the_format_says() -> None:
    file = b"".join(encode_pcapng([CapturedPacket(1 << 32, b"abc", 4)], application="me"))
    assert file.hex() == (
        "0a0d0d0a280000004d3c2b1a01000000ffffffffffffffff040002006d6500000000000028000000"
        "0100000020000000010000000000000009000100090000000000000020000000"
        "060000002400000000000000010000000000000003000000040000006162630024000000"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (b"", "capture: at byte 0: found an empty file"),
        (b"GIF89a" + bytes(40), "pcapng: at byte 0: found 47494638, wanted a capture: pcapng or pcap"),
        (pcap(0xA1B2C3D4, "<", 1, 1)[:20], "pcap: at byte 0: found 20 bytes"),
        (pcap(0xA1B2C3D4, "<", 1, 1)[:30], "pcap: at byte 24: found 6 bytes, wanted a header of 16"),
        (pcap(0xA1B2C3D4, "<", 1, 1)[:-1], "pcap: at byte 24: found 4 bytes of a packet, wanted 5"),
        (section()[:8] + b"abcd" + section()[12:], "pcapng: at byte 8: found magic number 61626364, wanted 1a2b3c4d"),
        (section() + interface() + packet(1)[:-5], "pcapng: at byte 48: found a block of 40 bytes, wanted a multiple"),
        (section() + bytes(5), "pcapng: at byte 28: found 5 bytes, wanted a block of at least 12"),
        (section() + struct.pack("<III", 1, 8, 8), "pcapng: at byte 28: found a block of 8 bytes"),
        (
            section() + struct.pack("<III", 1, 12, 16),
            "at byte 36: found a length of 16 at the end of a block, wanted 12",
        ),
        (
            section() + interface() + packet(1, number=1),
            "at byte 48: found a packet of interface 1, wanted one of the 1",
        ),
        (section() + block(1, b"abcd"), "pcapng: at byte 28: found a body of 4 bytes, wanted at least 8"),
        (
            section() + interface() + block(6, struct.pack("<IIIII", 0, 0, 0, 9, 9)),
            "found 0 bytes of a packet, wanted 9",
        ),
        (section() + interface(struct.pack("<HH", 2, 9)), "at byte 28: found 0 bytes of a packet, wanted 9"),
    ],
)
def test_a_broken_file_names_the_byte(file: bytes, message: str) -> None:
    with pytest.raises(MalformedPacket, match=message):
        list(read_capture(file))


def test_packets_before_the_break_are_read() -> None:
    packets = read_capture(section() + interface() + packet(1) + b"end")
    assert next(packets).time_ns == 1_000
    with pytest.raises(MalformedPacket, match="at byte 88"):
        next(packets)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: PACKET._replace(time_ns=-1), "time_ns: found -1"),
        (lambda: PACKET._replace(original_bytes=4), "original_bytes: found 4, wanted at least 5"),
        (lambda: PACKET._replace(comment="x" * 65_536), "option 1: found 65536 bytes"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(wrong: Callable[[], CapturedPacket], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        list(encode_pcapng([wrong()]))
