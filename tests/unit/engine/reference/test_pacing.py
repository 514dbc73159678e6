"""Pacing alone: when the next packet may leave, by the rate, the segment and what has left of it."""

from __future__ import annotations

from types import SimpleNamespace

from weftwork.base.clock import NEVER_PS
from weftwork.engine.reference.pacing import Pacer

HALF_BPS = 200_000_000_000.0  # a byte takes 40 ps
TENTH_BPS = 40_000_000_000.0  # a byte takes 200 ps


def state_of(rate_bps: float = HALF_BPS, segment_bytes: int = 0) -> SimpleNamespace:
    return SimpleNamespace(rate_bps=rate_bps, segment_bytes=segment_bytes)


def test_without_a_segment_every_packet_waits_for_the_one_before() -> None:
    pacer, state = Pacer(), state_of()
    pacer.sent(100, 1_000, state)
    assert pacer.next_send_at_ps == 100 + 40_000
    pacer.sent(50_000, 500, state)  # late: what was not used is not made up for
    assert pacer.next_send_at_ps == 50_000 + 20_000


def test_a_segment_leaves_back_to_back_and_then_pauses_for_all_of_it() -> None:
    pacer, state = Pacer(), state_of(segment_bytes=2_500)
    starts_ps, waits_until_ps = (0, 20_000, 40_000), []
    for at_ps in starts_ps:
        pacer.sent(at_ps, 1_000, state)
        waits_until_ps.append(pacer.next_send_at_ps)
    assert waits_until_ps == [0, 20_000, 3 * 40_000]  # the third packet reaches 2,500 bytes: 3,000 at 40 ps from 0 on
    pacer.sent(120_000, 1_000, state)
    assert (pacer.segment_at_ps, pacer.segment_sent_bytes) == (120_000, 1_000)
    assert pacer.next_send_at_ps == 120_000


def test_a_segment_of_exactly_its_bytes_is_full_and_one_of_a_byte_less_is_not() -> None:
    for segment_bytes, next_send_at_ps in ((1_000, 40_000), (1_001, 0)):
        pacer = Pacer()
        pacer.sent(0, 1_000, state_of(segment_bytes=segment_bytes))
        assert pacer.next_send_at_ps == next_send_at_ps


def test_a_segment_that_was_left_open_ends_when_its_bytes_have_left_at_the_rate() -> None:
    for at_ps, segment_at_ps, sent_bytes in ((39_999, 0, 2_000), (40_000, 40_000, 1_000)):
        pacer, state = Pacer(), state_of(segment_bytes=10_000)
        pacer.sent(0, 1_000, state)
        pacer.sent(at_ps, 1_000, state)
        assert (pacer.segment_at_ps, pacer.segment_sent_bytes) == (segment_at_ps, sent_bytes)


def test_a_segment_that_became_smaller_than_what_it_has_sent_is_over() -> None:
    pacer = Pacer()
    pacer.sent(0, 1_000, state_of(segment_bytes=10_000))
    pacer.sent(20_000, 1_000, state_of(segment_bytes=1_000))
    assert (pacer.segment_at_ps, pacer.next_send_at_ps) == (20_000, 20_000 + 40_000)


def test_a_departure_that_moves_is_that_of_the_new_rate_from_the_start_of_the_segment_on_and_never_past() -> None:
    pacer = Pacer()
    pacer.sent(100, 1_000, state_of(TENTH_BPS))
    assert pacer.next_send_at_ps == 100 + 200_000
    pacer.move(10_000, HALF_BPS)
    assert pacer.next_send_at_ps == 100 + 40_000
    pacer.move(10_000, TENTH_BPS)
    assert pacer.next_send_at_ps == 100 + 200_000
    pacer.move(60_000, HALF_BPS)  # its time has passed: now
    assert pacer.next_send_at_ps == 60_000
    pacer.move(60_000, TENTH_BPS)  # and now it is no departure to come
    assert pacer.next_send_at_ps == 60_000


def test_a_rate_of_almost_nothing_waits_for_ever_and_no_longer() -> None:
    pacer = Pacer()
    pacer.sent(7, 1_000, state_of(1e-30))
    assert pacer.next_send_at_ps == 7 + int(float(NEVER_PS))
