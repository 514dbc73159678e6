"""The programs of a training job by hand: one actor for each stage, streams with clocks of their own.

Every token and every connection has one reader, so that the order in which streams are taken does not matter. It does
where two streams call on one channel at one time (a share of gradients that hides, with ZeRO 3): times are then rough.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from weftwork.spec.job import Await, Collect, Compute, Job, Loop, Milestone, Notify, Operation, Receive, Send, Wait
from weftwork.spec.peers import peers_of


@dataclass
class Outcome:
    """What the stages did."""

    milestones: list[list[tuple[int, int]]]  # by stage: name, instant
    busy_ps: list[dict[int, int]]  # by stage: label to the time of the main stream that went to it
    collected: dict[tuple[int, str, int], list[int]]  # stage, operation, channel to calls, size_bytes and amount_bytes
    sent: dict[tuple[int, int, int], int]  # source, destination, channel to bytes
    left_tokens: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def end_ps(self) -> int:
        return max(at for milestones in self.milestones for name, at in milestones if name == 1)


def run_stages(
    job: Job,
    *,
    collect_ps: Callable[[Collect], int] = lambda _: 0,
    message_ps: Callable[[int], int] = lambda _: 0,
) -> Outcome:
    """Run a job whose collectives stay inside stages.

    Parameters
    ----------
    job : of `weftwork.workload.training.programs.training_job`
    collect_ps : what a collective takes
    message_ps : what a message of so many bytes takes
    """
    stages = len(job.programs)
    found = Outcome(
        milestones=[[] for _ in range(stages)],
        busy_ps=[defaultdict(int) for _ in range(stages)],
        collected=defaultdict(lambda: [0, 0, 0]),
        sent=defaultdict(int),
    )
    first = [int(np.flatnonzero(job.rank_program == stage)[0]) for stage in range(stages)]
    run = _Run(job=job, found=found, first=first, collect_ps=collect_ps, message_ps=message_ps)
    waiting = [
        run.stream(stage, operations, is_main=number == 0)
        for stage, program in enumerate(job.programs)
        for number, operations in enumerate(program.streams)
    ]
    while waiting:
        before = run.progress()
        waiting = [one for one in waiting if next(one, "done") != "done"]
        assert not waiting or run.progress() != before, "nobody goes on"
    found.left_tokens = {key: len(queue) for key, queue in run.tokens.items() if queue}
    assert not any(run.delivered.values())
    return found


@dataclass
class _Run:
    """What streams share: tokens, messages on their way, and when channels are free."""

    job: Job
    found: Outcome
    first: list[int]  # a rank of each stage
    collect_ps: Callable[[Collect], int]
    message_ps: Callable[[int], int]
    tokens: dict[tuple[int, int], deque[int]] = field(default_factory=lambda: defaultdict(deque))
    delivered: dict[tuple[int, int, int], deque[int]] = field(default_factory=lambda: defaultdict(deque))
    free: dict[tuple[object, ...], int] = field(default_factory=lambda: defaultdict(int))

    def stream(self, stage: int, operations: tuple[Operation, ...], *, is_main: bool) -> Iterator[None]:
        """Go on until something is missing that another stream has to bring."""
        now, posted = 0, [0]

        def spend(until: int, label: int) -> None:
            nonlocal now
            if is_main and until > now:
                self.found.busy_ps[stage][label] += until - now
            now = max(now, until)

        for operation in expanded(operations):
            match operation:
                case Compute(duration_ps=taken, label=label):
                    spend(now + taken, label)
                case Collect():
                    posted.append(self._collect(stage, operation, now))
                case Send():
                    posted.append(self._send(stage, operation, now))
                case Receive():
                    pair = (self._peer(operation, stage), stage, operation.channel)
                    while not self.delivered[pair]:
                        yield
                    posted.append(self.delivered[pair].popleft())
                case Wait(label=label):
                    spend(max(posted), label)
                    posted = [0]
                case Notify(token=token, after_ps=after):
                    self.tokens[stage, token].append(now + after)
                case Await(token=token, label=label):
                    while not self.tokens[stage, token]:
                        yield
                    spend(self.tokens[stage, token].popleft(), label)
                case Milestone(name=name):
                    self.found.milestones[stage].append((name, now))

    def progress(self) -> tuple[object, ...]:
        """Whatever changes when a stream goes on."""
        return (
            tuple((key, len(queue)) for key, queue in self.tokens.items()),
            tuple((key, len(queue)) for key, queue in self.delivered.items()),
            sum(map(len, self.found.milestones)),
            sum(total[0] for total in self.found.collected.values()),
        )

    def _collect(self, stage: int, operation: Collect, now: int) -> int:
        key = (stage, operation.channel, operation.group)
        self.free[key] = max(self.free[key], now) + operation.overhead_ps + self.collect_ps(operation)
        total = self.found.collected[stage, operation.operation, operation.channel]
        total[0] += 1
        total[1] += operation.size_bytes
        total[2] += operation.amount_bytes
        return self.free[key]

    def _send(self, stage: int, operation: Send, now: int) -> int:
        pair = (stage, self._peer(operation, stage), operation.channel)
        self.free[pair] = max(self.free[pair], now) + self.message_ps(operation.size.total_bytes)
        self.delivered[pair].append(self.free[pair])
        self.found.sent[pair] += operation.size.total_bytes
        return self.free[pair]

    def _peer(self, operation: Send | Receive, stage: int) -> int:
        """Stage of the other end."""
        rank = self.first[stage]
        other = int(peers_of(operation.peer, np.array([rank]), 0)[0])
        assert other >= 0
        assert other != rank
        return int(self.job.rank_program[other])


def expanded(operations: tuple[Operation, ...]) -> Iterator[Operation]:
    """Operations with loops unrolled."""
    for operation in operations:
        if isinstance(operation, Loop):
            for _ in range(operation.count):
                yield from expanded(operation.body)
        else:
            yield operation
