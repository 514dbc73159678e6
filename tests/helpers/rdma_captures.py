"""Every operation of the NIC as it goes over the wire between two of them, as frames of a capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from helpers.rdma_encapsulations import captured_packet

from weftwork.policies.load import load
from weftwork.rdma.datagram import Datagram
from weftwork.rdma.encapsulation import ROCE_V2, Encapsulation
from weftwork.rdma.verbs import AccessFlags, AddressHandle, QpType, RecvWr, Sge, WrOpcode
from weftwork.wire.pcap import CapturedPacket

from .rdma_pair import Pair

W = WrOpcode
LONG_BYTES = 700  # three packets of 256, so that there is a first, a middle and a last


def ethernet_frame(datagram: Datagram) -> bytes:
    """A datagram of the NIC over RoCEv2 with the headers that a driver puts in front."""
    return bytes(captured_packet(datagram).data)


def _messages(pair: Pair, sizes: tuple[int, ...], opcodes: tuple[WrOpcode, ...]) -> None:
    for opcode in opcodes:
        for size in sizes:
            pair.post_recv(1, 1, 8192, 1024)
            pair.post(0, opcode, sg_list=(pair.sge(0, 0, size),), imm_data=0xC0FFEE, **pair.remote(0, 4096))


def reliable(**more: Any) -> Pair:
    """Everything that a reliable connection does when nothing goes wrong."""
    pair = Pair(**more)
    _messages(pair, (8, LONG_BYTES), (W.SEND, W.SEND_WITH_IMM, W.RDMA_WRITE, W.RDMA_WRITE_WITH_IMM))
    for size in (8, LONG_BYTES):
        memory, region = pair.nics[1].memory, pair.mrs[1]
        window = memory.allocate_window(pair.pds[1], 2)
        assert memory.bind(window, region, (region.addr, 64), AccessFlags.REMOTE_WRITE, pair.qps[1].qp_num)
        pair.post_recv(1, 1, 8192, 1024)
        pair.post(0, W.SEND_WITH_INV, sg_list=(pair.sge(0, 0, size),), invalidate_rkey=window.rkey)
        pair.post(0, W.RDMA_READ, sg_list=(pair.sge(0, 0, size),), **pair.remote(0, 0))
    for opcode in (W.ATOMIC_CMP_AND_SWP, W.ATOMIC_FETCH_AND_ADD, W.ATOMIC_WRITE):
        pair.post(0, opcode, sg_list=(pair.sge(0, 0, 8),), compare_add=1, swap=2, **pair.remote(0, 0))
    pair.post(0, W.FLUSH, flush_bytes=64, **pair.remote(0, 0))
    pair.post(0, W.RDMA_WRITE, **pair.remote(0, 0))  # of nothing
    return pair


def unreliable(**more: Any) -> Pair:
    """Messages of an unreliable connection."""
    pair = Pair(qp_type=QpType.UC, **more)
    _messages(pair, (8, LONG_BYTES), (W.SEND, W.SEND_WITH_IMM, W.RDMA_WRITE, W.RDMA_WRITE_WITH_IMM))
    return pair


def datagrams(**more: Any) -> Pair:
    """Datagrams with and without immediate."""
    pair = Pair(qp_type=QpType.UD, **more)
    to: dict[str, Any] = {
        "ah": AddressHandle(address=pair.nics[1].address),
        "remote_qpn": pair.qps[1].qp_num,
        "remote_qkey": 0x1234,
    }
    for opcode in (W.SEND, W.SEND_WITH_IMM):
        pair.post_recv(1, 1, 0, 512)
        pair.post(0, opcode, sg_list=(pair.sge(0, 0, 99),), imm_data=7, **to)
    return pair


def congested(**more: Any) -> Pair:
    """A WRITE whose packets are marked, and the CNPs that answer them."""
    pair = Pair(nic={"congestion_control": load("congestion_control", "dcqcn")}, **more)
    pair.mark = True
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, LONG_BYTES),), **pair.remote(0, 0))
    return pair


def with_a_loss(**more: Any) -> Pair:
    """A packet is lost: a NAK asks for it."""
    pair = Pair(**more)
    pair.drop = {1}
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, LONG_BYTES),), **pair.remote(0, 0))
    return pair


def without_a_receive(**more: Any) -> Pair:
    """A SEND finds no receive: RNR NAKs, until the sender gives up."""
    pair = Pair(rnr_retry=1, **more)
    pair.post(0, W.SEND, sg_list=(pair.sge(0, 0, 8),))
    return pair


def without_access(**more: Any) -> Pair:
    """A wrong key: remote access error."""
    pair = Pair(**more)
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 8),), remote_addr=pair.mrs[1].addr, rkey=1)
    return pair


def misaligned(**more: Any) -> Pair:
    """An atomic across words: invalid request."""
    pair = Pair(**more)
    pair.post(0, W.ATOMIC_FETCH_AND_ADD, sg_list=(pair.sge(0, 0, 8),), compare_add=1, **pair.remote(0, 4))
    return pair


def into_nowhere(**more: Any) -> Pair:
    """A receive whose memory is not registered: remote operational error."""
    pair = Pair(**more)
    pair.qps[1].post_recv(RecvWr(wr_id=1, sg_list=(Sge(0, 64, 1),)))
    pair.post(0, W.SEND, sg_list=(pair.sge(0, 0, 8),))
    return pair


def over_ipv6(**more: Any) -> Pair:
    """A WRITE over IPv6."""
    pair = Pair(ipv6=True, **more)
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, LONG_BYTES),), **pair.remote(0, 0))
    return pair


CONVERSATIONS: tuple[Callable[..., Pair], ...] = (
    *(reliable, unreliable, datagrams, congested, over_ipv6),
    *(with_a_loss, without_a_receive, without_access, misaligned, into_nowhere),
)


def frames_of(conversation: Callable[..., Pair]) -> list[bytes]:
    """Frames of a conversation between two NICs over RoCEv2, from the first to the last."""
    return [bytes(packet.data) for packet in packets_of(conversation)]


def packets_of(conversation: Callable[..., Pair], encapsulation: Encapsulation = ROCE_V2) -> list[CapturedPacket]:
    """Packets of a conversation between two NICs, from the first to the last."""
    pair = conversation(encapsulation=encapsulation)
    assert pair.run()
    return [captured_packet(datagram, encapsulation, 1000 * number) for number, datagram in enumerate(pair.sent)]
