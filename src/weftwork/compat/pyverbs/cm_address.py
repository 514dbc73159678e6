"""Addresses of the connection manager.

Source: pyverbs, cmid.pyx (names); librdmacm, rdma_getaddrinfo(3).
Leaves out: addresses of InfiniBand; routes, which RoCE takes from the system.
"""

from __future__ import annotations

import copy
import socket
from errno import EADDRNOTAVAIL, EINVAL, ENODEV
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from weftwork.base.errors import UsageError
from weftwork.compat.pyverbs.base import PyverbsObject
from weftwork.compat.pyverbs.libibverbs_enums import ibv_qp_type
from weftwork.compat.pyverbs.librdmacm_enums import RAI_PASSIVE, rdma_port_space
from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError
from weftwork.compat.pyverbs.software_nics import device_names, find_device
from weftwork.rdma.wires import source_towards

if TYPE_CHECKING:
    from weftwork.compat.pyverbs.qp_attr import QPInitAttr

__all__ = ["AddrInfo", "Endpoint", "device_of"]


class Endpoint(NamedTuple):
    """An IP address and a port.

    Parameters
    ----------
    address : as text
    port : 0 for none
    """

    address: str
    port: int

    @property
    def packed(self) -> bytes:
        """Address, 4 or 16 bytes in network order."""
        return ip_address(self.address).packed


class AddrInfo(PyverbsObject):
    """Addresses of both ends.

    Parameters
    ----------
    src, dst : address or name of this end and of the peer
    src_service, dst_service : port, or name of a service
    port_space : kind of the service
    flags : ``RAI_PASSIVE`` for the end that listens

    Attributes
    ----------
    source, destination : as resolved, or None
    """

    def __init__(
        self,
        src: str | bytes | None = None,
        dst: str | bytes | None = None,
        src_service: str | bytes | None = None,
        dst_service: str | bytes | None = None,
        port_space: int = 0,
        flags: int = 0,
    ) -> None:
        self.flags = int(flags)
        self.port_space = rdma_port_space(int(port_space)) if port_space else rdma_port_space.RDMA_PS_TCP
        self.source: Endpoint | None = None
        self.destination: Endpoint | None = None
        if src or self.is_passive:
            self.source = self._resolve(src, src_service, is_passive=True)
        if not self.is_passive and (dst or dst_service):
            self.destination = self._resolve(dst, dst_service, is_passive=False)
        if self.source is None and self.destination is None:
            raise PyverbsRDMAError("Failed to get Address Info (no address is given)", EINVAL)

    @property
    def is_passive(self) -> bool:
        """Whether it is for the end that listens."""
        return bool(self.flags & RAI_PASSIVE)

    def _resolve(self, name: str | bytes | None, service: str | bytes | None, *, is_passive: bool) -> Endpoint:
        kind = socket.SOCK_STREAM if self.port_space == rdma_port_space.RDMA_PS_TCP else socket.SOCK_DGRAM
        try:
            found = socket.getaddrinfo(name, service, type=kind, flags=socket.AI_PASSIVE if is_passive else 0)
        except socket.gaierror as error:
            raise PyverbsRDMAError(f"Failed to get Address Info ({error.strerror})", EADDRNOTAVAIL) from error
        address, port, *_ = found[0][4]
        return Endpoint(str(address).partition("%")[0], int(port))

    def typed(self, made_with: QPInitAttr | None) -> QPInitAttr | None:
        """Attributes whose queue pair has the type of the port space, as rdma_create_ep of librdmacm sets it."""
        if made_with is None:
            return None
        typed = copy.copy(made_with)
        is_stream = self.port_space == rdma_port_space.RDMA_PS_TCP
        typed.qp_type = ibv_qp_type.IBV_QPT_RC if is_stream else ibv_qp_type.IBV_QPT_UD
        return typed

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def device_of(source: Endpoint | None, destination: Endpoint | None) -> str:
    """Name of the device whose address packets leave from.

    Parameters
    ----------
    source : address of this end; None lets the way to the peer decide
    destination : of the peer

    Raises
    ------
    PyverbsRDMAError : no device has the address
    """
    address = source.address if source is not None else None
    if (address is None or ip_address(address).is_unspecified) and destination is not None:
        try:
            address = source_towards(destination.address)
        except UsageError as error:
            raise PyverbsRDMAError(f"Failed to Resolve Address ({error})", ENODEV) from error
    if address is None or ip_address(address).is_unspecified:
        return device_names()[0]
    name = find_device(address)
    if name is None:
        raise PyverbsRDMAError(f"Failed to find a device with address {address}", ENODEV)
    return name
