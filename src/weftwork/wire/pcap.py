"""Captured packets, and the older capture format (pcap).

Source: draft-ietf-opsawg-pcap; link types: draft-ietf-opsawg-pcaplinktype.
Leaves out: writing of this format (``pcapng`` names interfaces and takes comments), and compressed files.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from weftwork.wire.fields import MalformedPacket

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "LINK_ERF",
    "LINK_ETHERNET",
    "LINK_INFINIBAND",
    "LINK_LINUX_COOKED",
    "LINK_LINUX_COOKED_2",
    "LINK_RAW_IP",
    "CapturedPacket",
    "is_pcap",
    "read_pcap",
]

LINK_ETHERNET = 1
LINK_RAW_IP = 101
LINK_LINUX_COOKED = 113  # what tcpdump makes of `-i any`: 16 bytes, the last two an EtherType
LINK_LINUX_COOKED_2 = 276  # the same, newer: 20 bytes, the first two an EtherType
LINK_ERF = 197  # what ibdump writes: a record of Endace, which says what it holds
LINK_INFINIBAND = 247  # begins with the local route header

# magic number as bytes: byte order of the file, nanoseconds in a unit of its times
_MAGIC: Final[dict[bytes, tuple[str, int]]] = {
    bytes.fromhex("d4c3b2a1"): ("<", 1_000),
    bytes.fromhex("a1b2c3d4"): (">", 1_000),
    bytes.fromhex("4d3cb2a1"): ("<", 1),
    bytes.fromhex("a1b23c4d"): (">", 1),
}
_FILE_HEADER_BYTES: Final = 24
_SECOND_NS: Final = 1_000_000_000


class CapturedPacket(NamedTuple):
    """A packet as a capture holds it.

    Parameters
    ----------
    time_ns : since 1970, or since the start of a simulation
    data : bytes from the link header on, perhaps fewer than there were
    original_bytes : size on the link
    link_type : what ``data`` begins with
    interface : name of where it was captured; empty where the file names none
    comment : of whoever captured it
    """

    time_ns: int
    data: bytes | memoryview
    original_bytes: int
    link_type: int = LINK_ETHERNET
    interface: str = ""
    comment: str = ""


def is_pcap(data: memoryview | bytes) -> bool:
    """Whether a file begins as a pcap file does."""
    return bytes(data[:4]) in _MAGIC


def read_pcap(data: memoryview | bytes) -> Iterator[CapturedPacket]:
    """Read the packets of a pcap file in order.

    Parameters
    ----------
    data : the whole file

    Raises
    ------
    MalformedPacket : not a pcap file, or it ends in the midst of a packet; the message says at which byte
    """
    view = memoryview(data)
    if not is_pcap(view) or len(view) < _FILE_HEADER_BYTES:
        raise MalformedPacket("pcap", f"at byte 0: found {len(view)} bytes that begin otherwise, wanted a file header")
    order, unit_ns = _MAGIC[bytes(view[:4])]
    record = Struct(order + "IIII")
    (network,) = Struct(order + "I").unpack_from(view, 20)
    link_type = network & 0xFFFF  # the upper half says how long a frame check sequence is
    at = _FILE_HEADER_BYTES
    while at < len(view):
        if len(view) - at < record.size:
            raise MalformedPacket("pcap", f"at byte {at}: found {len(view) - at} bytes, wanted a header of 16")
        seconds, units, captured_bytes, original_bytes = record.unpack_from(view, at)
        begin = at + record.size
        if len(view) - begin < captured_bytes:
            text = f"at byte {at}: found {len(view) - begin} bytes of a packet, wanted {captured_bytes}"
            raise MalformedPacket("pcap", text)
        at = begin + captured_bytes
        time_ns = seconds * _SECOND_NS + units * unit_ns
        yield CapturedPacket(time_ns, view[begin:at], original_bytes, link_type)
