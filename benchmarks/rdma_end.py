"""One end of a measurement of `rdma`: the software NIC, or TCP sockets, from Python; a process of its own.

It prints a line of JSON when it is ready, reads a line with what the other end printed, works, and prints its figures.
Usage: python benchmarks/rdma_end.py (rdma | tcp) (client | server) ADDRESS PEER TASK
"""

from __future__ import annotations

import ipaddress
import json
import os
import resource
import socket
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if os.environ.get("CRC_OF") == "zlib":
    sys.modules["zlib_ng"] = None  # type: ignore[assignment] # as where the extra is not installed

from weftwork.rdma.device import RdmaDevice
from weftwork.rdma.drivers.udp import UdpPort
from weftwork.rdma.verbs import AccessFlags, QpAttr, QpState, QpType, RecvWr, SendFlags, SendWr, Sge, WcStatus, WrOpcode
from weftwork.wire.checksum import CHECKSUM_LIBRARY

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.rdma.datagram import Datagram

BIG_BYTES: Final = 1 << 20
SMALL_BYTES: Final = 8
BANDWIDTH_S: Final = 1.5
LATENCIES: Final = 3000
RATE_S: Final = 1.0
OUTSTANDING: Final = {"bandwidth": 4, "rate": 128}
TCP_PORT: Final = 18_516
ALL: Final = AccessFlags.LOCAL_WRITE | AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ


