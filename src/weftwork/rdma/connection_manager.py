"""The connection manager: it takes queue pairs to RTS and closes them.

It sends datagrams to queue pair 1 of the peer. It is an end of the NIC like a queue pair, without I/O: the NIC's five
calls drive it, and its own events tell the user what happened. Its memory is bounded whatever arrives: `NicLimits`
counts conversations and waiting requests.
Source: IBTA vol. 1, chapter 12 and annex A11; the names of librdmacm's rdma_cma.h.
Leaves out: resolution of names and routes, path migration (LAP, APR); datagram services, see `cm_services`.
"""

from __future__ import annotations

from collections import Counter, deque
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_clocks import CmClocks
from weftwork.rdma.cm_host import FIRST_QP, SERVICES
from weftwork.rdma.cm_id import CmId
from weftwork.rdma.cm_records import CmEventType, CmRejReason, ConnParam
from weftwork.rdma.cm_rejections import GUID_BYTES, OF_REP, OF_REQ, rejection, rejection_info
from weftwork.rdma.cm_services import CmServices
from weftwork.rdma.cm_states import PENDING, CmState
from weftwork.rdma.datagram import BTH, Datagram
from weftwork.rdma.number_prefix import COMM_ID_BITS, behind_prefix
from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.rdma.resting import RestingNumbers
from weftwork.wire.cm import (
    CmDisconnectReply,
    CmDisconnectRequest,
    CmMessage,
    CmReady,
    CmReject,
    CmReply,
    CmRequest,
    CmServiceReply,
    CmServiceRequest,
    CmWait,
    decode_cm,
    encode_cm,
)
from weftwork.wire.extended import Deth
from weftwork.wire.fields import MalformedPacket, check_fits
from weftwork.wire.ib import DEFAULT_PARTITION_KEY, PSN_MODULUS
from weftwork.wire.mad import GENERAL_SERVICES_QP, GENERAL_SERVICES_QUEUE_KEY, MAD_BYTES, MadHeader
from weftwork.wire.opcodes import Opcode
from weftwork.wire.rdma_ip_cm import IpCmHeader, PortSpace, gid_of, port_of_service, service_of_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.rdma.cm_clocks import CmTimed
    from weftwork.rdma.cm_records import CmEvent
    from weftwork.rdma.nic import RdmaNic
    from weftwork.rdma.queue_pair import RdmaQueuePair

__all__ = ["CmListener", "ConnectionManager"]

_MOST_QUEUED: Final = 1024  # chosen: datagrams that wait to be sent; what is lost here is sent again by the clocks
_R = CmRejReason
_EMPTY_HEADER: Final = MadHeader(attribute=0, transaction=0)
_Answer = CmReply | CmReady | CmReject | CmWait | CmDisconnectRequest | CmDisconnectReply


class CmListener:
    """A port on which requests are accepted.

    Parameters
    ----------
    manager : whose
    port : 16 bits
    backlog : requests that may wait for an answer
    space : in which the port counts: TCP for connections, UDP or IPOIB for datagram services

    Attributes
    ----------
    pending : requests that wait
    """

    def __init__(self, manager: ConnectionManager, port: int, backlog: int, space: PortSpace = PortSpace.TCP) -> None:
        self._manager: Final = manager
        self.space: Final = space
        self.port: Final = port
        self.backlog: Final = backlog
        self.pending = 0

    def close(self) -> None:
        """Accept no more requests; waiting requests can still be answered."""
        self._manager.forget_listener(self)


