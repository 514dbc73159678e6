"""Connections: listen, connect, and what each request does, in asyncio and in threads, over real sockets."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from weftwork import rdma
from weftwork.base.errors import PeerError, UsageError
from weftwork.rdma.device import RdmaDevice
from weftwork.rdma.verbs import AccessFlags, WcStatus
from weftwork.wire.udp import ROCE_V2_PORT

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.rdma.connection import RdmaConnection

ALL = AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ | AccessFlags.REMOTE_ATOMIC | AccessFlags.FLUSH_GLOBAL
PATIENCE_S = 60.0
# An address of this process alone, since tests run side by side and processes share a port.
HERE = "127.{}.{}.77".format(*divmod(os.getpid() % 60_000, 250))
PORT = 7471


async def serve(values: np.ndarray, access: AccessFlags = ALL, *, selective_repeat: bool = False) -> None:
    async with rdma.listen(HERE, PORT) as listener, await listener.get_request() as connection:
        region = connection.reg_mr(values, access)
        await connection.accept(region.remote.encode(), selective_repeat=selective_repeat)
        await connection.closed


def talk(client: Callable[[RdmaConnection, np.ndarray], object], access: AccessFlags = ALL, **more: bool) -> np.ndarray:
    """Run a client against a server of the same loop; the server's memory is the result."""
    values = np.zeros(4096, np.uint64)

    async def both() -> None:
        server = asyncio.create_task(serve(values, access, **more))
        async with rdma.connect(HERE, PORT, **more) as connection:
            await client(connection, values)  # type: ignore[misc]
        await server

    asyncio.run(asyncio.wait_for(both(), PATIENCE_S))
    return values


def test_an_idle_process_of_the_same_address_keeps_nobody_from_connecting() -> None:
    """Requests come to the first socket of the address, whose process may never look at it."""

    async def greet() -> None:
        async with rdma.listen(HERE, PORT) as listener, await listener.get_request() as connection:
            await connection.accept()
            await connection.send(connection.reg_mr(bytearray(b"hello")))
            await connection.closed

    async def both() -> None:
        server = asyncio.create_task(greet())
        async with rdma.connect(HERE, PORT) as connection:
            letter = bytearray(5)
            await connection.recv(connection.reg_mr(letter))
            assert letter == b"hello"
        await server

    idle = RdmaDevice(HERE)  # no thread and no loop moves its packets
    try:
        asyncio.run(asyncio.wait_for(both(), PATIENCE_S))
    finally:
        idle.close()


def test_write_read_and_atomics_reach_the_memory_of_the_peer() -> None:
    async def client(connection: RdmaConnection, there: np.ndarray) -> None:
        remote = rdma.RemoteRange.decode(connection.private_data)
        mine = np.arange(4096, dtype=np.uint64)
        region = connection.reg_mr(mine)
        await connection.write(region, remote)
        assert (there == mine).all()
        assert await connection.fetch_add(remote[8:16], 41) == 1
        assert await connection.cmp_swap(remote[16:24], 2, 99) == 2
        assert await connection.cmp_swap(remote[16:24], 2, 5) == 99
        mine[100] = 77
        await connection.atomic_write(region[800:808], remote[24:32])
        await connection.flush(remote)
        mine[:] = 0
        await connection.read(region[:40], remote[:40])
        assert mine[:5].tolist() == [0, 42, 99, 77, 4]
        assert await connection.fetch_add(remote[:8], -1) == 0

    assert talk(client)[:3].tolist() == [2**64 - 1, 42, 99]


def test_selective_repeat_is_agreed_where_both_ask() -> None:
    async def client(connection: RdmaConnection, _: np.ndarray) -> None:
        assert connection.qp.attr.selective_repeat
        assert connection.qp.attr.path_mtu == 4096

    talk(client, selective_repeat=True)


def test_what_the_peer_does_not_allow_is_told_with_what_to_check() -> None:
    async def client(connection: RdmaConnection, _: np.ndarray) -> None:
        remote = rdma.RemoteRange.decode(connection.private_data)
        region = connection.reg_mr(np.zeros(8, np.uint64))
        await connection.read(region, remote)
        with pytest.raises(UsageError, match="64 local bytes for 8 of the peer"):
            connection.write(region, remote[:8])
        later = connection.read(region, remote)
        with pytest.raises(rdma.WorkError, match="REM_ACCESS_ERR: the peer gives no such access") as caught:
            await connection.write(region, remote)
        assert caught.value.wc.status is WcStatus.REM_ACCESS_ERR
        await later
        with pytest.raises(rdma.WorkError, match="WR_FLUSH_ERR"):
            await connection.read(region, remote)

    assert not talk(client, AccessFlags.REMOTE_READ).any()


