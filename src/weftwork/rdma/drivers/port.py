"""The interface of every driver for datagrams: a port of a machine, or of a wire in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from weftwork.rdma.device_parts import WirePort

if TYPE_CHECKING:
    from weftwork.rdma.datagram import Datagram
    from weftwork.rdma.encapsulation import Encapsulation

__all__ = ["DatagramPort"]


class DatagramPort(WirePort, Protocol):
    """A port for datagrams.

    Attributes
    ----------
    receive_buffer_bytes : that hold datagrams which have arrived
    """

    receive_buffer_bytes: int

    @property
    def encapsulation(self) -> Encapsulation:
        """Headers in front of BTH."""

    @property
    def slot(self) -> int | None:
        """Top eight bits of the numbers of this process, where processes share the address."""

    @property
    def makes_trains(self) -> bool:
        """Whether `send` takes datagrams with many packets."""

    def send(self, datagram: Datagram) -> None:
        """Send a datagram.

        Datagrams that the system does not take are counted and lost, as on a wire.
        """

    def receive(self) -> Datagram | None:
        """Take a datagram that has arrived, or None.

        Its payload is valid until the next call.
        """
