"""A wire in memory that joins ports of one process only."""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.rdma.drivers.mailbox import MOST_WAITING, Mailbox
from weftwork.rdma.encapsulation import ROCE_V2
from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.wire.rdma_ip_cm import PortSpace

if TYPE_CHECKING:
    from weftwork.rdma.datagram import Datagram

__all__ = ["LoopbackPort", "LoopbackWire"]


class LoopbackWire:
    """Carries datagrams between its open ports, at once and in order."""

    def __init__(self) -> None:
        self.ports: dict[bytes, LoopbackPort] = {}
        self.groups: dict[bytes, dict[LoopbackPort, None]] = {}  # by multicast address

    def open(self, address: str) -> LoopbackPort:
        """Open a port; UsageError for a used address."""
        packed = ipaddress.ip_address(address).packed
        if packed in self.ports:
            raise UsageError(f"address: found {address}, which another port of this wire has")
        port = self.ports[packed] = LoopbackPort(self, packed)
        return port


class LoopbackPort:
    """A port of a wire in memory.

    Parameters
    ----------
    wire : that opened it
    address : 4 or 16 bytes in network order
    """

    encapsulation: Final = ROCE_V2
    slot: Final = None

    def __init__(self, wire: LoopbackWire, address: bytes) -> None:
        self.address = address
        self.counters: Counter[str] = Counter()
        self.last_error = ""
        self.receive_buffer_bytes = MOST_WAITING * max(PATH_MTUS_BYTES)
        self._wire: Final = wire
        self._mailbox: Final[Mailbox[Datagram]] = Mailbox()

    @property
    def makes_trains(self) -> bool:
        """Whether `send` takes trains."""
        return True

    def fileno(self) -> int:
        """Descriptor that is readable while datagrams wait."""
        return self._mailbox.fileno()

    def listen(self, service_port: int, space: PortSpace = PortSpace.TCP) -> None:
        """Receive requests for a service: they come here anyway."""

    def join(self, group: bytes) -> None:
        """Receive the datagrams of a multicast address."""
        self._wire.groups.setdefault(group, {})[self] = None

    def leave(self, group: bytes) -> None:
        """Receive them no more."""
        members = self._wire.groups.get(group, {})
        members.pop(self, None)
        if not members:
            self._wire.groups.pop(group, None)

    def resolve(self, address: bytes, service_port: int, space: PortSpace = PortSpace.TCP) -> bytes:
        """Return the address itself."""
        del service_port, space
        return address

    def send(self, datagram: Datagram) -> None:
        """Hand a copy to the destination port, or lose it.

        It is lost without such a port, or if too many wait. Every port that has joined a multicast address gets one.
        """
        copy = datagram._replace(parts=(b"".join(datagram.parts),))
        for member in tuple(self._wire.groups.get(datagram.destination, ())):
            member.take(copy)
        if ipaddress.ip_address(datagram.destination).is_multicast:
            return
        to = self._wire.ports.get(datagram.destination)
        if to is None:
            self.counters["send_refused"] += 1
            self.last_error = f"to {ipaddress.ip_address(datagram.destination)}: no port of this wire"
        else:
            to.take(copy)

    def take(self, datagram: Datagram) -> None:
        """Append a datagram to the waiting datagrams."""
        if not self._mailbox.put(datagram):
            self.counters["receive_dropped"] += 1

    def receive(self) -> Datagram | None:
        """Take a datagram that has arrived."""
        return self._mailbox.take()

    def path_mtu(self, destination: bytes) -> int:
        """Return the largest path MTU."""
        del destination
        return max(PATH_MTUS_BYTES)

    def close(self) -> None:
        """Take the port off the wire."""
        self._wire.ports.pop(self.address, None)
        for group in tuple(self._wire.groups):
            self.leave(group)
        self._mailbox.close()
