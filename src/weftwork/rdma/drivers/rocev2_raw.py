"""RoCEv2 received by a raw socket, as a wire.

It reaches peers that number their IPv4 packets, such as rxe of Linux: the ICRC covers the number, which a UDP socket
hides. It takes the right to raw sockets, and an address for this process alone.
Source: raw(7); `weftwork.rdma.drivers.raw`.
Leaves out: IPv6, which has no such number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.rdma.drivers.raw import RawPort
from weftwork.rdma.drivers.rocev2 import over_port

if TYPE_CHECKING:
    from weftwork.rdma.wires import OpenWire, WireOptions

__all__ = ["open_wire"]


def open_wire(address: str, options: WireOptions) -> OpenWire:
    """Open UDP port 4791 of an IPv4 address; UsageError if it or a raw socket is not to be had."""
    return over_port(RawPort(address), options)
