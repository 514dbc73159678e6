"""RDMA ping: its data, both ends over real sockets, and peers that do not keep to the protocol."""

from __future__ import annotations

import os
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from helpers.rdma_door import opened_door

from weftwork.base.errors import PeerError
from weftwork.rdma.perf.meeting import meet
from weftwork.rdma.ping import FEWEST_BYTES, MOST_BYTES, PingClient, ping_data, ping_figures, serve_pings
from weftwork.rdma.region import RemoteRange
from weftwork.rdma.verbs import AccessFlags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weftwork.rdma.connection import RdmaConnection

HERE = "127.{}.{}.82".format(*divmod(os.getpid() % 60_000, 250))
PORT = 7174
PATIENCE_S = 60.0


@contextmanager
def server(serve: Callable[[RdmaConnection], Any], found: list[Any]) -> Iterator[None]:
    """One end in a thread; ``found`` gets its result or error."""
    with opened_door(HERE, PORT, lambda connection, _: found.append(serve(connection)), found):
        yield


def rping_data(ping: int, size: int) -> bytes:
    """What the loop of rping.c writes, letter by letter."""
    start = 65
    for _ in range(ping):
        start += 1
        if start > 122:
            start = 65
    data = bytearray(b"rdma-ping-%d: " % ping)
    letter = start
    while len(data) < size:
        data.append(letter)
        letter += 1
        if letter > 122:
            letter = 65
    data[size - 1] = 0
    return bytes(data)


@pytest.mark.parametrize("size", [FEWEST_BYTES, 64, 1000])
def test_the_data_is_that_of_rping(size: int) -> None:
    for number in (0, 1, 57, 58, 59, 12_345):
        assert ping_data(number, size) == rping_data(number, size)
    assert len(ping_data(2_147_483_647, FEWEST_BYTES)) == FEWEST_BYTES


def test_figures_are_those_of_ping() -> None:
    found = ping_figures([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert (found.min_ms, found.average_ms, found.max_ms, found.deviation_ms) == (2.0, 5.0, 9.0, 2.0)


@pytest.mark.parametrize("size", [FEWEST_BYTES, 4097, MOST_BYTES])
def test_data_goes_to_and_fro_and_both_ends_count(size: int) -> None:
    found: list[Any] = []
    with server(serve_pings, found), meet(HERE, PORT, b"", remedy="", source=HERE, wire="rocev2") as (connection, _):
        client = PingClient(connection, size)
        trips_ms = [client.ping() for _ in range(3)]
        assert min(trips_ms) > 0
    assert found == [3]


def test_changed_data_is_noticed_by_the_client() -> None:
    def changes(connection: RdmaConnection) -> None:
        buffer = bytearray(64)
        data, handle = connection.reg_mr(buffer), connection.reg_mr(letter := bytearray(16))
        handles = [connection.recv(handle)]
        connection.accept().wait()
        for turn in (0, 1):
            handles.pop().wait()
            addr, rkey, length = struct.unpack(">QII", letter)
            handles.append(connection.recv(handle))
            remote = RemoteRange(addr, length, rkey)
            (connection.read if turn == 0 else connection.write)(data, remote).wait()
            buffer[20] ^= 1
            connection.send(connection.reg_mr(bytearray(16))).wait()
        connection.closed.wait()

    with (
        server(changes, []),
        pytest.raises(PeerError, match="ping 1: 1 of 64 bytes came back changed"),
        meet(HERE, PORT, b"", remedy="", source=HERE, wire="rocev2") as (connection, _),
    ):
        PingClient(connection, 64).ping()


@pytest.mark.parametrize(
    ("offered", "text"),
    [
        (b"short", "a message of 5 bytes, wanted the 16 of a ping"),
        (struct.pack(">QII", 0, 0, 1 << 20), "offers 1048576 bytes, wanted 26 to 65535"),
        (b"here", "ping 1: the READ brought other data"),
    ],
)
def test_a_client_that_does_not_keep_to_the_protocol_is_told_to_the_server(offered: bytes, text: str) -> None:
    found: list[Any] = []
    with server(serve_pings, found), meet(HERE, PORT, b"", remedy="", source=HERE, wire="rocev2") as (connection, _):
        if offered == b"here":  # a region, whose data is none of a ping
            region = connection.reg_mr(bytearray(b"rdma-ping-x: " + bytes(51)), AccessFlags.REMOTE_READ)
            offered = struct.pack(">QII", region.addr, region.mr.rkey, region.length)
        connection.send(connection.reg_mr(bytearray(offered))).wait()
        connection.device.wait(lambda: connection.closed.is_done, PATIENCE_S)
        assert connection.closed.is_done
    assert text in str(found[0])
