"""Sockets of IP multicast groups on UDP port 4791.

A port has one socket for each group that it has joined, on the interface of its address. The system gives a copy of
each datagram to every socket of the group, also to those of other processes and to those of the sender's own machine.
Source: ip(7), ipv6(7); ``IP_MULTICAST_ALL`` in Linux include/uapi/linux/in.h, ``IPV6_MULTICAST_ALL`` in in6.h.
Leaves out: source filters (IGMPv3).
"""

from __future__ import annotations

import socket
from struct import Struct
from typing import Final

from weftwork.base.errors import UsageError
from weftwork.rdma.drivers.udp import enlarge, interface_of, parse_address
from weftwork.wire.udp import ROCE_V2_PORT

__all__ = ["open_group"]

_IP_RECVTOS: Final = 13
_IP_MULTICAST_ALL: Final = 49
_IPV6_MULTICAST_ALL: Final = 29
_INDEX: Final = Struct("=I")


def open_group(group: str, address: str) -> socket.socket:
    """Join a group on the interface of an address; returns its receiving socket.

    Parameters
    ----------
    group : IP multicast address
    address : of this machine, of the same IP version

    Raises
    ------
    UsageError : the system refuses
    """
    is_ipv6 = parse_address(group).version == 6
    receiver = socket.socket(socket.AF_INET6 if is_ipv6 else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        enlarge(receiver, is_receive=True)
        receiver.settimeout(0)
        if is_ipv6:
            member = socket.inet_pton(socket.AF_INET6, group) + _INDEX.pack(interface_of(address))
            receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
            receiver.setsockopt(socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL, 0)
            receiver.bind((group, ROCE_V2_PORT))
            receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
        else:
            member = socket.inet_aton(group) + socket.inet_aton(address)
            receiver.setsockopt(socket.IPPROTO_IP, _IP_RECVTOS, 1)
            receiver.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
            receiver.bind((group, ROCE_V2_PORT))
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    except OSError as error:
        receiver.close()
        raise UsageError(f"group: found {group}, which {address} could not join: {error.strerror}") from error
    return receiver
