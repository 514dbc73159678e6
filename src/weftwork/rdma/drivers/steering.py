"""Several processes of one user behind one UDP port 4791.

They share an address. Each process takes a slot, see `slots`, so that the system itself can choose the socket: a
filter of two words on the destination queue pair. The system counts sockets and not slots, and closes the gap when a
process ends; a datagram that comes to the wrong process is handed on by a line, see `lines`. The same lines bring
messages of connection management to the process that listens, and carry everything between two processes of one user
on one machine: no other user can take their packets away, whatever sockets they open. A multicast datagram comes to
every process that has joined its group.
Source: socket(7) (SO_REUSEPORT, SO_ATTACH_REUSEPORT_CBPF).
Leaves out: processes of different users, which the system keeps apart, and so do we.
"""

from __future__ import annotations

import os
import select
import time
from struct import Struct
from typing import TYPE_CHECKING, Final

from weftwork.rdma.datagram import Datagram
from weftwork.rdma.drivers.group_sockets import open_group
from weftwork.rdma.drivers.lines import ProcessLines
from weftwork.rdma.drivers.lives import ProcessLives
from weftwork.rdma.drivers.port_users import users_of_port
from weftwork.rdma.drivers.raw import attach_filter
from weftwork.rdma.drivers.slots import ProcessSlot, addressee
from weftwork.rdma.drivers.udp import UdpPort, parse_address
from weftwork.rdma.number_prefix import prefix_of
from weftwork.wire.ib import BTH_BYTES
from weftwork.wire.mad import GENERAL_SERVICES_QP
from weftwork.wire.rdma_ip_cm import PortSpace
from weftwork.wire.udp import ROCE_V2_PORT

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

__all__ = ["SharedUdpPort"]

_SO_ATTACH_REUSEPORT_CBPF: Final = 51  # Linux include/uapi/asm-generic/socket.h
_STEER: Final = ((0x30, 0, 0, 5), (0x16, 0, 0, 0))  # ldb [5]: top byte of the queue pair in BTH; ret A
_TO_GENERAL_SERVICES: Final = GENERAL_SERVICES_QP.to_bytes(3, "big")
_ENVELOPE: Final = Struct("=16sBHBBH")  # source and its size, source port, ECN, DSCP, bytes of a segment
_MOST_AHEAD: Final = 64  # chosen: datagrams that a handed-on one waits for at most
_FIRST_SLOTS: Final = 8  # chosen: slots in which the first process of an address is looked for
_LOOK_S: Final = 1.0  # chosen: many requests may fail together, and each tells who else has the port
_MOST_REMEMBERED: Final = 4096  # chosen: processes behind addresses, since a peer may name any


