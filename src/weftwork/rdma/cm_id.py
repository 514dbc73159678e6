"""One end of a connection in the connection manager.

It lives from its REQ to the end of TIMEWAIT.
Source: IBTA vol. 1, 12.9 (states), 12.9.8 (timeouts, duplicates, stale connections); the rules for attributes as in
Linux drivers/infiniband/core/cm.c and cma.c.
Leaves out: which conversation a message belongs to, listeners and limits, see `connection_manager`.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, Protocol

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_private import pack_private_data, unpack_private_data
from weftwork.rdma.cm_records import AgreedConnection, CmEvent, CmEventType, CmRejReason, ConnParam
from weftwork.rdma.cm_states import AGAIN, HAS_PEER_QP, NEXT, PENDING, RESENDS, CmInput, CmState
from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.rdma.verbs import QpState, QpType
from weftwork.wire.cm import (
    CmDisconnectReply,
    CmDisconnectRequest,
    CmMessage,
    CmPath,
    CmReady,
    CmReject,
    CmReply,
    CmRequest,
    CmWait,
    encode_cm,
)
from weftwork.wire.fields import check_fits
from weftwork.wire.rdma_ip_cm import IP_CM_HEADER_BYTES, IpCmHeader, gid_of, service_of_port

if TYPE_CHECKING:
    from weftwork.rdma.nic import RdmaNic
    from weftwork.rdma.queue_pair import RdmaQueuePair
    from weftwork.rdma.verbs import QpAttr

__all__ = [
    "FIRST_QP",
    "GUID_BYTES",
    "LONGEST_SERVICE_TIMEOUT",
    "SERVICES",
    "CmHost",
    "CmId",
    "rejection",
    "rejection_info",
    "timeout_ps",
]

LONGEST_SERVICE_TIMEOUT: Final = 24  # CMA_CM_MRA_SETTING in Linux drivers/infiniband/core/cma.c: 68.7 s
FIRST_QP: Final = 2  # IBTA vol. 1, 3.9.3: 0 and 1 are for management
SERVICES: Final = {QpType.RC: 0, QpType.UC: 1}  # IBTA vol. 1, 12.7.9: transport service type of a REQ
_UNIT_PS: Final = 4_096_000  # IBTA vol. 1, 12.7.6: 4.096 us x 2^timeout
_ROCE_LID: Final = 0xFFFF  # IB_LID_PERMISSIVE in Linux: RoCE has no LIDs
_HOP_LIMIT: Final = 64  # as the TTL of the packets
_INFO_BYTES: Final = 72
GUID_BYTES: Final = 8
_OF_REQ, _OF_REP, _OF_NONE = 0, 1, 2  # IBTA vol. 1, 12.6.7.1: the message that a REJ refuses
_I, _E, _R = CmInput, CmEventType, CmRejReason


def timeout_ps(code: int) -> int:
    """Time of a 5-bit code."""
    return _UNIT_PS << code


def rejection(ids: tuple[int, int], refused: int, reason: int, *, info: bytes = b"", data: bytes = b"") -> CmReject:
    """Make a REJ.

    Parameters
    ----------
    ids : communication IDs of this end and of the peer, 0 where there is none
    refused : 0 a REQ, 1 a REP, 2 no message
    reason : see `CmRejReason`
    info : what explains the reason, at most 72 bytes
    data : private data
    """
    return CmReject(
        local_comm_id=ids[0],
        remote_comm_id=ids[1],
        message_rejected=refused,
        rejected_info_bytes=len(info),
        reason=reason,
        rejected_info=int.from_bytes(info.ljust(_INFO_BYTES, b"\0")),
        private_data=data,
    )


def rejection_info(message: CmReject) -> bytes:
    """Bytes that explain the reason of a REJ."""
    return message.rejected_info.to_bytes(_INFO_BYTES)[: message.rejected_info_bytes]


class CmHost(Protocol):
    """Services of the manager for a conversation."""

    nic: RdmaNic
    response_timeout: int
    cm_retries: int
    ca_guid: int

    def path_mtu_to(self, address: bytes) -> int:
        """Most bytes in a packet to a peer."""

    def send(self, address: bytes, mad: bytes) -> None:
        """Send a management datagram to queue pair 1 of an address."""

    def tell(self, event: CmEvent) -> None:
        """Queue an event for the user."""

    def withdraw(self, conversation: CmId) -> bool:
        """Withdraw a request that the user has not seen; returns whether it existed."""

    def moved(self, conversation: CmId, before: CmState) -> None:
        """Note that the state has changed."""

    def restart_clock(self, conversation: CmId) -> None:
        """Restart the clock of `wait_ps` at the next datagram."""

    def claim(self, qp: RdmaQueuePair, conversation: CmId) -> None:
        """Assign a queue pair to a conversation; UsageError if it is taken."""

    def is_stale(self, address: bytes, qp_num: int, guid: int) -> bool:
        """Whether a conversation has this peer's queue pair already; it is then closed."""


