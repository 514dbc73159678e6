"""The processor of a host: time per data packet.

It takes time where the packet is sent and where it is received.
Source: `docs/models/packet-engine.md`, section The host's processor.
Leaves out: control packets and packets that were cut, which cost nothing; cores that share the work of a port.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["HostProcessor"]

PRICED_BYTES: Final = 1_000  # payload for which `byte_ps` is the price


@dataclass(frozen=True, kw_only=True, slots=True)
class HostProcessor:
    """Processor of one NIC port, for both directions at once.

    Parameters
    ----------
    packet_ps : for each data packet
    byte_ps : for 1,000 bytes of its payload
    """

    packet_ps: int = 0
    byte_ps: int = 0

    @property
    def takes_part(self) -> bool:
        """Whether packets pass the processor at all.

        An empty packet may still cost nothing.
        """
        return self.packet_ps > 0 or self.byte_ps > 0

    def cost_ps(self, payload_bytes: int) -> int:
        """Time for one data packet."""
        return self.packet_ps + payload_bytes * self.byte_ps // PRICED_BYTES
