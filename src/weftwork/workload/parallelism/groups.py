"""Groups of ranks of a parallel plan.

A group shares tensors, context, experts, gradients or a pipeline. Ranks are numbered as Megatron-LM numbers them:
tensor changes fastest, then context, then data and pipeline in the order that the plan names. Experts are spread over
the ranks of a stage in that same order: ranks that share an expert first (``expert_tensor``), then ``expert``, then the
copies.
Source: NVIDIA/Megatron-LM, megatron/core/parallel_state.py, RankGenerator.
Leaves out: groups that are not a product of digits of the rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.job import Grid, Group
from weftwork.spec.training import Parallelism

__all__ = ["Groups", "groups", "members_of"]

Axes = tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Groups:
    """The groups of a plan.

    Attributes
    ----------
    tensor, context, data : by their degree
    gradients : ranks that hold the same dense weights and add their gradients: ``context x data``
    expert : ranks among which tokens are exchanged
    expert_tensor : ranks that share an expert
    expert_gradients : ranks that hold the same experts
    pipeline : stages, by stride, for messages between neighbours
    """

    tensor: Grid
    context: Grid
    data: Grid
    gradients: Grid
    expert: Grid
    expert_tensor: Grid
    expert_gradients: Grid
    pipeline: Group

    def stage_of(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Stage of each rank. Shape of ``ranks`` and of the result: (ranks,)."""
        return ranks // self.pipeline.stride % self.pipeline.size

    def rank_at(self, stage: int) -> int:
        """The first rank of a stage."""
        return stage * self.pipeline.stride


def groups(plan: Parallelism) -> Groups:
    """Make the groups of a plan.

    Raises
    ------
    ConfigError : experts cannot be spread: their degrees do not divide the ranks of a stage, digit by digit

    Examples
    --------
    >>> plan = Parallelism(tensor=8, pipeline=2, data=4, global_batch=4)
    >>> groups(plan).tensor.axes, groups(plan).data.axes, groups(plan).pipeline.stride
    (((1, 8),), ((8, 4),), 32)
    """
    return _groups(
        _Spread(
            tensor=plan.tensor,
            context=plan.context,
            data=plan.data,
            pipeline=plan.pipeline,
            expert=plan.expert,
            expert_tensor=plan.expert_tensor,
            pipeline_is_last=plan.order == "tp-cp-dp-pp",
        )
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Spread:
    """Inputs from which groups follow."""

    tensor: int
    context: int
    data: int
    pipeline: int
    expert: int
    expert_tensor: int
    pipeline_is_last: bool


@lru_cache(maxsize=1_024)  # chosen: a search has as many spreads at the most, each asked for many times
def _groups(plan: _Spread) -> Groups:
    inner = plan.tensor * plan.context
    data_stride = inner if plan.pipeline_is_last else inner * plan.pipeline
    pipeline_stride = inner * plan.data if plan.pipeline_is_last else inner
    stage: Axes = ((1, plan.tensor), (plan.tensor, plan.context), (data_stride, plan.data))
    shared = plan.expert_tensor * plan.expert
    copies = plan.tensor * plan.context * plan.data // max(shared, 1)
    return Groups(
        tensor=Grid(axes=stage[:1]),
        context=Grid(axes=stage[1:2]),
        data=Grid(axes=stage[2:]),
        gradients=Grid(axes=_joined(stage[1:])),
        expert=Grid(axes=_slice(stage, plan.expert_tensor, plan.expert)),
        expert_tensor=Grid(axes=_slice(stage, 1, plan.expert_tensor)),
        expert_gradients=Grid(axes=_slice(stage, shared, copies)),
        pipeline=Group(stride=pipeline_stride, size=plan.pipeline),
    )


def members_of(grid: Grid, rank: int) -> NDArray[np.int64]:
    """Ranks of the group of a rank, in the order of their coordinates.

    Parameters
    ----------
    grid : the groups
    rank : of the job

    Returns
    -------
    shape (grid.size,)
    """
    found = np.array([rank - sum(rank // stride % size * stride for stride, size in grid.axes)], np.int64)
    for stride, size in grid.axes:
        found = (np.arange(size, dtype=np.int64)[:, None] * stride + found[None]).ravel()
    return found


def _joined(axes: Axes) -> Axes:
    """The same groups with adjacent axes merged and one-rank axes removed."""
    found: list[tuple[int, int]] = []
    for stride, size in axes:
        if size == 1:
            continue
        if found and found[-1][0] * found[-1][1] == stride:
            found[-1] = (found[-1][0], found[-1][1] * size)
        else:
            found.append((stride, size))
    return tuple(found) or ((1, 1),)


def _slice(axes: Axes, first: int, size: int) -> Axes:
    """Digit ``(n // first) mod size`` of a number n.

    The digits ``axes`` make the number, the first changing fastest.
    """
    found: list[tuple[int, int]] = []
    for stride, radix in axes:
        skipped = np.gcd(first, radix)
        if skipped < radix and first != skipped:
            _refuse(axes, size)
        first //= skipped
        left = radix // skipped
        taken = np.gcd(size, left)
        if taken < left and size != taken:
            _refuse(axes, size)
        size //= taken
        found.append((int(stride * skipped), int(taken)))
    if first > 1 or size > 1:
        _refuse(axes, size)
    return _joined(tuple(found))


def _refuse(axes: Axes, size: int) -> None:
    digits = " x ".join(str(radix) for _, radix in axes)
    text = f"experts do not fit: a factor of {size} is left that does not divide tensor x context x data = {digits}"
    raise ConfigError("training", [Mistake(path="training.expert", text=text)])
