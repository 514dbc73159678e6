"""Groups of a parallel plan: every rank is in one of each kind, and the kinds meet as Megatron-LM has them."""

from __future__ import annotations

import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.job import Grid
from weftwork.spec.training import Parallelism
from weftwork.workload.parallelism.groups import groups, members_of

PLANS = [
    Parallelism(tensor=4, context=2, pipeline=3, data=4, expert=8, global_batch=4),
    Parallelism(tensor=4, context=2, pipeline=3, data=4, expert=4, expert_tensor=2, global_batch=4),
    Parallelism(tensor=2, pipeline=4, data=8, expert=16, order="tp-cp-pp-dp", global_batch=8),
    Parallelism(tensor=4, pipeline=2, data=6, expert=2, expert_tensor=2, order="tp-cp-pp-dp", global_batch=6),
    Parallelism(data=6, expert=3, global_batch=6),
]


def partition(grid: Grid, ranks: int) -> list[tuple[int, ...]]:
    return sorted({tuple(members_of(grid, rank).tolist()) for rank in range(ranks)})


@pytest.mark.parametrize("plan", PLANS)
def test_every_rank_is_in_one_group_of_each_kind(plan: Parallelism) -> None:
    found = groups(plan)
    for grid in (found.tensor, found.context, found.data, found.gradients, found.expert, found.expert_gradients):
        every = partition(grid, plan.ranks)
        assert sorted(rank for group in every for rank in group) == list(range(plan.ranks))
        assert {len(group) for group in every} == {grid.size}


@pytest.mark.parametrize("plan", PLANS)
def test_groups_stay_in_a_stage_and_make_it_up(plan: Parallelism) -> None:
    found = groups(plan)
    stage = found.stage_of(np.arange(plan.ranks))
    assert np.bincount(stage).tolist() == [plan.ranks // plan.pipeline] * plan.pipeline
    kinds = (found.tensor, found.gradients), (found.expert_tensor, found.expert, found.expert_gradients)
    for rank in range(0, plan.ranks, 5):
        of_stage = np.flatnonzero(stage == stage[rank])
        for grids in kinds:
            reached = np.array([rank])
            for grid in grids:
                reached = np.concatenate([members_of(grid, int(one)) for one in reached])
            assert sorted(reached.tolist()) == of_stage.tolist()  # each rank once: the kinds are orthogonal


def test_experts_are_near_and_their_copies_far() -> None:
    found = groups(Parallelism(tensor=2, data=8, expert=8, global_batch=8))
    assert members_of(found.expert, 9).tolist() == list(range(8, 16))
    assert members_of(found.expert_gradients, 9).tolist() == [1, 9]
    assert found.rank_at(0) == 0


def test_experts_that_cannot_be_spread_are_refused() -> None:
    with pytest.raises(ConfigError, match="a factor of 3 is left"):
        groups(Parallelism(tensor=4, data=2, expert=3, global_batch=2))
    with pytest.raises(ConfigError, match=r"tensor x context x data = 6 x 1 x 4"):
        groups(Parallelism(tensor=6, data=4, expert=4, global_batch=4))
