"""The line of a queue pair: what the NIC port at one end offers to a sender or receiver, and what it asks of them.

A sender and a receiver know no more of the world than this, a clock and their flow; whoever offers a line, a simulated
NIC or a socket, can drive them.
Source: `docs/models/packet-engine.md`, sections Queue pairs and the sending NIC, and The receiving NIC.
Leaves out: what happens to a packet behind the port.
"""

from __future__ import annotations

from typing import Any, Protocol

from weftwork.engine.reference.flow import Flow
from weftwork.engine.reference.packet import Packet

__all__ = ["Line", "PacketSink", "PacketSource", "ReceiverLine", "SenderLine"]


class PacketSource(Protocol):
    """A sender as its NIC port sees it: asked for a packet whenever the port is free, told what comes back."""

    @property
    def flow(self) -> Flow:
        """Whose packets it sends."""

    @property
    def next_send_at_ps(self) -> int:
        """Before this instant pacing holds it back."""

    def wants_to_send(self) -> bool:
        """Whether there is a packet that only time, flow control, the window or credits hold back."""

    def next_packet(self) -> int | None:
        """Number of the packet that may leave now, if there is one."""

    def send(self, seq: int) -> Packet:
        """That packet, which starts now."""

    def receive(self, packet: Packet) -> None:
        """Take an ACK, NAK, CNP or CREDIT."""


class PacketSink(Protocol):
    """A receiver as its NIC port sees it."""

    @property
    def flow(self) -> Flow:
        """Whose packets it receives."""

    def handle(self, packet: Packet) -> None:
        """Take a data packet that has passed the host interface."""

    def handle_cut(self, packet: Packet) -> None:
        """Take what a switch has left of a data packet."""

    def requested(self, packet: Packet) -> None:
        """Take a REQUEST."""

    def probed(self) -> None:
        """Answer a PROBE."""


class Line(Protocol):
    """The NIC port at one end of a queue pair."""

    @property
    def id(self) -> int:
        """Its address: the port id."""

    @property
    def rate_bps(self) -> int:
        """Line rate, now."""

    def queue_control(self, packet: Packet) -> None:
        """Hand over a packet that is not data; control packets keep their order and are not asked for.

        What a sender hands over while it is asked for a packet goes behind that packet.
        """


class SenderLine(Line, Protocol):
    """The NIC port at the sending end."""

    def attach(self, sender: PacketSource) -> int:
        """Take turns with the other senders of the port from now on; returns the slot."""

    def detach(self, slot: int) -> None:
        """Give up a slot; what comes back late still reaches the sender."""

    def is_held(self, traffic_class: int, frame_bytes: int) -> bool:
        """Whether the flow control of the link keeps a frame of this class from starting now."""

    def start(self) -> None:
        """Ask the senders for a packet, if the port is idle: there may be one now."""


class ReceiverLine(Line, Protocol):
    """The NIC port at the receiving end."""

    @property
    def shared_state(self) -> Any:  # noqa: ANN401 - the class is the policy's
        """Record that the queue pairs which end at this port share, or None."""

    def attach_receiver(self, receiver: PacketSink) -> None:
        """Hand it the packets of its flow that arrive here, from now on."""

    def new_receiver_slot(self) -> int:
        """The next number of a queue pair that ends here."""

    def keep_early(self, packets: int) -> None:
        """Receivers here keep so many packets more behind their gaps."""
