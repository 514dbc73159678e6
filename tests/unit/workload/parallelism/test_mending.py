"""What is proposed where no plan of a search fits: only what can mend the part that exceeds."""

from __future__ import annotations

import pytest

from weftwork.hardware.catalogue import gpu
from weftwork.spec.training import Parallelism
from weftwork.workload.models.catalogue import model
from weftwork.workload.parallelism.memory import fullest_stage
from weftwork.workload.parallelism.mending import least_gpus, mended_by
from weftwork.workload.parallelism.refuse import PlanLimits


def words(plan: Parallelism, *, memory_bytes: int, fixed: frozenset[str] = frozenset()) -> str:
    given = PlanLimits(model=model("llama-3-70b"), gpus=plan.ranks, gpu=gpu("h100"), memory_bytes=memory_bytes)
    return mended_by(given, plan, fullest_stage(given.model, plan), fixed=fixed)


def test_states_that_no_sharding_makes_fit_need_gpus_and_never_less_of_a_batch() -> None:
    plan = Parallelism(tensor=8, global_batch=8, sequence=8192, zero=3, recompute="full")
    said = words(plan, memory_bytes=80 * 10**9)
    # 70.55 billion parameters of 18 bytes, beside 3 GB on each: 1,270 GB over 77 GB
    assert said == "weights, gradients and optimizer alone exceed it; take at least 17 GPUs, or a smaller model"


def test_a_fixed_key_that_stands_in_the_way_is_proposed_with_a_value_that_fits() -> None:
    plan = Parallelism(tensor=8, data=16, global_batch=128, sequence=8192, zero=0, recompute="full")
    said = words(plan, memory_bytes=80 * 10**9, fixed=frozenset({"zero"}))
    assert said == "weights, gradients and optimizer alone exceed it; --set training.zero=1 makes one fit"


def test_activations_that_do_not_fit_are_recomputed() -> None:
    plan = Parallelism(tensor=8, pipeline=4, data=4, global_batch=128, sequence=8192, micro_batch=4)
    said = words(plan, memory_bytes=60 * 10**9, fixed=frozenset({"recompute", "micro_batch"}))
    assert said.startswith("activations do not fit beside weights, gradients and optimizer; --set training.")
    assert "makes one fit" in said
    assert "global_batch" not in said


@pytest.mark.parametrize("memory_bytes", [10**9, 3 * 10**9, 80 * 10**9])
def test_more_gpus_than_there_are_are_asked_for(memory_bytes: int) -> None:
    """Even where what CUDA takes alone fills the memory."""
    plan = Parallelism(tensor=8, global_batch=8)
    given = PlanLimits(model=model("llama-3-70b"), gpus=8, gpu=gpu("h100"), memory_bytes=memory_bytes)
    assert least_gpus(given, plan) > 8
