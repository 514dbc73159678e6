"""Attributes of queue pairs.

Source: pyverbs, qp.pyx (names); libibverbs, ibv_create_qp_ex(3) and ibv_modify_qp(3).
Leaves out: alternate paths have places here and are refused by the queue pair.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from weftwork.compat.pyverbs.addr import AHAttr
from weftwork.compat.pyverbs.base import PyverbsCM, PyverbsObject
from weftwork.compat.pyverbs.cq import CQ, CQEX
from weftwork.compat.pyverbs.libibverbs_enums import ibv_mtu, ibv_qp_state, ibv_qp_type
from weftwork.compat.pyverbs.pyverbs_error import PyverbsUserError
from weftwork.compat.pyverbs.utils import qp_state_to_str, qp_type_to_str

if TYPE_CHECKING:
    from weftwork.compat.pyverbs.pd import PD
    from weftwork.compat.pyverbs.srq import SRQ

__all__ = ["ECE", "DataBuffer", "QPAttr", "QPCap", "QPInitAttr", "QPInitAttrEx"]


class QPCap(PyverbsObject):
    """Sizes of the queues of a queue pair.

    Parameters
    ----------
    max_send_wr, max_recv_wr : requests
    max_send_sge, max_recv_sge : pieces of memory of each
    max_inline_data : bytes of an inline request
    """

    def __init__(
        self,
        max_send_wr: int = 1,
        max_recv_wr: int = 10,
        max_send_sge: int = 1,
        max_recv_sge: int = 1,
        max_inline_data: int = 0,
    ) -> None:
        self.max_send_wr = max_send_wr
        self.max_recv_wr = max_recv_wr
        self.max_send_sge = max_send_sge
        self.max_recv_sge = max_recv_sge
        self.max_inline_data = max_inline_data

    def __str__(self) -> str:
        return _rows(vars(self))


class _InitAttr(PyverbsObject):
    """What both kinds of attributes for a new queue pair have."""

    _send_cq: CQ | CQEX | None
    _recv_cq: CQ | CQEX | None
    _cap: QPCap

    @property
    def send_cq(self) -> CQ | CQEX | None:
        """Queue in which sends complete."""
        return self._send_cq

    @send_cq.setter
    def send_cq(self, val: CQ | CQEX | None) -> None:
        self._send_cq = _checked(val)

    @property
    def recv_cq(self) -> CQ | CQEX | None:
        """Queue in which receives complete."""
        return self._recv_cq

    @recv_cq.setter
    def recv_cq(self, val: CQ | CQEX | None) -> None:
        self._recv_cq = _checked(val)

    @property
    def cap(self) -> QPCap:
        """A copy of the sizes of the queues."""
        return copy.copy(self._cap)

    @cap.setter
    def cap(self, val: QPCap | None) -> None:
        if val is not None:
            self._cap = copy.copy(val)

    @property
    def max_send_wr(self) -> int:
        """Requests of the send queue."""
        return self._cap.max_send_wr

    @max_send_wr.setter
    def max_send_wr(self, val: int) -> None:
        self._cap.max_send_wr = val

    @property
    def max_recv_wr(self) -> int:
        """Requests of the receive queue."""
        return self._cap.max_recv_wr

    @max_recv_wr.setter
    def max_recv_wr(self, val: int) -> None:
        self._cap.max_recv_wr = val

    @property
    def max_send_sge(self) -> int:
        """Pieces of memory of a send."""
        return self._cap.max_send_sge

    @max_send_sge.setter
    def max_send_sge(self, val: int) -> None:
        self._cap.max_send_sge = val

    @property
    def max_recv_sge(self) -> int:
        """Pieces of memory of a receive."""
        return self._cap.max_recv_sge

    @max_recv_sge.setter
    def max_recv_sge(self, val: int) -> None:
        self._cap.max_recv_sge = val

    @property
    def max_inline_data(self) -> int:
        """Bytes of an inline request."""
        return self._cap.max_inline_data

    @max_inline_data.setter
    def max_inline_data(self, val: int) -> None:
        self._cap.max_inline_data = val


def _checked(queue: object) -> CQ | CQEX | None:
    if queue is not None and not isinstance(queue, CQ | CQEX):
        raise PyverbsUserError(f"Expected CQ/CQEX, got {type(queue)}")
    return queue


class QPInitAttr(_InitAttr):
    """Attributes of a queue pair to be made.

    Parameters
    ----------
    qp_type : transport service
    qp_context : kept for the program
    scq, rcq : where sends and receives complete
    srq : shared queue to take receives from
    cap : sizes of the queues; None leaves them at 0
    sq_sig_all : every send completes with an entry
    """

    def __init__(
        self,
        qp_type: int = ibv_qp_type.IBV_QPT_UD,
        qp_context: object = None,
        scq: CQ | CQEX | None = None,
        rcq: CQ | CQEX | None = None,
        srq: SRQ | None = None,
        cap: QPCap | None = None,
        sq_sig_all: int = 1,
    ) -> None:
        self._cap = copy.copy(cap) if cap is not None else QPCap(0, 0, 0, 0, 0)
        self.qp_context = qp_context
        self._send_cq = _checked(scq)
        self._recv_cq = _checked(rcq)
        self.srq = srq
        self.qp_type = qp_type
        self.sq_sig_all = sq_sig_all

    def __str__(self) -> str:
        return _rows({"QP type": qp_type_to_str(self.qp_type), "SQ sig. all": self.sq_sig_all, **vars(self._cap)})


class QPInitAttrEx(_InitAttr):
    """Extended attributes of a queue pair to be made.

    Parameters
    ----------
    qp_type, qp_context, scq, rcq, srq, cap, sq_sig_all : see `QPInitAttr`
    comp_mask : which of the others count, bits of ``ibv_qp_init_attr_mask``
    pd : protection domain
    xrcd, create_flags, max_tso_header, source_qpn, hash_conf, ind_table : refused where they are asked for
    send_ops_flags : operations that `QPEx` posts
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the signature of pyverbs
        self,
        qp_type: int = ibv_qp_type.IBV_QPT_UD,
        qp_context: object = None,
        scq: CQ | CQEX | None = None,
        rcq: CQ | CQEX | None = None,
        srq: SRQ | None = None,
        cap: QPCap | None = None,
        sq_sig_all: int = 0,
        comp_mask: int = 0,
        pd: PD | None = None,
        xrcd: object = None,
        create_flags: int = 0,
        max_tso_header: int = 0,
        source_qpn: int = 0,
        hash_conf: object = None,
        ind_table: object = None,
        send_ops_flags: int = 0,
    ) -> None:
        self._cap = copy.copy(cap) if cap is not None else QPCap(0, 0, 0, 0, 0)
        self.qp_context = qp_context
        self._send_cq = _checked(scq)
        self._recv_cq = _checked(rcq)
        self.srq = srq
        self.qp_type = qp_type
        self.sq_sig_all = sq_sig_all
        self.comp_mask = comp_mask
        self.pd = pd
        self.xrcd = xrcd
        self.create_flags = create_flags
        self.max_tso_header = max_tso_header
        self.source_qpn = source_qpn
        self.hash_conf = hash_conf
        self.ind_table = ind_table
        self.send_ops_flags = send_ops_flags

    def __str__(self) -> str:
        values = {"QP type": qp_type_to_str(self.qp_type), "SQ sig. all": self.sq_sig_all, **vars(self._cap)}
        return _rows({**values, "comp mask": int(self.comp_mask), "create flags": int(self.create_flags)})


