"""UDP datagrams of RoCEv2 as the NIC takes and gives them, and the ICRC that closes each.

Source: IBTA vol. 1, annex A17; the BTH as in ``weftwork.wire.ib``, packed here at once because every packet needs it.
Leaves out: sockets and IP headers, which are a driver's; IPv4 options. The identification of IPv4 is under the ICRC:
a driver sends 0, or says what it will send.
"""

from __future__ import annotations

import struct
import zlib
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple

from weftwork.base.errors import UsageError
from weftwork.wire.ib import BTH_BYTES
from weftwork.wire.icrc import ICRC_BYTES, front_state, icrc_behind
from weftwork.wire.ip import ECN_ECT0, IPV4_HEADER_BYTES, Ipv4Header, Ipv6Header
from weftwork.wire.udp import ROCE_V2_PORT, UDP_HEADER_BYTES, UdpHeader

__all__ = ["BTH", "LARGEST_BYTES", "SMALLEST_BYTES", "Datagram", "IcrcStates", "UdpFlow", "ip_header", "is_intact"]

BTH: Final = struct.Struct(">BBHII")
_ICRC: Final = struct.Struct("<I")
_MOST_STATES: Final = 4096  # chosen: flows x sizes of packets that a busy host sees at once


class Datagram(NamedTuple):
    """A UDP datagram to or from port 4791.

    Parameters
    ----------
    source, destination : IP addresses, 4 or 16 bytes in network order
    source_port : entropy of the flow
    parts : its payload from BTH to ICRC, in pieces to be sent one behind the other; one piece where it has arrived
    ecn : 2 bits; as it arrived, or to be sent
    dscp : of the IP header
    identification : of IPv4, 16 bits
    """

    source: bytes
    destination: bytes
    source_port: int
    parts: tuple[bytes | memoryview, ...]
    ecn: int = ECN_ECT0
    dscp: int = 0
    identification: int = 0

    def payload(self) -> bytes | memoryview:
        """The bytes in one piece; copies where there are several."""
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)


class IcrcStates:
    """States of the ICRC behind the IP and UDP headers, kept for every flow and size of packet."""

    def __init__(self) -> None:
        self._states: dict[tuple[bytes, bytes, int, int, int], int] = {}

    def of(self, flow: tuple[bytes, bytes, int], payload_bytes: int, identification: int = 0) -> int:
        """State behind the headers.

        Parameters
        ----------
        flow : source, destination and source port
        payload_bytes : of UDP, ICRC included
        identification : of IPv4

        Raises
        ------
        UsageError : the addresses are not both IPv4 or both IPv6
        """
        key = (*flow, payload_bytes, identification)
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= _MOST_STATES:
                self._states.clear()
            state = self._states[key] = front_state(_front(flow, payload_bytes, identification))
        return state


def _front(flow: tuple[bytes, bytes, int], payload_bytes: int, identification: int) -> bytes:
    source, destination, source_port = flow
    udp = UdpHeader(source_port=source_port, destination_port=ROCE_V2_PORT, payload_bytes=payload_bytes)
    sample = Datagram(source, destination, source_port, (), identification=identification)
    return ip_header(sample, payload_bytes) + udp.encode()


def ip_header(datagram: Datagram, payload_bytes: int) -> bytes:
    """IP header of a datagram, as far as a receiver knows it; the TTL is the usual one.

    Parameters
    ----------
    datagram : its addresses and marks
    payload_bytes : of UDP

    Raises
    ------
    UsageError : the addresses are not both IPv4 or both IPv6
    """
    source, destination = datagram.source, datagram.destination
    size_bytes = payload_bytes + UDP_HEADER_BYTES
    if len(source) == len(destination) == 4:
        return Ipv4Header(
            source=IPv4Address(source),
            destination=IPv4Address(destination),
            payload_bytes=size_bytes,
            dscp=datagram.dscp,
            ecn=datagram.ecn,
            identification=datagram.identification,
        ).encode()
    if len(source) == len(destination) == 16:
        return Ipv6Header(
            source=IPv6Address(source),
            destination=IPv6Address(destination),
            payload_bytes=size_bytes,
            dscp=datagram.dscp,
            ecn=datagram.ecn,
        ).encode()
    raise UsageError(f"addresses: found {len(source)} and {len(destination)} bytes, wanted 4 or 16 for both")


def is_intact(datagram: Datagram, payload: memoryview, states: IcrcStates) -> bool:
    """Whether the ICRC of a datagram that has arrived is right; its payload holds BTH and ICRC at least."""
    covered = len(payload) - ICRC_BYTES
    flow = (datagram.source, datagram.destination, datagram.source_port)
    state = states.of(flow, len(payload), datagram.identification)
    (found,) = _ICRC.unpack_from(payload, covered)
    return bool(found == icrc_behind(state, payload[:covered]))


class UdpFlow:
    """Packets from here to one address by one source port.

    Parameters
    ----------
    source, destination, source_port, dscp : as in `Datagram`
    states : of the NIC
    """

    def __init__(
        self, source: bytes, destination: bytes, source_port: int, states: IcrcStates, *, dscp: int = 0
    ) -> None:
        self.source: Final = source
        self.destination: Final = destination
        self.source_port: Final = source_port
        self.dscp: Final = dscp
        self._key: Final = (source, destination, source_port)
        self._states: Final = states

    def close(self, header: bytes, pieces: tuple[bytes | memoryview, ...] = (), pad_bytes: int = 0) -> Datagram:
        """Put the ICRC behind a packet; copies no payload.

        Parameters
        ----------
        header : BTH and extended headers
        pieces : of the payload
        pad_bytes : zeros behind it, as BTH says
        """
        size_bytes = len(header) + sum(map(len, pieces)) + pad_bytes + ICRC_BYTES
        crc = icrc_behind(self._states.of(self._key, size_bytes), header)
        for piece in pieces:
            crc = zlib.crc32(piece, crc)
        trailer = bytes(pad_bytes)
        parts = (header, *pieces, trailer + _ICRC.pack(zlib.crc32(trailer, crc)))
        return Datagram(self.source, self.destination, self.source_port, parts, ECN_ECT0, self.dscp)


SMALLEST_BYTES: Final = BTH_BYTES + ICRC_BYTES  # of a payload of UDP that can be a packet
LARGEST_BYTES: Final = 0xFFFF - IPV4_HEADER_BYTES - UDP_HEADER_BYTES  # RFC 791, section 3.1: total length
