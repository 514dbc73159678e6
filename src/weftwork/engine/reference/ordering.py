"""Receivers that deliver complete messages out of order.

A message may be complete before all that was sent before it.
Source: `docs/models/packet-engine.md`, section Order, orderings `message` and `none`.
Leaves out: which RECEIVE such a message completes, see `message`; messages in the order of their connection, which a
receiver finds by the last packet of each.
"""

from __future__ import annotations

from weftwork.engine.reference.packet import Packet

__all__ = ["Assembly"]


class Assembly:
    """Counts the arrived packets of incomplete messages."""

    def __init__(self) -> None:
        self._missing_packets: dict[int, int] = {}  # by message

    def completes(self, packet: Packet) -> bool:
        """Take a newly arrived packet; returns whether its message is complete."""
        missing_packets = self._missing_packets.pop(packet.message, packet.message_packets) - 1
        if missing_packets > 0:
            self._missing_packets[packet.message] = missing_packets
        return missing_packets == 0
