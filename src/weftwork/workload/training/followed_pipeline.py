"""End times of pipeline stages, computed pass by pass.

It is for schedules that split backward passes, and for unequal chunks. Passes of each stage run in the order of
`weftwork.workload.training.schedule`, each as soon as the one before it has ended and what it waits for has come. Once
a pipeline is full, every further micro batch takes about as long as the one before: exactly so where stages are alike.
So the first few for each stage are followed one by one, the others counted.
Source: Qi et al., arXiv:2401.10241; DeepSeek-V3, arXiv:2412.19437, section 3.2.1; Narayanan et al., arXiv:2104.04473.
Leaves out: messages that wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from weftwork.spec.training import Parallelism, PipelineSchedule
from weftwork.workload.training.schedule import Pass, passes

__all__ = ["KINDS", "Block", "FollowedPipeline", "PassTimes", "block_orders", "followed_counts"]

FOLLOWED: Final = 4  # micro batches for each stage; chosen: ends of random pipelines are within 2 % of the whole walk
KINDS: Final = ("forward", "backward", "input", "weights")


@dataclass(frozen=True, kw_only=True, slots=True)
class PassTimes:
    """Times of one micro batch on one virtual stage, in ps.

    Attributes
    ----------
    forward_ps, backward_ps : of whole passes
    input_ps, weights_ps : of the halves of a backward pass that is split
    """

    forward_ps: int
    backward_ps: int
    input_ps: int
    weights_ps: int

    @property
    def by_kind(self) -> tuple[int, int, int, int]:
        """Times in the order of `KINDS`."""
        return self.forward_ps, self.backward_ps, self.input_ps, self.weights_ps


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowedPipeline:
    """A pipeline with its times.

    Attributes
    ----------
    schedule : of `weftwork.spec.training.PipelineSchedule`
    micro_batches : of one iteration
    times : of each stage, of each of its virtual stages
    messages_ps : from each stage to the next, and from the last one to the first
    blocking : share of a message for which its sender waits
    """

    schedule: PipelineSchedule
    micro_batches: int
    times: tuple[tuple[PassTimes, ...], ...]
    messages_ps: tuple[int, ...]
    blocking: float

    def ends_ps(self) -> tuple[int, ...]:
        """End of each stage's last pass, from the start of the iteration."""
        few, step = followed_counts(self.schedule, len(self.times), len(self.times[0]), self.micro_batches)
        ends = _followed(replace(self, micro_batches=few))
        if few == self.micro_batches:
            return ends
        later = _followed(replace(self, micro_batches=few + step))
        more = (self.micro_batches - few) // step
        return tuple(end + more * (after - end) for end, after in zip(ends, later, strict=True))


def followed_counts(
    schedule: PipelineSchedule, stages: int, virtual_stages: int, micro_batches: int
) -> tuple[int, int]:
    """Micro batches that are followed pass by pass, and how many more a full pipeline takes at a time.

    Examples
    --------
    >>> followed_counts("1f1b", 4, 1, 100), followed_counts("1f1b", 4, 2, 16), followed_counts("gpipe", 4, 1, 100)
    ((16, 1), (16, 4), (100, 1))
    """
    step = 1
    if schedule == "dualpipe":
        step = 2
    elif virtual_stages > 1:
        step = stages
    few = FOLLOWED * stages  # a multiple of every step
    if schedule == "gpipe" or micro_batches <= few + step:
        return micro_batches, step
    return few + (micro_batches - few) % step, step


def _followed(pipeline: FollowedPipeline) -> tuple[int, ...]:
    """Follow every pass of every stage."""
    stages, messages_ps, blocking = len(pipeline.times), pipeline.messages_ps, pipeline.blocking
    waited_ps = [round(blocking * message) for message in messages_ps]
    virtual_stages = len(pipeline.times[0])
    orders = block_orders(pipeline.schedule, stages, virtual_stages, pipeline.micro_batches)
    times = [[taken for one in stage for taken in one.by_kind] for stage in pipeline.times]
    came_ps = [-1] * (2 * stages * virtual_stages * pipeline.micro_batches)  # by message; -1: not yet
    now_ps, done = [0] * stages, [0] * stages
    waiting = list(range(stages))
    while waiting:
        for stage in waiting:
            taken, now, place = times[stage], now_ps[stage], done[stage]
            for needed, works, given in orders[stage][place:]:
                begin = now
                for message in needed:
                    came = came_ps[message]
                    if came < 0:
                        break
                    begin = max(begin, came)
                else:
                    for work in works:
                        begin += taken[work]
                    now = begin
                    for message, link in given:
                        came_ps[message] = begin + messages_ps[link]
                        now = max(now, begin + waited_ps[link])
                    place += 1
                    continue
                break
            now_ps[stage], done[stage] = now, place
        waiting = [stage for stage in waiting if done[stage] < len(orders[stage])]
    return tuple(now_ps)


# Passes that begin and end as one: messages that they need; places of what they take among the times of the stage;
# messages that they give, each with the link that it goes over
Block = tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]


@lru_cache(maxsize=64)  # chosen: a search asks for tens of lengths, each for many plans
def block_orders(
    schedule: PipelineSchedule, stages: int, virtual_stages: int, count: int
) -> tuple[tuple[Block, ...], ...]:
    """Passes of each stage, block by block."""
    has_mirror = schedule == "dualpipe"
    plan = Parallelism(
        pipeline=stages,
        virtual_stages=1 if has_mirror else virtual_stages,
        global_batch=count,
        schedule=schedule,
    )
    found = []
    for stage in range(stages):
        blocks: list[tuple[Pass, ...]] = []
        for one in passes(plan, stage):
            if one.pair == "second":
                blocks[-1] += (one,)
            else:
                blocks.append((one,))
        found.append(tuple(_block(block, _StagePlace(stage, stages, virtual_stages, has_mirror)) for block in blocks))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _StagePlace:
    """A stage of a pipeline."""

    stage: int
    stages: int
    virtual_stages: int
    has_mirror: bool

    @property
    def parts(self) -> int:
        """Number of model parts, one after the other."""
        return self.stages if self.has_mirror else self.stages * self.virtual_stages

    def part(self, virtual_stage: int) -> int:
        """Model part of a virtual stage."""
        if self.has_mirror:
            return self.stages - 1 - self.stage if virtual_stage else self.stage
        return virtual_stage * self.stages + self.stage

    def link(self, virtual_stage: int, towards: int) -> int:
        """Message to the next part, or to the previous part."""
        other = self.stage + (-towards if self.has_mirror and virtual_stage else towards)
        if not 0 <= other < self.stages:
            return self.stages - 1  # between the last stage and the first
        return min(self.stage, other)


def _block(block: tuple[Pass, ...], place: _StagePlace) -> Block:
    needed: list[int] = []
    given: list[tuple[int, int]] = []
    for one in block:
        if one.kind == "weights":  # what it needs is on this stage, from a pass before
            continue
        is_forward = one.kind == "forward"
        part, parts = place.part(one.virtual_stage), place.parts
        towards = 1 if is_forward else -1
        base = 2 * one.micro_batch * parts + (0 if is_forward else parts)
        if 0 <= part - towards < parts:
            needed.append(base + part)
        if 0 <= part + towards < parts:
            given.append((base + part + towards, place.link(one.virtual_stage, towards)))
    works = tuple(len(KINDS) * one.virtual_stage + KINDS.index(one.kind) for one in block)
    return tuple(needed), works, tuple(given)
