"""A script over UDP sockets: as the listening peer, or as the other end on Weftwork's own NIC.

Leaves out: packets from another address than that of the socket, which need `in_memory`.
"""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.policies.load import load
from weftwork.rdma.drivers.driver import NicDriver
from weftwork.rdma.drivers.steering import SharedUdpPort
from weftwork.rdma.drivers.udp import address_towards, parse_address
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.peer.end import ScriptEnd
from weftwork.rdma.peer.scripted import ScriptedPeer

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.rdma.peer.end import EndReport
    from weftwork.rdma.peer.script import PeerScript
    from weftwork.rdma.peer.scripted import PeerReport

__all__ = ["connect", "listen"]

_MS_PER_S: Final = 1000


def listen(
    script: PeerScript, address: str, port: int, limit_s: float, *, ready: Callable[[], None] | None = None
) -> PeerReport:
    """Be the peer of one connection.

    Parameters
    ----------
    script : to apply
    address : of this machine
    port : of the connection manager
    limit_s : longest time, with the wait for the connection
    ready : called when requests are accepted

    Raises
    ------
    UsageError : the script needs a second sender, or the address or port is not to be had
    """
    keys = [rule.fields for rule in script.rules] + [step.fields for step in script.peer]
    if any(one is not None and one.source is not None for one in keys):
        raise UsageError(
            f"script: found '{script.name}', which sends from another address; a socket cannot do that. "
            "Run it with --self-test"
        )
    udp = SharedUdpPort(address, offload=False)
    try:
        udp.listen(port)
        nic = RdmaNic(udp.address, number_prefix=udp.slot)
        peer = ScriptedPeer(script, nic, path_mtu=udp.path_mtu, port=port)
        if ready is not None:
            ready()
        _attend(NicDriver(peer, udp), udp, lambda: peer.is_over, limit_s)
        return peer.report()
    finally:
        udp.close()


def connect(
    script: PeerScript, peer_address: str, port: int, limit_s: float, *, source: str | None = None
) -> EndReport:
    """Be the other end of a script on Weftwork's own NIC.

    Parameters
    ----------
    script : that the peer has as well
    peer_address, port : where the peer listens
    limit_s : longest time
    source : address of this machine; None takes the one from which the system would send

    Raises
    ------
    UsageError : the address is not to be had, or there is no route
    """
    udp = SharedUdpPort(source if source is not None else address_towards(peer_address), offload=False)
    try:
        control = script.end.congestion_control
        nic = RdmaNic(
            udp.address,
            number_prefix=udp.slot,
            congestion_control=load("congestion_control", control) if control is not None else None,
        )
        end = ScriptEnd(script, nic, parse_address(peer_address).packed, path_mtu=udp.path_mtu, port=port)
        _attend(NicDriver(end, udp), udp, lambda: end.is_over, limit_s)
        return end.report()
    finally:
        udp.close()


def _attend(driver: NicDriver, port: SharedUdpPort, is_over: Callable[[], bool], limit_s: float) -> None:
    """Move packets until the connection is over and its last packet has left, or the time is."""
    poller = select.poll()
    poller.register(port.fileno(), select.POLLIN)
    until_s = time.monotonic() + limit_s
    while True:
        if driver.progress():
            continue
        left_s = until_s - time.monotonic()
        if is_over() or left_s <= 0:
            return
        wait_s = driver.wait_s()
        poller.poll((left_s if wait_s is None else min(wait_s, left_s)) * _MS_PER_S)
