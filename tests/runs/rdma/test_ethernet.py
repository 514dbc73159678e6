"""RoCEv1 over packet sockets: which frames a port takes, how it finds its peers, and what it refuses."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from helpers.rdma_devices import (
    may_open_packet_sockets,
)

from weftwork.rdma.datagram import Datagram, IcrcStates, PacketFlow
from weftwork.rdma.drivers.ethernet import EthernetPort
from weftwork.rdma.encapsulation import ROCE_V1
from weftwork.wire.ib import Bth
from weftwork.wire.opcodes import Opcode

HERE = "127.{}.{}.".format(*divmod(os.getpid() % 60_000, 250)) + "{}"


MINE, OTHERS = (socket.inet_aton(HERE.format(end)) for end in (2, 3))


@pytest.fixture
def port() -> Iterator[EthernetPort]:
    opened = EthernetPort(HERE.format(2))
    yield opened
    opened.close()


def packet(slot: int, source: bytes = OTHERS, destination: bytes = MINE, number: int = 0x1234) -> Datagram:
    flow = PacketFlow(source, destination, 0, IcrcStates(ROCE_V1))
    return flow.close(Bth(Opcode.SEND_ONLY, destination_qp=slot << 16 | number, psn=7).encode(), (b"12345678",))


def test_without_the_right_to_packet_sockets() -> None:
    if os.geteuid() and may_open_packet_sockets():
        pytest.skip("this user has CAP_NET_RAW, and cannot give it away")
    drop = "" if os.geteuid() else "os.setgid(65534); os.setuid(65534);"
    port = "weftwork.rdma.drivers.ethernet"
    program = f"import os; from {port} import EthernetPort; {drop} EthernetPort('127.0.0.1')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (
        "packet socket: refused by the system: Operation not permitted; run as root or with CAP_NET_RAW" in done.stderr
    )
