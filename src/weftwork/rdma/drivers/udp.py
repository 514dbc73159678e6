"""RoCEv2 over ordinary UDP sockets, without special rights.

A socket that is not connected and forbids fragments sends IPv4 identification 0, or 0, 1, 2 ... where the system cuts a
train into packets; the ICRC covers it. One socket receives on port 4791; packets leave by one socket for each source
port, since the source port is the entropy of a flow.
Source: ip(7), udp(7), ipv6(7); ``UDP_SEGMENT``, ``UDP_GRO`` in Linux include/uapi/linux/udp.h; IBTA vol. 1, annex A17.
Leaves out: the identification of packets that arrive, which a UDP socket hides, see `raw`.
"""

from __future__ import annotations

import errno
import ipaddress
import select
import socket
from collections import Counter
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.rdma.datagram import Datagram
from weftwork.rdma.drivers.source_ports import OwnedSourcePorts
from weftwork.rdma.encapsulation import ROCE_V2
from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.wire.ip import IPV4_HEADER_BYTES, IPV6_HEADER_BYTES
from weftwork.wire.rdma_ip_cm import PortSpace
from weftwork.wire.udp import ROCE_V2_PORT, UDP_HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["UdpPort", "address_towards", "enlarge", "interface_of", "largest_path_mtu", "parse_address"]

_SOL_UDP: Final = 17
_UDP_NO_CHECK6_RX: Final = 102
_UDP_SEGMENT: Final = 103
_UDP_GRO: Final = 104
_IP_MTU_DISCOVER: Final = 10  # Linux include/uapi/linux/in.h
_IP_MTU: Final = 14
_IPV6_MTU_DISCOVER: Final = 23  # Linux include/uapi/linux/in6.h
_IPV6_MTU: Final = 24
_PMTUDISC_DO: Final = 2
_IP_RECVTOS: Final = 13
_SO_SNDBUFFORCE: Final = 32  # Linux include/uapi/asm-generic/socket.h
_SO_RCVBUFFORCE: Final = 33
_BUFFER_BYTES: Final = 32 << 20  # chosen: sixteen windows of 256 packets, each with what the system adds
_MOST_BYTES: Final = 65_535  # RFC 768: the length field
_MOST_HEADERS_BYTES: Final = 12 + 4 + 28 + 4  # BTH, FETH or ImmDt with AtomicETH at most, ICRC
_SEND_WAIT_S: Final = 0.05  # chosen: then the packet is lost, and its queue pair sends it again
_MOST_SENDERS: Final = 256  # chosen: sockets, a quarter of what a process may open by default (RLIMIT_NOFILE)
_MOST_ADDRESSES: Final = 4096  # chosen: that are remembered as text, since a source can be forged
_MULTICAST_HOPS: Final = 64  # IPV6_DEFAULT_HOPLIMIT, as cma_iboe_join_multicast in Linux cma.c
_ADDRESSES_OF_IPV6: Final = Path("/proc/net/if_inet6")  # proc_pid_net(5)
_SEGMENT: Final = Struct("=H")
_INT: Final = Struct("=i")
_NEVER_THERE: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EPERM, errno.EACCES})


