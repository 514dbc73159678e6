"""The interface between a NIC port and the ends of a queue pair.

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
    """A sender as its NIC port sees it.

    The port asks for a packet whenever it is free, and hands over answers.
    """

    @property
    def flow(self) -> Flow:
        """Flow of the sender's packets."""

    @property
    def next_send_at_ps(self) -> int:
        """Earliest next send, by pacing."""

    def wants_to_send(self) -> bool:
        """Whether a packet waits.

        Only time, flow control, the window or credits hold it back.
        """

    def next_packet(self) -> int | None:
        """Number of the packet that may leave now, if any."""

    def send(self, seq: int) -> Packet:
        """Send the next packet, which starts now."""

    def receive(self, packet: Packet) -> None:
        """Take an ACK, NAK, CNP or CREDIT."""


class PacketSink(Protocol):
    """A receiver as its NIC port sees it."""

    @property
    def flow(self) -> Flow:
        """Flow of the receiver's packets."""

    def handle(self, packet: Packet) -> None:
        """Take a data packet that has passed the host interface."""

    def handle_cut(self, packet: Packet) -> None:
        """Take a data packet that a switch has cut."""

    def requested(self, packet: Packet) -> None:
        """Take a REQUEST."""

    def probed(self) -> None:
        """Answer a PROBE."""


class Line(Protocol):
    """The NIC port at one end of a queue pair."""

    @property
    def id(self) -> int:
        """Port id, which is its address."""

    @property
    def rate_bps(self) -> int:
        """Line rate, now."""

    def queue_control(self, packet: Packet) -> None:
        """Hand over a control packet.

        Control packets keep their order and are not asked for. What a sender hands over while it is asked for a packet
        goes behind that packet.
        """


class SenderLine(Line, Protocol):
    """The NIC port at the sending end."""

    def attach(self, sender: PacketSource) -> int:
        """Join the senders of the port; returns the slot."""

    def detach(self, slot: int) -> None:
        """Give up a slot.

        Late answers still reach the sender.
        """

    def is_held(self, traffic_class: int, frame_bytes: int) -> bool:
        """Whether link flow control holds back a frame of this class."""

    def start(self) -> None:
        """Ask the senders for a packet, if the port is idle."""


class ReceiverLine(Line, Protocol):
    """The NIC port at the receiving end."""

    @property
    def shared_state(self) -> Any:  # noqa: ANN401 - the class is the policy's
        """Record shared by queue pairs that end at this port, or None."""

    def attach_receiver(self, receiver: PacketSink) -> None:
        """Register the receiver of a flow."""

    def new_receiver_slot(self) -> int:
        """The next number of a queue pair that ends here."""

    def keep_early(self, packets: int) -> None:
        """Add to the packets that receivers here keep behind gaps."""
