"""Several processes of one user behind one UDP port 4791.

They share an address. Each process takes a slot, see `slots`, so that the system itself can choose the socket: a
filter of two words on the destination queue pair. The system counts sockets and not slots, and closes the gap when a
process ends; a datagram that comes to the wrong process is handed on by a socket of the Unix domain. The same hand-over
brings messages of connection management to the process that listens. A multicast datagram comes to every process that
has joined its group.
Source: socket(7) (SO_REUSEPORT, SO_ATTACH_REUSEPORT_CBPF), unix(7) (SCM_CREDENTIALS).
Leaves out: processes of different users, which the system keeps apart, and so do we.
"""

from __future__ import annotations

import os
import select
import socket
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Final

from weftwork.rdma.datagram import Datagram
from weftwork.rdma.drivers.group_sockets import open_group
from weftwork.rdma.drivers.hand_over import HandOver
from weftwork.rdma.drivers.lives import ProcessLives
from weftwork.rdma.drivers.raw import attach_filter
from weftwork.rdma.drivers.slots import ProcessSlot, may_be_last
from weftwork.rdma.drivers.udp import UdpPort, parse_address
from weftwork.wire.ib import BTH_BYTES
from weftwork.wire.icrc import ICRC_BYTES
from weftwork.wire.mad import GENERAL_SERVICES_QP
from weftwork.wire.rdma_ip_cm import PortSpace

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SharedUdpPort"]

_SO_ATTACH_REUSEPORT_CBPF: Final = 51  # Linux include/uapi/asm-generic/socket.h
_STEER: Final = ((0x30, 0, 0, 5), (0x16, 0, 0, 0))  # ldb [5]: top byte of the queue pair in BTH; ret A
_TO_GENERAL_SERVICES: Final = GENERAL_SERVICES_QP.to_bytes(3, "big")
_ENVELOPE: Final = Struct("=16sBHBBH")  # source and its size, source port, ECN, DSCP, bytes of a segment
_SLOT_SHIFT: Final = 16  # of a queue pair number: its top eight bits
_MOST_STRANGERS: Final = 32  # chosen: datagrams of other users in a door that are thrown away at a time
_MOST_AHEAD: Final = 64  # chosen: datagrams that a handed-on one waits for at most
_MAD_AT: Final = BTH_BYTES + 8  # behind the DETH (IBTA vol. 1, 9.3.3)
_MOST_REMEMBERED: Final = 64  # chosen: management messages that may await an answer
_CREDENTIALS: Final = Struct("=iII")  # struct ucred: pid, uid, gid


