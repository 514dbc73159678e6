"""A wire in memory that joins ports of one process only."""

from __future__ import annotations

import ipaddress
import os
import weakref
from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.rdma.psn_order import PATH_MTUS_BYTES

if TYPE_CHECKING:
    from weftwork.rdma.datagram import Datagram

__all__ = ["LoopbackPort", "LoopbackWire"]

_MOST_WAITING: Final = 4096  # chosen: datagrams that a port holds before it drops, as a socket does


class LoopbackWire:
    """Carries datagrams between its open ports, at once and in order."""

    def __init__(self) -> None:
        self.ports: dict[bytes, LoopbackPort] = {}

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

    def __init__(self, wire: LoopbackWire, address: bytes) -> None:
        self.address = address
        self.counters: Counter[str] = Counter()
        self.last_error = ""
        self.receive_buffer_bytes = _MOST_WAITING * max(PATH_MTUS_BYTES)
        self._wire: Final = wire
        self._waiting: deque[Datagram] = deque()
        self._bell: Final = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._give_back: Final = weakref.finalize(self, os.close, self._bell)

    @property
    def makes_trains(self) -> bool:
        """Whether `send` takes trains."""
        return True

    def fileno(self) -> int:
        """Descriptor that is readable while datagrams wait."""
        return self._bell

    def listen(self, service_port: int) -> None:
        """Receive requests for a service: they come here anyway."""

    def resolve(self, address: bytes, service_port: int) -> bytes:
        """Return the address itself."""
        del service_port
        return address

    def send(self, datagram: Datagram) -> None:
        """Hand a copy to the destination port, or lose it.

        It is lost without such a port, or if too many wait.
        """
        to = self._wire.ports.get(datagram.destination)
        if to is None:
            self.counters["send_refused"] += 1
            self.last_error = f"to {ipaddress.ip_address(datagram.destination)}: no port of this wire"
        else:
            to.take(datagram._replace(parts=(b"".join(datagram.parts),)))

    def take(self, datagram: Datagram) -> None:
        """Append a datagram to the waiting datagrams."""
        if len(self._waiting) >= _MOST_WAITING:
            self.counters["receive_dropped"] += 1
            return
        if not self._waiting:
            os.eventfd_write(self._bell, 1)
        self._waiting.append(datagram)

    def receive(self) -> Datagram | None:
        """Take a datagram that has arrived."""
        if not self._waiting:
            return None
        datagram = self._waiting.popleft()
        if not self._waiting:
            os.eventfd_read(self._bell)
        return datagram

    def path_mtu(self, destination: bytes) -> int:
        """Return the largest path MTU."""
        del destination
        return max(PATH_MTUS_BYTES)

    def close(self) -> None:
        """Take the port off the wire."""
        self._wire.ports.pop(self.address, None)
        self._give_back()
