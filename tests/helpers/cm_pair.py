"""Two NICs with connection managers, and the wire of `rdma_pair` between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from helpers.rdma_pair import ALL, SECOND_PS, BadWire, Pair

from weftwork.rdma.cm_id import CmId
from weftwork.rdma.cm_records import CmEvent, CmEventType, ConnParam
from weftwork.rdma.connection_manager import ConnectionManager
from weftwork.rdma.datagram import Datagram
from weftwork.rdma.encapsulation import ROCE_V2, Encapsulation
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.queue_pair import NicLimits, RdmaQueuePair
from weftwork.rdma.verbs import QpType
from weftwork.wire.cm import CmMessage, decode_cm, encode_cm
from weftwork.wire.extended import Deth
from weftwork.wire.ib import Bth
from weftwork.wire.mad import GENERAL_SERVICES_QP, GENERAL_SERVICES_QUEUE_KEY, MadHeader
from weftwork.wire.opcodes import Opcode

PORT = 4420
MOMENT_PS = SECOND_PS // 10_000  # longer than any packet is on its way


class CmPair:
    """End 0 asks, end 1 listens on PORT."""

    def __init__(
        self,
        wire: BadWire | None = None,
        *,
        limits: NicLimits | None = None,
        ipv6: bool = False,
        encapsulation: Encapsulation = ROCE_V2,
        manager: dict[str, Any] | None = None,
        managers: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
        nic: dict[str, Any] | None = None,
        backlog: int = 64,
    ) -> None:
        self.wire = Pair(wire, memory_bytes=4096, limits=limits, nic=nic, ipv6=ipv6, encapsulation=encapsulation)
        self.nics, self.pds, self.cqs = self.wire.nics, self.wire.pds, self.wire.cqs
        self.addresses = tuple(end.address for end in self.nics)
        for index in (0, 1):
            self.nics[index].destroy_qp(self.wire.qps[index])
        self.cms = [
            ConnectionManager(end, **{**(manager or {}), **more}) for end, more in zip(self.nics, managers, strict=True)
        ]
        self.listener = self.cms[1].listen(PORT, backlog)
        self.events: list[list[CmEvent]] = [[], []]

    def qp(self, end: int, qp_type: QpType = QpType.RC) -> RdmaQueuePair:
        return self.nics[end].create_qp(self.pds[end], qp_type, (self.cqs[end], self.cqs[end]))

    def connect(self, port: int = PORT, qp: RdmaQueuePair | None = None, **param: Any) -> CmId:
        qp = qp if qp is not None else self.qp(0)
        return self.cms[0].connect(self.addresses[1], port, qp, ConnParam(**param))

    def run(self, limit_ps: int = 3600 * SECOND_PS) -> bool:
        return self.wire.run(limit_ps)

    def take(self, end: int) -> list[CmEvent]:
        """Events since the last call; all are kept in `events`."""
        found = []
        while (event := self.cms[end].next_event()) is not None:
            found.append(event)
        self.events[end] += found
        return found

    def types(self, end: int) -> list[CmEventType]:
        return [event.event_type for event in self.take(end)]

    def soon(self) -> None:
        """Run for a moment, in which no answer is late."""
        limit_ps = self.wire.now_ps + MOMENT_PS
        self.wire.run(limit_ps)
        self.wire.now_ps = min(self.wire.now_ps, limit_ps)

    def request(self, **param: Any) -> tuple[CmId, CmId]:
        """A request that waits at end 1, and both conversations."""
        mine = self.connect(**param)
        self.soon()
        (event,) = [event for event in self.take(1) if event.event_type is CmEventType.CONNECT_REQUEST]
        return mine, event.id

    def establish(self, accept: dict[str, Any] | None = None, **param: Any) -> tuple[CmId, CmId]:
        """A connection, and both conversations; all rights are given."""
        mine, theirs = self.request(qp_access_flags=ALL, **param)
        theirs.accept(self.qp(1), ConnParam(**{"qp_access_flags": ALL, **(accept or {})}))
        self.soon()
        assert self.types(0) == self.types(1) == [CmEventType.ESTABLISHED]
        return mine, theirs

    def messages(self) -> list[tuple[int, MadHeader, CmMessage]]:
        """All messages that were sent: by which end, and what."""
        return [
            (self.addresses.index(datagram.source), *decode_cm(datagram.payload()[20:-4]))
            for datagram in self.wire.sent
            if datagram.payload()[0] == Opcode.UD_SEND_ONLY
        ]

    def names(self) -> list[str]:
        return [message.NAME for _, _, message in self.messages()]

    def forge(self, to: int, message: CmMessage | bytes, transaction: int = 0, **more: Any) -> None:
        """Deliver a message to an end, as from the other one unless `source` says otherwise; the ICRC is right."""
        mad = message if isinstance(message, bytes) else encode_cm(message, transaction)
        key, qp_num = more.get("queue_key", GENERAL_SERVICES_QUEUE_KEY), more.get("source_qp", GENERAL_SERVICES_QP)
        bth = Bth(
            more.get("opcode", Opcode.UD_SEND_ONLY), GENERAL_SERVICES_QP, 0, partition_key=more.get("pkey", 0xFFFF)
        )
        sender = RdmaNic(more.get("source", self.addresses[1 - to]))
        flow = sender.flow(self.addresses[to], 0xC000, 0)
        made: Datagram = flow.close(bth.encode() + Deth(key, qp_num).encode(), (mad,))
        self.nics[to].receive(made._replace(parts=(bytes(made.payload()),)), self.wire.now_ps)

    def live(self, react: Callable[[int, CmEvent], None]) -> bool:
        """Run until nothing is left to happen, and let the users react to every event; False where that has no end."""
        for _ in range(20_000):
            times = [at for end in self.nics if (at := end.next_timer_ps()) is not None]
            limit_ps = max(self.wire.now_ps, min(times, default=0)) + MOMENT_PS
            is_over = self.wire.run(limit_ps)
            self.wire.now_ps = min(self.wire.now_ps, limit_ps)
            found = [(end, event) for end in (0, 1) for event in self.take(end)]
            for end, event in found:
                react(end, event)
            if is_over and not found:
                return True
        return False

    def left_over(self) -> list[object]:
        """What the managers still keep."""
        tables = ("_ids", "_by_peer", "_by_peer_qp", "_by_qp", "_pending", "_time_waits", "_outgoing")
        kept: list[object] = [entry for cm in self.cms for table in tables for entry in getattr(cm, table)]
        return kept + [entry for cm in self.cms for entry in (*cm._clocks._to_start, *cm.services.kept)]
