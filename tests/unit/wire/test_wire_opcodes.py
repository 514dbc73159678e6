"""Opcodes and the extended headers behind them, against vectors written by hand from the specification."""

from __future__ import annotations

from typing import Any

import pytest

from weftwork.base.errors import UsageError
from weftwork.wire.extended import (
    HEADER_BYTES,
    Aeth,
    AethKind,
    AtomicAckEth,
    AtomicEth,
    Deth,
    Feth,
    FlushPlacement,
    Ieth,
    ImmediateData,
    Rdeth,
    Reth,
    XrcEth,
)
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import Bth
from weftwork.wire.opcodes import SHAPES, Opcode, Position, TransportService
from weftwork.wire.transport import TransportPacket, transport_packet

ACK = Aeth(AethKind.ACK, value=31, msn=2)
RETH = Reth(virtual_address=0x0123456789ABCDEF, remote_key=0x11223344, dma_bytes=8)
RETH_HEX = "0123456789abcdef1122334400000008"
ATOMIC = AtomicEth(virtual_address=8, remote_key=9, swap_or_add=10, compare=11)


@pytest.mark.parametrize(
    ("header", "encoded"),
    [
        (RETH, RETH_HEX),
        (Deth(queue_key=0x80010000, source_qp=0xABCDEF, reserved8=1), "8001000001abcdef"),
        (ATOMIC, "000000000000000800000009000000000000000a000000000000000b"),
        (AtomicAckEth(original_data=2**64 - 1), "ff" * 8),
        (ImmediateData(0xDEADBEEF), "deadbeef"),
        (Ieth(0x01020304), "01020304"),
        (XrcEth(srq=0x123456), "00123456"),
        (Rdeth(ee_context=0x654321, reserved8=0xFF), "ff654321"),
        (Feth(placement=FlushPlacement.PERSISTENCE, selectivity=1), "00000012"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, tuple) else "",
)
def test_a_header_is_as_the_specification_lays_it_out(header: Any, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert header.encode() == data
    assert type(header).decode(data + b"rest") == (header, b"rest")
    assert len(data) == HEADER_BYTES[type(header)]
    with pytest.raises(MalformedPacket, match=f"found {len(data) - 1} bytes, wanted at least {len(data)}"):
        type(header).decode(data[:-1])


@pytest.mark.parametrize(
    "header",
    [
        RETH._replace(virtual_address=1 << 64),
        RETH._replace(dma_bytes=-1),
        Deth(queue_key=0, source_qp=1 << 24),
        ATOMIC._replace(compare=1 << 64),
        AtomicAckEth(1 << 64),
        ImmediateData(1 << 32),
        Ieth(1 << 32),
        XrcEth(1 << 24),
        Rdeth(1 << 24),
        Feth(placement=16, selectivity=0),
        Feth(placement=0, selectivity=4),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_does_not_fit_is_refused(header: Any) -> None:
    with pytest.raises(UsageError, match="wanted 0 to"):
        header.encode()


@pytest.mark.parametrize(
    ("opcode", "name", "headers_bytes"),
    [
        (0x00, "RC SEND first", 0),
        (0x06, "RC WRITE first", 16),
        (0x0B, "RC WRITE only with immediate", 20),
        (0x0C, "RC READ request", 16),
        (0x0E, "RC READ response middle", 0),
        (0x10, "RC READ response only", 4),
        (0x12, "RC ATOMIC ACK", 12),
        (0x14, "RC FETCH ADD", 28),
        (0x17, "RC SEND only with invalidate", 4),
        (0x1C, "RC FLUSH", 20),
        (0x1D, "RC ATOMIC WRITE", 16),
        (0x26, "UC WRITE first", 16),
        (0x4C, "RD READ request", 28),
        (0x50, "RD READ response only", 8),
        (0x65, "UD SEND only with immediate", 12),
        (0x81, "CNP", 0),
        (0xAB, "XRC WRITE only with immediate", 24),
    ],
)
def test_an_opcode_brings_its_headers(opcode: int, name: str, headers_bytes: int) -> None:
    shape = SHAPES[opcode]
    assert (shape.name, shape.headers_bytes) == (name, headers_bytes)
    assert shape.service == opcode >> 5
    assert shape.operation == (opcode if opcode == Opcode.CNP else opcode & 0x1F)


def test_each_service_has_the_operations_of_the_specification() -> None:
    counts = {service: sum(shape.service is service for shape in SHAPES.values()) for service in TransportService}
    assert [counts[service] for service in TransportService] == [25, 12, 21, 2, 1, 23]
    # unreliable services neither read nor acknowledge
    assert not any(shape.is_response for shape in SHAPES.values() if shape.service in {TransportService.UC, 3})
    assert [op for op, shape in SHAPES.items() if op < 0x20 and shape.is_response] == [*range(0x0D, 0x13)]


def test_a_flush_says_how_far_before_it_says_where() -> None:
    flush = TransportPacket(Bth(Opcode.FLUSH, 0x11, 7), (Feth(placement=1, selectivity=0), RETH))
    assert flush.encode().hex() == "1c00ffff000000110000000700000001" + RETH_HEX
    assert TransportPacket.decode(flush.encode()) == (flush, b"")


def test_a_packet_knows_its_place_in_the_message() -> None:
    first, only = SHAPES[Opcode.WRITE_FIRST], SHAPES[Opcode.WRITE_ONLY]
    assert (first.position, first.starts_message, first.ends_message) == (Position.FIRST, True, False)
    assert (only.starts_message, only.ends_message) == (True, True)
    assert SHAPES[Opcode.SEND_LAST_IMMEDIATE].ends_message
    assert not SHAPES[Opcode.SEND_MIDDLE].starts_message


def test_a_payload_is_padded_and_comes_back_without() -> None:
    made = transport_packet(Bth(Opcode.WRITE_ONLY, 0x11, 7), (RETH,), b"hello")
    assert made.encode().hex() == "0a30ffff0000001100000007" + RETH_HEX + "68656c6c6f000000"
    found, rest = TransportPacket.decode(made.encode())
    assert (bytes(found.payload), found.find(Reth), found.find(Deth), bytes(rest)) == (b"hello", RETH, None, b"")
    assert found.shape.name == "RC WRITE only"


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        ("15" + "00" * 11, "BTH: found opcode 0x15, which is reserved"),
        ("c5" + "00" * 11, "BTH: found opcode 0xc5, which is a vendor's own"),
        ("04" + "00" * 10, "BTH: found 11 bytes, wanted at least 12"),
        ("06" + "00" * 26, "RC WRITE first: found 15 bytes behind BTH, wanted at least 16"),
        ("0430" + "00" * 10 + "0000", "RC SEND only: found 2 bytes behind BTH, wanted at least 3"),
        ("11" + "00" * 19, "RC ACK: found a payload of 4 bytes, wanted none"),
    ],
)
def test_what_its_opcode_does_not_allow_says_why(packet: str, message: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        TransportPacket.decode(bytes.fromhex(packet))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        (TransportPacket(Bth(0x15, 1, 2)), "bth.opcode: found 0x15"),
        (TransportPacket(Bth(Opcode.WRITE_ONLY, 1, 2)), "found none, wanted Reth for RC WRITE only"),
        (TransportPacket(Bth(Opcode.SEND_ONLY, 1, 2), (RETH,)), "found Reth, wanted none"),
        (TransportPacket(Bth(Opcode.ACKNOWLEDGE, 1, 2), (ACK,), b"1234"), "found 4 bytes, wanted none"),
        (TransportPacket(Bth(Opcode.SEND_ONLY, 1, 2), (), b"123"), None),
        (TransportPacket(Bth(Opcode.SEND_ONLY, 1, 2, pad_bytes=1), (), b"123"), "found 0 bytes, wanted 1 as in BTH"),
    ],
)
def test_a_packet_that_contradicts_itself_is_not_written(packet: TransportPacket, message: str | None) -> None:
    if message is None:  # the multiple of four is for whoever puts the ICRC behind
        assert packet.encode()[-3:] == b"123"
        return
    with pytest.raises(UsageError, match=message):
        packet.encode()
