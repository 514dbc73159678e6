"""Headers that a rule of flow steering matches; a software NIC has no such rules.

Source: pyverbs, spec.pyx (names).
Leaves out: the matching itself.
"""

from __future__ import annotations

from typing import Any

from weftwork.compat.pyverbs.base import PyverbsObject
from weftwork.compat.pyverbs.pyverbs_error import not_supported

__all__ = ["EthSpec", "Ipv4ExtSpec", "Ipv6Spec", "Spec", "TcpUdpSpec"]


class Spec(PyverbsObject):
    """A header that is refused."""

    def __init__(self, **values: Any) -> None:  # noqa: ANN401, ARG002 - as pyverbs
        raise not_supported("Flow steering")


class EthSpec(Spec):
    """An Ethernet header."""


class Ipv4ExtSpec(Spec):
    """An IPv4 header."""


class TcpUdpSpec(Spec):
    """A TCP or UDP header."""


class Ipv6Spec(Spec):
    """An IPv6 header."""
