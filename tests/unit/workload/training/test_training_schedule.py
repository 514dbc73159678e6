"""Schedules of a pipeline: their closed forms, and that loops say the same as the list of passes."""

from __future__ import annotations

import itertools

import pytest
from helpers.stages import expanded, run_stages
from helpers.trained import SMALL, job_of

from weftwork.base.errors import ConfigError
from weftwork.spec.job import Compute
from weftwork.spec.training import Overlap, Parallelism
from weftwork.workload.training.schedule import passes
from weftwork.workload.training.turns import PASSES

Times = dict[tuple[int, str, int], int]  # stage, kind, virtual stage


def length_ps(plan: Parallelism, times: Times) -> int:
    """When the last pass ends, if passes wait for each other and for nothing else."""
    orders = [list(passes(plan, stage)) for stage in range(plan.pipeline)]
    done: dict[tuple[str, int, int], int] = {}
    clock = [0] * plan.pipeline
    at = [0] * plan.pipeline
    parts = plan.pipeline * plan.virtual_stages
    while any(place < len(order) for place, order in zip(at, orders, strict=True)):
        moved = False
        for stage, order in enumerate(orders):
            while at[stage] < len(order):
                one = order[at[stage]]
                part = one.virtual_stage * plan.pipeline + stage
                before = part - 1 if one.kind == "forward" else part + 1
                ready = 0
                if 0 <= before < parts:
                    if (one.kind, one.micro_batch, before) not in done:
                        break
                    ready = done[one.kind, one.micro_batch, before]
                elif one.kind == "backward":
                    ready = done["forward", one.micro_batch, part]
                clock[stage] = max(clock[stage], ready) + times[stage, one.kind, one.virtual_stage]
                done[one.kind, one.micro_batch, part] = clock[stage]
                at[stage] += 1
                moved = True
        assert moved, "a schedule that waits for itself"
    return max(clock)


def even(plan: Parallelism, forward_ps: int, backward_ps: int) -> Times:
    stages, virtual_stages = range(plan.pipeline), range(plan.virtual_stages)
    each = {"forward": forward_ps, "backward": backward_ps}
    return {(s, kind, c): each[kind] for s, kind, c in itertools.product(stages, each, virtual_stages)}


@pytest.mark.parametrize(("stages", "count"), [(1, 3), (2, 2), (4, 4), (4, 13), (8, 3)])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_gpipe_and_1f1b_have_the_length_of_the_books(schedule: str, stages: int, count: int) -> None:
    plan = Parallelism(pipeline=stages, global_batch=count, schedule=schedule)
    assert length_ps(plan, even(plan, 3, 6)) == (count - 1 + stages) * 9


@pytest.mark.parametrize(("stages", "virtual_stages", "count"), [(2, 2, 4), (4, 2, 8), (4, 3, 16), (8, 2, 16)])
def test_virtual_stages_divide_the_bubble(stages: int, virtual_stages: int, count: int) -> None:
    plan = Parallelism(pipeline=stages, virtual_stages=virtual_stages, global_batch=count)
    found = length_ps(plan, even(plan, 3, 6))
    assert found == count * virtual_stages * 9 + (stages - 1) * 9  # (p - 1) / v of a stage's time


def test_a_stage_warms_up_with_as_many_passes_as_stages_follow() -> None:
    plan = Parallelism(pipeline=4, global_batch=8)
    order = [one.kind[0] for one in passes(plan, 1)]
    assert "".join(order) == "ff" + "fb" * 6 + "bb"
    plan = Parallelism(pipeline=4, virtual_stages=2, global_batch=8)
    order = [one.kind[0] for one in passes(plan, 3)]
    assert "".join(order[:6]) == "fffffb"  # (v - 1) p, then one of each


def test_every_micro_batch_passes_every_virtual_stage_once_each_way() -> None:
    plan = Parallelism(pipeline=4, virtual_stages=3, global_batch=12)
    for stage in range(4):
        found = sorted((one.kind, one.micro_batch, one.virtual_stage) for one in passes(plan, stage))
        assert found == sorted(itertools.product(("backward", "forward"), range(12), range(3)))


def test_chunks_want_a_multiple_of_the_stages() -> None:
    plan = Parallelism(pipeline=4, virtual_stages=2, data=2, micro_batch=3, global_batch=60)
    with pytest.raises(ConfigError, match=r"found 10 micro batches .* did you mean '72'"):
        passes(plan, 0)


@pytest.mark.parametrize(
    "plan",
    [
        Parallelism(pipeline=4, global_batch=7),
        Parallelism(pipeline=4, global_batch=6, schedule="gpipe", recompute="full"),
        Parallelism(pipeline=2, virtual_stages=4, global_batch=8, recompute="selective"),
        Parallelism(pipeline=3, global_batch=5),  # eight layers on three stages
        Parallelism(pipeline=5, global_batch=8, has_balanced_ends=True),
        Parallelism(pipeline=1, virtual_stages=2, global_batch=3),
    ],
)
@pytest.mark.parametrize("blocking", [0.0, 0.5, 1.0])
def test_programs_take_as_long_as_their_schedule_when_nothing_is_sent(plan: Parallelism, blocking: float) -> None:
    plan = plan.model_copy(update={"overlap": Overlap(pipeline=1 - blocking)})
    job, shape = job_of(SMALL, plan, gpus=1)
    found = run_stages(job)
    times: Times = {}
    for stage, program in enumerate(job.programs):
        of_pass = iter(shape.passes[stage])
        key: tuple[int, str, int] | None = None
        sums: dict[tuple[int, str, int], list[int]] = {}
        for operation in expanded(program.streams[0]):
            if type(operation).__name__ == "Milestone" and operation.name == 0:
                row = next(of_pass)
                key = (stage, PASSES[row["pass"]], int(row["virtual_stage"]))
                sums.setdefault(key, []).append(0)
            elif isinstance(operation, Compute) and key is not None:
                sums[key][-1] += operation.duration_ps
        assert all(len(set(each)) == 1 for each in sums.values())  # micro batches are alike
        times |= {key: each[0] for key, each in sums.items() if key[2] >= 0}
    last = max(
        max(at for name, at in marks if name == 0) for marks in found.milestones
    )  # the last stage to begin its update
    assert last == length_ps(plan, times)