def test_threads_send_and_receive() -> None:
    got: list[bytes] = []
    ready = threading.Event()

    def server() -> None:
        with rdma.listen(HERE, PORT) as listener:
            ready.set()
            with listener.get_request().wait(PATIENCE_S) as connection:
                box = bytearray(64)
                region = connection.reg_mr(box)
                first = connection.recv(region[:32])
                second = connection.recv(region[32:])
                connection.accept(b"come in").wait(PATIENCE_S)
                assert first.wait(PATIENCE_S).byte_len == 5
                assert second.wait(PATIENCE_S).imm_data == 7
                got.append(bytes(box))
                connection.closed.wait(PATIENCE_S)

    thread = threading.Thread(target=server)
    thread.start()
    assert ready.wait(PATIENCE_S)
    with rdma.connect(HERE, PORT, b"let me in") as connection:
        assert connection.private_data.rstrip(b"\0") == b"come in"
        region = connection.reg_mr(bytearray(b"hello world"))
        connection.send(region[:5]).wait(PATIENCE_S)
        connection.send(region[6:], imm_data=7).wait(PATIENCE_S)
    thread.join(PATIENCE_S)
    assert got == [b"hello".ljust(32, b"\0") + b"world".ljust(32, b"\0")]


SERVER = """
import sys
import numpy as np
from weftwork import rdma
may = rdma.AccessFlags.REMOTE_ATOMIC
with rdma.listen(sys.argv[1], int(sys.argv[2])) as listener:
    print("ready", flush=True)
    with listener.get_request().wait() as connection:
        connection.accept(connection.reg_mr(np.zeros(512, np.uint64), may).remote.encode()).wait()
        connection.closed.wait()
"""


def test_two_processes_behind_one_port() -> None:
    with subprocess.Popen([sys.executable, "-c", SERVER, HERE, str(PORT)], stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdout is not None
        assert peer.stdout.readline() == "ready\n"
        with rdma.connect(HERE, PORT, source=HERE) as connection:
            assert connection.device.port.slot == 1
            remote = rdma.RemoteRange.decode(connection.private_data)
            sums = [connection.fetch_add(remote[:8], 1).wait(PATIENCE_S) for _ in range(20)]
            assert sums == list(range(20))
        assert peer.wait(PATIENCE_S) == 0


def test_a_refusal_says_why() -> None:
    async def refused() -> None:
        with pytest.raises(PeerError, match="nobody listens on this port"):
            async with rdma.connect(HERE, PORT, source=HERE):
                pass
        async with rdma.listen(HERE, PORT) as listener:
            trial = asyncio.create_task(connecting())
            request = await listener.get_request()
            assert request.private_data.startswith(b"please")
            request.reject(b"no")
            with pytest.raises(PeerError, match="CONSUMER_DEFINED"):
                await trial
            with pytest.raises(PeerError, match="refused here"):
                await request.established

    async def connecting() -> None:
        async with rdma.connect(HERE, PORT, b"please"):
            pass

    asyncio.run(asyncio.wait_for(refused(), PATIENCE_S))


def test_many_connections_come_and_go() -> None:
    async def go() -> None:
        async with rdma.listen(HERE, PORT) as listener, rdma.RdmaDevice(HERE) as device:
            meeting = rdma.Rendezvous(device)
            for number in range(30):
                asking = meeting.connect(HERE, PORT)
                there = await listener.get_request()
                await there.accept(bytes([number]))
                here = await asking
                assert here.private_data[0] == number
                await here.disconnect()
                await there.closed
                here.close()
                there.close()
            assert len(device.nic.memory) == 0

    asyncio.run(asyncio.wait_for(go(), PATIENCE_S))


def test_ranges_name_parts() -> None:
    remote = rdma.RemoteRange(1000, 100, 7)
    assert remote[10:20] == rdma.RemoteRange(1010, 10, 7)
    assert remote[90:] == rdma.RemoteRange(1090, 10, 7)
    assert remote[95:200].length == 5
    assert rdma.RemoteRange.decode(remote.encode() + bytes(9)) == remote
    with pytest.raises(UsageError, match="steps of 2 bytes"):
        remote[::2]
    with pytest.raises(UsageError, match="found 3 bytes"):
        rdma.RemoteRange.decode(b"abc")


def test_the_package_names_what_it_has() -> None:
    assert set(dir(rdma)) == set(rdma.__all__)
    assert all(getattr(rdma, name) is not None for name in rdma.__all__)
    with pytest.raises(AttributeError, match="no attribute 'ibv_post_send'"):
        rdma.ibv_post_send  # noqa: B018 - asked for


def test_who_gets_no_readable_answer_learns_of_numbered_packets() -> None:
    """A UDP socket hides the identification of IPv4, which the ICRC covers; rxe of Linux draws one for each packet."""
    peer = HERE.replace(".77", ".78")
    with RdmaDevice(HERE) as device, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answers:
        answers.bind((peer, ROCE_V2_PORT))
        answers.settimeout(PATIENCE_S)
        rendezvous = rdma.Rendezvous(device)
        rendezvous._manager.cm_retries = 0
        asked = rendezvous.connect(peer, PORT)
        request = answers.recv(4096)
        answers.sendto(request[:-4] + bytes(4), (HERE, ROCE_V2_PORT))
        with pytest.raises(PeerError, match=r"1 packet came with a wrong ICRC; .* checks_identification=True"):
            asked.wait(PATIENCE_S)
