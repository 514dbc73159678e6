"""PLB, ACK by ACK: bad rounds move a queue pair, a timeout moves it once and for long."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.clock import SECOND_PS
from weftwork.policies.interface import Kind
from weftwork.policies.load import load

OWN = 50_000
PACKET_BYTES = 4_096


class Pair:
    """One queue pair; each ACK ends a round unless told otherwise."""

    def __init__(self, **parameters: Any) -> None:
        self.policy = load("path_selection", "plb", parameters)
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.state.entropy = OWN
        self.seq = 0

    def tell(self, kind: Kind, **fields: int) -> None:
        for name, value in {"arrived_bytes": 0, "marked_bytes": 0, "kind": int(kind), **fields}.items():
            setattr(self.signal, name, value)
        self.policy.call_step(self.state, self.signal)

    def rounds(self, count: int, marked: float = 1.0, **fields: int) -> None:
        for _ in range(count):
            self.seq += 1
            inflight = {"inflight_bytes": PACKET_BYTES, **fields}
            marked_bytes = int(PACKET_BYTES * marked)
            self.tell(Kind.ACK, seq=self.seq, next_seq=self.seq + 1, arrived_bytes=PACKET_BYTES,
                      marked_bytes=marked_bytes, **inflight)  # fmt: skip

    def send(self, draw: int = 7) -> int:
        self.tell(Kind.SEND, draw=draw)
        return int(self.state.entropy)


def test_twelve_bad_rounds_move_it_once() -> None:
    pair = Pair()
    pair.rounds(11)
    assert pair.send() == OWN
    pair.rounds(1)
    assert pair.send(draw=16_384 + 9) == 49_152 + 9
    assert pair.send(draw=11) == 49_152 + 9


def test_a_good_round_begins_the_count_again() -> None:
    pair = Pair()
    pair.rounds(11)
    pair.rounds(1, marked=0.49)
    pair.rounds(11, marked=0.5)
    assert pair.send() == OWN
    pair.rounds(1, marked=0.5)
    assert pair.send() != OWN


def test_a_round_ends_with_the_packets_that_were_in_flight_at_its_start() -> None:
    pair = Pair(rounds=1, idle_rounds=0)
    pair.tell(Kind.ACK, seq=1, next_seq=10, arrived_bytes=100, marked_bytes=0, inflight_bytes=1)
    pair.tell(Kind.ACK, seq=9, next_seq=20, arrived_bytes=800, marked_bytes=800, inflight_bytes=1)
    assert pair.send() == OWN
    pair.tell(Kind.ACK, seq=10, next_seq=20, arrived_bytes=100, marked_bytes=0, inflight_bytes=1)  # 800 of 900
    assert pair.send() != OWN


@pytest.mark.parametrize(("idle_rounds", "moves"), [(3, True), (4, False), (0, False)])
def test_with_nothing_in_flight_three_are_enough(idle_rounds: int, moves: bool) -> None:  # noqa: FBT001
    pair = Pair(idle_rounds=idle_rounds)
    pair.rounds(3)
    assert pair.send() == OWN
    pair.tell(Kind.RESUME, inflight_bytes=0)
    assert (pair.send() != OWN) is moves


@pytest.mark.parametrize(("share", "moves"), [(0.25, True), (0.26, False), (0.0, True)])
def test_the_share_of_a_bad_round_is_the_parameter(share: float, moves: bool) -> None:  # noqa: FBT001
    pair = Pair(share=share)
    pair.rounds(12, marked=0.25)
    assert (pair.send() != OWN) is moves


def test_a_timeout_moves_it_and_holds_it_for_60_to_120_s() -> None:
    pair = Pair()
    pair.tell(Kind.TIMEOUT)
    assert pair.send(draw=2**61 + 5) == 49_152 + 5  # half of all draws: 90 s
    pair.tell(Kind.ACK, now_ps=90 * SECOND_PS - 1)
    pair.rounds(12)
    assert pair.send() == 49_152 + 5
    pair.signal.now_ps = 90 * SECOND_PS + 1
    pair.rounds(12)
    assert pair.send(draw=8) == 49_152 + 8


def test_without_suspension_a_timeout_holds_nothing() -> None:
    pair = Pair(suspend_ps=0)
    pair.tell(Kind.TIMEOUT)
    pair.send(draw=5)
    pair.rounds(12)
    assert pair.send(draw=8) == 49_152 + 8


@given(marks=st.lists(st.sampled_from([0.0, 0.4, 0.6, 1.0]), max_size=60))
def test_it_moves_after_every_twelfth_bad_round_in_a_row(marks: list[float]) -> None:
    pair, bad, entropy = Pair(), 0, OWN
    for number, marked in enumerate(marks):
        pair.rounds(1, marked=marked)
        bad = bad + 1 if marked >= 0.5 else 0
        if bad == 12:
            bad, entropy = 0, 49_152 + number
        assert pair.send(draw=number) == entropy