class SharedUdpPort(UdpPort):
    """A `UdpPort` that leaves room for other processes of the user.

    Parameters
    ----------
    address, offload : as `UdpPort`
    hands_over : packets to processes of the user on this machine go by lines; else over the loopback interface, where
        other programs can look at them, and where another user can take the port (see ``docs/models/rdma-trust.md``)

    Raises
    ------
    UsageError : as `UdpPort`; 256 processes are there already
    """

    def __init__(self, address: str, *, offload: bool = True, hands_over: bool = True) -> None:
        self._process: Final = ProcessSlot(str(parse_address(address)))  # one name for all ways to write it
        self._events: Final = select.epoll()
        self._groups: Final[dict[bytes, socket.socket]] = {}
        self._packet: Final = bytearray(1 << 16)
        self._held: Datagram | None = None  # in `_packet`, until its turn
        self._ahead = 0
        self._hands_over: Final = hands_over
        self._doors_of: Final[dict[tuple[bytes, int], str]] = {}  # empty text: not on this machine
        self._is_readable = False  # the socket, as far as the events have told
        self._was_line = False
        self._others = ""
        self._looks_again_s = 0.0
        try:
            super().__init__(address, offload=offload, shares_port=True)
        except BaseException:
            self._close_doors()
            raise
        self._lines: Final = ProcessLines(self._events, self.counters)
        self._lives: Final = ProcessLives(self._process.life_name())
        self._events.register(self._lives, select.EPOLLIN)
        self._watched: Final[dict[str, tuple[bytes, int]]] = {}
        self.on_end: Callable[[bytes, int], None] | None = None
        attach_filter(self.socket, _SO_ATTACH_REUSEPORT_CBPF, _STEER)
        self._descriptor: Final = self.socket.fileno()
        self._events.register(self.socket, select.EPOLLIN)
        for door in self._process.doors:
            self._lines.add_door(door)

    @property
    def slot(self) -> int:
        """Top eight bits of the numbers of this process."""
        return self._process.number

    def listen(self, service_port: int, space: PortSpace = PortSpace.TCP) -> None:
        """Receive requests for a service; UsageError if another process listens."""
        door = self._process.listen(service_port, space)
        if door is not None:
            self._lines.add_door(door)

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
        """Send a packet or a train: by a line to a process of this user on this machine, else by UDP."""
        if self._hands_over and self._hand_to_peer(datagram):
            self.counters["by_line"] += 1
        else:
            super().send(datagram)

    def _hand_to_peer(self, datagram: Datagram) -> bool:
        """Send by a line; False where the receiver is no process of this user on this machine."""
        head = datagram.parts[0]
        destination = datagram.destination
        if head[5:8] != _TO_GENERAL_SERVICES:
            name = self._door_of(destination, head[5])
            return bool(name) and self._hand_on(datagram, name, tries_again=False)
        if not self.source_ports.is_here(destination):
            return False
        payload = datagram.payload()
        datagram = datagram._replace(parts=(payload,))
        to = addressee(payload)
        if to.service is not None:
            return self._ask(datagram, to.service)
        return to.slot is not None and self._hand_on(datagram, self._door_of(destination, to.slot))

    def _ask(self, datagram: Datagram, service: int) -> bool:
        """Hand a request to the process that listens; where nobody listens, to the first process, which refuses it."""
        listener = self._process.door_of_service(self._destination(datagram.destination), service)
        if self._hand_on(datagram, listener, stays=False):
            return True
        if self._process.is_full(listener):
            return False
        firsts = (self._door_of(datagram.destination, slot) for slot in range(_FIRST_SLOTS))
        return any(self._hand_on(datagram, door) for door in firsts)

    def _door_of(self, address: bytes, slot: int) -> str:
        """Door of a process of this machine; an empty text for an address of another machine."""
        name = self._doors_of.get((address, slot))
        if name is None:
            if len(self._doors_of) >= _MOST_REMEMBERED:
                self._doors_of.clear()
            is_here = self.source_ports.is_here(address)
            name = self._process.door_of_slot(self._destination(address), slot) if is_here else ""
            self._doors_of[address, slot] = name
        return name

    def receive(self) -> Datagram | None:
        """Take a datagram for this process; others are handed on.

        A message of connection management that was handed on waits for those that came to the socket before it, such as
        an ACK before the message that closes the connection.
        """
        while self._held is None:
            if self._lines.has_arrivals and not (self._was_line and self._is_readable):
                self._was_line = True
                datagram = self._receive_handed_on()
                if datagram is None:
                    continue
                if datagram.parts[0][5:8] != _TO_GENERAL_SERVICES:
                    return datagram
                self._held, self._ahead = datagram, 0
            elif self._is_readable:
                self._was_line = False
                datagram = self._receive_own()
                if datagram is not None:
                    return datagram
                self._is_readable = False
            elif not self._look():
                self._tell_ends()
                return self._receive_multicast()
        if self._ahead < _MOST_AHEAD:
            self._ahead += 1
            datagram = self._receive_own()
            if datagram is not None:
                return datagram
        held, self._held = self._held, None
        return held

    def _look(self) -> bool:
        """Take events; whether a datagram has come by the socket or by a line."""
        for descriptor, events in self._events.poll(0):
            if descriptor == self._descriptor:
                self._is_readable = True
            else:
                self._lines.note(descriptor, events)
        return self._is_readable or self._lines.has_arrivals

    def others_at_port(self) -> str:
        """Users who have opened the port of an address beside its owner, as a sentence; an empty text for none."""
        now_s = time.monotonic()
        if now_s >= self._looks_again_s:
            self._looks_again_s = now_s + _LOOK_S
            mine = os.getuid()
            shared = [(self.address, users_of_port(self.address) - {mine})]
            for address in sorted({address for (address, _), door in self._doors_of.items() if door} - {self.address}):
                users = users_of_port(address)
                shared.append((address, users - {mine} if len(users) > 1 else frozenset()))
            self._others = ". ".join(
                f"UDP port {ROCE_V2_PORT} of {self._destination(address)} is also open in programs of user "
                f"{' and '.join(map(str, sorted(users)))}, who may get its packets"
                for address, users in shared
                if users
            )
        return self._others

    def watch(self, address: bytes, qp_num: int) -> None:
        """Call `on_end` when the process of a queue pair of this machine ends, with its address and slot."""
        if self.source_ports.is_here(address):
            name = self._process.life_name(self._destination(address), prefix_of(qp_num))
            self._watched[name] = address, prefix_of(qp_num)
            self._lives.watch(name, lambda: users_of_port(address))

    def leave_watch(self, address: bytes, qp_num: int) -> None:
        """Forget one call of `watch`."""
        self._lives.leave(self._process.life_name(self._destination(address), prefix_of(qp_num)))

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
            if name is None:
                return datagram
            if self._hand_on(datagram, name):
                self.counters["handed_on"] += 1
            else:
                self.counters["not_handed_on"] += 1
                if not self._process.is_full(name):
                    return datagram

    def _hand_on(self, datagram: Datagram, name: str, *, tries_again: bool = True, stays: bool = True) -> bool:
        """Hand a datagram to another process; False if this user has no such process."""
        envelope = _ENVELOPE.pack(
            datagram.source.ljust(16, b"\0"),
            len(datagram.source),
            datagram.source_port,
            datagram.ecn,
            datagram.dscp,
            datagram.segment_bytes,
        )
        return self._lines.put(name, (envelope, *datagram.parts), tries_again=tries_again, stays=stays)

    def _receive_handed_on(self) -> Datagram | None:
        size_bytes = self._lines.receive_into(self._packet)
        if size_bytes < _ENVELOPE.size + BTH_BYTES:
            return None
        source, address_bytes, source_port, ecn, dscp, segment_bytes = _ENVELOPE.unpack_from(self._packet)
        payload = memoryview(self._packet)[_ENVELOPE.size : size_bytes]
        return Datagram(source[:address_bytes], self.address, source_port, (payload,), ecn, dscp, None, segment_bytes)

    def _receive_multicast(self) -> Datagram | None:
        for group, receiver in self._groups.items():
            datagram = self._receive_from(receiver, group)
            if datagram is not None:
                return datagram
        return None

    def close(self) -> None:
        """Close all sockets, and free the slot."""
        super().close()
        self._lines.close()
        self._lives.close()
        self._close_doors()

    def _close_doors(self) -> None:
        self._process.close()
        for receiver in self._groups.values():
            receiver.close()
        self._groups.clear()
        self._events.close()
