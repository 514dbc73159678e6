"""iWARP over TCP sockets of this machine: the same calls as over RoCEv2, and peers that behave badly."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import socket
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from weftwork import rdma
from weftwork.base.errors import UsageError
from weftwork.rdma.cm_records import CmEventType
from weftwork.rdma.drivers.iwarp import IwarpMover, IwarpPort
from weftwork.rdma.iwarp.connection_manager import IwarpManager
from weftwork.rdma.iwarp.conversation import STARTUP_PS
from weftwork.rdma.iwarp.nic import IwarpNic
from weftwork.rdma.queue_pair import NicLimits
from weftwork.wire.mpa import MpaFrame
from weftwork.wire.rdma_ip_cm import PortSpace

PORT = 7471
PATIENCE_S = 60.0
ALL = rdma.AccessFlags.REMOTE_WRITE | rdma.AccessFlags.REMOTE_READ | rdma.AccessFlags.REMOTE_ATOMIC
numbers = itertools.count(1)


@pytest.fixture
def address() -> str:
    """A loopback address that no other test has."""
    number = next(numbers)
    return f"127.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}.{number}"


def serve(address: str, use: Callable[[rdma.RdmaConnection], None], ready: threading.Event) -> None:
    with rdma.listen(address, PORT, wire="iwarp") as listener:
        ready.set()
        use(listener.get_request().wait(PATIENCE_S))


def with_server(
    address: str, server: Callable[[rdma.RdmaConnection], None], client: Callable[[rdma.RdmaConnection], None]
) -> None:
    """Let two programs meet, each in a thread of its own."""
    ready = threading.Event()
    thread = threading.Thread(target=serve, args=(address, server, ready))
    thread.start()
    try:
        assert ready.wait(PATIENCE_S)
        with rdma.connect(address, PORT, b"question", wire="iwarp") as connection:
            client(connection)
    finally:
        thread.join(PATIENCE_S)


def test_every_operation_of_a_connection(address: str) -> None:
    table = np.zeros(1 << 17, np.uint64)
    wanted = np.arange(1 << 17, dtype=np.uint64)
    letters: list[bytes] = []

    def server(connection: rdma.RdmaConnection) -> None:
        assert connection.private_data == b"question"
        region = connection.reg_mr(table, ALL)
        letter = bytearray(64)
        posted = [connection.recv(connection.reg_mr(letter)), connection.recv(connection.reg_mr(bytearray(8)))]
        connection.accept(region.remote.encode()).wait(PATIENCE_S)
        letters.append(bytes(letter[: posted[0].wait(PATIENCE_S).byte_len]))
        assert posted[1].wait(PATIENCE_S).imm_data == 77
        connection.closed.wait(PATIENCE_S)

    def client(connection: rdma.RdmaConnection) -> None:
        remote = rdma.RemoteRange.decode(connection.private_data)
        mine = wanted.copy()
        region = connection.reg_mr(mine)
        connection.write(region, remote).wait(PATIENCE_S)
        mine[:] = 0
        connection.read(region, remote).wait(PATIENCE_S)
        assert np.array_equal(mine, wanted)
        assert connection.fetch_add(remote[8:16], 41).wait(PATIENCE_S) == 1
        assert connection.cmp_swap(remote[8:16], 42, 5).wait(PATIENCE_S) == 42
        connection.send(connection.reg_mr(bytearray(b"hello"))).wait(PATIENCE_S)
        connection.write(region[:8], remote[:8], imm_data=77).wait(PATIENCE_S)

    with_server(address, server, client)
    wanted[1] = 5
    assert np.array_equal(table, wanted)
    assert letters == [b"hello"]


def test_the_accepting_end_may_speak_first(address: str) -> None:
    def server(connection: rdma.RdmaConnection) -> None:
        connection.accept().wait(PATIENCE_S)
        connection.send(connection.reg_mr(bytearray(b"first"))).wait(PATIENCE_S)
        connection.closed.wait(PATIENCE_S)

    ready = threading.Event()
    thread = threading.Thread(target=serve, args=(address, server, ready))
    thread.start()
    assert ready.wait(PATIENCE_S)
    with rdma.RdmaDevice(address, wire="iwarp") as device:
        # the receive is posted before the peer may send: without one, the stream would end
        meeting = rdma.Rendezvous(device)
        work = meeting.connect(address, PORT)
        (connection,) = meeting._connections.values()
        buffer = bytearray(8)
        got = connection.recv(connection.reg_mr(buffer))
        work.wait(PATIENCE_S)
        assert got.wait(PATIENCE_S).byte_len == 5
        assert buffer[:5] == b"first"
    thread.join(PATIENCE_S)


@pytest.mark.parametrize("home", ["::1", "127.0.0.9"])
def test_asyncio_and_ipv6(home: str) -> None:
    async def server(listening: asyncio.Event) -> int:
        async with rdma.listen(home, PORT + 1, wire="iwarp") as listener:
            listening.set()
            connection = await listener.get_request()
            letter = connection.recv(connection.reg_mr(bytearray(64)))
            await connection.accept()
            size_bytes = (await letter).byte_len
            await connection.closed
            return size_bytes

    async def both() -> int:
        listening = asyncio.Event()
        task = asyncio.create_task(server(listening))
        await listening.wait()
        async with rdma.connect(home, PORT + 1, wire="iwarp") as connection:
            await connection.send(connection.reg_mr(bytearray(b"hello")))
        return await task

    assert asyncio.run(asyncio.wait_for(both(), PATIENCE_S)) == 5


def test_a_long_message_does_not_hold_the_caller(address: str) -> None:
    """What is left of it goes by the thread of the device, and all of it arrives."""
    there = np.zeros(1 << 25, np.uint8)
    wanted = np.arange(1 << 25, dtype=np.uint32).astype(np.uint8)

    def server(connection: rdma.RdmaConnection) -> None:
        connection.accept(connection.reg_mr(there, ALL).remote.encode()).wait(PATIENCE_S)
        connection.closed.wait(PATIENCE_S)

    def client(connection: rdma.RdmaConnection) -> None:
        done = threading.Event()
        work = connection.write(connection.reg_mr(wanted.copy()), rdma.RemoteRange.decode(connection.private_data))
        work.when_done(done.set)  # nobody waits in the device meanwhile
        assert done.wait(PATIENCE_S)
        connection.read(connection.reg_mr(bytearray(1)), rdma.RemoteRange.decode(connection.private_data)).wait(
            PATIENCE_S
        )

    with_server(address, server, client)
    assert np.array_equal(there, wanted)


def test_a_refused_key_ends_the_connection_and_says_why(address: str) -> None:
    """A WRITE is done when TCP has its bytes; the refusal ends the stream and the work behind it."""

    def server(connection: rdma.RdmaConnection) -> None:
        region = connection.reg_mr(bytearray(64), rdma.AccessFlags.REMOTE_READ)
        connection.accept(region.remote.encode()).wait(PATIENCE_S)
        connection.closed.wait(PATIENCE_S)

    def client(connection: rdma.RdmaConnection) -> None:
        remote = rdma.RemoteRange.decode(connection.private_data)
        region = connection.reg_mr(bytearray(64))
        connection.write(region, remote).wait(PATIENCE_S)
        connection.closed.wait(PATIENCE_S)
        with pytest.raises(rdma.WorkError, match="Terminate: RDMAP_ACCESS"):
            connection.read(region, remote).wait(PATIENCE_S)

    with_server(address, server, client)


def test_a_rejection_and_a_closed_port_are_told(address: str) -> None:
    def server(connection: rdma.RdmaConnection) -> None:
        connection.reject(b"busy")
        assert connection.closed.is_done

    with pytest.raises(rdma.PeerError, match=r"the peer refused \(CONSUMER_DEFINED\)"):
        with_server(address, server, lambda _: None)
    with (
        pytest.raises(rdma.PeerError, match=r"nobody listens on this port\. TCP: Connection refused"),
        rdma.connect(address, PORT, wire="iwarp"),
    ):
        pass


def test_ports_and_addresses_are_checked(address: str) -> None:
    with rdma.RdmaDevice(address, wire="iwarp") as device, rdma.RdmaDevice(address, wire="iwarp") as other:
        rdma.Rendezvous(device).listen(PORT)
        with pytest.raises(UsageError, match="which another program has"):
            rdma.Rendezvous(other).listen(PORT)
    with pytest.raises(UsageError, match="wanted one of this machine"):
        rdma.RdmaDevice("192.0.2.1", wire="iwarp")
    with pytest.raises(UsageError, match="TCP of the system has its own"):
        rdma.RdmaDevice(address, wire="iwarp", congestion_control="dcqcn")
    with pytest.raises(UsageError, match="TCP has no ICRC"):
        rdma.RdmaDevice(address, wire="iwarp", checks_identification=True)
    with (
        rdma.RdmaDevice(address, wire="iwarp") as device,
        pytest.raises(UsageError, match="TCP repeats what is lost"),
    ):
        rdma.Rendezvous(device).connect(address, PORT, selective_repeat=True)


def test_a_port_can_be_left_and_taken_again(address: str) -> None:
    with rdma.RdmaDevice(address, wire="iwarp") as device:
        manager = device.make_manager()
        for _ in range(2):
            listener = manager.listen(PORT, 4)
            device.port.listen(PORT)
            listener.close()
        device.progress()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((address, PORT), PATIENCE_S)
        with pytest.raises(UsageError, match="no multicast"):
            device.port.join(bytes(4))
        with pytest.raises(UsageError, match="no datagram service"):
            device.port.listen(PORT, PortSpace.UDP)


class Server:
    """A device's parts with a clock that the test moves."""

    def __init__(self, address: str, limits: NicLimits | None = None) -> None:
        self.address = address
        self.now_ns = 0
        self.nic = IwarpNic(socket.inet_aton(address), limits=limits)
        self.manager = IwarpManager(self.nic)
        self.port = IwarpPort(address, self.manager)
        self.mover = IwarpMover(self.port, self.manager, lambda: self.now_ns)
        self.manager.listen(PORT)
        self.port.listen(PORT)

    def until(self, done: Callable[[], bool]) -> None:
        for _ in range(100_000):
            self.mover.progress()
            if done():
                return
        message = "it did not happen"
        raise AssertionError(message)

    def attacker(self) -> socket.socket:
        made = socket.create_connection((self.address, PORT), PATIENCE_S)
        made.settimeout(PATIENCE_S)
        return made


