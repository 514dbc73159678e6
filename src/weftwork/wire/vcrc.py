"""The variant CRC of native InfiniBand.

It covers all bits of a packet on one link, from its local route header to its ICRC. A switch that changes a field makes
it again.
Source: IBTA vol. 1, 7.8.2: polynomial 0x100B, first value and final mask of ones, in the bit order of the ICRC. Two
older implementations, of Mellanox (2004) and of Endace (2005), have these parameters too.
Leaves out: link packets, such as those of flow control.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from weftwork.wire.fields import MalformedPacket

__all__ = ["VCRC_BYTES", "append_vcrc", "check_vcrc", "vcrc"]

VCRC_BYTES: Final = 2  # IBTA vol. 1, 7.8.2
_REVERSED: Final = 0xD008  # polynomial 0x100B, least significant bit first
_ONES: Final = 0xFFFF
_SHORT_BYTES: Final = 512  # chosen: most packets of a conversation are no longer
_LONGEST_BYTES: Final = 0x7FF * 4  # IBTA vol. 1, 7.7: 11 bits of words in LRH


@cache
def _rows(count: int) -> np.ndarray:
    """Table with a row for each distance from the end of a packet.

    Row k has the CRC of each byte with k zeros behind it; a CRC is the exclusive or of those of its bytes.
    """
    rows = np.empty((count, 256), np.uint16)
    rows[0] = np.arange(256)
    for _ in range(8):
        rows[0] = np.where(rows[0] & 1, rows[0] >> 1 ^ _REVERSED, rows[0] >> 1)
    for row in range(1, count):
        rows[row] = rows[row - 1] >> 8 ^ rows[0][rows[row - 1] & 0xFF]
    return rows


def vcrc(packet: memoryview | bytes) -> int:
    """Variant CRC of a packet.

    Parameters
    ----------
    packet : from its local route header to its ICRC

    Returns
    -------
    16 bits; on the wire least significant byte first

    Raises
    ------
    MalformedPacket : too short or too long
    """
    data = np.frombuffer(packet, np.uint8)
    if not VCRC_BYTES <= len(data) <= _LONGEST_BYTES:
        raise MalformedPacket("VCRC", f"found {len(data)} bytes, wanted {VCRC_BYTES} to {_LONGEST_BYTES}")
    data = data.copy()
    data[:VCRC_BYTES] ^= 0xFF  # a first value of ones acts as if the first two bytes were inverted
    rows = _rows(_SHORT_BYTES if len(data) <= _SHORT_BYTES else _LONGEST_BYTES)
    words = rows[np.arange(len(data) - 1, -1, -1), data]
    return int(np.bitwise_xor.reduce(words)) ^ _ONES


def append_vcrc(packet: memoryview | bytes) -> bytes:
    """``packet`` followed by its variant CRC; errors as ``vcrc``."""
    return bytes(packet) + vcrc(packet).to_bytes(VCRC_BYTES, "little")


def check_vcrc(packet: memoryview | bytes) -> None:
    """Refuse a packet that changed on its link; it includes the variant CRC.

    Raises
    ------
    MalformedPacket : as ``vcrc``, or the variant CRC is wrong
    """
    view = memoryview(packet)
    covered = view[:-VCRC_BYTES]
    wanted, found = vcrc(covered), int.from_bytes(view[-VCRC_BYTES:], "little")
    if found != wanted:
        raise MalformedPacket("VCRC", f"found {found:#06x}, wanted {wanted:#06x}")
