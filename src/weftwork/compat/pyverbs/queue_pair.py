"""Queue pairs.

Source: pyverbs, qp.pyx (names); IBTA vol. 1, 10.3.1 and 11.2.5; libibverbs, ibv_modify_qp(3).
Leaves out: extended reliable connections, raw packets, path migration, rate limits.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from errno import EINVAL
from typing import TYPE_CHECKING, Any, Final

from weftwork.compat.pyverbs.base import NicObject, close_orphans
from weftwork.compat.pyverbs.device import Context
from weftwork.compat.pyverbs.libibverbs_enums import (
    ibv_mtu,
    ibv_qp_attr_mask,
    ibv_qp_init_attr_mask,
    ibv_qp_state,
    ibv_qp_type,
)
from weftwork.compat.pyverbs.mr import core_access
from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError, not_supported, refused_as
from weftwork.compat.pyverbs.qp_attr import ECE, QPAttr, QPCap, QPInitAttr, QPInitAttrEx
from weftwork.compat.pyverbs.utils import mtu_to_str, qp_state_to_str, qp_type_to_str
from weftwork.compat.pyverbs.wr import core_bind, core_flags, post_chain
from weftwork.rdma.attributes import ATTRIBUTES, ChangedAttributes
from weftwork.rdma.verbs import QpState, QpType
from weftwork.wire.ib import DEFAULT_PARTITION_KEY

if TYPE_CHECKING:
    from weftwork.compat.pyverbs.cq import CQ, CQEX
    from weftwork.compat.pyverbs.mr import MW, MWBind
    from weftwork.compat.pyverbs.pd import PD
    from weftwork.compat.pyverbs.srq import SRQ
    from weftwork.compat.pyverbs.wr import RecvWR, SendWR
    from weftwork.rdma.queue_pair import RdmaQueuePair
    from weftwork.rdma.verbs import SendWr

__all__ = ["QP"]

_M: Final = ibv_qp_attr_mask
_REFUSED: Final = _M.IBV_QP_ALT_PATH | _M.IBV_QP_PATH_MIG_STATE | _M.IBV_QP_CAP | _M.IBV_QP_RATE_LIMIT
# Attributes that are plain numbers here and in the NIC.
_NUMBERS: Final = {
    _M.IBV_QP_QKEY: "qkey",
    _M.IBV_QP_TIMEOUT: "timeout",
    _M.IBV_QP_RETRY_CNT: "retry_cnt",
    _M.IBV_QP_RNR_RETRY: "rnr_retry",
    _M.IBV_QP_RQ_PSN: "rq_psn",
    _M.IBV_QP_MAX_QP_RD_ATOMIC: "max_rd_atomic",
    _M.IBV_QP_MIN_RNR_TIMER: "min_rnr_timer",
    _M.IBV_QP_SQ_PSN: "sq_psn",
    _M.IBV_QP_MAX_DEST_RD_ATOMIC: "max_dest_rd_atomic",
    _M.IBV_QP_DEST_QPN: "dest_qp_num",
}
_FLAGS: Final = {
    **{name: flag for flag, name in _NUMBERS.items()},
    "qp_access_flags": _M.IBV_QP_ACCESS_FLAGS,
    "remote_address": _M.IBV_QP_AV,
    "path_mtu": _M.IBV_QP_PATH_MTU,
    "pkey": _M.IBV_QP_PKEY_INDEX,
}
_ENABLED: Final = frozenset({QpState.RTR, QpState.RTS, QpState.SQD, QpState.SQE})
_SERVICES: Final = {int(service): service for service in QpType}
_REFUSED_INIT: Final = ~(
    ibv_qp_init_attr_mask.IBV_QP_INIT_ATTR_PD
    | ibv_qp_init_attr_mask.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
    | ibv_qp_init_attr_mask.IBV_QP_INIT_ATTR_CREATE_FLAGS
)


def _masks(service: QpType, before: QpState, state: QpState) -> tuple[int, int]:
    """Bits of ``ibv_qp_attr_mask`` that a change of the state needs, and all that it takes.

    The core has one port and one record of attributes, so that the port, the state before, and the request for an
    event are added here: qp_state_table and ib_modify_qp_is_ok in Linux drivers/infiniband/core/verbs.c.
    """
    needed, allowed = ATTRIBUTES.get((before, state), {}).get(service, ChangedAttributes())
    needs = sum(int(_FLAGS[name]) for name in needed)
    takes = needs | sum(int(_FLAGS[name]) for name in allowed) | int(_M.IBV_QP_STATE)
    change = (before, state)
    if change == (QpState.RESET, QpState.INIT):
        needs |= _M.IBV_QP_PORT
    if state is QpState.INIT or (change == (QpState.SQD, QpState.SQD) and service is QpType.RC):
        takes |= _M.IBV_QP_PORT
    if state is QpState.RTS and before in _ENABLED:
        takes |= _M.IBV_QP_CUR_STATE
    if change == (QpState.RTS, QpState.SQD):
        takes |= _M.IBV_QP_EN_SQD_ASYNC_NOTIFY
    return needs, takes


class QP(NicObject):
    """A queue pair.

    Parameters
    ----------
    creator : protection domain, or a context for extended attributes
    init_attr : see `QPInitAttr` and `QPInitAttrEx`
    qp_attr : takes a connected queue pair to INIT and one for datagrams to RTS at once

    Attributes
    ----------
    pair : for the NIC
    """

    closes = 1

    def __init__(
        self, creator: PD | Context, init_attr: QPInitAttr | QPInitAttrEx, qp_attr: QPAttr | None = None
    ) -> None:
        pd = _domain(creator, init_attr)
        service = _SERVICES.get(int(init_attr.qp_type))
        if service is None:
            raise not_supported(f"Creating a QP of type {qp_type_to_str(init_attr.qp_type)}")
        _check_extensions(init_attr)
        close_orphans()
        self.nic = pd.nic
        self.cap = _granted(pd, init_attr)
        self.sq_sig_all = init_attr.sq_sig_all
        self.scq, self.rcq = _queues(pd, init_attr)
        self.srq: SRQ | None = init_attr.srq
        self._known = QPAttr(port_num=1)
        with refused_as("Failed to create QP"):
            self.pair: RdmaQueuePair = self.nic.device.create_qp(
                pd.domain,
                service,
                (self.scq.queue, self.rcq.queue),
                max_recv_wr=max(1, self.cap.max_recv_wr),
                srq=self.srq.queue if self.srq is not None else None,
                sq_sig_all=bool(init_attr.sq_sig_all),
            )
        self.pd: PD | None = pd
        self.is_open = True
        self.context = creator if isinstance(creator, Context) else None
        init_attr.cap = self.cap
        owner = pd.ctx
        if owner is not None:
            self.nic.owners[self.pair.qp_num] = owner
        for parent in (creator, pd, self.scq, self.rcq, self.srq):
            if parent is not None:
                parent.add_ref(self)
        if qp_attr is not None:
            if service is QpType.UD:
                self.to_rts(qp_attr)
            else:
                self.to_init(qp_attr)

    @property
    def qp_num(self) -> int:
        """Number, 24 bits."""
        return self.pair.qp_num

    @property
    def qp_type(self) -> ibv_qp_type:
        """Transport service."""
        return ibv_qp_type(int(self.pair.qp_type))

    @property
    def qp_state(self) -> ibv_qp_state:
        """State."""
        return ibv_qp_state(int(self.pair.state))

    # Attributes

    def to_init(self, qp_attr: QPAttr) -> None:
        """Take the queue pair to INIT; its attribute ``qp_state`` is set."""
        self._to(qp_attr, QpState.RESET, QpState.INIT, "init")

    def to_rtr(self, qp_attr: QPAttr) -> None:
        """Take the queue pair to RTR, by INIT if necessary."""
        if self.pair.state is not QpState.INIT:
            self.to_init(qp_attr)
        self._to(qp_attr, QpState.INIT, QpState.RTR, "RTR")

    def to_rts(self, qp_attr: QPAttr) -> None:
        """Take the queue pair to RTS, by INIT and RTR if necessary."""
        if self.pair.state is not QpState.RTR:
            self.to_rtr(qp_attr)
        self._to(qp_attr, QpState.RTR, QpState.RTS, "RTS")

    def _to(self, qp_attr: QPAttr, before: QpState, state: QpState, word: str) -> None:
        qp_attr.qp_state = ibv_qp_state(int(state))
        mask = _masks(self.pair.qp_type, before, state)[0] | _M.IBV_QP_STATE
        self._modify(qp_attr, mask, f"Failed to modify QP state to {word}")

    def modify(self, qp_attr: QPAttr, comp_mask: int) -> None:
        """Change attributes.

        Parameters
        ----------
        qp_attr : new values
        comp_mask : which of them count, bits of ``ibv_qp_attr_mask``
        """
        self._modify(qp_attr, int(comp_mask), "Failed to modify QP")

    def _modify(self, qp_attr: QPAttr, mask: int, what: str) -> None:
        before = self.pair.state
        state = QpState(int(qp_attr.qp_state)) if mask & _M.IBV_QP_STATE else before
        needs, takes = _masks(self.pair.qp_type, before, state)
        missing = ibv_qp_attr_mask(needs & ~mask)
        if missing:
            raise PyverbsRDMAError(f"{what} (missing: {missing.name})", EINVAL)
        if mask & _REFUSED:
            raise not_supported(f"Modifying {ibv_qp_attr_mask(mask & _REFUSED).name}")
        surplus = ibv_qp_attr_mask(mask & ~takes)
        if surplus:
            raise PyverbsRDMAError(f"{what} ({before.name} to {state.name} takes no {surplus.name})", EINVAL)
        wrong_port = mask & _M.IBV_QP_PORT and qp_attr.port_num != 1
        wrong_key = mask & _M.IBV_QP_PKEY_INDEX and qp_attr.pkey_index != 0
        if wrong_port or wrong_key:
            raise PyverbsRDMAError(what, EINVAL)
        if mask & _M.IBV_QP_CUR_STATE and qp_attr.cur_qp_state != before:
            raise PyverbsRDMAError(f"{what} (the state is {before.name})", EINVAL)
        with refused_as(what):
            self.nic.device.modify_qp(self.pair, state, replace(self.pair.attr, **self._changes(qp_attr, mask, what)))
        if mask & _M.IBV_QP_AV:
            self._known.ah_attr = qp_attr.ah_attr
        if state is QpState.RESET:
            self._forget_completions()

    def _changes(self, qp_attr: QPAttr, mask: int, what: str) -> dict[str, Any]:
        """Attributes that change, for the NIC."""
        changes: dict[str, Any] = {name: int(getattr(qp_attr, name)) for flag, name in _NUMBERS.items() if mask & flag}
        if mask & _M.IBV_QP_ACCESS_FLAGS:
            changes["qp_access_flags"] = core_access(qp_attr.qp_access_flags, "Modifying a QP")
        if mask & _M.IBV_QP_PATH_MTU:
            changes["path_mtu"] = mtu_to_str(qp_attr.path_mtu)
        if mask & _M.IBV_QP_AV:
            address = qp_attr.ah_attr
            address.check(what)
            changes["remote_address"] = address.address(len(self.nic.address))
        return changes

    def _forget_completions(self) -> None:
        for queue in {self.scq, self.rcq}:
            queue.discard(self.qp_num)

    def query(self, attr_mask: int) -> tuple[QPAttr, QPInitAttr]:  # noqa: ARG002 - all attributes are at hand
        """Attributes as they are now, and those that the queue pair was made with."""
        pair = self.pair.attr
        attr = QPAttr(qp_state=self.qp_state, cur_qp_state=self.qp_state)
        attr.path_mtu = ibv_mtu[f"IBV_MTU_{pair.path_mtu}"]
        for name in _NUMBERS.values():
            setattr(attr, name, getattr(pair, name))
        attr.qp_access_flags = int(pair.qp_access_flags)
        attr.pkey_index = 0 if pair.pkey == DEFAULT_PARTITION_KEY else 1
        attr.cap = self.cap
        attr.ah_attr = self._known.ah_attr
        made_with = QPInitAttr(
            qp_type=self.qp_type,
            scq=self.scq,
            rcq=self.rcq,
            srq=self.srq,
            cap=self.cap,
            sq_sig_all=self.sq_sig_all,
        )
        return attr, made_with

    def query_data_in_order(self, op: int, flags: int = 0) -> int:  # noqa: ARG002 - as pyverbs
        """Whether data is written in order; a software NIC promises nothing."""
        return 0

    def set_ece(self, ece: ECE) -> None:
        """Set options of a vendor; there are none, so only no options are taken."""
        if ece.vendor_id:
            raise not_supported("Setting the ECE of a vendor")

    def query_ece(self) -> ECE:
        """Options of the vendor: none."""
        return ECE()

    # Work

    def post_recv(self, wr: RecvWR, bad_wr: RecvWR | None = None) -> None:
        """Post receives, one and those chained to it.

        Parameters
        ----------
        wr : the first
        bad_wr : takes the content of the one that was refused
        """
        pair = self.pair

        def post(each: RecvWR) -> None:
            if each.num_sge > self.cap.max_recv_sge:
                raise PyverbsRDMAError("Failed to post recv", EINVAL)
            self.nic.device.post_recv(pair, each.request)

        post_chain(wr, bad_wr, "Failed to post recv", lambda: len(pair.recv_queue) >= pair.recv_queue.max_wr, post)

    def post_send(self, wr: SendWR, bad_wr: SendWR | None = None) -> None:
        """Post sends, one and those chained to it.

        Parameters
        ----------
        wr : the first
        bad_wr : takes the content of the one that was refused
        """

        def post(each: SendWR) -> None:
            if each.num_sge > self.cap.max_send_sge:
                raise PyverbsRDMAError("Failed to post send", EINVAL)
            self.post_request(each.request)

        post_chain(wr, bad_wr, "Failed to post send", self._is_full, post)

    def _is_full(self) -> bool:
        return len(self.pair.requester.entries) >= max(1, self.cap.max_send_wr)

    def post_request(self, request: SendWr) -> None:
        """Post a request of the NIC."""
        self.nic.device.post_send(self.pair, request)

    def bind_mw(self, mw: MW, mw_bind: MWBind) -> None:
        """Post the binding of a window of type 1; its key is new at once."""
        device = self.nic.device
        with refused_as("Failed to Bind MW"), device.lock:
            mw.rkey = self.pair.bind_mw(
                int(mw_bind.wr_id), mw.window, core_bind(mw_bind.info), core_flags(mw_bind.send_flags)
            )
            device.kick()

    def close(self) -> None:
        """Close windows that the queue pair has bound, and the queue pair."""
        if self.is_open:
            self.close_children()
            self.is_open = False
            if self.nic.is_here:
                self.nic.device.destroy_qp(self.pair)
                self._forget_completions()
            self.nic.owners.pop(self.qp_num, None)
            self.pd = None
            self.context = None

    def __str__(self) -> str:
        values = {"QP type": qp_type_to_str(self.qp_type), "  number": self.qp_num}
        values["  state"] = qp_state_to_str(self.qp_state)
        return "".join(f"{name:22}: {value!s:<20}\n" for name, value in values.items())


def _domain(creator: PD | Context, init_attr: QPInitAttr | QPInitAttrEx) -> PD:
    if not isinstance(creator, Context):
        return creator
    pd = init_attr.pd if isinstance(init_attr, QPInitAttrEx) else None
    if pd is None and isinstance(init_attr, QPInitAttrEx) and init_attr.xrcd is None:
        raise PyverbsRDMAError("Failed to create QP (no PD is given)", EINVAL)
    if pd is None:
        raise not_supported("Creating a QP without a PD")
    return pd


def _check_extensions(init_attr: QPInitAttr | QPInitAttrEx) -> None:
    """Refuse extensions that a software NIC does not have."""
    if not isinstance(init_attr, QPInitAttrEx):
        return
    has_flags = init_attr.comp_mask & ibv_qp_init_attr_mask.IBV_QP_INIT_ATTR_CREATE_FLAGS and init_attr.create_flags
    if int(init_attr.comp_mask) & int(_REFUSED_INIT) or has_flags:
        raise not_supported("Creating a QP with these extensions")


def _granted(pd: PD, init_attr: QPInitAttr | QPInitAttrEx) -> QPCap:
    """Sizes that the queue pair gets: those asked for, and the room for inline data that the NIC has anyway."""
    limits = pd.nic.device.nic.limits
    cap = copy.copy(init_attr.cap)
    for name, most in (
        *(("max_send_wr", limits.max_qp_wr), ("max_recv_wr", limits.max_qp_wr)),
        *(("max_send_sge", limits.max_sge), ("max_recv_sge", limits.max_sge)),
        ("max_inline_data", limits.max_inline_data),
    ):
        if not 0 <= getattr(cap, name) <= most:
            raise PyverbsRDMAError(
                f"Failed to create QP ({name}: found {getattr(cap, name)}, wanted 0 to {most})", EINVAL
            )
    cap.max_inline_data = limits.max_inline_data
    return cap


def _queues(pd: PD, init_attr: QPInitAttr | QPInitAttrEx) -> tuple[CQ | CQEX, CQ | CQEX]:
    send, receive = init_attr.send_cq, init_attr.recv_cq
    if send is None or receive is None:
        raise PyverbsRDMAError("Failed to create QP (a CQ for sends and one for receives are needed)", EINVAL)
    if send.nic is not pd.nic or receive.nic is not pd.nic:
        raise PyverbsRDMAError("Failed to create QP (its CQs belong to another device)", EINVAL)
    return send, receive
