"""Two NICs, a wire between them that may be bad, and virtual time."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from helpers.rdma_encapsulations import two_addresses
from hypothesis import strategies as st

from weftwork.rdma.datagram import Datagram
from weftwork.rdma.encapsulation import ROCE_V2, Encapsulation
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.queue_pair import NicLimits, RdmaQueuePair
from weftwork.rdma.verbs import AccessFlags, QpAttr, QpState, QpType, RecvWr, SendFlags, SendWr, Sge, Wc

if TYPE_CHECKING:
    from collections.abc import Sequence

DELAY_PS = 1_000_000
SECOND_PS = 1_000_000_000_000
ALL = (
    AccessFlags.LOCAL_WRITE
    | AccessFlags.REMOTE_WRITE
    | AccessFlags.REMOTE_READ
    | AccessFlags.REMOTE_ATOMIC
    | AccessFlags.MW_BIND
)
ALL |= AccessFlags.FLUSH_GLOBAL


@dataclass(kw_only=True)
class BadWire:
    """Chances of each kind of harm, and the luck."""

    loss: float = 0.0
    reorder: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    seed: int = 0
    loses_to: tuple[int, ...] = (0, 1)  # the ends whose packets are lost


@st.composite
def bad_wires(draw: st.DrawFn) -> BadWire:
    chance = st.sampled_from([0.0, 0.05, 0.3])
    return BadWire(
        loss=draw(chance),
        reorder=draw(chance),
        duplicate=draw(chance),
        corrupt=draw(chance),
        seed=draw(st.integers(0, 1 << 16)),
    )


class Pair:
    """Two connected queue pairs, each on a NIC of its own, with 1 MiB of registered memory each."""

    def __init__(
        self,
        wire: BadWire | None = None,
        *,
        qp_type: QpType = QpType.RC,
        memory_bytes: int = 1 << 20,
        limits: NicLimits | None = None,
        nic: dict[str, Any] | None = None,
        srq: bool = False,
        ipv6: bool = False,
        encapsulation: Encapsulation = ROCE_V2,
        by_end: Sequence[dict[str, Any]] = ({}, {}),
        **attr: Any,
    ) -> None:
        self.wire = wire if wire is not None else BadWire()
        self.luck = random.Random(self.wire.seed)
        self.now_ps = 0
        self.flying: list[tuple[int, int, int, Datagram]] = []
        self.sent: list[Datagram] = []
        self.mark = False
        self.cuts = 0.5  # chance that a train is cut into packets, as a system without UDP_GRO does
        self.drop: set[int] = set()  # which of the datagrams sent are lost, counted from 0
        self.order = 0
        self.last_sent_ps = 0
        common: dict[str, Any] = {"limits": limits, "encapsulation": encapsulation, **(nic or {})}
        self.nics = [
            RdmaNic(address, random=random.Random(index + 1), **common)
            for index, address in enumerate(two_addresses(encapsulation, ipv6=ipv6))
        ]
        self.pds = [end.alloc_pd() for end in self.nics]
        self.cqs = [end.create_cq(4096) for end in self.nics]
        self.srqs = [end.create_srq(256) if srq else None for end in self.nics]
        self.buffers = [bytearray(memory_bytes) for _ in self.nics]
        self.mrs = [self.nics[i].memory.register(self.pds[i], self.buffers[i], ALL) for i in (0, 1)]
        self.qps = self.connect(qp_type, by_end, **attr)

    def connect(
        self, qp_type: QpType = QpType.RC, by_end: Sequence[dict[str, Any]] = ({}, {}), **attr: Any
    ) -> list[RdmaQueuePair]:
        """Two more queue pairs of the same domains, connected."""
        qps = [
            self.nics[i].create_qp(self.pds[i], qp_type, (self.cqs[i], self.cqs[i]), srq=self.srqs[i]) for i in (0, 1)
        ]
        psns = [end.random_psn() for end in self.nics]
        for i in (0, 1):
            mine = QpAttr(
                remote_address=self.nics[1 - i].address,
                dest_qp_num=qps[1 - i].qp_num,
                rq_psn=psns[1 - i],
                sq_psn=psns[i],
                qp_access_flags=ALL,
                qkey=0x1234,
            )
            mine = replace(mine, **{"max_rd_atomic": 4, "max_dest_rd_atomic": 4, "path_mtu": 256} | attr | by_end[i])
            qps[i].modify(QpState.INIT, mine)
            qps[i].modify(QpState.RTR)
            qps[i].modify(QpState.RTS)
        return qps

    def sge(self, end: int, offset: int, length: int) -> Sge:
        return Sge(self.mrs[end].addr + offset, length, self.mrs[end].lkey)

    def remote(self, end: int, offset: int) -> dict[str, int]:
        """Keywords of a request that touches the memory of the other end."""
        return {"remote_addr": self.mrs[1 - end].addr + offset, "rkey": self.mrs[1 - end].rkey}

    def post(self, end: int, opcode: Any, wr_id: int = 0, **more: Any) -> None:
        more.setdefault("flags", SendFlags.SIGNALED)
        self.qps[end].post_send(SendWr(wr_id=wr_id, opcode=opcode, **more))

    def post_recv(self, end: int, wr_id: int, offset: int, length: int) -> None:
        self.qps[end].post_recv(RecvWr(wr_id=wr_id, sg_list=(self.sge(end, offset, length),)))

    def poll(self, end: int) -> list[Wc]:
        return self.cqs[end].poll(4096)

    def run(self, limit_ps: int = 3600 * SECOND_PS, steps: int = 200_000) -> bool:
        """Let things happen until nothing is left to happen; False where the limit came first."""
        for _ in range(steps):
            for i in (0, 1):
                while made := self.nics[i].datagrams_to_send(self.now_ps):
                    for datagram in made:
                        self.carry(1 - i, datagram)
            times = [at for end in self.nics if (at := end.next_timer_ps()) is not None]
            times += [min(self.flying)[0]] if self.flying else []
            if not times:
                return True
            self.now_ps = max(self.now_ps, min(times))
            if self.now_ps > limit_ps:
                return False
            due = sorted(entry for entry in self.flying if entry[0] <= self.now_ps)
            self.flying = [entry for entry in self.flying if entry[0] > self.now_ps]
            for _, _, to, datagram in due:
                self.nics[to].receive(datagram, self.now_ps)
            for end in self.nics:
                end.on_timer(self.now_ps)
        return False

    def carry(self, to: int, datagram: Datagram) -> None:
        """Put a datagram on the wire, which may lose it, copy it, delay it or change it; a train also by packets."""
        if datagram.segment_bytes and self.luck.random() < self.cuts:
            for packet in datagram.packets():
                self.carry(to, packet)
            return
        data = datagram.payload()
        datagram = datagram._replace(parts=(bytes(data),), ecn=3 if self.mark else datagram.ecn)
        self.sent.append(datagram)
        self.last_sent_ps = self.now_ps
        if (to in self.wire.loses_to and self.luck.random() < self.wire.loss) or len(self.sent) - 1 in self.drop:
            return
        for _ in range(2 if self.luck.random() < self.wire.duplicate else 1):
            delay_ps = DELAY_PS
            if self.luck.random() < self.wire.reorder:
                delay_ps += self.luck.randrange(50 * DELAY_PS)
            copy = datagram
            if self.luck.random() < self.wire.corrupt:
                changed = bytearray(datagram.parts[0])
                place = self.luck.choice([at for at in range(len(changed)) if at != 4])
                changed[place] ^= 1 << self.luck.randrange(8)
                copy = datagram._replace(parts=(bytes(changed),))
            self.order += 1
            self.flying.append((self.now_ps + delay_ps, self.order, to, copy))
