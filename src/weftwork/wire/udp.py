"""UDP: the header, its checksum, and RoCEv2 source ports.

The source port gives a flow its path.
Source: RFC 768; RFC 8200, 8.1 (pseudo-header); IBTA vol. 1, annex A17 (port 4791); Linux include/rdma/ib_verbs.h.
Leaves out: jumbograms; UDP options behind the length.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self

from weftwork.wire.fields import MalformedPacket, check_fits, split
from weftwork.wire.ip import PROTOCOL_UDP, IpHeader, Ipv4Header, internet_checksum

__all__ = [
    "ROCE_SOURCE_PORT_MINIMUM",
    "ROCE_V2_PORT",
    "UDP_HEADER_BYTES",
    "UdpHeader",
    "roce_source_port",
    "udp_checksum",
]

UDP_HEADER_BYTES = 8  # RFC 768
ROCE_V2_PORT = 4791  # IANA service name registry, "roce"; IBTA vol. 1, annex A17
ROCE_SOURCE_PORT_MINIMUM = 0xC000  # Linux include/rdma/ib_verbs.h, IB_ROCE_UDP_ENCAP_VALID_PORT_MIN: 14 bits of entropy

_UDP = struct.Struct(">HHHH")


@dataclass(frozen=True, kw_only=True, slots=True)
class UdpHeader:
    """A UDP header.

    Parameters
    ----------
    source_port, destination_port : 0 to 65,535
    payload_bytes : bytes behind the header, 0 to 65,527
    checksum : as on the wire; 0 says that there is none, which is usual for RoCEv2 because the ICRC protects more
    """

    source_port: int
    destination_port: int
    payload_bytes: int
    checksum: int = 0

    def encode(self) -> bytes:
        """Eight bytes; UsageError for a field that does not fit."""
        check_fits("source_port", self.source_port, 16)
        check_fits("destination_port", self.destination_port, 16)
        check_fits("payload_bytes", self.payload_bytes, 16)
        check_fits("payload_bytes + header", self.payload_bytes + UDP_HEADER_BYTES, 16)
        check_fits("checksum", self.checksum, 16)
        return _UDP.pack(self.source_port, self.destination_port, self.payload_bytes + UDP_HEADER_BYTES, self.checksum)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read a header and cut the payload to its length.

        The checksum is not verified, see ``udp_checksum``.

        Returns
        -------
        the record and the payload

        Raises
        ------
        MalformedPacket : too few bytes, or a length under 8
        """
        head, behind = split(data, UDP_HEADER_BYTES, "UDP")
        source_port, destination_port, length_bytes, checksum = _UDP.unpack(head)
        if length_bytes < UDP_HEADER_BYTES:
            raise MalformedPacket("UDP", f"found a length of {length_bytes}, wanted at least {UDP_HEADER_BYTES}")
        payload, _ = split(behind, length_bytes - UDP_HEADER_BYTES, "UDP payload")
        record = cls(
            source_port=source_port, destination_port=destination_port, payload_bytes=len(payload), checksum=checksum
        )
        return record, payload


def udp_checksum(ip: IpHeader, header: UdpHeader, payload: memoryview | bytes) -> int:
    """Checksum of a datagram with its pseudo-header, never 0 (RFC 768).

    The field ``header.checksum`` counts as 0.
    """
    length_bytes = UDP_HEADER_BYTES + len(payload)
    addresses = ip.source.packed + ip.destination.packed
    if isinstance(ip, Ipv4Header):
        pseudo_header = addresses + struct.pack(">HH", PROTOCOL_UDP, length_bytes)
    else:
        pseudo_header = addresses + struct.pack(">II", length_bytes, PROTOCOL_UDP)
    segment = struct.pack(">HHHH", header.source_port, header.destination_port, length_bytes, 0)
    return internet_checksum(pseudo_header + segment + bytes(payload)) or 0xFFFF


def roce_source_port(local_qpn: int, remote_qpn: int, flow_label: int = 0) -> int:
    """Source port of a RoCEv2 queue pair, as Linux drivers choose it.

    It is the only entropy that ECMP sees, equal both ways.
    Source: ``rdma_get_udp_sport`` in Linux include/rdma/ib_verbs.h. NCCL leaves the flow label 0, so that the two queue
    pair numbers decide.

    Parameters
    ----------
    local_qpn, remote_qpn : queue pair numbers, 24 bits each
    flow_label : 20 bits of the address handle; 0 takes them from the queue pair numbers

    Returns
    -------
    49,152 to 65,535

    Raises
    ------
    UsageError : an argument does not fit its bits

    Examples
    --------
    >>> roce_source_port(0x11, 0x12), roce_source_port(0x12, 0x11)
    (49458, 49458)
    """
    check_fits("local_qpn", local_qpn, 24)
    check_fits("remote_qpn", remote_qpn, 24)
    check_fits("flow_label", flow_label, 20)
    if flow_label == 0:
        product = local_qpn * remote_qpn
        product ^= product >> 20
        product ^= product >> 40
        flow_label = product & 0xFFFFF
    return ROCE_SOURCE_PORT_MINIMUM | ((flow_label & 0x3FFF) ^ (flow_label >> 14))
