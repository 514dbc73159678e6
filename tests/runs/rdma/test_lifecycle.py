"""Devices and connections come and go: nobody waits for ever, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.rdma_devices import PATIENCE_S

from weftwork import rdma
from weftwork.base.errors import PeerError, UsageError
from weftwork.rdma.drivers.loopback import LoopbackWire
from weftwork.rdma.verbs import RecvWr, WcStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from weftwork.rdma.connection import RdmaConnection

PORT = 7472
ALL = rdma.AccessFlags.REMOTE_WRITE | rdma.AccessFlags.REMOTE_READ | rdma.AccessFlags.REMOTE_ATOMIC


class Meeting:
    """Two devices of asyncio on a wire in memory, and what finds their connections."""

    def __init__(self) -> None:
        wire = LoopbackWire()
        self.devices = [rdma.RdmaDevice(text, port=wire.open(text)) for text in ("10.0.0.1", "10.0.0.2")]
        self.here, self.there = (rdma.Rendezvous(device) for device in self.devices)
        self.there.listen(PORT)

    async def connect(self) -> tuple[RdmaConnection, RdmaConnection]:
        asking = self.here.connect("10.0.0.2", PORT)
        there = await self.there.get_request(PORT)
        await there.accept()
        return await asking, there

    def objects(self) -> list[tuple[int, int, int]]:
        """Queue pairs, completion queues and regions of each device."""
        return [(len(device.nic._qps), device.nic._cqs, len(device.nic.memory)) for device in self.devices]


async def turns() -> None:
    """Let what is on its way arrive."""
    for _ in range(20):
        await asyncio.sleep(0)


def meet(talk: Callable[[Meeting], Awaitable[None]]) -> None:
    async def run() -> None:
        mistakes: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: mistakes.append(context))
        meeting = Meeting()
        async with meeting.devices[0], meeting.devices[1]:
            await talk(meeting)
        assert not mistakes

    asyncio.run(asyncio.wait_for(run(), 10))


def test_a_connection_that_is_closed_ends_its_work_and_tells_the_peer() -> None:
    async def talk(meeting: Meeting) -> None:
        before = meeting.objects()
        here, there = await meeting.connect()
        waiting = here.recv(here.reg_mr(bytearray(8)))
        here.close()
        here.close()
        with pytest.raises(rdma.WorkError, match="WR_FLUSH_ERR"):
            await waiting
        await there.closed
        there.close()
        assert meeting.objects() == before

    meet(talk)


def test_a_receive_behind_the_end_is_flushed() -> None:
    async def talk(meeting: Meeting) -> None:
        here, there = await meeting.connect()
        region = there.reg_mr(bytearray(8))
        await here.disconnect()
        await there.closed
        with pytest.raises(rdma.WorkError, match="WR_FLUSH_ERR"):
            await there.recv(region)

    meet(talk)


def test_every_one_of_many_requests_ends() -> None:
    async def talk(meeting: Meeting) -> None:
        here, there = await meeting.connect()
        region = there.reg_mr(bytearray(8), ALL)
        mine = here.reg_mr(bytearray(8))
        works = [here.write(mine, region.remote) for _ in range(6000)]
        here.disconnect()
        ends = await asyncio.gather(*(asyncio.ensure_future(_end(work)) for work in works))
        busy = {WcStatus.RETRY_EXC_ERR}  # a machine that acknowledges nothing for half a second
        assert set(ends) <= {WcStatus.SUCCESS, WcStatus.WR_FLUSH_ERR} | busy

    async def _end(work: rdma.Work[rdma.Wc]) -> WcStatus:
        try:
            return (await work).status
        except rdma.WorkError as error:
            return error.wc.status

    meet(talk)


def test_refused_connections_leave_nothing_behind() -> None:
    async def talk(meeting: Meeting) -> None:
        before = meeting.objects()
        for port in (PORT, PORT + 1):
            asking = meeting.here.connect("10.0.0.2", port)
            if port == PORT:
                (await meeting.there.get_request(port)).reject()
            with pytest.raises(PeerError):
                await asking
        assert meeting.objects() == before
        assert not meeting.here._connections
        assert not meeting.there._connections

    meet(talk)


def test_a_request_that_finds_no_room_leaves_nothing_behind() -> None:
    async def talk(meeting: Meeting) -> None:
        nic = meeting.devices[1].nic
        nic.limits = type(nic.limits)(max_qp=1)
        before = meeting.objects()
        with pytest.raises(PeerError):
            await meeting.here.connect("10.0.0.2", PORT)
        assert meeting.objects() == before

    meet(talk)


def test_a_request_that_nobody_waits_for_any_more_is_not_lost() -> None:
    async def talk(meeting: Meeting) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(meeting.there.get_request(PORT), 0.01)
        here, there = await meeting.connect()
        assert here.qp.attr.dest_qp_num == there.qp.qp_num

    meet(talk)


def test_a_request_that_is_withdrawn_is_not_given_out() -> None:
    async def talk(meeting: Meeting) -> None:
        asking = meeting.here.connect("10.0.0.2", PORT)
        connection = next(iter(meeting.here._connections.values()))
        await turns()
        assert meeting.there._requests[PORT]
        connection.disconnect()
        await turns()
        with pytest.raises(PeerError, match="closed here"):
            await asking
        here, there = await meeting.connect()
        assert here.qp.attr.dest_qp_num == there.qp.qp_num

    meet(talk)


def test_completions_of_the_verbs_are_nobody_s_work() -> None:
    async def talk(meeting: Meeting) -> None:
        here, there = await meeting.connect()
        region = there.reg_mr(bytearray(8), ALL)
        there.device.post_recv(there.qp, RecvWr(wr_id=99, sg_list=(region.sge,)))
        await here.send(here.reg_mr(bytearray(8)))
        await here.write(here.reg_mr(bytearray(8)), region.remote)

    meet(talk)


def test_an_atomic_that_cannot_be_posted_keeps_no_room() -> None:
    async def talk(meeting: Meeting) -> None:
        here, there = await meeting.connect()
        remote = there.reg_mr(bytearray(16), ALL).remote
        with pytest.raises(UsageError, match="8 local bytes for 4 of the peer"):
            here.fetch_add(remote[:4], 1)
        here.device.modify_qp(here.qp, rdma.QpState.RESET)
        for _ in range(200):
            with pytest.raises(UsageError, match="state: found"):
                here.fetch_add(remote, 1)

    meet(talk)


def test_a_device_that_closes_ends_what_is_waited_for() -> None:
    async def talk() -> None:
        meeting = Meeting()
        async with meeting.devices[0]:
            async with meeting.devices[1]:
                _, there = await meeting.connect()
                receive = there.recv(there.reg_mr(bytearray(8)))
                request = meeting.there.get_request(PORT)
            with pytest.raises(PeerError):
                await receive
            with pytest.raises(PeerError, match="closed here"):
                await request
            await there.closed

    asyncio.run(asyncio.wait_for(talk(), 10))


def test_a_peer_hears_that_a_device_closes() -> None:
    async def talk() -> None:
        meeting = Meeting()
        async with meeting.devices[0]:
            async with meeting.devices[1]:
                here, _ = await meeting.connect()
            await here.closed

    asyncio.run(asyncio.wait_for(talk(), 10))


def test_a_thread_that_waits_hears_that_another_closes_the_device() -> None:
    wire = LoopbackWire()
    errors: list[Exception] = []
    with rdma.RdmaDevice("10.0.0.1", port=wire.open("10.0.0.1")) as device:
        asked = threading.Event()

        def wait() -> None:
            try:
                device.wait(asked.set)  # type: ignore[arg-type]
            except UsageError as error:
                errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        assert asked.wait(PATIENCE_S)
    thread.join(10)
    assert not thread.is_alive()
    assert "closed" in str(errors[0])


@pytest.mark.parametrize("has_thread", [True, False])
def test_a_callback_may_close_its_device(*, has_thread: bool) -> None:
    wire = LoopbackWire()
    device = rdma.RdmaDevice("10.0.0.1", port=wire.open("10.0.0.1"))
    seen = threading.Event()

    def end() -> None:
        device.close()
        seen.set()

    device.after_step(end)
    if has_thread:
        device.__enter__()
    else:
        device.progress()
    assert seen.wait(10)
    device.closed.wait(10)
    assert not wire.ports
    assert not [thread for thread in threading.enumerate() if thread.name == "weftwork-rdma"]


def test_a_callback_may_not_wait() -> None:
    wire = LoopbackWire()
    refused = pytest.raises(UsageError, match="wait: found it called by a function that the device calls")
    with rdma.RdmaDevice("10.0.0.1", port=wire.open("10.0.0.1")) as device, device.lock, refused:
        device.wait(lambda: True)


def test_a_device_that_nobody_closes_keeps_no_descriptor() -> None:
    gc.freeze()  # what the tests before have left is looked through no more
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        rdma.RdmaDevice("10.0.0.1", port=LoopbackWire().open("10.0.0.1"))
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_work_that_ends_behind_its_loop_is_no_error() -> None:
    class Nobody:
        def wait(self, until: Callable[[], bool], timeout_s: float | None) -> bool:
            del timeout_s
            return until()

    work: rdma.Work[int] = rdma.Work(Nobody())

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(work, 0.001)

    asyncio.run(give_up())
    work.succeed(3)
    assert work.result() == 3


def test_a_request_from_where_no_way_leads_back_is_refused() -> None:
    def no_way(_: bytes) -> int:
        raise UsageError("address: no way")

    async def talk(meeting: Meeting) -> None:
        meeting.there._manager._path_mtu = no_way  # type: ignore[misc]
        with pytest.raises(PeerError, match="UNSUPPORTED"):
            await meeting.here.connect("10.0.0.2", PORT)
        assert meeting.devices[1].nic.next_event() is None

    meet(talk)
