"""A packet of the InfiniBand transport: BTH, extended headers, payload, padding.

Source: IBTA vol. 1, 9.2 to 9.4.
Leaves out: what is in front (IP and UDP, GRH, LRH) and the ICRC behind: see ``rocev2`` and ``infiniband``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from weftwork.base.errors import UsageError
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import Bth
from weftwork.wire.opcodes import SHAPES, VENDOR_OPCODES, OpcodeShape

if TYPE_CHECKING:
    from weftwork.wire.extended import ExtendedHeader

__all__ = ["TransportPacket", "transport_packet"]

HeaderT = TypeVar("HeaderT")


class TransportPacket(NamedTuple):
    """A packet from BTH to its padding.

    Parameters
    ----------
    bth : the base transport header, whose opcode and pad count agree with the rest
    headers : those that ``SHAPES`` names for the opcode, in that order
    payload : bytes of the message; after ``decode`` a view
    padding : 0 to 3 bytes, sent as 0
    """

    bth: Bth
    headers: tuple[ExtendedHeader, ...] = ()
    payload: bytes | memoryview = b""
    padding: bytes = b""

    @property
    def shape(self) -> OpcodeShape:
        """Meaning of the opcode."""
        return SHAPES[self.bth.opcode]

    def find(self, kind: type[HeaderT]) -> HeaderT | None:
        """Extended header of a kind, or None."""
        return next((header for header in self.headers if isinstance(header, kind)), None)

    def body(self) -> bytes:
        """Bytes after BTH.

        Raises
        ------
        UsageError : headers, payload or padding are not what the opcode and the pad count say
        """
        shape = SHAPES.get(self.bth.opcode)
        if shape is None:
            raise UsageError(f"bth.opcode: found {self.bth.opcode:#04x}, wanted one of the specification")
        if tuple(map(type, self.headers)) != shape.headers:
            found = ", ".join(type(header).__name__ for header in self.headers) or "none"
            wanted = ", ".join(header.__name__ for header in shape.headers) or "none"
            raise UsageError(f"headers: found {found}, wanted {wanted} for {shape.name}")
        if self.payload and not shape.has_payload:
            raise UsageError(f"payload: found {len(self.payload)} bytes, wanted none for {shape.name}")
        if len(self.padding) != self.bth.pad_bytes:
            raise UsageError(f"padding: found {len(self.padding)} bytes, wanted {self.bth.pad_bytes} as in BTH")
        return b"".join([*(header.encode() for header in self.headers), self.payload, self.padding])

    def encode(self) -> bytes:
        """All bytes without the ICRC; UsageError as ``body``."""
        return self.bth.encode() + self.body()

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read a packet without its ICRC; it ends with ``data``.

        It has no length of its own, so the rest is empty.

        Raises
        ------
        MalformedPacket : too few bytes, an opcode that no specification knows, a payload where none may be
        """
        bth, behind = Bth.decode(data)
        shape = SHAPES.get(bth.opcode)
        if shape is None:
            owner = "a vendor's own" if bth.opcode in VENDOR_OPCODES else "reserved"
            raise MalformedPacket("BTH", f"found opcode {bth.opcode:#04x}, which is {owner}")
        needed_bytes = shape.headers_bytes + bth.pad_bytes
        if len(behind) < needed_bytes:
            raise MalformedPacket(shape.name, f"found {len(behind)} bytes behind BTH, wanted at least {needed_bytes}")
        headers = []
        for kind in shape.headers:
            header, behind = kind.decode(behind)
            headers.append(header)
        end = len(behind) - bth.pad_bytes
        if end and not shape.has_payload:
            raise MalformedPacket(shape.name, f"found a payload of {end} bytes, wanted none")
        return cls(bth, tuple(headers), behind[:end], bytes(behind[end:])), behind[len(behind) :]


def transport_packet(bth: Bth, headers: tuple[ExtendedHeader, ...] = (), payload: bytes = b"") -> TransportPacket:
    r"""Pad a payload to four bytes, and set the pad count in BTH.

    Examples
    --------
    >>> from weftwork.wire.opcodes import Opcode
    >>> made = transport_packet(Bth(Opcode.SEND_ONLY, destination_qp=0x11, psn=0), payload=b"hello")
    >>> made.bth.pad_bytes, made.encode()[-8:]
    (3, b'hello\x00\x00\x00')
    """
    pad_bytes = -len(payload) % 4
    return TransportPacket(bth._replace(pad_bytes=pad_bytes), headers, payload, bytes(pad_bytes))
