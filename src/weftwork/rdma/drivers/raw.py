"""RoCEv2 over UDP sockets, with whole received IPv4 packets.

Every bit that the ICRC covers is then checked. A UDP socket hides the identification of IPv4; a raw socket shows it,
and sees every packet of port 4791.
Source: raw(7), socket(7) (SO_ATTACH_FILTER); Linux Documentation/networking/filter.rst for the words of the filter.
Leaves out: IPv6, whose header has no such field; trains that a peer on the same machine hands over uncut.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from ipaddress import IPv4Address
from typing import Final

from weftwork.base.errors import UsageError
from weftwork.rdma.datagram import Datagram
from weftwork.rdma.drivers.udp import UdpPort, enlarge, parse_address
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ip import Ipv4Header
from weftwork.wire.udp import ROCE_V2_PORT, UdpHeader

__all__ = ["RawPort", "attach_filter"]

_SO_ATTACH_FILTER: Final = 26  # Linux include/uapi/asm-generic/socket.h
_INSTRUCTION: Final = struct.Struct("=HBBI")
# Words of the filter: code, jump if true, jump if false, operand (Linux include/uapi/linux/filter.h).
_KEEP_NOTHING: Final = ((0x06, 0, 0, 0),)  # ret 0
_KEEP_PORT: Final = (
    (0xB1, 0, 0, 0),  # ldxb 4*([0]&0xf): X is the length of the IP header
    (0x48, 0, 0, 2),  # ldh [x + 2]: the destination port
    (0x15, 0, 1, ROCE_V2_PORT),  # jeq
    (0x06, 0, 0, 0xFFFF),  # ret: keep all of it
    (0x06, 0, 0, 0),  # ret 0
)


class RawPort(UdpPort):
    """A `UdpPort` that receives by a raw socket.

    The UDP socket keeps the port, and is told to drop.

    Parameters
    ----------
    address : IPv4 address of this machine, as text

    Raises
    ------
    UsageError : as `UdpPort`; the address is IPv6; or the process has no right to raw sockets (CAP_NET_RAW)
    """

    def __init__(self, address: str) -> None:
        if parse_address(address).version == 6:
            raise UsageError(f"address: found {address}, wanted IPv4: of IPv6 a UDP socket shows all that matters")
        super().__init__(address, offload=False)
        try:
            self._raw: Final = self._open_raw(address)
        except BaseException:
            super().close()
            raise

    def _open_raw(self, address: str) -> socket.socket:
        try:
            raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        except PermissionError as error:
            raise UsageError("raw socket: refused by the system; run as root or with CAP_NET_RAW") from error
        enlarge(raw, is_receive=True)
        attach_filter(raw, _SO_ATTACH_FILTER, _KEEP_PORT)
        raw.bind((address, 0))
        raw.settimeout(0)
        attach_filter(self.socket, _SO_ATTACH_FILTER, _KEEP_NOTHING)
        return raw

    def fileno(self) -> int:
        """Descriptor of the raw socket."""
        return self._raw.fileno()

    def receive(self) -> Datagram | None:
        """Take a packet.

        Fragments and packets other than UDP are counted and dropped.
        """
        while True:
            try:
                size_bytes = self._raw.recv_into(self._buffer)
            except BlockingIOError:
                return None
            try:
                ip, rest = Ipv4Header.decode(self._view[:size_bytes])
                udp, payload = UdpHeader.decode(rest)
            except MalformedPacket:
                self.counters["malformed"] += 1
                continue
            if ip.destination == IPv4Address(self.address):
                return Datagram(
                    ip.source.packed,
                    self.address,
                    udp.source_port,
                    (payload,),
                    ip.ecn,
                    ip.dscp,
                    ip.identification,
                )

    def close(self) -> None:
        """Close all sockets."""
        self._raw.close()
        super().close()


def attach_filter(of: socket.socket, option: int, words: tuple[tuple[int, int, int, int], ...]) -> None:
    """Attach a classic BPF program to a socket.

    A struct sock_fprog has the number of words and their address.
    """
    program = ctypes.create_string_buffer(b"".join(_INSTRUCTION.pack(*word) for word in words))
    of.setsockopt(socket.SOL_SOCKET, option, struct.pack("HP", len(words), ctypes.addressof(program)))
