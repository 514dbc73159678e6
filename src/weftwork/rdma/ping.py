"""RDMA ping: the server READs the client's data and WRITEs it back; both ends check it.

For each ping the client SENDs address, key and length of its data. The server READs the data, and SENDs that it has
done so. The client SENDs the same of an empty buffer. The server WRITEs the data there, and SENDs that it has done so.
The messages and the data are those of rping.
Source: rdma-core, librdmacm/examples/rping.c.
Leaves out: words for people, see ``weftwork rdma ping``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import PeerError
from weftwork.rdma.region import RemoteRange
from weftwork.rdma.verbs import AccessFlags

if TYPE_CHECKING:
    from weftwork.rdma.connection import RdmaConnection
    from weftwork.rdma.region import LocalRange
    from weftwork.rdma.verbs import Wc
    from weftwork.rdma.work import Work

__all__ = [
    "FEWEST_BYTES",
    "MOST_BYTES",
    "PingClient",
    "PingFigures",
    "ping_data",
    "ping_figures",
    "serve_pings",
]

FEWEST_BYTES: Final = 26  # rping.c: RPING_MIN_BUFSIZE, the longest "rdma-ping-%d: " and its end
MOST_BYTES: Final = 65_535  # rping.c: RPING_BUFSIZE - 1
_HANDLE: Final = Struct(">QII")  # rping.c: struct rping_rdma_info, with address, key and length
_FIRST: Final = 65  # rping.c: the letters go from 'A' to 'z'
_LETTERS: Final = 58
_RECEIVES: Final = 2  # rping.c: init_attr.cap.max_recv_wr
_MAY: Final = AccessFlags.REMOTE_READ | AccessFlags.REMOTE_WRITE
_NS_PER_MS: Final = 1e6


def ping_data(number: int, size_bytes: int) -> bytes:
    r"""Data of one ping: its number, letters, and a zero at the end.

    Parameters
    ----------
    number : counted from 0
    size_bytes : ``FEWEST_BYTES`` to ``MOST_BYTES``

    Examples
    --------
    >>> ping_data(1, 26)
    b'rdma-ping-1: BCDEFGHIJKLM\x00'
    """
    head = b"rdma-ping-%d: " % number
    start = number % _LETTERS
    cycle = bytes(_FIRST + (start + place) % _LETTERS for place in range(_LETTERS))
    count = size_bytes - len(head)
    return (head + cycle * (count // _LETTERS + 1))[: size_bytes - 1] + b"\0"


@dataclass(frozen=True, kw_only=True, slots=True)
class PingFigures:
    """Round trips of several pings.

    Parameters
    ----------
    min_ms, average_ms, max_ms : round trips
    deviation_ms : their standard deviation, as ping(8) prints it
    """

    min_ms: float
    average_ms: float
    max_ms: float
    deviation_ms: float


def ping_figures(round_trips_ms: list[float]) -> PingFigures:
    """Summarise round trips; at least one.

    Examples
    --------
    >>> ping_figures([1.0, 3.0])
    PingFigures(min_ms=1.0, average_ms=2.0, max_ms=3.0, deviation_ms=1.0)
    """
    average = sum(round_trips_ms) / len(round_trips_ms)
    squares = sum((value - average) ** 2 for value in round_trips_ms) / len(round_trips_ms)
    return PingFigures(
        min_ms=min(round_trips_ms), average_ms=average, max_ms=max(round_trips_ms), deviation_ms=squares**0.5
    )


class _Post:
    """Handles that go to the peer and come from it, with receives always posted."""

    def __init__(self, connection: RdmaConnection) -> None:
        self._connection: Final = connection
        self._out: Final = connection.reg_mr(bytearray(_HANDLE.size))
        self._buffers: Final = [bytearray(_HANDLE.size) for _ in range(_RECEIVES)]
        self._regions: Final = [connection.reg_mr(buffer) for buffer in self._buffers]
        self._works: Final[list[Work[Wc]]] = [connection.recv(region) for region in self._regions]
        self._at = 0

    def send(self, region: LocalRange | None) -> None:
        """Send the handle of a region, or a message that only says to go ahead."""
        handle = (region.addr, region.mr.rkey, region.length) if region is not None else (0, 0, 0)
        _HANDLE.pack_into(self._out.mr.view, 0, *handle)
        self._connection.send(self._out).wait()

    def receive(self) -> RemoteRange:
        """Wait for a message; PeerError if it is none of rping."""
        at = self._at
        size_bytes = self._works[at].wait().byte_len
        if size_bytes != _HANDLE.size:
            raise PeerError(f"the peer sent a message of {size_bytes} bytes, wanted the {_HANDLE.size} of a ping")
        addr, rkey, length = _HANDLE.unpack(self._buffers[at])
        self._works[at] = self._connection.recv(self._regions[at])
        self._at = (at + 1) % _RECEIVES
        return RemoteRange(addr, length, rkey)


class PingClient:
    """The end that pings.

    Parameters
    ----------
    connection : established
    size_bytes : of the data
    """

    def __init__(self, connection: RdmaConnection, size_bytes: int) -> None:
        self._size_bytes: Final = size_bytes
        self._start: Final = bytearray(size_bytes)
        self._sink: Final = bytearray(size_bytes)
        self._start_region: Final = connection.reg_mr(self._start, _MAY)
        self._sink_region: Final = connection.reg_mr(self._sink, _MAY)
        self._post: Final = _Post(connection)
        self._number = 0

    def ping(self) -> float:
        """Ping once; returns the round trip in ms.

        Raises
        ------
        PeerError : the connection ended, or other data came back
        """
        self._start[:] = ping_data(self._number, self._size_bytes)
        self._sink[:] = bytes(self._size_bytes)
        begin_ns = time.monotonic_ns()
        self._post.send(self._start_region)
        self._post.receive()
        self._post.send(self._sink_region)
        self._post.receive()
        took_ms = (time.monotonic_ns() - begin_ns) / _NS_PER_MS
        wrong = sum(there != here for there, here in zip(self._sink, self._start, strict=True))
        if wrong:
            raise PeerError(f"ping {self._number + 1}: {wrong} of {self._size_bytes} bytes came back changed")
        self._number += 1
        return took_ms


def serve_pings(connection: RdmaConnection) -> int:
    """Answer pings until the client disconnects; returns their number.

    Parameters
    ----------
    connection : a request, not yet accepted

    Raises
    ------
    PeerError : the data that was READ is none of a ping, or the client asks for too much
    """
    post = _Post(connection)
    buffer = bytearray(MOST_BYTES)
    region = connection.reg_mr(buffer)
    connection.accept().wait()
    count = 0
    while True:
        try:
            source = post.receive()
        except PeerError:
            if connection.closed.is_done:
                return count
            raise
        if not FEWEST_BYTES <= source.length <= MOST_BYTES:
            raise PeerError(f"the client offers {source.length} bytes, wanted {FEWEST_BYTES} to {MOST_BYTES}")
        connection.read(region[: source.length], source).wait()
        head, _, _ = bytes(buffer[:FEWEST_BYTES]).partition(b": ")
        number = head.removeprefix(b"rdma-ping-")
        if not number.isdigit() or buffer[: source.length] != ping_data(int(number), source.length):
            raise PeerError(f"ping {count + 1}: the READ brought other data than the client's program writes")
        post.send(None)
        sink = post.receive()
        connection.write(region[: source.length], sink).wait()
        post.send(None)
        count += 1
