"""Samples of the delivery rate, from counts that are remembered at some departures.

One packet in some, `MARKS` in a window, is remembered with the delivery count at its departure, so that its ACK gives a
sample of the delivery rate; the ACKs of the others count bytes and measure the RTT.
Source: Linux, net/ipv4/tcp_rate.c (tcp_rate_skb_sent, tcp_rate_gen, tcp_rate_check_app_limited).
Leaves out: what a control makes of a sample, and what else it remembers at a departure.
"""

from __future__ import annotations

from weftwork.policies.interface import SenderState, Signal, array

__all__ = [
    "MIN_RATE_BPS", "PS_PER_BYTE_SECOND", "RING", "DeliveryState", "drawn_bits", "end_limit", "limit_by_application",
    "newest_mark", "note_departure", "paced", "sample_interval_ps",
]  # fmt: skip

RING = 32  # chosen: room for twice the marks of a window
MARKS = 16  # chosen: a round is then known to end within a sixteenth of it
MIN_RATE_BPS = 1e6  # chosen: below any rate that is measured here; a rate of 0 would stop the sender
PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second


class DeliveryState(SenderState):
    """Counts of one sending queue pair, and marks: those of the packets that are remembered."""

    highest_seq: int
    seed: int
    delivered_bytes: int
    delivered_at_ps: int
    first_sent_at_ps: int
    app_limited_until_bytes: int
    unmarked_bytes: int
    first_mark: int  # counts marks that are done with
    next_mark: int  # counts marks
    mark_sent_at_ps: list[int] = array(RING)
    mark_delivered_bytes: list[int] = array(RING)
    mark_delivered_at_ps: list[int] = array(RING)
    mark_first_sent_at_ps: list[int] = array(RING)
    mark_app_limited: list[int] = array(RING)


def note_departure(state: DeliveryState, signal: Signal) -> int:
    """Remember the delivery count at some departures (tcp_rate_skb_sent); return the place of the mark, or -1."""
    if state.highest_seq == 0:
        state.seed = signal.entropy + 1
    state.highest_seq = max(state.highest_seq, signal.next_seq)
    if signal.inflight_bytes <= signal.bytes:
        state.first_sent_at_ps = signal.now_ps
        state.delivered_at_ps = signal.now_ps
    state.unmarked_bytes += signal.bytes
    is_due = state.unmarked_bytes * MARKS >= min(state.window_bytes, float(signal.inflight_bytes))
    if not is_due or state.next_mark - state.first_mark >= RING:
        return -1
    place = state.next_mark % RING
    state.mark_sent_at_ps[place] = signal.now_ps
    state.mark_delivered_bytes[place] = state.delivered_bytes
    state.mark_delivered_at_ps[place] = state.delivered_at_ps
    state.mark_first_sent_at_ps[place] = state.first_sent_at_ps
    state.mark_app_limited[place] = 1 if state.app_limited_until_bytes > 0 else 0
    state.next_mark += 1
    state.unmarked_bytes = 0
    return place


def limit_by_application(state: DeliveryState, signal: Signal) -> None:
    """Mark samples as application-limited until all this has arrived (tcp_rate_check_app_limited)."""
    state.app_limited_until_bytes = max(state.delivered_bytes + signal.inflight_bytes, 1)


def end_limit(state: DeliveryState) -> None:
    """Samples are no longer application-limited once all that was in flight has arrived (tcp_rate_gen)."""
    if 0 < state.app_limited_until_bytes < state.delivered_bytes:
        state.app_limited_until_bytes = 0


def newest_mark(state: DeliveryState, sent_at_ps: int) -> int:
    """Place of the last remembered packet that left by this instant, or -1.

    This packet and those before it are then discarded.
    """
    place = -1
    for _ in range(RING):
        if state.first_mark == state.next_mark or state.mark_sent_at_ps[state.first_mark % RING] > sent_at_ps:
            break
        place = state.first_mark % RING
        state.first_mark += 1
    return place


def sample_interval_ps(state: DeliveryState, place: int, now_ps: int) -> int:
    """Time over which a sample was delivered: of sending or of arriving, the longer one (tcp_rate_gen)."""
    sending_ps = state.mark_sent_at_ps[place] - state.mark_first_sent_at_ps[place]
    return max(sending_ps, now_ps - state.mark_delivered_at_ps[place])


def paced(rate_bps: float, margin: float, signal: Signal) -> float:
    """The measured rate less the margin, at most the line rate."""
    return min(max(rate_bps * (1.0 - margin), MIN_RATE_BPS), float(signal.line_rate_bps))


def drawn_bits(state: DeliveryState) -> int:
    """The next 15 random bits of this queue pair (ISO C, 7.22.2: the example of rand)."""
    state.seed = (state.seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return state.seed // 65_536
