"""The requester under selective repeat: it retransmits only lost packets.

What a sign of the peer shows. A NAK names a packet that the peer keeps. The packets that this one has overtaken are
lost, except those that the peer keeps as well. An ACK or a response shows that the peer has executed all before it,
and the peer answers in order. So a response that should have come before it is lost. What has been sent again is lost
again when a packet has arrived that was first sent later (its mark), or when the timer fires.
Source: own, a private option, by the names of the simulator's transports (``docs/models/packet-engine.md``, section
Selective repeat).
Leaves out: a threshold for reordering, so that a late packet is sent twice; the other end, see `selective_responder`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from weftwork.rdma.psn_ranges import PsnRanges
from weftwork.rdma.requester import REFUSED, RcRequester
from weftwork.rdma.verbs import WcStatus
from weftwork.wire.extended import Aeth, AethKind
from weftwork.wire.ib import PSN_MODULUS
from weftwork.wire.selective_nak import SelectiveNak

if TYPE_CHECKING:
    from weftwork.rdma.datagram import Datagram
    from weftwork.rdma.queue_pair import RdmaQueuePair
    from weftwork.rdma.requests import RequestPacket, SendEntry

__all__ = ["SelectiveRequester"]

_MOST_RESENT: Final = 1024  # chosen: marks to look through; what has none waits for the timer


class SelectiveRequester(RcRequester):
    """Requests of one queue pair under selective repeat.

    The peer may execute some while an answer is missing. Invariant: ``una <= executed_end``; the peer waits for
    ``executed_end``, so it does not keep that packet.

    Attributes
    ----------
    executed_end : all requests below it have been executed by the peer
    sacked : PSNs of requests beyond it that the peer keeps
    answered : PSNs of responses that have arrived
    lost : PSNs of requests to send again, and of responses to ask for again
    """

    def __init__(self, qp: RdmaQueuePair, max_inflight: int) -> None:
        self.sacked: Final = PsnRanges()
        self.answered: Final = PsnRanges()
        self.lost: Final = PsnRanges()
        self._resent: Final[deque[tuple[int, int, int]]] = deque()  # PSNs from, to, and mark
        super().__init__(qp, max_inflight)

    def start(self, first_psn: int) -> None:
        """Reset, and send from this PSN on."""
        super().start(first_psn)
        self.executed_end = first_psn
        self._judged_below = first_psn  # what a kept packet has overtaken has been looked at
        self._answers_judged_below = first_psn
        self._forget()

    def flush(self) -> None:
        """End all entries, since the queue pair is in error."""
        super().flush()
        self._forget()

    def _forget(self) -> None:
        for ranges in (self.sacked, self.answered, self.lost):
            ranges.clear()
        self._resent.clear()

    # Sending

    @property
    def inflight_packets(self) -> int:
        """Packets on their way; those that are lost are not."""
        return sum(end - start for start, end in self.lost.gaps(self.una, self.sent_end))

    def can_send(self) -> bool:
        """Whether a packet waits to go now."""
        if self.lost and self.is_sending():
            return True
        return super().can_send()

    def next_datagram(self, now_ps: int) -> Datagram | None:
        """Make the next packet, lost packets first; None without any."""
        while self.lost:
            start, end = self.lost.first()
            found = next(iter(self._missing(start, end)), None)
            if found is None:
                self.lost.discard(start, end)
                continue
            return self._send_again(*found, now_ps)
        return super().next_datagram(now_ps) if super().can_send() else None

    def _send_again(self, entry: SendEntry, start: int, end: int, now_ps: int) -> Datagram:
        packet: RequestPacket
        if not entry.awaits_response:
            end = start + 1
            packet = entry.packet(start - entry.first_psn)
        elif self.executed_end <= entry.first_psn:
            packet = entry.packet(0)
        else:
            packet = entry.question(start - entry.first_psn, end - entry.first_psn)
        self.lost.discard(self.lost.first()[0], end)
        if len(self._resent) >= _MOST_RESENT:
            self._resent.popleft()
        self._resent.append((start, end, self.sent_end))
        self._qp.counters["selective_resent"] += 1
        if self.deadline_ps is None:
            self._restart_timer(now_ps)
        is_solicited = packet.ends_message and entry.is_solicited
        return self._qp.request_datagram(packet, start % PSN_MODULUS, asks=True, solicited=is_solicited)

    # Answers

    def _take_ack(self, aeth: Aeth, psn: int, now_ps: int) -> None:
        if aeth.kind is AethKind.ACK:
            self._acknowledge(psn + 1, now_ps)
        elif psn < (self.executed_end if aeth.kind is not AethKind.NAK or aeth.value not in REFUSED else self.una):
            return  # an older one, which may say that the peer keeps what it has refused since
        elif aeth.kind is AethKind.RESERVED:
            self._take_selective(SelectiveNak.of_aeth(aeth), psn, now_ps)
        elif self._acknowledge(psn, now_ps):
            super()._take_ack(aeth, psn, now_ps)
        else:
            self._lose(psn, psn + 1)  # refused; its request cannot fail before the one that lacks a response

    def _take_selective(self, told: SelectiveNak | None, psn: int, now_ps: int) -> None:
        if told is None or psn + told.ahead + told.packets > self.sent_end:
            self._qp.counters["unexpected_response"] += 1
            return
        start, end = psn + told.ahead, psn + told.ahead + told.packets
        self._qp.counters["packet_seq_err"] += 1
        self._acknowledge(psn, now_ps)
        self.sacked.add(start, end)
        self.lost.discard(start, end)
        self._lose(self._judged_below, end)
        self._judged_below = max(self._judged_below, end)
        self._lose_again(end - 1)

    def _awaited(self, psn: int, now_ps: int) -> SendEntry | None:
        """Entry that lacks the response of this PSN.

        Entries before it have been executed.
        """
        self._acknowledge(psn, now_ps)
        if psn < self.una or psn in self.answered:
            return None
        for entry in self.entries:
            if entry.first_psn < 0 or entry.first_psn > psn:
                break
            if psn < entry.end_psn:
                return entry if entry.awaits_response else None
        return None

    def _answered(self, entry: SendEntry, psn: int, now_ps: int) -> None:
        self.answered.add(psn, psn + 1)
        self.lost.discard(psn, psn + 1)
        self._note_progress(now_ps)
        super()._answered(entry, psn, now_ps)

    def take_train(self, payload: memoryview, segment_bytes: int, psns: range, now_ps: int, *, asks: bool) -> None:
        """Take middle responses of a READ."""
        self.answered.add(psns.start, psns.stop)
        self.lost.discard(psns.start, psns.stop)
        super().take_train(payload, segment_bytes, psns, now_ps, asks=asks)

    def _acknowledge(self, end_psn: int, now_ps: int) -> bool:
        """Note that the peer has executed everything below a PSN.

        False if a response before it has not come.
        """
        before = self.una
        self.executed_end = max(self.executed_end, end_psn)
        self.sacked.discard(before, self.executed_end + 1)
        self._complete_until(end_psn)
        if self.una > before:
            self.answered.discard(before, self.una)
            self.lost.discard(before, self.una)
            self._note_progress(now_ps)
        self._lose(self._answers_judged_below, end_psn)
        self._answers_judged_below = max(self._answers_judged_below, end_psn)
        self._lose_again(end_psn - 1)
        return self.una >= end_psn

    def _complete_until(self, _end_psn: int) -> bool:
        """End executed and answered requests in order."""
        while self.entries and self.entries[0].first_psn >= 0 and self.entries[0].end_psn <= self.executed_end:
            if not self.entries[0].is_answered:
                break
            self._cursor -= 1
            self._complete(self.entries.popleft(), WcStatus.SUCCESS)
        before, self.una = self.una, self.executed_end
        first = self.entries[0] if self.entries else None
        if first is not None and first.first_psn >= 0 and first.awaits_response:
            missing = self.answered.gaps(max(before, first.first_psn), first.end_psn)
            self.una = min([start for start, _ in missing] + [self.una])
        return True

    def _note_progress(self, now_ps: int) -> None:
        self._retries_left = self._qp.attr.retry_cnt
        self._rnr_retries_left = self._qp.attr.rnr_retry
        self._restart_timer(now_ps)

    # What goes wrong

    def _recover(self, now_ps: int) -> None:
        """Retransmit everything whose fate is unknown.

        No answer has come in time, or the peer had no room.
        """
        if self._retries_left == 0 and self.entries:
            self._fail(self.entries[0], WcStatus.RETRY_EXC_ERR)
            return
        self._retries_left -= 1
        self._resent.clear()
        self._lose(self.una, self.sent_end)
        self._judged_below = self.sent_end
        self._restart_timer(now_ps)

    def _go_back(self) -> None:
        """Retransmit the first packet, which the peer has refused for a while.

        Packets that the peer keeps stay.
        """
        self._lose(self.una, self.una + 1)

    def _lose(self, start: int, end: int) -> None:
        """Mark missing packets of some PSNs as lost, except retransmitted ones."""
        start = max(start, self.una)
        if start >= end:
            return
        again = [(low, high) for low, high, _ in self._resent if low < end and start < high]
        for _, low, high in self._missing(start, end):
            found = PsnRanges()
            found.add(low, high)
            for left, right in again:
                found.discard(left, right)
            while found:
                piece = found.first()
                self.lost.add(*piece)
                found.discard(*piece)

    def _lose_again(self, arrived_psn: int) -> None:
        """Mark retransmitted packets as lost again after a later arrival.

        They were sent again before the arrived packet was first sent, and are missing.
        """
        while self._resent and self._resent[0][2] <= arrived_psn:
            start, end, _ = self._resent.popleft()
            self._lose(start, end)

    def _missing(self, start: int, end: int) -> list[tuple[SendEntry, int, int]]:
        """Missing requests and responses.

        The peer neither has executed nor keeps these requests; these responses have not come.
        """
        found = []
        for entry in self.entries:
            if entry.first_psn < 0 or entry.first_psn >= end:
                break
            low, high = max(start, entry.first_psn), min(end, entry.end_psn)
            if entry.awaits_response and self.executed_end <= entry.first_psn:
                # not executed, so its responses are not lost: it is, or it is kept
                if start <= entry.first_psn and entry.first_psn not in self.sacked:
                    found.append((entry, low, low + 1))
            elif entry.awaits_response:
                found += [(entry, *gap) for gap in self.answered.gaps(low, high)]
            else:
                found += [(entry, *gap) for gap in self.sacked.gaps(max(low, self.executed_end), high)]
        return found
