"""Mixed paths, packet by packet: good entropies come again, bad ones are passed over."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.policies.interface import Kind
from weftwork.policies.load import load

ORDER = 5  # place xor 5: the order of a round of eight
ROUND = [place ^ ORDER for place in range(8)]


class Paths:
    """One queue pair with eight entropies; every answer without a mark counts."""

    def __init__(self, variant: str | None = None, **parameters: Any) -> None:
        self.policy = load("path_selection", "mixed", {"paths": 8, "good_every": 1, **parameters}, variant)
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.signal.entropy = 0xC123  # the queue pair's own

    def tell(self, kind: Kind, **fields: int) -> None:
        for name, value in {"ecn": 0, "hops": 0, "last_hop": 0, "kind": int(kind), **fields}.items():
            setattr(self.signal, name, value)
        self.policy.call_step(self.state, self.signal)

    def send(self, packets: int = 1) -> list[int]:
        found = []
        for _ in range(packets):
            self.tell(Kind.SEND, draw=ORDER | ORDER << 16, entropy=0xC123)
            found.append(int(self.state.entropy))
        return found

    def answer(self, entropy: int, ecn: int = 0) -> None:
        self.tell(Kind.ACK, entropy=entropy, ecn=ecn, hops=3)


def test_without_answers_all_entropies_are_walked_in_the_order_of_the_round() -> None:
    paths = Paths()
    assert paths.send(8) == ROUND
    assert sorted(paths.send(8)) == list(range(8))


def test_a_new_round_has_another_order() -> None:
    paths = Paths()
    paths.send(8)
    paths.tell(Kind.SEND, draw=3, entropy=0xC123)
    assert paths.state.entropy == 0 ^ 3


def test_a_round_that_ends_while_bad_entropies_are_passed_over_has_another_order_too() -> None:
    paths = Paths()
    paths.send(7)
    paths.answer(ROUND[7], ecn=1)
    paths.tell(Kind.SEND, draw=6 << 16, entropy=0xC123)
    assert paths.state.entropy == 0 ^ 6


def test_good_entropies_come_again_first_in_first_out_and_once() -> None:
    paths = Paths()
    paths.answer(6)
    paths.answer(2)
    assert paths.send(4) == [6, 2, *ROUND[:2]]


def test_of_every_fourth_clean_answer_the_entropy_is_kept() -> None:
    paths = Paths(good_every=4)
    for entropy in (1, 2, 3, 4, 5):
        paths.answer(entropy)
    assert paths.send(2) == [4, ROUND[0]]


def test_an_acknowledgement_that_no_packet_caused_tells_of_no_entropy() -> None:
    paths = Paths()
    paths.tell(Kind.ACK, entropy=6)
    assert paths.send() == [ROUND[0]]


def test_a_marked_entropy_is_passed_over_once() -> None:
    paths = Paths()
    paths.answer(ROUND[1], ecn=1)
    assert paths.send(7) == [ROUND[0], *ROUND[2:]]
    assert sorted(paths.send(8)) == list(range(8))


@pytest.mark.parametrize(
    ("kind", "fields", "penalty"),
    [
        (Kind.ACK, {"ecn": 1, "hops": 3}, 1),
        (Kind.TRIM, {"hops": 3}, 4),
        (Kind.TRIM, {"hops": 3, "last_hop": 1}, 0),
        (Kind.TIMEOUT, {}, 15),
    ],
)
def test_what_is_held_against_an_entropy(kind: Kind, fields: dict[str, int], penalty: int) -> None:
    paths = Paths()
    paths.tell(kind, entropy=3, **fields)
    assert paths.state.penalty[3] == penalty
    assert sum(paths.state.penalty) == penalty


def test_a_penalty_has_an_end() -> None:
    paths = Paths()
    for _ in range(5):
        paths.tell(Kind.TRIM, entropy=3)
    assert paths.state.penalty[3] == 15


def test_only_the_first_bad_entropy_that_a_packet_meets_gets_better() -> None:
    paths = Paths()
    for entropy in ROUND[:3]:
        paths.answer(entropy, ecn=1)
    assert paths.send() == [ROUND[3]]
    assert [paths.state.penalty[entropy] for entropy in ROUND[:3]] == [0, 1, 1]


def test_where_all_are_bad_one_is_taken_all_the_same() -> None:
    paths = Paths()
    for entropy in range(8):
        paths.tell(Kind.TIMEOUT, entropy=entropy)
    assert 0 <= paths.send()[0] < 8
    assert sum(paths.state.penalty) == 8 * 15 - 1


def test_a_packet_cut_at_the_last_hop_had_a_good_way() -> None:
    paths = Paths()
    paths.tell(Kind.TRIM, entropy=7, last_hop=1, hops=3)
    assert paths.send(2) == [7, ROUND[0]]


def test_more_good_entropies_than_there_is_room_for_push_the_oldest_out() -> None:
    paths = Paths(paths=256)
    for entropy in range(300):
        paths.answer(entropy)
    assert paths.send(2) == [44, 45]
    assert paths.state.held == 254


told = st.tuples(st.sampled_from([Kind.SEND, Kind.ACK, Kind.TRIM, Kind.TIMEOUT]), st.integers(0, 65_535), st.booleans())


@given(story=st.lists(told, max_size=80))
def test_an_entropy_is_of_the_round_or_came_back_clean_and_was_not_taken_since(story: list[tuple]) -> None:
    paths = Paths()
    clean: list[int] = []
    for kind, number, flag in story:
        if kind == Kind.SEND:
            paths.tell(kind, draw=number, entropy=0xC123)
            found = int(paths.state.entropy)
            assert found == clean.pop(0) if clean else found < 8
        else:
            last_hop = int(flag and kind == Kind.TRIM)
            paths.tell(kind, entropy=number, ecn=int(flag and kind == Kind.ACK), hops=3, last_hop=last_hop)
            if (kind == Kind.ACK and not flag) or last_hop:
                clean.append(number)
        assert all(0 <= penalty <= 15 for penalty in paths.state.penalty[:8])
