"""RoCEv1 and native InfiniBand: layouts by hand, and the ICRC against one that is computed bit by bit."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv6Address

import pytest

from weftwork.base.errors import UsageError
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import Bth
from weftwork.wire.icrc import check_icrc, check_native_icrc, native_icrc
from weftwork.wire.infiniband import NativePacket, RoceV1Packet
from weftwork.wire.ip import Ipv6Header
from weftwork.wire.lrh import NEXT_HEADER_BTH, NEXT_IS_GRH, Lrh
from weftwork.wire.opcodes import Opcode

BTH = Bth(Opcode.SEND_ONLY, destination_qp=0x12, psn=7, fecn=True)
BODY = b"payload!"
GRH = Ipv6Header(
    source=IPv6Address("fe80::1"),
    destination=IPv6Address("fe80::2"),
    payload_bytes=24,
    next_header=NEXT_HEADER_BTH,
    dscp=26,
    flow_label=0x12345,
)
ROCE_V1 = RoceV1Packet(grh=GRH, bth=BTH, body=BODY).encode()
LRH = Lrh(destination_lid=3, source_lid=4, packet_words=8, virtual_lane=5, service_level=6)
LOCAL = NativePacket(lrh=LRH, grh=None, bth=BTH, body=BODY).encode()
GLOBAL_LRH = LRH._replace(next_header=NEXT_IS_GRH, packet_words=18)
GLOBAL = NativePacket(lrh=GLOBAL_LRH, grh=GRH, bth=BTH, body=BODY).encode()
# Bits that count as ones, by byte (IBTA vol. 1, 7.8.1).
GRH_UNCOVERED = {0: 0x0F, 1: 0xFF, 2: 0xFF, 3: 0xFF, 7: 0xFF}
ROCE_V1_UNCOVERED = GRH_UNCOVERED | {44: 0xFF}
LOCAL_UNCOVERED = {0: 0xF0, 12: 0xFF}
# of the LRH in front of a GRH all bits but those that say that a GRH follows
GLOBAL_UNCOVERED = (
    dict.fromkeys(range(8), 0xFF) | {1: 0xFC} | {at + 8: bits for at, bits in GRH_UNCOVERED.items()} | {52: 0xFF}
)
CASES = [
    pytest.param(ROCE_V1, ROCE_V1_UNCOVERED, 8, id="RoCEv1"),
    pytest.param(LOCAL, LOCAL_UNCOVERED, 0, id="native"),
    pytest.param(GLOBAL, GLOBAL_UNCOVERED, 0, id="native with GRH"),
]


def crc32_bit_by_bit(data: bytes) -> int:
    """CRC-32 as in IEEE 802.3, 3.2.9, without a table and without zlib."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0xEDB88320 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


@pytest.mark.parametrize(("packet", "uncovered", "ones_bytes"), CASES)
def test_the_icrc_is_the_crc_of_the_masked_packet(packet: bytes, uncovered: dict[int, int], ones_bytes: int) -> None:
    masked = bytes(byte | uncovered.get(at, 0) for at, byte in enumerate(packet[:-4]))
    assert int.from_bytes(packet[-4:], "little") == crc32_bit_by_bit(b"\xff" * ones_bytes + masked)


@pytest.mark.parametrize(("packet", "uncovered", "ones_bytes"), CASES)
def test_every_covered_bit_counts_and_no_other(packet: bytes, uncovered: dict[int, int], ones_bytes: int) -> None:
    holds = check_icrc if ones_bytes else check_native_icrc
    holds(packet)
    for bit in range(len(packet) * 8):
        damaged = bytearray(packet)
        damaged[bit // 8] ^= 1 << bit % 8
        if uncovered.get(bit // 8, 0) >> bit % 8 & 1:
            holds(bytes(damaged))
        else:
            with pytest.raises(MalformedPacket):
                holds(bytes(damaged))


def test_the_link_header_has_its_bits() -> None:
    every = Lrh(0xABCD, 0x1234, 0x7FF, next_header=2, virtual_lane=5, service_level=6, link_version=1, reserved2=1)
    assert every.encode().hex() == "5166abcd07ff1234"
    assert Lrh.decode(every._replace(reserved5=0x1F).encode())[0].reserved5 == 0x1F


def test_packets_come_back_and_leave_the_rest() -> None:
    assert RoceV1Packet.decode(ROCE_V1 + b"pad") == (RoceV1Packet(grh=GRH, bth=BTH, body=BODY), b"pad")
    found, rest = NativePacket.decode(GLOBAL + b"\x12\x34")  # the variant CRC
    assert (found.lrh, found.grh, found.bth, found.body, bytes(rest)) == (GLOBAL_LRH, GRH, BTH, BODY, b"\x12\x34")
    assert NativePacket.decode(LOCAL)[0].grh is None


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        (ROCE_V1[:39], "IPv6: found 39 bytes"),
        (ROCE_V1[:6] + b"\x11" + ROCE_V1[7:], r"GRH: found next header 0x11, wanted 0x1b \(BTH\)"),
        (ROCE_V1[:-1] + b"\0", "ICRC: found"),
    ],
)
def test_what_is_no_rocev1_says_why(packet: bytes, message: str) -> None:
    with pytest.raises(MalformedPacket, match=message):
        RoceV1Packet.decode(packet)


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        (LOCAL[:7], "LRH: found 7 bytes"),
        (LOCAL[:-1], "LRH: found 31 bytes, wanted at least 32"),
        (LOCAL[:1] + b"\x60" + LOCAL[2:], r"LRH: found next header 0, wanted BTH \(2\) or GRH \(3\)"),
        (GLOBAL[:13] + b"\x14" + GLOBAL[14:], "GRH: found 20 bytes, wanted 24 as in LRH"),
        (LRH._replace(packet_words=6).encode() + BTH.encode() + bytes(4), "ICRC: found"),
        (LRH._replace(packet_words=5).encode() + BTH.encode(), "InfiniBand: found 0 bytes behind BTH"),
    ],
)
def test_what_is_no_native_packet_says_why(packet: bytes, message: str) -> None:
    with pytest.raises(MalformedPacket, match=message):
        NativePacket.decode(packet)


def test_an_icrc_needs_a_transport_header() -> None:
    with pytest.raises(MalformedPacket, match="found next header 1 in LRH"):
        native_icrc(LRH._replace(next_header=1).encode() + bytes(20))


@pytest.mark.parametrize(
    "packet",
    [
        RoceV1Packet(grh=GRH, bth=BTH, body=b"123"),
        RoceV1Packet(grh=replace(GRH, payload_bytes=20), bth=BTH, body=BODY),
        RoceV1Packet(grh=replace(GRH, next_header=17), bth=BTH, body=BODY),
        NativePacket(lrh=LRH, grh=GRH, bth=BTH, body=BODY),
        NativePacket(lrh=LRH, grh=None, bth=BTH, body=b"123"),
        NativePacket(lrh=LRH._replace(packet_words=9), grh=None, bth=BTH, body=BODY),
    ],
)
def test_a_length_that_disagrees_is_not_written(packet: RoceV1Packet | NativePacket) -> None:
    with pytest.raises(UsageError, match="wanted"):
        packet.encode()
