"""The software NIC against rxe, the RoCEv2 of Linux, with the programs and the Python module of rdma-core.

`kernel_in_qemu.py` runs these tests where the own kernel has no RDMA.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Self

import numpy as np
import pytest
from helpers.kernel_nic import PATIENCE_S, KernelNic, PyverbsEnd, why_no, why_no_program, why_no_pyverbs
from helpers.rdma_devices import ALL, DeviceEnd
from helpers.rping import ping_rping, serve_rping

from weftwork import rdma
from weftwork.rdma.verbs import (
    AddressHandle,
    QpAttr,
    QpState,
    QpType,
    SendFlags,
    SendWr,
    Wc,
    WcOpcode,
    WcStatus,
    WrOpcode,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

WHY_NOT = why_no("rxe")
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")
NO_PROGRAM = WHY_NOT or why_no_program("rping")
NO_PYVERBS = WHY_NOT or why_no_pyverbs()
needs_programs = pytest.mark.skipif(NO_PROGRAM is not None, reason=NO_PROGRAM or "")
needs_pyverbs = pytest.mark.skipif(NO_PYVERBS is not None, reason=NO_PYVERBS or "")

PORT = 7174
PINGS = 5
QKEY = 0x11111111
MEMORY_BYTES = 1 << 18
LENGTHS = (0, 1, 1023, 1024, 1025, 40_000)
GRH_BYTES = 40


@pytest.fixture
def nic() -> Iterator[KernelNic]:
    with KernelNic("rxe") as made:
        yield made


def device_at(address: str) -> rdma.RdmaDevice:
    """Rxe numbers its IPv4 packets, and a UDP socket hides the number that the ICRC covers."""
    return rdma.RdmaDevice(address, checks_identification=":" not in address)


class Both:
    """A queue pair of Weftwork and one of rxe, connected without a connection manager."""

    def __init__(self, nic: KernelNic, kind: QpType = QpType.RC, path_mtu: int = 1024, **attr: int) -> None:
        self.nic = nic
        self.peer = PyverbsEnd(nic, kind.name, MEMORY_BYTES)
        self.mine = DeviceEnd(nic.peer_address, memory_bytes=MEMORY_BYTES, checks_identification=True)
        self.gid = IPv6Address(f"::ffff:{nic.peer_address}").exploded  # the only form that pyverbs reads
        if kind is not QpType.RC:
            self.mine.qp = self.mine.device.create_qp(self.mine.pd, kind, (self.mine.cq, self.mine.cq))
        here = QpAttr(
            remote_address=IPv4Address(nic.address).packed,
            dest_qp_num=self.peer.qp_num,
            path_mtu=path_mtu,
            rq_psn=0xFFFFF0,  # wraps within a few packets
            sq_psn=0x123456,
            max_rd_atomic=4,
            max_dest_rd_atomic=4,
            qp_access_flags=ALL,
            qkey=QKEY,
        )
        for state in (QpState.INIT, QpState.RTR, QpState.RTS):
            self.mine.device.modify_qp(self.mine.qp, state, here)
        there = {"rq_psn": 0x123456, "sq_psn": 0xFFFFF0}
        if kind is QpType.RC:
            there |= {"max_rd_atomic": 4, "max_dest_rd_atomic": 4, "timeout": 17, "retry_cnt": 7, "rnr_retry": 7}
            there |= {"min_rnr_timer": 12}
        if kind is QpType.UD:
            there = {"qkey": QKEY}
        self.peer.do("connect", gid=self.gid, qp_num=self.mine.qp.qp_num, path_mtu=path_mtu, **(there | attr))

    def __enter__(self) -> Self:
        self.mine.device.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        counters = {name: value for name, value in self.mine.device.nic.counters.items() if value}
        seen = f"NIC {counters}, queue pair {dict(self.mine.qp.counters)}, rxe {self.nic.counters}"
        self.mine.device.close()
        assert kind is not None or counters == {}, seen

    def post(self, opcode: WrOpcode, length: int, **more: int) -> Wc:
        """Weftwork asks rxe; its completion."""
        self.mine.device.post_send(
            self.mine.qp,
            SendWr(
                wr_id=1,
                opcode=opcode,
                sg_list=(self.mine.memory[:length].sge,),
                flags=SendFlags.SIGNALED,
                **({"remote_addr": self.peer.addr, "rkey": self.peer.rkey} | more),
            ),
        )
        return self.mine.next()

    def ask(self, opcode: WrOpcode, length: int, **more: int) -> dict[str, int]:
        """Rxe asks Weftwork; its completion."""
        remote = {"remote_addr": self.mine.mr.addr, "rkey": self.mine.mr.rkey} | more
        self.peer.do("post", opcode=int(opcode), at=0, length=length, **remote)
        return self.peer.do("wait")


def pattern(length: int, seed: int = 1) -> bytes:
    return bytes((at * 7 + at // 251 + seed) & 0xFF for at in range(length))


@needs_programs
@pytest.mark.parametrize("ipv6", [False, True], ids=["IPv4", "IPv6"])
def test_weftwork_pings_rping(*, ipv6: bool) -> None:
    with KernelNic("rxe", ipv6=ipv6) as nic:
        server = nic.listening("rping", "-s", "-a", nic.address, "-v", "-C", str(PINGS), port=PORT)
        device = device_at(nic.peer_address)
        ping_rping(rdma.RdmaConnector(device, nic.address, PORT), server, PINGS)
        assert dict(device.nic.counters) == {}


@needs_programs
@pytest.mark.parametrize("ipv6", [False, True], ids=["IPv4", "IPv6"])
def test_rping_pings_weftwork(*, ipv6: bool) -> None:
    with KernelNic("rxe", ipv6=ipv6) as nic, rdma.RdmaListener(device_at(nic.peer_address), PORT) as listener:
        client = nic.start("rping", "-c", "-a", nic.peer_address, "-v", "-V", "-C", str(PINGS))
        serve_rping(listener, client, PINGS)
        assert dict(listener.device.nic.counters) == {}


@needs_programs
def test_the_command_pings_rping() -> None:
    with KernelNic("rxe", ipv6=True) as nic:
        nic.listening("rping", "-s", "-a", nic.address, "-C", "2", port=PORT)
        words = ("rdma", "ping", nic.address, "--count", "2", "--interval", "0", "--json")
        program = [sys.executable, "-c", "from weftwork.cli import main; main()", *words]
        done = subprocess.run(program, check=False, capture_output=True, text=True, timeout=2 * PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert (json.loads(done.stdout)["sent"], json.loads(done.stdout)["verified"]) == (2, 2)


@needs_programs
def test_rping_learns_that_it_is_refused(nic: KernelNic) -> None:
    with device_at(nic.peer_address) as device:
        rdma.Rendezvous(device)  # on no port
        client = nic.start("rping", "-c", "-a", nic.peer_address, "-C", "1")
        told, _ = client.communicate(timeout=PATIENCE_S)
    assert client.returncode != 0
    assert "RDMA_CM_EVENT_REJECTED" in told


def test_weftwork_learns_that_nobody_listens(nic: KernelNic) -> None:
    with device_at(nic.peer_address) as device, pytest.raises(rdma.PeerError, match="nobody listens on this port"):
        rdma.Rendezvous(device).connect(nic.address, PORT).wait(PATIENCE_S)


@needs_programs
def test_without_a_raw_socket_weftwork_learns_that_rxe_numbers_its_ipv4_packets(nic: KernelNic) -> None:
    nic.listening("rping", "-s", "-a", nic.address, "-C", "1", port=PORT)
    with rdma.RdmaDevice(nic.peer_address) as device, pytest.raises(rdma.PeerError, match="with a wrong ICRC"):
        rdma.Rendezvous(device).connect(nic.address, PORT).wait(PATIENCE_S)


@needs_pyverbs
@pytest.mark.parametrize("path_mtu", [256, 1024])
def test_weftwork_writes_and_reads(nic: KernelNic, path_mtu: int) -> None:
    with Both(nic, path_mtu=path_mtu) as both:
        for length in LENGTHS:
            data = pattern(length)
            both.mine.buffer[:length] = list(data)
            assert both.post(WrOpcode.RDMA_WRITE, length).status is WcStatus.SUCCESS
            assert both.peer.do("read", at=0, length=length) == data.hex()
            both.mine.buffer[:] = 0
            assert both.post(WrOpcode.RDMA_READ, length).status is WcStatus.SUCCESS
            assert both.mine.buffer[:length].tobytes() == data
            assert not both.mine.buffer[length:].any()


@needs_pyverbs
@pytest.mark.parametrize("path_mtu", [256, 1024])
def test_rxe_writes_and_reads(nic: KernelNic, path_mtu: int) -> None:
    with Both(nic, path_mtu=path_mtu) as both:
        for length in LENGTHS:
            data = pattern(length)
            both.peer.do("write", at=0, data=data.hex())
            both.mine.buffer[:] = 0
            assert both.ask(WrOpcode.RDMA_WRITE, length)["status"] == WcStatus.SUCCESS
            assert both.mine.buffer[:length].tobytes() == data
            assert not both.mine.buffer[length:].any()
            both.peer.do("write", at=0, data=bytes(length).hex())
            assert both.ask(WrOpcode.RDMA_READ, length)["status"] == WcStatus.SUCCESS
            assert both.peer.do("read", at=0, length=length) == data.hex()


@needs_pyverbs
def test_a_wire_of_9000_bytes_takes_packets_of_4096() -> None:
    with KernelNic("rxe", mtu=9000) as nic, Both(nic, path_mtu=4096) as both:
        data = pattern(100_000)
        both.mine.buffer[: len(data)] = list(data)
        assert both.mine.device.port.path_mtu(IPv4Address(nic.address).packed) == 4096
        assert both.post(WrOpcode.RDMA_WRITE, len(data)).status is WcStatus.SUCCESS
        assert both.peer.do("read", at=0, length=len(data)) == data.hex()
        both.mine.buffer[:] = 0
        assert both.ask(WrOpcode.RDMA_WRITE, len(data))["status"] == WcStatus.SUCCESS
        assert both.mine.buffer[: len(data)].tobytes() == data


@needs_pyverbs
def test_atomics_both_ways(nic: KernelNic) -> None:
    with Both(nic) as both:
        numbers = both.mine.buffer.view(np.uint64)
        both.peer.do("write", at=64, data=(1 << 40).to_bytes(8, "little").hex())
        at = both.peer.addr + 64
        for opcode, compare_add, swap, found, left in (
            (WrOpcode.ATOMIC_FETCH_AND_ADD, 2, 0, 1 << 40, (1 << 40) + 2),
            (WrOpcode.ATOMIC_CMP_AND_SWP, 5, 9, (1 << 40) + 2, (1 << 40) + 2),
            (WrOpcode.ATOMIC_CMP_AND_SWP, (1 << 40) + 2, 9, (1 << 40) + 2, 9),
        ):
            completion = both.post(opcode, 8, remote_addr=at, compare_add=compare_add, swap=swap)
            assert (completion.status, int(numbers[0])) == (WcStatus.SUCCESS, found)
            assert both.peer.do("read", at=64, length=8) == left.to_bytes(8, "little").hex()
        numbers[8] = 1 << 40
        at = both.mine.mr.addr + 64
        for opcode, compare_add, swap, found, left in (
            (WrOpcode.ATOMIC_FETCH_AND_ADD, 2, 0, 1 << 40, (1 << 40) + 2),
            (WrOpcode.ATOMIC_CMP_AND_SWP, 5, 9, (1 << 40) + 2, (1 << 40) + 2),
            (WrOpcode.ATOMIC_CMP_AND_SWP, (1 << 40) + 2, 9, (1 << 40) + 2, 9),
        ):
            told = both.ask(opcode, 8, remote_addr=at, compare_add=compare_add, swap=swap)
            assert told["status"] == WcStatus.SUCCESS
            assert both.peer.do("read", at=0, length=8) == found.to_bytes(8, "little").hex()
            assert int(numbers[8]) == left


@needs_pyverbs
@pytest.mark.parametrize("kind", [QpType.RC, QpType.UC], ids=lambda kind: kind.name)
def test_messages_both_ways(nic: KernelNic, kind: QpType) -> None:
    data = pattern(3000)
    with Both(nic, kind) as both:
        both.peer.do("recv", at=0, length=4096)
        both.mine.buffer[: len(data)] = list(data)
        assert both.post(WrOpcode.SEND_WITH_IMM, len(data), imm_data=0x01020304).status is WcStatus.SUCCESS
        told = both.peer.do("wait")
        assert (told["status"], told["opcode"], told["byte_len"]) == (WcStatus.SUCCESS, WcOpcode.RECV, len(data))
        assert socket.ntohl(told["imm_data"]) == 0x01020304
        assert both.peer.do("read", at=0, length=len(data)) == data.hex()

        both.mine.buffer[:] = 0
        both.mine.post_recv(both.mine.memory[8192:16384])
        assert both.ask(WrOpcode.SEND_WITH_IMM, len(data), imm_data=socket.htonl(77))["status"] == WcStatus.SUCCESS
        received = both.mine.next()
        assert (received.status, received.opcode, received.byte_len) == (WcStatus.SUCCESS, WcOpcode.RECV, len(data))
        assert received.imm_data == 77
        assert both.mine.buffer[8192 : 8192 + len(data)].tobytes() == data

        both.peer.do("recv", at=0, length=0)
        assert both.post(WrOpcode.RDMA_WRITE_WITH_IMM, 2000, imm_data=5).status is WcStatus.SUCCESS
        assert both.peer.do("wait")["opcode"] == WcOpcode.RECV_RDMA_WITH_IMM
        assert both.peer.do("read", at=0, length=2000) == bytes(2000).hex()


@needs_pyverbs
def test_datagrams_both_ways(nic: KernelNic) -> None:
    data = pattern(900)
    with Both(nic, QpType.UD) as both:
        both.peer.do("recv", at=0, length=GRH_BYTES + 1024)
        both.mine.buffer[: len(data)] = list(data)
        to = {"ah": AddressHandle(address=IPv4Address(nic.address).packed), "remote_qpn": both.peer.qp_num}
        assert both.post(WrOpcode.SEND, len(data), **to, remote_qkey=QKEY).status is WcStatus.SUCCESS
        told = both.peer.do("wait")
        assert (told["status"], told["byte_len"]) == (WcStatus.SUCCESS, GRH_BYTES + len(data))
        assert told["src_qp"] == both.mine.qp.qp_num
        assert both.peer.do("read", at=GRH_BYTES, length=len(data)) == data.hex()

        both.mine.post_recv(both.mine.memory[4096:8192])
        both.peer.do("write", at=0, data=data.hex())
        send = {"opcode": int(WrOpcode.SEND), "at": 0, "length": len(data), "gid": both.gid}
        both.peer.do("post", **send, remote_qpn=both.mine.qp.qp_num, remote_qkey=QKEY)
        assert both.peer.do("wait")["status"] == WcStatus.SUCCESS
        received = both.mine.next()
        assert (received.status, received.byte_len) == (WcStatus.SUCCESS, GRH_BYTES + len(data))
        assert received.src_qp == both.peer.qp_num
        assert both.mine.buffer[4096 + GRH_BYTES : 4096 + GRH_BYTES + len(data)].tobytes() == data


@needs_pyverbs
def test_a_wrong_key_is_refused_by_both(nic: KernelNic) -> None:
    with Both(nic) as both:
        assert both.post(WrOpcode.RDMA_WRITE, 64, rkey=both.peer.rkey ^ 0x5500).status is WcStatus.REM_ACCESS_ERR
    with Both(nic) as both:
        told = both.ask(WrOpcode.RDMA_READ, 64, rkey=both.mine.mr.rkey ^ 0x5500)
        assert told["status"] == WcStatus.REM_ACCESS_ERR


@needs_pyverbs
def test_a_message_waits_for_a_receive(nic: KernelNic) -> None:
    """The receiver answers RNR NAK until it has a receive."""
    with Both(nic) as both:
        both.mine.buffer[:100] = 7
        send = SendWr(wr_id=1, opcode=WrOpcode.SEND, sg_list=(both.mine.memory[:100].sge,), flags=SendFlags.SIGNALED)
        both.mine.device.post_send(both.mine.qp, send)
        assert both.mine.device.wait(lambda: both.mine.qp.counters["rnr_nak"] > 0, PATIENCE_S)
        both.peer.do("recv", at=0, length=100)
        assert both.mine.next().status is WcStatus.SUCCESS
        assert both.peer.do("wait")["byte_len"] == 100

        both.peer.do("post", opcode=int(WrOpcode.SEND), at=0, length=100)
        assert both.mine.device.wait(lambda: both.mine.qp.counters["rnr_nak_sent"] > 0, PATIENCE_S)
        both.mine.post_recv(both.mine.memory[200:300])
        assert both.mine.next().byte_len == 100
        assert both.peer.do("wait")["status"] == WcStatus.SUCCESS
        assert (both.mine.buffer[200:300] == 7).all()


@needs_pyverbs
def test_what_a_lossy_wire_loses_is_sent_again(nic: KernelNic) -> None:
    data = pattern(200_000)
    with Both(nic, timeout=15) as both:
        both.mine.buffer[: len(data)] = list(data)
        nic.lose(2)
        assert both.post(WrOpcode.RDMA_WRITE, len(data)).status is WcStatus.SUCCESS
        assert both.peer.do("read", at=0, length=len(data)) == data.hex()
        both.mine.buffer[:] = 0
        assert both.post(WrOpcode.RDMA_READ, len(data)).status is WcStatus.SUCCESS
        assert both.mine.buffer[: len(data)].tobytes() == data
        both.mine.buffer[:] = 0
        assert both.ask(WrOpcode.RDMA_WRITE, len(data))["status"] == WcStatus.SUCCESS
        assert both.mine.buffer[: len(data)].tobytes() == data
        both.peer.do("write", at=0, data=bytes(len(data)).hex())
        assert both.ask(WrOpcode.RDMA_READ, len(data))["status"] == WcStatus.SUCCESS
        assert both.peer.do("read", at=0, length=len(data)) == data.hex()
        noticed = both.mine.qp.counters["packet_seq_err"] + both.mine.qp.counters["implied_nak_seq_err"]
        assert noticed + both.mine.qp.counters["local_ack_timeout_err"] + nic.counters.get("completer_retry_err", 0) > 0
