"""RoCEv2 as a wire: the parts of a device over UDP port 4791, or over another port for datagrams.

Source: IBTA vol. 1, annex A17.
Leaves out: the ports, see `steering`, `raw` and `loopback`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.rdma.connection_manager import ConnectionManager
from weftwork.rdma.drivers.driver import NicDriver
from weftwork.rdma.drivers.raw import RawPort
from weftwork.rdma.drivers.steering import SharedUdpPort
from weftwork.rdma.drivers.udp import UdpPort
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.rdma.queue_pair import NicLimits
from weftwork.rdma.wires import OpenWire

if TYPE_CHECKING:
    from weftwork.rdma.drivers.port import DatagramPort
    from weftwork.rdma.wires import WireOptions

__all__ = ["open_wire", "over_port"]

_MOST_INFLIGHT: Final = 512  # chosen: 2 MiB, twice what two ends need on one machine
_FEWEST_INFLIGHT: Final = 16  # chosen: a train of packets of 4,096 bytes
_HELD_BESIDE_BYTES: Final = 2048  # chosen: half as much again, since the system counts its own bytes (skb->truesize)


def open_wire(address: str, options: WireOptions) -> OpenWire:
    """Open UDP port 4791 of an address of this machine, with lines beside it; UsageError if it is not to be had."""
    if options.checks_identification:
        return over_port(RawPort(address), options)
    return over_port(SharedUdpPort(address, offload=options.offload), options)


def over_port(port: DatagramPort, options: WireOptions) -> OpenWire:
    """Parts of a device over a port for datagrams.

    Parameters
    ----------
    port : of UDP, or of a wire in memory
    options : wishes of the user; those about sockets are the port's affair
    """
    shared = port if isinstance(port, SharedUdpPort) else None
    nic = RdmaNic(
        port.address,
        encapsulation=port.encapsulation,
        limits=options.limits if options.limits is not None else NicLimits(max_inflight=_inflight(port)),
        congestion_control=options.loaded_control,
        line_rate_bps=options.line_rate_bps,
        makes_trains=port.makes_trains,
        number_prefix=port.slot,
        source_ports=port.source_ports if isinstance(port, UdpPort) else None,
        peer_watch=shared,
    )
    return OpenWire(
        nic=nic,
        port=port,
        mover=NicDriver(nic, port),
        make_manager=lambda: ConnectionManager(nic, path_mtu=port.path_mtu),
        others_at_port=shared.others_at_port if shared is not None else str,
    )


def _inflight(port: DatagramPort) -> int:
    """Packets in flight of a queue pair that a receive buffer holds.

    The buffer of the peer is taken as large as ours.
    """
    held = port.receive_buffer_bytes // (max(PATH_MTUS_BYTES) + _HELD_BESIDE_BYTES)
    return max(_FEWEST_INFLIGHT, min(_MOST_INFLIGHT, held))
