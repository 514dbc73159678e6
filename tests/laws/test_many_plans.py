"""What is worked out for many plans at a time equals what is worked out for each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

import numpy as np
from helpers.cases import Saw, case_count
from helpers.plan_questions import MORE_GPUS, Searched, searched

from weftwork.spec.training import Parallelism
from weftwork.study.plan.space import FeasiblePlans, feasible_plans
from weftwork.workload.parallelism.memory import fullest_stage
from weftwork.workload.parallelism.plan_columns import KEYS, PlanColumns, distinct_rows
from weftwork.workload.parallelism.refuse import first_misfits, misfits
from weftwork.workload.training.closed_form import IterationTime
from weftwork.workload.training.many_forms import ManyForms

PLANS: Final = case_count(plain=150, deep=1_000)  # that are worked out one by one
SEEDS: Final = range(case_count(plain=8, deep=50))
WAYS: Final = 12  # to spread the GPUs of a question
EACH: Final = 40  # plans of a question that are worked out one by one
CLOSE: Final = 1e-9


def questions(folder: Path) -> Iterator[tuple[Searched, FeasiblePlans, list[int]]]:
    """Questions with their feasible plans, and places of some of these."""
    left = PLANS
    for seed in count():
        asked = searched(seed, folder, gpus=MORE_GPUS, share_beside=0.15)
        if asked is None:
            continue
        found = feasible_plans(asked.space, asked.spread[:WAYS])
        places = random.Random(seed).sample(range(len(found)), min(EACH, len(found), left))
        yield asked, found, places
        left -= len(places)
        if not left:
            return


def test_times_of_many_plans_are_those_of_each(tmp_path: Path, saw: Saw) -> None:
    for asked, found, places in questions(tmp_path):
        times = ManyForms(closed=asked.setting.closed_forms()).iterations(found.plans)
        closed = asked.setting.closed_forms()
        for place in places:
            plan = found.plans.plan(place)
            alone = closed.iteration(plan, follows=True)
            for name in IterationTime.__dataclass_fields__:
                apart_ps = abs(int(getattr(times, name)[place]) - getattr(alone, name))
                assert apart_ps <= CLOSE * alone.total_ps + 1, (name, alone, plan)
    saw(PLANS)


def test_memory_of_many_plans_is_that_of_each(tmp_path: Path, saw: Saw) -> None:
    for asked, found, places in questions(tmp_path):
        flash = asked.space.has_flash_attention
        for place in places:
            one = found.candidate(place)
            alone = fullest_stage(asked.space.model, one.plan, has_flash_attention=flash).total_bytes
            assert one.memory_bytes == alone, one.plan
    saw(PLANS)


def test_refusals_of_many_plans_are_those_of_each(tmp_path: Path, saw: Saw) -> None:
    """Plans are drawn key by key, so that most of them cannot be."""
    compared, refused = 0, 0
    for seed in SEEDS:
        asked = searched(seed, tmp_path)
        if asked is None:
            continue
        draw = random.Random(seed)
        base = asked.space.section.parallelism(asked.space.model)
        plans = [drawn(draw, base, asked.space.gpus) for _ in range(EACH)]
        columns = PlanColumns.of(
            [{key: getattr(plan, key) for key in KEYS} for plan in plans],
            base=base, overlaps=(base.overlap, base.overlap), prefetches=base.has_prefetch,
        )  # fmt: skip
        keys = first_misfits(asked.space.limits, columns)
        for plan, key in zip(plans, keys, strict=True):
            alone = misfits(asked.space.limits, plan)
            assert key == (alone[0].key if alone else ""), (seed, plan)
            refused += bool(alone)
        compared += len(plans)
    saw(compared, f"{refused} refused")
    assert 0 < refused < compared


def drawn(draw: random.Random, base: Parallelism, gpus: int) -> Parallelism:
    tensor, pipeline = draw.choice([1, 1, 2, 8]), draw.choice([1, 2, 4, 3])
    data = gpus // (tensor * pipeline) if draw.random() < 0.8 else draw.choice([1, 2])
    return base.model_copy(
        update={
            "tensor": tensor, "pipeline": pipeline, "data": max(1, data), "context": draw.choice([1, 1, 1, 2]),
            "expert": draw.choice([1, 1, 2, 8]), "expert_tensor": draw.choice([1, 1, 2]),
            "virtual_stages": draw.choice([1, 1, 2, 5]), "micro_batch": draw.choice([1, 2]),
            "zero": draw.choice([0, 1, 2, 3]), "schedule": draw.choice(["1f1b", "zb-h1", "dualpipe", "gpipe"]),
            "recompute": draw.choice(["none", "selective", "operations", "full"]),
            "has_balanced_ends": draw.random() < 0.3, "order": draw.choice(["tp-cp-dp-pp", "tp-cp-pp-dp"]),
        }
    )  # fmt: skip


def test_distinct_rows_stay_distinct_where_codes_would_overflow() -> None:
    draw = np.random.default_rng(7)
    rows = draw.integers(0, 2**20, size=(500, 6))
    rows = np.vstack([rows, rows[:100]])
    first, which = distinct_rows(rows)
    assert len(first) == 500
    assert (rows[first][which] == rows).all()
