"""The top eight bits of a queue pair number and of a communication ID: the prefix by which a driver steers packets.

Processes that share an address have a prefix each, their slot.
Source: InfiniBand Architecture Specification, vol. 1: queue pair numbers of 24 bits, communication IDs of 32 bits.
Leaves out: who gives out slots (``drivers.slots``).
"""

from __future__ import annotations

from typing import Final

__all__ = ["COMM_ID_BITS", "PREFIXES", "PREFIX_BITS", "QP_NUM_BITS", "behind_prefix", "low_numbers", "prefix_of"]

PREFIX_BITS: Final = 8
PREFIXES: Final = 1 << PREFIX_BITS
QP_NUM_BITS: Final = 24
COMM_ID_BITS: Final = 32


def prefix_of(qp_num: int) -> int:
    """Prefix of a queue pair number.

    Examples
    --------
    >>> hex(prefix_of(behind_prefix(0xAB, 0x1234, QP_NUM_BITS)))
    '0xab'
    """
    return qp_num >> (QP_NUM_BITS - PREFIX_BITS)


def low_numbers(bits: int) -> int:
    """How many numbers of this many bits have one prefix."""
    return 1 << (bits - PREFIX_BITS)


def behind_prefix(prefix: int, number: int, bits: int) -> int:
    """A number with its top bits replaced by a prefix.

    Parameters
    ----------
    prefix, number : which are joined
    bits : of the number

    Examples
    --------
    >>> hex(behind_prefix(0xAB, 0x123456, QP_NUM_BITS)), hex(behind_prefix(0xAB, 0x12345678, COMM_ID_BITS))
    ('0xab3456', '0xab345678')
    """
    low = low_numbers(bits)
    return prefix * low | number % low