class UdpPort:
    """UDP port 4791 of one of this machine's addresses.

    Parameters
    ----------
    address : of this machine, as text
    offload : let the system cut trains into packets and join packets into trains
    shares_port : other processes may receive on the same address and port, see `steering`

    Raises
    ------
    UsageError : the address is not of this machine, or another process has the port

    Attributes
    ----------
    source_ports : from which connections send
    receive_buffer_bytes : that the system has granted
    last_error : of a packet that the system refused to send, or an empty text
    """

    encapsulation: Final = ROCE_V2

    def __init__(self, address: str, *, offload: bool = True, shares_port: bool = False) -> None:
        parsed = parse_address(address)
        self.address: bytes = parsed.packed
        self.counters: Counter[str] = Counter()
        self.last_error = ""
        self._text: Final = str(parsed)
        self.is_ipv6: Final = parsed.version == 6
        self._family: Final = socket.AF_INET6 if self.is_ipv6 else socket.AF_INET
        self._interface: Final = interface_of(address) if self.is_ipv6 else 0
        self._offload: Final = offload
        self._senders: dict[int, socket.socket] = {}
        self._marks: dict[int, int] = {}  # source port: traffic class as last set
        self._texts: dict[bytes, str] = {}
        self._packed: dict[str, bytes] = {}
        self._buffer: Final = bytearray(1 << 16)
        self._view: Final = memoryview(self._buffer)
        self._buffers: Final = [self._buffer]
        self._ancillary_bytes: Final = socket.CMSG_SPACE(4) * 2
        self.source_ports: Final = OwnedSourcePorts(is_ipv6=self.is_ipv6)
        self.socket: Final = socket.socket(self._family, socket.SOCK_DGRAM)
        try:
            self._set_up(shares_port=shares_port)
        except OSError as error:
            self.socket.close()
            raise UsageError(self._why(error)) from error
        self.receive_buffer_bytes = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2

    def _set_up(self, *, shares_port: bool) -> None:
        receiver = self.socket
        if shares_port:
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        enlarge(receiver, is_receive=True)
        if self.is_ipv6:
            receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
            receiver.setsockopt(_SOL_UDP, _UDP_NO_CHECK6_RX, 1)  # rxe and NICs send checksum 0; the ICRC checks more
        else:
            receiver.setsockopt(socket.IPPROTO_IP, _IP_RECVTOS, 1)
        if self._offload:
            receiver.setsockopt(_SOL_UDP, _UDP_GRO, 1)
        receiver.settimeout(0)
        receiver.bind((self._text, ROCE_V2_PORT))

    def _why(self, error: OSError) -> str:
        if error.errno == errno.EADDRINUSE:
            return (
                f"address: found {self._text}, whose UDP port {ROCE_V2_PORT} another program has, "
                "wanted a free one; the kernel's own RoCE (rdma_rxe) takes the port of every address"
            )
        if error.errno == errno.EADDRNOTAVAIL:
            return f"address: found {self._text}, wanted one of this machine (ip -brief address lists them)"
        return f"address: found {self._text}, which UDP port {ROCE_V2_PORT} could not be opened on: {error.strerror}"

    @property
    def slot(self) -> int | None:
        """Top eight bits of the numbers of this process; any where nobody shares the port."""
        return None

    @property
    def makes_trains(self) -> bool:
        """Whether `send` takes trains."""
        return self._offload

    def fileno(self) -> int:
        """Descriptor of the receiving socket."""
        return self.socket.fileno()

    def path_mtu(self, destination: bytes) -> int:
        """Largest path MTU that fits; UsageError without a route."""
        return largest_path_mtu(self._text, self._destination(destination))

    def listen(self, service_port: int, space: PortSpace = PortSpace.TCP) -> None:
        """Receive requests for a service: they come here anyway."""

    def join(self, group: bytes) -> None:
        """Refuse: only a `SharedUdpPort` takes multicast."""
        raise UsageError(
            f"multicast: found a port that receives for {self._text} alone, to join {self._destination(group)}; "
            "wanted a device without checks_identification"
        )

    def leave(self, group: bytes) -> None:
        """Receive no more datagrams of a multicast address."""

    def resolve(self, address: bytes, service_port: int, space: PortSpace = PortSpace.TCP) -> bytes:
        """Return the address itself."""
        del service_port, space
        return address

    # Datagrams

    def send(self, datagram: Datagram) -> None:
        """Send a packet or a train."""
        sender = self._senders.get(datagram.source_port)
        if sender is None:
            try:
                sender = self._open_sender(datagram.source_port)
            except OSError as error:
                self._lose(datagram, error)
                return
        traffic_class = datagram.dscp << 2 | datagram.ecn
        if self._marks.get(datagram.source_port) != traffic_class:
            self._mark(sender, datagram.source_port, traffic_class)
        to = (self._destination(datagram.destination), ROCE_V2_PORT)
        ancillary: Iterable[tuple[int, int, bytes]] = ()
        if datagram.segment_bytes:
            ancillary = ((_SOL_UDP, _UDP_SEGMENT, _SEGMENT.pack(datagram.segment_bytes)),)
        try:
            sender.sendmsg(datagram.parts, ancillary, 0, to)
        except BlockingIOError:
            self._send_later(sender, datagram, ancillary, to)
        except OSError as error:
            self._lose(datagram, error)

    def _send_later(
        self,
        sender: socket.socket,
        datagram: Datagram,
        ancillary: Iterable[tuple[int, int, bytes]],
        to: tuple[str, int],
    ) -> None:
        """Wait for a short time until the system has sent its queue."""
        self.counters["send_waits"] += 1
        select.select((), (sender,), (), _SEND_WAIT_S)
        try:
            sender.sendmsg(datagram.parts, ancillary, 0, to)
        except OSError as error:
            self._lose(datagram, error)

    def _lose(self, datagram: Datagram, error: OSError) -> None:
        """Count a packet that the system refused.

        The queue pair that waits for an answer gives up in the end.
        """
        self.counters["send_refused"] += 1
        if error.errno == errno.EMSGSIZE:
            size_bytes = datagram.segment_bytes or len(datagram.payload())
            self.last_error = (
                f"a packet of {size_bytes} bytes does not fit the MTU of the path; take a smaller path_mtu"
            )
        elif error.errno in _NEVER_THERE or error.errno == errno.EAGAIN:
            self.last_error = f"to {self._destination(datagram.destination)}: {error.strerror}"
        else:  # such as ENOBUFS, or EINVAL when the address was taken from this machine
            self.last_error = f"from {self._text} to {self._destination(datagram.destination)}: {error.strerror}"

    def receive(self) -> Datagram | None:
        """Take a packet or a train that has arrived."""
        return self._receive_from(self.socket, self.address)

    def _receive_from(self, receiver: socket.socket, destination: bytes) -> Datagram | None:
        try:
            size_bytes, ancillary, _, (text, source_port, *_) = receiver.recvmsg_into(
                self._buffers, self._ancillary_bytes
            )
        except BlockingIOError:
            return None
        segment_bytes = traffic_class = 0
        for level, _, value in ancillary:
            if level == _SOL_UDP:
                (segment_bytes,) = _INT.unpack(value[:4])
            else:
                traffic_class = value[0]
        source = self._packed.get(text)
        if source is None:
            if len(self._packed) >= _MOST_ADDRESSES:
                self._packed.clear()
            source = self._packed[text] = ipaddress.ip_address(text).packed
        return Datagram(
            source,
            destination,
            source_port,
            (self._view[:size_bytes],),
            traffic_class & 0b11,
            traffic_class >> 2,
            None,
            segment_bytes if segment_bytes < size_bytes else 0,
        )

    def close(self) -> None:
        """Close all sockets."""
        self.source_ports.close()
        self.socket.close()
        for sender in self._senders.values():
            sender.close()
        self._senders.clear()

    # Sockets that send

    def _open_sender(self, source_port: int) -> socket.socket:
        sender = socket.socket(self._family, socket.SOCK_DGRAM)
        try:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # two processes may draw the same entropy
            enlarge(sender, is_receive=False)
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # the smallest: nothing is received here
            _forbid_fragments(sender, is_ipv6=self.is_ipv6)
            _set_multicast(sender, self._interface, is_ipv6=self.is_ipv6)
            sender.settimeout(0)
            sender.bind((self._text, source_port))
        except OSError:
            sender.close()
            raise
        while len(self._senders) >= _MOST_SENDERS:
            oldest = next(iter(self._senders))
            self._senders.pop(oldest).close()
            self._marks.pop(oldest, None)
        self._senders[source_port] = sender
        return sender

    def _mark(self, sender: socket.socket, source_port: int, traffic_class: int) -> None:
        if self.is_ipv6:
            sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, traffic_class)
        else:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, traffic_class)
        self._marks[source_port] = traffic_class

    def _destination(self, address: bytes) -> str:
        text = self._texts.get(address)
        if text is None:
            if len(self._texts) >= _MOST_ADDRESSES:
                self._texts.clear()
            text = self._texts[address] = str(ipaddress.ip_address(address))
        return text


