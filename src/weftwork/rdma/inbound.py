"""Arriving messages of a connection.

A SEND goes into posted receives, a WRITE into registered memory.
Source: IBTA vol. 1, 9.7.4.1 (checks of the responder) and 9.9.3 (its errors).
Leaves out: PSNs, ACKs and what is done about an error, see `responder` and `unreliable`.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from weftwork.rdma.receive_queue import Scatter
from weftwork.rdma.trains import copy_payloads
from weftwork.rdma.verbs import AccessFlags, QpType, RecvWr, Wc, WcOpcode, WcStatus
from weftwork.wire.extended import Ieth, ImmediateData, Reth
from weftwork.wire.opcodes import Opcode, OpcodeShape, Position

if TYPE_CHECKING:
    from weftwork.rdma.queue_pair import RdmaQueuePair

__all__ = ["COUNTED_AS", "InboundMessages", "InboundResult"]


class InboundResult(Enum):
    """Result of taking a packet."""

    TAKEN = "taken"
    NO_RECEIVE = "no receive is posted"  # nothing has changed
    INVALID = "invalid request"
    TOO_LONG = "longer than its receive"
    NO_ACCESS = "remote access error"
    FAILED_HERE = "remote operational error"


# Names of mlx5 where it has them (NVIDIA, "Understanding mlx5 Linux counters").
COUNTED_AS: Final = {
    InboundResult.NO_RECEIVE: "out_of_buffer",
    InboundResult.INVALID: "resp_invalid_request",
    InboundResult.TOO_LONG: "resp_local_length_error",
    InboundResult.NO_ACCESS: "resp_remote_access_errors",
    InboundResult.FAILED_HERE: "resp_local_protection_error",
}
_WRITE_OPERATIONS: Final = range(Opcode.WRITE_FIRST, Opcode.WRITE_ONLY_IMMEDIATE + 1)


class InboundMessages:
    """The message that is arriving at a queue pair, if any.

    Attributes
    ----------
    is_open : its last packet has not come yet
    completed : messages so far
    """

    def __init__(self, qp: RdmaQueuePair) -> None:
        self._qp: Final = qp
        self.completed = 0
        self._receive: RecvWr | None = None
        self._target = Scatter([])
        self._reth: Reth | None = None
        self._granted_at = 0  # revocations of the memory when the target was found
        self.close()

    def close(self) -> None:
        """Forget the arriving message; its receive stays for the next message."""
        self.is_open = False
        self._is_write = False
        self._length = 0
        self._done_bytes = 0

    def take(self, shape: OpcodeShape, body: memoryview, *, solicited: bool) -> InboundResult:
        """Take the next packet in order.

        Parameters
        ----------
        shape : of its opcode, a SEND or WRITE
        body : extended headers and payload, without padding
        solicited : the sender asks for an event
        """
        is_write = shape.operation in _WRITE_OPERATIONS
        if shape.starts_message == self.is_open or (self.is_open and is_write is not self._is_write):
            return InboundResult.INVALID
        reth: Reth | None = None
        immediate = key = None
        for header in shape.headers:
            if header is Reth:
                reth, body = Reth.decode(body)
            elif header is ImmediateData:
                decoded, body = ImmediateData.decode(body)
                immediate = decoded.immediate
            elif header is Ieth:
                invalidated, body = Ieth.decode(body)
                key = invalidated.remote_key
        done_bytes = 0 if shape.starts_message else self._done_bytes
        if not self._has_right_size(shape, len(body), done_bytes, reth):
            return InboundResult.INVALID
        needs_receive = (shape.starts_message and not is_write) or (is_write and immediate is not None)
        if needs_receive and self._receive is None:
            self._receive = self._qp.take_receive()
            if self._receive is None:
                return InboundResult.NO_RECEIVE
        if shape.starts_message:
            self._reth = reth
            refused = self._find_target()
            if refused is not None:
                return refused
            self.is_open, self._is_write, self._done_bytes = True, is_write, 0
        elif self._granted_at != self._qp.memory.revocations:  # the key may have gone while the message arrives
            refused = self._find_target()
            if refused is not None:
                return refused
        end_bytes = self._done_bytes + len(body)
        if end_bytes > self._target.size_bytes:
            if (
                self._qp.qp_type is not QpType.RC
            ):  # dropped; the receive is for the next one (IBTA vol. 1, 9.9.3, class D)
                return InboundResult.TOO_LONG
            return self._fail_receive(WcStatus.LOC_LEN_ERR, InboundResult.TOO_LONG)
        if body:
            self._target.write(self._done_bytes, body)
        self._done_bytes = end_bytes
        return self._end(immediate, key, solicited=solicited) if shape.ends_message else InboundResult.TAKEN

    def middle_packets(self, operation: int) -> int:
        """Number of full middle packets that can be taken together.

        They are of the message that is arriving.
        """
        is_write = operation in _WRITE_OPERATIONS
        if not self.is_open or is_write is not self._is_write or len(self._target.pieces) != 1:
            return 0
        if self._granted_at != self._qp.memory.revocations:
            return 0  # the next packet finds out whether the key still holds
        # Behind the middle of a WRITE its last packet has to follow; a SEND is checked by what its receive holds.
        end_bytes = self._length - 1 if is_write else self._target.size_bytes
        return (end_bytes - self._done_bytes) // self._qp.attr.path_mtu

    def take_middle(self, payload: memoryview, segment_bytes: int, count: int) -> None:
        """Take packets that `middle_packets` admits."""
        end_bytes = self._done_bytes + count * self._qp.attr.path_mtu
        copy_payloads(payload, segment_bytes, count, self._target.pieces[0][self._done_bytes : end_bytes])
        self._done_bytes = end_bytes

    def flush(self) -> None:
        """Flush the receive of the arriving message."""
        if self._receive is not None:
            self._fail_receive(WcStatus.WR_FLUSH_ERR, InboundResult.INVALID)
        self.close()

    def _has_right_size(self, shape: OpcodeShape, size_bytes: int, done_bytes: int, reth: Reth | None) -> bool:
        mtu = self._qp.attr.path_mtu
        if shape.position in {Position.FIRST, Position.MIDDLE}:
            fits = size_bytes == mtu
        else:
            fits = size_bytes <= mtu and (size_bytes > 0 or shape.position is Position.ONLY)
        is_write = shape.operation in _WRITE_OPERATIONS
        if not fits or not is_write:
            return fits
        length = reth.dma_bytes if reth is not None else self._length
        end_bytes = done_bytes + size_bytes
        return end_bytes == length if shape.ends_message else end_bytes < length

    def _find_target(self) -> InboundResult | None:
        self._granted_at = self._qp.memory.revocations
        return self._start_write(self._reth) if self._reth is not None else self._start_send()

    def _start_send(self) -> InboundResult | None:
        if self._receive is None:
            return InboundResult.NO_RECEIVE
        target = Scatter.of_receive(self._qp.memory, self._qp.pd, self._receive)
        if isinstance(target, WcStatus):
            return self._fail_receive(target, InboundResult.FAILED_HERE)
        self._target = target
        return None

    def _start_write(self, reth: Reth) -> InboundResult | None:
        qp = self._qp
        if not int(qp.attr.qp_access_flags) & AccessFlags.REMOTE_WRITE.value:
            return InboundResult.INVALID
        view: memoryview | None = memoryview(b"")
        if reth.dma_bytes:  # of nothing, neither key nor address is checked (IBTA vol. 1, 9.4.1.1)
            view = qp.memory.remote(
                qp.pd, reth.remote_key, reth.virtual_address, reth.dma_bytes, AccessFlags.REMOTE_WRITE, qp.qp_num
            )
        if view is None:
            return InboundResult.NO_ACCESS
        self._target = Scatter([view])
        self._length = reth.dma_bytes
        return None

    def _end(self, immediate: int | None, key: int | None, *, solicited: bool) -> InboundResult:
        if key is not None and not self._qp.memory.invalidate(self._qp.pd, key, self._qp.qp_num):
            return self._fail_receive(WcStatus.MW_BIND_ERR, InboundResult.NO_ACCESS)
        # a WRITE alone leaves the receive that a dropped message has begun (IBTA vol. 1, 9.8.2)
        if self._receive is not None and (immediate is not None or not self._is_write):
            wc = Wc(
                wr_id=self._receive.wr_id,
                status=WcStatus.SUCCESS,
                opcode=WcOpcode.RECV_RDMA_WITH_IMM if self._is_write else WcOpcode.RECV,
                qp_num=self._qp.qp_num,
                byte_len=self._done_bytes,
                imm_data=immediate,
                invalidated_rkey=key,
                solicited=solicited,
            )
            self._receive = None
            self._qp.complete_receive(wc)
        self.close()
        self.completed += 1
        return InboundResult.TAKEN

    def _fail_receive(self, status: WcStatus, result: InboundResult) -> InboundResult:
        if self._receive is not None:
            wr_id, self._receive = self._receive.wr_id, None
            self._qp.complete_receive(Wc(wr_id=wr_id, status=status, opcode=WcOpcode.RECV, qp_num=self._qp.qp_num))
        return result
