"""Building blocks of collective algorithms: streams of repetitions, rings and exchanges.

A step of a ring is two streams, since `Wait` waits for all that its stream has posted: the sending one would else wait
for acknowledgements. The receiving stream counts a token up for each piece that has come; the sending one counts it
down and passes the piece on. The step latency delays the token, and the next piece may come meanwhile: what NCCL counts
as the latency of a step is no time in which a channel can do nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weftwork.spec.job import (
    Await,
    Compute,
    Digit,
    Group,
    Loop,
    Milestone,
    Notify,
    Operation,
    Peer,
    Receive,
    Send,
    Size,
    Wait,
)
from weftwork.workload.collectives.algorithm import END, START, Share
from weftwork.workload.collectives.call import Call

__all__ = ["Cut", "Lane", "Streams", "counter", "exchange", "repeated", "ring", "whole"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """Common properties of the messages of one phase and share.

    ``pause_ps`` is the latency of its steps.
    """

    share: Share
    connection: int
    priority: int
    nic: int = 0
    rail: Literal["own", "peer"] = "own"
    pause_ps: int = 0

    def send(
        self,
        peer: Peer,
        digits: Sequence[Digit] = (),
        *,
        offset: int = 0,
        span: int = 1,
        stride: int = 1,
        copies: int = 1,
    ) -> Send:
        """Send parts of the share."""
        size = Size(
            total_bytes=self.share.total_bytes,
            parts=self.share.parts,
            digits=tuple(digits) if self.share.parts else (),
            offset=offset,
            span=span if self.share.parts else 1,
            span_stride=stride,
            copies=copies,
        )
        return Send(peer=peer, size=size, channel=self.connection, priority=self.priority, nic=self.nic, rail=self.rail)

    def receive(self, peer: Peer, *, reduce: bool = False) -> Receive:
        """Receive data from a peer."""
        return Receive(peer=peer, channel=self.connection, reduce=reduce)

    def passed(self, token: int) -> tuple[Operation, ...]:
        """Wait for posted operations, then count a token up after the latency.

        The next piece may come meanwhile: what NCCL counts is a latency, which pieces that follow each other overlap.
        """
        return (Wait(), Notify(token=token, after_ps=self.pause_ps))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """Extra parts of a message, and the pieces of a step.

    The parts are besides the part that its moving digit names.

    Attributes
    ----------
    offsets : of the pieces, which follow each other within a step
    fixed : further digits
    span, stride : of `Size`
    """

    offsets: Sequence[int] = (0,)
    fixed: tuple[Digit, ...] = ()
    span: int = 1
    stride: int = 1


class Streams:
    """Streams and tokens of one program during construction.

    Tokens are counters of a rank: whoever wants one takes the next.
    """

    def __init__(self) -> None:
        self._tokens = 0
        self._begin: list[Operation] = []
        self._finish: list[Operation] = []
        self._streams: list[tuple[Operation, ...]] = []

    def token(self) -> int:
        """A new token."""
        self._tokens += 1
        return self._tokens - 1

    def at_start(self, times: int = 1) -> int:
        """A token that is counted up at the start of a repetition.

        It may be counted up more than once.
        """
        token = self.token()
        self._begin += [Notify(token=token)] * times
        return token

    def before_end(self, times: int = 1) -> int:
        """A token that a repetition waits for before its end.

        It may wait for the token more than once.
        """
        token = self.token()
        self._finish += [Await(token=token)] * times
        return token

    def add(self, *streams: Sequence[Operation]) -> None:
        """Streams of one repetition."""
        self._streams += [tuple(stream) for stream in streams]

    def of_gpu(self, call: Call) -> list[tuple[Operation, ...]]:
        """All streams of a GPU; the first stream passes the milestones start and end."""
        launch = (Compute(duration_ps=call.base_latency_ps),) if call.base_latency_ps else ()
        body = (Milestone(name=START), *launch, *self._begin, *self._finish, Milestone(name=END))
        return [(Loop(count=call.repeat, body=body),), *self.of_switch(call)]

    def of_switch(self, call: Call) -> list[tuple[Operation, ...]]:
        """All streams of an NVLink switch.

        The switch reacts to messages and passes no milestone.
        """
        return [repeated(call, stream) for stream in self._streams]


def repeated(call: Call, stream: Sequence[Operation]) -> tuple[Operation, ...]:
    """A stream that runs once in each repetition."""
    return (Loop(count=call.repeat, body=tuple(stream)),)


def counter(ranks: int, size: int, weight: int = 1, shift: int = 0) -> Digit:
    """The innermost loop counter as a digit, equal on all ranks.

    The digit is (shift + i) mod ``size``, times ``weight``.
    """
    return Digit(group=Group(stride=ranks, size=size), shift=shift, step=1, weight=weight)  # rank // ranks is 0


def whole(digit: Digit, shift: int, step: int) -> Digit:
    """A digit with the same group and weight, and another loop rule."""
    return Digit(group=digit.group, shift=shift, step=step, weight=digit.weight)


def ring(  # noqa: PLR0913 - parts of a ring, all by name
    lane: Lane,
    group: Group,
    moving: Digit,
    cut: Cut,
    *,
    first: int,
    reduces: int,
    stores: int,
    tokens: tuple[int, int, int],
    direction: int = 1,
) -> tuple[list[Operation], list[Operation]]:
    """Pass parts around a ring.

    In step i, member c sends part c + first - i of the group to member c + 1. With the other direction it sends part
    c - first + i to member c - 1.

    Parameters
    ----------
    lane : what the messages have in common
    group : the ring
    moving : the digit that counts parts along the ring; its shift and step are set here
    cut : what a step is cut into
    first : which part is sent first
    reduces : steps whose receives add to what is here
    stores : steps after them whose receives take the place of what is here
    tokens : that starts it, of its own for pieces that have come, that it counts up at its end
    direction : 1 or -1

    Returns
    -------
    the sending and the receiving stream
    """
    go, data, done = tokens
    following = Peer(rule="shift", group=group, shift=direction)
    previous = Peer(rule="shift", group=group, shift=-direction)

    def sends(shift: int, step: int, before: Sequence[Operation]) -> list[Operation]:
        digits = (whole(moving, direction * shift, direction * step), *cut.fixed)
        found: list[Operation] = []
        for offset in cut.offsets:
            found += [*before, lane.send(following, digits, offset=offset, span=cut.span, stride=cut.stride)]
        return found

    def receives(steps: int, *, reduce: bool) -> list[Operation]:
        body = [lane.receive(previous, reduce=reduce), *lane.passed(data)]
        return [Loop(count=steps, body=tuple(body) * len(cut.offsets))] if steps else []

    def lasts(*, reduce: bool) -> list[Operation]:
        one: list[Operation] = [lane.receive(previous, reduce=reduce)]
        return [*[*one, Wait()] * (len(cut.offsets) - 1), *one, *lane.passed(done)]

    more = reduces + stores - 1
    sending = [Await(token=go), *sends(first, 0, ())]
    if more:
        sending.append(Loop(count=more, body=tuple(sends(first - 1, -1, (Await(token=data),)))))
    if stores:
        return sending, [*receives(reduces, reduce=True), *receives(stores - 1, reduce=False), *lasts(reduce=False)]
    return sending, [*receives(reduces - 1, reduce=True), *lasts(reduce=True)]


def exchange(
    lane: Lane, group: Group, moving: Digit, cut: Cut, *, reduce: bool, go: int, done: int
) -> tuple[list[Operation], list[Operation]]:
    """Send to every other member of a group at once.

    The i-th send (from 0) goes to member c + 1 + i.

    Parameters
    ----------
    lane : what the messages have in common
    group : who takes part
    moving : the digit of the part, by the loop's counter i
    cut : what a message is cut into
    reduce : whether what comes is added to what is here
    go, done : tokens: that starts it, that it counts up when all has come

    Returns
    -------
    the sending and the receiving stream
    """
    others = group.size - 1
    to = Peer(rule="shift", group=group, shift=1, step=1)
    by = Peer(rule="shift", group=group, shift=-1, step=-1)
    digits = (moving, *cut.fixed)
    sends = tuple(lane.send(to, digits, offset=offset, span=cut.span, stride=cut.stride) for offset in cut.offsets)
    receives = (lane.receive(by, reduce=reduce),) * len(cut.offsets)
    sending: list[Operation] = [Await(token=go), Loop(count=others, body=sends)]
    return sending, [Loop(count=others, body=receives), *lane.passed(done)]
