"""The invariant CRC of RoCE and InfiniBand.

It covers all bits that no switch may change, and counts ones for the other bits.
Source: IBTA vol. 1, 7.8.1 and annex A17, as encoded in Linux drivers/infiniband/sw/rxe/rxe_icrc.c; tests hold it to
packets captured on hardware and to scapy.
Leaves out: the variant CRC, see `vcrc`; IPv4 options and IPv6 extension headers, which are refused.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from weftwork.wire.checksum import crc32
from weftwork.wire.fields import MalformedPacket, split
from weftwork.wire.ib import BTH_BYTES
from weftwork.wire.ip import IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, PROTOCOL_UDP
from weftwork.wire.lrh import LRH_BYTES, NEXT_HEADER_BTH, NEXT_IS_BTH, NEXT_IS_GRH
from weftwork.wire.udp import UDP_HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ICRC_BYTES",
    "append_icrc",
    "check_icrc",
    "check_native_icrc",
    "front_state",
    "icrc",
    "icrc_behind",
    "native_front_state",
    "native_icrc",
]

ICRC_BYTES = 4  # IBTA vol. 1, 7.8.1

# In place of the link header that RoCE does not have stand eight bytes of ones (annex A17).
_STATE_BEHIND_LINK_HEADER = crc32(b"\xff" * 8)


def icrc(packet: memoryview | bytes) -> int:
    """Invariant CRC of a packet with IP header or GRH.

    It covers the packet up to the end of its padded payload. Lengths in the IP and UDP headers have to count the four
    bytes of the ICRC already, because it covers them.

    Parameters
    ----------
    packet : RoCEv2: IPv4 or IPv6 header, UDP, BTH and all that follows; RoCEv1: GRH, BTH and all that follows;
        without the ICRC

    Returns
    -------
    32 bits; on the wire least significant byte first

    Raises
    ------
    MalformedPacket : too short, not UDP directly behind IPv4 without options or IPv6, not BTH behind GRH
    """
    view = memoryview(packet)
    first, _ = split(view, 1, "ICRC")
    if first[0] == 0x45:
        ip_bytes, protocol_at = IPV4_HEADER_BYTES, 9
    elif first[0] >> 4 == 6:
        ip_bytes, protocol_at = IPV6_HEADER_BYTES, 6
    else:
        raise MalformedPacket("ICRC", f"found first byte {first[0]:#04x}, wanted IPv4 without options or IPv6")
    is_rocev1 = ip_bytes == IPV6_HEADER_BYTES and len(view) > 6 and view[6] == NEXT_HEADER_BTH
    front_bytes = ip_bytes + (0 if is_rocev1 else UDP_HEADER_BYTES)
    split(view, front_bytes + BTH_BYTES, "ICRC")
    if not is_rocev1 and view[protocol_at] != PROTOCOL_UDP:
        raise MalformedPacket("ICRC", f"found protocol {view[protocol_at]} behind IP, wanted {PROTOCOL_UDP} (UDP)")
    return icrc_behind(front_state(view[:front_bytes]), view[front_bytes:])


def front_state(front: memoryview | bytes) -> int:
    """State of the CRC after the headers before BTH.

    It is kept for packets that share them.

    Parameters
    ----------
    front : IPv4 header without options and UDP header, IPv6 header and UDP header, or GRH

    Returns
    -------
    the state that ``icrc_behind`` goes on from
    """
    masked = bytearray(front)
    # Routers rewrite type of service, TTL and checksum; traffic class, flow label and hop limit: ones (annex A17).
    if masked[0] == 0x45:
        ip_bytes, masked_bytes = IPV4_HEADER_BYTES, (1, 8, 10, 11)
    else:
        ip_bytes, masked_bytes = IPV6_HEADER_BYTES, (1, 2, 3, 7)
        masked[0] |= 0x0F
    for at in masked_bytes:
        masked[at] = 0xFF
    if len(masked) > ip_bytes:
        masked[ip_bytes + 6] = masked[ip_bytes + 7] = 0xFF  # UDP checksum, which follows the masked fields
    return crc32(masked, _STATE_BEHIND_LINK_HEADER)


def icrc_behind(state: int, transport: memoryview | bytes) -> int:
    """Invariant CRC of the bytes from BTH on.

    The state of the headers before them is known; nothing is copied.

    Parameters
    ----------
    state : of the headers in front of BTH, by ``front_state``
    transport : at least BTH; without the ICRC
    """
    view = memoryview(transport)
    # FECN, BECN and six reserved bits count as ones
    return crc32(view[5:], crc32(b"\xff", crc32(view[:4], state)))


def native_icrc(packet: memoryview | bytes) -> int:
    """Invariant CRC of a packet of native InfiniBand.

    It covers the packet from its local route header, or its GRH where it has one, to the end of its padded payload.

    Parameters
    ----------
    packet : LRH, GRH where LRH says so, BTH and all that follows; without the ICRC

    Raises
    ------
    MalformedPacket : too short for these headers, or LRH says that no BTH follows
    """
    view = memoryview(packet)
    link, _ = split(view, LRH_BYTES, "ICRC")
    next_header = link[1] & 0b11
    if next_header not in {NEXT_IS_BTH, NEXT_IS_GRH}:
        raise MalformedPacket("ICRC", f"found next header {next_header} in LRH, wanted {NEXT_IS_BTH} or {NEXT_IS_GRH}")
    front_bytes = LRH_BYTES + (IPV6_HEADER_BYTES if next_header == NEXT_IS_GRH else 0)
    front, transport = split(view, front_bytes, "ICRC")
    split(transport, BTH_BYTES, "ICRC")
    return icrc_behind(native_front_state(front), transport)


def native_front_state(front: memoryview | bytes) -> int:
    """State of the CRC after the headers before BTH, as ``front_state`` gives it.

    In front of a GRH, routers write the LRH anew, so all of its bits count as ones. Real adapters do so: tests of this
    rule were held to a public capture of ConnectX packets with a GRH.

    Parameters
    ----------
    front : LRH, and GRH where there is one
    """
    if len(front) > LRH_BYTES:
        return front_state(front[LRH_BYTES:])
    masked = bytearray(front)
    masked[0] |= 0xF0  # a switch maps virtual lanes (IBTA vol. 1, 7.8.1)
    return crc32(masked)


def append_icrc(packet: memoryview | bytes) -> bytes:
    """``packet`` followed by its invariant CRC; errors as ``icrc``."""
    return bytes(packet) + struct.pack("<I", icrc(packet))


def check_icrc(packet: memoryview | bytes) -> None:
    """Refuse a packet with a wrong ICRC.

    It was changed where nobody may; the packet includes the ICRC.

    Raises
    ------
    MalformedPacket : as ``icrc``, or the invariant CRC is wrong
    """
    _check(packet, icrc)


def check_native_icrc(packet: memoryview | bytes) -> None:
    """Refuse a packet of native InfiniBand with a wrong ICRC.

    It was changed where nobody may; the packet includes the ICRC.

    Raises
    ------
    MalformedPacket : as ``native_icrc``, or the invariant CRC is wrong
    """
    _check(packet, native_icrc)


def _check(packet: memoryview | bytes, of: Callable[[memoryview], int]) -> None:
    view = memoryview(packet)
    if len(view) < ICRC_BYTES:
        raise MalformedPacket("ICRC", f"found {len(view)} bytes, wanted at least {ICRC_BYTES}")
    covered, field = split(view, len(view) - ICRC_BYTES, "ICRC")
    (found,) = struct.unpack("<I", field)
    wanted = of(covered)
    if found != wanted:
        raise MalformedPacket("ICRC", f"found {found:#010x}, wanted {wanted:#010x}")