class ConnectionManager:
    """Connections of one NIC.

    Parameters
    ----------
    nic : on which nobody has queue pair 1
    path_mtu : most bytes in a packet, or a function that gives them for the address of a peer; a request for more is
        answered by this number
    response_timeout : an answer is late after 4.096 us x 2^response_timeout
    cm_retries : a message without an answer goes again so many times, 0 to 15

    Attributes
    ----------
    counters : datagrams that were dropped, by reason
    services : datagram services, asked for and answered

    Raises
    ------
    UsageError : the NIC has a manager, or a parameter does not fit
    """

    def __init__(
        self,
        nic: RdmaNic,
        *,
        path_mtu: int | Callable[[bytes], int] = 1024,  # iboe_get_mtu in Linux ib_addr.h, of an Ethernet MTU of 1,500
        response_timeout: int = 16,  # chosen: 268 ms; with 15 retries 4.3 s, as long as one try of Linux' cma.c
        cm_retries: int = 15,  # CMA_MAX_CM_RETRIES in Linux cma.c
    ) -> None:
        if not callable(path_mtu) and path_mtu not in PATH_MTUS_BYTES:
            raise UsageError(f"path_mtu: found {path_mtu}, wanted one of {', '.join(map(str, PATH_MTUS_BYTES))}")
        check_fits("response_timeout", response_timeout, 5)
        check_fits("cm_retries", cm_retries, 4)
        self.nic = nic
        self._path_mtu: Final = path_mtu
        self.response_timeout = response_timeout
        self.cm_retries = cm_retries
        self.ca_guid = nic.random_bits(64)
        self.qp_num: Final = GENERAL_SERVICES_QP
        self.counters: Counter[str] = Counter()
        self.services: Final = CmServices(self, self.counters)
        self._listeners: dict[tuple[PortSpace, int], CmListener] = {}
        self._ids: dict[int, CmId] = {}
        self._resting: Final = RestingNumbers(nic.limits.max_cm_id)  # a peer remembers so many conversations
        self._by_peer: dict[tuple[bytes, int], CmId] = {}  # those that a REQ made, by address and ID of the peer
        self._by_peer_qp: dict[tuple[bytes, int], CmId] = {}
        self._by_qp: dict[RdmaQueuePair, CmId] = {}
        self._time_waits: dict[CmId, None] = {}  # oldest first
        self._pending: dict[CmId, CmListener] = {}
        self._events: deque[CmEvent] = deque()
        self._outgoing: deque[tuple[bytes, bytes, int]] = deque()
        self._source_port: Final = nic.source_ports.draw(GENERAL_SERVICES_QP)
        self._clocks: Final = CmClocks()
        self._psn = nic.random_psn()
        nic.attach(self)

    # Calls of the user

    def listen(self, port: int, backlog: int = 64, space: PortSpace = PortSpace.TCP) -> CmListener:
        """Accept requests on a port.

        Parameters
        ----------
        port : 1 to 65,535
        backlog : requests that may wait for an answer; more are refused
        space : in which the port counts: TCP for connections, UDP or IPOIB for datagram services

        Raises
        ------
        UsageError : the port has a listener, or a number does not fit
        """
        check_fits("port", port, 16)
        if (space, port) in self._listeners or port == 0 or backlog < 1:
            raise UsageError(f"port, backlog: found {port} and {backlog}, wanted a free port from 1 and at least 1")
        made = self._listeners[space, port] = CmListener(self, port, backlog, space)
        return made

    def connect(self, address: bytes, port: int, qp: RdmaQueuePair, param: ConnParam | None = None) -> CmId:
        """Ask a peer for a connection.

        The queue pair goes to INIT at once, and to RTS with the event ESTABLISHED.

        Parameters
        ----------
        address : IP address of the peer, 4 or 16 bytes in network order
        port : on which it listens
        qp : of type RC or UC, in RESET or INIT
        param : this end's parameters

        Raises
        ------
        UsageError : too many conversations, or the queue pair or a parameter does not fit
        """
        service_of_port(port)
        self.nic.flow(address, self._source_port, 0)
        if not self._has_room():
            raise UsageError(f"connections: found {len(self._ids)}, which is the limit")
        made = CmId(self, address, port, self.draw_comm_id())
        made.connect(qp, param if param is not None else ConnParam())
        return made

    def path_mtu_to(self, address: bytes) -> int:
        """Most bytes in a packet to a peer."""
        return self._path_mtu(address) if callable(self._path_mtu) else self._path_mtu

    def ports(self) -> tuple[int, ...]:
        """Ports on which it listens, of all port spaces."""
        return tuple(port for _, port in self._listeners)

    def conversations(self) -> tuple[CmId, ...]:
        """Conversations that are not over."""
        return tuple(self._ids.values())

    def next_event(self) -> CmEvent | None:
        """Take the next event, or None."""
        return self._events.popleft() if self._events else None

    def forget_listener(self, listener: CmListener) -> None:
        """Accept no more requests for a listener."""
        if self.listener(listener.port, listener.space) is listener:
            del self._listeners[listener.space, listener.port]

    # An end of the NIC

    def receive(
        self, datagram: Datagram, header: tuple[int, int, int, int, int], body: memoryview, now_ps: int
    ) -> None:
        """Take a datagram to queue pair 1.

        Invalid datagrams are counted and dropped.

        Parameters
        ----------
        datagram : that brought it
        header : the five words of BTH
        body : what follows, without ICRC
        now_ps : instant; clocks start at the next `next_datagram`
        """
        del now_ps
        opcode, flags, pkey, _, _ = header
        if (pkey ^ DEFAULT_PARTITION_KEY) & 0x7FFF:
            self.counters["not_accepted"] += 1
            return
        try:
            deth, about, message = _decode(opcode, flags, body)
        except MalformedPacket:
            self.counters["malformed"] += 1
            return
        if deth.queue_key != GENERAL_SERVICES_QUEUE_KEY or deth.source_qp != GENERAL_SERVICES_QP:
            self.counters["stranger"] += 1
            return
        self._dispatch(datagram, message, about.transaction)

    def next_datagram(self, now_ps: int) -> Datagram | None:
        """Make the next datagram, or None.

        It starts the clocks of changed conversations.
        """
        self._clocks.start(now_ps)
        if not self._outgoing:
            return None
        address, mad, source_port = self._outgoing.popleft()
        self._psn = (self._psn + 1) % PSN_MODULUS
        bth = BTH.pack(Opcode.UD_SEND_ONLY, 0, DEFAULT_PARTITION_KEY, GENERAL_SERVICES_QP, self._psn)
        deth = Deth(GENERAL_SERVICES_QUEUE_KEY, GENERAL_SERVICES_QP)
        return self.nic.flow(address, source_port, 0).close(bth + deth.encode(), (mad,))

    def next_timer_ps(self) -> int | None:
        """Next instant at which `on_timer` has work, or None."""
        return self._clocks.next_ps()

    def on_timer(self, now_ps: int) -> None:
        """Do all due work."""
        self._clocks.fire(now_ps)

    # Messages

    def _dispatch(self, datagram: Datagram, message: CmMessage, transaction: int) -> None:
        source = datagram.source
        if isinstance(message, CmRequest):
            self._take_request(datagram, message, transaction)
        elif isinstance(message, CmServiceRequest):
            self.services.take_request(source, message, transaction)
        elif isinstance(message, CmServiceReply):
            self.services.take_reply(source, message, transaction)
        elif isinstance(message, _Answer):
            self._take_answer(datagram, message, transaction)

    def _take_answer(self, datagram: Datagram, message: _Answer, transaction: int) -> None:
        source = datagram.source
        found = self._ids.get(message.remote_comm_id)
        if isinstance(message, CmReject) and not message.remote_comm_id:
            found = self._of_early_reject(source, message)
        if found is not None and found.address == source:
            if not found.receive(message, transaction, datagram.source_port):
                self.counters["stranger"] += 1
            return
        self.counters["stranger" if found is not None else "no_conversation"] += 1
        if found is None:
            self._answer_unknown(source, message, transaction)

    def _of_early_reject(self, source: bytes, message: CmReject) -> CmId | None:
        """Conversation meant by a peer that names only itself.

        The peer did not learn the number of the conversation.
        """
        found = self._by_peer.get((source, message.local_comm_id))
        return found if found is not None and rejection_info(message) == found.peer_guid.to_bytes(GUID_BYTES) else None

    def _answer_unknown(self, source: bytes, message: CmMessage, transaction: int) -> None:
        """Tell a peer that its conversation is over; nothing is kept.

        The conversation has ended or never was. Nobody on this machine is told so: another user counts packets, and
        could ask for the numbers of conversations.
        """
        if self.nic.source_ports.is_here(source):
            return
        if isinstance(message, CmReply):
            ids = (message.remote_comm_id, message.local_comm_id)
            self.send(source, encode_cm(rejection(ids, OF_REP, _R.INVALID_COMM_ID), transaction))
        elif isinstance(message, CmDisconnectRequest):
            reply = CmDisconnectReply(local_comm_id=message.remote_comm_id, remote_comm_id=message.local_comm_id)
            self.send(source, encode_cm(reply, transaction))

    def _take_request(self, datagram: Datagram, message: CmRequest, transaction: int) -> None:
        source = datagram.source
        known = self._by_peer.get((source, message.local_comm_id))
        if known is not None and not _was_of_another(known, message.local_ca_guid):
            if not known.receive(message, transaction, datagram.source_port):
                self.counters["stranger"] += 1
            return
        listener = self.listener(port_of_service(message.service_id) or 0, PortSpace.TCP)
        reason = self._refusal(source, message, listener)
        if listener is None or reason is not None:
            self.counters["refused"] += 1
            info = bytes([PATH_MTUS_BYTES.index(self.path_mtu_to(source)) + 1]) if reason is _R.INVALID_MTU else b""
            why = reason if reason is not None else _R.INVALID_SERVICE_ID
            reject = rejection((0, message.local_comm_id), OF_REQ, why, info=info)
            self.send(source, encode_cm(reject, transaction))
            return
        request = (message, transaction, datagram.source_port)
        made = CmId(self, source, listener.port, self.draw_comm_id(), request)
        self._pending[made] = listener
        listener.pending += 1
        made.start()

    def _refusal(self, source: bytes, message: CmRequest, listener: CmListener | None) -> CmRejReason | None:
        """Why a request is refused, or None."""
        if listener is None:
            return _R.INVALID_SERVICE_ID
        if message.transport_service not in SERVICES.values() or message.extended_transport:
            return _R.INVALID_TRANSPORT_TYPE
        try:
            header, _ = IpCmHeader.decode(message.private_data)
        except MalformedPacket:
            return _R.UNSUPPORTED
        if header.version or (message.partition_key ^ DEFAULT_PARTITION_KEY) & 0x7FFF:
            return _R.UNSUPPORTED
        named = header.source, header.destination, message.primary.local_gid, message.primary.remote_gid
        here = self.nic.address
        if named != (ip_address(source), ip_address(here), gid_of(source), gid_of(here)):
            return _R.INVALID_GID
        try:
            most = self.path_mtu_to(source)
        except UsageError:  # no way back: the source is forged, or has lost its network
            return _R.UNSUPPORTED
        if not 1 <= message.path_mtu <= PATH_MTUS_BYTES.index(most) + 1:
            return _R.INVALID_MTU
        if message.local_qpn < FIRST_QP:
            return _R.NO_QP
        if self.is_stale(source, message.local_qpn, message.local_ca_guid):
            return _R.STALE_CONN
        is_full = listener.pending >= listener.backlog or len(self._pending) >= self.nic.limits.max_cm_pending
        return _R.NO_RESOURCES if is_full or not self._has_room() else None

    # For conversations

    def watch(self, conversation: CmId) -> None:
        """Watch the process of the peer until the conversation is over."""
        self.nic.peers.watch(conversation, conversation.address, conversation.remote_qp_num, conversation.lose_peer)

    def send(self, address: bytes, mad: bytes, source_port: int | None = None) -> None:
        """Send a management datagram to queue pair 1 of an address, from a UDP port or from that of the manager."""
        if len(self._outgoing) >= _MOST_QUEUED:
            self.counters["queue_full"] += 1
            return
        self._outgoing.append((address, mad, self._source_port if source_port is None else source_port))
        self.nic.wake(self)

    def tell(self, event: CmEvent) -> None:
        """Queue an event for the user."""
        self._events.append(event)

    def withdraw(self, conversation: CmId) -> bool:
        """Withdraw a request that the user has not seen.

        Returns whether it existed.
        """
        for event in self._events:
            if event.id is conversation and event.event_type is CmEventType.CONNECT_REQUEST:
                self._events.remove(event)
                return True
        return False

    def moved(self, conversation: CmId, before: CmState) -> None:
        """Note that the state has changed."""
        now = conversation.state
        if now in {CmState.TIMEWAIT, CmState.IDLE}:
            self.nic.peers.leave(conversation)
        if before is CmState.IDLE:
            self._ids[conversation.local_comm_id] = conversation
            if not conversation.is_active:
                self._by_peer[conversation.address, conversation.remote_comm_id] = conversation
                self._by_peer_qp[conversation.address, conversation.asked_qp_num] = conversation
        if now not in PENDING and conversation in self._pending:
            self._pending.pop(conversation).pending -= 1
        if now in {CmState.REP_RCVD, CmState.ESTABLISHED} and conversation.is_active:
            self._by_peer_qp[conversation.address, conversation.remote_qp_num] = conversation
        if now is CmState.TIMEWAIT:
            self._time_waits[conversation] = None
            if conversation.agreed is None:
                self._free_peer_qp(conversation)  # nothing was sent on it
        elif now is CmState.IDLE:
            self._forget(conversation)

    def listener(self, port: int, space: PortSpace) -> CmListener | None:
        """Listener of a port, or None."""
        return self._listeners.get((space, port))

    def stop_clock(self, conversation: CmTimed) -> None:
        """Stop the clock of a conversation."""
        self._clocks.stop(conversation)

    def restart_clock(self, conversation: CmTimed) -> None:
        """Restart the clock of a conversation's wait at the next datagram."""
        self._clocks.restart(conversation)
        self.nic.wake(self)

    def claim(self, qp: RdmaQueuePair, conversation: CmId) -> None:
        """Assign a queue pair to a conversation; UsageError if it is taken."""
        if qp in self._by_qp:
            raise UsageError(f"qp: found number {qp.qp_num} in use by another conversation, wanted a free one")
        self._by_qp[qp] = conversation
        qp.watches_peer = False

    def is_stale(self, address: bytes, qp_num: int, guid: int) -> bool:
        """Whether a conversation has this queue pair of the peer.

        If so, it is closed (IBTA vol. 1, 12.9.8.3). A closed conversation counts only for the adapter that had it, as
        in Linux cm.c: a program that starts again draws its numbers without knowing those of the program before.
        """
        found = self._by_peer_qp.get((address, qp_num))
        if found is None or _was_of_another(found, guid):
            return False
        if found.state is CmState.ESTABLISHED:
            found.disconnect()
        return True

    # Parts

    def draw_comm_id(self) -> int:
        """Draw a free number of a conversation."""
        prefix = self.nic.number_prefix
        drawn = 0
        while (
            drawn == 0 or drawn in self._ids or drawn in self.services or drawn in self._resting
        ):  # 0 says that there is none
            drawn = self.nic.random_bits(COMM_ID_BITS)
            if prefix is not None:
                drawn = behind_prefix(prefix, drawn, COMM_ID_BITS)
        return drawn

    def _has_room(self) -> bool:
        """Whether another conversation fits.

        The oldest in TIMEWAIT makes room.
        """
        if len(self._ids) >= self.nic.limits.max_cm_id and self._time_waits:
            next(iter(self._time_waits)).on_timer()
        return len(self._ids) < self.nic.limits.max_cm_id

    def _forget(self, conversation: CmId) -> None:
        self._clocks.stop(conversation)
        self._ids.pop(conversation.local_comm_id, None)
        self._resting.add(conversation.local_comm_id)
        self._time_waits.pop(conversation, None)
        peer = (conversation.address, conversation.remote_comm_id)
        if self._by_peer.get(peer) is conversation:
            del self._by_peer[peer]
        self._free_peer_qp(conversation)
        if conversation.qp is not None:
            self._by_qp.pop(conversation.qp, None)
            conversation.qp.watches_peer = True

    def _free_peer_qp(self, conversation: CmId) -> None:
        for qp_num in (conversation.asked_qp_num, conversation.remote_qp_num):
            if self._by_peer_qp.get((conversation.address, qp_num)) is conversation:
                del self._by_peer_qp[conversation.address, qp_num]


def _was_of_another(conversation: CmId, guid: int) -> bool:
    """Whether a closed conversation was with another adapter of its address."""
    return conversation.state is CmState.TIMEWAIT and conversation.peer_guid != guid


def _decode(opcode: int, flags: int, body: memoryview) -> tuple[Deth, MadHeader, CmMessage]:
    """Read a packet to queue pair 1.

    MalformedPacket if it is no message of connection management.
    """
    if opcode != Opcode.UD_SEND_ONLY or flags >> 4 & 0b11:
        raise MalformedPacket("CM", f"found opcode {opcode:#04x}, wanted a datagram without padding")
    deth, mad = Deth.decode(body)
    if len(mad) != MAD_BYTES:
        raise MalformedPacket("MAD", f"found {len(mad)} bytes, wanted {MAD_BYTES}")
    about, message = decode_cm(mad)
    if about != _EMPTY_HEADER._replace(attribute=about.attribute, transaction=about.transaction):
        raise MalformedPacket("MAD", "found a version, method or status of another kind of datagram")
    return deth, about, message
