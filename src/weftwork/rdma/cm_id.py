"""One end of a connection in the connection manager.

It lives from its REQ to the end of TIMEWAIT.
Source: IBTA vol. 1, 12.9 (states), 12.9.8 (timeouts, duplicates, stale connections); the rules for attributes as in
Linux drivers/infiniband/core/cm.c and cma.c.
Leaves out: which conversation a message belongs to, listeners and limits, see `connection_manager`.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import UsageError
from weftwork.rdma.attributes import check_rights
from weftwork.rdma.cm_host import FIRST_QP, LONGEST_SERVICE_TIMEOUT, SERVICES, timeout_ps, tries_within
from weftwork.rdma.cm_private import pack_private_data, unpack_private_data
from weftwork.rdma.cm_records import AgreedConnection, CmEvent, CmEventType, CmRejReason, ConnParam
from weftwork.rdma.cm_rejections import GUID_BYTES, OF_NONE, OF_REP, OF_REQ, rejection, rejection_info
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
from weftwork.wire.mad import GENERAL_SERVICES_QP
from weftwork.wire.rdma_ip_cm import IP_CM_HEADER_BYTES, IpCmHeader, gid_of, service_of_port

if TYPE_CHECKING:
    from weftwork.rdma.cm_host import CmHost
    from weftwork.rdma.queue_pair import RdmaQueuePair
    from weftwork.rdma.verbs import QpAttr

__all__ = ["CmId"]

_HOP_LIMIT: Final = 64  # as the TTL of the packets
_I, _E, _R = CmInput, CmEventType, CmRejReason


class CmId:
    """One end of a connection (struct rdma_cm_id).

    Parameters
    ----------
    host : the manager
    address : of the peer, 4 or 16 bytes in network order
    port : that was asked for
    local_comm_id : 32 bits, random
    request : the peer's REQ, with the transaction and the source port of its datagram; None at the active side

    Attributes
    ----------
    source_port : of UDP, from which its messages go, and packets of its queue pair to a peer on this machine
    state : see `cm_states`
    remote_comm_id : 32 bits; 0 while unknown
    peer_guid : identity of the peer's adapter, 64 bits; 0 while unknown
    qp : queue pair, or None
    agreed : what both ends agreed on, or None
    wait_ps, deadline_ps : time to wait in this state, and when it ends; None without end
    """

    def __init__(
        self,
        host: CmHost,
        address: bytes,
        port: int,
        local_comm_id: int,
        request: tuple[CmRequest, int, int] | None = None,
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
        self._response_timeout, self._retries = host.response_timeout, host.cm_retries
        self._rq_psn: int | None = None
        self.source_port: Final = host.nic.source_ports.draw(GENERAL_SERVICES_QP)
        self._peer_port: int | None = None
        if request is not None:
            self._request, self._transaction, self._peer_port = request
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
        self._set_tries(param)
        path_mtu = param.path_mtu if param.path_mtu is not None else self._host.path_mtu_to(self.address)
        if path_mtu not in PATH_MTUS_BYTES:
            raise UsageError(f"path_mtu: found {path_mtu}, wanted one of {', '.join(map(str, PATH_MTUS_BYTES))}")
        header = IpCmHeader(
            source_port=0xC000 | nic.random_bits(14),  # RFC 6335, 6: dynamic ports
            source=ip_address(nic.address),
            destination=ip_address(self.address),
        )
        local_lid, remote_lid = nic.encapsulation.lids(nic.address, self.address)
        room_bytes = CmRequest.LAYOUT.data_bytes - IP_CM_HEADER_BYTES
        data = pack_private_data(param.private_data, room_bytes, selective_repeat=param.selective_repeat)
        self._request = CmRequest(
            local_comm_id=self.local_comm_id,
            service_id=service_of_port(self.port),
            local_ca_guid=self._host.ca_guid,
            local_qpn=qp.qp_num,
            responder_resources=param.responder_resources,
            initiator_depth=param.initiator_depth,
            remote_response_timeout=self._response_timeout,
            transport_service=SERVICES[qp.qp_type],
            starting_psn=nic.random_psn(),
            local_response_timeout=self._response_timeout,
            retry_count=param.retry_count,
            partition_key=qp.attr.pkey,
            path_mtu=PATH_MTUS_BYTES.index(path_mtu) + 1,
            rnr_retry_count=param.rnr_retry_count,
            cm_retries=self._retries,
            has_shared_receive_queue=int(qp.recv_queue.is_shared),
            primary=CmPath(
                local_lid=local_lid,
                remote_lid=remote_lid,
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

        Where the user moves the queue pair, it is in RTS already, by the attributes of `offered`.

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
        self._check(qp, param)
        if SERVICES[qp.qp_type] != self._request.transport_service:
            raise UsageError(f"qp: found {qp.qp_type.name}, wanted the other type, which the peer asks for")
        agreed = self.offered(param)
        data = pack_private_data(
            param.private_data, CmReply.LAYOUT.data_bytes, selective_repeat=agreed.selective_repeat
        )
        self._take(qp, param)
        self._open(qp, agreed)
        qp.on_heard = self._hear
        self._step(_I.ACCEPT)
        self._ask(
            CmReply(
                local_comm_id=self.local_comm_id,
                remote_comm_id=self.remote_comm_id,
                local_qpn=qp.qp_num,
                starting_psn=agreed.rq_psn,
                responder_resources=agreed.max_dest_rd_atomic,
                initiator_depth=agreed.max_rd_atomic,
                failover_accepted=1,  # alternate paths are not supported
                rnr_retry_count=param.rnr_retry_count,
                has_shared_receive_queue=int(qp.recv_queue.is_shared),
                local_ca_guid=self._host.ca_guid,
                private_data=data,
            )
        )

    def offered(self, param: ConnParam) -> AgreedConnection:
        """Agreement of a waiting request, if it is accepted with these parameters."""
        asked = self._request
        _, peer_repeats = unpack_private_data(asked.private_data[IP_CM_HEADER_BYTES:])
        if self._rq_psn is None:
            self._rq_psn = self._host.nic.random_psn()
        return AgreedConnection(
            remote_qp_num=asked.local_qpn,
            rq_psn=self._rq_psn,
            sq_psn=asked.starting_psn,
            path_mtu=PATH_MTUS_BYTES[asked.path_mtu - 1],
            max_rd_atomic=min(param.initiator_depth, asked.responder_resources),
            max_dest_rd_atomic=min(param.responder_resources, asked.initiator_depth),
            retry_cnt=asked.retry_count,
            rnr_retry=asked.rnr_retry_count,
            timeout=asked.primary.local_ack_timeout,
            selective_repeat=param.selective_repeat and peer_repeats,
        )

    def establish(self) -> None:
        """Confirm the event CONNECT_RESPONSE, once the queue pair is in RTS; UsageError without the event."""
        if (self.state, _I.CONFIRM) not in NEXT:
            raise UsageError(f"state: found {self.state.value}, wanted an agreement that waits to be confirmed")
        self._step(_I.CONFIRM)
        self._send_ready()

    def reject(self, private_data: bytes = b"") -> None:
        """Refuse a waiting request, with up to 148 bytes; UsageError if none waits."""
        if self.state not in PENDING:
            raise UsageError(f"state: found {self.state.value}, wanted a request that waits for an answer")
        if len(private_data) > CmReject.LAYOUT.data_bytes:
            most_bytes = CmReject.LAYOUT.data_bytes
            raise UsageError(f"private_data: found {len(private_data)} bytes, wanted up to {most_bytes}")
        self._refuse(_R.CONSUMER_DEFINED, OF_REQ, private_data)

    def send_mra(self, service_timeout: int = LONGEST_SERVICE_TIMEOUT) -> None:
        """Tell the peer that the answer takes up to 4.096 us x 2^service_timeout.

        A request that comes again is answered so without this call.
        """
        if self.state not in PENDING:
            raise UsageError(f"state: found {self.state.value}, wanted a request that waits for an answer")
        check_fits("service_timeout", service_timeout, 5)
        self._step(_I.ASK_TIME)
        self._last = self._mra(OF_REQ, service_timeout)
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
            self._refuse(_R.CONSUMER_DEFINED if self.state in HAS_PEER_QP else _R.TIMEOUT, OF_NONE)

    def _check(self, qp: RdmaQueuePair, param: ConnParam) -> None:
        if qp.qp_type not in SERVICES or (param.moves_qp and qp.state not in {QpState.RESET, QpState.INIT}):
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
        if param.qp_access_flags is not None:
            check_rights("qp_access_flags", param.qp_access_flags)

    def _set_tries(self, param: ConnParam) -> None:
        if param.cm_retries is not None:
            check_fits("cm_retries", param.cm_retries, 4)
            self._retries = param.cm_retries
        if param.answer_wait_ps is not None:
            if param.answer_wait_ps <= 0:
                raise UsageError(f"answer_wait_ps: found {param.answer_wait_ps}, wanted more than 0")
            self._response_timeout, self._retries = tries_within(param.answer_wait_ps, param.cm_retries)

    def _take(self, qp: RdmaQueuePair, param: ConnParam) -> None:
        """Take a queue pair to INIT, so that receives can be posted."""
        self._host.claim(qp, self)
        self.qp, self._param = qp, param
        if self._host.nic.source_ports.is_here(self.address):  # the peer hears from where its packets will come
            qp.send_from(self.source_port)
        if not param.moves_qp:
            return
        attr: dict[str, Any] = {"remote_address": self.address}
        if param.qp_access_flags is not None:
            attr["qp_access_flags"] = param.qp_access_flags
        qp.modify(QpState.INIT, replace(qp.attr, **attr))

    def _open(self, qp: RdmaQueuePair, agreed: AgreedConnection) -> None:
        """Take a queue pair from INIT to RTS, unless the user does."""
        self.agreed = agreed
        qp.proof.name(self._peer_port)
        self._host.watch(self)
        if not self._param.moves_qp:
            return
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
        qp.modify(QpState.RTR, attr)
        qp.modify(QpState.RTS)

    def _stop_qp(self) -> None:
        if self.qp is not None and self._param.moves_qp and self.qp.state not in {QpState.RESET, QpState.ERR}:
            self.qp.modify(QpState.ERR)

    # Messages of the peer

    def start(self) -> None:
        """Take the REQ that created this conversation."""
        self._step(_I.GET_REQ)
        self._wait(timeout_ps(LONGEST_SERVICE_TIMEOUT))
        data, _ = unpack_private_data(self._request.private_data[IP_CM_HEADER_BYTES:])
        self._tell(_E.CONNECT_REQUEST, data)

    def receive(self, message: CmMessage, transaction: int, source_port: int) -> bool:
        """Take a message from the peer's address; False if it does not belong here.

        Parameters
        ----------
        message : names this conversation
        transaction, source_port : of its datagram
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
                return self._take_rep(message, source_port)
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
        elif self.state is CmState.REP_RCVD and what is _I.GET_REP:
            self._send(self._mra(OF_REP, LONGEST_SERVICE_TIMEOUT))
        elif (self.state, what) in AGAIN and self._last is not None:
            self._send(self._last)
        return True

    def _take_rep(self, message: CmReply, source_port: int) -> bool:
        if (self.state, _I.GET_REP) not in NEXT:
            return self._take_again(_I.GET_REP)
        self._peer_port = source_port
        qp, param = self.qp, self._param
        self.remote_comm_id, self.peer_guid = message.local_comm_id, message.local_ca_guid
        reason = None
        if qp is None or (param.moves_qp and qp.state is not QpState.INIT) or message.local_qpn < FIRST_QP:
            reason = _R.NO_QP  # the user has taken it away, or the peer names none
        elif message.initiator_depth > param.responder_resources:
            reason = _R.INSUFFICIENT_RESP_RESOURCES
        elif self._host.is_stale(self.address, message.local_qpn, message.local_ca_guid):
            reason = _R.STALE_CONN
        if qp is None or reason is not None:
            self._refuse(reason or _R.NO_QP, OF_REP)
            self._tell(_E.CONNECT_ERROR, status=reason or _R.NO_QP)
            return True
        data, peer_repeats = unpack_private_data(message.private_data)
        agreed = AgreedConnection(
            remote_qp_num=message.local_qpn,
            rq_psn=self._request.starting_psn,
            sq_psn=message.starting_psn,
            path_mtu=PATH_MTUS_BYTES[self._request.path_mtu - 1],
            max_rd_atomic=min(param.initiator_depth, message.responder_resources),
            max_dest_rd_atomic=message.initiator_depth,
            retry_cnt=param.retry_count,
            rnr_retry=message.rnr_retry_count,
            timeout=param.timeout,
            selective_repeat=param.selective_repeat and peer_repeats,
        )
        self._open(qp, agreed)
        if param.moves_qp:
            self._step(_I.GET_REP)
            self._send_ready()
            self._tell(_E.ESTABLISHED, data)
        else:
            self._step(_I.HOLD_REP)
            self._wait(timeout_ps(LONGEST_SERVICE_TIMEOUT))
            self._tell(_E.CONNECT_RESPONSE, data)
        return True

    def _take_mra(self, message: CmWait) -> bool:
        wanted = OF_REQ if self.is_active else OF_REP
        if (self.state, _I.GET_MRA) not in NEXT or message.message_received != wanted:
            return False
        self._step(_I.GET_MRA)
        self._wait(timeout_ps(min(message.service_timeout, LONGEST_SERVICE_TIMEOUT)))
        return True

    def _take_rtu(self, message: CmReady) -> bool:
        if message.local_comm_id != self.remote_comm_id:
            return False
        self._hear()
        return True

    def _hear(self) -> None:
        """Take the RTU, or a packet of the connection that came before it, as ib_cm_notify in Linux cm.c does."""
        if (self.state, _I.GET_RTU) in NEXT:
            self._step(_I.GET_RTU)
            self._wait(None)
            self._tell(_E.ESTABLISHED)

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
        self._host.send(self.address, encode_cm(reply, transaction), self.source_port)
        return True

    def lose_peer(self) -> None:
        """End the conversation, since the process of the peer has ended."""
        if (self.state, _I.GET_DREQ) in NEXT:
            self._step(_I.GET_DREQ)
            self._stop_qp()
            self._wait_out()
            self._tell(_E.DISCONNECTED)

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
            self._wait(timeout_ps(self._response_timeout))
            return
        if before in {CmState.TIMEWAIT, CmState.DREQ_SENT}:
            self._step(_I.GIVE_UP)
            if self.state is CmState.TIMEWAIT:
                self._wait_out()
                self._tell(_E.DISCONNECTED, status=_R.TIMEOUT)
            elif self.agreed is not None:
                self._tell(_E.TIMEWAIT_EXIT)
            return
        refused = OF_REQ if before in PENDING else OF_REP if before is CmState.REP_RCVD else OF_NONE
        self._refuse(_R.TIMEOUT, refused, what=_I.GIVE_UP)
        if before is not CmState.REP_RCVD and before not in PENDING:
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

    def _mra(self, received: int, service_timeout: int) -> CmWait:
        return CmWait(
            local_comm_id=self.local_comm_id,
            remote_comm_id=self.remote_comm_id,
            message_received=received,
            service_timeout=service_timeout,
        )

    def _send_ready(self) -> None:
        self._last = CmReady(local_comm_id=self.local_comm_id, remote_comm_id=self.remote_comm_id)
        self._send(self._last)
        self._wait(None)

    def _ask(self, message: CmMessage) -> None:
        """Send a message that needs an answer."""
        if isinstance(message, CmDisconnectRequest):
            self._close_transaction = self._host.nic.random_bits(64)
        self._last, self._retries_left = message, self._retries
        self._send(message)
        self._wait(timeout_ps(self._response_timeout))

    def _send(self, message: CmMessage) -> None:
        is_close = isinstance(message, CmDisconnectRequest)
        transaction = self._close_transaction if is_close else self._transaction
        self._host.send(self.address, encode_cm(message, transaction), self.source_port)

    def _wait(self, wait_ps: int | None) -> None:
        self.wait_ps, self.deadline_ps = wait_ps, None
        self._host.restart_clock(self)

    def _wait_out(self) -> None:
        """Wait until the peer's last retransmission of its message."""
        self._last = None
        self._wait(timeout_ps(self._response_timeout) * (self._retries + 1))

    def _tell(self, event_type: CmEventType, private_data: bytes = b"", status: int = 0) -> None:
        self._host.tell(CmEvent(event_type=event_type, id=self, private_data=private_data, status=status))
