"""Datagram services: which queue pair answers at a port of a peer.

The side that asks sends a SIDR_REQ with a service ID, and gets the number and the key of a queue pair by a SIDR_REP. No
queue pair changes its state, and nothing is left between the two ends.
Source: IBTA vol. 1, 12.11 (service ID resolution) and annex A11; the user's events as in Linux
drivers/infiniband/core/cma.c.
Leaves out: redirection to another port of the fabric.
"""

from __future__ import annotations

from collections import Counter, deque
from enum import Enum
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Protocol

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_host import FIRST_QP, LONGEST_SERVICE_TIMEOUT, timeout_ps
from weftwork.rdma.cm_records import CmEventType, CmRejReason, CmServiceEvent, CmServiceStatus
from weftwork.wire.cm import CmServiceReply, CmServiceRequest, encode_cm
from weftwork.wire.fields import MalformedPacket, check_fits
from weftwork.wire.ib import DEFAULT_PARTITION_KEY
from weftwork.wire.rdma_ip_cm import IP_CM_HEADER_BYTES, IpCmHeader, PortSpace, port_of_service, service_of_port

if TYPE_CHECKING:
    from weftwork.rdma.cm_clocks import CmTimed
    from weftwork.rdma.connection_manager import CmListener
    from weftwork.rdma.nic import RdmaNic

__all__ = ["DATAGRAM_SPACES", "UDP_QUEUE_KEY", "CmServiceId", "CmServices", "ServiceHost", "ServiceState"]

UDP_QUEUE_KEY: Final = 0x01234567  # RDMA_UDP_QKEY in Linux include/rdma/rdma_cm.h
DATAGRAM_SPACES: Final = (PortSpace.UDP, PortSpace.IPOIB)
_E, _S = CmEventType, CmServiceStatus


class ServiceState(Enum):
    """State of a resolution at one end."""

    IDLE = "idle"
    ASKING = "SIDR_REQ sent"
    ASKED = "SIDR_REQ received"
    ANSWERED = "SIDR_REP sent"


class ServiceHost(Protocol):
    """Services of the connection manager."""

    nic: RdmaNic
    response_timeout: int
    cm_retries: int

    def send(self, address: bytes, mad: bytes) -> None:
        """Send a management datagram to queue pair 1 of an address."""

    def restart_clock(self, conversation: CmTimed) -> None:
        """Restart the clock of `wait_ps` at the next datagram."""

    def stop_clock(self, conversation: CmTimed) -> None:
        """Stop the clock."""

    def draw_comm_id(self) -> int:
        """Draw a free number of a conversation."""

    def listener(self, port: int, space: PortSpace) -> CmListener | None:
        """Listener of a port, or None."""


class CmServiceId:
    """One end of a resolution (struct rdma_cm_id of a datagram service).

    Parameters
    ----------
    services : whose
    place : address of the peer, 4 or 16 bytes in network order; port and space of the service
    ids : number (32 bits) and transaction (64 bits), which the side that asks draws
    is_active : this end asks

    Attributes
    ----------
    state : see `ServiceState`
    wait_ps, deadline_ps : time to wait in this state, and when it ends; None without end
    """

    def __init__(
        self, services: CmServices, place: tuple[bytes, int, PortSpace], ids: tuple[int, int], *, is_active: bool
    ) -> None:
        self._services: Final = services
        self.address, self.port, self.space = place
        self.request_id, self.transaction = ids
        self.is_active: Final = is_active
        self.state = ServiceState.IDLE
        self.wait_ps: int | None = None
        self.deadline_ps: int | None = None
        self.last = b""
        self.retries_left = 0

    def accept(self, qp_num: int, queue_key: int = UDP_QUEUE_KEY, private_data: bytes = b"") -> None:
        """Answer a request with a queue pair.

        Parameters
        ----------
        qp_num : of type UD; it already takes datagrams
        queue_key : that datagrams to it have to bring
        private_data : for the peer, at most 136 bytes

        Raises
        ------
        UsageError : nobody waits for an answer, or a number or the data does not fit
        """
        check_fits("qp_num", qp_num, 24)
        check_fits("queue_key", queue_key, 32)
        self._services.answer(self, _S.SUCCESS, qp_num=qp_num, queue_key=queue_key, private_data=private_data)

    def reject(self, private_data: bytes = b"") -> None:
        """Refuse a request, with at most 136 bytes; UsageError if nobody waits."""
        self._services.answer(self, _S.REJECT, private_data=private_data)

    def close(self) -> None:
        """Forget a question, or refuse a request that waits."""
        if self.state is ServiceState.ASKED:
            self.reject()
        elif self.state is ServiceState.ASKING:
            self._services.forget(self)

    def on_timer(self) -> None:
        """Send again, give up, or forget."""
        self._services.on_timer(self)


