"""Two ends of pyverbs on one software NIC, for tests of the shim."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from weftwork.compat.pyverbs.addr import AHAttr, GlobalRoute
from weftwork.compat.pyverbs.cq import CQ
from weftwork.compat.pyverbs.device import Context
from weftwork.compat.pyverbs.libibverbs_enums import ibv_access_flags, ibv_mtu, ibv_qp_type
from weftwork.compat.pyverbs.mr import MR
from weftwork.compat.pyverbs.pd import PD
from weftwork.compat.pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from weftwork.compat.pyverbs.wr import SGE, RecvWR

DEVICE = "weft0"
QKEY = 0x1234
ALL = (
    ibv_access_flags.IBV_ACCESS_LOCAL_WRITE
    | ibv_access_flags.IBV_ACCESS_REMOTE_WRITE
    | ibv_access_flags.IBV_ACCESS_REMOTE_READ
    | ibv_access_flags.IBV_ACCESS_REMOTE_ATOMIC
    | ibv_access_flags.IBV_ACCESS_MW_BIND
)
SIZE = 4096


def own_address() -> str:
    """A loopback address that no other process of the tests uses."""
    number = os.getpid()
    return f"127.{64 + (number >> 16) % 64}.{number >> 8 & 0xFF}.{number & 0xFF | 1}"


@dataclass
class End:
    """A context with a domain, a queue, a region and a queue pair."""

    qp_type: int = ibv_qp_type.IBV_QPT_RC
    cap: QPCap = field(default_factory=lambda: QPCap(max_send_wr=8, max_recv_wr=8))
    make_cq: Any = lambda context: CQ(context, 64)
    make_qp: Any = QP
    init_attr: Any = QPInitAttr
    srq: Any = None

    def __post_init__(self) -> None:
        self.context = Context(name=DEVICE)
        self.pd = PD(self.context)
        self.cq = self.make_cq(self.context)
        self.mr = MR(self.pd, SIZE, ALL)
        self.shared = self.srq(self.pd) if self.srq is not None else None
        attr = QPAttr()
        attr.qp_access_flags = ALL
        attr.qkey = QKEY
        more = {} if self.make_qp is QP else {"pd": self.pd, "comp_mask": 65, "send_ops_flags": 0x1FFF}
        init = self.init_attr(qp_type=self.qp_type, scq=self.cq, rcq=self.cq, srq=self.shared, cap=self.cap, **more)
        self.qp = self.make_qp(self.context if more else self.pd, init, attr)

    def connect(self, other: End) -> None:
        """Take the queue pair to RTS."""
        attr = QPAttr(path_mtu=ibv_mtu.IBV_MTU_1024)
        attr.dest_qp_num = other.qp.qp_num
        attr.ah_attr = self.route(other)
        attr.qp_access_flags = ALL
        attr.rq_psn, attr.sq_psn = 7, 7
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 1, 14, 7, 7
        self.qp.to_rts(attr)

    def route(self, other: End) -> AHAttr:
        """Address of the other end."""
        return AHAttr(is_global=1, gr=GlobalRoute(dgid=other.context.query_gid(1, 0)))

    def piece(self, offset: int = 0, length: int = SIZE) -> SGE:
        """Bytes of the region."""
        return SGE(self.mr.buf + offset, length, self.mr.lkey)

    def receive(self, offset: int = 0, length: int = SIZE, wr_id: int = 0) -> None:
        """Post a receive."""
        wr = RecvWR(wr_id=wr_id, num_sge=1, sg=[self.piece(offset, length)])
        (self.shared if self.shared is not None else self.qp).post_recv(wr)

    def completion(self) -> Any:
        """Wait for the next completion."""
        assert self.context.nic.device.wait_cq(self.cq.queue, 60.0)
        return self.cq.poll()[1][0]


def pair(**options: Any) -> tuple[End, End]:
    """Two ends, connected unless they send datagrams."""
    ends = End(**options), End(**options)
    if ends[0].qp_type != ibv_qp_type.IBV_QPT_UD:
        ends[0].connect(ends[1])
        ends[1].connect(ends[0])
    return ends
