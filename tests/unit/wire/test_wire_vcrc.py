"""The variant CRC against a division of polynomials, and on the sample packet of the specification."""

from __future__ import annotations

import random

import pytest

from weftwork.wire.fields import MalformedPacket
from weftwork.wire.icrc import check_native_icrc, native_icrc
from weftwork.wire.vcrc import append_vcrc, check_vcrc, vcrc

# IBTA vol. 1, 7.8.3: the sample packet, up to its ICRC; quoted on the linux-rdma list, 29 January 2025
# (20250129202537.GA66821@sol.localdomain), with the virtual lane and byte 12 as they are before the mask.
SAMPLE = bytes.fromhex(
    "7012375c000e17d2 0a2024870087b1b3000dec2a 01710a1c015d4002 38f27a050000000ebb884d85fd5cfba4728bc0690ed40000"
)
SAMPLE_ICRC = bytes.fromhex("9625b75a")


def by_division(data: bytes) -> int:
    """Remainder modulo x^16 + x^12 + x^3 + x + 1, as IBTA vol. 1, 7.8.2 has it, with one integer for all bits.

    The bits of a byte come least significant first; ones are added to the first sixteen bits and to the remainder. The
    first bit of the remainder to be sent is that of x^15.
    """
    bits = int("".join(f"{byte:08b}"[::-1] for byte in data), 2)
    size = 8 * len(data)
    dividend = (bits ^ (0xFFFF << (size - 16))) << 16
    for at in range(size + 15, 15, -1):
        if dividend >> at & 1:
            dividend ^= 0x1100B << (at - 16)
    return int(f"{dividend ^ 0xFFFF:016b}"[::-1], 2)


@pytest.mark.parametrize("size", [2, 3, 30, 58, 511, 512, 513, 4_182])
def test_it_is_the_remainder_of_a_division(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert vcrc(data) == by_division(data)


def test_the_sample_packet_of_the_specification() -> None:
    assert native_icrc(SAMPLE).to_bytes(4, "little") == SAMPLE_ICRC
    packet = SAMPLE + SAMPLE_ICRC
    check_native_icrc(packet)
    assert append_vcrc(packet)[-2:] == by_division(packet).to_bytes(2, "little")


def test_every_bit_counts() -> None:
    packet = append_vcrc(SAMPLE + SAMPLE_ICRC)
    check_vcrc(packet)
    for bit in range(8 * len(packet)):
        damaged = bytearray(packet)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(MalformedPacket, match="VCRC"):
            check_vcrc(bytes(damaged))


@pytest.mark.parametrize("size", [0, 1, 0x7FF * 4 + 1])
def test_sizes_that_no_packet_has(size: int) -> None:
    with pytest.raises(MalformedPacket, match=f"found {size} bytes, wanted 2 to 8188"):
        vcrc(bytes(size))
    with pytest.raises(MalformedPacket):
        check_vcrc(bytes(size))
