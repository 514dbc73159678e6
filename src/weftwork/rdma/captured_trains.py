"""Captured frames that hold several packets.

The system had not cut them yet or had joined them already. A capture on the machine that sends with segmentation
offload, or receives with receive offload, shows such frames: they are longer than any packet of RoCE, and the ICRC of
each packet lies inside.
Source: udp(7) (UDP_SEGMENT, UDP_GRO): all packets but the last have one size, and the identification of IPv4 counts up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import BTH_BYTES
from weftwork.wire.icrc import ICRC_BYTES, check_icrc
from weftwork.wire.ip import Ipv4Header
from weftwork.wire.opcodes import Position
from weftwork.wire.pcap import LINK_RAW_IP
from weftwork.wire.udp import UDP_HEADER_BYTES

if TYPE_CHECKING:
    from weftwork.wire.dissection import Dissection
    from weftwork.wire.ip import IpHeader
    from weftwork.wire.pcap import CapturedPacket
    from weftwork.wire.transport import TransportPacket
    from weftwork.wire.udp import UdpHeader

__all__ = ["cut_train", "is_cut_train"]


def is_cut_train(packet: TransportPacket) -> bool:
    """Whether a packet that the capture cut is longer than a packet can be.

    How many packets follow in its frame is not known, so that nothing is known of the order behind it.
    """
    size_bytes = len(packet.payload)
    is_full = packet.shape.position in {Position.FIRST, Position.MIDDLE}
    return size_bytes > PATH_MTUS_BYTES[-1] or (is_full and size_bytes not in PATH_MTUS_BYTES)


def cut_train(packet: CapturedPacket, found: Dissection) -> list[CapturedPacket]:
    """Cut a frame into its packets, with the headers of the wire.

    Each has its IP and UDP header.

    Parameters
    ----------
    packet : whose ICRC is wrong as a whole
    found : what was read of it

    Returns
    -------
    the packets, from IP on; none where the frame is no train
    """
    if found.ip is None or found.udp is None or found.datagram is None or found.missing_bytes:
        return []
    payload = found.datagram
    for path_mtu in reversed(PATH_MTUS_BYTES):
        size_bytes = BTH_BYTES + path_mtu + ICRC_BYTES
        if size_bytes >= len(payload):
            continue
        for step in (1, 0):  # the identification counts up, or every packet has the same
            cut = [
                _whole(found.ip, found.udp, payload[at : at + size_bytes], at // size_bytes * step)
                for at in range(0, len(payload), size_bytes)
            ]
            if _is_right(cut[0]) and _is_right(cut[1]):
                return [packet._replace(data=data, original_bytes=len(data), link_type=LINK_RAW_IP) for data in cut]
    return []


def _whole(ip: IpHeader, udp: UdpHeader, payload: memoryview, identification: int) -> bytes:
    size_bytes = UDP_HEADER_BYTES + len(payload)
    header = replace(ip, payload_bytes=size_bytes)
    if isinstance(header, Ipv4Header):
        header = replace(header, identification=(header.identification + identification) % (1 << 16))
    return header.encode() + replace(udp, payload_bytes=len(payload)).encode() + payload


def _is_right(data: bytes) -> bool:
    try:
        check_icrc(data)
    except MalformedPacket:
        return False
    return True
