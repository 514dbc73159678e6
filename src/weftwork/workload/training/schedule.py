"""The order of passes in a pipeline stage, and its nested loops.

Every stage runs its forward passes in one order and its backward passes in one order: first some forward passes alone
(warm-up), then one of each by turns, then the backward passes that are left. GPipe warms up with all of them, 1F1B with
as many as stages follow, the interleaved schedule with 2 (p - s - 1) + (v - 1) p, by groups of p micro batches.
ZB-H1 and DualPipe split backward passes: gradients of inputs, for which the stage before waits, and gradients of
weights, for which nobody waits. ZB-H1 runs the passes of 1F1B in their order, and stage s delays the gradients of
weights by s micro batches, so that every stage keeps the activations of p. DualPipe sends one half of the micro batches
down the pipeline and the other half up; a rank holds its stage and the mirrored one, p - 1 - s.
Source: Huang et al., arXiv:1811.06965 (GPipe); Narayanan et al., arXiv:2104.04473, section 2.2 (1F1B, interleaved) and
NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/schedules.py; Qi et al., arXiv:2401.10241, section 2.1 (ZB-H1);
DeepSeek-V3, arXiv:2412.19437, section 3.2.1, table 2 and figure 5, and deepseek-ai/DualPipe, dualpipe/dualpipe.py,
DualPipe.step (the order of its passes).
Leaves out: schedules that a solver finds for measured times (ZB-1p, ZB-2p), ZB-H2, ZB-V and DualPipeV. A forward and a
backward pass that DualPipe pairs take as long as both; what the pairing hides, tokens of experts, ``overlap.expert``
says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, TypeVar

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.job import Loop, Operation
from weftwork.spec.training import Parallelism

__all__ = ["Blocks", "Kind", "Pass", "as_loops", "in_blocks", "passes", "written"]

T = TypeVar("T")
MOST_RUNS: Final = 64  # blocks of a period that are looked for; a period has about two for each virtual stage


Kind = Literal["forward", "backward", "input", "weights"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pass:
    """One pass of one micro batch through one virtual stage.

    Attributes
    ----------
    kind : ``backward`` is a whole backward pass; ``input`` and ``weights`` are its halves where it is split
    micro_batch : from 0; DualPipe counts those that go up behind those that go down
    virtual_stage : of this stage, from 0; with DualPipe 0 for its own part of the model and 1 for the mirrored one
    pair : ``first`` and ``second`` of a forward and a backward pass of DualPipe that run as one: both inputs come
        before, and both outputs go after
    """

    kind: Kind
    micro_batch: int
    virtual_stage: int
    pair: Literal["", "first", "second"] = ""


def passes(plan: Parallelism, stage: int) -> tuple[Pass, ...]:
    """All passes of a stage in one iteration, in order.

    Parameters
    ----------
    plan : its schedule, stages, virtual stages and micro batches
    stage : from 0

    Raises
    ------
    ConfigError : the interleaved schedule with micro batches that are no multiple of the stages; DualPipe with an odd
        number of stages or of micro batches, or with fewer than two micro batches a stage

    Examples
    --------
    >>> plan = Parallelism(pipeline=2, global_batch=3)
    >>> "".join(one.kind[0].upper() + str(one.micro_batch) for one in passes(plan, 0))
    'F0F1B0F2B1B2'
    """
    if plan.schedule == "dualpipe":
        return _dualpipe(plan, stage)
    stages, virtual_stages, count = plan.pipeline, plan.virtual_stages, plan.micro_batches
    if virtual_stages > 1 and count % stages:
        text = (
            f"found {plural(count, 'micro batch', 'micro batches')} in virtual stages, wanted a multiple of the "
            f"{plural(stages, 'stage')} of the pipeline"
        )
        fix = str(-(-count // stages) * stages * plan.data * plan.micro_batch)
        raise ConfigError("training", [Mistake(path="training.global_batch", text=text, fix=fix)])
    total = count * virtual_stages
    warm = total if plan.schedule == "gpipe" else min(_warm_up(plan, stage), total)
    forward, backward = _of_any_stage(plan)
    by_turns = [one for index in range(total - warm) for one in (forward[warm + index], backward[index])]
    whole = (*forward[:warm], *by_turns, *backward[total - warm :])
    return _delayed(whole, stage) if plan.schedule == "zb-h1" else whole


def _delayed(whole: Sequence[Pass], delay: int) -> tuple[Pass, ...]:
    """Split backward passes, with weight gradients some micro batches later."""
    found: list[Pass] = []
    waiting: list[Pass] = []
    for one in whole:
        if one.kind == "forward":
            found.append(one)
            continue
        found.append(replace(one, kind="input"))
        waiting.append(replace(one, kind="weights"))
        if len(waiting) > delay:
            found.append(waiting.pop(0))
    return (*found, *waiting)


def _dualpipe(plan: Parallelism, stage: int) -> tuple[Pass, ...]:
    """The eight steps of DualPipe on one rank."""
    stages, count = plan.pipeline, plan.micro_batches
    if stages % 2 or count % 2 or count < 2 * stages:
        text = (
            f"found {plural(count, 'micro batch', 'micro batches')} on {plural(stages, 'stage')}, wanted both "
            "even and two micro batches for each stage"
        )
        raise ConfigError("training", [Mistake(path="training.schedule", text=text, fix="1f1b")])
    half = stages // 2
    depth = min(stage, stages - 1 - stage)  # from the nearer end of the pipeline
    later = half - depth - 1
    turn = _Turn(is_mirrored=stage >= half, half_count=count // 2)
    for _ in range(2 * later):
        turn.forward(0)
    for _ in range(depth + 1):
        turn.forward(0)
        turn.forward(1)
    for _ in range(later):
        turn.backward(1, is_split=True)
        turn.weights()
        turn.forward(1)
    for round_number in range(count // 2 - stages + depth + 1):
        if round_number == 0 and later == 0:  # the two ranks in the middle do not pair these two
            turn.forward(0)
            turn.backward(1)
        else:
            turn.both(0, 1)
        turn.both(1, 0)
    for _ in range(later):
        turn.backward(1)
        turn.both(1, 0)
    for place in range(2 * (depth + 1)):
        turn.backward(1 - place % 2, is_split=place > depth)
    for _ in range(later):
        turn.weights()
        turn.backward(0, is_split=True)
    while turn.waiting:
        turn.weights()
    return tuple(turn.found)


@dataclass(kw_only=True, slots=True)
class _Turn:
    """The passes of a DualPipe rank so far.

    Way 0 is the one whose micro batches enter the pipeline nearer to the rank: down in the first half of the ranks, up
    in the second one. Gradients of weights wait in the order in which they were put off.
    """

    is_mirrored: bool
    half_count: int
    found: list[Pass] = field(default_factory=list)
    waiting: list[Pass] = field(default_factory=list)
    forwards: list[int] = field(default_factory=lambda: [0, 0])
    backwards: list[int] = field(default_factory=lambda: [0, 0])

    def forward(self, way: int, pair: Literal["", "first"] = "") -> None:
        """Add the next forward pass of a direction."""
        self.found.append(self._next("forward", way, self.forwards, pair))

    def backward(self, way: int, pair: Literal["", "second"] = "", *, is_split: bool = False) -> None:
        """Add the next backward pass of a direction.

        If it is split, the gradients of weights wait.
        """
        one = self._next("input" if is_split else "backward", way, self.backwards, pair)
        self.found.append(one)
        if is_split:
            self.waiting.append(replace(one, kind="weights"))

    def both(self, forward: int, backward: int) -> None:
        """Add a forward and a backward pass of opposite directions as one."""
        self.forward(forward, "first")
        self.backward(backward, "second")

    def weights(self) -> None:
        """Add the weight gradients that have waited longest."""
        self.found.append(self.waiting.pop(0))

    def _next(self, kind: Kind, way: int, counts: list[int], pair: Literal["", "first", "second"]) -> Pass:
        part = way ^ self.is_mirrored
        number = counts[part]
        counts[part] += 1
        return Pass(kind=kind, micro_batch=part * self.half_count + number, virtual_stage=part, pair=pair)


def _warm_up(plan: Parallelism, stage: int) -> int:
    behind = plan.pipeline - stage - 1
    return behind if plan.virtual_stages == 1 else 2 * behind + (plan.virtual_stages - 1) * plan.pipeline


@lru_cache(maxsize=4)  # chosen: the stages of a plan are asked one after the other
def _of_any_stage(plan: Parallelism) -> tuple[tuple[Pass, ...], tuple[Pass, ...]]:
    """All forward passes, and all backward passes, each in their order."""
    every = range(plan.micro_batches * plan.virtual_stages)
    forward, backward = (tuple(_pass(kind, plan, index) for index in every) for kind in ("forward", "backward"))
    return forward, backward


def _pass(kind: Literal["forward", "backward"], plan: Parallelism, index: int) -> Pass:
    """The ``index``-th forward or backward pass of any stage."""
    if plan.virtual_stages == 1:
        return Pass(kind=kind, micro_batch=index, virtual_stage=0)
    group, place = divmod(index, plan.pipeline * plan.virtual_stages)
    virtual_stage, member = divmod(place, plan.pipeline)
    if kind == "backward":
        virtual_stage = plan.virtual_stages - 1 - virtual_stage
    return Pass(kind=kind, micro_batch=group * plan.pipeline + member, virtual_stage=virtual_stage)


_Block: TypeAlias = tuple[int, tuple[Any, ...]]  # how often; numbers of items and such blocks
Blocks: TypeAlias = tuple[_Block, ...]


def as_loops(sequence: Iterable[T], body: Callable[[T], Sequence[Operation]]) -> tuple[Operation, ...]:
    """Write a sequence as operations, with loops for repetitions.

    Parameters
    ----------
    sequence : what happens, item by item; equal items have equal bodies
    body : the operations of an item
    """
    blocks, items = in_blocks(sequence)
    return written(blocks, items, body)


def in_blocks(sequence: Iterable[T]) -> tuple[Blocks, tuple[T, ...]]:
    """Fold the repetitions of a sequence.

    Parameters
    ----------
    sequence : item by item

    Returns
    -------
    blocks that repeat ``count`` times in sequence; and the items that their numbers stand for, each once
    """
    numbers: dict[T, int] = {}
    blocks: list[_Block] = [(1, (numbers.setdefault(item, len(numbers)),)) for item in sequence]
    for longest in (1, 2, MOST_RUNS):  # runs of one item, forward and backward by turns, periods of a schedule
        blocks = _folded(blocks, longest)
    return tuple(blocks), tuple(numbers)


def written(blocks: Blocks, items: Sequence[T], body: Callable[[T], Sequence[Operation]]) -> tuple[Operation, ...]:
    """Write blocks as operations, with a loop for each that repeats.

    Parameters
    ----------
    blocks, items : of `in_blocks`
    body : the operations of an item
    """
    bodies = [tuple(body(item)) for item in items]

    def operations(block: _Block) -> tuple[Operation, ...]:
        count, of = block
        inside: list[Operation] = []
        for part in of:
            inside.extend(operations(part) if isinstance(part, tuple) else bodies[part])
        if count == 1 or not inside:
            return tuple(inside)
        return (Loop(count=count, body=tuple(inside)),)

    return tuple([operation for block in blocks for operation in operations(block)])


def _folded(blocks: Sequence[_Block], longest: int) -> list[_Block]:
    """Fold repetitions into blocks of up to ``longest`` given blocks."""
    folded: list[_Block] = []
    numbers: dict[_Block, int] = {}
    numbered = [numbers.setdefault(block, len(numbers)) for block in blocks]  # numbers are quick to compare
    at = 0
    while at < len(blocks):
        length, count = _best_length(numbered, at, longest)
        inside = tuple(blocks[at : at + length])
        if length == 1:
            (count_of_one, of) = inside[0]
            folded.append((count * count_of_one, of))
        elif count == 1:
            folded.extend(inside)
        else:
            folded.append((count, inside))
        at += length * count
    return folded


def _best_length(blocks: Sequence[int], at: int, longest: int) -> tuple[int, int]:
    """Length and count of the repetition that saves most at a place."""
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
