"""What carries the datagrams of NICs: real UDP sockets, or a simulated fabric. A script runs over either."""

from __future__ import annotations

import random
import select
import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any, Final, Protocol

from helpers.tiny import packet_input_of, sends, star

from weftwork.rdma.datagram import Datagram
from weftwork.rdma.drivers.driver import NicDriver
from weftwork.rdma.drivers.udp import UdpPort
from weftwork.rdma.nic import RdmaNic
from weftwork.testing.rdma_fabric import RdmaFabric

_LIMIT_S: Final = 60


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
    """UDP sockets of one process by the drivers of the device, each NIC at its own address of this machine."""

    def __init__(self, nics: Sequence[RdmaNic]) -> None:
        self._drivers = [NicDriver(nic, UdpPort(str(ip_address(nic.address)), offload=False)) for nic in nics]

    def close(self) -> None:
        """Close every socket."""
        for driver in self._drivers:
            driver.port.close()

    def wait_for(self, has_come: Callable[[], bool]) -> bool:
        """As `Wire` says; a minute is the limit."""
        end_s = time.monotonic() + _LIMIT_S
        ports = [driver.port for driver in self._drivers]
        while not has_come():
            if time.monotonic() > end_s:
                return False
            were_busy = [driver.progress() for driver in self._drivers]
            if any(were_busy):
                continue
            waits_s = [wait_s for driver in self._drivers if (wait_s := driver.wait_s()) is not None]
            select.select(ports, (), (), min([1.0, *waits_s]))
        return True
