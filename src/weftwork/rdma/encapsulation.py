"""Headers in front of BTH: the encapsulations of the transport.

RoCEv2 has IP and UDP there, RoCEv1 a global route header (GRH), native InfiniBand a local route header (LRH) with or
without a GRH. The NIC asks its encapsulation for all that follows from these headers: the state of the ICRC, the header
that the receiver of a datagram gets, the legal addresses, and the LIDs of a connection's path.
Source: IBTA vol. 1, 7.7, 7.8.1, 8.3, 11.4.1.2, annex A16 (RoCEv1) and annex A17 (RoCEv2).
Leaves out: link headers and the variant CRC, which are a driver's.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final, Protocol

from weftwork.base.errors import UsageError
from weftwork.wire.icrc import front_state, native_front_state
from weftwork.wire.ip import IPV6_HEADER_BYTES, Ipv4Header, Ipv6Header
from weftwork.wire.lrh import LRH_BYTES, NEXT_HEADER_BTH, NEXT_IS_BTH, NEXT_IS_GRH, Lrh
from weftwork.wire.rdma_ip_cm import gid_of
from weftwork.wire.udp import ROCE_V2_PORT, UDP_HEADER_BYTES, UdpHeader

if TYPE_CHECKING:
    from weftwork.rdma.datagram import Datagram

__all__ = ["ROCE_V1", "ROCE_V2", "Encapsulation", "InfinibandEncapsulation", "LocalRoutes"]

_IPV4_BYTES: Final = 4
_GID_BYTES: Final = 16
_PERMISSIVE_LID: Final = 0xFFFF  # IB_LID_PERMISSIVE in Linux: RoCE has no LIDs
_LEVELS: Final = 16  # IBTA vol. 1, 7.7: four bits of LRH
_ETHERNET_BYTES: Final = 38  # with preamble, check sequence and gap
_LINK_BYTES: Final = 4  # IBTA vol. 1, 7.8.2 and vol. 2: variant CRC, and the delimiters of a packet


class Encapsulation(Protocol):
    """Headers in front of BTH.

    Attributes
    ----------
    name : as specifications have it
    has_ports : whether a UDP port tells flows apart; the ``dscp`` of a datagram does where there is none
    overhead_bytes : of a packet beside its bytes from BTH to ICRC, on the line; of the pace, not of the packet
    """

    @property
    def name(self) -> str:
        """Name of the encapsulation."""

    @property
    def has_ports(self) -> bool:
        """Whether a UDP port tells flows apart."""

    @property
    def overhead_bytes(self) -> int:
        """Bytes on the line around the bytes from BTH to ICRC."""

    def check_path(self, source: bytes, destination: bytes, dscp: int) -> None:
        """Refuse addresses or marks that no packet can have, by UsageError."""

    def front(self, datagram: Datagram, payload_bytes: int) -> bytes:
        """Headers in front of BTH.

        Parameters
        ----------
        datagram : its addresses and marks; the TTL is the usual one
        payload_bytes : from BTH to ICRC
        """

    def state(self, front: bytes) -> int:
        """State of the ICRC behind the headers that `front` gives."""

    def network_header(self, datagram: Datagram, payload_bytes: int) -> bytes:
        """Header that the receiver of a datagram gets: GRH or IP header; empty where there is none."""

    def lids(self, source: bytes, destination: bytes) -> tuple[int, int]:
        """LIDs of two addresses, as a REQ names them."""


class RoceV2Encapsulation:
    """IP and UDP."""

    name: Final = "RoCEv2"
    has_ports: Final = True
    overhead_bytes: Final = _ETHERNET_BYTES + 28  # of IPv4

    def check_path(self, source: bytes, destination: bytes, dscp: int) -> None:
        """Refuse addresses that are not both IPv4 or both IPv6."""
        del dscp
        if len(source) != len(destination) or len(source) not in {_IPV4_BYTES, _GID_BYTES}:
            raise UsageError(f"addresses: found {len(source)} and {len(destination)} bytes, wanted 4 or 16 for both")

    def front(self, datagram: Datagram, payload_bytes: int) -> bytes:
        """IP and UDP header."""
        udp = UdpHeader(source_port=datagram.source_port, destination_port=ROCE_V2_PORT, payload_bytes=payload_bytes)
        return self.network_header(datagram, payload_bytes) + udp.encode()

    def state(self, front: bytes) -> int:
        """State of the ICRC."""
        return front_state(front)

    def network_header(self, datagram: Datagram, payload_bytes: int) -> bytes:
        """IPv4 or IPv6 header."""
        self.check_path(datagram.source, datagram.destination, datagram.dscp)
        size_bytes = payload_bytes + UDP_HEADER_BYTES
        if len(datagram.source) == _IPV4_BYTES:
            return Ipv4Header(
                source=IPv4Address(datagram.source),
                destination=IPv4Address(datagram.destination),
                payload_bytes=size_bytes,
                dscp=datagram.dscp,
                ecn=datagram.ecn,
                identification=datagram.identification or 0,
            ).encode()
        return Ipv6Header(
            source=IPv6Address(datagram.source),
            destination=IPv6Address(datagram.destination),
            payload_bytes=size_bytes,
            dscp=datagram.dscp,
            ecn=datagram.ecn,
        ).encode()

    def lids(self, source: bytes, destination: bytes) -> tuple[int, int]:
        """Permissive LIDs."""
        del source, destination
        return _PERMISSIVE_LID, _PERMISSIVE_LID


class RoceV1Encapsulation:
    """A global route header behind an Ethernet header.

    GIDs are IP addresses; an IPv4 address is mapped into IPv6.
    """

    name: Final = "RoCEv1"
    has_ports: Final = False
    overhead_bytes: Final = _ETHERNET_BYTES + IPV6_HEADER_BYTES

    def check_path(self, source: bytes, destination: bytes, dscp: int) -> None:
        """Refuse addresses that are not both IPv4 or both IPv6."""
        ROCE_V2.check_path(source, destination, dscp)

    def front(self, datagram: Datagram, payload_bytes: int) -> bytes:
        """GRH."""
        self.check_path(datagram.source, datagram.destination, datagram.dscp)
        return _grh(datagram, payload_bytes)

    def state(self, front: bytes) -> int:
        """State of the ICRC."""
        return front_state(front)

    def network_header(self, datagram: Datagram, payload_bytes: int) -> bytes:
        """GRH."""
        return self.front(datagram, payload_bytes)

    def lids(self, source: bytes, destination: bytes) -> tuple[int, int]:
        """Permissive LIDs."""
        return ROCE_V2.lids(source, destination)


class LocalRoutes(Protocol):
    """Paths of a subnet, as its manager knows them."""

    def lid_of(self, gid: bytes) -> int:
        """LID of a port; UsageError for a GID that the subnet does not have."""


class InfinibandEncapsulation:
    """A local route header, and a global one where wanted.

    Parameters
    ----------
    routes : of the subnet
    has_grh : packets have a GRH, which a subnet does not need
    """

    name: Final = "InfiniBand"
    has_ports: Final = False

    def __init__(self, routes: LocalRoutes, *, has_grh: bool = False) -> None:
        self._routes: Final = routes
        self.has_grh: Final = has_grh
        self._network_bytes: Final = IPV6_HEADER_BYTES if has_grh else 0
        self.overhead_bytes: Final = LRH_BYTES + self._network_bytes + _LINK_BYTES

    def check_path(self, source: bytes, destination: bytes, dscp: int) -> None:
        """Refuse addresses that the subnet does not have, and service levels beyond 15."""
        if not 0 <= dscp < _LEVELS:
            raise UsageError(f"dscp: found {dscp}, wanted a service level of InfiniBand, 0 to {_LEVELS - 1}")
        self.lids(source, destination)

    def front(self, datagram: Datagram, payload_bytes: int) -> bytes:
        """LRH with virtual lane 0, and GRH where there is one."""
        source_lid, destination_lid = self.lids(datagram.source, datagram.destination)
        lrh = Lrh(
            destination_lid=destination_lid,
            source_lid=source_lid,
            packet_words=(LRH_BYTES + self._network_bytes + payload_bytes) // 4,
            next_header=NEXT_IS_GRH if self.has_grh else NEXT_IS_BTH,
            service_level=datagram.dscp,
        )
        return lrh.encode() + self.network_header(datagram, payload_bytes)

    def state(self, front: bytes) -> int:
        """State of the ICRC."""
        return native_front_state(front)

    def network_header(self, datagram: Datagram, payload_bytes: int) -> bytes:
        """GRH, or nothing."""
        return _grh(datagram._replace(dscp=0), payload_bytes) if self.has_grh else b""

    def lids(self, source: bytes, destination: bytes) -> tuple[int, int]:
        """LIDs in the subnet."""
        return self._routes.lid_of(source), self._routes.lid_of(destination)


def _grh(datagram: Datagram, payload_bytes: int) -> bytes:
    return Ipv6Header(
        source=IPv6Address(gid_of(datagram.source)),
        destination=IPv6Address(gid_of(datagram.destination)),
        payload_bytes=payload_bytes,
        next_header=NEXT_HEADER_BTH,
        dscp=datagram.dscp,
        ecn=datagram.ecn,
    ).encode()


ROCE_V2: Final = RoceV2Encapsulation()
ROCE_V1: Final = RoceV1Encapsulation()
