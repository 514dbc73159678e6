"""Private data of a REQ and a REP: the user's bytes and Weftwork's option.

The option is behind the user's bytes; the user does not see it. The option is 8 bytes at the end of the field: a magic
of 7 bytes and one byte of flags. It is there only where an end asks for selective repeat. A peer that does not know it
sees bytes of private data, and answers without it.
Source: chosen: no other program uses the magic.
Leaves out: the header of the RDMA IP CM service, see ``weftwork.wire.rdma_ip_cm``.
"""

from __future__ import annotations

from typing import Final

from weftwork.base.errors import UsageError

__all__ = ["pack_private_data", "unpack_private_data"]

_MAGIC: Final = b"\xe7weft\x9a\x31"
_SELECTIVE_REPEAT: Final = 1
_OPTION_BYTES: Final = len(_MAGIC) + 1


def pack_private_data(user: bytes, room_bytes: int, *, selective_repeat: bool) -> bytes:
    """Fill the private data; UsageError if the user's bytes do not fit.

    Parameters
    ----------
    user : private data of the user
    room_bytes : of the field
    selective_repeat : ask for it

    Examples
    --------
    >>> data, repeats = unpack_private_data(pack_private_data(b"hello", 16, selective_repeat=True))
    >>> data.rstrip(bytes(1)), len(data), repeats
    (b'hello', 16, True)
    """
    option = _MAGIC + bytes([_SELECTIVE_REPEAT]) if selective_repeat else b""
    most_bytes = room_bytes - len(option)
    if len(user) > most_bytes:
        raise UsageError(f"private_data: found {len(user)} bytes, wanted up to {most_bytes}")
    return user.ljust(most_bytes, b"\0") + option


def unpack_private_data(field: bytes) -> tuple[bytes, bool]:
    """The user's bytes, and whether the peer asks for selective repeat.

    The bytes are as long as the field.
    """
    at = len(field) - _OPTION_BYTES
    if field[at:-1] != _MAGIC:
        return field, False
    return field[:at] + bytes(_OPTION_BYTES), bool(field[-1] & _SELECTIVE_REPEAT)
