"""Messages of the peer: placed, answered or refused.

TCP keeps their order, so each queue has one message at a time. A SEND without a posted receive is an error of DDP that
ends the stream: iWARP has no RNR, by which RoCE makes the peer wait.
Source: RFC 5041, 5 to 7 (placement and checks), RFC 5040, 5 and 6 (operations), RFC 7306 (atomics, immediate data).
Leaves out: the bytes of the stream, see `queue_pair`.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Final

from weftwork.rdma.iwarp.refusal import SegmentRefused, peer_memory
from weftwork.rdma.iwarp.segments import CONTROL, next_number, tagged_segments
from weftwork.rdma.receive_queue import Scatter
from weftwork.rdma.verbs import ATOMIC_BYTES, AccessFlags, RecvWr, Wc, WcOpcode, WcStatus
from weftwork.wire.ddp import DDP_VERSION, DdpTagged, DdpUntagged, decode_ddp
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.rdmap import (
    QUEUE_OF,
    RDMAP_VERSION,
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
    from weftwork.rdma.iwarp.segments import Segment

__all__ = ["IwarpResponder"]

_T = TerminateCode
_INVALIDATE: Final = frozenset({RdmapOpcode.SEND_INVALIDATE, RdmapOpcode.SEND_SOLICITED_INVALIDATE})
_SOLICITED: Final = frozenset(
    {RdmapOpcode.SEND_SOLICITED, RdmapOpcode.SEND_SOLICITED_INVALIDATE, RdmapOpcode.IMMEDIATE_SOLICITED}
)
_IMMEDIATE: Final = frozenset({RdmapOpcode.IMMEDIATE, RdmapOpcode.IMMEDIATE_SOLICITED})


class IwarpResponder:
    """Messages of the peer of one queue pair.

    Parameters
    ----------
    qp : whose
    """

    def __init__(self, qp: IwarpQueuePair) -> None:
        self._qp: Final = qp
        self._answers: deque[ReadRequest | AtomicResponse] = deque()
        self.start()

    def start(self) -> None:
        """Expect the first message of every queue."""
        self._expected: dict[int, int] = dict.fromkeys(RdmapQueue, 1)
        self._responses = 0  # atomic responses so far
        self._written_bytes = 0  # of the WRITE before immediate data
        self._write_is_open = False
        self._close()
        self._answers.clear()

    def _close(self) -> None:
        """Forget the arriving SEND."""
        self._receive: RecvWr | None = None
        self._target = Scatter([])
        self._opcode: int | None = None
        self._done_bytes = 0

    # In

    def take(self, segment: memoryview) -> None:
        """Take a segment.

        Raises
        ------
        SegmentRefused : it may not be; the stream ends
        """
        try:
            header, payload = decode_ddp(segment)
        except MalformedPacket:
            raise SegmentRefused(_T.MPA_FRAMING) from None
        is_tagged = isinstance(header, DdpTagged)
        if header.version != DDP_VERSION:
            raise SegmentRefused(_T.DDP_TAGGED_VERSION if is_tagged else _T.DDP_UNTAGGED_VERSION)
        if header.upper >> 6 != RDMAP_VERSION:
            raise SegmentRefused(_T.RDMAP_VERSION)
        opcode = header.upper & 0xF
        if isinstance(header, DdpTagged):
            self._take_tagged(opcode, header, payload)
        else:
            self._take_untagged(opcode, header, payload)

    def _take_tagged(self, opcode: int, header: DdpTagged, payload: memoryview) -> None:
        if opcode == RdmapOpcode.WRITE:
            target = peer_memory(self._qp, header.stag, header.offset, len(payload), AccessFlags.REMOTE_WRITE)
            if payload:
                target[:] = payload
            self._written_bytes = len(payload) + (self._written_bytes if self._write_is_open else 0)
            self._write_is_open = not header.is_last
        elif opcode == RdmapOpcode.READ_RESPONSE:
            code = self._qp.requester.take_read(header, payload)
            if code is not None:
                raise SegmentRefused(code)
        else:
            raise SegmentRefused(_T.RDMAP_UNEXPECTED_OPCODE)

    def _take_untagged(self, opcode: int, header: DdpUntagged, payload: memoryview) -> None:
        expected = self._expected.get(header.queue)
        if expected is None:
            raise SegmentRefused(_T.DDP_INVALID_QUEUE)
        if QUEUE_OF.get(opcode) != header.queue:
            raise SegmentRefused(_T.RDMAP_UNEXPECTED_OPCODE)
        if header.message != expected:
            raise SegmentRefused(_T.DDP_MESSAGE_NUMBER)
        is_send = header.queue == RdmapQueue.SEND
        if header.offset != (self._done_bytes if is_send else 0):
            raise SegmentRefused(_T.DDP_MESSAGE_OFFSET)
        if is_send and opcode not in _IMMEDIATE:
            self._take_send(opcode, header, payload)
        elif not header.is_last:  # the headers of all other messages fit one segment
            raise SegmentRefused(_T.DDP_TOO_LONG)
        else:
            self._take_whole(opcode, payload)
        if header.is_last:
            self._expected[header.queue] = next_number(expected)

    def _take_whole(self, opcode: int, payload: memoryview) -> None:
        """Take a message of one segment."""
        try:
            if opcode in _IMMEDIATE:
                message, rest = ImmediateMessage.decode(payload)
                self._take_immediate(opcode, message)
            elif opcode == RdmapOpcode.READ_REQUEST:
                read, rest = ReadRequest.decode(payload)
                self._take_read(read)
            elif opcode == RdmapOpcode.ATOMIC_REQUEST:
                atomic, rest = AtomicRequest.decode(payload)
                self._take_atomic(atomic)
            elif opcode == RdmapOpcode.ATOMIC_RESPONSE:
                response, rest = AtomicResponse.decode(payload)
                code = self._qp.requester.take_atomic(response)
                if code is not None:
                    raise SegmentRefused(code)
            else:
                terminate, rest = Terminate.decode(payload)
                self._qp.terminated(terminate)
        except MalformedPacket:
            raise SegmentRefused(_T.DDP_MESSAGE_OFFSET) from None
        if rest:
            raise SegmentRefused(_T.DDP_TOO_LONG)

    # Receives

    def _take_send(self, opcode: int, header: DdpUntagged, payload: memoryview) -> None:
        qp = self._qp
        if self._opcode is None:
            self._receive = self._next_receive()
            target = Scatter.of_receive(qp.memory, qp.pd, self._receive)
            if isinstance(target, WcStatus):
                raise self._failed(target, _T.LOCAL_CATASTROPHIC)
            self._target, self._opcode = target, opcode
        elif opcode != self._opcode:
            raise SegmentRefused(_T.RDMAP_UNEXPECTED_OPCODE)
        end_bytes = self._done_bytes + len(payload)
        if end_bytes > self._target.size_bytes:
            raise self._failed(WcStatus.LOC_LEN_ERR, _T.DDP_TOO_LONG)
        if payload:
            self._target.write(self._done_bytes, payload)
        self._done_bytes = end_bytes
        if not header.is_last:
            return
        key = header.upper_word if opcode in _INVALIDATE else None
        if key is not None and not qp.memory.invalidate(qp.pd, key, qp.qp_num):
            raise self._failed(WcStatus.MW_BIND_ERR, _T.RDMAP_CANNOT_INVALIDATE)
        self._complete(WcOpcode.RECV, end_bytes, key=key, solicited=opcode in _SOLICITED)

    def _take_immediate(self, opcode: int, message: ImmediateMessage) -> None:
        """Complete a receive, whose memory stays as it is (RFC 7306, 6)."""
        if self._opcode is not None:
            raise SegmentRefused(_T.RDMAP_UNEXPECTED_OPCODE)
        self._receive = self._next_receive()
        size_bytes, self._written_bytes = self._written_bytes, 0
        is_solicited = opcode in _SOLICITED
        self._complete(WcOpcode.RECV_RDMA_WITH_IMM, size_bytes, immediate=message.immediate, solicited=is_solicited)

    def _next_receive(self) -> RecvWr:
        found = self._qp.take_receive()
        if found is None:
            self._qp.counters["out_of_buffer"] += 1
            raise SegmentRefused(_T.DDP_NO_BUFFER)
        return found

    def _complete(
        self,
        opcode: WcOpcode,
        size_bytes: int,
        *,
        immediate: int | None = None,
        key: int | None = None,
        solicited: bool,
    ) -> None:
        if self._receive is not None:
            wc = Wc(
                wr_id=self._receive.wr_id,
                status=WcStatus.SUCCESS,
                opcode=opcode,
                qp_num=self._qp.qp_num,
                byte_len=size_bytes,
                imm_data=immediate,
                invalidated_rkey=key,
                solicited=solicited,
            )
            self._close()
            self._qp.complete_receive(wc)

    def _failed(self, status: WcStatus, code: TerminateCode) -> SegmentRefused:
        """End the receive of the arriving SEND with an error."""
        self._end_receive(status)
        return SegmentRefused(code)

    def _end_receive(self, status: WcStatus) -> None:
        if self._receive is not None:
            wr_id, self._receive = self._receive.wr_id, None
            self._qp.complete_receive(Wc(wr_id=wr_id, status=status, opcode=WcOpcode.RECV, qp_num=self._qp.qp_num))

    def flush(self) -> None:
        """Flush the receive of the arriving SEND, and forget the answers."""
        self._end_receive(WcStatus.WR_FLUSH_ERR)
        self._close()
        self._answers.clear()

    # Requests

    def _take_read(self, read: ReadRequest) -> None:
        self._check_room()
        if read.sink_offset + read.size_bytes > 1 << 64:
            raise SegmentRefused(_T.RDMAP_OFFSET_WRAP, has_request=True)
        self._source(read)
        self._answers.append(read)

    def _source(self, read: ReadRequest) -> memoryview:
        return peer_memory(self._qp, read.source_stag, read.source_offset, read.size_bytes, AccessFlags.REMOTE_READ)

    def _take_atomic(self, atomic: AtomicRequest) -> None:
        self._check_room()
        view = peer_memory(self._qp, atomic.stag, atomic.offset, ATOMIC_BYTES, AccessFlags.REMOTE_ATOMIC)
        if atomic.offset % ATOMIC_BYTES:
            raise SegmentRefused(_T.RDMAP_UNSPECIFIC, has_request=True)
        original = int.from_bytes(view, sys.byteorder)
        result = atomic.result(original)
        if result is None:
            raise SegmentRefused(_T.RDMAP_UNEXPECTED_OPCODE, has_request=True)
        view[:] = result.to_bytes(ATOMIC_BYTES, sys.byteorder)
        self._answers.append(AtomicResponse(atomic.request, original))

    def _check_room(self) -> None:
        """Refuse a request beyond the depth that was agreed on (IRD)."""
        if len(self._answers) >= self._qp.attr.max_dest_rd_atomic:
            raise SegmentRefused(_T.DDP_NO_BUFFER, has_request=True)

    # Out

    def next_message(self) -> Iterator[Segment] | None:
        """Begin the oldest answer, or None."""
        if not self._answers:
            return None
        answer = self._answers[0]
        return self._read_response(answer) if isinstance(answer, ReadRequest) else self._atomic_response(answer)

    def _read_response(self, read: ReadRequest) -> Iterator[Segment]:
        """Segments of a response; SegmentRefused where the memory is revoked meanwhile."""
        view, granted_at = self._source(read), self._qp.memory.revocations

        def part(offset: int, size_bytes: int) -> tuple[memoryview, ...]:
            nonlocal view, granted_at
            if granted_at != self._qp.memory.revocations:
                view, granted_at = self._source(read), self._qp.memory.revocations
            return (view[offset : offset + size_bytes],)

        place = (read.sink_stag, read.sink_offset)
        left_bytes = read.size_bytes
        for segment in tagged_segments(
            RdmapOpcode.READ_RESPONSE, place, read.size_bytes, part, self._qp.most_ulpdu_bytes
        ):
            left_bytes -= sum(map(len, segment[1:]))
            if left_bytes == 0:
                self._answers.popleft()  # the peer may ask again as soon as it has this segment
            yield segment

    def _atomic_response(self, response: AtomicResponse) -> Iterator[Segment]:
        self._answers.popleft()
        self._responses = next_number(self._responses)
        header = DdpUntagged(CONTROL[RdmapOpcode.ATOMIC_RESPONSE], 0, RdmapQueue.ATOMIC_RESPONSE, self._responses)
        yield header.encode(), response.encode()