@pytest.fixture
def server(address: str) -> Iterator[Server]:
    made = Server(address, NicLimits(max_cm_pending=8))
    yield made
    made.port.close()


def test_slow_starters_are_closed_in_time_and_free_their_sockets(server: Server) -> None:
    attackers = [server.attacker() for _ in range(4)]
    for number, one in enumerate(attackers):
        one.sendall(MpaFrame(is_reply=False).encode()[:number])
    server.until(lambda: len(server.mover._streams) == 4)
    server.now_ns = STARTUP_PS // 1000 // 2
    for one in attackers:
        one.sendall(b"")
    server.mover.progress()
    assert server.mover.wait_s() == pytest.approx(5.0)
    server.now_ns = STARTUP_PS // 1000
    server.until(lambda: not server.mover._streams)
    for one in attackers:
        assert one.recv(100) == b""
        one.close()
    assert server.mover.wait_s() is None


def test_a_flood_of_connections_keeps_nobody_out(server: Server) -> None:
    flood = []
    for _ in range(40):
        flood.append(server.attacker())
        server.mover.progress()
    server.until(lambda: server.manager.counters["startup_evicted"] == 32)
    assert len(server.mover._streams) == 8
    honest = server.attacker()
    honest.sendall(MpaFrame(is_reply=False).encode())
    server.until(lambda: bool(server.manager._events))
    event = server.manager.next_event()
    assert event is not None
    assert event.event_type is CmEventType.CONNECT_REQUEST
    for one in [*flood, honest]:
        one.close()


