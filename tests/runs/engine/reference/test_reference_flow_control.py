"""Pause frames on the wire, their refresh and expiry, and the law of the reserve."""

from helpers.reference_flow_control import incast, small


def test_too_little_headroom_drops_what_comes_after_the_pause() -> None:
    _, outcome = incast(small(headroom_bytes=5_000, buffer_bytes=5 * 2 * 4096 + 5 * 5_000 + 50_000))
    assert outcome.counters["drop_headroom_full"] > 0
    assert (outcome.messages["acked_at_ps"] >= 0).all()
