"""RoCEv1: packets behind an Ethernet header, by packet sockets of Linux.

A GID is an IP address of the interface, as Linux has it; a device on an address of this machine reaches the other
addresses of this machine over the loopback interface. Every packet socket sees every frame, so that a filter in the
kernel keeps the frames for the address and for the slot of this process (see `slots`). Messages of connection
management come to every process of the address, and each takes its own.
Source: IBTA vol. 1, annex A16; packet(7); Linux drivers/infiniband/core/roce_gid_mgmt.c (GIDs of addresses) and
include/uapi/linux/filter.h.
Leaves out: VLAN tags, multicast, trains; routers, which RoCEv1 does not have. No frame needs padding: the shortest has
70 bytes.
"""

from __future__ import annotations

import ipaddress
import select
import socket
from collections import Counter
from struct import Struct
from typing import Final

from weftwork.base.errors import UsageError
from weftwork.rdma.datagram import SMALLEST_BYTES, Datagram
from weftwork.rdma.drivers.neighbours import Neighbours
from weftwork.rdma.drivers.netlink import Interface, InterfaceAddress, addresses, interfaces
from weftwork.rdma.drivers.raw import attach_filter
from weftwork.rdma.drivers.slots import ProcessSlot
from weftwork.rdma.drivers.udp import enlarge, parse_address
from weftwork.rdma.encapsulation import ROCE_V1
from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.wire.ethernet import ETHERNET_HEADER_BYTES, EthernetHeader
from weftwork.wire.infiniband import ETHERTYPE_ROCE_V1
from weftwork.wire.ip import IPV6_HEADER_BYTES
from weftwork.wire.lrh import NEXT_HEADER_BTH
from weftwork.wire.mad import GENERAL_SERVICES_QP
from weftwork.wire.rdma_ip_cm import PortSpace, gid_of

__all__ = ["EthernetPort"]

_ETHERNET, _LOOPBACK = 1, 772  # ARPHRD_ETHER, ARPHRD_LOOPBACK in Linux include/uapi/linux/if_arp.h
_SO_ATTACH_FILTER: Final = 26  # Linux include/uapi/asm-generic/socket.h
_HEADERS_BYTES: Final = ETHERNET_HEADER_BYTES + IPV6_HEADER_BYTES
_MOST_HEADERS_BYTES: Final = 12 + 4 + 28 + 4  # BTH, FETH or ImmDt with AtomicETH at most, ICRC
_GRH_FRONT: Final = Struct(">IHB")  # version with traffic class and flow label, bytes behind, next header
_GID_AT: Final = ETHERNET_HEADER_BYTES + 8
_GID_BYTES: Final = 16
_DGID_AT: Final = _GID_AT + _GID_BYTES
_SEND_WAIT_S: Final = 0.05  # chosen: then the packet is lost, and its queue pair sends it again
_MOST_FRONTS: Final = 1024  # chosen: headers of peers, marks and sizes that are remembered
# Words of the filter: where the kernel says what it knows of a frame (SKF_AD_OFF and so on).
_KNOWN_AT: Final = 0xFFFF_F000
_FRAME_KIND, _INTERFACE = _KNOWN_AT + 4, _KNOWN_AT + 8
_TO_US: Final = 0  # PACKET_HOST
_LOAD_HALF, _LOAD_WORD, _LOAD_BYTE, _AND, _JUMP_IF_EQUAL, _RETURN = 0x28, 0x20, 0x30, 0x54, 0x15, 0x06


