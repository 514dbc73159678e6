"""Bitmap, packet by packet: entropies in turns, bad ones passed over."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.policies.interface import Kind
from weftwork.policies.load import load

ORDER = 5  # place xor 5: the order of a round of eight
ROUND = [place ^ ORDER for place in range(8)]


class Paths:
    """One queue pair with eight entropies."""

    def __init__(self, **parameters: Any) -> None:
        self.policy = load("path_selection", "bitmap", {"paths": 8, **parameters})
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()

    def tell(self, kind: Kind, **fields: int) -> None:
        for name, value in {"ecn": 0, "hops": 3, "last_hop": 0, "kind": int(kind), **fields}.items():
            setattr(self.signal, name, value)
        self.policy.call_step(self.state, self.signal)

    def send(self, packets: int = 1) -> list[int]:
        found = []
        for _ in range(packets):
            self.tell(Kind.SEND, draw=ORDER | ORDER << 16)
            found.append(int(self.state.entropy))
        return found


def test_all_entropies_are_walked_and_none_that_came_back_comes_again() -> None:
    paths = Paths()
    paths.tell(Kind.ACK, entropy=6)
    assert paths.send(8) == ROUND
    assert paths.send(8) == ROUND


def test_a_new_round_has_another_order() -> None:
    paths = Paths()
    paths.send(8)
    paths.tell(Kind.SEND, draw=3)
    assert paths.state.entropy == 3


@pytest.mark.parametrize(
    ("kind", "fields", "penalty"),
    [
        (Kind.ACK, {"ecn": 1}, 1),
        (Kind.ACK, {}, 0),
        (Kind.TRIM, {}, 4),
        (Kind.TRIM, {"last_hop": 1}, 0),
        (Kind.TIMEOUT, {}, 15),
    ],
)
def test_an_entropy_is_passed_over_as_often_as_its_penalty_says(kind: Kind, fields: dict, penalty: int) -> None:
    paths = Paths()
    paths.tell(kind, entropy=3, **fields)
    assert paths.state.penalty[3] == sum(paths.state.penalty) == penalty
    sent = paths.send(7 * penalty + 8)
    assert sent.count(3) == 1
    assert sent.index(3) >= 7 * penalty  # once in a round it is met, passed over, and loses one


def test_penalties_are_those_of_the_parameters_and_have_an_end() -> None:
    paths = Paths(mark_penalty=3, trim_penalty=0, most_penalty=7)
    for _ in range(3):
        paths.tell(Kind.ACK, entropy=2, ecn=1)
        paths.tell(Kind.TRIM, entropy=4)
    assert (paths.state.penalty[2], paths.state.penalty[4]) == (7, 0)


def test_where_all_are_bad_one_is_taken_all_the_same() -> None:
    paths = Paths()
    for entropy in range(8):
        paths.tell(Kind.TIMEOUT, entropy=entropy)
    assert 0 <= paths.send()[0] < 8
    assert sum(paths.state.penalty) == 8 * 15 - 1


@given(bad=st.sets(st.integers(0, 7), max_size=7))
def test_a_packet_takes_no_bad_entropy_while_there_are_others(bad: set[int]) -> None:
    paths = Paths()
    for entropy in bad:
        paths.tell(Kind.TIMEOUT, entropy=entropy)
    assert bad.isdisjoint(paths.send(8))