class CmServices:
    """Resolutions of one connection manager.

    Parameters
    ----------
    host : the manager
    counters : its counters
    """

    def __init__(self, host: ServiceHost, counters: Counter[str]) -> None:
        self._host: Final = host
        self._counters: Final = counters
        self._asked: Final[dict[int, CmServiceId]] = {}  # by this end, by number
        self._taken: Final[dict[tuple[bytes, int], CmServiceId]] = {}  # of peers, by address and number
        self._waiting: Final[dict[CmServiceId, CmListener]] = {}
        self._answered: Final[dict[CmServiceId, None]] = {}  # oldest first
        self._events: Final[deque[CmServiceEvent]] = deque()

    @property
    def kept(self) -> tuple[CmServiceId, ...]:
        """All resolutions that are not over."""
        return (*self._asked.values(), *self._taken.values())

    def ask(
        self, address: bytes, port: int, private_data: bytes = b"", space: PortSpace = PortSpace.UDP
    ) -> CmServiceId:
        """Ask a peer which queue pair answers at a port.

        The event ESTABLISHED brings it.

        Parameters
        ----------
        address : IP address of the peer, 4 or 16 bytes in network order
        port : on which it listens
        private_data : for the peer, at most 180 bytes
        space : in which the port counts

        Raises
        ------
        UsageError : too many resolutions, or an argument does not fit
        """
        nic = self._host.nic
        service = service_of_port(port, space)
        room_bytes = CmServiceRequest.LAYOUT.data_bytes - IP_CM_HEADER_BYTES
        if len(private_data) > room_bytes:
            raise UsageError(f"private_data: found {len(private_data)} bytes, wanted up to {room_bytes}")
        if len(address) != len(nic.address):
            raise UsageError(f"address: found {len(address)} bytes, wanted {len(nic.address)} as this NIC's")
        if not self._has_room():
            raise UsageError(f"datagram services: found {len(self._asked) + len(self._taken)}, which is the limit")
        ids = (self._host.draw_comm_id(), nic.random_bits(64))
        made = CmServiceId(self, (address, port, space), ids, is_active=True)
        header = IpCmHeader(
            source_port=0xC000 | nic.random_bits(14),  # RFC 6335, 6: dynamic ports
            source=ip_address(nic.address),
            destination=ip_address(address),
        )
        request = CmServiceRequest(
            request_id=made.request_id,
            partition_key=DEFAULT_PARTITION_KEY,
            service_id=service,
            private_data=header.encode() + private_data,
        )
        made.state, made.retries_left = ServiceState.ASKING, self._host.cm_retries
        self._asked[made.request_id] = made
        self._say(made, encode_cm(request, made.transaction), timeout_ps(self._host.response_timeout))
        return made

    def next_event(self) -> CmServiceEvent | None:
        """Take the next event, or None."""
        return self._events.popleft() if self._events else None

    def __contains__(self, request_id: int) -> bool:
        return request_id in self._asked

    # Messages of peers

    def take_request(self, source: bytes, message: CmServiceRequest, transaction: int) -> None:
        """Take a SIDR_REQ; one that comes again gets its answer again."""
        known = self._taken.get((source, message.request_id))
        if known is not None and known.transaction == transaction:
            if known.state is ServiceState.ANSWERED:
                self._host.send(source, known.last)
            return
        if known is not None and known.state is not ServiceState.ANSWERED:
            self._counters["stranger"] += 1
            return
        listener, status = self._listener_of(source, message)
        if listener is None or status is not _S.SUCCESS:
            self._counters["refused"] += 1
            reply = CmServiceReply(request_id=message.request_id, status=status, service_id=message.service_id)
            self._host.send(source, encode_cm(reply, transaction))
            return
        if known is not None:
            self.forget(known)
        ids = (message.request_id, transaction)
        made = CmServiceId(self, (source, listener.port, listener.space), ids, is_active=False)
        made.state = ServiceState.ASKED
        self._taken[source, made.request_id] = made
        self._waiting[made] = listener
        listener.pending += 1
        self._wait(made, timeout_ps(LONGEST_SERVICE_TIMEOUT))
        data = message.private_data[IP_CM_HEADER_BYTES:]
        self._events.append(CmServiceEvent(event_type=_E.CONNECT_REQUEST, id=made, private_data=data))

    def take_reply(self, source: bytes, message: CmServiceReply, transaction: int) -> None:
        """Take a SIDR_REP."""
        found = self._asked.get(message.request_id)
        if found is None:
            self._counters["no_conversation"] += 1
            return
        if (found.address, found.transaction) != (source, transaction):
            self._counters["stranger"] += 1
            return
        self.forget(found)
        status = message.status
        if status == _S.SUCCESS and message.service_qpn < FIRST_QP:
            status = _S.NO_QP
        self._events.append(
            CmServiceEvent(
                event_type=_E.ESTABLISHED if status == _S.SUCCESS else _E.REJECTED,
                id=found,
                private_data=message.private_data,
                status=status,
                qp_num=message.service_qpn if status == _S.SUCCESS else 0,
                queue_key=message.queue_key if status == _S.SUCCESS else 0,
            )
        )

    def _listener_of(self, source: bytes, message: CmServiceRequest) -> tuple[CmListener | None, CmServiceStatus]:
        """Who takes a request, or why it is refused."""
        ports = {space: port_of_service(message.service_id, space) for space in DATAGRAM_SPACES}
        found = [self._host.listener(port, space) for space, port in ports.items() if port is not None]
        listener = found[0] if found else None
        if listener is None:
            return None, _S.UNSUPPORTED
        try:
            header, _ = IpCmHeader.decode(message.private_data)
        except MalformedPacket:
            return None, _S.UNSUPPORTED
        here = self._host.nic.address
        if header.version:
            return None, _S.UNSUPPORTED_VERSION
        is_named = (header.source, header.destination) == (ip_address(source), ip_address(here))
        is_full = listener.pending >= listener.backlog or len(self._waiting) >= self._host.nic.limits.max_cm_pending
        if not is_named or (message.partition_key ^ DEFAULT_PARTITION_KEY) & 0x7FFF or is_full or not self._has_room():
            return None, _S.REJECT
        return listener, _S.SUCCESS

    # For resolutions

    def answer(
        self,
        of: CmServiceId,
        status: CmServiceStatus,
        *,
        qp_num: int = 0,
        queue_key: int = 0,
        private_data: bytes = b"",
    ) -> None:
        """Answer a request that waits; UsageError if none does, or if the data does not fit."""
        if of.state is not ServiceState.ASKED:
            raise UsageError(f"state: found {of.state.value}, wanted a request that waits for an answer")
        reply = CmServiceReply(
            request_id=of.request_id,
            status=status,
            service_qpn=qp_num,
            service_id=service_of_port(of.port, of.space),
            queue_key=queue_key,
            private_data=private_data,
        )
        mad = encode_cm(reply, of.transaction)
        self._waiting.pop(of).pending -= 1
        of.state = ServiceState.ANSWERED
        self._answered[of] = None
        # until the peer's last retransmission of its question
        self._say(of, mad, timeout_ps(self._host.response_timeout) * (self._host.cm_retries + 1))

    def on_timer(self, of: CmServiceId) -> None:
        """Do what is due."""
        if of.state is ServiceState.ASKING and of.retries_left:
            of.retries_left -= 1
            self._say(of, of.last, timeout_ps(self._host.response_timeout))
        elif of.state is ServiceState.ASKING:
            self.forget(of)
            self._events.append(CmServiceEvent(event_type=_E.UNREACHABLE, id=of, status=CmRejReason.TIMEOUT))
        elif of.state is ServiceState.ASKED:
            unseen = [event for event in self._events if event.id is of]
            for event in unseen:
                self._events.remove(event)
            if not unseen:
                self._events.append(CmServiceEvent(event_type=_E.CONNECT_ERROR, id=of, status=CmRejReason.TIMEOUT))
            self.answer(of, _S.REJECT)
        else:
            self.forget(of)

    def forget(self, of: CmServiceId) -> None:
        """Keep nothing of a resolution."""
        self._host.stop_clock(of)
        of.state = ServiceState.IDLE
        self._answered.pop(of, None)
        if of.is_active:
            self._asked.pop(of.request_id, None)
        else:
            self._taken.pop((of.address, of.request_id), None)

    def _has_room(self) -> bool:
        """Whether another resolution fits; the oldest that is answered makes room."""
        most = self._host.nic.limits.max_cm_id
        if len(self._asked) + len(self._taken) >= most and self._answered:
            self.forget(next(iter(self._answered)))
        return len(self._asked) + len(self._taken) < most

    def _say(self, of: CmServiceId, mad: bytes, wait_ps: int) -> None:
        of.last = mad
        self._host.send(of.address, mad)
        self._wait(of, wait_ps)

    def _wait(self, of: CmServiceId, wait_ps: int) -> None:
        of.wait_ps, of.deadline_ps = wait_ps, None
        self._host.restart_clock(of)
