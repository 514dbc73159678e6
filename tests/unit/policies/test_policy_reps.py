"""REPS, packet by packet: good entropies come again once, a failure freezes them, and then others are tried."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.clock import MS_PS, US_PS
from weftwork.policies.interface import OFF, Kind
from weftwork.policies.load import load

RANDOM = 40_000  # what a packet draws


class Paths:
    """One queue pair with all entropies."""

    def __init__(self, **parameters: Any) -> None:
        self.policy = load("path_selection", "reps", {"paths": 65_536, **parameters})
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.signal.base_rtt_ps = 10 * US_PS

    def tell(self, kind: Kind, **fields: int) -> None:
        for name, value in {"ecn": 0, "hops": 3, "kind": int(kind), **fields}.items():
            setattr(self.signal, name, value)
        self.policy.call_step(self.state, self.signal)

    def send(self, packets: int = 1) -> list[int]:
        found = []
        for _ in range(packets):
            self.tell(Kind.SEND, draw=RANDOM)
            found.append(int(self.state.entropy))
        return found

    def answers(self, *entropies: int) -> None:
        for entropy in entropies:
            self.tell(Kind.ACK, entropy=entropy)


def test_without_answers_every_packet_draws() -> None:
    paths = Paths(paths=100)
    for number in range(5):
        paths.tell(Kind.SEND, draw=1_000 + number)
        assert paths.state.entropy == number


def test_good_entropies_come_again_once_oldest_first() -> None:
    paths = Paths()
    paths.answers(7, 8, 9)
    assert paths.send(4) == [7, 8, 9, RANDOM]


@pytest.mark.parametrize("fields", [{"ecn": 1}, {"hops": 0}])
def test_a_marked_answer_or_one_that_no_packet_caused_keeps_nothing(fields: dict[str, int]) -> None:
    paths = Paths()
    paths.tell(Kind.ACK, entropy=7, **fields)
    assert paths.send() == [RANDOM]


@pytest.mark.parametrize("ring", [8, 3])
def test_the_ring_keeps_the_newest(ring: int) -> None:
    paths = Paths(ring=ring)
    paths.answers(*range(1, 13))
    assert paths.send(ring + 1) == [*range(13 - ring, 13), RANDOM]


def test_a_timeout_freezes_the_ring_used_or_not() -> None:
    paths = Paths()
    paths.answers(1, 2, 3)
    assert paths.send(2) == [1, 2]
    paths.tell(Kind.TIMEOUT)
    assert paths.send(7) == [1, 2, 3, 1, 2, 3, 1]
    paths.answers(4)  # good ones still come in
    assert paths.send(4) == [2, 3, 4, 1]


def test_a_frozen_ring_without_entropies_draws() -> None:
    paths = Paths()
    paths.tell(Kind.TIMEOUT)
    assert paths.send(3) == [RANDOM] * 3


def test_without_freezing_a_timeout_changes_nothing() -> None:
    paths = Paths(freezes=False)
    paths.answers(1)
    paths.tell(Kind.TIMEOUT)
    assert paths.send(2) == [1, RANDOM]


def test_after_10_ms_the_first_event_empties_the_ring_and_16_packets_draw() -> None:
    paths = Paths()
    paths.answers(1, 2)
    paths.tell(Kind.TIMEOUT)
    paths.tell(Kind.ACK, entropy=3, now_ps=10 * MS_PS)
    assert paths.send() == [1]
    paths.tell(Kind.ACK, entropy=4, now_ps=10 * MS_PS + 1)
    paths.tell(Kind.TIMEOUT, now_ps=10 * MS_PS + 2)  # exploring: no freezing
    assert paths.send(17) == [RANDOM] * 16 + [4]
    assert paths.state.frozen_until_at_ps == OFF


def test_freezing_and_exploring_last_as_long_as_the_parameters_say() -> None:
    paths = Paths(freeze_ps="100us", explore=2)
    paths.tell(Kind.TIMEOUT)
    paths.tell(Kind.ACK, entropy=4, now_ps=100 * US_PS + 1)
    assert paths.send(3) == [RANDOM, RANDOM, 4]


def test_holes_that_freezing_left_are_passed_over() -> None:
    paths = Paths(ring=4, explore=0, freeze_ps=5)
    paths.answers(1, 2, 3, 4)
    paths.tell(Kind.TIMEOUT)
    assert paths.send(2) == [1, 2]
    assert paths.state.fresh_count == 2
    paths.answers(5)  # over the first place: 3, 4 and 5 are fresh, with a hole between 5 and 3
    paths.state.frozen_until_at_ps = OFF
    assert paths.send(4) == [3, 4, 5, RANDOM]


def test_early_detection_waits_for_the_cumulative_acknowledgement() -> None:
    paths = Paths(early_rtts=3)
    paths.send()
    assert paths.state.timer_at_ps[0] == 30 * US_PS
    paths.tell(Kind.ACK, entropy=1, seq=1, inflight_bytes=4_096, now_ps=12 * US_PS)
    paths.tell(Kind.ACK, entropy=2, seq=1, inflight_bytes=4_096, now_ps=20 * US_PS)  # beyond a gap
    assert paths.state.timer_at_ps[0] == 42 * US_PS
    paths.tell(Kind.TIMER, inflight_bytes=4_096, now_ps=42 * US_PS)
    assert paths.send(3) == [1, 2, 1]
    assert paths.state.timer_at_ps[0] == 72 * US_PS


def test_early_detection_rests_while_nothing_is_in_flight() -> None:
    paths = Paths(early_rtts=3)
    paths.send()
    paths.tell(Kind.ACK, entropy=1, seq=1, inflight_bytes=0, now_ps=12 * US_PS)
    assert paths.state.timer_at_ps[0] == OFF
    assert paths.state.frozen_until_at_ps == OFF


told = st.tuples(st.sampled_from([Kind.SEND, Kind.ACK, Kind.TIMEOUT]), st.integers(0, 30_000), st.integers(0, MS_PS))


@given(story=st.lists(told, max_size=120))
def test_the_count_of_fresh_entropies_is_that_of_the_ring(story: list[tuple]) -> None:
    paths = Paths(freeze_ps="2ms")
    for kind, entropy, wait_ps in story:
        paths.tell(kind, entropy=entropy, draw=RANDOM, now_ps=int(paths.signal.now_ps) + wait_ps)
        assert paths.state.fresh_count == sum(paths.state.fresh) <= paths.state.held <= 8
        assert 0 <= paths.state.head < 8
