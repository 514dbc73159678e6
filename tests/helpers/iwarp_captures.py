"""Conversations of iWARP, and captures of their streams."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from helpers.iwarp_pair import IwarpPair
from helpers.rdma_pair import ALL
from scapy.all import IP, TCP, Ether, Raw, wrpcap

from weftwork.rdma.cm_records import ConnParam
from weftwork.rdma.iwarp.setup import MpaOptions
from weftwork.rdma.verbs import SendFlags, WrOpcode

MARKED = (MpaOptions(markers=True), MpaOptions(markers=True))
PARAMS = (ConnParam(qp_access_flags=ALL, private_data=b"question"), ConnParam(qp_access_flags=ALL, private_data=b"yes"))


def operations(pair: IwarpPair) -> IwarpPair:
    """Every operation, with messages of one and of several segments."""
    for size_bytes in (0, 100, 5000):
        pair.post(0, WrOpcode.RDMA_WRITE, 0, size_bytes)
        pair.post(0, WrOpcode.RDMA_READ, 0, size_bytes)
        pair.post_recv(1, 0, 5000)
        pair.post(0, WrOpcode.SEND, 0, size_bytes, flags=SendFlags.SIGNALED | SendFlags.SOLICITED)
    pair.post(1, WrOpcode.ATOMIC_FETCH_AND_ADD, 0, 8, there=8, compare_add=3)
    pair.post(1, WrOpcode.ATOMIC_CMP_AND_SWP, 0, 8, there=8, compare_add=3, swap=4)
    pair.post_recv(1, 0, 0)
    pair.post(0, WrOpcode.RDMA_WRITE_WITH_IMM, 0, 10, imm_data=0x1234)
    pair.run()
    return pair


def plain() -> IwarpPair:
    return operations(IwarpPair(by_fpdu=True, param=PARAMS))


def marked() -> IwarpPair:
    return operations(IwarpPair(by_fpdu=True, param=PARAMS, options=MARKED))


def without_crc() -> IwarpPair:
    options = MpaOptions(crc=False)
    return operations(IwarpPair(by_fpdu=True, param=PARAMS, options=(options, options)))


def revision_1() -> IwarpPair:
    return operations(IwarpPair(by_fpdu=True, param=PARAMS, options=(MpaOptions(revision=1), MpaOptions())))


def refused_write() -> IwarpPair:
    pair = operations(IwarpPair(by_fpdu=True, param=PARAMS))
    pair.post(0, WrOpcode.RDMA_WRITE, 0, 10, rkey=0x1234)
    pair.run()
    return pair


def refused_read() -> IwarpPair:
    pair = operations(IwarpPair(by_fpdu=True, param=PARAMS))
    pair.post(0, WrOpcode.RDMA_READ, 0, 10, rkey=0x1234)
    pair.run()
    return pair


def disconnected() -> IwarpPair:
    pair = operations(IwarpPair(by_fpdu=True, param=PARAMS))
    pair.ids[1].disconnect()
    pair.run()
    return pair


CONVERSATIONS: list[Callable[[], IwarpPair]] = [
    *(plain, marked, without_crc, revision_1, refused_write, refused_read, disconnected),
]


def write_stream(file: Path, pair: IwarpPair) -> Path:
    """A capture of the first stream: a TCP segment for each piece that was sent."""
    numbers = [random.Random(1).getrandbits(32), random.Random(2).getrandbits(32)]
    ports, names = (40_000, 7471), ("10.0.0.1", "10.0.0.2")

    def segment(number: int, flags: str, data: bytes = b"") -> Ether:
        head = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src=names[number], dst=names[1 - number])
        tcp = TCP(
            sport=ports[number], dport=ports[1 - number], flags=flags, seq=numbers[number], ack=numbers[1 - number]
        )
        numbers[number] = (numbers[number] + len(data) + ("S" in flags)) % (1 << 32)
        return head / tcp / Raw(data) if data else head / tcp

    packets = [segment(0, "S"), segment(1, "SA"), segment(0, "A")]
    packets += [segment(number, "PA", data) for number, data in pair.streams[0].sent]
    wrpcap(str(file), packets)
    return file