class QPAttr(PyverbsObject):
    """Attributes of a queue pair.

    Parameters
    ----------
    qp_state, cur_qp_state : wanted and present state
    port_num : port of the device, 1
    path_mtu : one of ``ibv_mtu``

    Attributes
    ----------
    qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags, pkey_index : as in struct ibv_qp_attr, like all others
    """

    def __init__(
        self,
        qp_state: int = ibv_qp_state.IBV_QPS_INIT,
        cur_qp_state: int = ibv_qp_state.IBV_QPS_RESET,
        port_num: int = 1,
        path_mtu: int = ibv_mtu.IBV_MTU_1024,
    ) -> None:
        self.qp_state = qp_state
        self.cur_qp_state = cur_qp_state
        self.port_num = port_num
        self.path_mtu = path_mtu
        self.path_mig_state = 0
        self.qkey = 0
        self.rq_psn = 0
        self.sq_psn = 0
        self.dest_qp_num = 0
        self.qp_access_flags = 0
        self._cap = QPCap(0, 0, 0, 0, 0)
        self._ah_attr = AHAttr(port_num=0)
        self._alt_ah_attr = AHAttr(port_num=0)
        self.pkey_index = 0
        self.alt_pkey_index = 0
        self.en_sqd_async_notify = 0
        self.sq_draining = 0
        self.max_rd_atomic = 0
        self.max_dest_rd_atomic = 0
        self.min_rnr_timer = 0
        self.timeout = 0
        self.retry_cnt = 0
        self.rnr_retry = 0
        self.alt_port_num = 0
        self.alt_timeout = 0
        self.rate_limit = 0

    @property
    def cap(self) -> QPCap:
        """A copy of the sizes of the queues."""
        return copy.copy(self._cap)

    @cap.setter
    def cap(self, val: QPCap | None) -> None:
        if val is not None:
            self._cap = copy.copy(val)

    @property
    def ah_attr(self) -> AHAttr:
        """A copy of the address of the peer."""
        return self._ah_attr.copied()

    @ah_attr.setter
    def ah_attr(self, val: AHAttr | None) -> None:
        if val is not None:
            self._ah_attr = val.copied()

    @property
    def alt_ah_attr(self) -> AHAttr:
        """A copy of the alternate address of the peer."""
        return self._alt_ah_attr.copied()

    @alt_ah_attr.setter
    def alt_ah_attr(self, val: AHAttr | None) -> None:
        if val is not None:
            self._alt_ah_attr = val.copied()

    def __str__(self) -> str:
        values = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        values["qp_state"] = qp_state_to_str(self.qp_state)
        values["cur_qp_state"] = qp_state_to_str(self.cur_qp_state)
        return _rows(values) + f"AH Attr:\n{self._ah_attr_text()}"

    def _ah_attr_text(self) -> str:
        return _rows({"dgid": self._ah_attr.dgid, "port num": self._ah_attr.port_num})


class ECE(PyverbsCM):
    """Options of a vendor for a connection.

    Parameters
    ----------
    vendor_id : 0 for none
    options, comp_mask : of the vendor
    """

    def __init__(self, vendor_id: int = 0, options: int = 0, comp_mask: int = 0) -> None:
        self.vendor_id = vendor_id
        self.options = options
        self.comp_mask = comp_mask

    def __str__(self) -> str:
        values = {"Vendor ID": self.vendor_id, "Options": self.options, "Comp Mask": self.comp_mask}
        return "ECE:\n" + "".join(f"{name:22}: 0x{value:<20x}\n" for name, value in values.items())


class DataBuffer(PyverbsCM):
    """Memory of an inline request.

    Parameters
    ----------
    addr, length : bytes of this process, registered or not
    """

    def __init__(self, addr: int, length: int) -> None:
        self.addr = addr
        self.length = length


def _rows(values: dict[str, object]) -> str:
    return "".join(f"{name.replace('_', ' '):22}: {value!s:<20}\n" for name, value in values.items())
