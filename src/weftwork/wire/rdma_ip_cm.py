"""RDMA IP CM service: IP addresses in requests, and ports as service IDs.

The addresses are in the private data of a REQ or SIDR_REQ.
Source: IBTA vol. 1, annex A11, as encoded in struct cma_hdr of Linux drivers/infiniband/core/cma.c and enum
rdma_ucm_port_space of include/uapi/rdma/rdma_user_cm.h.
Leaves out: SDP; native service IDs without a port (RDMA_PS_IB).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address
from typing import Final, Self

from weftwork.base.errors import UsageError
from weftwork.wire.fields import MalformedPacket, check_fits, split

__all__ = ["IP_CM_HEADER_BYTES", "IpCmHeader", "PortSpace", "gid_of", "port_of_service", "service_of_port"]

IP_CM_HEADER_BYTES: Final = 36  # struct cma_hdr
_HEADER: Final = struct.Struct(">BBH16s16s")
_PORT_BITS: Final = 16
_IPV4_BYTES: Final = 4
_GID_BYTES: Final = 16
_MAPPED: Final = bytes(10) + b"\xff\xff"  # RFC 4291, 2.5.5.2: IPv4 address as IPv6 address


class PortSpace(IntEnum):
    """Kinds of services that count ports separately (enum rdma_ucm_port_space)."""

    IPOIB = 0x0002
    TCP = 0x0106
    UDP = 0x0111


@dataclass(frozen=True, kw_only=True, slots=True)
class IpCmHeader:
    """The first 36 bytes of the private data of a REQ or SIDR_REQ.

    Parameters
    ----------
    source_port : 16 bits; of the sender, which nobody but it needs
    source, destination : both IPv4 or both IPv6
    version : 8 bits; 0
    """

    source_port: int
    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    version: int = 0

    def encode(self) -> bytes:
        """The header in 36 bytes; UsageError for wrong fields or mixed versions.

        Both addresses have one version.
        """
        check_fits("source_port", self.source_port, _PORT_BITS)
        check_fits("version", self.version, 8)
        if self.source.version != self.destination.version:
            raise UsageError(f"addresses: found {self.source} and {self.destination}, wanted one IP version")
        source, destination = (address.packed.rjust(_GID_BYTES, b"\0") for address in (self.source, self.destination))
        return _HEADER.pack(self.version, self.source.version << 4, self.source_port, source, destination)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read 36 bytes.

        Returns
        -------
        the record and the private data of the user

        Raises
        ------
        MalformedPacket : too few bytes, or an IP version other than 4 and 6
        """
        head, behind = split(data, IP_CM_HEADER_BYTES, "IP CM")
        version, ip_version, source_port, source, destination = _HEADER.unpack(head)
        if ip_version >> 4 == 4:
            addresses: list[IPv4Address | IPv6Address] = [IPv4Address(raw[-4:]) for raw in (source, destination)]
        elif ip_version >> 4 == 6:
            addresses = [IPv6Address(raw) for raw in (source, destination)]
        else:
            raise MalformedPacket("IP CM", f"found IP version {ip_version >> 4}, wanted 4 or 6")
        record = cls(source_port=source_port, source=addresses[0], destination=addresses[1], version=version)
        return record, behind


def service_of_port(port: int, space: PortSpace = PortSpace.TCP) -> int:
    """Service ID of a port; UsageError beyond 16 bits.

    Examples
    --------
    >>> f"{service_of_port(4420):#x}"
    '0x1061144'
    >>> f"{service_of_port(4420, PortSpace.UDP):#x}"
    '0x1111144'
    """
    check_fits("port", port, _PORT_BITS)
    return space << _PORT_BITS | port


def port_of_service(service_id: int, space: PortSpace = PortSpace.TCP) -> int | None:
    """Port of a service ID; None outside the port space."""
    is_port = service_id >> _PORT_BITS == space
    return service_id & 0xFFFF if is_port else None


def gid_of(address: bytes) -> int:
    """GID of an IP address of 4 or 16 bytes, as a number.

    Source: IBTA vol. 1, annex A17: RoCEv2.

    Examples
    --------
    >>> f"{gid_of(bytes((10, 0, 0, 1))):#x}"
    '0xffff0a000001'
    """
    return int.from_bytes(_MAPPED + address if len(address) == _IPV4_BYTES else address)
