"""Users of this machine who have opened a UDP port of an address.

Source: proc_pid_net(5) (``udp``, ``udp6``); Linux net/ipv4/udp.c (``udp4_format_sock``) and net/ipv6/datagram.c.
Leaves out: sockets on all addresses, which get only what no socket of the address gets; other network namespaces.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from weftwork.wire.udp import ROCE_V2_PORT

__all__ = ["users_of_port"]

_TABLES: Final = (Path("/proc/net/udp"), Path("/proc/net/udp6"))
_LOCAL: Final = 1
_USER: Final = 7  # columns: number, local address, remote address, state, queues, timer, retransmissions, user
_WORD_BYTES: Final = 4  # of an address, each in the order of the machine


def users_of_port(address: bytes, port: int = ROCE_V2_PORT) -> frozenset[int]:
    """Users who have a socket on a port of an address.

    Parameters
    ----------
    address : of this machine, 4 or 16 bytes in network order
    port : of UDP
    """
    mapped = bytes(10) + b"\xff\xff" + address if len(address) == _WORD_BYTES else address
    wanted = {f"{_text_of(each)}:{port:04X}" for each in (address, mapped)}
    users = set()
    for table in _TABLES:
        if not table.exists():  # a system without IPv6
            continue
        for line in table.read_text(encoding="utf-8").splitlines()[1:]:
            words = line.split()
            if words[_LOCAL] in wanted:
                users.add(int(words[_USER]))
    return frozenset(users)


def _text_of(address: bytes) -> str:
    """Address as the tables write it."""
    words = (address[at : at + _WORD_BYTES] for at in range(0, len(address), _WORD_BYTES))
    return "".join(f"{int.from_bytes(word, 'little'):08X}" for word in words)
