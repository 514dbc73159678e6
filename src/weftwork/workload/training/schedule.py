"""The order in which a stage of a pipeline works, and how to write it as nested loops.

Every stage runs its forward passes in one order and its backward passes in one order: first some forward passes alone
(warm-up), then one of each by turns, then the backward passes that are left. GPipe warms up with all of them, 1F1B with
as many as stages follow, the interleaved schedule with 2 (p - s - 1) + (v - 1) p, by groups of p micro batches.
Source: Huang et al., arXiv:1811.06965 (GPipe); Narayanan et al., arXiv:2104.04473, section 2.2 (1F1B, interleaved) and
NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/schedules.py.
Leaves out: schedules that split the backward pass (zero bubble, DualPipe).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.job import Loop, Operation
from weftwork.spec.training import Parallelism

__all__ = ["Pass", "as_loops", "passes"]

T = TypeVar("T")
MOST_RUNS: Final = 64  # blocks of a period that are looked for; a period has about two for each virtual stage


@dataclass(frozen=True, kw_only=True, slots=True)
class Pass:
    """One pass of one micro batch through one virtual stage."""

    kind: Literal["forward", "backward"]
    micro_batch: int
    virtual_stage: int


def passes(plan: Parallelism, stage: int) -> tuple[Pass, ...]:
    """All passes of a stage in one iteration, in order.

    Parameters
    ----------
    plan : its schedule, stages, virtual stages and micro batches
    stage : from 0

    Raises
    ------
    ConfigError : the interleaved schedule with micro batches that are no multiple of the stages

    Examples
    --------
    >>> plan = Parallelism(pipeline=2, global_batch=3)
    >>> "".join(one.kind[0].upper() + str(one.micro_batch) for one in passes(plan, 0))
    'F0F1B0F2B1B2'
    """
    stages, virtual_stages, count = plan.pipeline, plan.virtual_stages, plan.micro_batches
    if virtual_stages > 1 and count % stages:
        text = (
            f"found {count} micro batches in virtual stages, wanted a multiple of the {stages} stages of the pipeline"
        )
        fix = str(-(-count // stages) * stages * plan.data * plan.micro_batch)
        raise ConfigError("training", [Mistake(path="training.global_batch", text=text, fix=fix)])
    total = count * virtual_stages
    warm = total if plan.schedule == "gpipe" else min(_warm_up(plan, stage), total)
    forward = [_pass("forward", plan, index) for index in range(total)]
    backward = [_pass("backward", plan, index) for index in range(total)]
    by_turns = [one for index in range(total - warm) for one in (forward[warm + index], backward[index])]
    return (*forward[:warm], *by_turns, *backward[total - warm :])


def _warm_up(plan: Parallelism, stage: int) -> int:
    behind = plan.pipeline - stage - 1
    return behind if plan.virtual_stages == 1 else 2 * behind + (plan.virtual_stages - 1) * plan.pipeline


def _pass(kind: Literal["forward", "backward"], plan: Parallelism, index: int) -> Pass:
    """The ``index``-th forward or backward pass of any stage."""
    if plan.virtual_stages == 1:
        return Pass(kind=kind, micro_batch=index, virtual_stage=0)
    group, place = divmod(index, plan.pipeline * plan.virtual_stages)
    virtual_stage, member = divmod(place, plan.pipeline)
    if kind == "backward":
        virtual_stage = plan.virtual_stages - 1 - virtual_stage
    return Pass(kind=kind, micro_batch=group * plan.pipeline + member, virtual_stage=virtual_stage)


def as_loops(sequence: Sequence[T], body: Callable[[T], Sequence[Operation]]) -> tuple[Operation, ...]:
    """Write a sequence as operations, with loops where it repeats itself.

    Parameters
    ----------
    sequence : what happens, item by item; equal items have equal bodies
    body : the operations of an item
    """
    found = [_Block(count=1, of=(item,)) for item in sequence]
    for longest in (1, 2, MOST_RUNS):  # runs of one item, forward and backward by turns, periods of a schedule
        found = _folded(found, longest)
    known: dict[T, tuple[Operation, ...]] = {}

    def operations(block: _Block[T]) -> tuple[Operation, ...]:
        inside: list[Operation] = []
        for part in block.of:
            if isinstance(part, _Block):
                inside.extend(operations(part))
                continue
            if part not in known:
                known[part] = tuple(body(part))
            inside.extend(known[part])
        if block.count == 1 or not inside:
            return tuple(inside)
        return (Loop(count=block.count, body=tuple(inside)),)

    return tuple(operation for block in found for operation in operations(block))


@dataclass(frozen=True, slots=True)
class _Block(Generic[T]):
    """Items and blocks that follow each other ``count`` times."""

    count: int
    of: tuple[T | _Block[T], ...]


def _folded(blocks: Sequence[_Block[T]], longest: int) -> list[_Block[T]]:
    """Put what repeats itself into blocks, of up to ``longest`` of the given ones."""
    found: list[_Block[T]] = []
    numbers: dict[_Block[T], int] = {}
    numbered = [numbers.setdefault(block, len(numbers)) for block in blocks]  # numbers are quick to compare
    at = 0
    while at < len(blocks):
        length, count = _best_length(numbered, at, longest)
        inside = tuple(blocks[at : at + length])
        if length == 1:
            found.append(_Block(count=count * inside[0].count, of=inside[0].of))
        elif count == 1:
            found.extend(inside)
        else:
            found.append(_Block(count=count, of=inside))
        at += length * count
    return found


def _best_length(blocks: Sequence[int], at: int, longest: int) -> tuple[int, int]:
    """Length and count of the sequence of blocks at a place whose repetition spares most."""
    best, spared = (1, 1), 0
    for length in range(1, min(longest, (len(blocks) - at) // 2) + 1):
        if blocks[at] != blocks[at + length]:
            continue
        pattern = blocks[at : at + length]
        count = 1
        while blocks[at + count * length : at + (count + 1) * length] == pattern:
            count += 1
        if (count - 1) * length > spared:
            best, spared = (length, count), (count - 1) * length
    return best
