"""Shared receive queues.

Source: pyverbs, srq.pyx (names); IBTA vol. 1, 10.2.9 and 11.2.3.
Leaves out: queues of extended reliable connections and of tag matching.
"""

from __future__ import annotations

from errno import EINVAL
from typing import TYPE_CHECKING, Any, Final

from weftwork.compat.pyverbs.base import NicObject, PyverbsCM, PyverbsObject, close_orphans
from weftwork.compat.pyverbs.libibverbs_enums import ibv_srq_attr_mask, ibv_srq_type
from weftwork.compat.pyverbs.pd import PD
from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError, not_supported, refused_as
from weftwork.compat.pyverbs.wr import post_chain

if TYPE_CHECKING:
    from weftwork.compat.pyverbs.device import Context
    from weftwork.compat.pyverbs.wr import RecvWR
    from weftwork.rdma.receive_queue import RecvQueue

__all__ = ["SRQ", "OpsWr", "SrqAttr", "SrqInitAttr", "SrqInitAttrEx"]

_FAILED: Final = "Failed to create SRQ"


class SrqAttr(PyverbsObject):
    """Attributes of a shared receive queue.

    Parameters
    ----------
    max_wr, max_sge : receives, and pieces of memory of each
    srq_limit : fewer receives than this cause an event
    """

    def __init__(self, max_wr: int = 100, max_sge: int = 1, srq_limit: int = 0) -> None:
        self.max_wr = max_wr
        self.max_sge = max_sge
        self.srq_limit = srq_limit


class SrqInitAttr(SrqAttr):
    """Attributes of a queue to be made.

    Parameters
    ----------
    attr : the plain ones
    """

    def __init__(self, attr: SrqAttr | None = None) -> None:
        given = attr if attr is not None else SrqAttr()
        super().__init__(given.max_wr, given.max_sge, given.srq_limit)


class SrqInitAttrEx(SrqAttr):
    """Attributes of an extended queue to be made.

    Parameters
    ----------
    max_wr, max_sge, srq_limit : see `SrqAttr`
    """

    def __init__(self, max_wr: int = 100, max_sge: int = 1, srq_limit: int = 0) -> None:
        super().__init__(max_wr, max_sge, srq_limit)
        self.comp_mask = 0
        self.srq_type: int = ibv_srq_type.IBV_SRQT_BASIC
        self.pd: PD | None = None
        self.xrcd: object = None
        self.cq: object = None
        self.max_num_tags = 0
        self.max_ops = 0


class OpsWr(PyverbsCM):
    """An operation of tag matching, which a software NIC does not have."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401, ARG002 - as pyverbs
        raise not_supported("Tag matching")


class SRQ(NicObject):
    """A shared receive queue.

    Parameters
    ----------
    creator : protection domain, or a context for an extended queue
    attr : see `SrqInitAttr` and `SrqInitAttrEx`

    Attributes
    ----------
    queue : for the NIC
    """

    closes = 6

    def __init__(self, creator: PD | Context, attr: SrqInitAttr | SrqInitAttrEx) -> None:
        pd = creator if isinstance(creator, PD) else attr.pd if isinstance(attr, SrqInitAttrEx) else None
        if isinstance(attr, SrqInitAttrEx) and attr.srq_type != ibv_srq_type.IBV_SRQT_BASIC:
            raise not_supported("A SRQ of another type than basic")
        if pd is None:
            raise PyverbsRDMAError(_FAILED, EINVAL)
        close_orphans()
        self.nic = pd.nic
        with refused_as(_FAILED):
            self.queue: RecvQueue = self.nic.device.create_srq(attr.max_wr, max(1, attr.max_sge))
        self.pd: PD | None = pd
        self.is_open = True
        pd.add_ref(self)

    def query(self) -> SrqAttr:
        """Attributes as they are now."""
        return SrqAttr(self.queue.max_wr, self.queue.max_sge, self.queue.limit)

    def modify(self, attr: SrqAttr, comp_mask: int) -> None:
        """Change attributes.

        Parameters
        ----------
        attr : new values
        comp_mask : which of them count, bits of ``ibv_srq_attr_mask``
        """
        limits = self.nic.device.nic.limits
        with refused_as("Failed to modify SRQ"), self.nic.device.lock:
            if comp_mask & ibv_srq_attr_mask.IBV_SRQ_MAX_WR:
                if not 0 < attr.max_wr <= limits.max_qp_wr:
                    raise PyverbsRDMAError("Failed to modify SRQ", EINVAL)
                self.queue.resize(attr.max_wr)
            if comp_mask & ibv_srq_attr_mask.IBV_SRQ_LIMIT:
                if not 0 <= attr.srq_limit <= self.queue.max_wr:
                    raise PyverbsRDMAError("Failed to modify SRQ", EINVAL)
                self.queue.limit = attr.srq_limit

    def get_srq_num(self) -> int:
        """Refuse: the number matters to extended reliable connections alone."""
        raise not_supported("The number of a SRQ")

    def post_srq_ops(self, wr: OpsWr, bad_wr: OpsWr | None = None) -> None:  # noqa: ARG002 - as pyverbs
        """Refuse: there is no tag matching."""
        raise not_supported("Tag matching")

    def post_recv(self, wr: RecvWR, bad_wr: RecvWR | None = None) -> None:
        """Post receives, one and those chained to it.

        Parameters
        ----------
        wr : the first
        bad_wr : takes the content of the one that failed
        """
        post_chain(
            wr,
            bad_wr,
            "Failed to post receive to SRQ.",
            lambda: len(self.queue) >= self.queue.max_wr,
            lambda each: self.nic.device.post_srq_recv(self.queue, each.request),
        )

    def close(self) -> None:
        """Close the queue pairs that take receives from the queue, and the queue."""
        if self.is_open:
            self.close_children()
            self.is_open = False
            if self.nic.is_here:
                with self.nic.device.lock:
                    self.nic.device.nic.destroy_srq(self.queue)
            self.pd = None
