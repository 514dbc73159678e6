"""BTH, AETH, credits, the CNP and PSN arithmetic."""

from __future__ import annotations

from typing import Any

import pytest

from weftwork.base.errors import UsageError
from weftwork.wire.credits import CREDITS_BY_CODE, NO_CREDIT_COUNT, code_to_credits, credits_to_code
from weftwork.wire.extended import AETH_BYTES, Aeth, AethKind, Nak
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import BTH_BYTES, CNP_BODY, PSN_MODULUS, Bth, cnp_bth, psn_add, psn_compare
from weftwork.wire.opcodes import Opcode


def test_every_field_of_the_bth_has_its_bits() -> None:
    bth = Bth(
        opcode=0x2A,
        solicited_event=True,
        pad_bytes=2,
        transport_version=5,
        partition_key=0x8001,
        fecn=True,
        reserved6=0x15,
        destination_qp=0xABCDEF,
        ack_request=True,
        reserved7=0x2A,
        psn=0x123456,
    )
    assert bth.encode().hex() == "2a" + "a5" + "8001" + "95" + "abcdef" + "aa" + "123456"
    assert Bth.decode(bth.encode())[0] == bth
    assert len(bth.encode()) == BTH_BYTES


def test_the_cnp_is_that_of_the_published_example() -> None:
    # NVIDIA (Mellanox) community article "RoCEv2 CNP Packet Format Example": queue pair 0xd2.
    example = bytes.fromhex("8100ffff 400000d2 00000000") + bytes(16)
    assert cnp_bth(0xD2).encode() + CNP_BODY == example
    bth, rest = Bth.decode(example)
    assert bth == cnp_bth(0xD2)
    assert bytes(rest) == CNP_BODY
    assert (bth.opcode, bth.becn, bth.fecn, bth.psn) == (Opcode.CNP, True, False, 0)


@pytest.mark.parametrize(
    ("aeth", "encoded"),
    [
        (Aeth(kind=AethKind.ACK, value=NO_CREDIT_COUNT, msn=7), "1f000007"),
        (Aeth(kind=AethKind.ACK, value=0, msn=0xFFFFFF), "00ffffff"),
        (Aeth(kind=AethKind.RNR_NAK, value=14, msn=1), "2e000001"),
        (Aeth(kind=AethKind.NAK, value=Nak.PSN_SEQUENCE_ERROR, msn=1), "60000001"),
        (Aeth(kind=AethKind.NAK, value=Nak.INVALID_REQUEST, msn=1), "61000001"),
        (Aeth(kind=AethKind.NAK, value=Nak.REMOTE_ACCESS_ERROR, msn=1), "62000001"),
        (Aeth(kind=AethKind.NAK, value=Nak.REMOTE_OPERATIONAL_ERROR, msn=1), "63000001"),
        (Aeth(kind=AethKind.NAK, value=Nak.INVALID_RD_REQUEST, msn=1), "64000001"),
        (Aeth(kind=AethKind.RESERVED, value=1, msn=1, reserved_bit=True), "c1000001"),
    ],
)
def test_syndromes_are_those_of_the_standard(aeth: Aeth, encoded: str) -> None:
    assert aeth.encode().hex() == encoded
    assert Aeth.decode(bytes.fromhex(encoded))[0] == aeth
    assert aeth.syndrome == int(encoded[:2], 16)
    assert len(aeth.encode()) == AETH_BYTES


def test_only_an_ack_carries_credits() -> None:
    assert Aeth(kind=AethKind.ACK, value=5, msn=0).credits == 6
    assert Aeth(kind=AethKind.ACK, value=NO_CREDIT_COUNT, msn=0).credits is None
    assert Aeth(kind=AethKind.NAK, value=0, msn=0).credits is None


def test_the_credit_table_alternates_a_half_and_a_third() -> None:
    assert len(CREDITS_BY_CODE) == NO_CREDIT_COUNT
    assert CREDITS_BY_CODE[:5] == (0, 1, 2, 3, 4)
    for code in range(4, NO_CREDIT_COUNT):
        assert CREDITS_BY_CODE[code] == 2 * CREDITS_BY_CODE[code - 2]
    assert CREDITS_BY_CODE[-1] == 32768


def test_credits_are_never_promised_that_are_not_there() -> None:
    for count in [*range(5000), 24575, 24576, 32767, 32768, 10**9]:
        code = credits_to_code(count)
        promised = code_to_credits(code)
        assert promised is not None
        assert promised <= count
        assert code == 30 or CREDITS_BY_CODE[code + 1] > count


def test_credit_codes_outside_the_table_are_the_callers_mistake() -> None:
    assert code_to_credits(31) is None
    with pytest.raises(UsageError):
        code_to_credits(32)
    with pytest.raises(UsageError):
        credits_to_code(-1)


@pytest.mark.parametrize(
    ("psn", "other", "distance"),
    [
        (0, 0, 0),
        (0, PSN_MODULUS - 1, 1),
        (PSN_MODULUS - 1, 0, -1),
        (PSN_MODULUS // 2 - 1, 0, PSN_MODULUS // 2 - 1),
        (PSN_MODULUS // 2, 0, -PSN_MODULUS // 2),
        (0, PSN_MODULUS // 2, -PSN_MODULUS // 2),
        (PSN_MODULUS // 2 + 1, 0, -(PSN_MODULUS // 2 - 1)),
    ],
)
def test_psns_compare_on_a_circle(psn: int, other: int, distance: int) -> None:
    assert psn_compare(psn, other) == distance
    assert psn_add(other, distance) == psn


@pytest.mark.parametrize("codec", [Bth, Aeth])
def test_a_cut_header_is_refused(codec: type[Bth | Aeth]) -> None:
    with pytest.raises(MalformedPacket):
        codec.decode(bytes(3))


@pytest.mark.parametrize(
    "change",
    [
        {"opcode": 256},
        {"destination_qp": 1 << 24},
        {"psn": -1},
        {"pad_bytes": 4},
        {"partition_key": 1 << 16},
        {"transport_version": 16},
        {"reserved6": 64},
        {"reserved7": 128},
    ],
)
def test_a_bth_field_that_does_not_fit_is_the_callers_mistake(change: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"opcode": Opcode.SEND_ONLY, "destination_qp": 1, "psn": 0} | change
    with pytest.raises(UsageError):
        Bth(**fields).encode()


@pytest.mark.parametrize(
    "aeth", [Aeth(kind=AethKind.ACK, value=32, msn=0), Aeth(kind=AethKind.ACK, value=0, msn=1 << 24)]
)
def test_an_aeth_field_that_does_not_fit_is_the_callers_mistake(aeth: Aeth) -> None:
    with pytest.raises(UsageError):
        aeth.encode()
