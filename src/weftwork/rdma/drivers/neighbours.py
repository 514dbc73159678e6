"""Link addresses of the peers on one Ethernet link.

The kernel resolves them, by ARP or neighbour discovery: a datagram to the discard port of a peer makes it ask.
Source: arp(7), rtnetlink(7); RFC 863 (discard).
Leaves out: an ARP of our own; peers behind a router, which RoCEv1 cannot reach.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

from weftwork.rdma.drivers.netlink import NeighbourWatch, neighbours

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.rdma.drivers.netlink import Interface

__all__ = ["Neighbours"]

_DISCARD_PORT: Final = 9  # RFC 863
_FRESH_S: Final = 30.0  # base_reachable_time_ms in Linux net/ipv4/arp.c
_WAIT_S: Final = 0.05  # chosen: an answer on a link takes less; later the packet is lost, and sent again
_AGAIN_S: Final = 1.0  # RETRANS_TIME in Linux: a peer that does not answer is asked once a second
_MOST: Final = 4096  # chosen: peers that are remembered, since a source can be forged


class _Known(NamedTuple):
    mac: bytes | None
    until_s: float


class Neighbours:
    """Link addresses by IP address.

    Parameters
    ----------
    link : whose neighbours
    address : of this machine on the link
    clock_s : time that never goes back
    """

    def __init__(self, link: Interface, address: bytes, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._link: Final = link
        self._address: Final = address
        self._clock_s: Final = clock_s
        self._known: dict[bytes, _Known] = {}

    def learn(self, address: bytes, mac: bytes) -> None:
        """Note the sender of a frame, unless another address is known.

        So a forged frame does not lead packets away from a peer that the kernel knows.
        """
        known = self._known.get(address)
        if known is None or known.mac is None:
            self._note(address, mac, _FRESH_S)

    def mac_of(self, address: bytes) -> bytes | None:
        """Interface address of a peer, or None where it does not answer.

        An unknown peer is waited for, for a short time.
        """
        known = self._known.get(address)
        if known is not None and self._clock_s() < known.until_s:
            return known.mac
        mac = neighbours(self._link.number).get(address)
        if mac is None:
            mac = self._resolve(address, _WAIT_S if known is None or known.mac is None else 0.0)
        if mac is not None:
            return self._note(address, mac, _FRESH_S)
        return self._note(address, known.mac if known is not None else None, _AGAIN_S)

    def ask(self, address: bytes) -> None:
        """Let the kernel ask for a peer."""
        family = socket.AF_INET if len(address) == 4 else socket.AF_INET6
        with closing(socket.socket(family, socket.SOCK_DGRAM)) as asking:
            asking.settimeout(0)
            try:
                asking.bind(self._socket_address(self._address, 0))
                asking.sendto(b"", self._socket_address(address, _DISCARD_PORT))
            except OSError:
                return  # no way there: it stays unknown, and its packets are counted

    def _resolve(self, address: bytes, wait_s: float) -> bytes | None:
        with closing(NeighbourWatch()) as watch:
            self.ask(address)
            end_s = self._clock_s() + wait_s
            while True:
                mac = neighbours(self._link.number).get(address)
                left_s = end_s - self._clock_s()
                if mac is not None or left_s <= 0 or not watch.wait(left_s):
                    return mac

    def _note(self, address: bytes, mac: bytes | None, for_s: float) -> bytes | None:
        if len(self._known) >= _MOST and address not in self._known:
            self._known.clear()
        self._known[address] = _Known(mac, self._clock_s() + for_s)
        return mac

    def _socket_address(self, address: bytes, port: int) -> tuple[str, int] | tuple[str, int, int, int]:
        parsed = ipaddress.ip_address(address)
        if isinstance(parsed, ipaddress.IPv4Address):
            return str(parsed), port
        return str(parsed), port, 0, self._link.number if parsed.is_link_local else 0