class SharedUdpPort(UdpPort):
    """A `UdpPort` that leaves room for other processes of the user.

    Parameters
    ----------
    address, offload : as `UdpPort`

    Raises
    ------
    UsageError : as `UdpPort`; 256 processes are there already
    """

    def __init__(self, address: str, *, offload: bool = True) -> None:
        self._process: Final = ProcessSlot(str(parse_address(address)))  # one name for all ways to write it
        self._events: Final = select.epoll()
        self._groups: Final[dict[bytes, socket.socket]] = {}
        self._packet: Final = bytearray(1 << 16)
        self._held: Datagram | None = None  # in `_packet`, until its turn
        self._ahead = 0
        self._sent: Final[deque[int]] = deque(maxlen=_MOST_REMEMBERED)
        try:
            super().__init__(address, offload=offload, shares_port=True)
        except BaseException:
            self._close_doors()
            raise
        self._others: Final = HandOver(self._events, self.counters)
        self._lives: Final = ProcessLives(self._process.life_name())
        self._events.register(self._lives, select.EPOLLIN)
        self._watched: Final[dict[str, tuple[bytes, int]]] = {}
        self.on_end: Callable[[bytes, int], None] | None = None
        attach_filter(self.socket, _SO_ATTACH_REUSEPORT_CBPF, _STEER)
        for readable in (self.socket, *self._process.doors):
            self._events.register(readable, select.EPOLLIN)

    @property
    def slot(self) -> int:
        """Top eight bits of the numbers of this process."""
        return self._process.number

    def listen(self, service_port: int, space: PortSpace = PortSpace.TCP) -> None:
        """Receive requests for a service; UsageError if another process listens."""
        door = self._process.listen(service_port, space)
        if door is not None:
            self._events.register(door, select.EPOLLIN)

    def join(self, group: bytes) -> None:
        """Receive the datagrams of a multicast address, besides other processes; UsageError if refused."""
        if group not in self._groups:
            self._groups[group] = open_group(self._destination(group), self._destination(self.address))
            self._events.register(self._groups[group], select.EPOLLIN)

    def leave(self, group: bytes) -> None:
        """Receive them no more."""
        if group in self._groups:
            self._events.unregister(self._groups[group])
            self._groups.pop(group).close()

    def fileno(self) -> int:
        """Descriptor that is readable when datagrams have arrived.

        They arrive by themselves or are handed on.
        """
        return self._events.fileno()

    def send(self, datagram: Datagram) -> None:
        """Send a packet or a train.

        The last message of a conversation goes to another process of this address at once. By UDP it would come to the
        socket of slot 0, and would end with its process: this one may end now. A message that is sent again goes at
        once to its process on this machine, since the process of slot 0 may be one that never looks.
        """
        if datagram.parts[0][5:8] == _TO_GENERAL_SERVICES:
            datagram = datagram._replace(parts=(datagram.payload(),))
            name = self._direct_name(datagram.destination, datagram.parts[0])
            if name is not None and self._hand_on(datagram, name):
                return
        super().send(datagram)

    def _direct_name(self, destination: bytes, payload: bytes | memoryview) -> str | None:
        if self._is_sent_again(payload):
            return self._process.owner_at(self._destination(destination), payload)
        is_here = destination == self.address
        return self._process.owner(payload) if is_here and may_be_last(payload) else None

    def _is_sent_again(self, payload: bytes | memoryview) -> bool:
        """Whether a management message is one of the last that were sent."""
        message = hash(bytes(payload[_MAD_AT:-ICRC_BYTES]))
        if message in self._sent:
            return True
        self._sent.append(message)
        return False

    def receive(self) -> Datagram | None:
        """Take a datagram for this process; others are handed on.

        A datagram that was handed on waits for those that came to the socket before it, such as an ACK before the
        message that closes the connection.
        """
        self._others.flush()
        if self._held is None:
            found = self._receive_own()
            if found is not None:
                return found
            self._held = self._receive_handed_on()
            if self._held is None:
                self._tell_ends()
                return self._receive_multicast()
            self._ahead = 0
        if self._ahead < _MOST_AHEAD:
            self._ahead += 1
            found = self._receive_own()
            if found is not None:
                return found
        held, self._held = self._held, None
        return held

    def watch(self, address: bytes, qp_num: int) -> None:
        """Call `on_end` when the process of a queue pair of this machine ends, with its address and slot."""
        if self.source_ports.is_here(address):
            name = self._process.life_name(self._destination(address), qp_num >> _SLOT_SHIFT)
            self._watched[name] = address, qp_num >> _SLOT_SHIFT
            self._lives.watch(name)

    def leave_watch(self, address: bytes, qp_num: int) -> None:
        """Forget one call of `watch`."""
        self._lives.leave(self._process.life_name(self._destination(address), qp_num >> _SLOT_SHIFT))

    def _tell_ends(self) -> None:
        for name in self._lives.ended():
            address, slot = self._watched.pop(name)
            self.counters["peer_processes_ended"] += 1
            self.last_error = f"the process of {self._destination(address)} with slot {slot} has ended"
            if self.on_end is not None:
                self.on_end(address, slot)

    def _receive_own(self) -> Datagram | None:
        """Take a datagram of the socket; others are handed on."""
        while True:
            datagram = super().receive()
            if datagram is None:
                return None
            payload = datagram.parts[0]
            if len(payload) < BTH_BYTES or (payload[5] == self.slot and payload[5:8] != _TO_GENERAL_SERVICES):
                return datagram
            name = self._process.owner(payload)
            if name is None or not self._hand_on(datagram, name):
                return datagram

    def _hand_on(self, datagram: Datagram, name: str) -> bool:
        """Hand a datagram to another process; False if there is no such process."""
        envelope = _ENVELOPE.pack(
            datagram.source.ljust(16, b"\0"),
            len(datagram.source),
            datagram.source_port,
            datagram.ecn,
            datagram.dscp,
            datagram.segment_bytes,
        )
        return self._others.put(name, (envelope, *datagram.parts))

    def _receive_handed_on(self) -> Datagram | None:
        for door in self._process.doors:
            for _ in range(_MOST_STRANGERS):
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

    def _receive_multicast(self) -> Datagram | None:
        for group, receiver in self._groups.items():
            datagram = self._receive_from(receiver, group)
            if datagram is not None:
                return datagram
        return None

    def close(self) -> None:
        """Close all sockets, and free the slot."""
        super().close()
        self._others.close()
        self._lives.close()
        self._close_doors()

    def _close_doors(self) -> None:
        self._process.close()
        for receiver in self._groups.values():
            receiver.close()
        self._groups.clear()
        self._events.close()