class EthernetPort:
    """EtherType 0x8915 on the interface of one of this machine's addresses.

    Parameters
    ----------
    address : of this machine, as text

    Raises
    ------
    UsageError : the address is not of this machine or its interface is not Ethernet; the process has no right to
        packet sockets (CAP_NET_RAW); 256 processes share the address already

    Attributes
    ----------
    slot : top eight bits of the numbers of this process
    receive_buffer_bytes : that the system has granted
    last_error : of a frame that could not be sent, or an empty text
    """

    encapsulation: Final = ROCE_V1
    makes_trains: Final = False

    def __init__(self, address: str) -> None:
        parsed = parse_address(address)
        self.address: bytes = parsed.packed
        self.counters: Counter[str] = Counter()
        self.last_error = ""
        self._gid: Final = gid_of(self.address).to_bytes(_GID_BYTES)
        self._source_at: Final = _DGID_AT - len(self.address)  # a mapped IPv4 address has a prefix, as in our GID
        by_number = {link.number: link for link in interfaces()}
        self._addresses: Final = addresses()
        self._local: Final = next(link for link in by_number.values() if link.kind == _LOOPBACK)
        found = [by_number[one.interface] for one in self._addresses if self._is_own(one)]
        if not found:
            raise UsageError(f"address: found {address}, wanted one of this machine (ip -brief address lists them)")
        self._link: Final = found[0]
        if self._link.kind not in {_ETHERNET, _LOOPBACK}:
            raise UsageError(f"address: found {address} of {self._link.name}, wanted one of an Ethernet interface")
        self._neighbours: Final = Neighbours(self._link, self.address)
        self._fronts: dict[tuple[bytes, int, int, int], bytes] = {}
        self._ways: dict[bytes, Interface | None] = {}
        self._last_source = b""
        self._buffer: Final = bytearray(1 << 16)
        self._view: Final = memoryview(self._buffer)
        self._process: Final = ProcessSlot(f"rocev1/{parsed}")
        self.slot: Final = self._process.number
        try:
            self._receiver: Final = self._open_receiver()
            self._senders: Final = {link: _open_sender(link) for link in {self._link, self._local}}
        except OSError as error:
            self._process.close()
            hint = "; run as root or with CAP_NET_RAW" if isinstance(error, PermissionError) else ""
            raise UsageError(f"packet socket: refused by the system: {error.strerror}{hint}") from error
        self.receive_buffer_bytes = self._receiver.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2

    def _is_own(self, one: InterfaceAddress) -> bool:
        """Whether the address of this port is this one, or one of the loopback interface's whole prefix."""
        is_home = one.interface == self._local.number and _shares_prefix(one, self.address)
        return is_home or one.address == self.address

    def _is_of_this_machine(self, address: bytes) -> bool:
        return any(
            one.address == address or (one.interface == self._local.number and _shares_prefix(one, address))
            for one in self._addresses
        )

    def _open_receiver(self) -> socket.socket:
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE_ROCE_V1))
        enlarge(receiver, is_receive=True)
        interfaces = (self._link.number, self._local.number)
        attach_filter(receiver, _SO_ATTACH_FILTER, _keep(self._gid, interfaces, self.slot))
        receiver.settimeout(0)
        while True:  # what came before the filter
            try:
                receiver.recv_into(self._buffer)
            except BlockingIOError:
                return receiver

    def fileno(self) -> int:
        """Descriptor of the receiving socket."""
        return self._receiver.fileno()

    def listen(self, service_port: int, space: PortSpace = PortSpace.TCP) -> None:
        """Receive requests for a service; UsageError if another process listens."""
        self._process.listen(service_port, space)

    def join(self, group: bytes) -> None:
        """Refuse: this wire has no multicast."""
        raise UsageError(f"multicast: found group {group.hex(':')} on RoCEv1, wanted the wire rocev2")

    def leave(self, group: bytes) -> None:
        """Receive no more datagrams of a multicast address."""

    def resolve(self, address: bytes, service_port: int, space: PortSpace = PortSpace.TCP) -> bytes:
        """Return the address itself."""
        del service_port, space
        return address

    def path_mtu(self, destination: bytes) -> int:
        """Largest path MTU that fits; UsageError for an address that is not on the link."""
        link = self._link_towards(destination)
        if link is None:
            text = ipaddress.ip_address(destination)
            raise UsageError(
                f"address: found {text}, wanted one on the link of {self._link.name}: RoCEv1 has no routers; "
                "wire rocev2 reaches it"
            )
        if link is not self._local:
            self._neighbours.ask(destination)
        room_bytes = link.mtu_bytes - IPV6_HEADER_BYTES - _MOST_HEADERS_BYTES
        fitting = [size_bytes for size_bytes in PATH_MTUS_BYTES if size_bytes <= room_bytes]
        if not fitting:
            raise UsageError(f"MTU of {link.name}: found {link.mtu_bytes} bytes, which no path MTU of RoCE fits")
        return max(fitting)

    def _link_towards(self, destination: bytes) -> Interface | None:
        if self._is_of_this_machine(destination):
            return self._local
        of_link = (one for one in self._addresses if one.interface == self._link.number)
        is_near = any(_shares_prefix(one, destination) for one in of_link)
        return self._link if is_near and self._link is not self._local else None

    # Frames

    def send(self, datagram: Datagram) -> None:
        """Send a packet."""
        sender, mac = self._towards(datagram.destination)
        if sender is None:
            return
        payload_bytes = sum(map(len, datagram.parts))
        key = (mac + datagram.destination, datagram.dscp, datagram.ecn, payload_bytes)
        front = self._fronts.get(key)
        if front is None:
            if len(self._fronts) >= _MOST_FRONTS:
                self._fronts.clear()
            header = EthernetHeader(destination=mac, source=self._link.mac, ethertype=ETHERTYPE_ROCE_V1)
            front = self._fronts[key] = header.encode() + ROCE_V1.front(datagram, payload_bytes)
        frame = (front, *datagram.parts)
        try:
            sender.sendmsg(frame)
        except BlockingIOError:
            self._send_later(sender, frame, datagram.destination)
        except OSError as error:
            self._lose(datagram.destination, str(error.strerror))

    def _towards(self, destination: bytes) -> tuple[socket.socket | None, bytes]:
        """Socket and link address for a destination; no socket where there is no way, which is counted."""
        if destination not in self._ways:
            if len(self._ways) >= _MOST_FRONTS:
                self._ways.clear()
            self._ways[destination] = self._link_towards(destination)
        link = self._ways[destination]
        if link is None:
            self._lose(destination, f"not on the link of {self._link.name}")
            return None, b""
        if link is self._local:
            return self._senders[link], link.mac
        mac = self._neighbours.mac_of(destination)
        if mac is None:
            self._lose(destination, f"no answer on the link of {self._link.name} (ARP or neighbour discovery)")
            return None, b""
        return self._senders[link], mac

    def _send_later(self, sender: socket.socket, frame: tuple[bytes | memoryview, ...], destination: bytes) -> None:
        """Wait for a short time until the system has sent its queue."""
        self.counters["send_waits"] += 1
        select.select((), (sender,), (), _SEND_WAIT_S)
        try:
            sender.sendmsg(frame)
        except OSError as error:
            self._lose(destination, str(error.strerror))

    def _lose(self, destination: bytes, why: str) -> None:
        self.counters["send_refused"] += 1
        self.last_error = f"to {ipaddress.ip_address(destination)}: {why}"

    def receive(self) -> Datagram | None:
        """Take a packet; frames that are not for this process are dropped."""
        while True:
            try:
                frame_bytes = self._receiver.recv_into(self._buffer)
            except BlockingIOError:
                return None
            view = self._view
            if frame_bytes < _HEADERS_BYTES + SMALLEST_BYTES:
                self.counters["malformed"] += 1
                continue
            word, payload_bytes, next_header = _GRH_FRONT.unpack_from(view, ETHERNET_HEADER_BYTES)
            if (
                word >> 28 != 6
                or next_header != NEXT_HEADER_BTH
                or not SMALLEST_BYTES <= payload_bytes <= frame_bytes - _HEADERS_BYTES
                or view[_GID_AT : self._source_at] != self._gid[: self._source_at - _GID_AT]
                or view[_DGID_AT : _DGID_AT + _GID_BYTES] != self._gid
            ):
                self.counters["malformed"] += 1
                continue
            payload: bytes | memoryview = view[_HEADERS_BYTES : _HEADERS_BYTES + payload_bytes]
            if (payload[5] != self.slot or payload[5:8] == b"\0\0\1") and not self._takes(payload):
                continue
            source = bytes(view[self._source_at : _DGID_AT])
            if source != self._last_source:
                self._last_source = source
                if view[6:12] != self._local.mac:
                    self._neighbours.learn(source, bytes(view[6:12]))
            return Datagram(source, self.address, 0, (payload,), word >> 20 & 0b11, word >> 22 & 0x3F)

    def _takes(self, payload: bytes | memoryview) -> bool:
        """Whether a packet that does not name the slot is for this process.

        A message of connection management that nobody waits for is answered by the process with the lowest slot.
        """
        self._process.turn_away()  # those who asked whether this process is there
        name = self._process.owner(payload)
        if name is None:
            return True
        return not self._process.is_there(name) and self._process.is_first()

    def close(self) -> None:
        """Close all sockets, and free the slot."""
        self._receiver.close()
        for sender in self._senders.values():
            sender.close()
        self._process.close()


