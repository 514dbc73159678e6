"""Interfaces of this machine, their addresses and neighbours, and who listens at a name, as the kernel lists them.

Source: netlink(7), rtnetlink(7), sock_diag(7); Linux
include/uapi/linux/{netlink,rtnetlink,if_link,if_addr,neighbour,sock_diag,unix_diag}.h.
Leaves out: routes, and changes of any of these, except that a neighbour can be waited for.
"""

from __future__ import annotations

import select
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from struct import Struct
from typing import Any, Final, NamedTuple

__all__ = [
    "Interface",
    "InterfaceAddress",
    "NeighbourWatch",
    "addresses",
    "interfaces",
    "listening_users",
    "neighbours",
]

_HEADER: Final = Struct("=IHHII")  # struct nlmsghdr
_LINK: Final = Struct("=BxHiII")  # struct ifinfomsg: family, type, index, flags, changed
_ADDRESS: Final = Struct("=BBBBI")  # struct ifaddrmsg: family, prefix, flags, scope, index
_NEIGHBOUR: Final = Struct("=BxxxiHBB")  # struct ndmsg: family, index, state, flags, type
_UNIX_ASKED: Final = Struct("=BBHIIIII")  # struct unix_diag_req: family, protocol, states, inode, what to show, cookie
_UNIX: Final = Struct("=BBBxIII")  # struct unix_diag_msg: family, type, state, inode, cookie
_ATTRIBUTE: Final = Struct("=HH")  # struct rtattr: length, type
_GET_LINK, _GET_ADDRESS, _GET_NEIGHBOUR = 18, 22, 30  # RTM_GETLINK and so on
_SOCK_DIAG: Final = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY: Final = 20  # SOCK_DIAG_BY_FAMILY
_LISTENING: Final = 1 << 10  # TCP_LISTEN
_SHOW: Final = 0x01 | 0x40  # UDIAG_SHOW_NAME, UDIAG_SHOW_UID
_UNIX_NAME, _UNIX_USER = 0, 7  # UNIX_DIAG_NAME, UNIX_DIAG_UID
_DUMP: Final = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ERROR, _DONE = 2, 3  # NLMSG_ERROR, NLMSG_DONE
_LINK_ADDRESS, _LINK_NAME, _LINK_MTU = 1, 3, 4  # IFLA_ADDRESS and so on
_OF_PEER, _LOCAL = 1, 2  # IFA_ADDRESS, IFA_LOCAL
_DESTINATION, _MAC = 1, 2  # NDA_DST, NDA_LLADDR
_USABLE: Final = 0x02 | 0x04 | 0x08 | 0x10 | 0x80  # NUD_REACHABLE, STALE, DELAY, PROBE, PERMANENT
_NEIGHBOUR_GROUP: Final = 4  # RTMGRP_NEIGH
_BUFFER_BYTES: Final = 1 << 18  # chosen: a message of a dump has at most 32 KiB


class Interface(NamedTuple):
    """An interface.

    Parameters
    ----------
    number, name : of the interface
    kind : ARPHRD number, 1 of Ethernet and 772 of loopback
    mac : link address
    mtu_bytes : most bytes behind the link header
    """

    number: int
    name: str
    kind: int
    mac: bytes
    mtu_bytes: int


class InterfaceAddress(NamedTuple):
    """An address of an interface.

    Parameters
    ----------
    interface : its number
    address : 4 or 16 bytes in network order
    prefix_bits : that all addresses of the link share
    """

    interface: int
    address: bytes
    prefix_bits: int


def interfaces() -> list[Interface]:
    """All interfaces."""
    found = []
    for _, kind, index, _, _, attributes in _dump(_GET_LINK, _LINK):
        name = attributes[_LINK_NAME].rstrip(b"\0").decode()
        mtu_bytes = int.from_bytes(attributes.get(_LINK_MTU, b""), sys.byteorder)
        found.append(Interface(index, name, kind, attributes.get(_LINK_ADDRESS, b""), mtu_bytes))
    return found


def addresses() -> list[InterfaceAddress]:
    """All addresses of all interfaces."""
    return [
        InterfaceAddress(index, attributes.get(_LOCAL, attributes.get(_OF_PEER, b"")), prefix_bits)
        for _, prefix_bits, _, _, index, attributes in _dump(_GET_ADDRESS, _ADDRESS)
    ]


def listening_users(name: str) -> frozenset[int]:
    """Users whose sockets of the Unix domain listen at an abstract name: at most one for each type of socket.

    OSError where the kernel cannot tell (it lacks CONFIG_UNIX_DIAG).
    """
    wanted = name.encode()
    asked = _UNIX_ASKED.pack(socket.AF_UNIX, 0, 0, _LISTENING, 0, _SHOW, 0, 0)
    return frozenset(
        int.from_bytes(attributes[_UNIX_USER], sys.byteorder)
        for *_, attributes in _dump(_BY_FAMILY, _UNIX, asked, _SOCK_DIAG)
        if attributes.get(_UNIX_NAME) == wanted and _UNIX_USER in attributes
    )


def neighbours(interface: int) -> dict[bytes, bytes]:
    """Link addresses of the neighbours of an interface, by their IP addresses of 4 or 16 bytes."""
    return {
        attributes[_DESTINATION]: attributes[_MAC]
        for _, of, state, _, _, attributes in _dump(_GET_NEIGHBOUR, _NEIGHBOUR)
        if of == interface and state & _USABLE and _MAC in attributes and _DESTINATION in attributes
    }


class NeighbourWatch:
    """Waits until the kernel learns something about a neighbour."""

    def __init__(self) -> None:
        self._socket: Final = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.bind((0, _NEIGHBOUR_GROUP))

    def wait(self, timeout_s: float) -> bool:
        """Wait for news; False after the timeout."""
        ready, _, _ = select.select([self._socket], [], [], timeout_s)
        if ready:
            self._socket.recv(_BUFFER_BYTES)
        return bool(ready)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _dump(
    kind: int, layout: Struct, question: bytes = b"", protocol: int = socket.NETLINK_ROUTE
) -> Iterator[tuple[Any, ...]]:
    """Fields of each answer, and behind them its attributes by number.

    Parameters
    ----------
    kind : of the question
    layout : of an answer, and of a question that wants everything
    question : another one than that
    protocol : of netlink
    """
    body = question or bytes(layout.size)
    with closing(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)) as asked:
        asked.bind((0, 0))
        asked.send(_HEADER.pack(_HEADER.size + len(body), kind, _DUMP, 1, 0) + body)
        while True:
            data = asked.recv(_BUFFER_BYTES)
            at = 0
            while at < len(data):
                size, answer, _, _, _ = _HEADER.unpack_from(data, at)
                if answer == _DONE:
                    return
                if answer == _ERROR:
                    code = -int.from_bytes(data[at + _HEADER.size : at + _HEADER.size + 4], sys.byteorder, signed=True)
                    raise OSError(code, "the kernel does not list what was asked for")
                begin = at + _HEADER.size
                attributes = dict(_attributes(data[begin + layout.size : at + size]))
                yield *layout.unpack_from(data, begin), attributes
                at += _aligned(size)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        size, kind = _ATTRIBUTE.unpack_from(data, at)
        yield kind, data[at + _ATTRIBUTE.size : at + size]
        at += _aligned(size)


def _aligned(size: int) -> int:
    return (size + 3) & ~3  # NLMSG_ALIGN, RTA_ALIGN
