"""One end of a TCP connection: blocking sockets without Nagle's algorithm.

Source: tcp(7), TCP_NODELAY.
"""

from __future__ import annotations

import socket
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import PeerError
from weftwork.rdma.tcp_comparison.spans import TimedMessages
from weftwork.rdma.tcp_comparison.tasks import (
    KEY,
    LARGEST_BYTES,
    PATIENCE_S,
    TABLE_BYTES,
    check_value,
    fill_table,
    key_at,
)

if TYPE_CHECKING:
    from weftwork.rdma.tcp_comparison.tasks import Task

__all__ = ["TcpEnd"]


class TcpEnd:
    """A connected socket with its buffers.

    Parameters
    ----------
    line : connected

    Attributes
    ----------
    calls : system calls on the socket, by name
    """

    def __init__(self, line: socket.socket) -> None:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _limit(line)
        self._line: Final = line
        self._buffer: Final = memoryview(bytearray(LARGEST_BYTES))
        self._table: Final = memoryview(bytearray(TABLE_BYTES))
        self.calls: Final[Counter[str]] = Counter()

    def close(self) -> None:
        """Close the connection."""
        self._line.close()

    def _send(self, rest: memoryview) -> None:
        while rest:
            self.calls["send"] += 1
            rest = rest[self._line.send(rest) :]

    def _take(self, size_bytes: int) -> None:
        at = 0
        while at < size_bytes:
            self.calls["recv"] += 1
            got = self._line.recv_into(self._buffer[at:size_bytes])
            if not got:
                raise PeerError("the TCP connection of the measurement ended early")
            at += got

    def client(self, task: Task) -> TimedMessages | None:
        """Do the client's part of a load."""
        if task.name == "stream":
            message = self._buffer[: task.size_bytes]
            for _ in range(task.count):
                self._send(message)
            self._take(1)
            return None
        times = TimedMessages()
        request = memoryview(bytearray(KEY.size)) if task.name == "get" else self._buffer[: task.size_bytes]
        for number in range(task.count):
            begin_ns = time.perf_counter_ns()
            if task.name == "get":
                KEY.pack_into(request, 0, key_at(number))
            self._send(request)
            self._take(task.size_bytes)
            if task.name == "get":
                check_value(self._buffer, number)
            times.each_ns.append(time.perf_counter_ns() - begin_ns)
        return times

    def prepare(self, task: Task) -> None:
        """Make the table of a key-value read ready."""
        if task.name == "get":
            fill_table(self._table, task.size_bytes)

    def server(self, task: Task) -> int:
        """Do the server's part of a load; returns the number of requests."""
        if task.name == "stream":
            left = task.count * task.size_bytes
            while left:
                self.calls["recv"] += 1
                got = self._line.recv_into(self._buffer[:left] if left < LARGEST_BYTES else self._buffer)
                if not got:
                    raise PeerError("the TCP connection of the measurement ended early")
                left -= got
            self._send(self._buffer[:1])
            return task.count
        size_bytes = task.size_bytes
        for _ in range(task.count):
            if task.name == "get":
                self._take(KEY.size)
                (key,) = KEY.unpack_from(self._buffer)
                self._send(self._table[key * size_bytes : (key + 1) * size_bytes])
            else:
                self._take(size_bytes)
                self._send(self._buffer[:size_bytes])
        return task.count


def _limit(line: socket.socket) -> None:
    """Let a blocking call fail after a while, without Python's own timeout.

    With that one, Python would call poll before each call.
    """
    seconds = int(PATIENCE_S).to_bytes(8, "little") + bytes(8)  # struct timeval of 64-bit systems
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, seconds)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
