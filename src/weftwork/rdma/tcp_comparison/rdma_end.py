"""One end of a reliable connection of the software NIC, by the verbs alone.

A queue pair of the client has one of three partners: a program that waits for each message, the NIC alone, or a program
that sleeps until its NIC's thread wakes it.
Source: IBTA vol. 1, chapter 11; perftest for the loads (SEND for latency, WRITEs in a window for bandwidth).
Leaves out: the connection manager; the process that measures exchanges numbers and keys.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.errors import PeerError
from weftwork.rdma.device import RdmaDevice
from weftwork.rdma.tcp_comparison.spans import CountingPort, TimedMessages
from weftwork.rdma.tcp_comparison.tasks import (
    KEY,
    LARGEST_BYTES,
    PATIENCE_S,
    TABLE_BYTES,
    check_value,
    fill_table,
    key_at,
)
from weftwork.rdma.verbs import (
    AccessFlags,
    QpAttr,
    QpState,
    QpType,
    RecvWr,
    SendFlags,
    SendWr,
    Sge,
    Wc,
    WcOpcode,
    WcStatus,
    WrOpcode,
)

if TYPE_CHECKING:
    from weftwork.rdma.tcp_comparison.tasks import Task

__all__ = ["QUEUES", "CountedDevice", "QueueEnd"]

QUEUES: Final = ("program", "nic", "sleeper")  # what answers the client at the other end of each
_IN_AT: Final = TABLE_BYTES  # the table, then a message that arrives, then a message that leaves
_OUT_AT: Final = TABLE_BYTES + LARGEST_BYTES
_MEMORY_BYTES: Final = TABLE_BYTES + 2 * LARGEST_BYTES
_MOST_OUTSTANDING: Final = 64  # chosen: WRITEs on their way; perftest has 128, half of what a queue pair holds here
_TIMEOUT: Final = 19  # chosen: 2.1 s (4.096 us x 2^19): the loopback loses nothing, but a busy machine lets an end wait
_ALL: Final = AccessFlags.LOCAL_WRITE | AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ


class CountedDevice:
    """A device with registered memory, whose system calls are counted.

    Parameters
    ----------
    address : of this machine
    queues : names of its queue pairs, of `QUEUES`
    """

    def __init__(self, address: str, queues: tuple[str, ...]) -> None:
        self.port: Final = CountingPort(address)
        self.device: Final = RdmaDevice(address, port=self.port)
        self.pd: Final = self.device.alloc_pd()
        self.memory: Final = np.zeros(_MEMORY_BYTES, np.uint8)
        self.view: Final = self.memory.data
        self.mr: Final = self.device.reg_mr(self.pd, self.memory, _ALL)
        self.ends: Final = {name: QueueEnd(self) for name in queues}

    def packets(self) -> int:
        """Datagrams that were sent and received so far."""
        return self.port.calls["sendmsg"] + self.port.calls["recvmsg"]


class QueueEnd:
    """A queue pair with its completion queue.

    Parameters
    ----------
    owner : of its memory

    Attributes
    ----------
    completions : that this end has found so far
    """

    def __init__(self, owner: CountedDevice) -> None:
        self.owner: Final = owner
        self.cq: Final = owner.device.create_cq(4 * _MOST_OUTSTANDING)
        self.qp: Final = owner.device.create_qp(owner.pd, QpType.RC, (self.cq, self.cq))
        self.completions = 0
        self._remote: dict[str, Any] = {}
        self._sending = 0

    # The connection

    def describe(self) -> dict[str, Any]:
        """What the other end has to know."""
        address = str(ipaddress.ip_address(self.owner.port.address))
        return {
            "qp_num": self.qp.qp_num,
            "addr": self.owner.mr.addr,
            "rkey": self.owner.mr.rkey,
            "address": address,
        }

    def connect(self, remote: dict[str, Any]) -> None:
        """Take the queue pair to RTS; ``remote`` is what the other end has described."""
        self._remote = remote
        peer = ipaddress.ip_address(remote["address"]).packed
        attr = QpAttr(
            remote_address=peer,
            dest_qp_num=remote["qp_num"],
            path_mtu=self.owner.port.path_mtu(peer),
            timeout=_TIMEOUT,
            qp_access_flags=_ALL,
        )
        for state in (QpState.INIT, QpState.RTR, QpState.RTS):
            self.owner.device.modify_qp(self.qp, state, attr)

    # Posting and waiting

    def _post(self, opcode: WrOpcode, at: int, size_bytes: int, remote_at: int = 0) -> None:
        self._sending += 1
        self.owner.device.post_send(
            self.qp,
            SendWr(
                wr_id=0,
                opcode=opcode,
                sg_list=(Sge(self.owner.mr.addr + at, size_bytes, self.owner.mr.lkey),),
                flags=SendFlags.SIGNALED,
                remote_addr=self._remote["addr"] + remote_at,
                rkey=self._remote["rkey"],
            ),
        )

    def _post_recv(self, size_bytes: int) -> None:
        sge = Sge(self.owner.mr.addr + _IN_AT, size_bytes, self.owner.mr.lkey)
        self.owner.device.post_recv(self.qp, RecvWr(wr_id=1, sg_list=(sge,)))

    def _reap(self, found: list[Wc]) -> int:
        """Take completions; returns how many messages have arrived."""
        arrived = 0
        for wc in found:
            if wc.status is not WcStatus.SUCCESS:
                why = self.owner.port.last_error
                raise PeerError(f"the software NIC of the measurement ended a request with {wc.status.name}. {why}")
            if wc.opcode is WcOpcode.RECV:
                arrived += 1
            else:
                self._sending -= 1
        self.completions += len(found)
        return arrived

    def _wait(self) -> int:
        """Wait for completions; returns how many messages have arrived."""
        if not self.owner.device.wait_cq(self.cq, PATIENCE_S):
            raise PeerError("the software NIC of the measurement waits for its peer in vain")
        return self._reap(self.owner.device.poll_cq(self.cq, _MOST_OUTSTANDING))

    def _drain(self) -> None:
        while self._sending:
            self._wait()

    # The client

    def client(self, task: Task) -> TimedMessages | None:
        """Do the client's part of a load."""
        if task.name == "stream":
            self._stream(task)
            return None
        times = TimedMessages()
        for number in range(task.count):
            begin_ns = time.perf_counter_ns()
            if task.way == "read":
                self._post(WrOpcode.RDMA_READ, _IN_AT, task.size_bytes, key_at(number) * task.size_bytes)
                self._drain()
            elif task.way == "write":
                self._post(WrOpcode.RDMA_WRITE, _OUT_AT, task.size_bytes)
                self._drain()
            else:
                self._ask(task, number)
            if task.name == "get" and task.way != "write":
                check_value(self.owner.view[_IN_AT:_OUT_AT], number)
            times.each_ns.append(time.perf_counter_ns() - begin_ns)
        self._drain()
        return times

    def _ask(self, task: Task, number: int) -> None:
        """Send a message and wait for its answer."""
        self._post_recv(task.size_bytes)
        if task.name == "get":
            KEY.pack_into(self.owner.view, _OUT_AT, key_at(number))
            self._post(WrOpcode.SEND, _OUT_AT, KEY.size)
        else:
            self._post(WrOpcode.SEND, _OUT_AT, task.size_bytes)
        while not self._wait():
            pass

    def _stream(self, task: Task) -> None:
        window = min(_MOST_OUTSTANDING, TABLE_BYTES // task.size_bytes)
        for number in range(task.count):
            while self._sending >= window:
                self._wait()
            at = number % window * task.size_bytes
            self._post(WrOpcode.RDMA_WRITE, at, task.size_bytes, at)
        self._drain()

    # The server

    def prepare(self, task: Task) -> None:
        """Fill the table of a key-value read, and post the first receive."""
        if task.name == "get":
            fill_table(self.owner.view, task.size_bytes)
        if task.way == "send":
            self._post_recv(self._request_bytes(task))

    @staticmethod
    def _request_bytes(task: Task) -> int:
        return KEY.size if task.name == "get" else task.size_bytes

    def server(self, task: Task) -> int:
        """Do the server's part of a two-sided load; returns the number of requests."""
        if task.is_counted:
            return self._serve_asleep(task)
        served = 0
        while served < task.count:
            if self._wait():
                served += 1
                self._answer(task, is_last=served == task.count)
        self._drain()
        return served

    def _serve_asleep(self, task: Task) -> int:
        """Serve as `server`, with packets moved by the device's thread."""
        bell = threading.Event()
        device, served = self.owner.device, 0
        device.on_completion(self.cq, bell.set)
        try:
            while served < task.count or self._sending:
                if not bell.wait(PATIENCE_S):
                    raise PeerError("the software NIC of the measurement waits for its peer in vain")
                bell.clear()
                if self._reap(device.poll_cq(self.cq, _MOST_OUTSTANDING)):
                    served += 1
                    self._answer(task, is_last=served == task.count)
        finally:
            device.on_completion(self.cq, None)
        return served

    def _answer(self, task: Task, *, is_last: bool) -> None:
        at = _IN_AT
        if task.name == "get":
            (key,) = KEY.unpack_from(self.owner.view, _IN_AT)
            at = key * task.size_bytes
        if not is_last:
            self._post_recv(self._request_bytes(task))
        self._post(WrOpcode.SEND, at, task.size_bytes)
