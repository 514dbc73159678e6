"""Links inside a server alone: slices, turns, and when a message is there."""

from __future__ import annotations

from helpers.by_hand import BYTE_PS, RATE_BPS, HandClock

from weftwork.engine.reference.clock import Agenda, Phase
from weftwork.engine.reference.server import Link, ServerLane, ServerLink

LATENCY_PS = 700
SLICE_BYTES = 1_000
SLICE_PS = SLICE_BYTES * BYTE_PS


class Driven:
    """Ranks 0 to 2, each with one link."""

    def __init__(self, *, slow: int | None = None) -> None:
        self.clock = HandClock()
        self.there: list[tuple[str, int]] = []
        self.links = [
            ServerLink(
                self.clock,
                rank,
                Link.NVLINK,
                rate_bps=RATE_BPS // 4 if rank == slow else RATE_BPS,
                latency_ps=LATENCY_PS,
                slice_bytes=SLICE_BYTES,
            )
            for rank in range(3)
        ]

    def lane(self, source: int, destination: int, channel: int = 0) -> ServerLane:
        return ServerLane(
            self.clock,
            source,
            destination,
            channel,
            egress=self.links[source],
            ingress=self.links[destination],
        )

    def posts(self, lane: ServerLane, size_bytes: int, name: str) -> None:
        lane.post(size_bytes, lambda: self.there.append((name, self.clock.now_ps)))


def test_a_message_is_there_after_its_bytes_and_the_latency_and_acknowledged_then() -> None:
    driven = Driven()
    lane = driven.lane(0, 1)
    driven.posts(lane, 2 * SLICE_BYTES + 300, "a")
    there_ps = (2 * SLICE_BYTES + 300) * BYTE_PS + LATENCY_PS
    assert (SLICE_PS, Phase.AGENDA, (Agenda.EGRESS, 0, Link.NVLINK)) in driven.clock.calls
    driven.clock.run()
    assert driven.there == [("a", there_ps)]
    assert (lane.messages[0].delivered_at_ps, lane.messages[0].acked_at_ps) == (there_ps, there_ps)
    assert lane.inbox.delivered == 1


def test_an_empty_message_takes_the_latency() -> None:
    driven = Driven()
    driven.posts(driven.lane(0, 1), 0, "a")
    driven.clock.run()
    assert driven.there == [("a", LATENCY_PS)]


def test_lanes_of_an_egress_take_turns_slice_by_slice() -> None:
    driven = Driven()
    driven.posts(driven.lane(0, 1), 2 * SLICE_BYTES, "long")
    driven.posts(driven.lane(0, 2), SLICE_BYTES, "short")
    driven.clock.run()
    assert driven.there == [("short", 2 * SLICE_PS + LATENCY_PS), ("long", 3 * SLICE_PS + LATENCY_PS)]


def test_an_ingress_takes_slices_one_after_the_other_in_the_order_in_which_they_started() -> None:
    driven = Driven()
    driven.posts(driven.lane(0, 2), SLICE_BYTES, "first")
    driven.posts(driven.lane(1, 2), SLICE_BYTES, "second")
    driven.clock.run()
    assert driven.there == [("first", SLICE_PS + LATENCY_PS), ("second", 2 * SLICE_PS + LATENCY_PS)]


def test_a_slow_egress_and_a_slow_ingress_both_decide() -> None:
    for slow in (0, 1):
        driven = Driven(slow=slow)
        driven.posts(driven.lane(0, 1), 3 * SLICE_BYTES, "a")
        driven.clock.run()
        assert driven.there == [("a", 3 * 4 * SLICE_PS + LATENCY_PS)]


def test_messages_of_a_lane_keep_their_order_and_are_claimed_in_it() -> None:
    driven = Driven()
    lane = driven.lane(0, 1)
    claimed: list[int] = []
    assert not lane.claim(lambda: claimed.append(0))
    for name in "ab":
        driven.posts(lane, SLICE_BYTES, name)
    driven.clock.run()
    assert [name for name, _ in driven.there] == ["a", "b"]
    assert claimed == [0]
    assert lane.claim(lambda: claimed.append(1))
    assert not lane.claim(lambda: claimed.append(2))


def test_the_receiver_is_told_before_the_sender() -> None:
    driven = Driven()
    lane = driven.lane(0, 1)
    lane.claim(lambda: driven.there.append(("claimed", driven.clock.now_ps)))
    driven.posts(lane, 0, "acknowledged")
    driven.clock.run()
    assert [what for what, _ in driven.there] == ["claimed", "acknowledged"]


def test_a_message_that_finds_the_egress_busy_waits_for_its_turn() -> None:
    driven = Driven()
    lane = driven.lane(0, 1)
    driven.posts(lane, SLICE_BYTES, "a")
    driven.clock.go_to(SLICE_PS // 2)
    driven.posts(lane, SLICE_BYTES, "b")
    driven.clock.run()
    assert driven.there == [("a", SLICE_PS + LATENCY_PS), ("b", 2 * SLICE_PS + LATENCY_PS)]
