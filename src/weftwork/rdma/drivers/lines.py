"""Lines on which the processes of one user hand packets to each other on one machine.

A line is a connected socket of the Unix domain that keeps packets apart. Who opens a line learns from the system whose
door it is, and who takes it learns who has opened it, so nobody else can put a packet into a line, take a packet out of
it, or take its place. A line goes one way. What it has no room for waits here, in order.
Source: unix(7) (SOCK_SEQPACKET, SO_PEERCRED, abstract names), epoll(7).
Leaves out: the names of doors, see `slots`; what the packets are.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Final

from weftwork.rdma.drivers.udp import enlarge

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

__all__ = ["ProcessLines", "connected", "line_to", "open_door", "user_of"]

_BACKLOG: Final = 4096  # as many as the system allows (net.core.somaxconn): lines that wait to be taken
_CREDENTIALS: Final = Struct("=iII")  # struct ucred: pid, uid, gid
_ENDED: Final = frozenset({errno.EPIPE, errno.ECONNRESET, errno.ECONNREFUSED, errno.ENOTCONN})
_NO_DESCRIPTOR: Final = frozenset({errno.EMFILE, errno.ENFILE})
_MOST_TAKEN: Final = 32  # chosen: lines taken at a time, since anybody may ask for many
_MOST_KEPT: Final = 256  # chosen: lines to others, a quarter of what a process may open by default (RLIMIT_NOFILE)
_MOST_WAITING_BYTES: Final = 32 << 20  # chosen: as much as a buffer of the system
_REST_S: Final = 1.0  # chosen: a name that led nowhere is not tried for each packet


class _Way:
    """A line to another process, and what waits for room in it."""

    def __init__(self, name: str, line: socket.socket) -> None:
        self.name: Final = name
        self.line: Final = line
        self.waiting: Final[deque[bytes]] = deque()
        self.waiting_bytes = 0


class ProcessLines:
    """Lines from this process to others, and from others to this one.

    Parameters
    ----------
    events : whose owner gives every event that is not its own to `note`
    counters : of the port; ``not_handed_on`` (what waited for a process that has ended), ``no_room``, ``stranger`` and
        ``no_descriptor`` are counted

    Attributes
    ----------
    has_arrivals : `receive_into` may find a packet
    """

    def __init__(self, events: select.epoll, counters: Counter[str]) -> None:
        self._events: Final = events
        self._counters: Final = counters
        self._doors: Final[dict[int, socket.socket]] = {}
        self._incoming: Final[dict[int, socket.socket]] = {}
        self._readable: Final[deque[socket.socket]] = deque()
        self._ways: Final[dict[str, _Way]] = {}
        self._by_descriptor: Final[dict[int, _Way]] = {}
        self._resting: Final[dict[str, float]] = {}
        self._spare: int | None = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def has_arrivals(self) -> bool:
        """Whether `receive_into` may find a packet."""
        return bool(self._readable)

    def add_door(self, door: socket.socket) -> None:
        """Take the lines that come to a door of `open_door`."""
        self._doors[door.fileno()] = door
        self._events.register(door, select.EPOLLIN)

    # To others

    def put(
        self, name: str, parts: Sequence[bytes | memoryview], *, tries_again: bool = True, stays: bool = True
    ) -> bool:
        """Hand a packet to a process.

        Parameters
        ----------
        name : of its door
        parts : of the packet, which are copied if it has to wait
        tries_again : the name is tried even if it led nowhere a moment ago
        stays : the line is kept for more packets

        Returns
        -------
        whether a process of this user has the name; the packet may be lost nevertheless, as on a wire, where too much
        waits for the process
        """
        way = self._ways.get(name)
        if way is not None:
            if self._send(way, parts):
                return True
            self._forget(way)  # another process may have the name by now
        way = self._open(name, tries_again=tries_again)
        if way is None or not self._send(way, parts):
            return False
        if not stays and not way.waiting:
            self._forget(way)
        return True

    def _open(self, name: str, *, tries_again: bool) -> _Way | None:
        """Open a line to a door; None where no process of this user has the name."""
        until_s = self._resting.get(name)
        if until_s is not None and not tries_again and time.monotonic() < until_s:
            return None
        line = line_to(name)
        if line is None:
            if len(self._resting) >= _MOST_KEPT:
                self._resting.clear()
            self._resting[name] = time.monotonic() + _REST_S
            return None
        self._resting.pop(name, None)
        enlarge(line, is_receive=False)
        if len(self._ways) >= _MOST_KEPT:
            self._forget(next(iter(self._ways.values())))
        way = self._ways[name] = self._by_descriptor[line.fileno()] = _Way(name, line)
        self._events.register(line, 0)  # tells the end all the same
        return way

    def _send(self, way: _Way, parts: Sequence[bytes | memoryview]) -> bool:
        """Send on a line, or let the packet wait; False where the process has ended."""
        if way.waiting:
            self._let_wait(way, parts)
            return True
        try:
            way.line.sendmsg(parts, (), socket.MSG_NOSIGNAL)
        except BlockingIOError:
            self._events.modify(way.line, select.EPOLLOUT)
            self._let_wait(way, parts)
        except OSError as error:
            if error.errno in _ENDED:
                return False
            self._counters["no_room"] += 1  # of the system (ENOBUFS, ENOMEM): lost, as on a wire
        return True

    def _let_wait(self, way: _Way, parts: Sequence[bytes | memoryview]) -> None:
        if way.waiting_bytes >= _MOST_WAITING_BYTES:
            self._counters["no_room"] += 1
            return
        packet = b"".join(parts)
        way.waiting.append(packet)
        way.waiting_bytes += len(packet)

    def _flush(self, way: _Way) -> None:
        """Send what waits, as far as the line has room."""
        try:
            while way.waiting:
                way.line.send(way.waiting[0], socket.MSG_NOSIGNAL)
                way.waiting_bytes -= len(way.waiting.popleft())
        except BlockingIOError:
            return
        except OSError:  # what was for the process that has ended is not for a process that follows it
            self._forget(way)
            return
        self._events.modify(way.line, 0)

    def _forget(self, way: _Way) -> None:
        """Close a line; a process of the same name may begin later."""
        if way.waiting:
            self._counters["not_handed_on"] += len(way.waiting)
        self._ways.pop(way.name, None)
        del self._by_descriptor[way.line.fileno()]
        self._events.unregister(way.line)
        way.line.close()

    # From others

    def note(self, descriptor: int, events: int) -> None:
        """Take an event of a door or a line."""
        line = self._incoming.get(descriptor)
        if line is not None:
            if line not in self._readable:
                self._readable.append(line)
            return
        if descriptor in self._doors:
            self._take_lines(self._doors[descriptor])
            return
        way = self._by_descriptor.get(descriptor)
        if way is None:
            return
        if events & (select.EPOLLHUP | select.EPOLLERR):
            self._resting[way.name] = time.monotonic() + _REST_S
            self._forget(way)
        else:
            self._flush(way)

    def _take_lines(self, door: socket.socket) -> None:
        for _ in range(_MOST_TAKEN):
            try:
                line, _ = door.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno not in _NO_DESCRIPTOR:
                    raise
                self._turn_away(door)
                return
            if user_of(line) != os.getuid():
                self._counters["stranger"] += 1
                line.close()
                continue
            line.settimeout(0)
            self._incoming[line.fileno()] = line
            self._events.register(line, select.EPOLLIN)
            self._readable.append(line)

    def _turn_away(self, door: socket.socket) -> None:
        """Close the line that there is no descriptor for: its sender takes another way, and the door is quiet."""
        self._counters["no_descriptor"] += 1
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        try:
            door.accept()[0].close()
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return  # another thread of this process was faster, and has the descriptor

    def receive_into(self, buffer: bytearray) -> int:
        """Take a packet that has arrived on a line; its size in bytes, or 0."""
        readable = self._readable
        while readable:
            line = readable[0]
            try:
                size_bytes = line.recv_into(buffer)
            except BlockingIOError:
                readable.popleft()
                continue
            except OSError:  # ECONNRESET: the end of the sender
                size_bytes = 0
            if size_bytes:
                if len(readable) > 1:
                    readable.rotate(-1)
                return size_bytes
            readable.popleft()
            del self._incoming[line.fileno()]
            self._events.unregister(line)
            line.close()
        return 0

    def close(self) -> None:
        """Close all lines; what waits is lost.

        The events are left alone: a process that was made by a fork shares them with its parent.
        """
        for line in (*self._incoming.values(), *(way.line for way in self._ways.values())):
            line.close()
        self._readable.clear()
        self._incoming.clear()
        self._ways.clear()
        self._by_descriptor.clear()
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None


def open_door(name: str) -> socket.socket | None:
    """Open a door, to which lines come; None where somebody has its name."""
    door = _new()
    try:
        door.bind(name)
        door.listen(_BACKLOG)
    except OSError as error:
        door.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return door


def line_to(name: str) -> socket.socket | None:
    """Open a line to a door; None where no process of this user has the name, or its door is full."""
    line = connected(name)
    if line is None or user_of(line) == os.getuid():
        return line
    line.close()
    return None


def connected(name: str) -> socket.socket | None:
    """Connect to a door, whosever it is; None where nobody has the name, or its door is full."""
    line = None
    try:
        line = _new()
        line.connect(name)
    except OSError:  # nobody has the name, the door is full, or there is no descriptor
        if line is not None:
            line.close()
        return None
    return line


def user_of(line: socket.socket) -> int:
    """User of the process at the other end of a line, as it was when the line, or its door, was opened."""
    _, user, _ = _CREDENTIALS.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(user)


def _new() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