class CmId:
    """One end of a connection (struct rdma_cm_id).

    Parameters
    ----------
    host : the manager
    address : of the peer, 4 or 16 bytes in network order
    port : that was asked for
    local_comm_id : 32 bits, random
    request : the peer's REQ, with its transaction; None at the active side

    Attributes
    ----------
    state : see `cm_states`
    remote_comm_id : 32 bits; 0 while unknown
    peer_guid : identity of the peer's adapter, 64 bits; 0 while unknown
    qp : queue pair, or None
    agreed : what both ends agreed on, or None
    wait_ps, deadline_ps : time to wait in this state, and when it ends; None without end
    """

    def __init__(
        self, host: CmHost, address: bytes, port: int, local_comm_id: int, request: tuple[CmRequest, int] | None = None
    ) -> None:
        self._host: Final = host
        self.address: Final = address
        self.port: Final = port
        self.local_comm_id: Final = local_comm_id
        self.is_active: Final = request is None
        self.state = CmState.IDLE
        self.remote_comm_id = 0
        self.peer_guid = 0
        self.qp: RdmaQueuePair | None = None
        self.agreed: AgreedConnection | None = None
        self.wait_ps: int | None = None
        self.deadline_ps: int | None = None
        self._param = ConnParam()
        self._request = CmRequest()
        self._transaction = self._close_transaction = host.nic.random_bits(64)
        self._last: CmMessage | None = None
        self._retries_left = 0
        if request is not None:
            self._request, self._transaction = request
            self.remote_comm_id = self._request.local_comm_id
            self.peer_guid = self._request.local_ca_guid

    @property
    def remote_qp_num(self) -> int:
        """Queue pair of the peer; 0 while unknown."""
        return self.agreed.remote_qp_num if self.agreed is not None else 0

    @property
    def asked_qp_num(self) -> int:
        """Queue pair named by the REQ."""
        return self._request.local_qpn

    # Calls of the user

    def connect(self, qp: RdmaQueuePair, param: ConnParam) -> None:
        """Ask for a connection; see `ConnectionManager.connect`."""
        nic = self._host.nic
        self._check(qp, param)
        path_mtu = param.path_mtu if param.path_mtu is not None else self._host.path_mtu_to(self.address)
        if path_mtu not in PATH_MTUS_BYTES:
            raise UsageError(f"path_mtu: found {path_mtu}, wanted one of {', '.join(map(str, PATH_MTUS_BYTES))}")
        header = IpCmHeader(
            source_port=0xC000 | nic.random_bits(14),  # RFC 6335, 6: dynamic ports
            source=ip_address(nic.address),
            destination=ip_address(self.address),
        )
        room_bytes = CmRequest.LAYOUT.data_bytes - IP_CM_HEADER_BYTES
        data = pack_private_data(param.private_data, room_bytes, selective_repeat=param.selective_repeat)
        self._request = CmRequest(
            local_comm_id=self.local_comm_id,
            service_id=service_of_port(self.port),
            local_ca_guid=self._host.ca_guid,
            local_qpn=qp.qp_num,
            responder_resources=param.responder_resources,
            initiator_depth=param.initiator_depth,
            remote_response_timeout=self._host.response_timeout,
            transport_service=SERVICES[qp.qp_type],
            starting_psn=nic.random_psn(),
            local_response_timeout=self._host.response_timeout,
            retry_count=param.retry_count,
            partition_key=qp.attr.pkey,
            path_mtu=PATH_MTUS_BYTES.index(path_mtu) + 1,
            rnr_retry_count=param.rnr_retry_count,
            cm_retries=self._host.cm_retries,
            has_shared_receive_queue=int(qp.recv_queue.is_shared),
            primary=CmPath(
                local_lid=_ROCE_LID,
                remote_lid=_ROCE_LID,
                local_gid=gid_of(nic.address),
                remote_gid=gid_of(self.address),
                hop_limit=_HOP_LIMIT,
                local_ack_timeout=param.timeout,
            ),
            private_data=header.encode() + data,
        )
        self._take(qp, param)
        self._step(_I.CONNECT)
        self._ask(self._request)

    def accept(self, qp: RdmaQueuePair, param: ConnParam | None = None) -> None:
        """Accept a request, with a queue pair in RESET or INIT, which goes to RTS.

        Parameters
        ----------
        qp : queue pair of the type that the request names
        param : this end's parameters

        Raises
        ------
        UsageError : the request does not wait any more, or the queue pair or a parameter does not fit
        """
        if self.state not in PENDING:
            raise UsageError(f"state: found {self.state.value}, wanted a request that waits for an answer")
        param = param if param is not None else ConnParam()
        asked = self._request
        self._check(qp, param)
        if SERVICES[qp.qp_type] != asked.transport_service:
            raise UsageError(f"qp: found {qp.qp_type.name}, wanted the other type, which the peer asks for")
        _, peer_repeats = unpack_private_data(asked.private_data[IP_CM_HEADER_BYTES:])
        repeats = param.selective_repeat and peer_repeats
        data = pack_private_data(param.private_data, CmReply.LAYOUT.data_bytes, selective_repeat=repeats)
        self._take(qp, param)
        agreed = AgreedConnection(
            remote_qp_num=asked.local_qpn,
            rq_psn=asked.starting_psn,
            sq_psn=self._host.nic.random_psn(),
            path_mtu=PATH_MTUS_BYTES[asked.path_mtu - 1],
            max_rd_atomic=min(param.initiator_depth, asked.responder_resources),
            max_dest_rd_atomic=min(param.responder_resources, asked.initiator_depth),
            retry_cnt=asked.retry_count,
            rnr_retry=asked.rnr_retry_count,
            timeout=asked.primary.local_ack_timeout,
            selective_repeat=repeats,
        )
        self._open(qp, agreed)
        self._step(_I.ACCEPT)
        self._ask(
            CmReply(
                local_comm_id=self.local_comm_id,
                remote_comm_id=self.remote_comm_id,
                local_qpn=qp.qp_num,
                starting_psn=agreed.sq_psn,
                responder_resources=agreed.max_dest_rd_atomic,
                initiator_depth=agreed.max_rd_atomic,
                failover_accepted=1,  # alternate paths are not supported
                rnr_retry_count=param.rnr_retry_count,
                has_shared_receive_queue=int(qp.recv_queue.is_shared),
                local_ca_guid=self._host.ca_guid,
                private_data=data,
            )
        )

    def reject(self, private_data: bytes = b"") -> None:
        """Refuse a waiting request, with up to 148 bytes; UsageError if none waits."""
        if self.state not in PENDING:
            raise UsageError(f"state: found {self.state.value}, wanted a request that waits for an answer")
        if len(private_data) > CmReject.LAYOUT.data_bytes:
            most_bytes = CmReject.LAYOUT.data_bytes
            raise UsageError(f"private_data: found {len(private_data)} bytes, wanted up to {most_bytes}")
        self._refuse(_R.CONSUMER_DEFINED, _OF_REQ, private_data)

    def send_mra(self, service_timeout: int = LONGEST_SERVICE_TIMEOUT) -> None:
        """Tell the peer that the answer takes up to 4.096 us x 2^service_timeout.

        A request that comes again is answered so without this call.
        """
        if self.state not in PENDING:
            raise UsageError(f"state: found {self.state.value}, wanted a request that waits for an answer")
        check_fits("service_timeout", service_timeout, 5)
        self._step(_I.ASK_TIME)
        self._last = CmWait(
            local_comm_id=self.local_comm_id,
            remote_comm_id=self.remote_comm_id,
            message_received=_OF_REQ,
            service_timeout=service_timeout,
        )
        self._send(self._last)
        self._wait(timeout_ps(max(service_timeout, LONGEST_SERVICE_TIMEOUT)))

    def disconnect(self) -> None:
        """Close the connection or give up an attempt, unless it is closed.

        Raises
        ------
        UsageError : a request that waits for an answer, which `reject` gives
        """
        if self.state in PENDING:
            raise UsageError("state: found a request that waits for an answer, wanted `reject`")
        if (self.state, _I.DISCONNECT) in NEXT:
            self._step(_I.DISCONNECT)
            self._stop_qp()
            self._ask(
                CmDisconnectRequest(
                    local_comm_id=self.local_comm_id,
                    remote_comm_id=self.remote_comm_id,
                    remote_qpn=self.remote_qp_num,
                )
            )
        elif (self.state, _I.REFUSE) in NEXT:
            self._refuse(_R.CONSUMER_DEFINED if self.state in HAS_PEER_QP else _R.TIMEOUT, _OF_NONE)

    def _check(self, qp: RdmaQueuePair, param: ConnParam) -> None:
        if qp.qp_type not in SERVICES or qp.state not in {QpState.RESET, QpState.INIT}:
            found = f"{qp.qp_type.name} in {qp.state.name}"
            raise UsageError(f"qp: found {found}, wanted a queue pair of type RC or UC in RESET or INIT")
        if param.selective_repeat and qp.qp_type is not QpType.RC:
            raise UsageError(f"selective_repeat: found it for {qp.qp_type.name}, wanted RC")
        most = min(self._host.nic.limits.max_qp_rd_atom, 255)
        for name in ("responder_resources", "initiator_depth"):
            if not 0 <= getattr(param, name) <= most:
                raise UsageError(f"{name}: found {getattr(param, name)}, wanted 0 to {most}")
        for name, bits in (("retry_count", 3), ("rnr_retry_count", 3), ("timeout", 5)):
            check_fits(name, getattr(param, name), bits)

    def _take(self, qp: RdmaQueuePair, param: ConnParam) -> None:
        """Take a queue pair to INIT, so that receives can be posted."""
        self._host.claim(qp, self)
        self.qp, self._param = qp, param
        attr: dict[str, Any] = {"remote_address": self.address}
        if param.qp_access_flags is not None:
            attr["qp_access_flags"] = param.qp_access_flags
        qp.modify(QpState.INIT, replace(qp.attr, **attr))

    def _open(self, qp: RdmaQueuePair, agreed: AgreedConnection) -> None:
        """Take a queue pair from INIT to RTS."""
        attr: QpAttr = replace(
            qp.attr,
            dest_qp_num=agreed.remote_qp_num,
            path_mtu=agreed.path_mtu,
            rq_psn=agreed.rq_psn,
            sq_psn=agreed.sq_psn,
            max_rd_atomic=agreed.max_rd_atomic,
            max_dest_rd_atomic=agreed.max_dest_rd_atomic,
            timeout=agreed.timeout,
            retry_cnt=agreed.retry_cnt,
            rnr_retry=agreed.rnr_retry,
            selective_repeat=agreed.selective_repeat,
        )
        self.agreed = agreed
        qp.modify(QpState.RTR, attr)
        qp.modify(QpState.RTS)

    def _stop_qp(self) -> None:
        if self.qp is not None and self.qp.state not in {QpState.RESET, QpState.ERR}:
            self.qp.modify(QpState.ERR)

    # Messages of the peer

    def start(self) -> None:
        """Take the REQ that created this conversation."""
        self._step(_I.GET_REQ)
        self._wait(timeout_ps(LONGEST_SERVICE_TIMEOUT))
        data, _ = unpack_private_data(self._request.private_data[IP_CM_HEADER_BYTES:])
        self._tell(_E.CONNECT_REQUEST, data)

    def receive(self, message: CmMessage, transaction: int) -> bool:
        """Take a message from the peer's address; False if it does not belong here.

        Parameters
        ----------
        message : names this conversation
        transaction : of its datagram
        """
        if isinstance(message, CmDisconnectRequest):
            return self._take_dreq(message, transaction)
        expected = self._close_transaction if isinstance(message, CmDisconnectReply) else self._transaction
        if transaction != expected:
            return False
        match message:
            case CmRequest():
                return self._take_again(_I.GET_REQ)
            case CmReply():
                return self._take_rep(message)
            case CmReject():
                return self._take_rej(message)
            case CmWait():
                return self._take_mra(message)
            case CmReady():
                return self._take_rtu(message)
            case CmDisconnectReply():
                return self._take_drep(message)
        return False

    def _take_again(self, what: CmInput) -> bool:
        if self.state is CmState.REQ_RCVD and what is _I.GET_REQ:
            self.send_mra()
        elif (self.state, what) in AGAIN and self._last is not None:
            self._send(self._last)
        return True

    def _take_rep(self, message: CmReply) -> bool:
        if (self.state, _I.GET_REP) not in NEXT:
            return self._take_again(_I.GET_REP)
        qp, param = self.qp, self._param
        self.remote_comm_id, self.peer_guid = message.local_comm_id, message.local_ca_guid
        reason = None
        if qp is None or qp.state is not QpState.INIT or message.local_qpn < FIRST_QP:
            reason = _R.NO_QP  # the user has taken it away, or the peer names none
        elif message.initiator_depth > param.responder_resources:
            reason = _R.INSUFFICIENT_RESP_RESOURCES
        elif self._host.is_stale(self.address, message.local_qpn, message.local_ca_guid):
            reason = _R.STALE_CONN
        if qp is None or reason is not None:
            self._refuse(reason or _R.NO_QP, _OF_REP)
            self._tell(_E.CONNECT_ERROR, status=reason or _R.NO_QP)
            return True
        data, peer_repeats = unpack_private_data(message.private_data)
        agreed = AgreedConnection(
            remote_qp_num=message.local_qpn,
            rq_psn=message.starting_psn,
            sq_psn=self._request.starting_psn,
            path_mtu=PATH_MTUS_BYTES[self._request.path_mtu - 1],
            max_rd_atomic=min(param.initiator_depth, message.responder_resources),
            max_dest_rd_atomic=message.initiator_depth,
            retry_cnt=param.retry_count,
            rnr_retry=message.rnr_retry_count,
            timeout=param.timeout,
            selective_repeat=param.selective_repeat and peer_repeats,
        )
        self._open(qp, agreed)
        self._step(_I.GET_REP)
        self._last = CmReady(local_comm_id=self.local_comm_id, remote_comm_id=self.remote_comm_id)
        self._send(self._last)
        self._wait(None)
        self._tell(_E.ESTABLISHED, data)
        return True

    def _take_mra(self, message: CmWait) -> bool:
        wanted = _OF_REQ if self.is_active else _OF_REP
        if (self.state, _I.GET_MRA) not in NEXT or message.message_received != wanted:
            return False
        self._step(_I.GET_MRA)
        self._wait(timeout_ps(min(message.service_timeout, LONGEST_SERVICE_TIMEOUT)))
        return True

    def _take_rtu(self, message: CmReady) -> bool:
        if message.local_comm_id != self.remote_comm_id:
            return False
        if (self.state, _I.GET_RTU) in NEXT:
            self._step(_I.GET_RTU)
            self._wait(None)
            self._tell(_E.ESTABLISHED)
        return True

    def _take_rej(self, message: CmReject) -> bool:
        knows_peer = self.state not in {CmState.REQ_SENT, CmState.MRA_REQ_RCVD}
        if knows_peer and message.local_comm_id not in {0, self.remote_comm_id}:
            return False
        before = self.state
        if (before, _I.GET_REJ) not in NEXT:
            return True
        if message.reason == _R.INVALID_MTU and self._offer_less(message):
            return True
        self._step(_I.GET_REJ)
        self._stop_qp()
        if self.state is CmState.TIMEWAIT:
            self._wait_out()
        if before in PENDING and self._host.withdraw(self):
            return True
        is_late = before in {CmState.ESTABLISHED, CmState.DREQ_SENT}
        self._tell(_E.DISCONNECTED if is_late else _E.REJECTED, message.private_data, message.reason)
        return True

    def _offer_less(self, message: CmReject) -> bool:
        """Ask again with the path MTU of the peer."""
        code = int.from_bytes(rejection_info(message)[:1])
        if not 0 < code < self._request.path_mtu or (self.state, _I.RETRY) not in NEXT or not self.is_active:
            return False
        self._request = replace(self._request, path_mtu=code)
        self._transaction = self._host.nic.random_bits(64)
        self._step(_I.RETRY)
        self._ask(self._request)
        return True

    def _take_dreq(self, message: CmDisconnectRequest, transaction: int) -> bool:
        is_ours = message.local_comm_id == self.remote_comm_id and self.qp is not None
        if not is_ours or self.qp is None or message.remote_qpn != self.qp.qp_num:
            return False
        if (self.state, _I.GET_DREQ) in NEXT:
            self._step(_I.GET_DREQ)
            self._stop_qp()
            self._wait_out()
            self._tell(_E.DISCONNECTED)
        elif self.state is not CmState.TIMEWAIT:
            return False
        reply = CmDisconnectReply(local_comm_id=self.local_comm_id, remote_comm_id=self.remote_comm_id)
        self._host.send(self.address, encode_cm(reply, transaction))
        return True

    def _take_drep(self, message: CmDisconnectReply) -> bool:
        if message.local_comm_id != self.remote_comm_id or (self.state, _I.GET_DREP) not in NEXT:
            return False
        self._step(_I.GET_DREP)
        self._wait_out()
        self._tell(_E.DISCONNECTED)
        return True

    # The clock

    def on_timer(self) -> None:
        """Send again, or give up."""
        before = self.state
        if before in RESENDS and self._retries_left and self._last is not None:
            self._retries_left -= 1
            self._step(_I.RETRY)
            self._send(self._last)
            self._wait(timeout_ps(self._host.response_timeout))
            return
        if before in {CmState.TIMEWAIT, CmState.DREQ_SENT}:
            self._step(_I.GIVE_UP)
            if self.state is CmState.TIMEWAIT:
                self._wait_out()
                self._tell(_E.DISCONNECTED, status=_R.TIMEOUT)
            elif self.agreed is not None:
                self._tell(_E.TIMEWAIT_EXIT)
            return
        self._refuse(_R.TIMEOUT, _OF_REQ if before in PENDING else _OF_NONE, what=_I.GIVE_UP)
        if before not in PENDING:
            self._tell(_E.UNREACHABLE, status=_R.TIMEOUT)
        elif not self._host.withdraw(self):
            self._tell(_E.CONNECT_ERROR, status=_R.TIMEOUT)

    # Parts

    def _step(self, what: CmInput) -> None:
        before, self.state = self.state, NEXT[self.state, what]
        self._host.moved(self, before)

    def _refuse(
        self, reason: CmRejReason, refused: int, private_data: bytes = b"", *, what: CmInput = _I.REFUSE
    ) -> None:
        """Send a REJ and close; a repeated message gets the REJ again."""
        # IBTA vol. 1, 12.6.7.2: a peer that has not named its conversation finds it by the identity of our adapter
        info = b"" if self.remote_comm_id else self._host.ca_guid.to_bytes(GUID_BYTES)
        self._step(what)
        self._stop_qp()
        self._wait_out()
        ids = (self.local_comm_id, self.remote_comm_id)
        self._last = rejection(ids, refused, reason, info=info, data=private_data)
        self._send(self._last)

    def _ask(self, message: CmMessage) -> None:
        """Send a message that needs an answer."""
        if isinstance(message, CmDisconnectRequest):
            self._close_transaction = self._host.nic.random_bits(64)
        self._last, self._retries_left = message, self._host.cm_retries
        self._send(message)
        self._wait(timeout_ps(self._host.response_timeout))

    def _send(self, message: CmMessage) -> None:
        is_close = isinstance(message, CmDisconnectRequest)
        transaction = self._close_transaction if is_close else self._transaction
        self._host.send(self.address, encode_cm(message, transaction))

    def _wait(self, wait_ps: int | None) -> None:
        self.wait_ps, self.deadline_ps = wait_ps, None
        self._host.restart_clock(self)

    def _wait_out(self) -> None:
        """Wait until the peer's last retransmission of its message."""
        self._last = None
        self._wait(timeout_ps(self._host.response_timeout) * (self._host.cm_retries + 1))

    def _tell(self, event_type: CmEventType, private_data: bytes = b"", status: int = 0) -> None:
        self._host.tell(CmEvent(event_type=event_type, id=self, private_data=private_data, status=status))
