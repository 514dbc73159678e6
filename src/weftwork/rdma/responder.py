"""The responder of a reliable connection.

It executes requests in order, once each, and answers. What comes ahead of its turn is dropped and told once (NAK); what
comes again is acknowledged again, a READ is read again, and the answer to an atomic is kept, so that it happens once.
Source: IBTA vol. 1, 9.7.4 (checks), 9.7.5 (ACK, NAK), 9.7.8 (resources for READs and atomics), annex A19.
Leaves out: end-to-end credits, which it announces as not counted; the requester's side, see `requester`.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from weftwork.rdma.inbound import COUNTED_AS, InboundMessages, InboundResult
from weftwork.rdma.states import QpEvent
from weftwork.rdma.verbs import ATOMIC_BYTES, AccessFlags
from weftwork.wire.credits import NO_CREDIT_COUNT
from weftwork.wire.extended import Aeth, AethKind, AtomicAckEth, AtomicEth, Feth, FlushPlacement, Nak, Reth
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import PSN_MODULUS, psn_compare
from weftwork.wire.opcodes import Opcode

if TYPE_CHECKING:
    from weftwork.rdma.datagram import Datagram
    from weftwork.rdma.queue_pair import RdmaQueuePair
    from weftwork.wire.opcodes import OpcodeShape

__all__ = ["KeptPacket", "RcAnswer", "RcResponder"]

_NAKS: Final = {
    InboundResult.INVALID: Nak.INVALID_REQUEST,
    InboundResult.TOO_LONG: Nak.INVALID_REQUEST,
    InboundResult.NO_ACCESS: Nak.REMOTE_ACCESS_ERROR,
    InboundResult.FAILED_HERE: Nak.REMOTE_OPERATIONAL_ERROR,
}
_ASKING: Final = frozenset(
    {Opcode.READ_REQUEST, Opcode.COMPARE_SWAP, Opcode.FETCH_ADD, Opcode.FLUSH, Opcode.ATOMIC_WRITE}
)
# IBTA vol. 1, annex A19: what the queue pair and the region have to allow.
_FLUSH_RIGHTS: Final = {
    FlushPlacement.GLOBAL_VISIBILITY: AccessFlags.FLUSH_GLOBAL,
    FlushPlacement.PERSISTENCE: AccessFlags.FLUSH_PERSISTENT,
}
_MASK64: Final = (1 << 64) - 1


class KeptPacket(NamedTuple):
    """A request as taken by `RcResponder.receive`."""

    shape: OpcodeShape
    wrapped_psn: int
    body: memoryview
    asks: bool
    solicited: bool


class RcAnswer(NamedTuple):
    """One packet to send, or all responses to a READ from ``sent`` on.

    Parameters
    ----------
    psn : of the first response, not wrapped
    aeth : None of the responses to a READ, which make their own
    original : value before an atomic
    memory : to be read
    is_new : to a request that came for the first time
    reth : asked for ``memory``, which may be taken back while it is being read
    granted_at : revocations of the memory when it was found
    """

    psn: int
    aeth: Aeth | None = None
    original: int | None = None
    memory: memoryview | None = None
    is_new: bool = False
    reth: Reth | None = None
    granted_at: int = 0


class RcResponder:
    """Requests of the peer of one queue pair.

    Parameters
    ----------
    qp : whose responder

    Attributes
    ----------
    expected_psn : of the next request, not wrapped
    ahead_bytes : of packets that are kept until their turn comes
    """

    ahead_bytes = 0

    def __init__(self, qp: RdmaQueuePair) -> None:
        self._qp: Final = qp
        self.messages = InboundMessages(qp)
        self._answers: deque[RcAnswer] = deque()
        self._kept: dict[int, int | None] = {}  # PSN of an atomic or ATOMIC WRITE, and the answer
        self.start(0)

    def start(self, first_psn: int) -> None:
        """Reset, and expect this PSN."""
        self.expected_psn = first_psn
        self.messages.close()
        self.messages.completed = 0
        self._answers.clear()
        self._kept.clear()
        self._has_told_gap = False
        self._read_sent = 0  # responses of the READ at the head that have been sent

    # Requests

    def receive(self, shape: OpcodeShape, wrapped_psn: int, body: memoryview, *, asks: bool, solicited: bool) -> None:
        """Take a request.

        Parameters
        ----------
        shape : of its opcode
        wrapped_psn : 24 bits
        body : extended headers and payload, without padding
        asks : the peer asks for an ACK
        solicited : the peer asks for an event
        """
        ahead = psn_compare(wrapped_psn, self.expected_psn % PSN_MODULUS)
        if ahead > 0:
            self._qp.counters["out_of_sequence"] += 1
            self._take_ahead(ahead, KeptPacket(shape, wrapped_psn, body, asks, solicited))
            return
        try:
            if ahead < 0:
                self._qp.counters["duplicate_request"] += 1
                self._repeat(shape, self.expected_psn + ahead, body)
            elif shape.operation in _ASKING:
                self._answer(shape, body)
            else:
                self._take(shape, body, asks=asks, solicited=solicited)
        except MalformedPacket:
            self._refuse(InboundResult.INVALID)

    def room_for_train(self, operation: int, psn: int) -> range:
        """Number of middle packets of the arriving message that can be taken.

        They count from this PSN on.
        """
        if psn != self.expected_psn % PSN_MODULUS:
            return range(0)
        return range(self.expected_psn, self.expected_psn + self.messages.middle_packets(operation))

    def take_train(self, payload: memoryview, segment_bytes: int, psns: range, now_ps: int, *, asks: bool) -> None:
        """Take middle packets of a message."""
        del now_ps  # of requests that wait for an answer
        self.messages.take_middle(payload, segment_bytes, len(psns))
        self._advance(len(psns))
        if asks:
            self._acknowledge()

    def _take_ahead(self, _ahead: int, _packet: KeptPacket) -> None:
        """Drop an early packet, and report it once."""
        if not self._has_told_gap:
            self._has_told_gap = True
            self._nak(Nak.PSN_SEQUENCE_ERROR)

    def forget_ahead(self) -> None:
        """Free early packets; go-back-N keeps none."""

    def _take(self, shape: OpcodeShape, body: memoryview, *, asks: bool, solicited: bool) -> None:
        result = self.messages.take(shape, body, solicited=solicited)
        if result is InboundResult.NO_RECEIVE:
            self._qp.counters["rnr_nak_sent"] += 1
            self._has_told_gap = True  # what follows behind the refused packet is sent again anyway
            self._push(RcAnswer(self.expected_psn, self._aeth(AethKind.RNR_NAK, self._qp.attr.min_rnr_timer)))
        elif result is InboundResult.TAKEN:
            self._advance(1)
            if asks:
                self._acknowledge()
        else:
            self._refuse(result)

    def _answer(self, shape: OpcodeShape, body: memoryview) -> None:
        """Execute a request with an answer beyond an ACK."""
        pending = sum(answer.is_new for answer in self._answers)
        if self.messages.is_open or pending >= self._qp.attr.max_dest_rd_atomic:
            self._refuse(InboundResult.INVALID)
            return
        result = self._execute(shape, self.expected_psn, body)
        if isinstance(result, InboundResult):
            self._refuse(result)
            return
        self.messages.completed += 1
        self._advance(result)
        if shape.operation not in {Opcode.READ_REQUEST, Opcode.FLUSH}:
            while len(self._kept) > self._qp.attr.max_dest_rd_atomic:
                del self._kept[next(iter(self._kept))]

    def _execute(self, shape: OpcodeShape, psn: int, body: memoryview) -> int | InboundResult:
        """Execute a request; returns its number of PSNs."""
        if shape.operation == Opcode.READ_REQUEST:
            return self._read(psn, Reth.decode(body)[0])
        if shape.operation == Opcode.FLUSH:
            feth, behind = Feth.decode(body)
            return self._flush(psn, feth, Reth.decode(behind)[0])
        if shape.operation == Opcode.ATOMIC_WRITE:
            reth, payload = Reth.decode(body)
            return self._atomic_write(psn, reth, payload)
        return self._atomic(psn, AtomicEth.decode(body)[0], swaps=shape.operation == Opcode.COMPARE_SWAP)

    def _read(self, psn: int, reth: Reth) -> int | InboundResult:
        qp = self._qp
        if not int(qp.attr.qp_access_flags) & AccessFlags.REMOTE_READ.value:
            return InboundResult.INVALID
        view = self._readable(reth)
        if view is None:
            return InboundResult.NO_ACCESS
        is_new = psn == self.expected_psn
        self._push(RcAnswer(psn, memory=view, is_new=is_new, reth=reth, granted_at=qp.memory.revocations))
        return max(1, -(-reth.dma_bytes // qp.attr.path_mtu))

    def _readable(self, reth: Reth) -> memoryview | None:
        if reth.dma_bytes == 0:  # of nothing, neither key nor address is checked (IBTA vol. 1, 9.4.1.1)
            return memoryview(b"")
        return self._qp.memory.remote(
            self._qp.pd,
            reth.remote_key,
            reth.virtual_address,
            reth.dma_bytes,
            AccessFlags.REMOTE_READ,
            self._qp.qp_num,
        )

    def _eight_bytes(self, address: int, rkey: int, access: AccessFlags) -> memoryview | InboundResult:
        if address % ATOMIC_BYTES:
            return InboundResult.INVALID
        qp = self._qp
        if access is AccessFlags.REMOTE_ATOMIC and not qp.attr.qp_access_flags & access:
            return InboundResult.INVALID
        view = qp.memory.remote(qp.pd, rkey, address, ATOMIC_BYTES, access, qp.qp_num)
        return view if view is not None else InboundResult.NO_ACCESS

    def _atomic(self, psn: int, header: AtomicEth, *, swaps: bool) -> int | InboundResult:
        view = self._eight_bytes(header.virtual_address, header.remote_key, AccessFlags.REMOTE_ATOMIC)
        if isinstance(view, InboundResult):
            return view
        original = int.from_bytes(view, sys.byteorder)
        if not swaps:
            view[:] = ((original + header.swap_or_add) & _MASK64).to_bytes(ATOMIC_BYTES, sys.byteorder)
        elif original == header.compare:
            view[:] = header.swap_or_add.to_bytes(ATOMIC_BYTES, sys.byteorder)
        self._kept[psn] = original
        self._push_kept(psn, original, self.messages.completed + 1)
        return 1

    def _atomic_write(self, psn: int, reth: Reth, payload: memoryview) -> int | InboundResult:
        if len(payload) != ATOMIC_BYTES or reth.dma_bytes != ATOMIC_BYTES:
            return InboundResult.INVALID
        if not self._qp.attr.qp_access_flags & AccessFlags.REMOTE_WRITE:
            return InboundResult.INVALID
        view = self._eight_bytes(reth.virtual_address, reth.remote_key, AccessFlags.REMOTE_WRITE)
        if isinstance(view, InboundResult):
            return view
        view[:] = payload
        self._kept[psn] = None
        self._push_kept(psn, None, self.messages.completed + 1)
        return 1

    def _flush(self, psn: int, feth: Feth, reth: Reth) -> int | InboundResult:
        """Answer when earlier WRITEs are visible.

        They are visible here at once, and are in the file if that is asked.
        """
        qp = self._qp
        wanted = AccessFlags(0)
        for placement, right in _FLUSH_RIGHTS.items():
            if feth.placement & placement:
                wanted |= right
        if not wanted or wanted & ~qp.attr.qp_access_flags:
            return InboundResult.INVALID
        length = None if feth.selectivity else reth.dma_bytes
        view = qp.memory.remote(qp.pd, reth.remote_key, reth.virtual_address, length or 0, wanted, qp.qp_num)
        if view is None:
            return InboundResult.NO_ACCESS
        if wanted & AccessFlags.FLUSH_PERSISTENT:
            if not qp.memory.persist(reth.remote_key, reth.virtual_address, length):
                return InboundResult.FAILED_HERE
            qp.counters["persistent_flushes"] += 1
        self._push(RcAnswer(psn, memory=memoryview(b""), is_new=psn == self.expected_psn))
        return 1

    def _repeat(self, shape: OpcodeShape, psn: int, body: memoryview) -> None:
        """Answer a request that has been executed."""
        if shape.operation in {Opcode.READ_REQUEST, Opcode.FLUSH}:
            self._drop_answers_from(psn)
            self._execute(shape, psn, body)  # where the memory is gone meanwhile, the peer hears nothing and gives up
        elif shape.operation in _ASKING:
            if psn in self._kept:
                self._push_kept(psn, self._kept[psn], self.messages.completed)
        else:
            self._acknowledge()

    def _drop_answers_from(self, psn: int) -> None:
        """Forget responses that are about to be made again.

        Repeated READs then cannot pile up.
        """
        mtu = self._qp.attr.path_mtu
        kept = [
            answer
            for answer in self._answers
            if answer.memory is None or answer.psn + max(1, -(-len(answer.memory) // mtu)) <= psn
        ]
        if not kept or not self._answers or kept[0] is not self._answers[0]:
            self._read_sent = 0
        self._answers = deque(kept)

    # Answers

    def has_answers(self) -> bool:
        """Whether `next_datagram` has an answer."""
        return bool(self._answers)

    def next_datagram(self) -> Datagram:
        """Make the packet of the oldest answer."""
        answer = self._answers[0]
        if answer.reth is not None and answer.granted_at != self._qp.memory.revocations:
            view = self._readable(answer.reth)  # again, as rxe_recheck_mr of Linux rxe_resp.c does
            if view is None:
                self._stop_reading(answer.psn + self._read_sent)
                return self.next_datagram()
            self._answers[0] = answer = answer._replace(memory=view, granted_at=self._qp.memory.revocations)
        if answer.memory is not None:
            return self._read_response(answer, answer.memory)
        self._answers.popleft()
        aeth = answer.aeth.encode() if answer.aeth is not None else b""
        opcode = Opcode.ACKNOWLEDGE
        if answer.original is not None:
            opcode, aeth = Opcode.ATOMIC_ACKNOWLEDGE, aeth + AtomicAckEth(answer.original).encode()
        return self._qp.answer_datagram(opcode, answer.psn % PSN_MODULUS, aeth)

    def _read_response(self, answer: RcAnswer, memory: memoryview) -> Datagram:
        mtu = self._qp.attr.path_mtu
        index, count = self._read_sent, max(1, -(-len(memory) // mtu))
        payload = memory[index * mtu : (index + 1) * mtu]
        train = self._qp.train_packets(count - 1 - index) if index else 0
        if train:
            self._read_sent += train
            psns = range(answer.psn + index, answer.psn + index + train)
            return self._qp.train(Opcode.READ_RESPONSE_MIDDLE, psns, memory[index * mtu : (index + train) * mtu])
        is_first, is_last = index == 0, index == count - 1
        opcode = Opcode.READ_RESPONSE_MIDDLE
        if is_first or is_last:
            opcode = Opcode.READ_RESPONSE_FIRST if is_first else Opcode.READ_RESPONSE_LAST
            opcode = Opcode.READ_RESPONSE_ONLY if is_first and is_last else opcode
        aeth = self._aeth(AethKind.ACK, NO_CREDIT_COUNT).encode() if is_first or is_last else b""
        self._read_sent += 1
        if is_last:
            self._answers.popleft()
            self._read_sent = 0
        return self._qp.answer_datagram(opcode, (answer.psn + index) % PSN_MODULUS, aeth, payload)

    def _stop_reading(self, psn: int) -> None:
        """Refuse the rest of a READ whose memory was revoked.

        Nothing behind it is answered.
        """
        self._answers.clear()
        self._read_sent = 0
        self.expected_psn = psn
        self._refuse(InboundResult.NO_ACCESS)

    def _push(self, answer: RcAnswer) -> None:
        """Queue an answer.

        An ACK replaces an ACK before it, since it says as much.
        """
        last = self._answers[-1] if self._answers else None
        is_ack = answer.aeth is not None and answer.aeth.kind is AethKind.ACK and answer.original is None
        if is_ack and last is not None and last.aeth is not None and last.original is None:
            if last.aeth.kind is AethKind.ACK:
                self._answers.pop()
        elif not answer.is_new and len(self._answers) >= self._most_answers():
            return  # a flood of repeated requests; the peer will ask again
        self._answers.append(answer)

    def _most_answers(self) -> int:
        return 2 * self._qp.attr.max_dest_rd_atomic + 8  # chosen: READs, atomics, as many repeated, and NAKs

    def _push_kept(self, psn: int, original: int | None, msn: int) -> None:
        if original is None:
            self._push(RcAnswer(psn, memory=memoryview(b""), is_new=psn == self.expected_psn))
        else:
            aeth = Aeth(AethKind.ACK, NO_CREDIT_COUNT, msn % PSN_MODULUS)
            self._push(RcAnswer(psn, aeth, original, is_new=psn == self.expected_psn))

    def _aeth(self, kind: AethKind, value: int) -> Aeth:
        return Aeth(kind, value, self.messages.completed % PSN_MODULUS)

    def _advance(self, psns: int) -> None:
        self.expected_psn += psns
        self._has_told_gap = False

    def _acknowledge(self) -> None:
        self._push(RcAnswer(self.expected_psn - 1, self._aeth(AethKind.ACK, NO_CREDIT_COUNT)))

    def _nak(self, nak: Nak) -> None:
        self._push(RcAnswer(self.expected_psn, self._aeth(AethKind.NAK, nak)))

    def _refuse(self, result: InboundResult) -> None:
        """Refuse a request and end.

        A request that may not be executed breaks the connection.
        """
        self._qp.counters[COUNTED_AS[result]] += 1
        self._nak(_NAKS[result])
        self._qp.went_wrong(QpEvent.RECEIVE_FAILED)
