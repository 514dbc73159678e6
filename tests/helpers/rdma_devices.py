"""Two devices on addresses of this machine, with a connected queue pair each."""

from __future__ import annotations

import random
import socket
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from weftwork.rdma.device import RdmaDevice
from weftwork.rdma.region import LocalRange
from weftwork.rdma.verbs import AccessFlags, QpAttr, QpState, QpType, RecvWr, SendFlags, SendWr, Wc, WcStatus, WrOpcode

if TYPE_CHECKING:
    from weftwork.rdma.drivers.port import DatagramPort

ALL = AccessFlags.LOCAL_WRITE | AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ | AccessFlags.REMOTE_ATOMIC
PATIENCE_S = 60.0
SIZE = 300_000


def may_open_packet_sockets() -> bool:
    """Whether this process may send and receive frames."""
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except PermissionError:
        return False
    return True


NEEDS_PACKET_SOCKETS = pytest.mark.skipif(
    not may_open_packet_sockets(), reason="packet sockets take root or CAP_NET_RAW"
)


class DeviceEnd:
    """A device, a queue pair, and a buffer that the peer may use."""

    def __init__(
        self, address: str, *, memory_bytes: int = 1 << 20, qp_type: QpType = QpType.RC, **device: Any
    ) -> None:
        self.device = RdmaDevice(address, **device)
        self.pd = self.device.alloc_pd()
        self.buffer = np.zeros(memory_bytes, np.uint8)
        self.mr = self.device.reg_mr(self.pd, self.buffer, ALL)
        self.memory = LocalRange(self.mr, self.mr.addr, self.mr.length)
        self.cq = self.device.create_cq(1024)
        self.qp = self.device.create_qp(self.pd, qp_type, (self.cq, self.cq))

    @property
    def port(self) -> DatagramPort:
        return self.device.port

    def connect(self, peer: DeviceEnd, **attr: Any) -> None:
        path_mtu = self.port.path_mtu(peer.port.address)
        more = {"path_mtu": path_mtu, "max_rd_atomic": 4, "max_dest_rd_atomic": 4} | attr
        self.to_rts(peer.port.address, peer.qp.qp_num, qp_access_flags=ALL, **more)

    def to_rts(self, address: bytes, qp_num: int, **attr: Any) -> None:
        mine = QpAttr(remote_address=address, dest_qp_num=qp_num, **attr)
        self.device.modify_qp(self.qp, QpState.INIT, mine)
        self.device.modify_qp(self.qp, QpState.RTR)
        self.device.modify_qp(self.qp, QpState.RTS)

    def post(self, opcode: WrOpcode, local: LocalRange, peer: DeviceEnd, at: int = 0, **more: Any) -> None:
        remote = peer.memory[at:].remote
        self.device.post_send(
            self.qp,
            SendWr(
                wr_id=1,
                opcode=opcode,
                sg_list=(local.sge,),
                flags=SendFlags.SIGNALED,
                remote_addr=remote.addr,
                rkey=remote.rkey,
                **more,
            ),
        )

    def post_recv(self, local: LocalRange) -> None:
        self.device.post_recv(self.qp, RecvWr(wr_id=2, sg_list=(local.sge,)))

    def next(self) -> Wc:
        assert self.device.wait_cq(self.cq, PATIENCE_S), (self.qp.counters, self.device.nic.counters)
        return self.device.poll_cq(self.cq)[0]


def join(first: DeviceEnd, second: DeviceEnd, **attr: Any) -> tuple[DeviceEnd, DeviceEnd]:
    """Connect two ends."""
    first.connect(second, **attr)
    second.connect(first, **attr)
    return first, second


def exchange(a: DeviceEnd, b: DeviceEnd) -> None:
    """WRITE, READ, SEND and an atomic, each checked at both ends."""
    source = random.Random(1)
    a.buffer[:SIZE] = np.frombuffer(source.randbytes(SIZE), np.uint8)
    a.post(WrOpcode.RDMA_WRITE, a.memory[:SIZE], b)
    assert a.next().status is WcStatus.SUCCESS
    assert (a.buffer[:SIZE] == b.buffer[:SIZE]).all()
    b.buffer[:SIZE] = np.frombuffer(source.randbytes(SIZE), np.uint8)
    a.post(WrOpcode.RDMA_READ, a.memory[:SIZE], b)
    assert a.next().status is WcStatus.SUCCESS
    assert (a.buffer[:SIZE] == b.buffer[:SIZE]).all()
    b.post_recv(b.memory[SIZE : 2 * SIZE])
    a.post(WrOpcode.SEND, a.memory[:SIZE], b)
    assert a.next().status is WcStatus.SUCCESS
    assert b.next().byte_len == SIZE
    assert (a.buffer[:SIZE] == b.buffer[SIZE : 2 * SIZE]).all()
    b.buffer[:8].view(np.uint64)[0] = 40
    a.post(WrOpcode.ATOMIC_FETCH_AND_ADD, a.memory[:8], b, compare_add=2)
    assert a.next().status is WcStatus.SUCCESS
    assert (a.buffer[:8].view(np.uint64)[0], b.buffer[:8].view(np.uint64)[0]) == (40, 42)
    assert not a.device.nic.counters
    assert not b.device.nic.counters
