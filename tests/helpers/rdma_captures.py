"""Every operation of the NIC as it goes over the wire between two of them, as frames of a capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weftwork.policies.load import load
from weftwork.rdma.datagram import Datagram, ip_header
from weftwork.rdma.verbs import AccessFlags, AddressHandle, QpType, RecvWr, Sge, WrOpcode
from weftwork.wire.ethernet import ETHERTYPE_IPV4, ETHERTYPE_IPV6, EthernetHeader
from weftwork.wire.udp import ROCE_V2_PORT, UdpHeader

from .rdma_pair import Pair

W = WrOpcode
LONG_BYTES = 700  # three packets of 256, so that there is a first, a middle and a last


def ethernet_frame(datagram: Datagram) -> bytes:
    """A datagram of the NIC with the headers that a driver puts in front."""
    data = bytes(datagram.payload())
    is_ipv4 = len(datagram.source) == 4
    macs = [b"\x02\0\0\0\0" + address[-1:] for address in (datagram.destination, datagram.source)]
    front = EthernetHeader(destination=macs[0], source=macs[1], ethertype=ETHERTYPE_IPV4 if is_ipv4 else ETHERTYPE_IPV6)
    udp = UdpHeader(source_port=datagram.source_port, destination_port=ROCE_V2_PORT, payload_bytes=len(data))
    return front.encode() + ip_header(datagram, len(data)) + udp.encode() + data


def _messages(pair: Pair, sizes: tuple[int, ...], opcodes: tuple[WrOpcode, ...]) -> None:
    for opcode in opcodes:
        for size in sizes:
            pair.post_recv(1, 1, 8192, 1024)
            pair.post(0, opcode, sg_list=(pair.sge(0, 0, size),), imm_data=0xC0FFEE, **pair.remote(0, 4096))


def reliable() -> Pair:
    """Everything that a reliable connection does when nothing goes wrong."""
    pair = Pair()
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


def unreliable() -> Pair:
    """Messages of an unreliable connection."""
    pair = Pair(qp_type=QpType.UC)
    _messages(pair, (8, LONG_BYTES), (W.SEND, W.SEND_WITH_IMM, W.RDMA_WRITE, W.RDMA_WRITE_WITH_IMM))
    return pair


def datagrams() -> Pair:
    """Datagrams with and without immediate."""
    pair = Pair(qp_type=QpType.UD)
    to: dict[str, Any] = {
        "ah": AddressHandle(address=pair.nics[1].address),
        "remote_qpn": pair.qps[1].qp_num,
        "remote_qkey": 0x1234,
    }
    for opcode in (W.SEND, W.SEND_WITH_IMM):
        pair.post_recv(1, 1, 0, 512)
        pair.post(0, opcode, sg_list=(pair.sge(0, 0, 99),), imm_data=7, **to)
    return pair


def congested() -> Pair:
    """A WRITE whose packets are marked, and the CNPs that answer them."""
    pair = Pair(nic={"congestion_control": load("congestion_control", "dcqcn")})
    pair.mark = True
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, LONG_BYTES),), **pair.remote(0, 0))
    return pair


def with_a_loss() -> Pair:
    """A packet is lost: a NAK asks for it."""
    pair = Pair()
    pair.drop = {1}
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, LONG_BYTES),), **pair.remote(0, 0))
    return pair


def without_a_receive() -> Pair:
    """A SEND finds no receive: RNR NAKs, until the sender gives up."""
    pair = Pair(rnr_retry=1)
    pair.post(0, W.SEND, sg_list=(pair.sge(0, 0, 8),))
    return pair


def without_access() -> Pair:
    """A wrong key: remote access error."""
    pair = Pair()
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 8),), remote_addr=pair.mrs[1].addr, rkey=1)
    return pair


def misaligned() -> Pair:
    """An atomic across words: invalid request."""
    pair = Pair()
    pair.post(0, W.ATOMIC_FETCH_AND_ADD, sg_list=(pair.sge(0, 0, 8),), compare_add=1, **pair.remote(0, 4))
    return pair


def into_nowhere() -> Pair:
    """A receive whose memory is not registered: remote operational error."""
    pair = Pair()
    pair.qps[1].post_recv(RecvWr(wr_id=1, sg_list=(Sge(0, 64, 1),)))
    pair.post(0, W.SEND, sg_list=(pair.sge(0, 0, 8),))
    return pair


def over_ipv6() -> Pair:
    """A WRITE over IPv6."""
    pair = Pair(ipv6=True)
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, LONG_BYTES),), **pair.remote(0, 0))
    return pair


CONVERSATIONS: tuple[Callable[[], Pair], ...] = (
    *(reliable, unreliable, datagrams, congested, over_ipv6),
    *(with_a_loss, without_a_receive, without_access, misaligned, into_nowhere),
)


def frames_of(conversation: Callable[[], Pair]) -> list[bytes]:
    """Frames of a conversation between two NICs, from the first to the last."""
    pair = conversation()
    assert pair.run()
    return [ethernet_frame(datagram) for datagram in pair.sent]
