"""RoCEv2 over UDP alone, as a wire: also packets between processes of one user pass the loopback interface.

Programs that look at an interface or disturb it, such as tcpdump and ``tc netem``, see and meet all packets. Another
user of the machine may take the port, see ``docs/models/rdma-trust.md``.
Source: `weftwork.rdma.drivers.steering`.
Leaves out: lines between processes, which `rocev2` has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.rdma.drivers.rocev2 import over_port
from weftwork.rdma.drivers.steering import SharedUdpPort

if TYPE_CHECKING:
    from weftwork.rdma.wires import OpenWire, WireOptions

__all__ = ["open_wire"]


def open_wire(address: str, options: WireOptions) -> OpenWire:
    """Open UDP port 4791 of an address of this machine; UsageError if it is not to be had."""
    return over_port(SharedUdpPort(address, offload=options.offload, hands_over=False), options)
