"""The requester of a reliable connection.

It sends requests, takes the answers, and retransmits lost packets. PSNs are counted without wrapping here and are cut
to 24 bits on the wire. A loss is answered by going back to the first packet that is missing (go-back-N): all from there
on are sent again.
Source: IBTA vol. 1, 9.7.3 (requests), 9.7.5 (ACK, NAK, RNR NAK), 9.7.6 and 9.9.2 (timeouts, retries, errors).
Leaves out: end-to-end credits; the responder's side, see `responder`.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Final

from weftwork.rdma.requests import ATOMICS, COMPLETES_AS, SendEntry
from weftwork.rdma.states import QpEvent
from weftwork.rdma.trains import copy_payloads
from weftwork.rdma.verbs import ATOMIC_BYTES, INFINITE_RNR_RETRY, QpState, QpType, Wc, WcStatus
from weftwork.wire.extended import Aeth, AethKind, AtomicAckEth, Nak
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import PSN_MODULUS, psn_compare
from weftwork.wire.opcodes import Opcode
from weftwork.wire.rnr import rnr_timer_us

if TYPE_CHECKING:
    from weftwork.rdma.datagram import Datagram
    from weftwork.rdma.queue_pair import RdmaQueuePair

__all__ = ["REFUSED", "RcRequester"]

_ACK_EVERY: Final = 64  # chosen: packets of a long message between two requests for an ACK
TIMEOUT_UNIT_PS: Final = 4_096_000  # IBTA vol. 1, 9.7.6.1.3: 4.096 us x 2^timeout
_PS_PER_US: Final = 1_000_000
_READ_RESPONSES: Final = range(Opcode.READ_RESPONSE_FIRST, Opcode.READ_RESPONSE_ONLY + 1)
_WITH_AETH: Final = frozenset({Opcode.READ_RESPONSE_FIRST, Opcode.READ_RESPONSE_LAST, Opcode.READ_RESPONSE_ONLY})
# IBTA vol. 1, 9.9.2.4.2: status of the request that a NAK refuses.
REFUSED: Final = {
    Nak.INVALID_REQUEST: WcStatus.REM_INV_REQ_ERR,
    Nak.REMOTE_ACCESS_ERROR: WcStatus.REM_ACCESS_ERR,
    Nak.REMOTE_OPERATIONAL_ERROR: WcStatus.REM_OP_ERR,
}

# Names of mlx5 (NVIDIA, "Understanding mlx5 Linux counters").
_COUNTED_AS: Final = {
    WcStatus.REM_INV_REQ_ERR: "req_remote_invalid_request",
    WcStatus.REM_ACCESS_ERR: "req_remote_access_errors",
    WcStatus.RETRY_EXC_ERR: "req_transport_retries_exceeded",
    WcStatus.RNR_RETRY_EXC_ERR: "req_rnr_retries_exceeded",
}


class RcRequester:
    """Requests of one queue pair, in order.

    Invariant: ``una <= sent_end``; what is below ``una`` has been executed by the peer and its answer is here.

    Parameters
    ----------
    qp : whose requests
    max_inflight : packets that may be on their way

    Attributes
    ----------
    entries : requests that have not ended
    una : first PSN that is not acknowledged, not wrapped
    sent_end : PSN behind the last that was ever sent
    deadline_ps : when to send again without an answer, or None
    paused_until_ps : the peer had no receive posted and asked for a pause; or None
    """

    def __init__(self, qp: RdmaQueuePair, max_inflight: int) -> None:
        self._qp: Final = qp
        self._max_inflight: Final = max_inflight
        self.entries: deque[SendEntry] = deque()
        self.start(0)

    def awaits(self, psn: int) -> bool:
        """Whether a packet with this PSN, 24 bits, was sent and is not acknowledged."""
        return 0 <= psn_compare(psn, self.una % PSN_MODULUS) < self.sent_end - self.una

    def start(self, first_psn: int) -> None:
        """Reset, and send from this PSN on."""
        self.entries.clear()
        self.una = self.sent_end = self._assigned_end = first_psn
        self.deadline_ps: int | None = None
        self.paused_until_ps: int | None = None
        self._cursor = 0  # the entry, and the packet of it, to send next
        self._packet = 0
        self._asking = 0  # READs and atomics that are on their way
        self._recovered_at = first_psn  # no further gap in responses is told before this PSN
        self._retries_left = self._qp.attr.retry_cnt
        self._rnr_retries_left = self._qp.attr.rnr_retry

    # Sending

    def is_sending(self) -> bool:
        """Whether state and peer permit packets."""
        return self._qp.state in {QpState.RTS, QpState.SQD} and self.paused_until_ps is None

    @property
    def inflight_packets(self) -> int:
        """Packets on their way; those to be sent again are not."""
        return max(0, self._next_psn() - self.una)

    def _next_psn(self) -> int:
        """PSN of the packet that goes next, for the first time or again."""
        if self._cursor >= len(self.entries):
            return self.sent_end
        entry = self.entries[self._cursor]
        return self._assigned_end if entry.first_psn < 0 else entry.first_psn + self._packet

    def can_send(self) -> bool:
        """Whether a packet waits to go now."""
        if not self.is_sending() or self._cursor >= len(self.entries):
            return False
        entry = self.entries[self._cursor]
        if entry.error is not None:
            return self._cursor == 0
        if self._next_psn() - self.una >= self._max_inflight:
            return False
        if entry.first_psn < 0 and self._qp.state is QpState.SQD:
            return False
        if entry.is_fenced and entry.first_psn < 0 and self._asking:
            return False
        return not entry.awaits_response or self._asking < self._qp.attr.max_rd_atomic

    def next_datagram(self, now_ps: int) -> Datagram | None:
        """Make the next packet; None if the request ends here without one."""
        entry = self.entries[self._cursor]
        if entry.first_psn < 0 and not self._begin(entry):
            return None
        if entry.packets == 0:
            self._step()
            return None
        if 0 < self._packet < entry.packets - 1:
            made = self._next_train(entry, now_ps)
            if made is not None:
                return made
        index = entry.received if entry.awaits_response else self._packet
        psn = entry.first_psn + index
        packet = entry.packet(index)
        if entry.awaits_response:
            self._asking += 1
            entry.is_asked = True
            self._step()
            self.sent_end = max(self.sent_end, entry.end_psn)
        else:
            self._packet += 1
            if packet.ends_message:
                self._step()
            self.sent_end = max(self.sent_end, psn + 1)
        is_full = psn + 1 - self.una >= self._max_inflight
        asks = packet.ends_message or is_full or psn % _ACK_EVERY == _ACK_EVERY - 1
        if self.deadline_ps is None:
            self._restart_timer(now_ps)
        is_solicited = packet.ends_message and entry.is_solicited
        return self._qp.request_datagram(packet, psn % PSN_MODULUS, asks=asks, solicited=is_solicited)

    def _next_train(self, entry: SendEntry, now_ps: int) -> Datagram | None:
        """Make the next middle packets of a message together.

        None if they have to go one by one.
        """
        first_psn = entry.first_psn + self._packet
        room = self._max_inflight - (first_psn - self.una)
        count = self._qp.train_packets(min(entry.packets - 1 - self._packet, room))
        payload = entry.middle(self._packet, count)
        if not payload:
            return None
        self._packet += count
        psns = range(first_psn, first_psn + count)
        self.sent_end = max(self.sent_end, psns.stop)
        if self.deadline_ps is None:
            self._restart_timer(now_ps)
        first_asking = psns.start + -(psns.start + 1) % _ACK_EVERY
        asking = {*range(first_asking, psns.stop, _ACK_EVERY), *(psns[-1:] if count == room else ())}
        train = self._qp.train(entry.middle_opcode, psns, payload, frozenset(asking))
        is_last = self._packet == entry.packets - 1 and count < room
        return self._with_last(train, entry, psns) if is_last else train

    def _with_last(self, train: Datagram, entry: SendEntry, psns: range) -> Datagram:
        """Append a message's last packet to its others.

        It must have no more headers than the others.
        """
        packet = entry.packet(self._packet)
        if packet.headers or not self._qp.train_packets(len(psns) + 1) > len(psns):
            return train
        self._step()
        self.sent_end = max(self.sent_end, psns.stop + 1)
        last = self._qp.request_datagram(
            packet, psns.stop % PSN_MODULUS, asks=True, solicited=entry.is_solicited, identification=len(psns)
        )
        return train._replace(parts=train.parts + last.parts)

    def _begin(self, entry: SendEntry) -> bool:
        """Give a request its PSNs; False if it ends without a packet."""
        status = entry.error if entry.error is not None else entry.local_error(QpType.RC)
        if status is None and not entry.find_memory(self._qp.memory, self._qp.pd):
            status = WcStatus.LOC_PROT_ERR
        if entry.packets == 0 and status is None:
            status = entry.execute_here(self._qp.memory, self._qp.pd, self._qp.qp_num)
        if status is not None and status is not WcStatus.SUCCESS:
            entry.error = status  # told when those before it have ended
            if self._cursor == 0:
                self._fail(entry, status)
            return False
        entry.first_psn = self._assigned_end
        self._assigned_end += entry.packets
        if entry.packets == 0:
            self._step()
            self._complete_until(self.una)
            return False
        return True

    def _step(self) -> None:
        self._cursor += 1
        self._packet = 0

    # Answers

    def receive(self, opcode: int, wrapped_psn: int, body: memoryview, now_ps: int) -> None:
        """Take an ACK or a response; unexpected answers are dropped."""
        psn = self.una + psn_compare(wrapped_psn, self.una % PSN_MODULUS)
        if psn >= self.sent_end or psn < self.una - 1:
            self._qp.counters["unexpected_response"] += psn >= self.sent_end
            return
        try:
            if opcode in _READ_RESPONSES:
                self._take_read(opcode, psn, body, now_ps)
                return
            aeth, behind = Aeth.decode(body)
            if opcode == Opcode.ATOMIC_ACKNOWLEDGE:
                self._take_atomic(psn, AtomicAckEth.decode(behind)[0].original_data, now_ps)
                return
        except MalformedPacket:
            self._qp.counters["malformed"] += 1
            return
        self._take_ack(aeth, psn, now_ps)

    def _take_ack(self, aeth: Aeth, psn: int, now_ps: int) -> None:
        if aeth.kind is AethKind.ACK:
            self._acknowledge(psn + 1, now_ps)
            return
        if psn < self.una:
            return
        if not self._acknowledge(psn, now_ps):
            return
        if aeth.kind is AethKind.RNR_NAK:
            self._pause(aeth.value, now_ps)
        elif aeth.kind is AethKind.NAK and aeth.value == Nak.PSN_SEQUENCE_ERROR:
            self._qp.counters["packet_seq_err"] += 1
            self._recover(now_ps)
        elif aeth.kind is AethKind.NAK and aeth.value in REFUSED and self.entries:
            self._fail(self.entries[0], REFUSED[Nak(aeth.value)])

    def _take_read(self, opcode: int, psn: int, body: memoryview, now_ps: int) -> None:
        entry = self._awaited(psn, now_ps)
        if entry is None:
            return
        payload = Aeth.decode(body)[1] if opcode in _WITH_AETH else body
        done_bytes = (psn - entry.first_psn) * self._qp.attr.path_mtu
        expected_bytes = min(self._qp.attr.path_mtu, entry.length - done_bytes) if entry.reads else 0
        if len(payload) != expected_bytes or entry.wr.opcode in ATOMICS or entry.data is None:
            self._fail(entry, WcStatus.BAD_RESP_ERR)
            return
        if payload:
            entry.data.write(done_bytes, payload)
        self._answered(entry, psn, now_ps)

    def room_for_train(self, operation: int, psn: int) -> range:
        """Number of middle responses of the present READ that can be taken.

        They count from this PSN on.
        """
        del operation  # READ_RESPONSE_MIDDLE
        entry = self.entries[0] if self.entries else None
        if entry is None or not entry.reads or entry.first_psn < 0 or not entry.received or entry.data is None:
            return range(0)
        first_psn = entry.first_psn + entry.received
        if first_psn % PSN_MODULUS != psn or first_psn != self.una or len(entry.data.pieces) != 1:
            return range(0)
        return range(first_psn, min(entry.end_psn - 1, self.sent_end))

    def take_train(self, payload: memoryview, segment_bytes: int, psns: range, now_ps: int, *, asks: bool) -> None:
        """Take middle responses of a READ."""
        del asks  # only requests ask
        entry = self.entries[0]
        if entry.data is not None:
            start, mtu = entry.received * self._qp.attr.path_mtu, self._qp.attr.path_mtu
            copy_payloads(payload, segment_bytes, len(psns), entry.data.pieces[0][start : start + len(psns) * mtu])
            entry.received += len(psns)
            self._acknowledge(psns.stop, now_ps)

    def _take_atomic(self, psn: int, original: int, now_ps: int) -> None:
        entry = self._awaited(psn, now_ps)
        if entry is None:
            return
        if entry.wr.opcode not in ATOMICS or entry.data is None:
            self._fail(entry, WcStatus.BAD_RESP_ERR)
            return
        entry.data.write(0, original.to_bytes(ATOMIC_BYTES, sys.byteorder))
        self._answered(entry, psn, now_ps)

    def _awaited(self, psn: int, now_ps: int) -> SendEntry | None:
        """Entry that awaits the response with this PSN.

        The response acknowledges all entries before it.
        """
        if psn < self.una or not self._acknowledge(psn, now_ps):
            return None
        entry = self.entries[0] if self.entries else None
        if entry is None or not entry.awaits_response or entry.first_psn < 0:
            return None
        return entry if psn == entry.first_psn + entry.received else None

    def _answered(self, entry: SendEntry, psn: int, now_ps: int) -> None:
        entry.received += 1
        if entry.received == entry.packets and entry.is_asked:
            entry.is_asked = False
            self._asking -= 1
        self._acknowledge(psn + 1, now_ps)

    def _acknowledge(self, end_psn: int, now_ps: int) -> bool:
        """Note that the peer has executed everything below a PSN.

        False if a response before it was lost.
        """
        before = self.una
        reached = self._complete_until(end_psn)
        if self.una > before:
            self._retries_left = self._qp.attr.retry_cnt
            self._rnr_retries_left = self._qp.attr.rnr_retry
            self._restart_timer(now_ps)
        if not reached and self.una >= self._recovered_at:
            self._qp.counters["implied_nak_seq_err"] += 1
            self._recovered_at = self.sent_end
            self._recover(now_ps)
        return reached

    def _complete_until(self, end_psn: int) -> bool:
        while self.entries and self.entries[0].first_psn >= 0 and self.entries[0].end_psn <= end_psn:
            entry = self.entries[0]
            if not entry.is_answered:
                self.una = max(self.una, entry.first_psn + entry.received)
                return False
            self.entries.popleft()
            if self._cursor > 0:
                self._cursor -= 1
            else:
                self._packet = 0  # acknowledged while it was being sent again
            self.una = max(self.una, entry.end_psn)
            self._complete(entry, WcStatus.SUCCESS)
        entry_or_none = self.entries[0] if self.entries else None
        if entry_or_none is not None and entry_or_none.first_psn >= 0 and not entry_or_none.is_answered:
            self.una = max(self.una, min(end_psn, entry_or_none.first_psn + entry_or_none.received))
            return self.una == end_psn or end_psn < self.una
        self.una = max(self.una, end_psn)
        if self._cursor == 0 and entry_or_none is not None and entry_or_none.first_psn >= 0:
            self._packet = max(self._packet, self.una - entry_or_none.first_psn)
        return True

    # What goes wrong

    def on_timer(self, now_ps: int) -> None:
        """Continue after a pause, or retransmit requests without an answer."""
        if self.paused_until_ps is not None and now_ps >= self.paused_until_ps:
            self.paused_until_ps = None
            self._restart_timer(now_ps)
        if self.deadline_ps is not None and now_ps >= self.deadline_ps:
            self._qp.counters["local_ack_timeout_err"] += 1
            self._recover(now_ps)

    def next_timer_ps(self) -> int | None:
        """Next instant at which `on_timer` has work, or None."""
        return self.paused_until_ps if self.paused_until_ps is not None else self.deadline_ps

    def _pause(self, code: int, now_ps: int) -> None:
        self._qp.counters["rnr_nak"] += 1
        if self._rnr_retries_left == 0 and self.entries:
            self._fail(self.entries[0], WcStatus.RNR_RETRY_EXC_ERR)
            return
        if self._qp.attr.rnr_retry != INFINITE_RNR_RETRY:
            self._rnr_retries_left -= 1
        self._go_back()
        self.paused_until_ps = now_ps + rnr_timer_us(code) * _PS_PER_US
        self.deadline_ps = None

    def _recover(self, now_ps: int) -> None:
        if self._retries_left == 0 and self.entries:
            self._fail(self.entries[0], WcStatus.RETRY_EXC_ERR)
            return
        self._retries_left -= 1
        self._go_back()
        self._restart_timer(now_ps)

    def _go_back(self) -> None:
        """Retransmit from the first packet that is not acknowledged."""
        for entry in self.entries:
            if entry.first_psn < 0:
                break
            entry.is_asked = False
        self._cursor = self._packet = self._asking = 0
        if self.entries and self.entries[0].first_psn >= 0:
            self._packet = max(0, self.una - self.entries[0].first_psn)

    def _restart_timer(self, now_ps: int) -> None:
        is_waiting = self.una < self.sent_end and self._qp.attr.timeout > 0 and self.paused_until_ps is None
        self.deadline_ps = now_ps + (TIMEOUT_UNIT_PS << self._qp.attr.timeout) if is_waiting else None

    def _fail(self, entry: SendEntry, status: WcStatus) -> None:
        """End the entry with an error.

        Earlier entries are unknown and flushed.
        """
        while self.entries and self.entries[0] is not entry:
            self._complete(self.entries.popleft(), WcStatus.WR_FLUSH_ERR)
        self.entries.popleft()
        self._complete(entry, status)
        if status in _COUNTED_AS:
            self._qp.counters[_COUNTED_AS[status]] += 1
        self._qp.went_wrong(QpEvent.SEND_FAILED)

    def give_up(self) -> None:
        """End the oldest entry as after its last retry, if there are entries."""
        if self.entries:
            self._fail(self.entries[0], WcStatus.RETRY_EXC_ERR)

    def flush(self) -> None:
        """End all entries, since the queue pair is in error."""
        while self.entries:
            self._complete(self.entries.popleft(), WcStatus.WR_FLUSH_ERR)
        self._cursor = self._packet = self._asking = 0
        self.deadline_ps = self.paused_until_ps = None

    def _complete(self, entry: SendEntry, status: WcStatus) -> None:
        is_told = status is not WcStatus.SUCCESS or self._qp.sq_sig_all or entry.is_signaled
        if is_told:
            byte_len = entry.length if entry.awaits_response else 0
            opcode = COMPLETES_AS[entry.wr.opcode]
            self._qp.complete_send(
                Wc(wr_id=entry.wr.wr_id, status=status, opcode=opcode, qp_num=self._qp.qp_num, byte_len=byte_len)
            )
