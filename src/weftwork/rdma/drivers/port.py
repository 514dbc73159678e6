"""What every driver offers: a port that datagrams leave and reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections import Counter

    from weftwork.rdma.datagram import Datagram

__all__ = ["DatagramPort"]


class DatagramPort(Protocol):
    """A port of a machine, or of a wire in memory.

    Attributes
    ----------
    address : IP address, 4 or 16 bytes in network order
    counters : what went wrong, by name
    receive_buffer_bytes : that hold datagrams which have arrived
    last_error : of a packet that could not be sent, or an empty text
    """

    address: bytes
    counters: Counter[str]
    receive_buffer_bytes: int
    last_error: str

    @property
    def makes_trains(self) -> bool:
        """Whether `send` takes datagrams that hold many packets."""

    def fileno(self) -> int:
        """Descriptor that is readable when datagrams have arrived."""

    def send(self, datagram: Datagram) -> None:
        """Send a datagram; what the system does not take is counted and lost, as on a wire."""

    def receive(self) -> Datagram | None:
        """Take a datagram that has arrived, or None; its payload holds until the next call."""

    def path_mtu(self, destination: bytes) -> int:
        """Largest path MTU of RoCE, 256 to 4096, that fits into the packets of the way to an address."""

    def close(self) -> None:
        """Give the system back what it gave."""
