"""RoCEv1 as a wire: the parts of a device over packet sockets.

Source: IBTA vol. 1, annex A16.
Leaves out: the port, see `ethernet`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.errors import UsageError
from weftwork.rdma.drivers.ethernet import EthernetPort
from weftwork.rdma.drivers.rocev2 import over_port

if TYPE_CHECKING:
    from weftwork.rdma.wires import OpenWire, WireOptions

__all__ = ["open_wire"]


def open_wire(address: str, options: WireOptions) -> OpenWire:
    """Open EtherType 0x8915 on the interface of an address of this machine; UsageError if it is not to be had."""
    if options.checks_identification:
        raise UsageError("checks_identification: found it for rocev1, wanted it off: a GRH has no identification")
    return over_port(EthernetPort(address), options)
