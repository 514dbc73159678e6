"""Proof that a packet comes from whom its address names: the UDP port that it was sent from.

Another user of a machine can write any address of the machine into a packet (``IP_PKTINFO``), but cannot send from a
port that belongs to somebody else. So a connection between two processes of one machine has a random source port at
each end, which the messages that make the connection come from; where nobody has made it so, the first packet in its
turn names the port. Other packets with the peer's address are passed over without a word, so that nobody can ask for
numbers and count the answers. Of another machine a source port proves nothing.
Source: ip(7) (IP_PKTINFO), socket(7) (SO_REUSEPORT: for sockets of one user).
Leaves out: how a driver keeps a port to itself, see ``drivers.udp``; what users with CAP_NET_RAW can send.
"""

from __future__ import annotations

from typing import Final, Protocol

from weftwork.wire.udp import ROCE_SOURCE_PORT_MINIMUM

__all__ = ["NumberedSourcePorts", "SenderProof", "SourcePorts"]

_MASK: Final = 0x3FFF  # Linux include/rdma/ib_verbs.h: IB_ROCE_UDP_ENCAP_VALID_PORT_MIN to _MAX


class SourcePorts(Protocol):
    """Source ports of a driver."""

    def draw(self, qp_num: int) -> int:
        """Draw a port for a queue pair."""

    def is_here(self, address: bytes) -> bool:
        """Whether an address is of this machine, where a source port proves a sender."""


class NumberedSourcePorts:
    """Source ports of a wire on which they prove nothing, by the numbers of queue pairs."""

    def draw(self, qp_num: int) -> int:
        """Make a port of the lower bits of a number, so that flows differ."""
        return ROCE_SOURCE_PORT_MINIMUM | (qp_num & _MASK)

    def is_here(self, address: bytes) -> bool:
        """Tell that no address is of this machine."""
        del address
        return False


class SenderProof:
    """The source port of the peer of a queue pair or conversation.

    Attributes
    ----------
    is_wanted : the peer is on this machine
    port : from which its packets have to come; None while nobody has named it
    """

    def __init__(self) -> None:
        self.is_wanted = False
        self.port: int | None = None

    def accepts(self, source_port: int) -> bool:
        """Whether a packet from a port may be the peer's."""
        return not self.is_wanted or source_port == self.port

    def begin(self, *, is_here: bool) -> None:
        """Take the peer's place in; a port that was named stays."""
        self.is_wanted = is_here

    def name(self, source_port: int | None) -> None:
        """Take the port that a message of the peer came from; the first one counts."""
        if self.port is None:
            self.port = source_port
