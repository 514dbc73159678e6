"""The streams of a job alone, on a clock and a network that the test holds."""

from __future__ import annotations

from collections.abc import Callable

from helpers.by_hand import HandClock
from helpers.tiny import job_of, packet_input_of, star

from weftwork.engine.reference.job import JobRun, OpRow
from weftwork.spec.job import Await, Compute, Loop, Milestone, Notify, Operation, Peer, Receive, Send, Size, Wait

SEND = Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=1_000), channel=4)
RECEIVE = Receive(peer=Peer(rule="rank", shift=1), channel=4)


class HandNetwork:
    """It carries nothing: a test completes what was posted and claimed."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, int, int, int]] = []
        self.claims: list[tuple[int, int, int]] = []
        self.completed: list[Callable[[], None]] = []
        self.is_there = False

    def send(self, source: int, destination: int, size_bytes: int, op: OpRow, completed: Callable[[], None]) -> None:
        self.sent.append((source, destination, size_bytes, op.channel))
        self.completed.append(completed)

    def claim(self, source: int, destination: int, channel: int, completed: Callable[[], None]) -> bool:
        self.claims.append((source, destination, channel))
        self.completed.append(completed)
        return self.is_there


class Driven:
    """Rank 0 with these streams, beside one that does nothing."""

    def __init__(self, *streams: list[Operation]) -> None:
        self.clock, self.network = HandClock(), HandNetwork()
        self.job = JobRun(packet_input_of(star(2), job_of([list(streams), []])), self.clock, self.network)
        self.job.start()
        self.clock.go_to(0)

    def milestones(self) -> list[tuple[int, int]]:
        """Name and instant of what has happened."""
        return [(name, at_ps) for _, name, at_ps in self.job.milestones]


def test_a_stream_waits_until_all_that_it_posted_is_complete() -> None:
    driven = Driven([SEND, RECEIVE, Milestone(name=0), Wait(), Milestone(name=1)])
    assert driven.network.sent == [(0, 1, 1_000, 4)]
    assert driven.network.claims == [(1, 0, 4)]
    assert driven.milestones() == [(0, 0)]
    for at_ps, completed in zip((50, 70), driven.network.completed, strict=True):
        assert not driven.job.has_ended()
        driven.clock.go_to(at_ps)
        completed()
    assert driven.milestones() == [(0, 0)]  # in the agenda of this instant, not at once
    driven.clock.go_to(70)
    assert driven.milestones() == [(0, 0), (1, 70)]
    assert driven.job.has_ended()


def test_a_receive_of_what_is_there_already_is_waited_for_by_nobody() -> None:
    driven = Driven([Compute(duration_ps=5), RECEIVE, Wait(), Milestone(name=0)])
    driven.network.is_there = True
    driven.clock.go_to(5)
    assert driven.milestones() == [(0, 5)]


def test_each_turn_of_a_loop_posts_anew() -> None:
    driven = Driven([Loop(count=3, body=(SEND, Compute(duration_ps=10)))])
    driven.clock.run()
    assert driven.network.sent == [(0, 1, 1_000, 4)] * 3
    assert driven.clock.now_ps == 30


def test_a_token_wakes_every_stream_that_waits_and_one_of_them_takes_it() -> None:
    waits: list[Operation] = [Await(token=0), Milestone(name=1)]
    driven = Driven([Compute(duration_ps=9), Notify(token=0)], waits, waits)
    driven.clock.run()
    assert driven.milestones() == [(1, 9)]
    assert not driven.job.has_ended()
    driven.job.signal(0, 0)
    driven.clock.run()
    assert driven.job.has_ended()
