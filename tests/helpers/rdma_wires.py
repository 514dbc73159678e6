"""What carries the datagrams of NICs: real UDP sockets, or a simulated fabric. A script runs over either."""

from __future__ import annotations

import random
import select
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from helpers.tiny import packet_input_of, sends, star

from weftwork.rdma.datagram import Datagram
from weftwork.rdma.nic import RdmaNic
from weftwork.testing.rdma_fabric import RdmaFabric
from weftwork.wire.udp import ROCE_V2_PORT

IP_MTU_DISCOVER: Final = 10  # linux/in.h; Python names neither
IP_PMTUDISC_DO: Final = 2
_TURN: Final = 16  # datagrams before the other end is read, so that no buffer of a socket overflows
_LIMIT_S: Final = 60
_PS_PER_NS: Final = 1_000
_PS_PER_S: Final = 1_000_000_000_000


class RecordingNic(RdmaNic):
    """Notes when it handed out which payload of UDP, and counts what it is given."""

    def __init__(self, address: bytes, **more: Any) -> None:
        super().__init__(address, **more)
        self.handed_out: list[tuple[int, bytes]] = []
        self.received = 0

    def receive(self, datagram: Datagram, now_ps: int) -> None:
        self.received += 1
        super().receive(datagram, now_ps)

    def datagrams_to_send(self, now_ps: int, most: int = 256) -> list[Datagram]:
        made = super().datagrams_to_send(now_ps, most)
        self.handed_out += [(now_ps, bytes(one.payload())) for one in made]
        return made


def recording_nics(addresses: Sequence[bytes], seed: int = 1, **more: Any) -> list[RecordingNic]:
    """NICs whose numbers, PSNs and keys follow from the seed."""
    return [RecordingNic(one, random=random.Random(seed + at), **more) for at, one in enumerate(addresses)]


class Wire(Protocol):
    """Carries datagrams between NICs while somebody waits."""

    def wait_for(self, has_come: Callable[[], bool]) -> bool:
        """Let time pass until something has come; False where it does not come."""


def simulated_wire(nics: Sequence[RdmaNic]) -> RdmaFabric:
    """A switch with a host for each NIC."""
    fabric = RdmaFabric(packet_input_of(star(len(nics)), sends(len(nics), [])))
    for host, nic in enumerate(nics):
        fabric.attach(host, nic)
    return fabric


class SocketWire:
    """UDP sockets of one process, each NIC at its own address of this machine.

    A datagram leaves by a socket that is bound to its source port and is not connected, so that, with the bit
    "don't fragment", the kernel writes 0 as the identification of IPv4, which is under the ICRC.
    """

    def __init__(self, nics: Sequence[RdmaNic]) -> None:
        self._senders: dict[tuple[bytes, int], socket.socket] = {}
        self._nic_of: dict[socket.socket, RdmaNic] = {}
        for nic in nics:
            self._nic_of[self._bound(nic.address, ROCE_V2_PORT)] = nic

    def close(self) -> None:
        """Close every socket."""
        for one in (*self._nic_of, *self._senders.values()):
            one.close()

    def wait_for(self, has_come: Callable[[], bool]) -> bool:
        """As `Wire` says; a minute is the limit."""
        end_ns = time.monotonic_ns() + _LIMIT_S * 1_000_000_000
        while not has_come():
            now_ns = time.monotonic_ns()
            if now_ns > end_ns:
                return False
            has_sent = self._send(now_ns * _PS_PER_NS)
            times = [at_ps for nic in self._nic_of.values() if (at_ps := nic.next_timer_ps()) is not None]
            wait_s = max(0.0, (min(times, default=now_ns * _PS_PER_NS + _PS_PER_S) / _PS_PER_NS - now_ns) / 1e9)
            ready, _, _ = select.select(list(self._nic_of), (), (), 0 if has_sent else min(wait_s, 1.0))
            now_ps = time.monotonic_ns() * _PS_PER_NS
            for one in ready:
                self._read(one, now_ps)
            for nic in self._nic_of.values():  # behind what has arrived, so that a slow machine is no timeout
                nic.on_timer(now_ps)
        return True

    def _send(self, now_ps: int) -> bool:
        has_sent = False
        for nic in self._nic_of.values():
            for made in nic.datagrams_to_send(now_ps, _TURN):
                key = (made.source, made.source_port)
                if key not in self._senders:
                    self._senders[key] = self._bound(*key)
                    self._senders[key].setsockopt(socket.IPPROTO_IP, socket.IP_TOS, made.ecn)
                self._senders[key].sendmsg(made.parts, (), 0, (socket.inet_ntoa(made.destination), ROCE_V2_PORT))
                has_sent = True
        return has_sent

    def _read(self, one: socket.socket, now_ps: int) -> None:
        nic = self._nic_of[one]
        with suppress(BlockingIOError):  # nothing more has arrived
            while True:
                data, (source, source_port) = one.recvfrom(1 << 16)
                nic.receive(Datagram(socket.inet_aton(source), nic.address, source_port, (data,)), now_ps)

    @staticmethod
    def _bound(address: bytes, port: int) -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        made.settimeout(0)
        made.bind((socket.inet_ntoa(address), port))
        return made
