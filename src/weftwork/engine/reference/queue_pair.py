"""A queue pair of the reference engine.

It has a sender and a receiver on working NIC ports.
Source: `docs/models/packet-engine.md`, sections Queue pairs and the sending NIC, and Failover.
Leaves out: what either end does, see `sender` and `receiver`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference.base_rtt import base_rtt_ps
from weftwork.engine.reference.clock import Clock
from weftwork.engine.reference.flow import Flow, QueuePairConfig
from weftwork.engine.reference.message import Inbox, Message, SendQueue
from weftwork.engine.reference.nic import NicPort
from weftwork.engine.reference.receiver import Receiver
from weftwork.engine.reference.sender import Sender

__all__ = ["QueuePair"]


class QueuePair:
    """One (source, destination, channel) between two hosts.

    Parameters
    ----------
    name : source, destination, channel
    engine_input : of which it reads the ports of ranks, and links and routes for the base RTT
    config : rules of all queue pairs
    nics : by port id
    clock : what time it is
    count : told of what outcomes count, by the names of `COUNTERS`

    Attributes
    ----------
    queue, inbox : what the source has posted, and what the destination has claimed of it
    source_nic, destination_nic : NIC ports at both ends, from `open` on
    sender, receiver : from `open` on
    column, peer_rail : of the first SEND
    """

    def __init__(
        self,
        name: tuple[int, int, int],
        engine_input: PacketInput,
        config: QueuePairConfig,
        nics: Mapping[int, NicPort],
        clock: Clock,
        count: Callable[[str], None],
    ) -> None:
        self.source, self.destination, self.channel = name
        self.engine_input = engine_input
        self.config = config
        self.nics = nics
        self.clock = clock
        self.count = count
        self.flow = Flow.of(*name, seed=config.seed, pins=config.pins)
        self.queue = SendQueue(config.transport.mtu_bytes)
        self.inbox = Inbox(clock, self.queue.messages, matches_any=config.transport.ordering == "none")
        self.column = 0
        self.peer_rail = False
        self.source_nic: NicPort
        self.destination_nic: NicPort
        self.base_rtt_ps = 0
        self.sender: Sender | None = None
        self.receiver: Receiver | None = None

    @property
    def messages(self) -> list[Message]:
        """All messages posted by the source."""
        return self.queue.messages

    def open(self, column: int, down: AbstractSet[int], *, peer_rail: bool) -> Sender:
        """Take the ports of a column of `PacketInput.rank_ports`.

        If they do not work, it takes the next that work. The first SEND opens the queue pair.
        """
        self.column, self.peer_rail = column, peer_rail
        self.source_nic, self.destination_nic = self._nics_that_work(down) or self.nics_of(column)
        self.base_rtt_ps = base_rtt_ps(self.engine_input, self.source_nic.id, self.destination_nic.id)
        self.sender = Sender(
            self.flow,
            self.config,
            clock=self.clock,
            line=self.source_nic,
            destination=self.destination_nic.id,
            queue=self.queue,
            base_rtt_ps=self.base_rtt_ps,
            count=self.count,
        )
        self.receiver = Receiver(
            self.flow,
            self.config,
            clock=self.clock,
            line=self.destination_nic,
            destination=self.source_nic.id,
            inbox=self.inbox,
            base_rtt_ps=self.base_rtt_ps,
            count=self.count,
        )
        return self.sender

    def fail_over(self, down: AbstractSet[int]) -> bool:
        """Change to working ports; returns whether the ports changed."""
        if self.sender is None or self.receiver is None:
            return False
        before = (self.source_nic, self.destination_nic)
        after = self._nics_that_work(down) or before
        if after == before:
            return False
        self.source_nic, self.destination_nic = after
        self.sender.move(self.source_nic, self.destination_nic.id)
        self.receiver.move(self.destination_nic, self.source_nic.id)
        return True

    def _nics_that_work(self, down: AbstractSet[int]) -> tuple[NicPort, NicPort] | None:
        """The first column whose ports were up at the last FAILOVER.

        The search begins at the column of the first SEND. Both ports must have been up. Where there is no such column,
        the first port at each end that was; None where an end has none.
        """
        columns = self.engine_input.rank_ports.shape[1]
        choices = [self.nics_of((self.column + step) % columns) for step in range(columns)]
        together = next((nics for nics in choices if all(nic.id not in down for nic in nics)), None)
        if together is not None:
            return together
        source = next((nic for nic, _ in choices if nic.id not in down), None)
        destination = next((nic for _, nic in choices if nic.id not in down), None)
        return None if source is None or destination is None else (source, destination)

    def nics_of(self, column: int) -> tuple[NicPort, NicPort]:
        """NIC ports of a column at both ends."""
        rank_ports = self.engine_input.rank_ports
        source = self.nics[int(rank_ports[self.source, column])]
        destination = self.nics[int(rank_ports[self.destination, column])]
        if self.peer_rail:
            source = self.nics[source.id - source.port.local_index + destination.port.local_index]
        return source, destination

    def claim(self, completed: Callable[[], None]) -> bool:
        """Ask for the next message; returns whether it is there already.

        Otherwise ``completed`` is called when it is.
        """
        is_there = self.inbox.claim(completed)
        if is_there and self.receiver is not None:
            self.receiver.claimed()
        return is_there
