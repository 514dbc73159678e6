"""Opcodes of the base transport header, with their headers and payload.

Source: IBTA vol. 1, 9.2.1 and annexes A17 (CNP) and A14 (XRC), as encoded in Linux include/rdma/ib_pack.h and
drivers/infiniband/sw/rxe/rxe_opcode.c.
Leaves out: the opcodes of vendors (0xC0 to 0xFF), and RESYNC and FLUSH of reliable datagrams.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from weftwork.wire.extended import (
    HEADER_BYTES,
    Aeth,
    AtomicAckEth,
    AtomicEth,
    Deth,
    ExtendedHeader,
    Feth,
    Ieth,
    ImmediateData,
    Rdeth,
    Reth,
    XrcEth,
)

__all__ = ["SHAPES", "VENDOR_OPCODES", "Opcode", "OpcodeShape", "Position", "TransportService"]

VENDOR_OPCODES: Final = range(0xC0, 0x100)  # IBTA vol. 1, 9.2.1: manufacturer specific


class Opcode(IntEnum):
    """Opcodes of reliable connections, datagrams and the CNP.

    Source: IBTA vol. 1, 9.2.1 and annex A17. Those of an unreliable connection are 0x20 above the ones of a reliable
    connection.
    """

    SEND_FIRST = 0x00
    SEND_MIDDLE = 0x01
    SEND_LAST = 0x02
    SEND_LAST_IMMEDIATE = 0x03
    SEND_ONLY = 0x04
    SEND_ONLY_IMMEDIATE = 0x05
    WRITE_FIRST = 0x06
    WRITE_MIDDLE = 0x07
    WRITE_LAST = 0x08
    WRITE_LAST_IMMEDIATE = 0x09
    WRITE_ONLY = 0x0A
    WRITE_ONLY_IMMEDIATE = 0x0B
    READ_REQUEST = 0x0C
    READ_RESPONSE_FIRST = 0x0D
    READ_RESPONSE_MIDDLE = 0x0E
    READ_RESPONSE_LAST = 0x0F
    READ_RESPONSE_ONLY = 0x10
    ACKNOWLEDGE = 0x11
    ATOMIC_ACKNOWLEDGE = 0x12
    COMPARE_SWAP = 0x13
    FETCH_ADD = 0x14
    SEND_LAST_INVALIDATE = 0x16
    SEND_ONLY_INVALIDATE = 0x17
    FLUSH = 0x1C
    ATOMIC_WRITE = 0x1D
    UD_SEND_ONLY = 0x64
    UD_SEND_ONLY_IMMEDIATE = 0x65
    CNP = 0x81


class TransportService(IntEnum):
    """The upper three bits of an opcode (IBTA vol. 1, 9.2.1)."""

    RC = 0
    UC = 1
    RD = 2
    UD = 3
    CNP = 4
    XRC = 5


class Position(IntEnum):
    """Place of a packet in its message."""

    FIRST = 0
    MIDDLE = 1
    LAST = 2
    ONLY = 3


class OpcodeShape(NamedTuple):
    """Meaning of an opcode.

    Parameters
    ----------
    name : in the words of the specification, such as ``RC WRITE first``
    service : transport service
    operation : the opcode of a reliable connection that does the same
    position : of the packet in its message
    headers : codecs of the extended headers, in the order of the wire
    headers_bytes : their size
    has_payload : whether bytes of a message or of memory may follow
    is_response : sent by the responder, with a PSN of the requester
    """

    name: str
    service: TransportService
    operation: int
    position: Position
    headers: tuple[type[ExtendedHeader], ...]
    headers_bytes: int
    has_payload: bool
    is_response: bool

    @property
    def ends_message(self) -> bool:
        """Whether the packet ends its message."""
        return self.position is Position.LAST or self.position is Position.ONLY

    @property
    def starts_message(self) -> bool:
        """Whether the packet starts its message."""
        return self.position is Position.FIRST or self.position is Position.ONLY


_F, _M, _L, _O = Position.FIRST, Position.MIDDLE, Position.LAST, Position.ONLY
_Row = tuple[str, Position, tuple[type[ExtendedHeader], ...], bool]
# IBTA vol. 1, 9.2.1: name, position, extended headers, whether a payload may follow.
_RC: Final[dict[Opcode, _Row]] = {
    Opcode.SEND_FIRST: ("SEND first", _F, (), True),
    Opcode.SEND_MIDDLE: ("SEND middle", _M, (), True),
    Opcode.SEND_LAST: ("SEND last", _L, (), True),
    Opcode.SEND_LAST_IMMEDIATE: ("SEND last with immediate", _L, (ImmediateData,), True),
    Opcode.SEND_ONLY: ("SEND only", _O, (), True),
    Opcode.SEND_ONLY_IMMEDIATE: ("SEND only with immediate", _O, (ImmediateData,), True),
    Opcode.WRITE_FIRST: ("WRITE first", _F, (Reth,), True),
    Opcode.WRITE_MIDDLE: ("WRITE middle", _M, (), True),
    Opcode.WRITE_LAST: ("WRITE last", _L, (), True),
    Opcode.WRITE_LAST_IMMEDIATE: ("WRITE last with immediate", _L, (ImmediateData,), True),
    Opcode.WRITE_ONLY: ("WRITE only", _O, (Reth,), True),
    Opcode.WRITE_ONLY_IMMEDIATE: ("WRITE only with immediate", _O, (Reth, ImmediateData), True),
    Opcode.READ_REQUEST: ("READ request", _O, (Reth,), False),
    Opcode.READ_RESPONSE_FIRST: ("READ response first", _F, (Aeth,), True),
    Opcode.READ_RESPONSE_MIDDLE: ("READ response middle", _M, (), True),
    Opcode.READ_RESPONSE_LAST: ("READ response last", _L, (Aeth,), True),
    Opcode.READ_RESPONSE_ONLY: ("READ response only", _O, (Aeth,), True),
    Opcode.ACKNOWLEDGE: ("ACK", _O, (Aeth,), False),
    Opcode.ATOMIC_ACKNOWLEDGE: ("ATOMIC ACK", _O, (Aeth, AtomicAckEth), False),
    Opcode.COMPARE_SWAP: ("COMPARE SWAP", _O, (AtomicEth,), False),
    Opcode.FETCH_ADD: ("FETCH ADD", _O, (AtomicEth,), False),
    Opcode.SEND_LAST_INVALIDATE: ("SEND last with invalidate", _L, (Ieth,), True),
    Opcode.SEND_ONLY_INVALIDATE: ("SEND only with invalidate", _O, (Ieth,), True),
    Opcode.FLUSH: ("FLUSH", _O, (Feth, Reth), False),
    Opcode.ATOMIC_WRITE: ("ATOMIC WRITE", _O, (Reth,), True),
}
_RESPONSES: Final = range(Opcode.READ_RESPONSE_FIRST, Opcode.ATOMIC_ACKNOWLEDGE + 1)
_SERVICE_BITS: Final = 5  # IBTA vol. 1, 9.2.1: the operation is in the lower five bits


def _shapes() -> dict[int, OpcodeShape]:
    """Combine the operations of a service with its headers."""
    own: dict[TransportService, tuple[range, tuple[type[ExtendedHeader], ...], tuple[type[ExtendedHeader], ...]]] = {
        # service: operations, headers in front of those of a request, and of those of a response
        TransportService.RC: (range(0x20), (), ()),
        TransportService.UC: (range(Opcode.WRITE_ONLY_IMMEDIATE + 1), (), ()),
        TransportService.RD: (range(Opcode.FETCH_ADD + 1), (Rdeth, Deth), (Rdeth,)),
        TransportService.UD: (range(Opcode.SEND_ONLY, Opcode.SEND_ONLY_IMMEDIATE + 1), (Deth,), ()),
        TransportService.XRC: (range(Opcode.SEND_ONLY_INVALIDATE + 1), (XrcEth,), ()),
    }
    found: dict[int, OpcodeShape] = {}
    for service, (operations, request_headers, response_headers) in own.items():
        for operation, (name, position, headers, has_payload) in _RC.items():
            if operation not in operations:
                continue
            is_response = operation in _RESPONSES
            all_headers = (response_headers if is_response else request_headers) + headers
            found[service << _SERVICE_BITS | operation] = OpcodeShape(
                name=f"{service.name} {name}",
                service=service,
                operation=operation,
                position=position,
                headers=all_headers,
                headers_bytes=sum(HEADER_BYTES[header] for header in all_headers),
                has_payload=has_payload,
                is_response=is_response,
            )
    found[Opcode.CNP] = OpcodeShape(
        "CNP", TransportService.CNP, Opcode.CNP, _O, (), 0, has_payload=True, is_response=False
    )
    return found


SHAPES: Final = _shapes()
