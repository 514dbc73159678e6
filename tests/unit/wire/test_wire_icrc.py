"""The invariant CRC against packets that others made, and bit by bit."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest

from weftwork.wire.extended import Aeth, AethKind
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import Bth
from weftwork.wire.icrc import append_icrc, check_icrc, icrc
from weftwork.wire.opcodes import Opcode
from weftwork.wire.rocev2 import RoceV2Packet, rocev2_packet

# A CNP captured on a ConnectX-4 Lx, from its IP header on, published in the tests of scapy (test/contrib/roce.uts).
CAPTURED_CNP = bytes.fromhex(
    "45c2003c718c4000401191610a0011010a001201 000012b700280000 8100ffff4000011800000000 "
    "00000000000000000000000000000000 82fd002a"
)
# UC SEND of 18 bytes with padding, published in the same place, ICRC 0x78f353f3 in wire order.
PUBLISHED_SEND = bytes.fromhex(
    "450100400478 40004011b4d5 c0a80007c0a80007 c00012b7002caca2 2460ffff000000d300cf1710"
    "4630818be28935d90e9a95505401be885e500000 78f353f3"
)

ACK = Bth(opcode=Opcode.ACKNOWLEDGE, destination_qp=0x11, psn=5)
BODY = Aeth(kind=AethKind.ACK, value=31, msn=6).encode()
V4 = rocev2_packet(
    source=IPv4Address("10.0.0.1"), destination=IPv4Address("10.0.0.2"), source_port=0xC123, bth=ACK, body=BODY
).encode()
V6 = rocev2_packet(
    source=IPv6Address("fd00::1"), destination=IPv6Address("fd00::2"), source_port=0xC123, bth=ACK, body=BODY
).encode()

# Bits that the CRC counts as ones, by byte: what routers rewrite, the UDP checksum, and FECN to reserved in the BTH.
UNCOVERED_V4 = {1: 0xFF, 8: 0xFF, 10: 0xFF, 11: 0xFF, 26: 0xFF, 27: 0xFF, 32: 0xFF}
UNCOVERED_V6 = {0: 0x0F, 1: 0xFF, 2: 0xFF, 3: 0xFF, 7: 0xFF, 46: 0xFF, 47: 0xFF, 52: 0xFF}


@pytest.mark.parametrize("packet", [CAPTURED_CNP, PUBLISHED_SEND])
def test_packets_that_others_made_hold(packet: bytes) -> None:
    check_icrc(packet)
    assert append_icrc(packet[:-4]) == packet
    record, rest = RoceV2Packet.decode(packet)
    assert record.encode() == packet
    assert not rest


@pytest.mark.parametrize(("packet", "uncovered"), [(V4, UNCOVERED_V4), (V6, UNCOVERED_V6)], ids=["ipv4", "ipv6"])
def test_every_covered_bit_counts_and_no_other(packet: bytes, uncovered: dict[int, int]) -> None:
    check_icrc(packet)
    for bit in range(len(packet) * 8):
        damaged = bytearray(packet)
        damaged[bit // 8] ^= 1 << bit % 8
        if uncovered.get(bit // 8, 0) >> bit % 8 & 1:
            check_icrc(bytes(damaged))
        else:
            with pytest.raises(MalformedPacket):
                check_icrc(bytes(damaged))


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        (b"\x45\0\0", "ICRC: found 3 bytes, wanted at least 4"),
        (bytes(4), "ICRC: found 0 bytes, wanted at least 1"),
        (b"\x46" + V4[1:], "ICRC: found first byte 0x46, wanted IPv4 without options or IPv6"),
        (V4[:43], "ICRC: found 39 bytes, wanted at least 40"),
        (V6[:63], "ICRC: found 59 bytes, wanted at least 60"),
        (V4[:9] + b"\x06" + V4[10:], "ICRC: found protocol 6 behind IP, wanted 17 (UDP)"),
        (V6[:6] + b"\x2c" + V6[7:], "ICRC: found protocol 44 behind IP, wanted 17 (UDP)"),
    ],
)
def test_what_has_no_icrc_says_why(packet: bytes, message: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        check_icrc(packet)
    assert str(caught.value) == message


def test_a_wrong_value_is_named_beside_the_right_one() -> None:
    with pytest.raises(MalformedPacket, match=f"found 0x00000000, wanted {icrc(V4[:-4]):#010x}"):
        check_icrc(V4[:-4] + bytes(4))
