"""Queue pairs in turn: an unrolled program sends what it sent before, to the same peers, dealt one by one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from helpers.workload_turns import GROUP, RANKS, expanded, turned
from hypothesis import given
from hypothesis import strategies as st

from weftwork.spec.job import Digit, Loop, Operation, Peer, Receive, Send, Size, Wait
from weftwork.spec.peers import coordinates, peers_of

PEERS = st.one_of(
    st.builds(Peer, rule=st.just("shift"), group=st.just(GROUP), shift=st.integers(1, 3), step=st.just(0)),
    st.builds(
        Peer, rule=st.just("shift"), group=st.just(GROUP), shift=st.integers(1, 3), step=st.sampled_from([1, -1])
    ),
    st.builds(Peer, rule=st.just("xor"), group=st.just(GROUP), shift=st.just(1), step=st.sampled_from([0, 1])),
    st.builds(Peer, rule=st.just("rank"), shift=st.integers(0, RANKS - 1)),
)


DIGITS = st.builds(
    Digit, group=st.just(GROUP), shift=st.integers(0, 3), step=st.integers(-1, 2), weight=st.sampled_from([1, 2])
)


SIZES = st.builds(lambda digit: Size(total_bytes=1_000, parts=RANKS, digits=(digit,)), DIGITS)


SENDS = st.builds(Send, peer=PEERS, size=SIZES, channel=st.integers(0, 1))


MESSAGES = st.one_of(SENDS, st.builds(Receive, peer=PEERS, channel=st.integers(0, 1)), st.just(Wait()))


def loops(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    bodies = st.lists(inside, min_size=1, max_size=3).map(tuple)
    return st.builds(Loop, count=st.integers(1, 4), body=bodies)  # 1 << 3 is still a rank


STREAMS = st.lists(st.recursive(MESSAGES, loops, max_leaves=6), min_size=1, max_size=4).map(tuple)


def meant(operation: Operation, counter: int) -> tuple[Any, ...]:
    """What an operation does on each rank, its queue pair left out."""
    if not isinstance(operation, Send | Receive):
        return (operation,)
    ranks = np.arange(RANKS)
    peers = peers_of(operation.peer, ranks, counter).tolist()
    parts: list[int] = []
    if isinstance(operation, Send):
        (digit,) = operation.size.digits
        parts = ((coordinates(digit.group, ranks) + digit.shift + digit.step * counter) % RANKS * digit.weight).tolist()
    return type(operation), peers, parts


@given(stream=STREAMS, pairs=st.integers(2, 5))
def test_an_unrolled_stream_means_the_same_and_keeps_its_connections(stream: tuple[Any, ...], pairs: int) -> None:
    before, after = list(expanded(stream)), list(expanded(turned(stream, pairs)))
    assert [meant(*one) for one in after] == [meant(*one) for one in before]
    for (old, _), (new, _) in zip(before, after, strict=True):
        if isinstance(old, Send | Receive) and isinstance(new, Send | Receive):
            assert new.channel // pairs == old.channel


@given(stream=STREAMS, pairs=st.integers(2, 5))
def test_messages_to_a_fixed_peer_are_dealt_one_by_one(stream: tuple[Any, ...], pairs: int) -> None:
    sent: Counter[tuple[Any, ...]] = Counter()
    for (old, _), (new, _) in zip(expanded(stream), expanded(turned(stream, pairs)), strict=True):
        if isinstance(old, Send | Receive) and isinstance(new, Send | Receive) and old.peer.step == 0:
            key = (type(old), old.peer, old.channel)
            assert new.channel == old.channel * pairs + sent[key] % pairs
            sent[key] += 1
