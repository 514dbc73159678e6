"""The traffic matrix of a job is what its NIC ports send: held against the flow engine, which moves the bytes."""

from __future__ import annotations

from helpers.tiny import Message, job_of, sends, star

from weftwork.spec.job import Group, Loop, Peer, Send, Size, Wait
from weftwork.study.prepare.traffic_matrix import traffic_matrix


def test_loops_are_multiplied_and_counters_give_peers() -> None:
    """Two rounds of three shifts in a ring of three, which leaves out oneself, are twice one message to each other."""
    others = Peer(rule="shift", group=Group(size=3), shift=1, step=1)
    body = (Send(peer=others, size=Size(total_bytes=30, parts=3)),)
    stream = (Loop(count=2, body=(Loop(count=2, body=body), Wait())),)
    matrix = traffic_matrix(star(3), job_of([[stream]] * 3))
    pairs = list(zip(matrix.source.tolist(), matrix.destination.tolist(), strict=True))
    assert pairs == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert matrix.size_bytes.tolist() == [20.0] * 6


def test_messages_of_a_queue_pair_are_one_row_and_channels_are_not() -> None:
    messages = [
        Message(source=0, destination=1, size_bytes=5),
        Message(source=0, destination=1, size_bytes=7, priority=6),
        Message(source=0, destination=1, size_bytes=1, channel=2),
        Message(source=1, destination=0, size_bytes=0),
    ]
    matrix = traffic_matrix(star(2), sends(2, messages))
    assert list(zip(matrix.channel.tolist(), matrix.size_bytes.tolist(), matrix.priority.tolist(), strict=True)) == [
        (0, 12.0, 6),
        (2, 1.0, -1),
    ]
