"""NICs with memory, and reliable connections between them, whatever carries their datagrams."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from helpers.rdma_pair import ALL

from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.queue_pair import RdmaQueuePair
from weftwork.rdma.verbs import QpAttr, QpState, QpType, RecvWr, SendFlags, SendWr, Sge, WcStatus

MIB = 1 << 20


class RdmaEnd:
    """A NIC with one region of memory, which holds bytes drawn from the seed."""

    def __init__(self, nic: RdmaNic, buffer: bytearray, seed: int = 0) -> None:
        self.nic = nic
        self.buffer = buffer
        self.buffer[:] = random.Random(seed).randbytes(len(buffer))
        self.pd = nic.alloc_pd()
        self.cq = nic.create_cq(4096)
        self.mr = nic.memory.register(self.pd, buffer, ALL)
        self.posted = 0

    def sge(self, offset: int, length: int) -> Sge:
        return Sge(self.mr.addr + offset, length, self.mr.lkey)


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A queue pair and its peer; requests go from ``end`` to ``peer``."""

    end: RdmaEnd
    peer: RdmaEnd
    qp: RdmaQueuePair
    peer_qp: RdmaQueuePair

    @property
    def back(self) -> Connection:
        """The same connection, for requests of the other end."""
        return Connection(end=self.peer, peer=self.end, qp=self.peer_qp, peer_qp=self.qp)

    def post(self, opcode: Any, here: int = 0, length: int = 0, there: int = 0, **more: Any) -> None:
        """Post a request between two offsets; all of them ask for a completion."""
        wr = SendWr(
            wr_id=self.end.posted,
            opcode=opcode,
            sg_list=(self.end.sge(here, length),) if length else (),
            flags=SendFlags.SIGNALED,
            remote_addr=self.peer.mr.addr + there,
            rkey=self.peer.mr.rkey,
        )
        self.end.posted += 1
        self.qp.post_send(replace(wr, **more))

    def post_receive(self, offset: int, length: int) -> None:
        """Let the peer post a receive."""
        self.peer_qp.post_recv(RecvWr(wr_id=0, sg_list=(self.peer.sge(offset, length),)))

    def are_done(self, count: int) -> bool:
        """Whether so many completions wait here; each is a success."""
        assert all(wc.status is WcStatus.SUCCESS for wc in self.end.cq._entries), list(self.end.cq._entries)
        return len(self.end.cq) >= count


def connect(end: RdmaEnd, peer: RdmaEnd, **attr: Any) -> Connection:
    """Connect two ends; attributes beside the usual ones are those of `QpAttr`."""
    ends = (end, peer)
    qps = [one.nic.create_qp(one.pd, QpType.RC, (one.cq, one.cq)) for one in ends]
    psns = [one.nic.random_psn() for one in ends]
    for i in (0, 1):
        mine = QpAttr(
            remote_address=ends[1 - i].nic.address,
            dest_qp_num=qps[1 - i].qp_num,
            rq_psn=psns[1 - i],
            sq_psn=psns[i],
            qp_access_flags=ALL,
        )
        mine = replace(mine, **{"path_mtu": 4096, "max_rd_atomic": 4, "max_dest_rd_atomic": 4} | attr)
        qps[i].modify(QpState.INIT, mine)
        qps[i].modify(QpState.RTR)
        qps[i].modify(QpState.RTS)
    return Connection(end=end, peer=peer, qp=qps[0], peer_qp=qps[1])


def ends_of(nics: Sequence[RdmaNic], memory_bytes: int = MIB) -> list[RdmaEnd]:
    """An end for each NIC, each with other bytes in its memory."""
    return [RdmaEnd(nic, bytearray(memory_bytes), seed) for seed, nic in enumerate(nics)]
