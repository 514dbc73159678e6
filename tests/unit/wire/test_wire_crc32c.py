"""CRC-32C, whichever way it is computed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.wire.crc32c import CRC32C_LIBRARY, crc32c, crc32c_by_tables

# RFC 3720, B.4: 32 bytes of zeros, ones, rising and falling; and the usual check value of a CRC
EXAMPLES = [
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
    (b"123456789", 0xE3069283),
    (b"", 0),
]


@pytest.mark.parametrize(("data", "wanted"), EXAMPLES)
def test_it_is_that_of_the_examples(data: bytes, wanted: int) -> None:
    assert (crc32c(data), crc32c_by_tables(data)) == (wanted, wanted)


@given(data=st.binary(max_size=2000), cut=st.integers(0, 2000))
def test_it_goes_on_from_any_place(data: bytes, cut: int) -> None:
    whole = crc32c_by_tables(data)
    assert crc32c_by_tables(memoryview(data)[cut:], crc32c_by_tables(data[:cut])) == whole
    assert crc32c(memoryview(data)[cut:], crc32c(data[:cut])) == whole


@given(data=st.binary(min_size=1, max_size=1000), bit=st.integers(0, 7999))
def test_it_finds_every_wrong_bit(data: bytes, bit: int) -> None:
    changed = bytearray(data)
    changed[bit // 8 % len(data)] ^= 1 << bit % 8
    assert crc32c_by_tables(bytes(changed)) != crc32c_by_tables(data)


@pytest.mark.extra
def test_the_extra_is_used_where_it_is_installed() -> None:
    package = pytest.importorskip("crc32c", reason="crc32c comes with the extra 'rdma'")
    assert CRC32C_LIBRARY == "crc32c"
    assert crc32c is package.crc32c
