"""Connections, with WRITE, READ, SEND and atomics by one call each.

A connection is asked for and accepted here too. Whatever takes time gives a `Work`, which asyncio awaits and a thread
waits for. Each connection has a protection domain of its own: a key of one peer is worth nothing to another.
Source: rdma-core librdmacm (rdma_listen, rdma_get_request, rdma_accept, rdma_connect) and libibverbs.
Leaves out: unconnected services, shared receive queues and windows, which the verbs of `device` have.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections import deque
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from weftwork.base.errors import PeerError, UsageError
from weftwork.base.grammar import plural
from weftwork.rdma.cm_records import CmEventType, CmRejReason, ConnParam
from weftwork.rdma.cm_states import PENDING, CmState
from weftwork.rdma.region import LocalRange
from weftwork.rdma.verbs import (
    ATOMIC_BYTES,
    AccessFlags,
    QpState,
    QpType,
    RecvWr,
    SendFlags,
    SendWr,
    WcStatus,
    WrOpcode,
)
from weftwork.rdma.work import Work, WorkError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from weftwork.rdma.cm_id import CmId
    from weftwork.rdma.cm_records import CmEvent
    from weftwork.rdma.device import RdmaDevice
    from weftwork.rdma.memory import WritableBuffer
    from weftwork.rdma.region import RemoteRange
    from weftwork.rdma.verbs import Wc

__all__ = ["PEER_MAY", "RdmaConnection"]

PEER_MAY: Final = (
    AccessFlags.REMOTE_WRITE
    | AccessFlags.REMOTE_READ
    | AccessFlags.REMOTE_ATOMIC
    | AccessFlags.FLUSH_GLOBAL
    | AccessFlags.FLUSH_PERSISTENT
)  # of the queue pair; what the peer may do to memory is said by each region
_RECEIVES: Final = 256  # chosen: that may be posted at a time
_ATOMICS: Final = 128  # chosen: results on their way, as many as a queue pair has at most
_ENDS: Final = frozenset(
    {CmEventType.CONNECT_ERROR, CmEventType.UNREACHABLE, CmEventType.REJECTED, CmEventType.DISCONNECTED}
)


class RdmaConnection:
    """One end of a reliable connection.

    Parameters
    ----------
    device : whose
    remote_address : of the peer, 4 or 16 bytes in network order
    cm_id : conversation that a request has begun; None at the end that asks

    Attributes
    ----------
    private_data : what the peer sent with its request or its acceptance, filled with zeros
    qp, pd, cq : objects of the verbs
    closed : done when the connection has ended, by either end
    """

    def __init__(self, device: RdmaDevice, remote_address: bytes, cm_id: CmId | None = None) -> None:
        self.device: Final = device
        self.remote_address: Final = str(ipaddress.ip_address(remote_address))
        self.private_data = b""
        self.pd: Final = device.alloc_pd()
        # All requests and receives may end at once, when the connection does.
        self.cq: Final = device.create_cq(min(device.nic.limits.max_qp_wr + _RECEIVES, device.nic.limits.max_cqe))
        try:
            self.qp: Final = device.create_qp(
                self.pd, QpType.RC, (self.cq, self.cq), max_recv_wr=_RECEIVES, sq_sig_all=True
            )
        except UsageError:
            device.destroy_cq(self.cq)
            raise
        device.modify_qp(self.qp, QpState.INIT)  # so that receives can be posted before the peer sends
        device.on_completion(self.cq, self._collect)
        self.cm_id = cm_id
        self.established: Final[Work[RdmaConnection]] = Work(device)
        self.closed: Final[Work[None]] = Work(device)
        self._works: Final[dict[int, tuple[Work[Any], Callable[[Wc], Any]]]] = {}
        self._numbers: Final = itertools.count()
        self._regions: Final[list[LocalRange]] = []
        self._results: LocalRange | None = None
        self._values: Final = np.zeros(_ATOMICS, np.uint64)
        self._free: Final = deque(range(_ATOMICS))
        self._is_closed = False
        device.on_close(self, self.close)

    # Memory

    def reg_mr(self, buffer: WritableBuffer, access: AccessFlags = AccessFlags.LOCAL_WRITE) -> LocalRange:
        """Register a buffer of this process without a copy.

        Parameters
        ----------
        buffer : NumPy array, bytearray, mmap, ...: writable bytes in one piece
        access : what the peer may do; nothing unless told otherwise
        """
        with self.device.lock:
            self._check_open()
            mr = self.device.reg_mr(self.pd, buffer, access | AccessFlags.LOCAL_WRITE)
            region = LocalRange(mr, mr.addr, mr.length)
            self._regions.append(region)
        return region

    def dereg_mr(self, region: LocalRange) -> None:
        """Forget a buffer; its keys become invalid."""
        self.device.dereg_mr(region.mr)
        self._regions[:] = [other for other in self._regions if other.mr is not region.mr]

    # Requests

    def write(self, local: LocalRange, remote: RemoteRange, imm_data: int | None = None) -> Work[Wc]:
        """RDMA WRITE: put local bytes into memory of the peer.

        Parameters
        ----------
        local : bytes to send
        remote : where to; as many bytes at least
        imm_data : 32 bits, which complete a receive of the peer; None completes nothing there
        """
        _check_room("write", local.length, remote.length)
        opcode = WrOpcode.RDMA_WRITE if imm_data is None else WrOpcode.RDMA_WRITE_WITH_IMM
        return self._post(opcode, local, remote, _whole, imm_data=imm_data or 0)

    def read(self, local: LocalRange, remote: RemoteRange) -> Work[Wc]:
        """RDMA READ: get bytes of the peer's memory.

        It gets as many bytes as ``local`` has.
        """
        _check_room("read", local.length, remote.length)
        return self._post(WrOpcode.RDMA_READ, local, remote, _whole)

    def send(self, local: LocalRange, imm_data: int | None = None) -> Work[Wc]:
        """SEND: put bytes into the peer's oldest receive.

        It waits for a receive to be posted.
        """
        opcode = WrOpcode.SEND if imm_data is None else WrOpcode.SEND_WITH_IMM
        return self._post(opcode, local, None, _whole, imm_data=imm_data or 0)

    def recv(self, local: LocalRange) -> Work[Wc]:
        """Post a receive; the result has ``byte_len`` and ``imm_data``."""
        work: Work[Wc] = Work(self.device)
        with self.device.lock:
            number = next(self._numbers)
            self._works[number] = (work, _whole)
            try:
                self.device.post_recv(self.qp, RecvWr(wr_id=number, sg_list=(local.sge,)))
            except UsageError:
                del self._works[number]
                raise
        return work

    def fetch_add(self, remote: RemoteRange, value: int) -> Work[int]:
        """Add to 8 aligned bytes of the peer, modulo 2^64.

        The result is their value before.
        """
        return self._atomic(WrOpcode.ATOMIC_FETCH_AND_ADD, remote, compare_add=value % (1 << 64))

    def cmp_swap(self, remote: RemoteRange, compare: int, swap: int) -> Work[int]:
        """Set 8 aligned bytes of the peer to ``swap`` if equal to ``compare``.

        The result is their value before.
        """
        return self._atomic(WrOpcode.ATOMIC_CMP_AND_SWP, remote, compare_add=compare % (1 << 64), swap=swap % (1 << 64))

    def flush(self, remote: RemoteRange) -> Work[Wc]:
        """FLUSH: make earlier WRITEs to the range visible to the peer's programs.

        It is done when they are visible.
        """
        return self._post(WrOpcode.FLUSH, None, remote, _whole, flush_bytes=remote.length)

    def atomic_write(self, local: LocalRange, remote: RemoteRange) -> Work[Wc]:
        """ATOMIC WRITE: put 8 bytes into 8 aligned bytes of the peer.

        Readers see all bytes at once.
        """
        return self._post(WrOpcode.ATOMIC_WRITE, local[:ATOMIC_BYTES], remote, _whole)

    def _atomic(self, opcode: WrOpcode, remote: RemoteRange, **operands: int) -> Work[int]:
        _check_room(opcode.name, ATOMIC_BYTES, remote.length)
        with self.device.lock:
            self._check_open()
            if self._results is None:
                self._results = self.reg_mr(self._values)
            if not self._free:
                raise UsageError(f"atomics: found {_ATOMICS} on their way, which is the most")
            slot = self._free.popleft()
            at = slot * ATOMIC_BYTES

            def value(_: Wc) -> int:
                self._free.append(slot)
                return int(self._values[slot])

            try:
                return self._post(opcode, self._results[at : at + ATOMIC_BYTES], remote, value, **operands)
            except UsageError:
                self._free.append(slot)
                raise

    def _post(
        self,
        opcode: WrOpcode,
        local: LocalRange | None,
        remote: RemoteRange | None,
        convert: Callable[[Wc], Any],
        **more: int,
    ) -> Work[Any]:
        """Post a request whose completion becomes a result."""
        work: Work[Any] = Work(self.device)
        with self.device.lock:
            number = next(self._numbers)
            request = SendWr(
                wr_id=number,
                opcode=opcode,
                sg_list=(local.sge,) if local is not None else (),
                flags=SendFlags.SIGNALED,
                remote_addr=remote.addr if remote is not None else 0,
                rkey=remote.rkey if remote is not None else 0,
                **more,  # type: ignore[arg-type]
            )
            self._works[number] = (work, convert)
            try:
                self.device.post_send(self.qp, request)
            except UsageError:
                del self._works[number]
                raise
        return work

    def _collect(self) -> None:
        """Hand completions to their waiting results.

        Completions of requests that the verbs have posted are dropped.
        """
        for wc in self.cq.poll(len(self.cq)):
            if wc.wr_id not in self._works:
                continue
            work, convert = self._works.pop(wc.wr_id)
            result = convert(wc)
            if wc.status is WcStatus.SUCCESS:
                work.succeed(result)
            else:
                is_silent = wc.status is WcStatus.RETRY_EXC_ERR
                work.fail(WorkError(wc, self.device.port_error(is_silent=is_silent)))

    # The connection

    def accept(self, private_data: bytes = b"", *, selective_repeat: bool = False) -> Work[RdmaConnection]:
        """Accept a request.

        Parameters
        ----------
        private_data : for the peer, at most 196 bytes
        selective_repeat : repeat lost packets alone, where the peer wants so too

        Returns
        -------
        this connection, when it is established

        Raises
        ------
        UsageError : nobody asks any more, or this end has asked
        """
        with self.device.lock:
            self._request().accept(self.qp, _param(private_data, selective_repeat=selective_repeat))
            self.device.kick()
        return self.established

    def reject(self, private_data: bytes = b"") -> None:
        """Refuse a request, with at most 148 bytes for the peer.

        It closes the connection.
        """
        with self.device.lock:
            self._request().reject(private_data)
            self.device.kick()
            self._end(PeerError("the request was refused here"))
            self.close()

    def _request(self) -> CmId:
        if self.cm_id is None or self.cm_id.is_active:
            raise UsageError("connection: found one that this end has asked for, wanted a request of the peer")
        return self.cm_id

    def disconnect(self) -> Work[None]:
        """End the connection; pending work ends with WR_FLUSH_ERR."""
        with self.device.lock:
            if self.cm_id is None or self.closed.is_done:
                self._end(PeerError("the connection was closed here"))
            elif self.cm_id.state in PENDING:
                self.reject()
            else:
                self.cm_id.disconnect()
                self.device.kick()
                if self.cm_id.state is not CmState.DREQ_SENT:
                    self._end(PeerError("the connection was closed here"))
        return self.closed

    def take(self, event: CmEvent) -> None:
        """Take an event of the conversation."""
        if event.event_type is CmEventType.ESTABLISHED:
            self.private_data = event.private_data or self.private_data
            self.established.succeed(self)
        elif event.event_type in _ENDS:
            was_established = self.established.is_done
            self._end(PeerError(self._why(event)))
            if not was_established:
                self.close()  # nobody has it

    def _why(self, event: CmEvent) -> str:
        text = f"{self.remote_address}: {event.event_type.value}"
        if event.event_type is CmEventType.REJECTED:
            known = {int(reason): reason.name for reason in CmRejReason}
            text += f" ({known.get(event.status, event.status)})"
            if event.status == CmRejReason.INVALID_SERVICE_ID:
                text += "; nobody listens on this port"
        elif event.event_type is CmEventType.UNREACHABLE:
            text += "; check the address, that a program listens there, and that packets pass (RoCEv2: UDP port 4791)"
            wrong = self.device.nic.counters["rx_icrc_encapsulated"]
            if wrong and ":" not in self.remote_address:
                text += (
                    f". {plural(wrong, 'packet')} came with a wrong ICRC; if the peer numbers its IPv4 packets, as rxe "
                    "of Linux does, use RdmaDevice(address, checks_identification=True)"
                )
        more = self.device.port_error(is_silent=event.event_type is CmEventType.UNREACHABLE)
        return ". ".join(part for part in (text, more) if part)

    def _end(self, error: PeerError) -> None:
        self.established.fail(error)
        self.closed.succeed(None)

    def close(self) -> None:
        """Release the connection's objects and the registration of its buffers.

        Work on its way ends with WR_FLUSH_ERR. The peer is told; `disconnect` before also waits until it has heard.
        """
        with self.device.lock:
            if self._is_closed:
                return
            self._is_closed = True
            self.device.on_close(self, None)
            if not self.device.is_closed:
                self.disconnect()
            if self.qp.state is not QpState.RESET:
                self.qp.modify(QpState.ERR)
            self._collect()
            self.device.on_completion(self.cq, None)
            self.device.destroy_qp(self.qp)
            self.device.destroy_cq(self.cq)
            for region in self._regions:
                self.device.dereg_mr(region.mr)
            self._regions.clear()
            self._end(PeerError("the connection was closed here"))

    def _check_open(self) -> None:
        if self._is_closed:
            raise UsageError("connection: found it closed, wanted it open")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.disconnect().wait()
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.disconnect()
        self.close()


def _whole(wc: Wc) -> Wc:
    return wc


def _check_room(what: str, local_bytes: int, remote_bytes: int) -> None:
    if local_bytes > remote_bytes:
        raise UsageError(f"{what}: found {local_bytes} local bytes for {remote_bytes} of the peer; take a part of them")


def _param(private_data: bytes, *, selective_repeat: bool) -> ConnParam:
    return ConnParam(private_data=private_data, qp_access_flags=PEER_MAY, selective_repeat=selective_repeat)
