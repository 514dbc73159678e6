"""Records with a table of bit fields, for large and rare messages.

Source: the notation of Linux include/rdma/iba.h: byte, bit within the byte from the highest down, width in bits.
Leaves out: speed; headers of every packet have a ``struct.Struct`` instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from weftwork.wire.fields import MalformedPacket, check_bytes, check_fits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["BitField", "BitLayout"]


class BitField(NamedTuple):
    """Place of a number in a block of bytes.

    Parameters
    ----------
    name : of the field
    byte : its first byte
    bits : how many
    bit : its first bit in that byte, from the highest (0) down
    """

    name: str
    byte: int
    bits: int
    bit: int = 0


class BitLayout:
    """A block of numbers at any bits, followed by private data.

    Parameters
    ----------
    layer : the name of the block in errors
    size_bytes : of the whole block
    fields : numbers, which may not overlap
    data_byte : where the private data begins; it goes to the end
    """

    def __init__(self, layer: str, size_bytes: int, fields: Iterable[BitField], data_byte: int) -> None:
        self.layer: Final = layer
        self.size_bytes: Final = size_bytes
        self.fields: Final = tuple(fields)
        self.data_byte: Final = data_byte
        self.data_bytes: Final = size_bytes - data_byte

    def encode(self, values: Mapping[str, int], private_data: bytes, reserved: int) -> bytes:
        """``size_bytes`` bytes; UsageError for a number or private data that does not fit.

        Parameters
        ----------
        values : by name of the field
        private_data : exactly ``data_bytes`` bytes
        reserved : all bits in front of the private data that no field has
        """
        number = reserved
        for field in self.fields:
            check_fits(field.name, values[field.name], field.bits)
            number |= values[field.name] << self._shift(field)
        check_fits("reserved", reserved, self.data_byte * 8)
        check_bytes("private_data", private_data, self.data_bytes)
        return number.to_bytes(self.data_byte, "big") + private_data

    def decode(self, data: memoryview | bytes) -> tuple[dict[str, int], bytes, int]:
        """Read a block.

        Returns
        -------
        the numbers by name, the private data, and the bits that no field has

        Raises
        ------
        MalformedPacket : fewer than ``size_bytes`` bytes
        """
        if len(data) < self.size_bytes:
            raise MalformedPacket(self.layer, f"found {len(data)} bytes, wanted at least {self.size_bytes}")
        number = int.from_bytes(data[: self.data_byte], "big")
        values = {}
        for field in self.fields:
            shift = self._shift(field)
            values[field.name] = number >> shift & (1 << field.bits) - 1
            number &= ~((1 << field.bits) - 1 << shift)
        return values, bytes(data[self.data_byte : self.size_bytes]), number

    def _shift(self, field: BitField) -> int:
        return (self.data_byte - field.byte) * 8 - field.bit - field.bits
