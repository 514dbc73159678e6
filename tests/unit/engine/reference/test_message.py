"""Messages alone: how a queue cuts them into packets, and how an inbox gives them to those who ask."""

from __future__ import annotations

import pytest
from helpers.by_hand import HandClock

from weftwork.engine.reference.message import Inbox, Message, SendQueue

MTU_BYTES = 1_000


def queue_of(*sizes_bytes: int) -> SendQueue:
    queue = SendQueue(MTU_BYTES)
    for size_bytes in sizes_bytes:
        queue.append(size_bytes, 0, 5, lambda: None)
    return queue


@pytest.mark.parametrize(
    ("size_bytes", "payloads"),
    [
        (0, [0]),
        (1, [1]),
        (MTU_BYTES, [MTU_BYTES]),
        (MTU_BYTES + 1, [MTU_BYTES, 1]),
        (2_500, [MTU_BYTES, MTU_BYTES, 500]),
    ],
)
def test_a_message_is_full_packets_and_a_shorter_last_one(size_bytes: int, payloads: list[int]) -> None:
    queue = queue_of(size_bytes)
    assert [queue.payload_bytes(seq, seq + 1) for seq in range(queue.end)] == payloads


def test_packets_are_numbered_on_over_messages() -> None:
    queue = queue_of(1_500, 0, 3_000)
    assert [(message.first, message.end) for message in queue.messages] == [(0, 2), (2, 3), (3, 6)]
    assert [queue.ordinal_of(seq) for seq in range(6)] == [0, 0, 1, 2, 2, 2]
    assert queue.message_of(2) is queue.messages[1]
    assert [queue.bytes_before(seq) for seq in range(7)] == [0, 1_000, 1_500, 1_500, 2_500, 3_500, 4_500]
    assert queue.payload_bytes(1, 5) == 2_500


def test_an_empty_queue_has_nothing() -> None:
    queue = queue_of()
    assert (queue.end, queue.bytes_before(0), queue.payload_bytes(0, 0)) == (0, 0, 0)


def test_an_acknowledged_message_tells_its_rank_and_keeps_the_instant() -> None:
    told: list[int] = []
    message = Message(size_bytes=1, posted_at_ps=0, completed=lambda: told.append(1))
    message.acknowledged(9)
    assert (message.acked_at_ps, told) == (9, [1])


def test_the_nth_receive_claims_the_nth_message_whichever_comes_first() -> None:
    clock = HandClock()
    queue = queue_of(10, 20, 30)
    inbox = Inbox(clock, queue.messages)
    told: list[str] = []
    assert not inbox.claim(lambda: told.append("first"))
    clock.go_to(7)
    assert inbox.deliver() is queue.messages[0]
    assert told == ["first"]
    inbox.deliver()
    assert (inbox.delivered, inbox.claimed, inbox.delivered_bytes) == (2, 1, 30)
    assert inbox.claim(lambda: told.append("second"))  # it is there: nobody has to be told
    assert not inbox.claim(lambda: told.append("third"))
    assert (told, inbox.claimed, inbox.receives) == (["first"], 2, 3)
    inbox.deliver()
    assert (told, inbox.claimed) == (["first", "third"], 3)
    assert [message.delivered_at_ps for message in queue.messages] == [7, 7, 7]
