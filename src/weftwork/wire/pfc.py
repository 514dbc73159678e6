"""Priority flow control: MAC control frames that pause single priorities.

The duration of a pause is here too.
Source: IEEE 802.3-2022, annex 31D and 31B.2 (pause quantum); IEEE 802.1Q-2022, clause 36.
Leaves out: the older PAUSE frame of the whole link (opcode 0x0001), which ``decode`` refuses.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self

from weftwork.base.clock import serialisation_ps
from weftwork.base.errors import UsageError
from weftwork.base.grammar import plural
from weftwork.wire.ethernet import ETHERTYPE_MAC_CONTROL, EthernetFrame, EthernetHeader
from weftwork.wire.fields import MalformedPacket, check_fits, split

__all__ = [
    "MAXIMUM_PAUSE_QUANTA",
    "PAUSE_QUANTUM_BYTES",
    "PFC_DESTINATION",
    "PFC_FRAME_BYTES",
    "PFC_OPCODE",
    "PFC_PARAMETERS_BYTES",
    "PFC_PRIORITIES",
    "PriorityPause",
    "pause_time_ps",
]

PFC_DESTINATION = bytes.fromhex("0180c2000001")  # IEEE 802.3, 31B.1: never forwarded by a bridge
PFC_OPCODE = 0x0101  # IEEE 802.3, table 31A-1
PFC_PRIORITIES = 8  # IEEE 802.1Q, 36.1.1
PFC_FRAME_BYTES = 64  # IEEE 802.3, annex 31D with 4.4.2: always a minimum frame, FCS included
PAUSE_QUANTUM_BYTES = 64  # IEEE 802.3, 31B.2: 512 bit times
PFC_PARAMETERS_BYTES = 20  # IEEE 802.3, annex 31D: opcode, class enable vector, a time for each priority
MAXIMUM_PAUSE_QUANTA = 0xFFFF  # IEEE 802.3, annex 31D: 16 bits per priority

_PARAMETERS = struct.Struct(">HH8H")


@dataclass(frozen=True, kw_only=True, slots=True)
class PriorityPause:
    """Content of a PFC frame: pause quanta of each enabled priority.

    A priority may not send for so long from now. 0 quanta resume (Xon).

    Parameters
    ----------
    class_enable_vector : 16 bits; bit p says that priority p is meant, the upper eight are reserved and sent as 0
    quanta : shape (8,), pause of each priority in quanta of 512 bit times; counts only where enabled
    """

    class_enable_vector: int
    quanta: tuple[int, int, int, int, int, int, int, int]

    def is_enabled(self, priority: int) -> bool:
        """Whether the frame affects ``priority``, 0 to 7."""
        return bool(self.class_enable_vector >> priority & 1)

    def encode(self) -> bytes:
        """The 20 bytes from opcode to last quantum; UsageError for wrong fields."""
        check_fits("class_enable_vector", self.class_enable_vector, 16)
        if len(self.quanta) != PFC_PRIORITIES:
            raise UsageError(f"quanta: found {plural(len(self.quanta), 'value')}, wanted {PFC_PRIORITIES}")
        for priority, quanta in enumerate(self.quanta):
            check_fits(f"quanta[{priority}]", quanta, 16)
        return _PARAMETERS.pack(PFC_OPCODE, self.class_enable_vector, *self.quanta)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read the bytes after the Ethernet header.

        Returns
        -------
        the record and the rest, which in a frame is padding

        Raises
        ------
        MalformedPacket : too few bytes, or another MAC control opcode
        """
        head, rest = split(data, _PARAMETERS.size, "PFC")
        opcode, vector, *quanta = _PARAMETERS.unpack(head)
        if opcode != PFC_OPCODE:
            raise MalformedPacket("PFC", f"found MAC control opcode {opcode:#06x}, wanted {PFC_OPCODE:#06x}")
        q0, q1, q2, q3, q4, q5, q6, q7 = quanta
        return cls(class_enable_vector=vector, quanta=(q0, q1, q2, q3, q4, q5, q6, q7)), rest

    def frame(self, source: bytes) -> EthernetFrame:
        """The Ethernet frame of the pause, from a port's address.

        The port with the MAC address ``source`` sends it to the other end of its link.
        """
        header = EthernetHeader(destination=PFC_DESTINATION, source=source, ethertype=ETHERTYPE_MAC_CONTROL)
        return EthernetFrame(header=header, payload=self.encode())


def pause_time_ps(quanta: int, rate_bps: int) -> int:
    """Duration of a pause on a link, rounded up to a picosecond.

    Parameters
    ----------
    quanta : 0 to 65,535
    rate_bps : bits per second of the link that the frame came from

    Returns
    -------
    picoseconds

    Examples
    --------
    >>> pause_time_ps(1, 100_000_000_000)
    5120
    >>> pause_time_ps(65535, 400_000_000_000)
    83884800
    """
    check_fits("quanta", quanta, 16)
    return serialisation_ps(quanta * PAUSE_QUANTUM_BYTES, rate_bps)
