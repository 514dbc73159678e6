"""Multicast: each attached queue pair takes a copy, on a wire in memory and over sockets of several processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.rdma_devices import PATIENCE_S
from helpers.rdma_pair import Pair

from weftwork.base.errors import UsageError
from weftwork.rdma.device import RdmaDevice
from weftwork.rdma.drivers.loopback import LoopbackWire
from weftwork.rdma.drivers.udp import UdpPort
from weftwork.rdma.multicast import MULTICAST_QP
from weftwork.rdma.queue_pair import NicLimits, RdmaQueuePair
from weftwork.rdma.region import LocalRange
from weftwork.rdma.verbs import AddressHandle, QpAttr, QpState, QpType, RecvWr, SendFlags, SendWr, Sge, Wc, WrOpcode

GROUP, OTHER = bytes((230, 0, 0, 1)), bytes((230, 0, 0, 2))
KEY = 0x1234
# An address and a group of this process alone, since tests run side by side.
OWN = divmod(os.getpid() % 60_000, 250)
HERE, OWN_GROUP = "127.{}.{}.41".format(*OWN), bytes((230, *OWN, 41))


def to(group: bytes, **more: Any) -> dict[str, Any]:
    return {"ah": AddressHandle(address=group), "remote_qpn": MULTICAST_QP, "remote_qkey": KEY} | more


# The NIC


def test_every_attached_queue_pair_gets_a_copy() -> None:
    pair = Pair(qp_type=QpType.UD)
    second = pair.connect(QpType.UD)[1]
    receivers = [pair.qps[1], second]
    for number, qp in enumerate(receivers):
        qp.post_recv(RecvWr(wr_id=number, sg_list=(pair.sge(1, 200 * number, 200),)))
    groups = pair.nics[1].groups
    assert groups.attach(receivers[0], GROUP)
    assert not groups.attach(receivers[0], GROUP)  # once more changes nothing
    assert not groups.attach(receivers[1], GROUP)
    pair.buffers[0][:5] = b"hello"
    pair.post(0, WrOpcode.SEND, sg_list=(pair.sge(0, 0, 5),), **to(GROUP))
    assert pair.run()
    found = pair.poll(1)
    assert {(wc.wr_id, wc.byte_len, wc.src_qp, wc.qp_num) for wc in found} == {
        (number, 45, pair.qps[0].qp_num, qp.qp_num) for number, qp in enumerate(receivers)
    }
    for at in (0, 200):
        assert pair.buffers[1][at + 40 : at + 45] == b"hello"
        assert pair.buffers[1][at + 32 : at + 40] == pair.nics[0].address + GROUP  # as the IP header has it
    assert not groups.detach(receivers[0], GROUP)
    assert groups.detach(receivers[1], GROUP)
    pair.post(0, WrOpcode.SEND, sg_list=(pair.sge(0, 0, 5),), **to(GROUP))
    assert pair.run()
    assert pair.poll(1) == []
    assert pair.nics[1].counters == {"no_queue_pair": 1}


def test_a_group_takes_its_own_address_and_the_multicast_queue_pair_alone() -> None:
    pair = Pair(qp_type=QpType.UD)
    pair.nics[1].groups.attach(pair.qps[1], GROUP)
    pair.post_recv(1, 1, 0, 200)
    one = {"sg_list": (pair.sge(0, 0, 5),)}
    pair.post(0, WrOpcode.SEND, **one, **to(OTHER))
    pair.post(0, WrOpcode.SEND, **one, **to(pair.nics[1].address))
    pair.post(0, WrOpcode.SEND, **one, **to(GROUP, remote_qpn=pair.qps[1].qp_num))
    pair.post(0, WrOpcode.SEND, **one, **to(GROUP, remote_qkey=KEY + 1))
    assert pair.run()
    assert pair.poll(1) == []
    assert pair.nics[1].counters == {"no_queue_pair": 2, "malformed": 1}
    assert pair.qps[1].counters == {"qkey_violation": 1}


def test_a_changed_datagram_to_a_group_is_dropped() -> None:
    pair = Pair(qp_type=QpType.UD)
    pair.nics[1].groups.attach(pair.qps[1], GROUP)
    pair.post_recv(1, 1, 0, 200)
    pair.post(0, WrOpcode.SEND, sg_list=(pair.sge(0, 0, 5),), **to(GROUP))
    (made,) = pair.nics[0].datagrams_to_send(0)
    payload = bytearray(made.payload())
    payload[-6] ^= 1
    pair.nics[1].receive(made._replace(parts=(bytes(payload),)), 0)
    assert pair.nics[1].counters == {"rx_icrc_encapsulated": 1}
    assert pair.poll(1) == []


def test_what_cannot_be_attached_is_refused() -> None:
    pair = Pair(limits=NicLimits(max_mcast_grp=2, max_mcast_qp_attach=1))
    groups = pair.nics[0].groups
    with pytest.raises(UsageError, match="qp: found RC, wanted a queue pair of type UD"):
        groups.attach(pair.qps[0], GROUP)
    first, second = (pair.connect(QpType.UD)[0] for _ in range(2))
    for wrong in (bytes((10, 0, 0, 1)), b"\xff\x0e" + bytes(13) + b"\1"):
        with pytest.raises(UsageError, match="wanted an IPv4 multicast address"):
            groups.attach(first, wrong)
    groups.attach(first, GROUP)
    with pytest.raises(UsageError, match="queue pairs of the group: found 1"):
        groups.attach(second, GROUP)
    groups.attach(second, OTHER)
    with pytest.raises(UsageError, match="multicast groups: found 2"):
        groups.attach(first, bytes((230, 0, 0, 3)))
    with pytest.raises(UsageError, match="wanted an attached queue pair"):
        groups.detach(second, GROUP)
    pair.nics[0].destroy_qp(first)
    assert groups.of(first) == ()
    assert groups.attach(second, GROUP)  # there is room again


# Devices


class Member:
    """A device with a datagram queue pair and a receive."""

    def __init__(self, address: str = HERE, **device: Any) -> None:
        self.device = RdmaDevice(address, **device)
        self.pd = self.device.alloc_pd()
        self.cq = self.device.create_cq(16)
        self.qp: RdmaQueuePair = self.device.create_qp(self.pd, QpType.UD, (self.cq, self.cq))
        self.device.modify_qp(self.qp, QpState.INIT, QpAttr(qkey=KEY))
        self.device.modify_qp(self.qp, QpState.RTR)
        self.device.modify_qp(self.qp, QpState.RTS)
        self.buffer = bytearray(512)
        mr = self.device.reg_mr(self.pd, self.buffer)
        self.memory = LocalRange(mr, mr.addr, mr.length)
        self.device.post_recv(self.qp, RecvWr(wr_id=1, sg_list=(self.memory[:256].sge,)))

    def send(self, data: bytes, group: bytes) -> None:
        self.buffer[256 : 256 + len(data)] = data
        piece = self.memory[256 : 256 + len(data)].sge
        more: dict[str, Any] = to(group)
        wr = SendWr(
            wr_id=2,
            opcode=WrOpcode.SEND,
            sg_list=(Sge(piece.addr, piece.length, piece.lkey),),
            flags=SendFlags.SIGNALED,
            **more,
        )
        self.device.post_send(self.qp, wr)

    def next(self) -> Wc:
        assert self.device.wait_cq(self.cq, PATIENCE_S), (self.device.nic.counters, self.device.port.last_error)
        return self.device.poll_cq(self.cq)[0]


@pytest.fixture
def members() -> Iterator[list[Member]]:
    made: list[Member] = []
    yield made
    for member in made:
        member.device.close()


def check(members: list[Member], group: bytes) -> None:
    """The first three are in the group, and the first one sends; the last is not in it and hears nothing."""
    for member in members[:3]:
        member.device.attach_mcast(member.qp, group)
    members[0].send(b"hello", group)
    assert members[0].next().wr_id == 2
    for member in members[:3]:
        assert (member.next().byte_len, member.buffer[40:45]) == (45, b"hello")
    members[0].device.detach_mcast(members[0].qp, group)
    members[1].device.destroy_qp(members[1].qp)
    members[0].send(b"again", group)
    members[0].send(b"thing", members[3].device.port.address)  # behind it, on the same way
    assert [members[0].next().wr_id for _ in range(2)] == [2, 2]
    members[3].device.wait(lambda: members[3].device.nic.counters["no_queue_pair"] > 0, PATIENCE_S)
    assert members[3].device.nic.counters == {"no_queue_pair": 1}
    assert not any(len(member.cq) for member in members)


def test_devices_of_one_address_share_a_group(members: list[Member]) -> None:
    members += [Member() for _ in range(3)]
    members.append(Member("127.{}.{}.42".format(*OWN)))
    check(members, OWN_GROUP)


def test_a_wire_in_memory_carries_multicast(members: list[Member]) -> None:
    wire = LoopbackWire()
    members += [Member(port=wire.open(f"10.0.0.{number}")) for number in range(1, 5)]
    check(members, GROUP)
    members[2].device.close()
    assert wire.groups == {}


SENDER = """
import sys
sys.path[:0] = sys.argv[3:]
from runs.rdma.test_multicast import Member
member = Member(sys.argv[1])
member.send(b"hello", bytes.fromhex(sys.argv[2]))
member.next()
member.device.close()
"""


def test_a_datagram_of_another_process_comes_to_every_process_of_the_group(members: list[Member]) -> None:
    members += [Member(), Member()]
    for member in members:
        member.device.attach_mcast(member.qp, OWN_GROUP)
    done = subprocess.run(
        [sys.executable, "-c", SENDER, HERE, OWN_GROUP.hex(), *sys.path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for member in members:
        assert (member.next().byte_len, member.buffer[40:45]) == (45, b"hello")


def test_a_port_that_cannot_join_leaves_the_queue_pair_outside(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    members.append(Member())
    device, qp = members[0].device, members[0].qp
    with pytest.raises(UsageError, match="wanted an IPv4 multicast address"):
        device.attach_mcast(qp, bytes((10, 0, 0, 1)))

    def refuse(_group: bytes) -> None:
        raise UsageError("the interface has no multicast")

    monkeypatch.setattr(device.port, "join", refuse)
    with pytest.raises(UsageError, match="the interface has no multicast"):
        device.attach_mcast(qp, OWN_GROUP)
    assert device.nic.groups.of(qp) == ()


def test_a_port_for_one_address_alone_says_so() -> None:
    port = UdpPort("127.{}.{}.43".format(*OWN))
    try:
        with pytest.raises(UsageError, match="wanted a device without checks_identification"):
            port.join(OWN_GROUP)
    finally:
        port.close()
