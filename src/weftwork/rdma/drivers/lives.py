"""Whether the processes of this machine that a device talks to still live.

Each process has a socket that others connect to and that says nothing. The system closes it when the process ends, and
those who are connected hear that at once.
Source: unix(7) (abstract names, SO_PEERCRED), epoll(7).
Leaves out: processes of other users, whose names anybody may have; queue pairs joined by hand; other machines.
"""

from __future__ import annotations

import os
import select
import socket
from struct import Struct
from typing import Final

__all__ = ["ProcessLives"]

_BACKLOG: Final = 4096  # as many as the system allows (net.core.somaxconn): processes that watch this one
_CREDENTIALS: Final = Struct("=iII")  # struct ucred: pid, uid, gid


class ProcessLives:
    """The life of this process for others, and those of others for this one.

    Parameters
    ----------
    own_name : of the socket that others connect to; where somebody else has the name, others do not hear of the end
    """

    def __init__(self, own_name: str) -> None:
        self._events: Final = select.epoll()
        self._watched: Final[dict[str, tuple[socket.socket, int]]] = {}  # with the number of those who watch
        self._names: Final[dict[int, str]] = {}
        self._own: Final = _open()
        try:
            self._own.bind(own_name)
            self._own.listen(_BACKLOG)
        except OSError:
            self._own.close()

    def fileno(self) -> int:
        """Descriptor that is readable when a process has ended."""
        return self._events.fileno()

    def watch(self, name: str) -> None:
        """Watch a process of the same user; one that is not there, or does not say so, is not watched."""
        if name in self._watched:
            life, count = self._watched[name]
            self._watched[name] = life, count + 1
            return
        life = _open()
        try:
            life.connect(name)
            _, uid, _ = _CREDENTIALS.unpack(life.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        except OSError:
            uid = -1
        if uid != os.getuid():
            life.close()
            return
        self._events.register(life, select.EPOLLRDHUP)
        self._watched[name], self._names[life.fileno()] = (life, 1), name

    def leave(self, name: str) -> None:
        """Watch it no more, where nobody else does."""
        if name not in self._watched:
            return
        life, count = self._watched[name]
        if count > 1:
            self._watched[name] = life, count - 1
        else:
            self._forget(name)

    def ended(self) -> list[str]:
        """Names of processes that have ended since the last call."""
        if not self._watched:
            return []
        names = [self._names[descriptor] for descriptor, _ in self._events.poll(0)]
        for name in names:
            self._forget(name)
        return names

    def _forget(self, name: str) -> None:
        life, _ = self._watched.pop(name)
        del self._names[life.fileno()]
        self._events.unregister(life)
        life.close()

    def close(self) -> None:
        """Watch nobody, and let others hear of the end."""
        for name in tuple(self._watched):
            self._forget(name)
        self._own.close()
        self._events.close()


def _open() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
