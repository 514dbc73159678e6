"""Laws of LoRA over random plans: adapters alone have gradients, states and a checkpoint, and cost what they weigh."""

from __future__ import annotations

from typing import Final

import pytest
from helpers.cases import case_count
from helpers.stages import Outcome, run_stages
from helpers.trained import EXPERTS, QUIET, SMALL, job_of, packed
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.hardware.catalogue import gpu, node
from weftwork.spec.training import LoraTarget, Model, Overlap, Parallelism
from weftwork.workload.collectives.figures import collective_figures
from weftwork.workload.models.adapters import adapter_parameters
from weftwork.workload.models.catalogue import model as model_of_catalogue
from weftwork.workload.models.size import parameters
from weftwork.workload.parallelism.memory import stage_memory
from weftwork.workload.training.closed_form import ClosedForms
from weftwork.workload.training.communication import CHANNELS, GpuCluster

TARGETS: Final[tuple[tuple[LoraTarget, ...], ...]] = (
    (), ("linear_qkv",), ("linear_q", "linear_v"), ("linear_qkv", "linear_proj"),
)  # fmt: skip
GRADIENTS: Final = {3, 5}  # channels
GATHERED: Final = {4, 6}
HOST_BPS: Final = 504_000_000_000


@st.composite
def plans(draw: st.DrawFn) -> Parallelism:
    data = draw(st.sampled_from([2, 4]))
    pipeline = draw(st.sampled_from([1, 2]))
    return Parallelism(
        tensor=draw(st.sampled_from([1, 2])),
        data=data,
        pipeline=pipeline,
        global_batch=data * pipeline * draw(st.integers(1, 3)),
        sequence=1024,
        zero=draw(st.sampled_from([0, 1, 2, 3])),
        gradient_bytes=draw(st.sampled_from([2, 4])),
        recompute=draw(st.sampled_from(["none", "full"])),
        has_lora=True,
        lora_rank=draw(st.sampled_from([4, 16, 64])),
        lora_targets=draw(st.sampled_from(TARGETS)),
        overlap=Overlap(data=draw(st.sampled_from([0.0, 0.5, 1.0])), context=0),
    )


def moved(found: Outcome, operation: str, channels: set[int]) -> int:
    return sum(
        sizes[1] for (_, what, channel), sizes in found.collected.items()
        if what == operation and channel % CHANNELS in channels
    )  # fmt: skip


@given(plan=plans(), model=st.sampled_from([SMALL, EXPERTS]))
@settings(max_examples=case_count(plain=40, deep=400), deadline=None)
def test_gradients_that_are_added_are_those_of_adapters(plan: Parallelism, model: Model) -> None:
    job, _ = job_of(model, plan)
    found = run_stages(job)
    assert found.left_tokens == {}
    of_rank = adapter_parameters(model, plan) / plan.tensor
    rounds = plan.micro_batches if plan.zero == 3 else 1
    operation = "all-reduce" if plan.zero == 0 else "reduce-scatter"
    wanted = rounds * plan.gradient_bytes * of_rank
    assert moved(found, operation, GRADIENTS) == pytest.approx(wanted, rel=1e-6, abs=100 * rounds)
    held = of_rank if plan.zero < 3 else of_rank + parameters(model).total / plan.tensor
    gathers = {0: 0, 1: 1, 2: 1, 3: 2 * plan.micro_batches}[plan.zero]
    if model is SMALL:  # experts and routers are held in other parts
        assert moved(found, "all-gather", GATHERED) == pytest.approx(gathers * 2 * held, rel=2e-3, abs=200 * gathers)


@given(plan=plans(), model=st.sampled_from([SMALL, EXPERTS]))
@settings(max_examples=case_count(plain=40, deep=400), deadline=None)
def test_states_are_those_of_adapters_and_sharded_like_others(plan: Parallelism, model: Model) -> None:
    memories = [stage_memory(model, plan, stage) for stage in range(plan.pipeline)]
    of_ranks = adapter_parameters(model, plan) / plan.tensor
    gradients, optimizer = (of_ranks / (plan.data if plan.zero >= least else 1) for least in (2, 1))
    found = sum(memory.gradients_bytes for memory in memories), sum(memory.optimizer_bytes for memory in memories)
    assert found == (
        pytest.approx(plan.gradient_bytes * gradients, abs=plan.pipeline),
        pytest.approx(12 * optimizer, abs=plan.pipeline),
    )
    whole = [stage_memory(model, plan.model_copy(update={"has_lora": False}), stage) for stage in range(plan.pipeline)]
    more = sum(one.weights_bytes for one in memories) - sum(one.weights_bytes for one in whole)
    assert more == pytest.approx(2 * of_ranks / (plan.data if plan.zero == 3 else 1), abs=2 * plan.pipeline)


@given(
    name=st.sampled_from(["llama-2-7b", "llama-3-70b"]),
    tensor=st.sampled_from([1, 4]),
    rank=st.sampled_from([8, 16, 64]),
    zero=st.sampled_from([0, 1, 3]),
)
@settings(max_examples=case_count(plain=15, deep=100), deadline=None)
def test_an_iteration_of_lora_is_shorter_and_a_larger_rank_takes_longer(
    name: str, tensor: int, rank: int, zero: int
) -> None:
    """Of wide models; beside narrow matrices the thin ones may take longer than the gradients that they spare."""
    model = model_of_catalogue(name)
    figures = collective_figures(node("dgx-h100").server, nic_port_rate_bps=400_000_000_000)
    cluster = GpuCluster(domain_gpus=8, figures=figures, host_rate_bps=HOST_BPS)
    whole = Parallelism(tensor=tensor, data=2, zero=zero, global_batch=8, sequence=4096)
    closed = ClosedForms(
        model=model, gpu=gpu("h100"), software=QUIET, cluster=cluster, placement=packed(whole.ranks, 8)
    )
    lora = {"has_lora": True, "lora_rank": rank}
    plans = [whole, whole.model_copy(update=lora), whole.model_copy(update=lora | {"lora_rank": 2 * rank})]
    times = [closed.iteration(plan).total_ps for plan in plans]
    assert times[0] > times[1]
    assert times[2] > times[1]