def enlarge(of: socket.socket, *, is_receive: bool) -> None:
    """Ask for a large buffer, within the system's limit.

    As root it may be beyond the limit.
    """
    option, forced = (socket.SO_RCVBUF, _SO_RCVBUFFORCE) if is_receive else (socket.SO_SNDBUF, _SO_SNDBUFFORCE)
    try:
        of.setsockopt(socket.SOL_SOCKET, forced, _BUFFER_BYTES)
    except PermissionError:
        of.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)


def _forbid_fragments(of: socket.socket, *, is_ipv6: bool) -> None:
    if is_ipv6:
        of.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PMTUDISC_DO)
    else:
        of.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_DO)


def _set_multicast(of: socket.socket, interface: int, *, is_ipv6: bool) -> None:
    """Send multicast datagrams on the interface of the port, as far as other datagrams.

    With IPv4 the source address chooses the interface.
    """
    if is_ipv6:
        of.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, interface)
        of.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, _MULTICAST_HOPS)
    else:
        of.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, _MULTICAST_HOPS)


def interface_of(address: str) -> int:
    """Index of the interface that has an IPv6 address.

    It is 0 if none has it; the system then chooses one.
    """
    wanted = parse_address(address).packed.hex()
    for line in _ADDRESSES_OF_IPV6.read_text(encoding="ascii").splitlines():
        packed, index, *_ = line.split()
        if packed == wanted:
            return int(index, 16)
    return 0


