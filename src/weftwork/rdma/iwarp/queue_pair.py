"""A queue pair whose peer is reached by a TCP stream.

The verbs are those of its base. Here are the stream's two ends: bytes that arrive, and bytes to send. It does no I/O
and has no timers, since TCP repeats what is lost.
Source: RFC 5040 to 5044 and 7306; states as IBTA vol. 1, 10.3, since a stream that ends takes a queue pair to ERR.
Leaves out: how a stream begins, see `conversation`; unreliable services, which iWARP does not have.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import UsageError
from weftwork.rdma.iwarp.framing import FpduReader, FpduWriter
from weftwork.rdma.iwarp.refusal import SegmentRefused
from weftwork.rdma.iwarp.requests import IwarpRequester, StreamEntry, lacks_text
from weftwork.rdma.iwarp.responder import IwarpResponder
from weftwork.rdma.iwarp.setup import Rtr
from weftwork.rdma.queue_pair import RdmaQueuePair
from weftwork.rdma.states import PROCESSES_RECEIVES, QpEvent
from weftwork.rdma.verbs import QpState, SendWr, WrOpcode
from weftwork.wire.ddp import TAGGED_BYTES, UNTAGGED_BYTES, DdpUntagged
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.mpa import MpaCrcError, most_ulpdu_bytes
from weftwork.wire.rdmap import RdmapOpcode, RdmapQueue, Terminate, TerminateCode, rdmap_control

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weftwork.rdma.iwarp.nic import IwarpNic
    from weftwork.rdma.iwarp.segments import Segment
    from weftwork.rdma.iwarp.setup import StreamSetup
    from weftwork.rdma.verbs import QpAttr

__all__ = ["IwarpQueuePair"]

_AHEAD_BYTES: Final = 1 << 18  # chosen: framed and not yet taken by the system; a copy of as many bytes
_FEWEST_ULPDU_BYTES: Final = 128  # RFC 5044, 5.1: MULPDU is at least 128 bytes
_MOST_PIECES: Final = 64  # chosen: FPDUs of one system call; Linux takes 1,024 pieces (UIO_MAXIOV)
# Headers of a request that a Terminate repeats (RFC 5040, 4.8): those of a READ; of an atomic, as many as fit.
_REPEATED_BYTES: Final = 28


class IwarpQueuePair(RdmaQueuePair):
    """One end of a stream.

    Its parameters are those of its base.

    Attributes
    ----------
    most_ulpdu_bytes : largest segment of DDP
    queued_position : bytes of the stream that have been framed
    terminated_by : Terminate of the peer, or None
    refused : code of the Terminate that this end has sent, or None
    """

    def __init__(self, *args: Any, **more: Any) -> None:  # noqa: ANN401 - those of the base
        super().__init__(*args, **more)
        self._rc = None
        self.requester: IwarpRequester = IwarpRequester(self)  # type: ignore[assignment]
        self.responder: Final = IwarpResponder(self)
        self.most_ulpdu_bytes = _FEWEST_ULPDU_BYTES
        self.queued_position = 0
        self.terminated_by: Terminate | None = None
        self.refused: TerminateCode | None = None
        self._setup: StreamSetup | None = None
        self._reader = FpduReader(crc=True, markers=False)
        self._writer = FpduWriter(crc=True, markers=False)
        self._outgoing: deque[memoryview] = deque()
        self._outgoing_bytes = 0
        self._message: Iterator[Segment] | None = None
        self._has_heard = False
        self._is_over = False

    # The stream

    def open_stream(self, setup: StreamSetup, segment_bytes: int) -> None:
        """Begin full operation: from here on the stream has FPDUs.

        Parameters
        ----------
        setup : agreement of both ends
        segment_bytes : of a TCP segment (EMSS); an FPDU fits one
        """
        self._setup = setup
        self._reader = FpduReader(crc=setup.crc, markers=setup.receives_markers)
        self._writer = FpduWriter(crc=setup.crc, markers=setup.sends_markers)
        self.most_ulpdu_bytes = max(_FEWEST_ULPDU_BYTES, most_ulpdu_bytes(segment_bytes, markers=setup.sends_markers))
        self._has_heard = setup.is_initiator
        self._is_over = False
        if setup.is_initiator and setup.rtr is not None:
            opcode = WrOpcode.RDMA_WRITE if setup.rtr is Rtr.WRITE else WrOpcode.RDMA_READ
            ready = StreamEntry(SendWr(wr_id=0, opcode=opcode), self.attr.path_mtu, is_internal=True)
            self.requester.entries.appendleft(ready)

    @property
    def has_heard(self) -> bool:
        """Whether this end may send: it has asked, or has heard the peer (RFC 5044, 7.1.2)."""
        return self._has_heard

    @property
    def is_over(self) -> bool:
        """Whether nothing comes behind the bytes that have been framed."""
        return self._is_over or self.state is QpState.RESET  # it was destroyed

    @property
    def is_cut(self) -> bool:
        """Whether an FPDU has come in part."""
        return self._reader.held_bytes > 0

    def stream_received(self, data: memoryview | bytes) -> None:
        """Take bytes of the stream, in any pieces.

        Nothing is raised, whatever they are: what breaks the protocol ends the stream.
        """
        if self.state not in PROCESSES_RECEIVES or self._is_over:
            self.counters["not_accepted"] += 1
            return
        try:
            for segment in self._reader.feed(memoryview(data)):
                self._has_heard = True
                if not self._take(segment):
                    return
        except MpaCrcError:
            self._refuse(TerminateCode.MPA_CRC)
        except MalformedPacket:
            self._refuse(TerminateCode.MPA_FRAMING)
        self.host.wake(self)

    def _take(self, segment: memoryview) -> bool:
        """Take a segment; False if it ends the stream."""
        try:
            self.responder.take(segment)
        except SegmentRefused as refusal:
            if len(segment) > 1 and segment[1] & 0xF == RdmapOpcode.TERMINATE and not segment[0] >> 7:
                self._end(refusal.code)  # RFC 5040, 7.2: a Terminate is not answered
                return False
            is_tagged = len(segment) > 0 and segment[0] >> 7 == 1
            header_bytes = TAGGED_BYTES if is_tagged else UNTAGGED_BYTES
            if len(segment) < header_bytes:
                header_bytes = 0
            behind = bytes(segment[header_bytes : header_bytes + _REPEATED_BYTES]) if refusal.has_request else b""
            self._refuse(refusal.code, bytes(segment[:header_bytes]), behind, len(segment))
        return not self._is_over

    def stream_ended(self, *, is_lost: bool = False) -> None:
        """Note that no more bytes come: the peer has closed, or the connection is lost."""
        if self.state not in PROCESSES_RECEIVES or self._is_over:
            return
        if is_lost or self.is_cut:
            self.counters["stream_lost"] += 1
            self.refused = TerminateCode.MPA_STREAM_LOST
        self._is_over = True
        if is_lost:
            self._forget_outgoing()
        self.went_wrong(QpEvent.RECEIVE_FAILED)

    def settle(self) -> None:
        """Flush what an overrun completion queue has left, and end the stream."""
        if self._owes_flush:
            self._owes_flush = False
            self._is_over = True
            self.flush()

    def bytes_to_send(self) -> list[memoryview]:
        """Bytes that the system may take now; they stay until `bytes_sent`."""
        self.settle()
        while self._outgoing_bytes < _AHEAD_BYTES and self._frame_next():
            pass
        self._tell_if_drained()
        return [self._outgoing[place] for place in range(min(_MOST_PIECES, len(self._outgoing)))]

    def bytes_sent(self, count: int) -> None:
        """Note that the system has taken the first bytes of `bytes_to_send`."""
        self._outgoing_bytes -= count
        while count:
            first = self._outgoing[0]
            if count < len(first):
                self._outgoing[0] = first[count:]
                break
            count -= len(first)
            self._outgoing.popleft()
        self.requester.sent(self.queued_position - self._outgoing_bytes)

    def _frame_next(self) -> bool:
        """Frame one segment; False if there is none."""
        if self._is_over or self._setup is None or self.state not in {QpState.RTS, QpState.SQD}:
            return False
        if not self._has_heard:
            return False
        if self._message is None:
            self._message = self.responder.next_message() or self.requester.next_message()
            if self._message is None:
                return False
        try:
            segment = next(self._message, None)
        except SegmentRefused as refusal:
            self._refuse(refusal.code)
            return False
        if segment is None:
            self._message = None
            self.requester.complete()
            return not self._is_over
        self._queue(segment)
        return True

    def _queue(self, segment: Segment) -> None:
        framed = self._writer.frame(segment)
        self._outgoing.append(memoryview(framed))
        self._outgoing_bytes += len(framed)
        self.queued_position += len(framed)

    def _forget_outgoing(self) -> None:
        self._outgoing.clear()
        self._outgoing_bytes = 0

    # Ends of the stream

    def terminated(self, terminate: Terminate) -> None:
        """Take a Terminate of the peer."""
        self.counters["rx_terminate"] += 1
        self.terminated_by = terminate
        self._is_over = True
        self.requester.refused(terminate)
        if self.state is not QpState.ERR:
            self.went_wrong(QpEvent.RECEIVE_FAILED)

    def refuse_setup(self, code: TerminateCode) -> None:
        """End a stream whose start-up has agreed on nothing that works here."""
        self._refuse(code)

    def _refuse(
        self, code: TerminateCode, ddp_header: bytes = b"", rdmap_header: bytes = b"", segment_bytes: int | None = None
    ) -> None:
        """Send a Terminate, and end."""
        if self._is_over:
            return
        body = Terminate.of(code, segment_bytes if ddp_header else None, ddp_header, rdmap_header)
        header = DdpUntagged(rdmap_control(RdmapOpcode.TERMINATE), 0, RdmapQueue.TERMINATE, 1)
        self._queue((header.encode(), body.encode()))
        self.counters["tx_terminate"] += 1
        self._end(code)

    def _end(self, code: TerminateCode) -> None:
        self.refused = code
        self._is_over = True
        self.counters[f"refused_{code.name.lower()}"] += 1
        self.went_wrong(QpEvent.RECEIVE_FAILED)

    def went_wrong(self, event: QpEvent) -> None:
        """Go to ERR, flush, and end the stream."""
        if event is QpEvent.SEND_FAILED and not self._is_over and self._setup is not None:
            self._refuse(TerminateCode.LOCAL_CATASTROPHIC)
            return
        super().went_wrong(event)
        self.host.wake(self)

    # Verbs

    def modify(self, state: QpState, attr: QpAttr | None = None) -> None:
        """Change the state; see `RdmaQueuePair.modify`.

        Raises
        ------
        UsageError : also for RTR without a stream, which the connection manager opens
        """
        if state is QpState.RTR and self._setup is None:
            raise UsageError("state: found no stream to the peer, wanted a connection by listen or connect")
        super().modify(state, attr)

    def _enter(self, state: QpState, before: QpState) -> None:
        if state is QpState.RESET:
            self.requester.start(0)
            self.responder.start()
            self._message = None
            self._is_over = True
            self._setup = None
            if not self.recv_queue.is_shared:
                self.recv_queue.clear()
        elif state is QpState.ERR:
            self._is_over = True
            self.flush()
        del before  # a stream has no PSNs to start from

    def _entry(self, wr: SendWr) -> StreamEntry:
        return StreamEntry(wr, self.attr.path_mtu)

    def _post(self, wr: SendWr) -> None:
        text = lacks_text(wr)
        if text is not None:
            raise UsageError(text)
        super()._post(wr)

    def flush(self) -> None:
        """End all posted work."""
        self._message = None
        self.responder.flush()
        super().flush()

    # For its halves

    def host_bits(self, bits: int) -> int:
        """Draw a random number of this many bits."""
        host: IwarpNic = self.host  # type: ignore[assignment]
        return host.random_bits(bits)
