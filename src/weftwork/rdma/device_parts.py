"""Parts of a device that differ between wires, as interfaces.

Source: IBTA vol. 1, chapter 11 (verbs); librdmacm (connections).
Leaves out: which wire has which parts, see `wires`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from weftwork.wire.rdma_ip_cm import PortSpace

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from weftwork.rdma.cm_id import CmId
    from weftwork.rdma.cm_records import CmEvent, ConnParam
    from weftwork.rdma.queue_pair import RdmaQueuePair

__all__ = ["Conversations", "Listener", "PacketMover", "VirtualTime", "WirePort"]


class WirePort(Protocol):
    """A port of a machine, of a simulated host, or of a wire in memory.

    Attributes
    ----------
    address : IP address or GID, 4 or 16 bytes in network order
    counters : what went wrong, by name
    last_error : of a packet that could not be sent, or an empty text
    """

    address: bytes
    counters: Counter[str]
    last_error: str

    def fileno(self) -> int:
        """Descriptor that is readable when something has arrived."""

    def path_mtu(self, destination: bytes) -> int:
        """Largest path MTU, 256 to 4096, to an address."""

    def listen(self, service_port: int, space: PortSpace = PortSpace.TCP) -> None:
        """Receive requests for a service; UsageError if another process does."""

    def join(self, group: bytes) -> None:
        """Receive the datagrams of a multicast address; UsageError if that is infeasible."""

    def leave(self, group: bytes) -> None:
        """Receive them no more."""

    def resolve(self, address: bytes, service_port: int, space: PortSpace = PortSpace.TCP) -> bytes:
        """Address of the peer that a program names.

        It differs where a loopback address means another simulated host.
        """

    def close(self) -> None:
        """Release the resources of the system."""


class PacketMover(Protocol):
    """Moves packets between a NIC and its port, and fires its timers."""

    def progress(self) -> bool:
        """Receive, fire timers, and send; returns whether there was work."""

    def send(self) -> None:
        """Send only, after something was posted."""

    def wait_s(self) -> float | None:
        """Seconds until a timer is due, or None."""


class Listener(Protocol):
    """A port on which requests are accepted."""

    def close(self) -> None:
        """Accept no more requests."""


class Conversations(Protocol):
    """A connection manager: requests of users, and events for them."""

    def listen(self, port: int, backlog: int) -> Listener:
        """Accept requests on a port; UsageError if it is taken."""

    def connect(self, address: bytes, port: int, qp: RdmaQueuePair, param: ConnParam | None) -> CmId:
        """Ask a peer for a connection of a queue pair."""

    def next_event(self) -> CmEvent | None:
        """Take the next event, or None."""


class VirtualTime(Protocol):
    """Lets time pass while programs wait, instead of the machine's clock."""

    def wait(self, until: Callable[[], bool], timeout_s: float | None) -> bool:
        """Let time pass until a condition holds; False after the timeout."""

    def poll(self, until: Callable[[], bool]) -> None:
        """Let time pass up to the next event, since a poll has found nothing."""
