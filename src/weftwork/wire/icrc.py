"""The invariant CRC of a RoCEv2 packet: it covers all that no switch may change, and counts ones for the rest.

Source: IBTA vol. 1, 7.8.1 and annex A17, as encoded in Linux drivers/infiniband/sw/rxe/rxe_icrc.c; tests hold it to
packets captured on hardware and to scapy.
Leaves out: RoCEv1 and native InfiniBand; IPv4 options and IPv6 extension headers, which are refused.
"""

from __future__ import annotations

import struct
import zlib

from weftwork.wire.fields import MalformedPacket, split
from weftwork.wire.ib import BTH_BYTES
from weftwork.wire.ip import IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, PROTOCOL_UDP
from weftwork.wire.udp import UDP_HEADER_BYTES

__all__ = ["ICRC_BYTES", "append_icrc", "check_icrc", "icrc"]

ICRC_BYTES = 4  # IBTA vol. 1, 7.8.1

# In place of the link header that RoCE does not have stand eight bytes of ones (annex A17).
_STATE_BEHIND_LINK_HEADER = zlib.crc32(b"\xff" * 8)


def icrc(packet: memoryview | bytes) -> int:
    """Invariant CRC of a packet from its IP header to the end of its padded payload.

    Lengths in the IP and UDP headers have to count the four bytes of the ICRC already, because it covers them.

    Parameters
    ----------
    packet : IPv4 or IPv6 header, UDP, BTH and all that follows, without the ICRC

    Returns
    -------
    32 bits; on the wire least significant byte first

    Raises
    ------
    MalformedPacket : too short, not UDP directly behind IPv4 without options or IPv6
    """
    view = memoryview(packet)
    first, _ = split(view, 1, "ICRC")
    # Routers rewrite type of service, TTL and checksum; traffic class, flow label and hop limit: ones (annex A17).
    if first[0] == 0x45:
        ip_bytes, protocol_at, masked_bytes = IPV4_HEADER_BYTES, 9, (1, 8, 10, 11)
    elif first[0] >> 4 == 6:
        ip_bytes, protocol_at, masked_bytes = IPV6_HEADER_BYTES, 6, (1, 2, 3, 7)
    else:
        raise MalformedPacket("ICRC", f"found first byte {first[0]:#04x}, wanted IPv4 without options or IPv6")
    head, tail = split(view, ip_bytes + UDP_HEADER_BYTES + BTH_BYTES, "ICRC")
    masked = bytearray(head)
    if masked[protocol_at] != PROTOCOL_UDP:
        raise MalformedPacket("ICRC", f"found protocol {masked[protocol_at]} behind IP, wanted {PROTOCOL_UDP} (UDP)")
    for at in masked_bytes:
        masked[at] = 0xFF
    if ip_bytes == IPV6_HEADER_BYTES:
        masked[0] |= 0x0F
    masked[ip_bytes + 6] = masked[ip_bytes + 7] = 0xFF  # UDP checksum, which follows the masked fields
    masked[ip_bytes + UDP_HEADER_BYTES + 4] = 0xFF  # FECN, BECN and six reserved bits
    return zlib.crc32(tail, zlib.crc32(masked, _STATE_BEHIND_LINK_HEADER))


def append_icrc(packet: memoryview | bytes) -> bytes:
    """``packet`` with its invariant CRC behind it; errors as ``icrc``."""
    return bytes(packet) + struct.pack("<I", icrc(packet))


def check_icrc(packet: memoryview | bytes) -> None:
    """Refuse a packet, ICRC included, that was changed where nobody may.

    Raises
    ------
    MalformedPacket : as ``icrc``, or the invariant CRC is wrong
    """
    view = memoryview(packet)
    if len(view) < ICRC_BYTES:
        raise MalformedPacket("ICRC", f"found {len(view)} bytes, wanted at least {ICRC_BYTES}")
    covered, field = split(view, len(view) - ICRC_BYTES, "ICRC")
    (found,) = struct.unpack("<I", field)
    wanted = icrc(covered)
    if found != wanted:
        raise MalformedPacket("ICRC", f"found {found:#010x}, wanted {wanted:#010x}")