def test_a_reset_in_the_start_up_is_forgotten(server: Server) -> None:
    attacker = server.attacker()
    attacker.sendall(b"MPA")
    server.until(lambda: len(server.mover._streams) == 1)
    attacker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes((1, 0, 0, 0, 0, 0, 0, 0)))
    attacker.close()
    server.until(lambda: not server.mover._streams)
    assert not server.manager._conversations


def test_without_descriptors_the_port_rests_until_one_is_free(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    first = server.attacker()
    server.until(lambda: len(server.mover._streams) == 1)
    second = server.attacker()
    ((listener, port),) = server.port.listeners.values()

    class Full:
        def accept(self) -> None:
            raise OSError(errno.EMFILE, "too many open files")

    descriptor = listener.fileno()
    monkeypatch.setitem(server.port.listeners, descriptor, (Full(), port))
    server.until(lambda: server.port.counters["accept_failed"] == 1)
    server.mover.progress()
    assert server.port.counters["accept_failed"] == 1  # it does not spin
    monkeypatch.setitem(server.port.listeners, descriptor, (listener, port))
    first.close()
    server.until(lambda: server.mover._resting == set() and len(server.mover._streams) == 1)
    second.close()


def test_a_peer_that_does_not_read_is_waited_for_without_spinning(server: Server) -> None:
    attacker = server.attacker()
    attacker.sendall(MpaFrame(is_reply=False).encode())
    server.until(lambda: bool(server.manager._events))
    event = server.manager.next_event()
    assert event is not None
    nic = server.nic
    pd, cq = nic.alloc_pd(), nic.create_cq(16)
    memory = bytearray(32 << 20)
    mr = nic.memory.register(pd, memory, rdma.AccessFlags.LOCAL_WRITE)
    qp = nic.create_qp(pd, rdma.QpType.RC, (cq, cq))
    event.id.accept(qp)
    qp._has_heard = True  # type: ignore[attr-defined]
    qp.post_send(rdma.SendWr(wr_id=1, opcode=rdma.WrOpcode.SEND, sg_list=(rdma.Sge(mr.addr, len(memory), mr.lkey),)))
    nic.wake(qp)
    server.until(lambda: not server.mover.progress())
    assert len(cq) == 0
    assert server.mover.wait_s() is None  # the system says when the peer has read
    assert qp._outgoing_bytes < 1 << 20  # type: ignore[attr-defined]
    attacker.close()
    server.until(lambda: len(cq) == 1)
    assert cq.poll()[0].status is rdma.WcStatus.WR_FLUSH_ERR
