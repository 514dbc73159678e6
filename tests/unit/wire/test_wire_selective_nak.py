"""The private NAK of selective repeat."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import UsageError
from weftwork.wire.extended import Aeth, AethKind
from weftwork.wire.selective_nak import MOST_AHEAD, SelectiveNak

TWELVE_BITS = st.integers(1, MOST_AHEAD)


@given(TWELVE_BITS, TWELVE_BITS)
def test_encode_and_decode_are_inverse(ahead: int, packets: int) -> None:
    told = SelectiveNak(ahead, packets)
    header, rest = Aeth.decode(told.aeth().encode())
    assert (SelectiveNak.of_aeth(header), len(rest)) == (told, 0)


def test_the_bytes_are_those_of_the_page() -> None:
    assert SelectiveNak(ahead=3, packets=0x123).aeth().encode() == bytes((0x40, 0x00, 0x31, 0x23))


@pytest.mark.parametrize(
    "header",
    [
        Aeth(AethKind.ACK, 0, 0x001001),
        Aeth(AethKind.NAK, 0, 0x001001),
        Aeth(AethKind.RESERVED, 1, 0x001001),
        Aeth(AethKind.RESERVED, 0, 0x001001, reserved_bit=True),
        Aeth(AethKind.RESERVED, 0, 0x000001),
        Aeth(AethKind.RESERVED, 0, 0x001000),
    ],
)
def test_other_headers_are_none(header: Aeth) -> None:
    assert SelectiveNak.of_aeth(header) is None


@pytest.mark.parametrize("told", [SelectiveNak(MOST_AHEAD + 1, 1), SelectiveNak(1, MOST_AHEAD + 1)])
def test_what_does_not_fit_is_refused(told: SelectiveNak) -> None:
    with pytest.raises(UsageError, match="4096"):
        told.aeth()
