"""A queue pair: state, attributes, work queues, requester and responder.

Source: IBTA vol. 1, 10.2.4 (queue pairs), 10.3 (states), 10.8 (posting), 10.10 (errors).
Leaves out: the protocol, see `requester`, `responder` and `unreliable`; path migration.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.base.grammar import plural
from weftwork.rdma.async_event import AsyncEvent, EventType
from weftwork.rdma.attributes import check_attributes
from weftwork.rdma.datagram import BTH, Datagram, PacketFlow
from weftwork.rdma.nic_limits import NicLimits
from weftwork.rdma.receive_queue import RecvQueue
from weftwork.rdma.requester import RcRequester
from weftwork.rdma.requests import RequestPacket, SendEntry, refused_text
from weftwork.rdma.responder import RcResponder
from weftwork.rdma.selective_requester import SelectiveRequester
from weftwork.rdma.selective_responder import SelectiveResponder
from weftwork.rdma.sender_proof import SenderProof
from weftwork.rdma.states import AFTER, MODIFY, PROCESSES_RECEIVES, TAKES_RECEIVES, TAKES_SENDS, QpEvent
from weftwork.rdma.trains import (
    SMALLEST_TRAIN,
    TRAIN_FRONT,
    TrainReceiver,
    TrainTaker,
    make_train,
    most_segments,
)
from weftwork.rdma.unreliable import UcResponder, UdResponder, UnreliableRequester
from weftwork.rdma.verbs import (
    AddressHandle,
    QpAttr,
    QpState,
    QpType,
    RecvWr,
    SendFlags,
    SendWr,
    Wc,
    WcOpcode,
    WcStatus,
    WrOpcode,
)
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import CNP_BODY, PSN_MODULUS, cnp_bth, psn_compare
from weftwork.wire.ip import ECN_CE
from weftwork.wire.opcodes import SHAPES, Opcode, TransportService

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.rdma.completion import CompletionQueue
    from weftwork.rdma.memory import MemoryWindow, ProtectionDomain
    from weftwork.rdma.qp_host import QpHost
    from weftwork.rdma.rate_control import RateControl
    from weftwork.rdma.verbs import MwBind

__all__ = ["AsyncEvent", "EventType", "NicLimits", "RdmaQueuePair"]

_SERVICES: Final = {
    QpType.RC: TransportService.RC,
    QpType.UC: TransportService.UC,
    QpType.UD: TransportService.UD,
}


def _may_meet(pkey: int, other: int) -> bool:
    """Whether two partition keys may communicate (IBTA vol. 1, 10.9.3).

    They name one partition, and not two limited members.
    """
    return bool(pkey & 0x7FFF) and not (pkey ^ other) & 0x7FFF and bool((pkey | other) & 0x8000)


class RdmaQueuePair:
    """One end of a connection or of datagrams.

    Parameters
    ----------
    host : the NIC
    qp_num : 24 bits
    qp_type : its transport service
    pd : protection domain
    cqs : where sends and where receives complete
    recv_queue : its own, or a shared one
    sq_sig_all : every send completes with an entry, whether it asks or not

    Attributes
    ----------
    attr : as last modified
    state : see `states`
    counters : by name, as mlx5 names them where it has them
    rate : congestion control, or None
    source_port : of UDP, from which its packets leave; random, so that it tells nothing about its numbers
    proof : of the peer, if it is on this machine
    watches_peer : it is told of the end of the peer's process; a conversation hears that in its place
    on_heard : called once, at the first packet of the peer (IBV_EVENT_COMM_EST of libibverbs); None does nothing
    """

    def __init__(
        self,
        host: QpHost,
        qp_num: int,
        qp_type: QpType,
        pd: ProtectionDomain,
        cqs: tuple[CompletionQueue, CompletionQueue],
        recv_queue: RecvQueue,
        *,
        sq_sig_all: bool = False,
    ) -> None:
        self.host: Final = host
        self.qp_num: Final = qp_num
        self.qp_type: Final = qp_type
        self.pd: Final = pd
        self.memory: Final = host.memory
        self.cqs: Final = cqs
        self.send_cq, self.recv_cq = cqs
        self.recv_queue: Final = recv_queue
        self.sq_sig_all: Final = sq_sig_all
        self.attr = QpAttr()
        self.state = QpState.RESET
        self.counters: Counter[str] = Counter()
        self.rate: RateControl | None = None
        self.source_port = host.source_ports.draw(qp_num)
        self.proof: Final = SenderProof()
        self.watches_peer = True
        self.on_heard: Callable[[], None] | None = None
        self._rc = RcResponder(self) if qp_type is QpType.RC else None
        self._uc = UcResponder(self) if qp_type is QpType.UC else None
        self._ud = UdResponder(self) if qp_type is QpType.UD else None
        is_rc = qp_type is QpType.RC
        self.requester: RcRequester | UnreliableRequester
        self.requester = RcRequester(self, host.limits.max_inflight) if is_rc else UnreliableRequester(self)
        self._flow: PacketFlow | None = None
        self.trains = TrainReceiver(self, self._train_takers())
        self._owes_cnp = False
        self._tells_drained = False
        self._owes_flush = False
        self._paced_until_ps: int | None = None

    # Verbs

    def modify(self, state: QpState, attr: QpAttr | None = None) -> None:
        """Change the state.

        Parameters
        ----------
        state : wanted
        attr : new attributes; None keeps those that it has

        Raises
        ------
        UsageError : no such transition, or an attribute that does not fit; nothing has changed
        """
        if state not in MODIFY[self.state]:
            wanted = ", ".join(sorted(name.name for name in MODIFY[self.state]))
            raise UsageError(f"state: found {self.state.name} to {state.name}, wanted one of {wanted}")
        if attr is not None:
            check_attributes(attr, self.attr, self.qp_type, (self.state, state), self.host.limits.max_qp_rd_atom)
        if state in {QpState.RTR, QpState.SQD} and self.qp_type is not QpType.UD:
            # UsageError for an address that no packet can reach, before anything has changed
            self.host.flow((attr or self.attr).remote_address, self.source_port, 0)
        if attr is not None:
            is_moved = self._flow is not None and attr.remote_address != self.attr.remote_address
            self.attr = attr
            if is_moved and state is QpState.SQD:
                self._aim()
        before, self.state = self.state, state
        self._enter(state, before)
        self._tells_drained = state is QpState.SQD
        self.host.wake(self)

    def send_from(self, source_port: int) -> None:
        """Send from another source port, also if the queue pair is connected already."""
        self.source_port = source_port
        if self._flow is not None:
            self._flow = self.host.flow(self.attr.remote_address, source_port, 0)

    def _aim(self) -> None:
        """Send to the address of the peer, and believe nobody yet to be the peer."""
        self._flow = self.host.flow(self.attr.remote_address, self.source_port, 0)
        self.proof.begin(is_here=self.host.source_ports.is_here(self.attr.remote_address))
        if self.watches_peer:
            self.host.peers.watch(self, self.attr.remote_address, self.attr.dest_qp_num, self.lose_peer)

    def lose_peer(self) -> None:
        """End all work, since the process of the peer has ended: as if the retries of the first request were over."""
        if isinstance(self.requester, RcRequester):
            self.requester.give_up()
        if self.state is not QpState.ERR:
            self.state = QpState.ERR
            self.host.tell(AsyncEvent(event_type=EventType.QP_FATAL, qp_num=self.qp_num))
        self.flush()

    def _enter(self, state: QpState, before: QpState) -> None:
        """Do what a change of the state brings with it."""
        if state is QpState.RTR:
            if self.rate is not None:
                self.rate.mtu_bytes = self.attr.path_mtu
            if self.qp_type is not QpType.UD:
                self._aim()
            if self.qp_type is QpType.RC:
                self._choose_recovery()
            for responder in (self._rc, self._uc):
                if responder is not None:
                    responder.start(self.attr.rq_psn)
        elif state is QpState.RTS and before is QpState.RTR:
            self.requester.start(self.attr.sq_psn)
        elif state is QpState.RESET:
            self.host.peers.leave(self)
            self.proof.port = None
            self.requester.start(0)
            for responder in (self._rc, self._uc):
                if responder is not None:
                    responder.start(0)
            self._owes_cnp = False
            if not self.recv_queue.is_shared:
                self.recv_queue.clear()
        elif state is QpState.ERR:
            self.host.peers.leave(self)
            self.flush()

    def _choose_recovery(self) -> None:
        most = self.host.limits.max_inflight
        if self.attr.selective_repeat:
            self.requester, self._rc = SelectiveRequester(self, most), SelectiveResponder(self)
        else:
            self.requester, self._rc = RcRequester(self, most), RcResponder(self)
        self.trains = TrainReceiver(self, self._train_takers())

    def post_send(self, wr: SendWr) -> None:
        """Post a request; in SQE and ERR it is flushed.

        Raises
        ------
        UsageError : the state takes none, the queue is full, or the request is not one of this service
        """
        window = wr.window
        if window is not None and (window.window_type != 2 or wr.rkey >> 8 != window.rkey >> 8):
            raise UsageError("window, rkey: found others, wanted a window of type 2 and a key of its index")
        self._post(wr)

    def bind_mw(self, wr_id: int, window: MemoryWindow, bind: MwBind, flags: SendFlags = SendFlags.SIGNALED) -> int:
        """Post the binding of a window of type 1 (ibv_bind_mw).

        Parameters
        ----------
        wr_id : returned in the completion
        window, bind : see `MwBind`
        flags : ``FENCE`` and ``SIGNALED`` have a meaning

        Returns
        -------
        the key that the window will have, for the peer; ``window.rkey`` changes when the binding is executed

        Raises
        ------
        UsageError : as ``post_send``, or the window has another type
        """
        if window.window_type != 1:
            raise UsageError(f"window_type: found {window.window_type}, wanted 1; post BIND_MW for type 2")
        rkey = self.memory.draw_rkey()
        self._post(SendWr(wr_id=wr_id, opcode=WrOpcode.BIND_MW, flags=flags, rkey=rkey, window=window, bind=bind))
        return rkey

    def _post(self, wr: SendWr) -> None:
        limits = self.host.limits
        if self.state not in TAKES_SENDS:
            raise UsageError(f"state: found {self.state.name}, wanted RTS to post a send")
        if len(self.requester.entries) >= limits.max_qp_wr:
            raise UsageError(f"send queue: found {plural(limits.max_qp_wr, 'request')} posted, which is its limit")
        text = refused_text(wr, self.qp_type, limits.max_sge, limits.max_inline_data)
        if text is not None:
            raise UsageError(text)
        if wr.ah is not None:
            self.flow_to(wr.ah)  # UsageError for an address that no packet can reach
        entry = self._entry(wr)
        if int(wr.flags) & SendFlags.INLINE.value:
            entry.copy_inline(self.memory, self.pd)
        self.requester.entries.append(entry)
        if self.state in {QpState.SQE, QpState.ERR}:
            self.requester.flush()
        else:
            self.host.wake(self)

    def _entry(self, wr: SendWr) -> SendEntry:
        """A request of this queue pair."""
        return SendEntry(wr, self.attr.path_mtu)

    def post_recv(self, wr: RecvWr) -> None:
        """Post a receive; in ERR it is flushed.

        Raises
        ------
        UsageError : the state takes none, the queue is full, or receives are taken from a shared queue
        """
        if self.recv_queue.is_shared or self.state not in TAKES_RECEIVES:
            raise UsageError(f"state: found {self.state.name}, wanted INIT or later, and no shared receive queue")
        self.recv_queue.post(wr)
        if self.state is QpState.ERR:
            self.flush()

    @property
    def out_of_order_bytes(self) -> int:
        """Memory held by packets that came early."""
        return self._rc.ahead_bytes if self._rc is not None else 0

    # The network

    def receive(
        self, datagram: Datagram, header: tuple[int, int, int, int, int], body: memoryview, now_ps: int
    ) -> None:
        """Take a packet with a correct ICRC.

        Packets that do not belong here are counted and dropped.

        Parameters
        ----------
        datagram : that brought it
        header : the five words of BTH
        body : what follows, without ICRC
        now_ps : instant
        """
        opcode, flags, pkey, _, psn_word = header
        is_stranger = self.qp_type is not QpType.UD and (
            datagram.source != self.attr.remote_address
            or (
                self.proof.is_wanted
                and datagram.source_port != self.proof.port
                and not self._is_proven(datagram.source_port, opcode, psn_word & 0xFFFFFF)
            )
        )
        if self.state not in PROCESSES_RECEIVES or is_stranger:
            self.counters["stranger" if is_stranger else "not_accepted"] += 1
            return
        if not _may_meet(pkey, self.attr.pkey):
            self.counters["pkey_violation"] += 1
            return
        if opcode == Opcode.CNP:
            self.counters["rp_cnp_handled"] += 1
            if self.rate is not None:
                self.rate.take_cnp(now_ps)
            return
        shape = SHAPES.get(opcode)
        pad_bytes = flags >> 4 & 0b11
        if shape is None or shape.service is not _SERVICES[self.qp_type]:
            self.counters["malformed"] += 1
            return
        size_bytes = len(body) - pad_bytes
        if size_bytes < shape.headers_bytes or (size_bytes > shape.headers_bytes and not shape.has_payload):
            self.counters["malformed"] += 1
            return
        body = body[:size_bytes]
        if self.on_heard is not None:
            heard, self.on_heard = self.on_heard, None
            heard()
        psn, asks, solicited = psn_word & 0xFFFFFF, psn_word >> 31 == 1, flags >> 7 == 1
        if self.rate is not None and self.rate.take_data(now_ps, len(body), is_marked=datagram.ecn == ECN_CE):
            self._owes_cnp = True
        if self._rc is not None and isinstance(self.requester, RcRequester):
            if shape.is_response:
                self.requester.receive(opcode, psn, body, now_ps)
            else:
                self._rc.receive(shape, psn, body, asks=asks, solicited=solicited)
        elif self._uc is not None:
            self._uc.receive(shape, psn, body, solicited=solicited)
        elif self._ud is not None:
            try:
                self._ud.receive(shape, body, datagram, solicited=solicited)
            except MalformedPacket:
                self.counters["malformed"] += 1

    def _is_proven(self, source_port: int, opcode: int, psn: int) -> bool:
        """Whether a packet comes from the peer's port; the first one in its turn names the port."""
        shape = SHAPES.get(opcode)
        if self.proof.port is None and shape is not None:
            if shape.is_response:
                has_turn = isinstance(self.requester, RcRequester) and self.requester.awaits(psn)
            elif self._rc is not None:
                has_turn = psn == self._rc.expected_psn % PSN_MODULUS
            else:
                has_turn = self._uc is not None and psn_compare(psn, self._uc.expected_psn % PSN_MODULUS) >= 0
            self.proof.port = source_port if has_turn else None
        return source_port == self.proof.port

    def next_datagram(self, now_ps: int) -> Datagram | None:
        """Make the next packet: a CNP, an answer, a request; or None."""
        if self._owes_flush:
            self._owes_flush = False
            self.flush()
        if self._owes_cnp and self._flow is not None:
            self._owes_cnp = False
            self.counters["np_cnp_sent"] += 1
            return self._flow.close(cnp_bth(self.attr.dest_qp_num, self.attr.pkey).encode() + CNP_BODY)
        if self._rc is not None and self._rc.has_answers():
            return self._rc.next_datagram()
        while self.requester.can_send():
            if self.rate is None:
                made = self.requester.next_datagram(now_ps)
            else:
                self.rate.wake(now_ps)
                if not self.rate.may_send(now_ps, self._inflight_bytes()):
                    self._paced_until_ps = self.rate.next_send_at_ps if self.rate.next_send_at_ps > now_ps else None
                    return None
                self._paced_until_ps = None
                made = self.requester.next_datagram(now_ps)
                if made is not None:
                    size_bytes = sum(map(len, made.parts))
                    line_bytes = size_bytes + self.host.encapsulation.overhead_bytes
                    self.rate.sent(now_ps, sum(map(len, made.parts[1:-1])), line_bytes)
            if made is not None:
                return made
        if self.rate is not None and not self.requester.entries:
            self.rate.rest()
        self._tell_if_drained()
        return None

    def _tell_if_drained(self) -> None:
        if self._tells_drained and self._is_drained():
            self._tells_drained = False
            self.host.tell(AsyncEvent(event_type=EventType.SQ_DRAINED, qp_num=self.qp_num))

    def next_timer_ps(self) -> int | None:
        """Next instant at which `on_timer` has work, or None."""
        times = [self.requester.next_timer_ps()]
        if self.rate is not None:
            times.append(self.rate.next_timer_ps())
            if self.requester.can_send():
                times.append(self._paced_until_ps)
        return min((at_ps for at_ps in times if at_ps is not None), default=None)

    def on_timer(self, now_ps: int) -> None:
        """Do all due work."""
        if self.rate is not None:
            self.rate.on_timer(now_ps)
        self.requester.on_timer(now_ps)

    def _inflight_bytes(self) -> int:
        packets = self.requester.inflight_packets if isinstance(self.requester, RcRequester) else 0
        return packets * self.attr.path_mtu

    def _is_drained(self) -> bool:
        return all(entry.first_psn < 0 for entry in self.requester.entries)

    def _train_takers(self) -> dict[int, TrainTaker]:
        if self._rc is None or not isinstance(self.requester, RcRequester):
            return {}
        return {
            Opcode.SEND_MIDDLE: self._rc,
            Opcode.WRITE_MIDDLE: self._rc,
            Opcode.READ_RESPONSE_MIDDLE: self.requester,
        }

    # For the halves

    def train(self, opcode: int, psns: range, payload: memoryview, asking: frozenset[int] = frozenset()) -> Datagram:
        """Add BTH and ICRC to packets of a message's middle; see `trains`."""
        if self._flow is None:
            raise UsageError("queue pair: found no peer, wanted a state of RTR or later")
        front = TRAIN_FRONT.pack(opcode, 0, self.attr.pkey, self.attr.dest_qp_num)
        return make_train(self._flow, front, psns, payload, self.attr.path_mtu, asking)

    def train_packets(self, packets: int) -> int:
        """Number of middle packets that may go as a train.

        It is 0 if each has to go by itself.
        """
        if not self.host.makes_trains or self.rate is not None or packets < SMALLEST_TRAIN:
            return 0
        return min(packets, most_segments(self.attr.path_mtu))

    def request_datagram(
        self,
        packet: RequestPacket,
        psn: int,
        *,
        asks: bool,
        solicited: bool,
        flow: PacketFlow | None = None,
        destination_qp: int = 0,
        identification: int = 0,
    ) -> Datagram:
        """Add BTH and ICRC to a request."""
        via = flow if flow is not None else self._flow
        if via is None:
            raise UsageError("queue pair: found no peer, wanted a state of RTR or later")
        to_qp = destination_qp if flow is not None else self.attr.dest_qp_num
        pad_bytes = -packet.payload_bytes % 4
        bth = BTH.pack(
            packet.opcode | _SERVICES[self.qp_type] << 5,
            solicited << 7 | pad_bytes << 4,
            self.attr.pkey,
            to_qp,
            asks << 31 | psn,
        )
        return via.close(bth + packet.headers, packet.pieces, pad_bytes, identification)

    def answer_datagram(self, opcode: int, psn: int, headers: bytes, payload: memoryview | None = None) -> Datagram:
        """Add BTH and ICRC to an answer."""
        pieces = (payload,) if payload else ()
        size_bytes = len(payload) if payload else 0
        packet = RequestPacket(opcode, headers, pieces, size_bytes, ends_message=True)
        return self.request_datagram(packet, psn, asks=False, solicited=False)

    def flow_to(self, handle: AddressHandle) -> PacketFlow:
        """Flow of datagrams to an address."""
        return self.host.flow(handle.address, self.source_port, handle.dscp)

    def take_receive(self) -> RecvWr | None:
        """Oldest posted receive, or None."""
        wr = self.recv_queue.take()
        if self.recv_queue.is_shared and self.recv_queue.fell_below_limit():
            self.host.tell(AsyncEvent(event_type=EventType.SRQ_LIMIT_REACHED, qp_num=self.qp_num))
        return wr

    def complete_send(self, wc: Wc) -> None:
        """Report the completion of a request to the user."""
        self._complete(self.send_cq, wc)

    def complete_receive(self, wc: Wc) -> None:
        """Report the completion of a receive to the user."""
        self._complete(self.recv_cq, wc)

    def _complete(self, cq: CompletionQueue, wc: Wc) -> None:
        was_overrun = cq.is_overrun
        cq.add(wc)
        if cq.is_overrun and not was_overrun:
            self.host.tell(AsyncEvent(event_type=EventType.CQ_ERR, qp_num=self.qp_num))
        if cq.is_overrun and self.state is not QpState.ERR:
            self.state = QpState.ERR
            self._owes_flush = True  # later, since a half of this queue pair is at work on its entries
            self.host.wake(self)
            self.host.tell(AsyncEvent(event_type=EventType.QP_FATAL, qp_num=self.qp_num))

    def went_wrong(self, event: QpEvent) -> None:
        """Go to the state of the table, and flush."""
        after = AFTER[self.qp_type, event]
        if self.state is not QpState.ERR:
            self.state = after
            self.host.tell(AsyncEvent(event_type=EventType.QP_FATAL, qp_num=self.qp_num))
        self.flush()

    def flush(self) -> None:
        """End all posted work; in SQE the receives stay."""
        self.requester.flush()
        if self.rate is not None:
            self.rate.rest()
        if self.state is not QpState.ERR:
            return
        for responder in (self._rc, self._uc):
            if responder is not None:
                responder.messages.flush()
        if self._rc is not None:
            self._rc.forget_ahead()
        while not self.recv_queue.is_shared:
            wr = self.recv_queue.take()
            if wr is None:
                break
            flushed = WcStatus.WR_FLUSH_ERR
            self.complete_receive(Wc(wr_id=wr.wr_id, status=flushed, opcode=WcOpcode.RECV, qp_num=self.qp_num))
