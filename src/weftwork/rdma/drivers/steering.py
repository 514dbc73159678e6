"""Several processes of one user behind one UDP port 4791.

They share an address. Each process takes a slot, 0 to 255, and gives it to the numbers of its queue pairs as their top
eight bits, so that the system itself can choose the socket: a filter of two words on the destination queue pair. The
system counts sockets
and not slots, and closes the gap when a process ends; a datagram that comes to the wrong process is handed on by a
socket of the Unix domain. The same hand-over brings messages of connection management to the process that listens.
Source: socket(7) (SO_REUSEPORT, SO_ATTACH_REUSEPORT_CBPF), unix(7) (abstract names, SCM_CREDENTIALS).
Leaves out: processes of different users, which the system keeps apart, and so do we.
"""

from __future__ import annotations

import errno
import os
import select
import socket
from struct import Struct
from typing import Final, NamedTuple

from weftwork.base.errors import UsageError
from weftwork.rdma.datagram import Datagram
from weftwork.rdma.drivers.raw import attach_filter
from weftwork.rdma.drivers.udp import UdpPort, parse_address
from weftwork.wire.cm import CmRequest
from weftwork.wire.ib import BTH_BYTES
from weftwork.wire.mad import GENERAL_SERVICES_QP

__all__ = ["SLOTS", "Addressee", "SharedUdpPort", "addressee"]

SLOTS: Final = 256  # the top eight bits of a queue pair number
_SO_ATTACH_REUSEPORT_CBPF: Final = 51  # Linux include/uapi/asm-generic/socket.h
_STEER: Final = ((0x30, 0, 0, 5), (0x16, 0, 0, 0))  # ldb [5]: top byte of the queue pair in BTH; ret A
# Behind BTH and DETH (8 bytes) of a management datagram: attribute, then the fields that all messages of the CM have.
_MAD_AT: Final = BTH_BYTES + 8
_ATTRIBUTE: Final = slice(_MAD_AT + 16, _MAD_AT + 18)
_REMOTE_ID: Final = slice(_MAD_AT + 28, _MAD_AT + 32)
_SERVICE_PORT: Final = slice(_MAD_AT + 38, _MAD_AT + 40)  # the low 16 bits of the service ID, as rdma_cm uses it
_SHORTEST: Final = _MAD_AT + 40
_REQUEST: Final = CmRequest.ATTRIBUTE.to_bytes(2, "big")
_ENVELOPE: Final = Struct("=16sBHBBH")  # source and its size, source port, ECN, DSCP, bytes of a segment
_CREDENTIALS: Final = Struct("=iII")  # struct ucred: pid, uid, gid


class Addressee(NamedTuple):
    """Receiver of a packet among the processes, or devices, of one address.

    Parameters
    ----------
    slot : of the receiver; None where the packet names none
    service_port : of a request for a connection, whose receiver is who listens there; None of other packets
    """

    slot: int | None
    service_port: int | None = None


def addressee(payload: bytes | memoryview) -> Addressee:
    """Find the receiver of a packet that starts with a whole BTH."""
    if int.from_bytes(payload[5:8], "big") != GENERAL_SERVICES_QP:
        return Addressee(payload[5])
    if len(payload) < _SHORTEST:
        return Addressee(None)
    if payload[_ATTRIBUTE] == _REQUEST:
        return Addressee(None, int.from_bytes(payload[_SERVICE_PORT], "big"))
    return Addressee(payload[_REMOTE_ID][0])


