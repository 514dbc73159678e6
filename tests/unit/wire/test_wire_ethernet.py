"""Ethernet headers, tags, padding and the frame check sequence."""

from __future__ import annotations

import zlib

import pytest

from weftwork.base.errors import UsageError
from weftwork.wire.ethernet import (
    ETHERNET_HEADER_BYTES,
    ETHERTYPE_IPV4,
    ETHERTYPE_VLAN,
    FCS_BYTES,
    MINIMUM_FRAME_BYTES,
    VLAN_TAG_BYTES,
    EthernetFrame,
    EthernetHeader,
    VlanTag,
)
from weftwork.wire.fields import MalformedPacket

HEADER = EthernetHeader(
    destination=bytes.fromhex("248a07a8fa22"), source=bytes.fromhex("7cfe90643b32"), ethertype=ETHERTYPE_IPV4
)
TAGGED = EthernetHeader(
    destination=HEADER.destination,
    source=HEADER.source,
    ethertype=ETHERTYPE_IPV4,
    vlan=VlanTag(priority=3, vlan_id=100, drop_eligible=True),
)


def test_a_header_is_two_addresses_and_a_type() -> None:
    assert HEADER.encode().hex() == "248a07a8fa227cfe90643b320800"
    assert len(HEADER.encode()) == HEADER.size_bytes == ETHERNET_HEADER_BYTES


def test_a_tag_stands_before_the_type() -> None:
    encoded = TAGGED.encode()
    assert encoded.hex() == "248a07a8fa227cfe90643b32" + "8100" + "7064" + "0800"
    assert len(encoded) == TAGGED.size_bytes == ETHERNET_HEADER_BYTES + VLAN_TAG_BYTES
    record, rest = EthernetHeader.decode(encoded + b"payload")
    assert record == TAGGED
    assert bytes(rest) == b"payload"


def test_a_second_tag_stays_in_the_payload() -> None:
    outer = EthernetHeader(
        destination=HEADER.destination, source=HEADER.source, ethertype=ETHERTYPE_VLAN, vlan=VlanTag(vlan_id=7)
    )
    record, rest = EthernetHeader.decode(outer.encode() + b"\x00\x08\x08\x00")
    assert record == outer
    assert len(rest) == 4


def test_a_short_payload_is_padded_to_the_minimum_frame() -> None:
    frame = EthernetFrame(header=HEADER, payload=b"\x01").encode()
    assert len(frame) == MINIMUM_FRAME_BYTES
    assert frame[15:-FCS_BYTES] == bytes(45)
    record, rest = EthernetFrame.decode(frame)
    assert record == EthernetFrame(header=HEADER, payload=b"\x01" + bytes(45))
    assert not rest


def test_a_frame_with_its_check_sequence_leaves_the_residue_of_crc_32() -> None:
    # The CRC over a message and its own CRC is a constant, 0x2144df1c for the reflected CRC-32 of IEEE 802.3.
    for payload in (b"", b"\xff" * 46, bytes(range(200))):
        assert zlib.crc32(EthernetFrame(header=HEADER, payload=payload).encode()) == 0x2144DF1C


def test_every_flipped_bit_of_a_frame_is_found() -> None:
    frame = EthernetFrame(header=HEADER, payload=bytes(range(60))).encode()
    for bit in range(len(frame) * 8):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(MalformedPacket, match="frame check sequence"):
            EthernetFrame.decode(bytes(damaged))


def test_a_runt_is_refused() -> None:
    with pytest.raises(MalformedPacket, match="found a frame of 63 bytes, wanted at least 64"):
        EthernetFrame.decode(bytes(63))


@pytest.mark.parametrize("size_bytes", [13, 16, 17])
def test_a_cut_header_is_refused(size_bytes: int) -> None:
    with pytest.raises(MalformedPacket):
        EthernetHeader.decode(TAGGED.encode()[:size_bytes])


@pytest.mark.parametrize(
    "header",
    [
        EthernetHeader(destination=b"\0" * 5, source=HEADER.source, ethertype=0x0800),
        EthernetHeader(destination=HEADER.destination, source=b"\0" * 7, ethertype=0x0800),
        EthernetHeader(destination=HEADER.destination, source=HEADER.source, ethertype=0x10000),
        EthernetHeader(destination=HEADER.destination, source=HEADER.source, ethertype=ETHERTYPE_VLAN),
        EthernetHeader(
            destination=HEADER.destination, source=HEADER.source, ethertype=0x0800, vlan=VlanTag(priority=8)
        ),
        EthernetHeader(
            destination=HEADER.destination, source=HEADER.source, ethertype=0x0800, vlan=VlanTag(vlan_id=-1)
        ),
    ],
)
def test_a_field_that_does_not_fit_is_the_callers_mistake(header: EthernetHeader) -> None:
    with pytest.raises(UsageError):
        header.encode()
