"""Whether the processes of this machine that a device talks to still live.

Each process has a socket that others connect to and that says nothing. The system closes it when the process ends, and
those who are connected hear that at once.
Source: unix(7) (abstract names, SO_PEERCRED), epoll(7).
Leaves out: other machines.
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, Final

from weftwork.rdma.drivers.lines import connected, open_door, user_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

__all__ = ["ProcessLives"]


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
        self._own: Final = open_door(own_name)

    def fileno(self) -> int:
        """Descriptor that is readable when a process has ended."""
        return self._events.fileno()

    def watch(self, name: str, users: Callable[[], frozenset[int]] = frozenset) -> None:
        """Watch a process; one that is not there, or does not say so, is not watched.

        Parameters
        ----------
        name : of the socket of the process, which anybody may have taken
        users : who receives at the address of the process; another user than that of this process is believed only
            where nobody else receives there, since that user could end the conversation anyway
        """
        if name in self._watched:
            known, count = self._watched[name]
            self._watched[name] = known, count + 1
            return
        life = connected(name)
        if life is None:
            return
        user = user_of(life)
        if user != os.getuid() and users() != {user}:
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
        for life, _ in self._watched.values():  # not unregistered: a parent shares the events with its fork
            life.close()
        self._watched.clear()
        self._names.clear()
        if self._own is not None:
            self._own.close()
        self._events.close()