class SharedUdpPort(UdpPort):
    """A `UdpPort` that leaves room for other processes of the user.

    Parameters
    ----------
    address, offload : as `UdpPort`

    Attributes
    ----------
    slot : top eight bits of the numbers of this process

    Raises
    ------
    UsageError : as `UdpPort`; 256 processes are there already
    """

    def __init__(self, address: str, *, offload: bool = True) -> None:
        self._name: Final = f"\0weftwork-rdma/{parse_address(address)}/"  # one for all ways to write it
        self._events: Final = select.epoll()
        self._doors: Final[list[socket.socket]] = []
        self._listens: Final[set[int]] = set()
        self._packet: Final = bytearray(1 << 16)
        self._out: Final = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            self.slot: Final = self._take_slot()
            super().__init__(address, offload=offload, shares_port=True)
        except BaseException:
            self._close_doors()
            raise
        attach_filter(self.socket, _SO_ATTACH_REUSEPORT_CBPF, _STEER)
        self._events.register(self.socket, select.EPOLLIN)

    def _take_slot(self) -> int:
        for slot in range(SLOTS):
            if self._open_door(f"{self._name}{slot}"):
                return slot
        raise UsageError(f"address: found {SLOTS} processes behind its UDP port, which is the most")

    def _open_door(self, name: str) -> bool:
        door = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            door.bind(name)
        except OSError as error:
            door.close()
            if error.errno == errno.EADDRINUSE:
                return False
            raise
        self._doors.append(door)
        self._events.register(door, select.EPOLLIN)
        return True

    def listen(self, service_port: int) -> None:
        """Receive requests for a service; UsageError if another process listens."""
        if not self._open_door(f"{self._name}listen/{service_port}"):
            raise UsageError(f"port: found {service_port}, on which another process listens")
        self._listens.add(service_port)

    def fileno(self) -> int:
        """Descriptor that is readable when datagrams have arrived.

        They arrive by themselves or are handed on.
        """
        return self._events.fileno()

    def receive(self) -> Datagram | None:
        """Take a datagram for this process; others are handed on."""
        while True:
            datagram = super().receive()
            if datagram is None:
                return self._receive_handed_on()
            payload = datagram.parts[0]
            if len(payload) < BTH_BYTES or (payload[5] == self.slot and payload[5:8] != b"\0\0\1"):
                return datagram
            name = self._owner(payload)
            if name is None or not self._hand_on(datagram, name):
                return datagram

    def _owner(self, payload: bytes | memoryview) -> str | None:
        """Socket name of the process that a datagram is for.

        None for this process, or for an unknown process.
        """
        to = addressee(payload)
        if to.service_port is not None:
            return None if to.service_port in self._listens else f"{self._name}listen/{to.service_port}"
        return None if to.slot in {None, self.slot} else f"{self._name}{to.slot}"

    def _hand_on(self, datagram: Datagram, name: str) -> bool:
        """Hand a datagram to another process; False if it fails.

        There is no such process, or it does not take more.
        """
        envelope = _ENVELOPE.pack(
            datagram.source.ljust(16, b"\0"),
            len(datagram.source),
            datagram.source_port,
            datagram.ecn,
            datagram.dscp,
            datagram.segment_bytes,
        )
        try:
            self._out.sendmsg((envelope, *datagram.parts), (), 0, name)
        except (ConnectionRefusedError, BlockingIOError):
            self.counters["not_handed_on"] += 1
            return False
        self.counters["handed_on"] += 1
        return True

    def _receive_handed_on(self) -> Datagram | None:
        for door in self._doors:
            while True:
                try:
                    size_bytes, ancillary, _, _ = door.recvmsg_into(
                        [self._packet], socket.CMSG_SPACE(_CREDENTIALS.size)
                    )
                except BlockingIOError:
                    break
                users = [_CREDENTIALS.unpack(data)[1] for _, kind, data in ancillary if kind == socket.SCM_CREDENTIALS]
                if users != [os.getuid()] or size_bytes < _ENVELOPE.size:
                    self.counters["stranger"] += 1
                    continue
                source, address_bytes, source_port, ecn, dscp, segment_bytes = _ENVELOPE.unpack_from(self._packet)
                payload = memoryview(self._packet)[_ENVELOPE.size : size_bytes]
                return Datagram(
                    source[:address_bytes], self.address, source_port, (payload,), ecn, dscp, None, segment_bytes
                )
        return None

    def close(self) -> None:
        """Close all sockets, and free the slot."""
        super().close()
        self._close_doors()

    def _close_doors(self) -> None:
        self._out.close()
        for door in self._doors:
            door.close()
        self._doors.clear()
        self._events.close()
