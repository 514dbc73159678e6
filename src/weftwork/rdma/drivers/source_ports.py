"""UDP ports that no other user of this machine can send from.

A guard, a socket on the port of all addresses, keeps each port: the system lets only sockets of the same user share
it, whatever their address. The ports are random, and are kept until the device closes, since somebody else may take a
port that is free for a moment.
Source: socket(7) (SO_REUSEPORT), ip(7).
Leaves out: users who may send any packet (CAP_NET_RAW), and other processes of the same user.
"""

from __future__ import annotations

import ipaddress
import random
import socket
from typing import Final

from weftwork.base.errors import UsageError

__all__ = ["OwnedSourcePorts"]

_FIRST: Final = 0xC000  # RFC 6335, 6: dynamic ports, as IB_ROCE_UDP_ENCAP_VALID_PORT_MIN in Linux
_COUNT: Final = 0x4000
_MOST_KEPT: Final = 128  # chosen: an eighth of what a process may open by default (RLIMIT_NOFILE)
_MOST_TRIED: Final = 256  # chosen: of 16,384 ports
_MOST_REMEMBERED: Final = 4096  # chosen: addresses, since a peer may name any


class OwnedSourcePorts:
    """Source ports of a device.

    Parameters
    ----------
    is_ipv6 : of its addresses
    """

    def __init__(self, *, is_ipv6: bool) -> None:
        self._family: Final = socket.AF_INET6 if is_ipv6 else socket.AF_INET
        self._random: Final = random.SystemRandom()
        self._guards: Final[dict[int, socket.socket]] = {}
        self._here: Final[dict[bytes, bool]] = {}

    def draw(self, qp_num: int) -> int:
        """Draw a port, which tells nothing about a queue pair; UsageError where none is free.

        Beyond `_MOST_KEPT` connections share ports.
        """
        del qp_num
        if len(self._guards) >= _MOST_KEPT:
            return self._random.choice(list(self._guards))
        for _ in range(_MOST_TRIED):
            port = _FIRST + self._random.randrange(_COUNT)
            if port in self._guards or self._keep(port):
                return port
        raise UsageError(f"source port: found {_MOST_TRIED} ports of other programs, wanted a free one")

    def _keep(self, port: int) -> bool:
        guard = socket.socket(self._family, socket.SOCK_DGRAM)
        try:
            guard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            guard.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # the smallest: nothing is received here
            if self._family == socket.AF_INET6:
                guard.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            guard.bind(("", port))
        except OSError:
            guard.close()
            return False
        self._guards[port] = guard
        return True

    def is_here(self, address: bytes) -> bool:
        """Whether an address is of this machine."""
        if address not in self._here:
            if len(self._here) >= _MOST_REMEMBERED:
                self._here.clear()
            self._here[address] = self._can_bind(address)
        return self._here[address]

    def _can_bind(self, address: bytes) -> bool:
        with socket.socket(self._family, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind((str(ipaddress.ip_address(address)), 0))
            except OSError:
                return False
        return True

    def close(self) -> None:
        """Free all ports."""
        for guard in self._guards.values():
            guard.close()
        self._guards.clear()
