"""The interface of every driver: a port for datagrams."""

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
        """Whether `send` takes datagrams with many packets."""

    def fileno(self) -> int:
        """Descriptor that is readable when datagrams have arrived."""

    def send(self, datagram: Datagram) -> None:
        """Send a datagram.

        Datagrams that the system does not take are counted and lost, as on a wire.
        """

    def receive(self) -> Datagram | None:
        """Take a datagram that has arrived, or None.

        Its payload is valid until the next call.
        """

    def path_mtu(self, destination: bytes) -> int:
        """Largest path MTU of RoCE, 256 to 4096, to an address."""

    def close(self) -> None:
        """Release the resources of the system."""
