"""One end of a connection, from its TCP stream to its end.

It has the calls of a conversation over datagrams, so that a program need not know the wire. Its driver hands it the
bytes of the stream and sends its own. Until both frames of the start-up are exchanged, it holds no more than one frame.
Source: RFC 5044, 7.1; RFC 6581; names as librdmacm's rdma_cma.h; times as Linux drivers/infiniband/sw/siw/siw_cm.h.
Leaves out: which conversations there are, see `connection_manager`; sockets, see ``drivers.iwarp``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_host import LONGEST_SERVICE_TIMEOUT, timeout_ps
from weftwork.rdma.cm_records import AgreedConnection, CmEvent, CmEventType, CmRejReason, ConnParam
from weftwork.rdma.cm_states import CmInput, CmState
from weftwork.rdma.iwarp.queue_pair import IwarpQueuePair
from weftwork.rdma.iwarp.setup import (
    initiator_setup,
    rejection_frame,
    request_frame,
    responder_setup,
    split_private_data,
)
from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.rdma.verbs import QpState
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.mpa import MpaFrame
from weftwork.wire.rdmap import TerminateCode

if TYPE_CHECKING:
    from weftwork.rdma.cm_id import CmId
    from weftwork.rdma.iwarp.nic import IwarpNic
    from weftwork.rdma.iwarp.setup import StreamSetup
    from weftwork.rdma.queue_pair import RdmaQueuePair

__all__ = ["CLOSE_PS", "STARTUP_PS", "IwarpCmId", "StreamHost"]

STARTUP_PS: Final = 10_000_000_000_000  # 10 s, MPAREQ_TIMEOUT of Linux siw_cm.h: from the first byte to the last
CLOSE_PS: Final = 4_000_000_000_000  # chosen: 4 s, as long as a conversation over datagrams repeats its DREQ
_ANSWER_PS: Final = timeout_ps(LONGEST_SERVICE_TIMEOUT)  # of the user, as over datagrams
_S, _I, _E, _R = CmState, CmInput, CmEventType, CmRejReason

# What is not listed changes nothing. A stream has no lost messages, so a state is left once. REQ, REP and REJ are the
# frames of the start-up, RTU is the first FPDU of the initiator, DREQ and DREP are the ends of the two directions.
_NEXT: Final[dict[tuple[CmState, CmInput], CmState]] = {
    (_S.IDLE, _I.CONNECT): _S.REQ_SENT,
    (_S.REQ_SENT, _I.GET_REP): _S.ESTABLISHED,
    (_S.REQ_SENT, _I.GET_REJ): _S.TIMEWAIT,
    (_S.REQ_SENT, _I.GET_DREQ): _S.TIMEWAIT,
    (_S.REQ_SENT, _I.GIVE_UP): _S.TIMEWAIT,
    (_S.REQ_SENT, _I.REFUSE): _S.TIMEWAIT,
    (_S.IDLE, _I.GET_REQ): _S.REQ_RCVD,
    (_S.REQ_RCVD, _I.ACCEPT): _S.REP_SENT,
    (_S.REQ_RCVD, _I.REFUSE): _S.TIMEWAIT,
    (_S.REQ_RCVD, _I.GIVE_UP): _S.TIMEWAIT,
    (_S.REQ_RCVD, _I.GET_DREQ): _S.TIMEWAIT,
    (_S.REP_SENT, _I.GET_RTU): _S.ESTABLISHED,
    (_S.REP_SENT, _I.GET_DREQ): _S.TIMEWAIT,
    (_S.REP_SENT, _I.GIVE_UP): _S.TIMEWAIT,
    (_S.REP_SENT, _I.REFUSE): _S.TIMEWAIT,
    (_S.ESTABLISHED, _I.DISCONNECT): _S.DREQ_SENT,
    (_S.ESTABLISHED, _I.GET_DREQ): _S.TIMEWAIT,
    (_S.DREQ_SENT, _I.GET_DREQ): _S.TIMEWAIT,
    (_S.DREQ_SENT, _I.GIVE_UP): _S.TIMEWAIT,
}


class StreamHost(Protocol):
    """Services of the manager for a conversation."""

    nic: IwarpNic

    def tell(self, event: CmEvent) -> None:
        """Queue an event for the user."""

    def withdraw(self, conversation: IwarpCmId) -> bool:
        """Withdraw a request that the user has not seen; returns whether it existed."""

    def moved(self, conversation: IwarpCmId) -> None:
        """Note that the state or the wait has changed, or that there are bytes to send."""

    def claim(self, qp: RdmaQueuePair, conversation: IwarpCmId) -> None:
        """Assign a queue pair to a conversation; UsageError if it is taken."""

    def refusal(self, conversation: IwarpCmId) -> CmRejReason | None:
        """Why a whole request is refused, or None."""


class IwarpCmId:
    """One end of a connection.

    Parameters
    ----------
    host : the manager
    address : of the peer, 4 or 16 bytes in network order
    port : that was asked for
    is_active : this end asks

    Attributes
    ----------
    state : see `cm_states`; a stream that has been accepted is IDLE until its request is whole
    qp : queue pair, or None
    agreed : what both ends agreed on, or None
    wait_ps : time that this state may last; None without end
    has_ended : the driver may close the stream when the bytes to send are gone
    is_over : the driver closes the stream at once
    why : what ended it, in words, or an empty text
    """

    def __init__(self, host: StreamHost, address: bytes, port: int, *, is_active: bool) -> None:
        self._host: Final = host
        self.address: Final = address
        self.port: Final = port
        self.is_active: Final = is_active
        self.local_comm_id: Final = host.nic.random_bits(32)
        self.state = CmState.IDLE
        self.qp: IwarpQueuePair | None = None
        self.agreed: AgreedConnection | None = None
        self.wait_ps: int | None = STARTUP_PS
        self.has_ended = False
        self.is_over = False
        self.why = ""
        self._param = ConnParam()
        self._frame = bytearray()
        self._request: MpaFrame | None = None
        self._segment_bytes = 0
        self._outgoing: list[memoryview] = []
        self._is_open = False
        self._peer_has_closed = False

    @property
    def remote_qp_num(self) -> int:
        """Queue pair of the peer: a stream does not say."""
        return 0

    # Calls of the user

    def connect(self, qp: RdmaQueuePair, param: ConnParam) -> None:
        """Ask for a connection; see `IwarpManager.connect`."""
        request = request_frame(self._host.nic.options, param)
        self._take(qp, param)
        self._outgoing = [memoryview(request.encode())]
        self._step(_I.CONNECT, param.answer_wait_ps)

    def accept(self, qp: RdmaQueuePair, param: ConnParam | None = None) -> None:
        """Accept a request, with a queue pair in RESET or INIT, which goes to RTS.

        Parameters
        ----------
        qp : of this NIC
        param : this end's parameters

        Raises
        ------
        UsageError : the request does not wait any more, or the queue pair or a parameter does not fit
        """
        request = self._waiting()
        param = param if param is not None else ConnParam()
        setup, reply = responder_setup(self._host.nic.options, param, request)
        self._take(qp, param)
        self._outgoing = [memoryview(reply.encode())]
        self._step(_I.ACCEPT, STARTUP_PS)
        self._open(setup)
        if setup.rtr is None:  # revision 1: the peer says nothing more until its user does
            self._established()

    def reject(self, private_data: bytes = b"") -> None:
        """Refuse a waiting request, with private data; UsageError if none waits."""
        self._refuse(self._waiting(), private_data, _I.REFUSE)

    def disconnect(self) -> None:
        """Close the connection or give up an attempt, unless it is closed.

        Raises
        ------
        UsageError : a request that waits for an answer, which `reject` gives
        """
        if self.state is CmState.REQ_RCVD:
            raise UsageError("state: found a request that waits for an answer, wanted `reject`")
        if (self.state, _I.DISCONNECT) in _NEXT:
            self._step(_I.DISCONNECT, CLOSE_PS)
            self._end_stream()
        elif (self.state, _I.REFUSE) in _NEXT:
            self._step(_I.REFUSE)
            self._drop()

    def _waiting(self) -> MpaFrame:
        if self.state is not CmState.REQ_RCVD or self._request is None:
            raise UsageError(f"state: found {self.state.value}, wanted a request that waits for an answer")
        return self._request

    def _take(self, qp: RdmaQueuePair, param: ConnParam) -> None:
        """Check the parameters, and take a queue pair to INIT, so that receives can be posted."""
        if not isinstance(qp, IwarpQueuePair) or qp.state not in {QpState.RESET, QpState.INIT}:
            raise UsageError(f"qp: found one in {qp.state.name}, wanted a queue pair of this NIC in RESET or INIT")
        if param.selective_repeat:
            raise UsageError("selective_repeat: found it on a stream, wanted it off: TCP repeats what is lost")
        most = min(self._host.nic.limits.max_qp_rd_atom, 255)
        for name in ("responder_resources", "initiator_depth"):
            if not 0 <= getattr(param, name) <= most:
                raise UsageError(f"{name}: found {getattr(param, name)}, wanted 0 to {most}")
        self._host.claim(qp, self)
        self.qp, self._param = qp, param
        attr: dict[str, Any] = {"remote_address": self.address}
        if param.qp_access_flags is not None:
            attr["qp_access_flags"] = param.qp_access_flags
        qp.modify(QpState.INIT, replace(qp.attr, **attr))

    # Calls of the driver

    def opened(self, segment_bytes: int) -> None:
        """Note that TCP is connected.

        Parameters
        ----------
        segment_bytes : largest payload of a TCP segment (EMSS)
        """
        self._segment_bytes = segment_bytes
        self._is_open = True
        self._host.moved(self)

    def received(self, data: memoryview) -> None:
        """Take bytes of the stream; nothing is raised, whatever they are."""
        if self.qp is not None and self.state in {CmState.REP_SENT, CmState.ESTABLISHED}:
            self.qp.stream_received(data)
            if self.state is CmState.REP_SENT and self.qp.has_heard:
                self._established()
        elif self.state in {CmState.IDLE, CmState.REQ_SENT}:
            self._take_frame(data)
        elif self.state is CmState.REQ_RCVD:
            self._break("found bytes behind a request that is not answered")
        self.look()

    def peer_closed(self) -> None:
        """Note that the peer sends no more bytes."""
        self._peer_has_closed = True
        self._ended(is_lost=False, why="")

    def lost(self, why: str, reason: CmRejReason | None = None) -> None:
        """Note that TCP could not connect, or has lost the connection.

        Parameters
        ----------
        why : in words of the system
        reason : of a refusal, where nobody listens
        """
        if self.state is CmState.REQ_SENT:
            self.why = why
            self._step(_I.GET_REJ)
            self._tell(_E.UNREACHABLE if reason is None else _E.REJECTED, status=reason or _R.TIMEOUT)
            self._drop()
        else:
            self._ended(is_lost=True, why=why)

    def bytes_to_send(self) -> list[memoryview]:
        """Bytes that the system may take now; they stay until `bytes_sent`."""
        if not self._is_open or self.is_over:
            return []
        if self._outgoing:
            return self._outgoing
        return self.qp.bytes_to_send() if self.qp is not None and self.agreed is not None else []

    def bytes_sent(self, count: int) -> None:
        """Note that the system has taken the first bytes of `bytes_to_send`."""
        if self._outgoing:
            rest = self._outgoing[0][count:]
            self._outgoing = [rest] if rest else []
        elif self.qp is not None:
            self.qp.bytes_sent(count)
        if self.has_ended and self._peer_has_closed and not self.bytes_to_send():
            self._drop()

    def look(self) -> None:
        """End the conversation if its queue pair has ended the stream."""
        if self.qp is None or self.agreed is None:
            return
        self.qp.settle()
        if not self.qp.is_over:
            return
        if self.state in {CmState.ESTABLISHED, CmState.REP_SENT}:
            was_established = self.state is CmState.ESTABLISHED
            self.why = self.why or _words(self.qp)
            self._step(_I.GET_DREQ, CLOSE_PS)
            self._tell(_E.DISCONNECTED if was_established else _E.CONNECT_ERROR)
            self._end_stream()

    def on_timer(self) -> None:
        """Give up: the state has lasted too long."""
        before = self.state
        if before is CmState.TIMEWAIT or (before, _I.GIVE_UP) not in _NEXT:
            self._drop()
            return
        if before is CmState.REQ_RCVD and self._request is not None:
            self._refuse(self._request, b"", _I.GIVE_UP)
            if not self._host.withdraw(self):
                self._tell(_E.CONNECT_ERROR, status=_R.TIMEOUT)
            return
        self._step(_I.GIVE_UP)
        self._tell(_E.DISCONNECTED if before is CmState.DREQ_SENT else _E.UNREACHABLE, status=_R.TIMEOUT)
        self._drop()

    # Frames of the peer

    def _take_frame(self, data: memoryview) -> None:
        """Take bytes of the start-up; no more are kept than a frame has."""
        try:
            while len(data) > 0:
                missing_bytes = MpaFrame.missing_bytes(bytes(self._frame))
                if missing_bytes == 0:
                    break
                self._frame += data[:missing_bytes]
                data = data[missing_bytes:]
            if MpaFrame.missing_bytes(bytes(self._frame)):
                return
            frame, _ = MpaFrame.decode(bytes(self._frame))
            self._frame.clear()
            self._take_whole_frame(frame, has_more=len(data) > 0)
        except MalformedPacket as error:
            self._break(str(error))
            return
        if len(data) > 0 and self.qp is not None:
            self.qp.stream_received(data)

    def _take_whole_frame(self, frame: MpaFrame, *, has_more: bool) -> None:
        if has_more and not self.is_active:
            raise MalformedPacket("MPA", "found bytes behind a request that is not answered")
        if frame.is_reply is not self.is_active:
            raise MalformedPacket("MPA", "found the key of the other end's frame")
        if self.is_active:
            self._take_reply(frame)
        else:
            self._take_request(frame)

    def _take_request(self, frame: MpaFrame) -> None:
        if frame.rejects:
            raise MalformedPacket("MPA", "found a request that rejects")
        _, data = split_private_data(frame)
        self._request = frame
        reason = self._host.refusal(self)
        self._step(_I.GET_REQ, _ANSWER_PS)
        if reason is not None:
            self._refuse(frame, b"", _I.REFUSE)
        else:
            self._tell(_E.CONNECT_REQUEST, data)

    def _take_reply(self, frame: MpaFrame) -> None:
        _, data = split_private_data(frame)
        if frame.rejects:
            self._step(_I.GET_REJ)
            self._tell(_E.REJECTED, data, _R.CONSUMER_DEFINED)
            self._drop()
            return
        if self.qp is None or self.qp.state is not QpState.INIT:  # the user has taken it away
            self._step(_I.GET_DREQ)
            self._tell(_E.CONNECT_ERROR, status=_R.NO_QP)
            self._drop()
            return
        setup = initiator_setup(self._host.nic.options, self._param, frame)
        self._step(_I.GET_REP)
        self._open(setup)
        if setup.refused is None:
            self._tell(_E.ESTABLISHED, data)
            return
        self.why = f"the start-up agreed on nothing that works here: {setup.refused.name}"
        self.qp.refuse_setup(setup.refused)
        self._step(_I.GET_DREQ, CLOSE_PS)
        self._tell(_E.CONNECT_ERROR, status=_R.INSUFFICIENT_RESP_RESOURCES)
        self._end_stream()

    def _open(self, setup: StreamSetup) -> None:
        """Begin full operation, and take the queue pair to RTS."""
        if self.qp is None:
            return
        self.agreed = AgreedConnection(
            remote_qp_num=0,
            rq_psn=0,
            sq_psn=0,
            path_mtu=PATH_MTUS_BYTES[-1],
            max_rd_atomic=setup.max_rd_atomic,
            max_dest_rd_atomic=setup.max_dest_rd_atomic,
            retry_cnt=0,
            rnr_retry=0,
            timeout=0,
            selective_repeat=False,
        )
        self.qp.open_stream(setup, self._segment_bytes)
        attr = replace(self.qp.attr, max_rd_atomic=setup.max_rd_atomic, max_dest_rd_atomic=setup.max_dest_rd_atomic)
        self.qp.modify(QpState.RTR, attr)
        self.qp.modify(QpState.RTS)

    def _established(self) -> None:
        self._step(_I.GET_RTU)
        self._tell(_E.ESTABLISHED)

    # Ends

    def _refuse(self, request: MpaFrame, private_data: bytes, what: CmInput) -> None:
        frame = rejection_frame(self._host.nic.options, request, private_data)
        self._outgoing = [memoryview(frame.encode())]
        self._step(what, CLOSE_PS)
        self.has_ended = True

    def _break(self, why: str) -> None:
        """End a stream whose start-up breaks the protocol (RFC 5044, 7.1.2: it is closed)."""
        self.why = why
        before = self.state
        if before is CmState.IDLE:
            self._drop()
            return
        self._step(_I.GET_DREQ)
        if before is CmState.REQ_SENT:
            self._tell(_E.CONNECT_ERROR, status=_R.UNSUPPORTED)
        elif before is CmState.REQ_RCVD and not self._host.withdraw(self):
            self._tell(_E.REJECTED, status=_R.UNSUPPORTED)
        self._drop()

    def _ended(self, *, is_lost: bool, why: str) -> None:
        """The peer sends no more: end this direction too, behind what is on its way."""
        before = self.state
        if self.qp is not None and self.agreed is not None:
            self.qp.stream_ended(is_lost=is_lost)
            why = why or _words(self.qp)
        self.why = self.why or why
        if (before, _I.GET_DREQ) in _NEXT:
            self._step(_I.GET_DREQ, CLOSE_PS)
            if before is CmState.REQ_SENT:
                self._tell(_E.REJECTED, status=_R.UNSUPPORTED)
            elif before is CmState.REP_SENT:
                self._tell(_E.CONNECT_ERROR)
            elif before is not CmState.REQ_RCVD:
                self._tell(_E.DISCONNECTED)
            elif not self._host.withdraw(self):
                self._tell(_E.REJECTED, status=_R.TIMEOUT)
        if is_lost or before in {CmState.IDLE, CmState.REQ_SENT, CmState.REQ_RCVD} or not self.bytes_to_send():
            self._drop()
        else:
            self._end_stream()

    def _end_stream(self) -> None:
        """Send what is framed, and then no more."""
        self._stop_qp()
        self.has_ended = True
        self._host.moved(self)

    def _drop(self) -> None:
        """Close the stream at once."""
        self._stop_qp()
        self.is_over = True
        self.wait_ps = None
        self._outgoing.clear()
        before, self.state = self.state, CmState.IDLE
        if before is CmState.TIMEWAIT and self.agreed is not None:
            self._tell(_E.TIMEWAIT_EXIT)
        self._host.moved(self)

    def _stop_qp(self) -> None:
        if self.qp is not None and self.qp.state not in {QpState.RESET, QpState.ERR}:
            self.qp.modify(QpState.ERR)

    def _step(self, what: CmInput, wait_ps: int | None = None) -> None:
        self.state = _NEXT[self.state, what]
        if self.state is CmState.ESTABLISHED:
            self.wait_ps = None
        elif wait_ps is not None:
            self.wait_ps = wait_ps
        self._host.moved(self)

    def _tell(self, event_type: CmEventType, private_data: bytes = b"", status: int = 0) -> None:
        this = cast("CmId", self)  # it has the calls of one
        self._host.tell(CmEvent(event_type=event_type, id=this, private_data=private_data, status=status))


def _words(qp: IwarpQueuePair) -> str:
    """What ended a stream, in words."""
    found = qp.terminated_by
    if found is not None:
        code = found.known.name if found.known is not None else f"{found.layer}/{found.kind}/{found.code}"
        return f"the peer ended the stream by a Terminate: {code}"
    if qp.refused is TerminateCode.MPA_STREAM_LOST:
        return "the stream was lost in the middle of a message"
    return f"this end refused what the peer had sent: {qp.refused.name}" if qp.refused is not None else ""
