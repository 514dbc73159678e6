"""Connections come and go over a wire that loses, doubles and reorders packets, some peers die, and nothing stays.

Counted are queue pairs, completion queues, regions, conversations, registered functions, records of the program's side,
descriptors, threads, and live objects of the classes that a connection is made of.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from helpers.cases import Saw, case_count

from weftwork.base.errors import PeerError
from weftwork.rdma import AccessFlags, RdmaConnection, RdmaDevice, RemoteRange, Rendezvous
from weftwork.rdma.cm_id import CmId
from weftwork.rdma.completion import CompletionQueue
from weftwork.rdma.drivers.driver import PS_PER_NS
from weftwork.rdma.drivers.loopback import LoopbackPort, LoopbackWire
from weftwork.rdma.memory import MemoryRegion
from weftwork.rdma.queue_pair import RdmaQueuePair
from weftwork.rdma.work import Work

if TYPE_CHECKING:
    from weftwork.rdma.datagram import Datagram

CONNECTIONS: Final = case_count(plain=60, deep=10_000)
TOGETHER: Final = 100  # most of their time they wait for a message that was lost
REFUSED_EVERY: Final = 29
HERE, THERE, PORT = "10.0.0.1", "10.0.0.2", 7_471
CLASSES: Final = (RdmaQueuePair, RdmaConnection, CmId, CompletionQueue, MemoryRegion, Work)
HOUR_NS: Final = 3600 * 10**9
LOSS, DOUBLE, REORDER = 0.02, 0.02, 0.02
REFUSED: Final = b"refuse me"
DOOMED: Final = b"I shall die: "
KILLED_EVERY: Final = 50


class BadPort(LoopbackPort):
    """A port that loses, doubles and reorders what it sends, by a luck of its own."""

    def __init__(self, wire: LoopbackWire, address: str, seed: int) -> None:
        super().__init__(wire, ipaddress.ip_address(address).packed)
        wire.ports[self.address] = self
        self.harm: Counter[str] = Counter()
        self._luck = random.Random(seed)
        self._is_dead = False
        self._late: Datagram | None = None

    def die(self) -> None:
        """End as a process ends that is killed: nothing comes in and nothing goes out any more."""
        self._is_dead = True
        self._wire.ports.pop(self.address)

    def send(self, datagram: Datagram) -> None:
        if self._is_dead:
            return
        draw = self._luck.random()
        late, self._late = self._late, None
        if draw < LOSS:
            self.harm["lost"] += 1
        elif draw < LOSS + REORDER:
            self.harm["reordered"] += 1
            self._late = datagram._replace(parts=(b"".join(datagram.parts),))
        else:
            super().send(datagram)
            if draw < LOSS + REORDER + DOUBLE:
                self.harm["doubled"] += 1
                super().send(datagram)
        if late is not None:
            super().send(late)


class Ends:
    """A device that serves, one that asks, and what came of their connections."""

    def __init__(self, seed: int) -> None:
        self.wire = LoopbackWire()
        self.ports = [BadPort(self.wire, HERE, seed), BadPort(self.wire, THERE, seed + 1)]
        self.deaths: dict[int, asyncio.Event] = {}
        self.devices = [RdmaDevice(port=port) for port in self.ports]
        self.outcomes: Counter[str] = Counter()

    async def run(self, count: int) -> None:
        served, asking = self.devices
        async with served, asking:
            self.rendezvous = [Rendezvous(device) for device in self.devices]
            self.rendezvous[0].listen(PORT)
            tasks: set[asyncio.Task[None]] = set()
            server = asyncio.create_task(self.serve(count, tasks))
            room = asyncio.Semaphore(TOGETHER)
            killed = (self.die(number, room) for number in range(0, count, KILLED_EVERY))
            await asyncio.gather(*(self.ask(number, room) for number in range(count)), *killed)
            await asyncio.gather(*(task for task in tasks if task.get_name() == DOOMED.decode()))
            await asyncio.wait({server}, timeout=0)
            server.cancel()
            for device in self.devices:
                self.settle(device)
            await asyncio.gather(*tasks)
            self.check()

    async def serve(self, count: int, tasks: set[asyncio.Task[None]]) -> None:
        for _ in range(2 * count):  # a request whose answer was lost too often is asked again by nobody
            request = await self.rendezvous[0].get_request(PORT)
            is_doomed = request.private_data.startswith(DOOMED)
            task = asyncio.create_task(self.answer(request), name=DOOMED.decode() if is_doomed else None)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def answer(self, connection: RdmaConnection) -> None:
        if connection.private_data.startswith(REFUSED):
            connection.reject(b"no")
            return
        rights = AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ | AccessFlags.REMOTE_ATOMIC
        memory = connection.reg_mr(np.zeros(64, np.uint64), rights)
        connection.recv(connection.reg_mr(bytearray(64)))
        with suppress(PeerError):  # its RTU was lost, and the peer has left already
            await connection.accept(memory.remote.encode())
        if connection.private_data.startswith(DOOMED):
            await self.deaths[int(connection.private_data.rstrip(b"\0")[len(DOOMED) :])].wait()
            with pytest.raises(PeerError):  # a peer that has died answers no request, and only a request can tell
                await connection.send(memory[:8])
            self.outcomes["noticed"] += 1
            connection.close()
            return
        await connection.closed
        connection.close()

    async def die(self, number: int, room: asyncio.Semaphore) -> None:
        """Connect from a machine of its own, and be killed with a request on its way."""
        self.deaths[number] = asyncio.Event()
        async with room:
            port = BadPort(self.wire, str(ipaddress.ip_address(THERE) + 1 + number), number)
            async with RdmaDevice(port=port) as device:
                rendezvous = Rendezvous(device)
                try:
                    connection = await rendezvous.connect(HERE, PORT, DOOMED + str(number).encode())
                    connection.write(connection.reg_mr(bytearray(64)), RemoteRange.decode(connection.private_data))
                    self.outcomes["killed"] += 1
                except PeerError as error:
                    self.outcomes[f"to be killed: {error}"] += 1
                finally:
                    port.die()
                    self.deaths[number].set()

    async def ask(self, number: int, room: asyncio.Semaphore) -> None:
        async with room:
            try:
                connection = await self.rendezvous[1].connect(
                    HERE, PORT, REFUSED if number % REFUSED_EVERY == 0 else b""
                )
                await self.use(connection, number)
                if number % 4:
                    await connection.disconnect()
                connection.close()  # without a word to the peer but a DREQ, every fourth time
                self.outcomes["used"] += 1
            except PeerError as error:
                self.outcomes["refused" if number % REFUSED_EVERY == 0 else str(error)] += 1

    async def use(self, connection: RdmaConnection, number: int) -> None:
        there = RemoteRange.decode(connection.private_data)
        values = np.full(64, number + 1, np.uint64)
        mine = connection.reg_mr(values)
        if number % 3:
            await connection.write(mine, there)
        if number % 3 == 2:
            values[:] = 0
            await connection.read(mine, there)
            assert (values == number + 1).all()
        if number % 5 == 0:
            await connection.fetch_add(there[:8], 1)
        if number % 7 == 0:
            await connection.send(mine[:32])

    def settle(self, device: RdmaDevice) -> None:
        """Let an hour pass for the clocks, which have to end by then what nobody waits for."""
        for _ in range(20):
            with device.lock:
                device.nic.on_timer((time.monotonic_ns() + HOUR_NS) * PS_PER_NS)
            while device.progress():  # what the clocks have made goes out
                pass

    def check(self) -> None:
        for device, rendezvous in zip(self.devices, self.rendezvous, strict=True):
            nic, manager = device.nic, rendezvous._manager
            assert nic.ends() == (manager,)
            assert (nic._cqs, nic._srqs, len(nic.memory)) == (0, 0, 0)
            assert (dict(nic._ready), list(nic._events)) == ({}, [])
            assert set(nic._armed) <= {manager.qp_num}  # a wake-up that will find nothing to do
            assert manager.conversations() == ()
            assert (device._callbacks._of_queues, list(device._at_close)) == ({}, [rendezvous])
            assert rendezvous._connections == {}
            assert not any(rendezvous._requests.values())


def alive() -> dict[str, int]:
    gc.collect()
    kinds = Counter(type(each) for each in gc.get_objects() if issubclass(type(each), CLASSES))
    return {kind.__name__: count for kind, count in kinds.items()}


def held() -> tuple[int, int]:
    """Descriptors and threads of this process, without those that only the collector of garbage still knows."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def test_connections_that_come_and_go_leave_nothing(saw: Saw) -> None:
    before = held(), alive()
    ends = Ends(seed=7)
    asyncio.run(ends.run(CONNECTIONS))
    outcomes, harm = ends.outcomes, sum((port.harm for port in ends.ports), Counter())
    del ends
    assert (held(), alive()) == before
    refused = len(range(0, CONNECTIONS, REFUSED_EVERY))
    killed = len(range(0, CONNECTIONS, KILLED_EVERY))
    assert outcomes == {"used": CONNECTIONS - refused, "refused": refused, "killed": killed, "noticed": killed}
    assert min(harm[kind] for kind in ("lost", "reordered", "doubled")) > CONNECTIONS // 20
    saw(CONNECTIONS, ", ".join(f"{kind}: {count}" for kind, count in sorted(harm.items())))
