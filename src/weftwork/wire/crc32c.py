"""CRC-32C (Castagnoli), by which MPA protects an FPDU.

It is computed by the package crc32c if the extra ``rdma`` is installed, else here, with tables.
Source: RFC 3720, 12.1 and appendix B.4 (polynomial, bit order, examples), to which RFC 5044, 4.4 refers.
Leaves out: the CRC-32 of Ethernet, see `checksum`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CRC32C_LIBRARY", "crc32c", "crc32c_by_tables"]

_POLYNOMIAL: Final = 0x82F63B78  # RFC 3720, 12.1: 0x1EDC6F41, lowest bit first
_BLOCK_BYTES: Final = 256  # chosen: a megabyte of tables would not stay in the cache of a core
_ONES: Final = 0xFFFFFFFF


@cache
def _byte_table() -> tuple[int, ...]:
    """Register after one byte, for a register of 0."""
    table = []
    for byte in range(256):
        register = byte
        for _ in range(8):
            register = register >> 1 ^ (_POLYNOMIAL if register & 1 else 0)
        table.append(register)
    return tuple(table)


@cache
def _place_tables() -> NDArray[np.uint32]:
    """Register after a block that is zero but for one byte.

    Returns
    -------
    shape (256, 256), by place in the block and value of the byte
    """
    import numpy as np

    table = np.array(_byte_table(), np.uint32)
    places = np.empty((_BLOCK_BYTES, 256), np.uint32)
    places[-1] = table
    for place in range(_BLOCK_BYTES - 2, -1, -1):
        behind = places[place + 1]
        places[place] = behind >> 8 ^ table[behind & 0xFF]
    return places


@cache
def _starts() -> NDArray[np.intp]:
    """Where the table of each place begins."""
    import numpy as np

    return np.arange(_BLOCK_BYTES, dtype=np.intp) * 256


@cache
def _carry_tables() -> tuple[list[int], ...]:
    """Register after a block of zeros, by each of the four bytes of the register before."""
    return tuple(row.tolist() for row in _place_tables()[:4])


def crc32c_by_tables(data: memoryview | bytes, value: int = 0) -> int:
    """CRC-32C without a library.

    Whole blocks are looked up together, since the CRC of a block is the sum of those of its bytes.

    Parameters
    ----------
    data : bytes
    value : CRC of the bytes in front of them
    """
    register = value ^ _ONES
    blocks = len(data) // _BLOCK_BYTES
    if blocks:
        import numpy as np

        rows = np.frombuffer(data, np.uint8, blocks * _BLOCK_BYTES).reshape(blocks, _BLOCK_BYTES)
        words = _place_tables().ravel().take(rows + _starts(), mode="clip")
        pairs = np.bitwise_xor.reduce(words.view(np.uint64), axis=1)  # two words at a time
        by_row = (pairs & _ONES) ^ (pairs >> 32)
        first, second, third, fourth = _carry_tables()
        for row in by_row.tolist():
            register = (
                first[register & 0xFF]
                ^ second[register >> 8 & 0xFF]
                ^ third[register >> 16 & 0xFF]
                ^ fourth[register >> 24]
                ^ row
            )
    table = _byte_table()
    for byte in memoryview(data)[blocks * _BLOCK_BYTES :]:
        register = register >> 8 ^ table[(register ^ byte) & 0xFF]
    return register ^ _ONES


CRC32C_LIBRARY: Final = "crc32c" if find_spec("crc32c") is not None else "tables"

crc32c: Final[Callable[..., int]] = import_module("crc32c").crc32c if CRC32C_LIBRARY == "crc32c" else crc32c_by_tables
