"""The unreliable services: connected messages (UC) and datagrams (UD).

Both are sent once and never acknowledged. A message of UC of which a packet is missing is dropped whole; the receive
that it has begun serves the next one.
Source: IBTA vol. 1, 9.8.2 (UC) and 9.8.3 (UD).
Leaves out: which queue pairs take a multicast datagram, see `multicast`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from weftwork.rdma.inbound import COUNTED_AS, InboundMessages, InboundResult
from weftwork.rdma.receive_queue import Scatter
from weftwork.rdma.requests import COMPLETES_AS, SendEntry
from weftwork.rdma.states import QpEvent
from weftwork.rdma.verbs import QpState, QpType, Wc, WcOpcode, WcStatus
from weftwork.wire.extended import Deth, ImmediateData
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import PSN_MODULUS, psn_compare
from weftwork.wire.opcodes import Opcode

if TYPE_CHECKING:
    from weftwork.rdma.datagram import Datagram
    from weftwork.rdma.queue_pair import RdmaQueuePair
    from weftwork.wire.opcodes import OpcodeShape

__all__ = ["GRH_BYTES", "UcResponder", "UdResponder", "UnreliableRequester"]

GRH_BYTES: Final = 40  # IBTA vol. 1, 11.4.1.2: space in front of a datagram
_LATE_PACKETS: Final = 4096  # chosen: further behind is not reordering; one forged PSN must not silence the peer
_CONTROLLED_QKEY: Final = 1 << 31  # IBTA vol. 1, 10.2.5: then the queue pair's own key is sent


class UnreliableRequester:
    """Requests of one queue pair.

    They end when their last packet is made.

    Attributes
    ----------
    entries : requests that have not ended
    """

    def __init__(self, qp: RdmaQueuePair) -> None:
        self._qp: Final = qp
        self.entries: deque[SendEntry] = deque()
        self.start(0)

    def start(self, first_psn: int) -> None:
        """Reset, and send from this PSN on."""
        self.entries.clear()
        self._psn = first_psn
        self._packet = 0

    def can_send(self) -> bool:
        """Whether a packet waits to go now."""
        is_open = self._qp.state is QpState.RTS or (self._qp.state is QpState.SQD and self._packet > 0)
        return is_open and bool(self.entries)

    def next_datagram(self, _now_ps: int) -> Datagram | None:
        """Make the next packet; None if the request ends here without one."""
        entry = self.entries[0]
        if self._packet == 0:
            status = entry.local_error(self._qp.qp_type)
            if status is None and not entry.find_memory(self._qp.memory, self._qp.pd):
                status = WcStatus.LOC_PROT_ERR
            if status is None and entry.packets == 0:
                status = entry.execute_here(self._qp.memory, self._qp.pd, self._qp.qp_num)
            if status is not None:
                self._end(status)
                return None
        packet = entry.packet(self._packet)
        psn = self._psn % PSN_MODULUS
        self._psn += 1
        self._packet += 1
        flow = None
        if self._qp.qp_type is QpType.UD and entry.wr.ah is not None:
            has_own_key = entry.wr.remote_qkey & _CONTROLLED_QKEY
            deth = Deth(self._qp.attr.qkey if has_own_key else entry.wr.remote_qkey, self._qp.qp_num)
            packet = packet._replace(headers=deth.encode() + packet.headers)
            flow = self._qp.flow_to(entry.wr.ah)
        is_solicited = packet.ends_message and entry.is_solicited
        made = self._qp.request_datagram(
            packet, psn, asks=False, solicited=is_solicited, flow=flow, destination_qp=entry.wr.remote_qpn
        )
        if packet.ends_message:
            self._end(WcStatus.SUCCESS)
        return made

    def next_timer_ps(self) -> int | None:
        """Return None: no timer is needed."""
        return None

    def on_timer(self, _now_ps: int) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """End all entries, since the queue pair is in error."""
        while self.entries:
            self._complete(self.entries.popleft(), WcStatus.WR_FLUSH_ERR)
        self._packet = 0

    def _end(self, status: WcStatus) -> None:
        self._packet = 0
        self._complete(self.entries.popleft(), status)
        if status is not WcStatus.SUCCESS:
            self._qp.went_wrong(QpEvent.SEND_FAILED)

    def _complete(self, entry: SendEntry, status: WcStatus) -> None:
        if status is not WcStatus.SUCCESS or self._qp.sq_sig_all or entry.is_signaled:
            opcode = COMPLETES_AS[entry.wr.opcode]
            self._qp.complete_send(Wc(wr_id=entry.wr.wr_id, status=status, opcode=opcode, qp_num=self._qp.qp_num))


class UcResponder:
    """Arriving messages of an unreliable connection.

    Attributes
    ----------
    expected_psn : 24 bits
    """

    def __init__(self, qp: RdmaQueuePair) -> None:
        self._qp: Final = qp
        self.messages = InboundMessages(qp)
        self.expected_psn = 0

    def start(self, first_psn: int) -> None:
        """Reset, and expect this PSN."""
        self.expected_psn = first_psn
        self.messages.close()

    def receive(self, shape: OpcodeShape, psn: int, body: memoryview, *, solicited: bool) -> None:
        """Take a packet; a gap drops the message.

        The next packet that is taken begins a message.
        """
        ahead = psn_compare(psn, self.expected_psn)
        if -_LATE_PACKETS <= ahead < 0:
            self._qp.counters["out_of_sequence"] += 1  # late: its message has been dropped
            return
        if ahead != 0 or (shape.starts_message and self.messages.is_open):
            self._qp.counters["out_of_sequence"] += 1
            self.messages.close()
        self.expected_psn = (psn + 1) % PSN_MODULUS
        if not shape.starts_message and not self.messages.is_open:
            return
        try:
            result = self.messages.take(shape, body, solicited=solicited)
        except MalformedPacket:
            result = InboundResult.INVALID
        if result is InboundResult.TAKEN:
            return
        self._qp.counters[COUNTED_AS[result]] += 1
        self.messages.close()
        if result is InboundResult.FAILED_HERE:
            self._qp.went_wrong(QpEvent.RECEIVE_FAILED)


class UdResponder:
    """Arriving datagrams."""

    def __init__(self, qp: RdmaQueuePair) -> None:
        self._qp: Final = qp

    def receive(self, shape: OpcodeShape, body: memoryview, datagram: Datagram, *, solicited: bool) -> None:
        """Put a datagram with its IP header or GRH into the next receive.

        Without a receive it is dropped.
        """
        qp = self._qp
        deth, body = Deth.decode(body)
        immediate = None
        if shape.operation == Opcode.SEND_ONLY_IMMEDIATE:
            decoded, body = ImmediateData.decode(body)
            immediate = decoded.immediate
        if deth.queue_key != qp.attr.qkey:
            qp.counters["qkey_violation"] += 1
            return
        if len(body) > qp.attr.path_mtu:
            qp.counters["malformed"] += 1
            return
        wr = qp.recv_queue.peek()
        if wr is None:
            qp.counters[COUNTED_AS[InboundResult.NO_RECEIVE]] += 1
            return
        header = qp.host.encapsulation.network_header(datagram, len(datagram.payload()))
        target = Scatter.of_receive(qp.memory, qp.pd, wr)
        status = target if isinstance(target, WcStatus) else WcStatus.SUCCESS
        if isinstance(target, Scatter):
            if target.size_bytes < GRH_BYTES + len(body):  # the receive stays posted (IBTA vol. 1, 9.9.3, class D)
                qp.counters[COUNTED_AS[InboundResult.TOO_LONG]] += 1
                return
            target.write(0, header.rjust(GRH_BYTES, b"\0"))
            if body:
                target.write(GRH_BYTES, body)
        qp.take_receive()
        wc = Wc(
            wr_id=wr.wr_id,
            status=status,
            opcode=WcOpcode.RECV,
            qp_num=qp.qp_num,
            byte_len=GRH_BYTES + len(body),
            imm_data=immediate,
            src_qp=deth.source_qp,
            has_grh=bool(header),
            solicited=solicited,
        )
        qp.complete_receive(wc)
        if status is not WcStatus.SUCCESS:
            qp.went_wrong(QpEvent.RECEIVE_FAILED)
