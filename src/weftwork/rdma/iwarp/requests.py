"""Requests of this end: send work requests that become messages of RDMAP.

A SEND or WRITE is done when the system has taken its last byte: TCP brings it there, and nothing acknowledges it. A
READ or an atomic is done when its response has come. Completions keep the order of the requests.
Source: RFC 5040, sections 4 and 5; RFC 7306 (atomics, immediate data).
Leaves out: the responses to the peer, see `responder`; bytes of the stream, see `queue_pair`.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Final

from weftwork.rdma.iwarp.segments import CONTROL, next_number, tagged_segments
from weftwork.rdma.receive_queue import Scatter
from weftwork.rdma.requests import ATOMICS, COMPLETES_AS, SendEntry
from weftwork.rdma.states import QpEvent
from weftwork.rdma.verbs import ATOMIC_BYTES, QpState, QpType, SendWr, Wc, WcStatus, WrOpcode
from weftwork.wire.ddp import TAGGED_BYTES, UNTAGGED_BYTES, DdpTagged, DdpUntagged
from weftwork.wire.rdmap import (
    AtomicOpcode,
    AtomicRequest,
    AtomicResponse,
    ImmediateMessage,
    RdmapOpcode,
    RdmapQueue,
    ReadRequest,
    Terminate,
    TerminateCode,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weftwork.rdma.iwarp.queue_pair import IwarpQueuePair
    from weftwork.rdma.iwarp.segments import Segment, SegmentReader

__all__ = ["IwarpRequester", "StreamEntry", "lacks_text"]

_ONES64: Final = (1 << 64) - 1
_SENDS: Final = frozenset({WrOpcode.SEND, WrOpcode.SEND_WITH_INV})
_TO_MEMORY: Final = frozenset({WrOpcode.RDMA_WRITE, WrOpcode.RDMA_WRITE_WITH_IMM, WrOpcode.RDMA_READ})
# What neither RFC 5040 nor RFC 7306 has.
_LACKS: Final = {
    WrOpcode.SEND_WITH_IMM: "use RDMA_WRITE_WITH_IMM",
    WrOpcode.FLUSH: "a READ behind the WRITE shows that it has arrived",
    WrOpcode.ATOMIC_WRITE: "use ATOMIC_CMP_AND_SWP",
}
# How a request ends that the peer has refused.
_REFUSED: Final = {
    TerminateCode.DDP_NO_BUFFER: WcStatus.REM_INV_REQ_ERR,
    TerminateCode.DDP_TOO_LONG: WcStatus.REM_INV_REQ_ERR,
    TerminateCode.RDMAP_UNEXPECTED_OPCODE: WcStatus.REM_INV_REQ_ERR,
    TerminateCode.RDMAP_UNSPECIFIC: WcStatus.REM_INV_REQ_ERR,
    **dict.fromkeys(
        (
            *(TerminateCode.RDMAP_INVALID_STAG, TerminateCode.RDMAP_BOUNDS, TerminateCode.RDMAP_ACCESS),
            *(TerminateCode.RDMAP_NOT_ASSOCIATED, TerminateCode.RDMAP_OFFSET_WRAP),
            *(TerminateCode.RDMAP_CANNOT_INVALIDATE, TerminateCode.RDMAP_PROTECTION),
            *(TerminateCode.DDP_INVALID_STAG, TerminateCode.DDP_BOUNDS),
            *(TerminateCode.DDP_NOT_ASSOCIATED, TerminateCode.DDP_OFFSET_WRAP),
        ),
        WcStatus.REM_ACCESS_ERR,
    ),
}


def lacks_text(wr: SendWr) -> str | None:
    """Why iWARP does not have a request, or None."""
    if wr.opcode in _LACKS:
        return f"opcode: found {wr.opcode.name}, which the wire iWARP does not have; {_LACKS[wr.opcode]}"
    length = sum(sge.length for sge in wr.sg_list)
    if wr.opcode in _TO_MEMORY and wr.remote_addr + length > 1 << 64:
        return f"remote_addr: found {wr.remote_addr} and {length} bytes, which pass 2^64"
    return None


class StreamEntry(SendEntry):
    """A posted request on a stream.

    Attributes
    ----------
    end_position : in the stream, behind its last byte; None while bytes of it are missing
    token : names its response: the sink of a READ, the identifier of an atomic
    message : MSN of a READ or atomic
    is_done : its response has come
    is_internal : the start-up has made it, and nobody waits for its completion
    """

    def __init__(self, wr: SendWr, path_mtu: int, *, is_internal: bool = False) -> None:
        super().__init__(wr, path_mtu)
        self.end_position: int | None = None
        self.token = 0
        self.message = 0
        self.is_done = False
        self.is_internal: Final = is_internal


class IwarpRequester:
    """The send queue of a queue pair.

    Parameters
    ----------
    qp : whose

    Attributes
    ----------
    entries : requests in order of posting that have not ended
    """

    def __init__(self, qp: IwarpQueuePair) -> None:
        self._qp: Final = qp
        self.entries: deque[StreamEntry] = deque()
        self.start(0)

    def start(self, _first_psn: int) -> None:
        """Forget everything; a stream has no first PSN."""
        self.entries.clear()
        self._cursor = 0  # entries whose messages have begun
        self._asks: deque[StreamEntry] = deque()  # READs and atomics without a response
        self._sends = self._requests = 0  # messages so far, by queue
        self._sent_position = 0
        self._token = self._qp.host_bits(32)

    # Out

    def next_message(self) -> Iterator[Segment] | None:
        """Begin the next request; None if none may begin now."""
        qp = self._qp
        while self._cursor < len(self.entries) and qp.state is QpState.RTS:
            entry = self.entries[self._cursor]
            if entry.error is not None or (entry.is_fenced and self._asks):
                return None
            if entry.awaits_response and len(self._asks) >= qp.attr.max_rd_atomic:
                return None
            status = entry.local_error(QpType.RC)
            if status is None and not entry.find_memory(qp.memory, qp.pd):
                status = WcStatus.LOC_PROT_ERR
            if entry.packets == 0 and status is None:
                status = entry.execute_here(qp.memory, qp.pd, qp.qp_num)
                entry.is_done = status is WcStatus.SUCCESS
            if status is not None and status is not WcStatus.SUCCESS:
                entry.error = status  # told when those before it have ended
                self.complete()
                return None
            entry.first_psn = 0
            self._cursor += 1
            if entry.packets:
                return self._message(entry)
            self.complete()
        return None

    def _message(self, entry: StreamEntry) -> Iterator[Segment]:
        """Segments of a request; the last one notes where it ends in the stream."""
        wr = entry.wr
        if wr.opcode in _SENDS:
            yield from self._send(entry)
        elif entry.awaits_response:
            yield self._ask(entry)
        else:
            place = (wr.rkey, wr.remote_addr)
            most = self._qp.most_ulpdu_bytes
            yield from tagged_segments(RdmapOpcode.WRITE, place, entry.length, self._reader(entry), most)
            if wr.opcode is WrOpcode.RDMA_WRITE_WITH_IMM:
                opcode = RdmapOpcode.IMMEDIATE_SOLICITED if entry.is_solicited else RdmapOpcode.IMMEDIATE
                self._sends = next_number(self._sends)
                header = DdpUntagged(CONTROL[opcode], 0, RdmapQueue.SEND, self._sends)
                yield header.encode(), ImmediateMessage(wr.imm_data).encode()
        entry.end_position = self._qp.queued_position

    def _send(self, entry: StreamEntry) -> Iterator[Segment]:
        invalidates = entry.wr.opcode is WrOpcode.SEND_WITH_INV
        opcode = RdmapOpcode.SEND_INVALIDATE if invalidates else RdmapOpcode.SEND
        if entry.is_solicited:
            opcode = RdmapOpcode.SEND_SOLICITED_INVALIDATE if invalidates else RdmapOpcode.SEND_SOLICITED
        word = entry.wr.invalidate_rkey if invalidates else 0
        self._sends = next_number(self._sends)
        most = self._qp.most_ulpdu_bytes - UNTAGGED_BYTES
        for offset in range(0, max(1, entry.length), most):
            size_bytes = min(most, entry.length - offset)
            is_last = offset + size_bytes == entry.length
            header = DdpUntagged(CONTROL[opcode], word, RdmapQueue.SEND, self._sends, offset, is_last)
            yield header.encode(), *self._reader(entry)(offset, size_bytes)

    def _ask(self, entry: StreamEntry) -> Segment:
        wr = entry.wr
        self._requests = next_number(self._requests)
        self._token = (self._token + 1) % (1 << 32)
        entry.token, entry.message, entry.is_asked = self._token, self._requests, True
        self._asks.append(entry)
        opcode = RdmapOpcode.READ_REQUEST if entry.reads else RdmapOpcode.ATOMIC_REQUEST
        header = DdpUntagged(CONTROL[opcode], 0, RdmapQueue.READ_REQUEST, self._requests)
        if entry.reads:
            # The sink is no key of any memory: the response is placed by its request, and a WRITE to it is refused.
            return header.encode(), ReadRequest(entry.token, 0, entry.length, wr.rkey, wr.remote_addr).encode()
        swaps = wr.opcode is WrOpcode.ATOMIC_CMP_AND_SWP
        request = AtomicRequest(
            operation=AtomicOpcode.COMPARE_SWAP if swaps else AtomicOpcode.FETCH_ADD,
            request=entry.token,
            stag=wr.rkey,
            offset=wr.remote_addr,
            add_or_swap=wr.swap if swaps else wr.compare_add,
            add_or_swap_mask=_ONES64 if swaps else 0,
            compare=wr.compare_add if swaps else 0,
        )
        return header.encode(), request.encode()

    @staticmethod
    def _reader(entry: StreamEntry) -> SegmentReader:
        return (entry.data or Scatter([])).read

    def sent(self, position: int) -> None:
        """Note that the system has taken the stream up to a position."""
        self._sent_position = position
        self.complete()

    # In

    def take_read(self, header: DdpTagged, payload: memoryview) -> TerminateCode | None:
        """Take a segment of a READ response; the code if it is not the one that is due."""
        entry = self._asks[0] if self._asks else None
        if entry is None or not entry.reads or header.stag != entry.token or entry.data is None:
            return TerminateCode.DDP_INVALID_STAG
        end_bytes = entry.received + len(payload)
        if (
            header.offset != entry.received
            or end_bytes > entry.length
            or header.is_last is not (end_bytes == entry.length)
        ):
            return TerminateCode.DDP_BOUNDS
        if payload:
            entry.data.write(entry.received, payload)
        entry.received = end_bytes
        if header.is_last:
            self._answered(entry)
        return None

    def take_atomic(self, response: AtomicResponse) -> TerminateCode | None:
        """Take an atomic response; the code if it is not the one that is due."""
        entry = self._asks[0] if self._asks else None
        if entry is None or entry.wr.opcode not in ATOMICS or response.request != entry.token or entry.data is None:
            return TerminateCode.RDMAP_UNSPECIFIC
        entry.data.write(0, response.original.to_bytes(ATOMIC_BYTES, sys.byteorder))
        self._answered(entry)
        return None

    def _answered(self, entry: StreamEntry) -> None:
        self._asks.popleft()
        entry.is_done, entry.is_asked = True, False
        self.complete()

    def refused(self, terminate: Terminate) -> None:
        """End the request that the peer has refused; the others are flushed."""
        known = terminate.known
        status = WcStatus.REM_OP_ERR if known is None else _REFUSED.get(known, WcStatus.REM_OP_ERR)
        entry = self._refused_entry(terminate.ddp_header)
        if entry is not None:
            self._fail(entry, status)

    def _refused_entry(self, ddp_header: bytes) -> StreamEntry | None:
        """Request named by the header of a refused segment, unless it has ended."""
        if len(ddp_header) == TAGGED_BYTES:
            tagged, _ = DdpTagged.decode(ddp_header)
            going = [entry for entry in self._going() if entry.wr.opcode in _TO_MEMORY and not entry.reads]
            return next((entry for entry in going if entry.wr.rkey == tagged.stag), None)
        if len(ddp_header) != UNTAGGED_BYTES:
            return None
        untagged, _ = DdpUntagged.decode(ddp_header)
        if untagged.queue != RdmapQueue.READ_REQUEST:
            return next((entry for entry in self._going() if entry.wr.opcode in _SENDS), None)
        return next((entry for entry in self._asks if entry.message == untagged.message), None)

    def _going(self) -> list[StreamEntry]:
        return [entry for entry in self.entries if entry.first_psn >= 0]

    # Ends

    def complete(self) -> None:
        """End the oldest requests that are done."""
        while self.entries:
            entry = self.entries[0]
            if entry.error is not None:
                self._fail(entry, entry.error)
                return
            is_sent = entry.end_position is not None and entry.end_position <= self._sent_position
            if not (entry.is_done if entry.awaits_response or not entry.packets else is_sent):
                return
            self.entries.popleft()
            self._cursor -= 1
            self._tell(entry, WcStatus.SUCCESS)

    def _fail(self, entry: StreamEntry, status: WcStatus) -> None:
        while self.entries and self.entries[0] is not entry:
            self._tell(self.entries.popleft(), WcStatus.WR_FLUSH_ERR)
        self.entries.popleft()
        self._tell(entry, status)
        self._qp.went_wrong(QpEvent.SEND_FAILED)

    def flush(self) -> None:
        """End all requests, since the queue pair is in error."""
        while self.entries:
            self._tell(self.entries.popleft(), WcStatus.WR_FLUSH_ERR)
        self._cursor = 0
        self._asks.clear()

    def _tell(self, entry: StreamEntry, status: WcStatus) -> None:
        is_told = status is not WcStatus.SUCCESS or self._qp.sq_sig_all or entry.is_signaled
        if is_told and not entry.is_internal:
            byte_len = entry.length if entry.awaits_response else 0
            opcode = COMPLETES_AS[entry.wr.opcode]
            self._qp.complete_send(
                Wc(wr_id=entry.wr.wr_id, status=status, opcode=opcode, qp_num=self._qp.qp_num, byte_len=byte_len)
            )

    # What a queue pair asks of its requester

    def can_send(self) -> bool:
        """Whether a datagram waits: a stream has none."""
        return False

    def next_timer_ps(self) -> int | None:
        """Instant of a timer: TCP has them all."""
        return None
