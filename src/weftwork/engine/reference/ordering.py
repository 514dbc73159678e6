"""Messages that are there whole before all that was sent before them: a receiver that does not keep their order.

Source: `docs/models/packet-engine.md`, section Order, orderings `message` and `none`.
Leaves out: which RECEIVE such a message completes, see `message`; messages in the order of their connection, which a
receiver finds by the last packet of each.
"""

from __future__ import annotations

from weftwork.engine.reference.packet import Packet

__all__ = ["Assembly"]


class Assembly:
    """Counts the packets of messages of which some have arrived, and not all."""

    def __init__(self) -> None:
        self._missing_packets: dict[int, int] = {}  # by message

    def completes(self, packet: Packet) -> bool:
        """Take a packet that has not arrived before; returns whether its message is whole now."""
        missing_packets = self._missing_packets.pop(packet.message, packet.message_packets) - 1
        if missing_packets > 0:
            self._missing_packets[packet.message] = missing_packets
        return missing_packets == 0
