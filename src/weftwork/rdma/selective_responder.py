"""The responder under selective repeat.

It keeps early packets, and executes them when the gap is closed. A kept packet is executed once and in the order of
PSNs, as if it had come then. So all else is as without the option.
Source: own, a private option; the simulator's transports do the same (``docs/models/packet-engine.md``).
Leaves out: the form of the NAK, see ``weftwork.wire.selective_nak``; the other end, see `selective_requester`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.rdma.psn_ranges import PsnRanges
from weftwork.rdma.responder import KeptPacket, RcAnswer, RcResponder
from weftwork.rdma.states import PROCESSES_RECEIVES
from weftwork.wire.selective_nak import MOST_AHEAD, SelectiveNak

if TYPE_CHECKING:
    from weftwork.wire.opcodes import OpcodeShape

__all__ = ["SelectiveResponder"]


class SelectiveResponder(RcResponder):
    """Requests of the peer, with room for early packets.

    Invariant: no kept packet has the expected PSN, or one before it.
    """

    def start(self, first_psn: int) -> None:
        """Reset, and expect this PSN."""
        super().start(first_psn)
        self._kept_psns = PsnRanges()
        self._ahead: dict[int, KeptPacket] = {}  # by PSN that is not wrapped
        self.ahead_bytes = 0

    def receive(self, shape: OpcodeShape, wrapped_psn: int, body: memoryview, *, asks: bool, solicited: bool) -> None:
        """Take a request and the packets that waited for it.

        See `RcResponder.receive`.
        """
        super().receive(shape, wrapped_psn, body, asks=asks, solicited=solicited)
        self._execute_kept()

    def take_train(self, payload: memoryview, segment_bytes: int, psns: range, now_ps: int, *, asks: bool) -> None:
        """Take middle packets of a message and the packets that waited for them."""
        super().take_train(payload, segment_bytes, psns, now_ps, asks=asks)
        self._execute_kept()

    def _execute_kept(self) -> None:
        executed = 0
        while self._ahead and self._qp.state in PROCESSES_RECEIVES:
            kept = self._ahead.pop(self.expected_psn, None)
            if kept is None:
                break
            self.ahead_bytes -= len(kept.body)
            self._kept_psns.discard(self.expected_psn, self.expected_psn + 1)
            before = self.expected_psn
            super().receive(kept.shape, kept.wrapped_psn, kept.body, asks=kept.asks, solicited=kept.solicited)
            executed += self.expected_psn > before
        if executed and self._qp.state in PROCESSES_RECEIVES:
            self._acknowledge()

    def forget_ahead(self) -> None:
        """Free early packets."""
        self._ahead.clear()
        self._kept_psns.clear()
        self.ahead_bytes = 0

    def _take_ahead(self, ahead: int, packet: KeptPacket) -> None:
        """Keep an early packet if there is room, and report kept packets.

        Without room do as without the option.
        """
        limits = self._qp.host.limits
        psn = self.expected_psn + ahead
        if psn not in self._ahead:
            has_room = self.ahead_bytes + len(packet.body) <= limits.max_out_of_order_bytes
            if ahead > min(limits.max_out_of_order, MOST_AHEAD // 2) or not has_room:
                self._qp.counters["out_of_order_dropped"] += 1
                super()._take_ahead(ahead, packet)
                return
            # a copy, since the driver may use the datagram again
            self._ahead[psn] = packet._replace(body=memoryview(bytes(packet.body)))
            self._kept_psns.add(psn, psn + 1)
            self.ahead_bytes += len(packet.body)
        start, end = self._kept_psns.around(psn)
        told = SelectiveNak(start - self.expected_psn, end - start)
        last = self._answers[-1] if self._answers else None
        before = SelectiveNak.of_aeth(last.aeth) if last is not None and last.aeth is not None else None
        if last is not None and before is not None and last.psn == self.expected_psn and before.is_within(told):
            self._answers.pop()  # the new one says as much and more
        self._push(RcAnswer(self.expected_psn, told.aeth()))

    def _advance(self, psns: int) -> None:
        super()._advance(psns)
        for psn in [psn for psn in self._ahead if psn < self.expected_psn] if psns > 1 else ():
            # those of a train have come again, and none may lie within the PSNs that a READ takes
            self.ahead_bytes -= len(self._ahead.pop(psn).body)
        self._kept_psns.discard(self.expected_psn - psns, self.expected_psn)

    def _drop_answers_from(self, psn: int) -> None:
        """Drop nothing.

        Answers that a repeated request does not ask for are still to be sent.
        """
