"""What a queue pair asks of its NIC.

Source: own.
Leaves out: the NIC, see `nic`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from weftwork.rdma.async_event import AsyncEvent
    from weftwork.rdma.datagram import IcrcStates, PacketFlow
    from weftwork.rdma.encapsulation import Encapsulation
    from weftwork.rdma.memory import MemoryTable
    from weftwork.rdma.nic_limits import NicLimits
    from weftwork.rdma.peer_processes import PeerProcesses
    from weftwork.rdma.queue_pair import RdmaQueuePair
    from weftwork.rdma.sender_proof import SourcePorts

__all__ = ["QpHost"]


class QpHost(Protocol):
    """Services of the NIC for a queue pair."""

    memory: MemoryTable
    limits: NicLimits

    @property
    def address(self) -> bytes:
        """Address of the port."""

    @property
    def makes_trains(self) -> bool:
        """Whether a datagram may hold many packets."""

    @property
    def encapsulation(self) -> Encapsulation:
        """Headers in front of BTH."""

    @property
    def icrc_states(self) -> IcrcStates:
        """States of the ICRC behind these headers."""

    def wake(self, qp: RdmaQueuePair) -> None:
        """Ask the queue pair soon for its packets."""

    def tell(self, event: AsyncEvent) -> None:
        """Queue an event for the user."""

    def flow(self, destination: bytes, source_port: int, dscp: int) -> PacketFlow:
        """Make a flow from the address of the NIC."""

    @property
    def source_ports(self) -> SourcePorts:
        """Source ports of its connections."""

    @property
    def peers(self) -> PeerProcesses:
        """Who is told of the end of a peer's process."""
