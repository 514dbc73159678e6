"""Packets that have arrived at a port in memory.

Source: eventfd(2).
Leaves out: what the packets are.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Final, Generic, TypeVar

from weftwork.rdma.bells import close_all, make_bell, ring, silence

__all__ = ["MOST_WAITING", "Mailbox"]

MOST_WAITING: Final = 4096  # chosen: packets that a port holds before it drops, as a socket does

_Packet = TypeVar("_Packet")


class Mailbox(Generic[_Packet]):
    """Packets in their order, and a descriptor that is readable while some wait.

    One thread may put packets in while another takes them out.
    """

    def __init__(self) -> None:
        self._waiting: Final[deque[_Packet]] = deque()
        self._guard: Final = threading.Lock()  # the descriptor and the packets change together
        self._bell: Final = make_bell()
        self._give_back: Final = weakref.finalize(self, close_all, self._bell)

    def fileno(self) -> int:
        """Descriptor that is readable while packets wait."""
        return self._bell

    def put(self, packet: _Packet) -> bool:
        """Append a packet; False where too many wait or the mailbox is closed."""
        with self._guard:
            if len(self._waiting) >= MOST_WAITING or not self._give_back.alive:
                return False
            if not self._waiting:
                ring(self._bell)
            self._waiting.append(packet)
            return True

    def take(self) -> _Packet | None:
        """Oldest packet, or None."""
        if not self._waiting:
            return None
        with self._guard:
            packet = self._waiting.popleft()
            if not self._waiting:
                silence(self._bell)
            return packet

    def close(self) -> None:
        """Close the descriptor."""
        with self._guard:
            self._waiting.clear()
            self._give_back()
