"""A private NAK for selective repeat: awaited and kept packets.

The receiver waits for one packet, and keeps packets beyond. It is an ACK packet whose AETH has the reserved kind
(syndrome 0x40), so that every field has its usual place and size. BTH brings the PSN that the receiver waits for; it
has executed all before it, as under any NAK. The 24 bits of the MSN name a run of packets that have come ahead of their
turn and are kept: the upper 12 bits say how far ahead the run starts, the lower 12 how many packets it has.
Source: own; the reserved kind is that of IBTA vol. 1, 9.3.5.
Leaves out: hardware, which drops a reserved syndrome. Both ends have to agree on the form before they connect.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

from weftwork.wire.extended import Aeth, AethKind
from weftwork.wire.fields import check_fits

__all__ = ["MOST_AHEAD", "SelectiveNak"]

_BITS: Final = 12
MOST_AHEAD: Final = (1 << _BITS) - 1  # half of the 24 bits of an MSN (IBTA vol. 1, 9.3.5)


class SelectiveNak(NamedTuple):
    """Packets that the receiver keeps although they came early.

    Parameters
    ----------
    ahead : PSN of the first of them, less that of BTH; 1 to 4095
    packets : how many they are, 1 to 4095
    """

    ahead: int
    packets: int

    def is_within(self, other: SelectiveNak) -> bool:
        """Whether another run, ahead of the same PSN, contains this run."""
        return other.ahead <= self.ahead and self.ahead + self.packets <= other.ahead + other.packets

    def aeth(self) -> Aeth:
        """The NAK as a header; UsageError for wrong fields."""
        check_fits("ahead", self.ahead, _BITS)
        check_fits("packets", self.packets, _BITS)
        return Aeth(AethKind.RESERVED, 0, self.ahead << _BITS | self.packets)

    @classmethod
    def of_aeth(cls, header: Aeth) -> Self | None:
        """Read a header; None for other kinds.

        None also if it names no packet that can be ahead.

        Examples
        --------
        >>> SelectiveNak.of_aeth(SelectiveNak(ahead=1, packets=5).aeth())
        SelectiveNak(ahead=1, packets=5)
        """
        ahead, packets = header.msn >> _BITS, header.msn & MOST_AHEAD
        if header.syndrome != AethKind.RESERVED << 5 or ahead == 0 or packets == 0:
            return None
        return cls(ahead, packets)
