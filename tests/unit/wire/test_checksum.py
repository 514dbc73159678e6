"""The CRC-32 that everything uses, whichever library computes it."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.wire.checksum import CHECKSUM_LIBRARY, RESIDUE, crc32


@given(data=st.binary(max_size=5000), cut=st.integers(0, 5000))
def test_it_is_that_of_the_standard_library_and_goes_on_from_any_place(data: bytes, cut: int) -> None:
    assert crc32(data) == zlib.crc32(data)
    assert crc32(memoryview(data)[cut:], crc32(data[:cut])) == zlib.crc32(data)


@given(data=st.binary(max_size=500))
def test_bytes_with_their_crc_behind_leave_a_constant(data: bytes) -> None:
    assert crc32(data + crc32(data).to_bytes(4, "little")) == RESIDUE


@pytest.mark.extra
def test_the_extra_is_used_where_it_is_installed() -> None:
    pytest.importorskip("zlib_ng", reason="zlib-ng comes with the extra 'rdma'")
    assert CHECKSUM_LIBRARY == "zlib-ng"
    assert crc32 is not zlib.crc32
