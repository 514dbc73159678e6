"""Words of a script for packets, such as ``write-first``, ``request`` and ``rnr-nak``.

Source: IBTA vol. 1, 9.2.1 (opcodes) and 9.3.5 (syndromes).
Leaves out: packets of services other than the reliable connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.wire.extended import Aeth, AethKind, Nak
from weftwork.wire.opcodes import SHAPES, Opcode, TransportService

if TYPE_CHECKING:
    from weftwork.wire.transport import TransportPacket

__all__ = ["ANSWERS", "NAKS", "PACKETS", "REQUESTS", "words_of"]

_OF_RC: Final = {
    int(opcode): opcode.name.lower().replace("_", "-")
    for opcode in Opcode
    if SHAPES[opcode].service is TransportService.RC and opcode is not Opcode.ACKNOWLEDGE
}
NAKS: Final = {
    "nak-sequence": Nak.PSN_SEQUENCE_ERROR,
    "nak-invalid": Nak.INVALID_REQUEST,
    "nak-access": Nak.REMOTE_ACCESS_ERROR,
    "nak-operational": Nak.REMOTE_OPERATIONAL_ERROR,
}
_NAK_WORDS: Final = {int(code): word for word, code in NAKS.items()}
_FAMILIES: Final = ("send", "write", "read-response")
ANSWERS: Final = ("ack", *NAKS, "rnr-nak", "cnp")
REQUESTS: Final = {word: opcode for opcode, word in _OF_RC.items() if not SHAPES[opcode].is_response}
PACKETS: Final = ("any", "request", "response", *_FAMILIES, *_OF_RC.values(), "nak", *ANSWERS)


def words_of(packet: TransportPacket) -> frozenset[str]:
    """All words that match a packet.

    Examples
    --------
    >>> from weftwork.wire.ib import Bth
    >>> from weftwork.wire.transport import TransportPacket
    >>> sorted(words_of(TransportPacket(Bth(Opcode.WRITE_MIDDLE, 5, 0))))
    ['any', 'request', 'write', 'write-middle']
    """
    shape = packet.shape
    found = {"any"}
    if packet.bth.opcode == Opcode.CNP:
        return frozenset({*found, "cnp"})
    found.add("response" if shape.is_response else "request")
    aeth = packet.find(Aeth)
    if packet.bth.opcode == Opcode.ACKNOWLEDGE and aeth is not None:
        if aeth.kind is AethKind.NAK:
            found |= {"nak", _NAK_WORDS.get(aeth.value, "nak")}
        else:
            found.add("rnr-nak" if aeth.kind is AethKind.RNR_NAK else "ack")
        return frozenset(found)
    name = _OF_RC.get(packet.bth.opcode)
    if name is not None:
        found.add(name)
        found |= {family for family in _FAMILIES if name.startswith(f"{family}-")}
    return frozenset(found)
