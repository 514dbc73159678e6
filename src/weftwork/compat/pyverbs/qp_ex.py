"""Queue pairs whose requests are built call by call.

Source: pyverbs, qp.pyx (names); libibverbs, ibv_wr_post(3).
Leaves out: segmentation offload; extended reliable connections.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from errno import EINVAL, ENOMEM
from typing import TYPE_CHECKING, Any, Final

from weftwork.compat.pyverbs.libibverbs_enums import ibv_qp_create_send_ops_flags, ibv_qp_init_attr_mask
from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError, not_supported, refused_as
from weftwork.compat.pyverbs.qp_attr import QPInitAttrEx
from weftwork.compat.pyverbs.queue_pair import QP
from weftwork.compat.pyverbs.wr import core_bind, core_flags
from weftwork.rdma.verbs import ATOMIC_BYTES, SendFlags, SendWr, Sge, WrOpcode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.compat.pyverbs.addr import AH
    from weftwork.compat.pyverbs.device import Context
    from weftwork.compat.pyverbs.mr import MW, MWBindInfo
    from weftwork.compat.pyverbs.pd import PD
    from weftwork.compat.pyverbs.qp_attr import DataBuffer, QPAttr, QPInitAttr
    from weftwork.compat.pyverbs.wr import SGE

__all__ = ["QPEx"]

_FAILED: Final = "ibv_wr_complete failed."
_E: Final = ibv_qp_create_send_ops_flags
_ALLOWS: Final = {
    WrOpcode.RDMA_WRITE: _E.IBV_QP_EX_WITH_RDMA_WRITE,
    WrOpcode.RDMA_WRITE_WITH_IMM: _E.IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
    WrOpcode.SEND: _E.IBV_QP_EX_WITH_SEND,
    WrOpcode.SEND_WITH_IMM: _E.IBV_QP_EX_WITH_SEND_WITH_IMM,
    WrOpcode.SEND_WITH_INV: _E.IBV_QP_EX_WITH_SEND_WITH_INV,
    WrOpcode.RDMA_READ: _E.IBV_QP_EX_WITH_RDMA_READ,
    WrOpcode.ATOMIC_CMP_AND_SWP: _E.IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
    WrOpcode.ATOMIC_FETCH_AND_ADD: _E.IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
    WrOpcode.LOCAL_INV: _E.IBV_QP_EX_WITH_LOCAL_INV,
    WrOpcode.BIND_MW: _E.IBV_QP_EX_WITH_BIND_MW,
    WrOpcode.FLUSH: _E.IBV_QP_EX_WITH_FLUSH,
    WrOpcode.ATOMIC_WRITE: _E.IBV_QP_EX_WITH_ATOMIC_WRITE,
}


class QPEx(QP):
    """A queue pair with a batch of requests.

    ``wr_start``, then for each request one operation and its setters, then ``wr_complete``. What is wrong is told by
    ``wr_complete``, which then posts none of them.

    Parameters
    ----------
    creator, init_attr, qp_attr : see `QP`

    Attributes
    ----------
    wr_id, wr_flags : of the next operation
    comp_mask : 0
    """

    def __init__(
        self, creator: PD | Context, init_attr: QPInitAttr | QPInitAttrEx, qp_attr: QPAttr | None = None
    ) -> None:
        is_extended = isinstance(init_attr, QPInitAttrEx) and bool(
            init_attr.comp_mask & ibv_qp_init_attr_mask.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
        )
        self._allowed = int(init_attr.send_ops_flags) if is_extended and isinstance(init_attr, QPInitAttrEx) else 0
        self.wr_id = 0
        self.wr_flags = 0
        self.comp_mask = 0
        self._batch: list[SendWr] | None = None
        self._mistake: str | None = None
        self._windows: list[MW] = []
        super().__init__(creator, init_attr, qp_attr)

    @property
    def ind_table(self) -> None:
        """Table of receive queues: none."""
        return

    # A batch

    def wr_start(self) -> None:
        """Begin a batch."""
        self._batch = []
        self._mistake = None

    def wr_abort(self) -> None:
        """Drop the batch."""
        self._batch = None

    def wr_complete(self) -> None:
        """Post the batch, all of it or nothing."""
        batch, self._batch = self._batch, None
        mistake = self._mistake if batch is not None else "no batch was begun"
        if batch is None or mistake is not None:
            raise PyverbsRDMAError(f"{_FAILED} ({mistake})", EINVAL)
        if len(self.pair.requester.entries) + len(batch) > max(1, self.cap.max_send_wr):
            raise PyverbsRDMAError(_FAILED, ENOMEM)
        with refused_as(_FAILED):
            self.nic.device.post_send(self.pair, *batch)

    def _add(self, opcode: WrOpcode, **values: Any) -> None:  # noqa: ANN401 - values of the request
        if self._batch is None:
            self._mistake = "no batch was begun"
            return
        if not self._allowed & _ALLOWS[opcode]:
            self._note(f"send_ops_flags: wanted {_ALLOWS[opcode].name}")
        self._batch.append(
            SendWr(wr_id=int(self.wr_id), opcode=opcode, flags=core_flags(self.wr_flags) & ~SendFlags.INLINE, **values)
        )

    def _set(self, **values: Any) -> None:  # noqa: ANN401 - values of the request
        if not self._batch:
            self._note("a setter without an operation")
            return
        self._batch[-1] = replace(self._batch[-1], **values)

    def _note(self, mistake: str) -> None:
        if self._mistake is None:
            self._mistake = mistake

    # Operations

    def wr_send(self) -> None:
        """Add a SEND."""
        self._add(WrOpcode.SEND)

    def wr_send_imm(self, data: int) -> None:
        """Add a SEND with immediate data, in the order of this machine."""
        self._add(WrOpcode.SEND_WITH_IMM, imm_data=int(data))

    def wr_send_inv(self, invalidate_rkey: int) -> None:
        """Add a SEND that invalidates a key of the peer."""
        self._add(WrOpcode.SEND_WITH_INV, invalidate_rkey=int(invalidate_rkey))

    def wr_send_tso(self, hdr: int, hdr_sz: int, mss: int) -> None:
        """Refuse: there is no segmentation offload."""
        raise not_supported(f"Segmentation offload (header at {hdr}, {hdr_sz} bytes, segments of {mss})")

    def wr_rdma_write(self, rkey: int, remote_addr: int) -> None:
        """Add a WRITE."""
        self._add(WrOpcode.RDMA_WRITE, rkey=int(rkey), remote_addr=int(remote_addr))

    def wr_rdma_write_imm(self, rkey: int, remote_addr: int, data: int) -> None:
        """Add a WRITE with immediate data, in the order of this machine."""
        self._add(WrOpcode.RDMA_WRITE_WITH_IMM, rkey=int(rkey), remote_addr=int(remote_addr), imm_data=int(data))

    def wr_rdma_read(self, rkey: int, remote_addr: int) -> None:
        """Add a READ."""
        self._add(WrOpcode.RDMA_READ, rkey=int(rkey), remote_addr=int(remote_addr))

    def wr_atomic_cmp_swp(self, rkey: int, remote_addr: int, compare: int, swap: int) -> None:
        """Add a compare-and-swap."""
        self._add(
            WrOpcode.ATOMIC_CMP_AND_SWP,
            rkey=int(rkey),
            remote_addr=int(remote_addr),
            compare_add=int(compare),
            swap=int(swap),
        )

    def wr_atomic_fetch_add(self, rkey: int, remote_addr: int, add: int) -> None:
        """Add a fetch-and-add."""
        self._add(WrOpcode.ATOMIC_FETCH_AND_ADD, rkey=int(rkey), remote_addr=int(remote_addr), compare_add=int(add))

    def wr_atomic_write(self, rkey: int, remote_addr: int, atomic_wr: bytes) -> None:
        """Add an atomic WRITE of 8 bytes."""
        if len(atomic_wr) < ATOMIC_BYTES:
            self._note(f"atomic_wr: found {len(atomic_wr)} bytes, wanted {ATOMIC_BYTES}")
        self._add(WrOpcode.ATOMIC_WRITE, rkey=int(rkey), remote_addr=int(remote_addr))
        self._set_inline(bytes(atomic_wr[:ATOMIC_BYTES]))

    def wr_flush(self, rkey: int, remote_addr: int, length: int, ptype: int, level: int) -> None:
        """Add a FLUSH: range, placement and selectivity."""
        self._add(
            WrOpcode.FLUSH,
            rkey=int(rkey),
            remote_addr=int(remote_addr),
            flush_bytes=int(length),
            flush_placement=int(ptype),
            flush_selectivity=int(level),
        )

    def wr_bind_mw(self, mw: MW, rkey: int, bind_info: MWBindInfo) -> None:
        """Add the binding of a window of type 2 under a new key."""
        self._add(WrOpcode.BIND_MW, rkey=int(rkey), window=mw.window, bind=core_bind(bind_info))
        self.add_ref(mw)

    def wr_local_inv(self, invalidate_rkey: int) -> None:
        """Add the invalidation of a key of this end."""
        self._add(WrOpcode.LOCAL_INV, invalidate_rkey=int(invalidate_rkey))

    # Setters

    def wr_set_ud_addr(self, ah: AH, remote_qpn: int, remote_rkey: int) -> None:
        """Set the receiver of a datagram; ``remote_rkey`` is its queue key."""
        self._set(ah=ah.handle, remote_qpn=int(remote_qpn), remote_qkey=int(remote_rkey))

    def wr_set_xrc_srqn(self, remote_srqn: int) -> None:
        """Refuse: there are no extended reliable connections."""
        raise not_supported(f"An XRC send to shared receive queue {remote_srqn}")

    def wr_set_sge(self, sge: SGE) -> None:
        """Set the one piece of memory."""
        self.wr_set_sge_list(1, [sge])

    def wr_set_sge_list(self, num_sge: int, sg_list: Sequence[SGE]) -> None:
        """Set pieces of memory."""
        if num_sge > self.cap.max_send_sge:
            self._note(f"num_sge: found {num_sge}, wanted at most {self.cap.max_send_sge}")
        pieces: tuple[Sge, ...] = tuple(sge.entry for sge in sg_list[:num_sge])
        self._set(sg_list=pieces)

    def wr_set_inline_data(self, addr: int, length: int) -> None:
        """Set memory that is copied now; it needs no region."""
        self._set_inline(ctypes.string_at(addr, length))

    def wr_set_inline_data_list(self, num_buf: int, buf_list: Sequence[DataBuffer]) -> None:
        """Set pieces of memory that are copied now."""
        self._set_inline(b"".join(ctypes.string_at(buf.addr, buf.length) for buf in buf_list[:num_buf]))

    def _set_inline(self, data: bytes) -> None:
        if self._batch:
            self._set(inline_data=data, flags=self._batch[-1].flags | SendFlags.INLINE)
        else:
            self._note("a setter without an operation")
