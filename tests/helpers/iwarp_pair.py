"""Two NICs for iWARP with memory, and the streams between them, cut into pieces of any size."""

from __future__ import annotations

import random
from typing import Any

from helpers.rdma_pair import ALL

from weftwork.rdma.cm_records import CmEvent, CmEventType, ConnParam
from weftwork.rdma.iwarp.connection_manager import IwarpManager
from weftwork.rdma.iwarp.conversation import IwarpCmId
from weftwork.rdma.iwarp.nic import IwarpNic
from weftwork.rdma.iwarp.queue_pair import IwarpQueuePair
from weftwork.rdma.iwarp.setup import MpaOptions
from weftwork.rdma.queue_pair import NicLimits, RdmaQueuePair
from weftwork.rdma.verbs import QpType, RecvWr, SendFlags, SendWr, Sge, Wc

PORT = 7471
MSS = 1460


class IwarpEnd:
    """A NIC, its manager, and one region of memory that the peer may use."""

    def __init__(
        self, number: int, *, memory_bytes: int = 1 << 16, options: MpaOptions | None = None, limits: Any = None
    ) -> None:
        self.nic = IwarpNic(bytes((10, 0, 0, number)), random=random.Random(number), limits=limits, options=options)
        self.manager = IwarpManager(self.nic)
        self.pd = self.nic.alloc_pd()
        self.cq = self.nic.create_cq(4096)
        self.buffer = bytearray(random.Random(number).randbytes(memory_bytes))
        self.mr = self.nic.memory.register(self.pd, self.buffer, ALL)
        self.events: list[CmEvent] = []
        self.qp: RdmaQueuePair = self.new_qp()

    def new_qp(self, **more: Any) -> RdmaQueuePair:
        return self.nic.create_qp(self.pd, QpType.RC, (self.cq, self.cq), **more)

    def sge(self, offset: int, length: int) -> Sge:
        return Sge(self.mr.addr + offset, length, self.mr.lkey)

    def take_events(self) -> list[CmEvent]:
        while (event := self.manager.next_event()) is not None:
            self.events.append(event)
        return self.events

    def kinds(self) -> list[CmEventType]:
        return [event.event_type for event in self.take_events()]

    def poll(self) -> list[Wc]:
        return self.cq.poll(4096)


def first_bytes(pieces: list[memoryview], most_bytes: int) -> bytes:
    found = b""
    for piece in pieces:
        found += piece[: most_bytes - len(found)]
        if len(found) == most_bytes:
            break
    return found


class Stream:
    """Both ends of a TCP connection in memory; what was sent is kept, by direction."""

    def __init__(self, ends: tuple[IwarpCmId, IwarpCmId], mss: int = MSS, *, by_fpdu: bool = False) -> None:
        self.ends = ends
        self.by_fpdu = by_fpdu
        self.sent: list[tuple[int, bytes]] = []
        self.has_closed = [False, False]
        for end in ends:
            end.opened(mss)

    def step(self, luck: random.Random, most_bytes: int) -> bool:
        """Move some bytes in each direction; False if none were left."""
        moved = False
        for number, end in enumerate(self.ends):
            peer = self.ends[1 - number]
            end.look()
            pieces = end.bytes_to_send()
            most = luck.randint(1, most_bytes)
            data = bytes(pieces[0]) if self.by_fpdu and pieces else first_bytes(pieces, most)
            if data:
                end.bytes_sent(len(data))
                self.sent.append((number, data))
                if not peer.is_over:
                    peer.received(memoryview(data))
                moved = True
            elif (end.has_ended or end.is_over) and not self.has_closed[number]:
                self.has_closed[number] = moved = True
                if not peer.is_over:
                    peer.peer_closed()
        return moved


class IwarpPair:
    """Two ends, and the connection between their queue pairs, if ``param`` is not None."""

    def __init__(
        self,
        *,
        seed: int = 0,
        most_bytes: int = 1 << 20,
        options: tuple[MpaOptions, MpaOptions] = (MpaOptions(), MpaOptions()),
        param: tuple[ConnParam, ConnParam] | None = (
            ConnParam(qp_access_flags=ALL),
            ConnParam(qp_access_flags=ALL),
        ),
        mss: int = MSS,
        limits: NicLimits | None = None,
        memory_bytes: int = 1 << 16,
        by_fpdu: bool = False,
    ) -> None:
        self.luck = random.Random(seed)
        self.most_bytes = most_bytes
        self.ends = [
            IwarpEnd(number + 1, options=options[number], limits=limits, memory_bytes=memory_bytes) for number in (0, 1)
        ]
        self.ends[1].manager.listen(PORT)
        self.streams: list[Stream] = []
        self.mss = mss
        self.by_fpdu = by_fpdu
        if param is not None:
            self.ids = self.connect(*param)

    @property
    def qps(self) -> list[IwarpQueuePair]:
        found = [end.qp for end in self.ends]
        assert all(isinstance(qp, IwarpQueuePair) for qp in found)
        return found  # type: ignore[return-value]

    def ask(self, param: ConnParam) -> tuple[IwarpCmId, IwarpCmId]:
        """Ask for a connection, and return both conversations."""
        asking, asked = self.ends
        asking.manager.connect(asked.nic.address, PORT, asking.qp, param)
        active = asking.manager.take_to_open()
        passive = asked.manager.accepted(asking.nic.address, PORT)
        assert active is not None
        assert passive is not None
        self.streams.append(Stream((active, passive), self.mss, by_fpdu=self.by_fpdu))
        return active, passive

    def connect(self, param: ConnParam, answer: ConnParam) -> tuple[IwarpCmId, IwarpCmId]:
        active, passive = self.ask(param)
        self.run()
        passive.accept(self.ends[1].qp, answer)
        self.run()
        return active, passive

    def run(self) -> None:
        """Move bytes until none are left."""
        for _ in range(200_000):
            if not [stream for stream in self.streams if stream.step(self.luck, self.most_bytes)]:
                return
        message = "the streams did not come to rest"
        raise AssertionError(message)

    def post(self, end: int, opcode: Any, here: int = 0, length: int = 0, there: int = 0, **more: Any) -> None:
        """Post a request between two offsets; it asks for a completion."""
        mine, peer = self.ends[end], self.ends[1 - end]
        fields: dict[str, Any] = {
            "wr_id": 0,
            "sg_list": (mine.sge(here, length),) if length else (),
            "flags": SendFlags.SIGNALED,
            "remote_addr": peer.mr.addr + there,
            "rkey": peer.mr.rkey,
        }
        mine.qp.post_send(SendWr(opcode=opcode, **(fields | more)))

    def post_recv(self, end: int, offset: int, length: int, wr_id: int = 0) -> None:
        mine = self.ends[end]
        mine.qp.post_recv(RecvWr(wr_id=wr_id, sg_list=(mine.sge(offset, length),) if length else ()))
