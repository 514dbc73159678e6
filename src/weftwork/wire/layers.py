"""Headers in front of an RDMA packet, one at a time: what reads one, and why reading ends early.

Source: how the protocols nest is in the table of ``weftwork.wire.encapsulations``.
Leaves out: the RDMA packet itself, see ``weftwork.wire.dissection``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Self

from weftwork.wire.ethernet import EthernetHeader
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ip import IpHeader
from weftwork.wire.udp import UdpHeader

__all__ = ["Carrier", "CutShort", "Layer", "NextHeader", "PassedOver", "Selector", "Span"]


class Carrier(Enum):
    """Carrier of the packet."""

    ROCE_V2 = "RoCEv2"
    ROCE_V1 = "RoCEv1"
    INFINIBAND = "InfiniBand"
    PFC = "PFC"
    OTHER = "other"


class Selector(Enum):
    """The number space that names the next header, with its words for a number without a row."""

    LINK_TYPE = "link type {}"
    ETHERTYPE = "EtherType {:#06x}"
    IP_PROTOCOL = "IP protocol {}"
    UDP_PORT = "UDP to other ports than RoCE's"
    ERF_TYPE = "ERF type {}"
    ADDRESS_FAMILY = "address family {}"


class CutShort(Exception):  # noqa: N818 - it names what arrived
    """The capture has fewer bytes of a header than there were.

    Parameters
    ----------
    layer : the header that was cut
    text : what the capture has and what the header needs
    """

    def __init__(self, layer: str, text: str) -> None:
        self.layer = layer
        self.text = text
        super().__init__(layer, text)


class PassedOver(Exception):  # noqa: N818 - it names what arrived
    """A frame is recognised and not read.

    Parameters
    ----------
    reason : the same words for all frames of this kind
    example : numbers of this frame; empty where the reason says everything
    """

    def __init__(self, reason: str, example: str = "") -> None:
        self.reason = reason
        self.example = example
        super().__init__(reason, example)


class Span(NamedTuple):
    """Bytes from a header on.

    Parameters
    ----------
    data : bytes that were captured
    whole_bytes : bytes that there were, at least as many
    """

    data: memoryview
    whole_bytes: int

    def front(self, size_bytes: int, layer: str) -> tuple[memoryview, Self]:
        """Cut a header off the front.

        Raises
        ------
        MalformedPacket : there never were so many bytes
        CutShort : there were, and the capture has fewer
        """
        if self.whole_bytes < size_bytes:
            raise MalformedPacket(layer, f"found {self.whole_bytes} bytes, wanted at least {size_bytes}")
        if len(self.data) < size_bytes:
            raise CutShort(layer, f"captured {len(self.data)} of {size_bytes} bytes of the header")
        return self.data[:size_bytes], self._replace(
            data=self.data[size_bytes:], whole_bytes=self.whole_bytes - size_bytes
        )

    def padded(self, size_bytes: int) -> memoryview:
        """The captured bytes with zeros up to a size, so that lengths in headers agree; nothing is read from zeros."""
        missing_bytes = size_bytes - len(self.data)
        return self.data if missing_bytes <= 0 else memoryview(bytes(self.data) + bytes(missing_bytes))

    def limited(self, size_bytes: int) -> Self:
        """The same bytes up to a length that a header says."""
        return self._replace(data=self.data[:size_bytes], whole_bytes=size_bytes)


class NextHeader(NamedTuple):
    """What follows a header.

    Parameters
    ----------
    selector, number : of the next header
    rest : bytes from the next header on
    header : record of the header that was read, if it is kept
    """

    selector: Selector
    number: int
    rest: Span
    header: EthernetHeader | IpHeader | UdpHeader | None = None


class Layer(NamedTuple):
    """A row of the table of encapsulations.

    Parameters
    ----------
    selector, number : that announce this header
    name : in words, as messages show it
    source : of number and layout
    read : reads the header; None where Weftwork knows the name only, or where a packet of ``carrier`` begins
    carrier : what begins here
    is_tunnel : whether a frame or packet begins behind it, whose own headers count
    """

    selector: Selector
    number: int
    name: str
    source: str
    read: Callable[[Span], NextHeader] | None = None
    carrier: Carrier | None = None
    is_tunnel: bool = False
