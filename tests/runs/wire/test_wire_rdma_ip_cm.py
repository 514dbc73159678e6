"""The private header of the RDMA IP CM service, byte by byte, and the ports in service IDs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weftwork.rdma.cm_private import pack_private_data, unpack_private_data


@given(user=st.binary(max_size=48), room=st.sampled_from([56, 196]))
def test_the_option_behind_private_data_is_invisible(user: bytes, room: int) -> None:
    for repeats in (False, True):
        field = pack_private_data(user, room, selective_repeat=repeats)
        assert len(field) == room
        assert unpack_private_data(field) == (user.ljust(room, b"\0"), repeats)
