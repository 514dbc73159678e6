"""Datagrams for other processes of an address, on their way to the doors of these processes.

A door is a socket of the Unix domain that holds few datagrams (``net.unix.max_dgram_qlen``, 10 by default). What does
not fit waits here, in order, until the system says that the door has room.
Source: unix(7); poll of a connected datagram socket, ``unix_dgram_poll`` in Linux net/unix/af_unix.c.
Leaves out: whose door it is, see `slots`.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

__all__ = ["HandOver"]

_ENDED: Final = (ConnectionRefusedError, ConnectionResetError)  # the process of a door has ended
_MOST_WAITING: Final = 4096  # chosen: datagrams for one door, as many as a port in memory holds; then they are lost


class HandOver:
    """The way to the doors of other processes.

    Parameters
    ----------
    events : becomes readable when a door has room for what waits
    counters : of the port; ``handed_on``, ``not_handed_on`` and ``no_room`` are counted
    """

    def __init__(self, events: select.epoll, counters: Counter[str]) -> None:
        self._events: Final = events
        self._counters: Final = counters
        self._ways: Final[dict[str, socket.socket]] = {}
        self._waiting: Final[dict[str, deque[bytes]]] = {}

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> bool:
        """Hand a datagram to a door.

        Parameters
        ----------
        name : of the door
        parts : of the datagram, which are copied if it has to wait

        Returns
        -------
        whether the door is there; the datagram may be lost nevertheless, as on a wire, where too many wait for it
        """
        waiting = self._waiting.get(name)
        if waiting is not None:
            if len(waiting) >= _MOST_WAITING:
                self._counters["no_room"] += 1
            else:
                waiting.append(b"".join(parts))
            return True
        if self._send(name, parts):
            return True
        self._counters["not_handed_on"] += 1
        return False

    def _send(self, name: str, parts: Sequence[bytes | memoryview]) -> bool:
        """Hand a datagram to a door that nothing waits for; False if there is none."""
        was_known = name in self._ways
        try:
            self._way(name).sendmsg(parts)
        except BlockingIOError:
            self._waiting[name] = deque([b"".join(parts)])
            self._events.register(self._ways[name], select.EPOLLOUT)
        except _ENDED:
            self._forget(name)
            return was_known and self._send(name, parts)  # another process may have the name by now
        else:
            self._counters["handed_on"] += 1
        return True

    def flush(self) -> None:
        """Hand over what waited, as far as doors have room."""
        for name in tuple(self._waiting):
            waiting, way = self._waiting[name], self._ways[name]
            try:
                while waiting:
                    way.send(waiting[0])
                    waiting.popleft()
                    self._counters["handed_on"] += 1
            except BlockingIOError:
                continue
            except _ENDED:  # what was for the process that has ended is not for one that follows it
                self._counters["not_handed_on"] += len(waiting)
                self._forget(name)
                continue
            self._events.unregister(way)
            del self._waiting[name]

    def close(self) -> None:
        """Close the ways; what waits is lost."""
        for name in tuple(self._ways):
            self._forget(name)

    def _way(self, name: str) -> socket.socket:
        way = self._ways.get(name)
        if way is None:
            way = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            try:
                way.connect(name)
            except OSError:
                way.close()
                raise
            self._ways[name] = way
        return way

    def _forget(self, name: str) -> None:
        """A process of the same name may begin later."""
        way = self._ways.pop(name, None)
        if self._waiting.pop(name, None) is not None and way is not None:
            self._events.unregister(way)
        if way is not None:
            way.close()
