"""iWARP over TCP sockets of the system: the parts of a device.

All sockets are non-blocking and wait in one epoll descriptor. What a peer can hold here is bounded:
`connection_manager` says so of streams that have not started, and `queue_pair` of those that have.
Source: tcp(7), epoll(7), sendmsg(2); RFC 5044, 5 (an FPDU fits a TCP segment).
Leaves out: port mappers; the stream's meaning, see `conversation`.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import select
import socket
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_records import CmRejReason
from weftwork.rdma.drivers.driver import PS_PER_NS
from weftwork.rdma.drivers.udp import parse_address
from weftwork.rdma.iwarp.connection_manager import IwarpManager
from weftwork.rdma.iwarp.nic import IwarpNic
from weftwork.rdma.iwarp.setup import MpaOptions
from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.rdma.wires import OpenWire
from weftwork.wire.rdma_ip_cm import PortSpace

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.rdma.iwarp.conversation import IwarpCmId
    from weftwork.rdma.wires import WireOptions

__all__ = ["IwarpMover", "IwarpPort", "open_wire"]

_NS_PER_S: Final = 1_000_000_000
_BUFFER_BYTES: Final = 1 << 18  # chosen: four of the largest FPDUs; what is not whole at the end is copied
_MOST_EVENTS: Final = 64  # chosen: sockets of one turn
_MOST_ACCEPTED: Final = 16  # chosen: streams of one turn, so that a flood does not keep the others waiting
_TURN_BYTES: Final = 1 << 20  # chosen: sent by a stream before arrivals are looked for
_SEGMENT_BYTES: Final = 536  # RFC 9293, 3.7.1: what TCP may send where nothing is known
_FULL: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_ABORTED: Final = frozenset({errno.ECONNABORTED, errno.EPROTO, errno.ENETDOWN, errno.EHOSTUNREACH, errno.ENETUNREACH})
_READS: Final = select.EPOLLIN
_ENDS: Final = select.EPOLLHUP | select.EPOLLERR


class IwarpPort:
    """An address of this machine, and the TCP ports on which it listens.

    Parameters
    ----------
    address : of this machine, as text
    manager : of its NIC

    Raises
    ------
    UsageError : the address is not of this machine

    Attributes
    ----------
    poller : in which all sockets wait
    listeners : sockets that listen, with their ports, by descriptor
    """

    def __init__(self, address: str, manager: IwarpManager) -> None:
        parsed = parse_address(address)
        self.address: bytes = parsed.packed
        self.counters: Counter[str] = Counter()
        self._text: Final = str(parsed)
        self._family: Final = socket.AF_INET6 if parsed.version == 6 else socket.AF_INET
        self._manager: Final = manager
        self._error = ""
        self.listeners: Final[dict[int, tuple[socket.socket, int]]] = {}
        self.at_close: Callable[[], None] | None = None
        with socket.socket(self._family, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((self._text, 0))
            except OSError as error:
                raise UsageError(self._why(0, error)) from error
        self.poller: Final = select.epoll()

    @property
    def last_error(self) -> str:
        """What the system refused, or what ended the last stream that ended by an error."""
        return self._error or self._manager.last_why

    @last_error.setter
    def last_error(self, text: str) -> None:
        self._error = text

    def fileno(self) -> int:
        """Descriptor that is readable when a socket has something."""
        return self.poller.fileno()

    def path_mtu(self, destination: bytes) -> int:
        """Largest path MTU of the verbs: a stream cuts messages by itself."""
        del destination
        return PATH_MTUS_BYTES[-1]

    def listen(self, service_port: int, space: PortSpace = PortSpace.TCP) -> None:
        """Open a TCP port; UsageError if another program has it."""
        if space is not PortSpace.TCP:
            raise UsageError(f"space: found {space.name}, wanted TCP; iWARP has no datagram service")
        self.close_left()
        made = socket.socket(self._family, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.settimeout(0)
            made.bind((self._text, service_port))
            made.listen(socket.SOMAXCONN)
        except OSError as error:
            made.close()
            raise UsageError(self._why(service_port, error)) from error
        self.listeners[made.fileno()] = (made, service_port)
        self.poller.register(made.fileno(), _READS)

    def close_left(self) -> None:
        """Close the ports on which the manager does not listen any more."""
        if not self._manager.left_ports:
            return
        for descriptor, (listener, port) in list(self.listeners.items()):
            if port in self._manager.left_ports:
                del self.listeners[descriptor]
                self.poller.unregister(descriptor)
                listener.close()
        self._manager.left_ports.clear()

    def join(self, group: bytes) -> None:
        """Refuse a multicast address: a stream has one peer."""
        raise UsageError(f"group: found {group.hex()}, wanted none; iWARP has no multicast")

    def leave(self, group: bytes) -> None:
        """Nothing has been joined."""

    def resolve(self, address: bytes, service_port: int, space: PortSpace = PortSpace.TCP) -> bytes:
        """Return the address itself."""
        del service_port, space
        return address

    def dial(self, address: bytes, port: int) -> socket.socket:
        """Begin to connect to a peer; OSError where the system knows at once that it cannot."""
        made = socket.socket(self._family, socket.SOCK_STREAM)
        try:
            made.settimeout(0)
            made.bind((self._text, 0))
            with suppress(BlockingIOError):  # it goes on meanwhile
                made.connect((str(ipaddress.ip_address(address)), port))
        except OSError:
            made.close()
            raise
        return made

    def _why(self, port: int, error: OSError) -> str:
        if error.errno == errno.EADDRINUSE:
            return f"port: found {port} of {self._text}, which another program has, wanted a free TCP port"
        if error.errno == errno.EADDRNOTAVAIL:
            return f"address: found {self._text}, wanted one of this machine (ip -brief address lists them)"
        return f"address: found {self._text}, whose TCP port {port} could not be opened: {error.strerror}"

    def close(self) -> None:
        """Release the resources of the system."""
        if self.at_close is not None:
            self.at_close()
        for listener, _ in self.listeners.values():
            listener.close()
        self.listeners.clear()
        self.poller.close()


class _SocketStream:
    """A socket and its conversation.

    Attributes
    ----------
    mask : events for which it waits
    is_connecting : TCP is not connected yet
    is_shut : this end has sent its last byte
    """

    def __init__(self, conversation: IwarpCmId, sock: socket.socket, mask: int) -> None:
        self.conversation: Final = conversation
        self.socket: Final = sock
        self.mask = mask
        self.is_connecting = mask == select.EPOLLOUT
        self.is_shut = False


class IwarpMover:
    """Moves bytes between conversations and sockets, and fires timers.

    Parameters
    ----------
    port : of the address
    manager : of the NIC
    clock_ns : time that never goes back
    """

    def __init__(self, port: IwarpPort, manager: IwarpManager, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.port: Final = port
        self._manager: Final = manager
        self._clock_ns: Final = clock_ns
        self._streams: Final[dict[int, _SocketStream]] = {}
        self._by_conversation: Final[dict[IwarpCmId, _SocketStream]] = {}
        self._view: Final = memoryview(bytearray(_BUFFER_BYTES))
        self._resting: Final[set[int]] = set()  # listeners, while the system has no descriptors left
        port.at_close = self._close_all

    # Calls of the device

    def progress(self) -> bool:
        """Receive, fire timers, and send; returns whether there was work."""
        events = self.port.poller.poll(0, _MOST_EVENTS)
        for descriptor, mask in events:
            if descriptor in self.port.listeners:
                self._accept(descriptor)
            elif descriptor in self._streams:
                self._look(self._streams[descriptor], mask)
        now_ps = self._now_ps()
        self._manager.start_clocks(now_ps)
        due_ps = self._manager.next_timer_ps()
        if due_ps is not None and due_ps <= now_ps:
            self._manager.on_timer(now_ps)
        return self._send() or bool(events)

    def send(self) -> None:
        """Send only, after something was posted; the rest of a long message goes with `progress`."""
        self._send()

    def wait_s(self) -> float | None:
        """Seconds until a timer is due or a stream has its next turn, or None."""
        if self._manager.is_ready:
            return 0.0
        self._manager.start_clocks(self._now_ps())
        due_ps = self._manager.next_timer_ps()
        return None if due_ps is None else max(0.0, (due_ps - self._now_ps()) / (PS_PER_NS * _NS_PER_S))

    def _now_ps(self) -> int:
        return self._clock_ns() * PS_PER_NS

    # Streams

    def _accept(self, descriptor: int) -> None:
        listener, port = self.port.listeners[descriptor]
        for _ in range(_MOST_ACCEPTED):
            try:
                sock, where = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                self.port.counters["accept_failed"] += 1
                if error.errno in _FULL:
                    self._rest(descriptor)
                elif error.errno not in _ABORTED:
                    raise
                return
            sock.settimeout(0)
            made = self._manager.accepted(parse_address(where[0].partition("%")[0]).packed, port)
            if made is None:
                sock.close()
                continue
            self._add(_SocketStream(made, sock, _READS))
            made.opened(_segment_bytes(sock))

    def _rest(self, descriptor: int) -> None:
        """Take no more streams until one of the present ones is closed."""
        if self._streams and descriptor not in self._resting:
            self._resting.add(descriptor)
            self.port.poller.modify(descriptor, 0)

    def _add(self, stream: _SocketStream) -> None:
        stream.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._streams[stream.socket.fileno()] = stream
        self._by_conversation[stream.conversation] = stream
        self.port.poller.register(stream.socket.fileno(), stream.mask)

    def _open_new(self) -> bool:
        found = self._manager.take_to_open()
        if found is None:
            return False
        if found.is_over:
            return True
        try:
            sock = self.port.dial(found.address, found.port)
        except OSError as error:
            self._refused(found, error)
            return True
        self._add(_SocketStream(found, sock, select.EPOLLOUT))
        return True

    def _refused(self, conversation: IwarpCmId, error: OSError) -> None:
        """Tell a conversation that TCP could not connect."""
        reason = CmRejReason.INVALID_SERVICE_ID if error.errno == errno.ECONNREFUSED else None
        conversation.lost(f"TCP: {error.strerror}", reason)

    def _look(self, stream: _SocketStream, mask: int) -> None:
        """Take what a socket has."""
        if stream.is_connecting:
            code = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self._refused(stream.conversation, OSError(code, os.strerror(code)))
                return
            stream.is_connecting = False
            self._wait_for(stream, _READS)
            stream.conversation.opened(_segment_bytes(stream.socket))
            return
        if mask & (_READS | _ENDS) and stream.mask & _READS:
            self._receive(stream)
        elif mask & _ENDS:
            stream.conversation.lost("TCP: the connection was reset")
        if mask & select.EPOLLOUT and not stream.conversation.is_over:
            self._wait_for(stream, stream.mask & ~select.EPOLLOUT)
            self._manager.moved(stream.conversation)

    def _receive(self, stream: _SocketStream) -> None:
        try:
            size_bytes = stream.socket.recv_into(self._view)
        except BlockingIOError:
            return
        except OSError as error:
            stream.conversation.lost(f"TCP: {error.strerror}")
            return
        if size_bytes:
            stream.conversation.received(self._view[:size_bytes])
        else:
            self._wait_for(stream, stream.mask & ~_READS)
            stream.conversation.peer_closed()

    def _wait_for(self, stream: _SocketStream, mask: int) -> None:
        if mask != stream.mask:
            stream.mask = mask
            self.port.poller.modify(stream.socket.fileno(), mask)

    # Out

    def _send(self) -> bool:
        is_busy = False
        self.port.close_left()
        while self._open_new():
            is_busy = True
        for conversation in self._manager.take_ready():
            stream = self._by_conversation.get(conversation)
            if stream is None:
                continue
            if not conversation.is_over and not stream.is_connecting:
                is_busy |= self._write(stream)
            if conversation.is_over:
                self._close(stream)
        return is_busy

    def _write(self, stream: _SocketStream) -> bool:
        """Let the system take bytes; returns whether it took some."""
        conversation = stream.conversation
        taken = 0
        while pieces := conversation.bytes_to_send():
            try:
                count = stream.socket.sendmsg(pieces)
            except BlockingIOError:
                self._wait_for(stream, stream.mask | select.EPOLLOUT)
                return taken > 0
            except OSError as error:
                conversation.lost(f"TCP: {error.strerror}")
                return taken > 0
            taken += count
            conversation.bytes_sent(count)
            if taken >= _TURN_BYTES:
                self._manager.moved(conversation)  # it may have more, after the others
                return True
        if conversation.has_ended and not stream.is_shut and not conversation.is_over:
            stream.is_shut = True
            try:
                stream.socket.shutdown(socket.SHUT_WR)
            except OSError as error:
                conversation.lost(f"TCP: {error.strerror}")
        return taken > 0

    def _close(self, stream: _SocketStream) -> None:
        descriptor = stream.socket.fileno()
        self.port.poller.unregister(descriptor)
        del self._streams[descriptor], self._by_conversation[stream.conversation]
        stream.socket.close()
        while self._resting:
            self.port.poller.modify(self._resting.pop(), _READS)

    def _close_all(self) -> None:
        for stream in list(self._streams.values()):
            self._close(stream)


def _segment_bytes(sock: socket.socket) -> int:
    """Payload of a TCP segment (EMSS)."""
    return max(_SEGMENT_BYTES, sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))


def open_wire(address: str, options: WireOptions) -> OpenWire:
    """Open iWARP at an address of this machine.

    UsageError for an address of another one, and for a congestion control: that of TCP is the system's affair.
    """
    if options.congestion_control is not None:
        raise UsageError("congestion_control: found one for iWARP, wanted None: TCP of the system has its own")
    if options.checks_identification:
        raise UsageError("checks_identification: found it for iWARP, wanted False: TCP has no ICRC")
    nic = IwarpNic(parse_address(address).packed, limits=options.limits, options=MpaOptions())
    manager = IwarpManager(nic)
    port = IwarpPort(address, manager)
    return OpenWire(nic=nic, port=port, mover=IwarpMover(port, manager), make_manager=lambda: manager)
