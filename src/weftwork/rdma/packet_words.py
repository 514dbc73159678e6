"""The header values of a packet as one line of text.

Source: the records of ``weftwork.wire``.
Leaves out: BTH fields that stand in columns of their own (opcode, queue pair, PSN).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.wire.cm import CmReject, CmReply, CmRequest
from weftwork.wire.extended import (
    Aeth,
    AethKind,
    AtomicAckEth,
    AtomicEth,
    Deth,
    Feth,
    Ieth,
    ImmediateData,
    Rdeth,
    Reth,
    XrcEth,
)

if TYPE_CHECKING:
    from weftwork.wire.cm import CmMessage
    from weftwork.wire.extended import ExtendedHeader
    from weftwork.wire.transport import TransportPacket

__all__ = ["cm_words", "header_words"]

_SERVICES: Final = ("RC", "UC", "RD", "XRC or other")  # of a REQ, by its transport service


def header_words(packet: TransportPacket) -> str:
    """Describe the headers of a packet."""
    words = [_words(header) for header in packet.headers]
    if packet.bth.ack_request:
        words.append("asks for an ACK")
    return ", ".join(words)


def _words(header: ExtendedHeader) -> str:  # noqa: PLR0911 - a kind of header each
    match header:
        case Reth():
            return f"{header.dma_bytes} B at {header.virtual_address:#x} key {header.remote_key:#x}"
        case Aeth():
            return _aeth_words(header)
        case Deth():
            return f"from QP {header.source_qp:#x}"
        case AtomicEth():
            return f"8 B at {header.virtual_address:#x} key {header.remote_key:#x}"
        case AtomicAckEth():
            return f"value was {header.original_data:#x}"
        case ImmediateData():
            return f"immediate {header.immediate:#x}"
        case Ieth():
            return f"invalidates key {header.remote_key:#x}"
        case XrcEth():
            return f"to SRQ {header.srq:#x}"
        case Rdeth():
            return f"EE context {header.ee_context:#x}"
        case Feth():
            return f"placement {header.placement}"
        case _:
            return type(header).__name__


def _aeth_words(header: Aeth) -> str:
    if header.kind is not AethKind.ACK:
        return f"MSN {header.msn}"
    credit_count = header.credits
    return f"MSN {header.msn}" + ("" if credit_count is None else f", {plural(credit_count, 'credit')}")


def cm_words(message: CmMessage) -> str:
    """Describe a message of communication management."""
    match message:
        case CmRequest():
            service = _SERVICES[message.transport_service]
            return f"{service} from QP {message.local_qpn:#x}, first PSN back {message.starting_psn:#x}"
        case CmReply():
            return f"from QP {message.local_qpn:#x}, first PSN back {message.starting_psn:#x}"
        case CmReject():
            return f"reason {message.reason}"
        case _:
            return ""