def _shares_prefix(one: InterfaceAddress, address: bytes) -> bool:
    if len(one.address) != len(address):
        return False
    away = int.from_bytes(one.address) ^ int.from_bytes(address)
    return away >> (8 * len(address) - one.prefix_bits) == 0


def _open_sender(link: Interface) -> socket.socket:
    """A socket that only sends, over one interface."""
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    enlarge(sender, is_receive=False)
    sender.bind((link.name, 0))
    sender.settimeout(0)
    return sender


def _keep(gid: bytes, interfaces: tuple[int, int], slot: int) -> tuple[tuple[int, int, int, int], ...]:
    """Filter for frames to a GID, and of these to queue pairs of a slot and to queue pair 1."""
    queue_pair_at = _HEADERS_BYTES + 4
    tests: list[tuple[int, int, int, int]] = [
        (_LOAD_HALF, 0, 0, _FRAME_KIND),
        (_JUMP_IF_EQUAL, 0, -1, _TO_US),
        (_LOAD_WORD, 0, 0, _INTERFACE),
        (_JUMP_IF_EQUAL, 1, 0, interfaces[0]),
        (_JUMP_IF_EQUAL, 0, -1, interfaces[1]),
    ]
    for at in range(0, _GID_BYTES, 4):
        tests.append((_LOAD_WORD, 0, 0, _DGID_AT + at))
        tests.append((_JUMP_IF_EQUAL, 0, -1, int.from_bytes(gid[at : at + 4])))
    tests += [
        (_LOAD_BYTE, 0, 0, queue_pair_at + 1),
        (_JUMP_IF_EQUAL, 3, 0, slot),
        (_LOAD_WORD, 0, 0, queue_pair_at),
        (_AND, 0, 0, 0xFFFFFF),
        (_JUMP_IF_EQUAL, 0, -1, GENERAL_SERVICES_QP),
    ]
    keep = len(tests)
    # a jump of -1 leads to the last word, which drops the frame
    words = [(code, yes, keep - at if no < 0 else no, value) for at, (code, yes, no, value) in enumerate(tests)]
    return (*words, (_RETURN, 0, 0, 0xFFFF_FFFF), (_RETURN, 0, 0, 0))
