"""The hash by which a switch spreads packets over ports.

It takes chosen header fields to a digest, and the digest to the final number.
Source: CRC polynomials of IEEE 802.3 (crc32), RFC 3720 appendix B.4 (crc32c) and ITU-T V.41 (crc16-ccitt), here without
inversion at either end, as hash units use them; `docs/models/packet-engine.md`, section Hash, decides the rest.
Leaves out: fields that a packet of this model does not vary, such as VLAN and DSCP.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from weftwork.base.random import mix
from weftwork.engine.rows.fabric import HashAlgorithm, HashField

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["address", "digest", "field_bytes", "final_hash"]

PROTOCOL_UDP: Final = 17  # IANA protocol numbers
ROCEV2_UDP_PORT: Final = 4791  # IANA port numbers, roce; IBTA annex A17
FIRST_ADDRESS: Final = 0x0A000000  # chosen: 10.0.0.0/8 of RFC 1918 holds 2^24 ports
_CRC32_REFLECTED: Final = 0xEDB88320  # IEEE 802.3, 3.2.9, reflected
_CRC32C_REFLECTED: Final = 0x82F63B78  # RFC 3720, appendix B.4, reflected
_CRC16_CCITT: Final = 0x1021  # ITU-T V.41
_MASK32: Final = 0xFFFFFFFF


_ALL_FIELDS: Final = struct.Struct(">IIBHHHI")  # in the order of `_PLACES`
_PLACES: Final = (
    (int(HashField.SRC_IP), slice(0, 4)),
    (int(HashField.DST_IP), slice(4, 8)),
    (int(HashField.PROTOCOL), slice(8, 9)),
    (int(HashField.SRC_PORT), slice(9, 11)),
    (int(HashField.DST_PORT), slice(11, 13)),
    (int(HashField.IN_PORT), slice(13, 15)),
    (int(HashField.DESTINATION_QP), slice(16, 19)),  # 24 bits of 32
)

_FIVE_TUPLE: Final = sum(field for field, _ in _PLACES[:5])  # which lie together, and which most switches take


def address(port: int) -> int:
    """IPv4 address of a NIC port."""
    return FIRST_ADDRESS + port


def field_bytes(
    *, fields: int, source_port: int, destination_port: int, entropy: int, in_port: int, destination_qp: int
) -> bytes:
    """The chosen fields of a packet's headers, big-endian, in sequence.

    Parameters
    ----------
    fields : bits of `HashField`
    source_port, destination_port : global ids of the NIC ports that send and receive this packet
    entropy : UDP source port
    in_port : number of the port, among those of the switch, by which the packet came in
    destination_qp : 24 bits
    """
    data = _ALL_FIELDS.pack(
        address(source_port),
        address(destination_port),
        PROTOCOL_UDP,
        entropy & 0xFFFF,
        ROCEV2_UDP_PORT,
        in_port & 0xFFFF,
        destination_qp,
    )
    if fields == _FIVE_TUPLE:
        return data[:13]
    return b"".join([data[place] for field, place in _PLACES if fields & field])


def digest(algorithm: int, seed: int, data: bytes) -> int:
    """Digest of the fields.

    The seed is the start value of a CRC.

    Parameters
    ----------
    algorithm : a `HashAlgorithm`
    seed : 32 bits; crc16-ccitt takes its low 16 bits
    data : of `field_bytes`

    Examples
    --------
    >>> hex(digest(HashAlgorithm.CRC32, 0xFFFFFFFF, b"123456789") ^ 0xFFFFFFFF)
    '0xcbf43926'
    >>> hex(digest(HashAlgorithm.CRC16_CCITT, 0xFFFF, b"123456789"))
    '0x29b1'
    """
    if algorithm == HashAlgorithm.MIX:
        return mix(_reflected(_CRC32_TABLE, 0, data), seed, 0) >> 32
    if algorithm == HashAlgorithm.XOR:
        padded = data + bytes(-len(data) % 4)
        value = seed & _MASK32
        for (word,) in struct.iter_unpack(">I", padded):
            value ^= word
        return value
    return _CRCS[HashAlgorithm(algorithm)](seed, data)


def final_hash(algorithm: int, seed: int, offset: int, data: bytes) -> int:
    """Hash for a port selection: the digest without ``offset`` low bits."""
    return digest(algorithm, seed, data) >> offset


def _reflected_table(polynomial: int) -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
        table.append(value)
    return tuple(table)


def _reflected(table: tuple[int, ...], seed: int, data: bytes) -> int:
    value = seed & _MASK32
    for byte in data:
        value = value >> 8 ^ table[(value ^ byte) & 0xFF]
    return value


def _crc16(seed: int, data: bytes) -> int:
    value = seed & 0xFFFF
    for byte in data:
        value ^= byte << 8
        for _ in range(8):
            value = (value << 1 ^ (_CRC16_CCITT if value & 0x8000 else 0)) & 0xFFFF
    return value


_CRC32_TABLE: Final = _reflected_table(_CRC32_REFLECTED)
_CRC32C_TABLE: Final = _reflected_table(_CRC32C_REFLECTED)
_CRCS: Final[dict[HashAlgorithm, Callable[[int, bytes], int]]] = {
    HashAlgorithm.CRC32: lambda seed, data: _reflected(_CRC32_TABLE, seed, data),
    HashAlgorithm.CRC32C: lambda seed, data: _reflected(_CRC32C_TABLE, seed, data),
    HashAlgorithm.CRC16_CCITT: _crc16,
}
