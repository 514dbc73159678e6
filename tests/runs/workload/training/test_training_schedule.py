"""Schedules of a pipeline: their closed forms, and that loops say the same as the list of passes."""

from __future__ import annotations

import pytest
from helpers.stages import expanded

from weftwork.spec.job import Compute, Loop, Operation
from weftwork.spec.training import Parallelism
from weftwork.workload.training.schedule import as_loops, passes


@pytest.mark.parametrize(
    ("plan", "most"),
    [
        (Parallelism(pipeline=4, global_batch=1000), 8),
        (Parallelism(pipeline=16, virtual_stages=8, global_batch=512), 120),
        (Parallelism(pipeline=4, virtual_stages=2, global_batch=4, schedule="gpipe"), 20),
    ],
)
def test_loops_say_the_same_in_fewer_words(plan: Parallelism, most: int) -> None:
    for stage in (0, plan.pipeline // 2, plan.pipeline - 1):
        wanted = [(one.kind == "backward") * 100 + one.virtual_stage for one in passes(plan, stage)]
        loops = as_loops(wanted, lambda item: [Compute(duration_ps=item)])
        assert [one.duration_ps for one in expanded(loops) if isinstance(one, Compute)] == wanted
        assert words(loops) <= most


def words(operations: tuple[Operation, ...]) -> int:
    return sum(1 + (words(one.body) if isinstance(one, Loop) else 0) for one in operations)
