"""Addresses of hosts by their names.

Source: getaddrinfo(3).
Leaves out: names of services; every port is a number.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import ip_address

from weftwork.base.errors import UsageError

__all__ = ["numeric_address"]


def numeric_address(name: str) -> str:
    """IP address that a name of a host stands for; an address stands for itself.

    Of several addresses the first of IPv4 is taken, since devices listen on one unless told otherwise.

    Raises
    ------
    UsageError : nobody knows the name
    """
    with suppress(ValueError):
        ip_address(name)
        return name
    try:
        known = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no name of a host"
        raise UsageError(f"address: found {name!r}, wanted an IP address or the name of a host: {why}") from error
    known.sort(key=lambda found: found[0] is not socket.AF_INET)
    return str(known[0][4][0])