class CountingPort(UdpPort):
    """Counts the system calls that move data."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.calls: Counter[str] = Counter()

    def send(self, datagram: Datagram) -> None:
        """Send and count."""
        self.calls["sendmsg"] += 1
        super().send(datagram)

    def receive(self) -> Datagram | None:
        """Receive and count."""
        self.calls["recvmsg"] += 1
        return super().receive()


def say(figures: dict[str, Any]) -> None:
    """Print a line for the process that measures."""
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


def heard() -> dict[str, Any]:
    """Read a line of the process that measures."""
    return dict(json.loads(sys.stdin.readline()))


def cpu_s() -> float:
    """Seconds of CPU time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def timed(work: Callable[[], tuple[int, list[float]]]) -> dict[str, float]:
    """Figures of work that returns how many messages it moved, and the seconds that each took where it took them."""
    begin_s, begin_cpu_s = time.perf_counter(), cpu_s()
    count, each_s = work()
    wall_s = time.perf_counter() - begin_s
    figures = {"count": count, "wall_s": wall_s, "cpu_s": cpu_s() - begin_cpu_s}
    if each_s:
        each_s.sort()
        figures |= {"p50_s": each_s[len(each_s) // 2], "p99_s": each_s[len(each_s) * 99 // 100]}
    return figures


class RdmaEnd:
    """A device without a thread, moved by whoever waits."""

    def __init__(self, address: str, peer: str) -> None:
        self.port = CountingPort(address)
        self.device = RdmaDevice(address, port=self.port)
        self.peer = peer
        pd = self.device.alloc_pd()
        self.buffer = np.zeros(4 * BIG_BYTES, np.uint8)
        self.mr = self.device.reg_mr(pd, self.buffer, ALL)
        self.cq = self.device.create_cq(1024)
        self.qp = self.device.create_qp(pd, QpType.RC, (self.cq, self.cq))
        self.remote: dict[str, Any] = {}

    def connect(self) -> None:
        """Exchange numbers and keys through the process that measures."""
        say({"qp_num": self.qp.qp_num, "addr": self.mr.addr, "rkey": self.mr.rkey, "checksum": CHECKSUM_LIBRARY})
        self.remote = heard()
        peer = ipaddress.ip_address(self.peer).packed
        attr = QpAttr(
            remote_address=peer,
            dest_qp_num=self.remote["qp_num"],
            path_mtu=self.port.path_mtu(peer),
            qp_access_flags=ALL,
        )
        self.device.modify_qp(self.qp, QpState.INIT, attr)
        self.device.modify_qp(self.qp, QpState.RTR)
        self.device.modify_qp(self.qp, QpState.RTS)

    def post(self, opcode: WrOpcode, size_bytes: int, at: int = 0) -> None:
        """Post a signalled request over the same place of both buffers."""
        self.device.post_send(
            self.qp,
            SendWr(
                wr_id=0,
                opcode=opcode,
                sg_list=(Sge(self.mr.addr + at, size_bytes, self.mr.lkey),),
                flags=SendFlags.SIGNALED,
                remote_addr=self.remote["addr"] + at,
                rkey=self.remote["rkey"],
            ),
        )

    def reap(self, most: int) -> int:
        """Wait for a completion, and take up to ``most``."""
        self.device.wait_cq(self.cq)
        done = self.device.poll_cq(self.cq, most)
        if any(wc.status is not WcStatus.SUCCESS for wc in done):
            raise SystemExit(f"the work failed: {done}; {self.port.last_error}")
        return len(done)

    def stream(self, size_bytes: int, outstanding: int, span_s: float) -> tuple[int, list[float]]:
        """Keep so many WRITEs on their way for a while."""
        end_s = time.perf_counter() + span_s
        done = posted = 0
        while posted > done or time.perf_counter() < end_s:
            while posted - done < outstanding and time.perf_counter() < end_s:
                self.post(WrOpcode.RDMA_WRITE, size_bytes, posted % 4 * size_bytes)
                posted += 1
            if posted > done:
                done += self.reap(outstanding)
        return done, []

    def ping(self) -> tuple[int, list[float]]:
        """One small WRITE after the other; the ACK of the peer's NIC ends each."""
        each_s = []
        for _ in range(LATENCIES):
            begin_s = time.perf_counter()
            self.post(WrOpcode.RDMA_WRITE, SMALL_BYTES)
            self.reap(1)
            each_s.append(time.perf_counter() - begin_s)
        return LATENCIES, each_s

    def client(self, task: str) -> dict[str, Any]:
        """Work, and tell the server that it is over."""
        self.stream(BIG_BYTES, 2, 0.1)  # warms caches
        self.post(WrOpcode.SEND, 1)
        self.reap(1)
        self.port.calls.clear()
        if task == "latency":
            figures: dict[str, Any] = dict(timed(self.ping))
        else:
            size_bytes = BIG_BYTES if task == "bandwidth" else SMALL_BYTES
            span_s = BANDWIDTH_S if task == "bandwidth" else RATE_S
            figures = dict(timed(lambda: self.stream(size_bytes, OUTSTANDING[task], span_s)))
        figures["calls"] = dict(self.port.calls)
        self.post(WrOpcode.SEND, 1)
        self.reap(1)
        return figures

    def server(self) -> dict[str, Any]:
        """Serve until the client says that it is over."""
        for number in (1, 2):  # of the start and of the end
            self.device.post_recv(self.qp, RecvWr(wr_id=number, sg_list=(Sge(self.mr.addr, 1, self.mr.lkey),)))
        self.reap(1)
        self.port.calls.clear()
        figures: dict[str, Any] = dict(timed(lambda: (self.reap(1), [])))
        figures["calls"] = dict(self.port.calls)
        linger = time.monotonic() + 0.2  # the ACK of the last message may be lost
        self.device.wait(lambda: time.monotonic() > linger, 0.2)
        return figures


class TcpEnd:
    """The same with TCP sockets."""

    def __init__(self, address: str, peer: str) -> None:
        self.address, self.peer = address, peer
        self.buffer = memoryview(bytearray(BIG_BYTES))
        self.calls: Counter[str] = Counter()

    def client(self, task: str) -> dict[str, Any]:
        """Connect and work."""
        say({})
        heard()
        with socket.create_connection((self.peer, TCP_PORT)) as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            figures: dict[str, Any] = dict(timed(lambda: self.ping(line) if task == "latency" else self.stream(line)))
        figures["calls"] = dict(self.calls)
        return figures

    def ping(self, line: socket.socket) -> tuple[int, list[float]]:
        """One small message after the other, answered by the program of the peer."""
        each_s = []
        for _ in range(LATENCIES):
            begin_s = time.perf_counter()
            line.sendall(self.buffer[:SMALL_BYTES])
            self.calls["send"] += 1
            self.take(line, SMALL_BYTES)
            each_s.append(time.perf_counter() - begin_s)
        return LATENCIES, each_s

    def stream(self, line: socket.socket) -> tuple[int, list[float]]:
        """Messages of 1 MiB for a while, and an answer of one byte to the last."""
        end_s = time.perf_counter() + BANDWIDTH_S
        count = 0
        while time.perf_counter() < end_s:
            rest = self.buffer
            while rest:
                rest = rest[line.send(rest) :]
                self.calls["send"] += 1
            count += 1
        line.shutdown(socket.SHUT_WR)
        self.take(line, 1)
        return count, []

    def take(self, line: socket.socket, size_bytes: int) -> int:
        """Receive so many bytes; fewer where the stream ends."""
        at = 0
        while at < size_bytes:
            got = line.recv_into(self.buffer[at:size_bytes])
            self.calls["recv"] += 1
            if got == 0:
                break
            at += got
        return at

    def server(self, task: str) -> dict[str, Any]:
        """Accept one connection and serve it until it ends."""
        with socket.create_server((self.address, TCP_PORT)) as door:
            say({})
            heard()
            line, _ = door.accept()
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with line:
            figures: dict[str, Any] = dict(timed(lambda: self.serve(line, task)))
        figures["calls"] = dict(self.calls)
        return figures

    def serve(self, line: socket.socket, task: str) -> tuple[int, list[float]]:
        """Answer small messages, or swallow large ones and answer the end."""
        size_bytes = SMALL_BYTES if task == "latency" else BIG_BYTES
        count = 0
        while self.take(line, size_bytes) == size_bytes:
            count += 1
            if task == "latency":
                line.sendall(self.buffer[:SMALL_BYTES])
                self.calls["send"] += 1
        if task != "latency":
            line.sendall(b"e")
        return count, []


def main(words: list[str]) -> None:
    """Be one end."""
    kind, role, address, peer, task = words
    if kind == "tcp":
        end = TcpEnd(address, peer)
        say(end.client(task) if role == "client" else end.server(task))
        return
    rdma = RdmaEnd(address, peer)
    rdma.connect()
    say(rdma.client(task) if role == "client" else rdma.server())
    rdma.device.close()


if __name__ == "__main__":
    main(sys.argv[1:])