def largest_path_mtu(source: str, destination: str) -> int:
    """Largest path MTU of RoCE on the system's route to an address.

    Raises
    ------
    UsageError : there is no way, or its packets are too small for the smallest path MTU
    """
    is_ipv6 = ":" in destination
    probe = socket.socket(socket.AF_INET6 if is_ipv6 else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.bind((source, 0))
        probe.connect((destination, ROCE_V2_PORT))  # sends nothing
        if is_ipv6:
            mtu_bytes = probe.getsockopt(socket.IPPROTO_IPV6, _IPV6_MTU) - IPV6_HEADER_BYTES
        else:
            mtu_bytes = probe.getsockopt(socket.IPPROTO_IP, _IP_MTU) - IPV4_HEADER_BYTES
    except OSError as error:
        raise UsageError(f"address: found {destination}, to which {source} has no way: {error.strerror}") from error
    finally:
        probe.close()
    room_bytes = mtu_bytes - UDP_HEADER_BYTES - _MOST_HEADERS_BYTES
    fitting = [size_bytes for size_bytes in PATH_MTUS_BYTES if size_bytes <= room_bytes]
    if not fitting:
        raise UsageError(f"MTU to {destination}: found {mtu_bytes} bytes behind IP, which no path MTU of RoCE fits")
    return max(fitting)


def parse_address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Read an IP address; UsageError for other text, such as a name."""
    try:
        return ipaddress.ip_address(address)
    except ValueError as error:
        raise UsageError(f"address: found {address!r}, wanted an IP address such as 192.0.2.1 or fd00::1") from error


def address_towards(address: str) -> str:
    """Local address from which the system sends to another address.

    UsageError without a route.
    """
    parsed = parse_address(address)
    with socket.socket(socket.AF_INET6 if parsed.version == 6 else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, ROCE_V2_PORT))  # sends nothing
        except OSError as error:
            raise UsageError(f"address: found {address}, to which there is no way: {error.strerror}") from error
        return str(probe.getsockname()[0])
