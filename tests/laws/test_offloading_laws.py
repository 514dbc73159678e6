"""Laws of offloaded activations over random plans: they save memory and no time, and a fast link hides them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from helpers.cases import case_count
from helpers.stages import run_stages
from helpers.trained import EXPERTS, QUIET, SMALL, packed
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.hardware.catalogue import gpu, node
from weftwork.spec.training import Model, Parallelism
from weftwork.workload.collectives.figures import collective_figures
from weftwork.workload.models.catalogue import model as model_of_catalogue
from weftwork.workload.parallelism.layout import virtual_stages_of
from weftwork.workload.parallelism.memory import fullest_stage, unit_bytes
from weftwork.workload.parallelism.offloading import stage_transfers
from weftwork.workload.training.closed_form import ClosedForms
from weftwork.workload.training.communication import GpuCluster
from weftwork.workload.training.programs import training_job

PCIE_BPS: Final = 504_000_000_000
ENDLESS_BPS: Final = 10**24
LAYERS: Final = 8  # of both models
DECIMALS: Final = 1e-9


def cluster(host_rate_bps: int) -> GpuCluster:
    figures = collective_figures(node("dgx-h100").server, nic_port_rate_bps=400_000_000_000)
    return GpuCluster(domain_gpus=8, figures=figures, host_rate_bps=host_rate_bps)


def total_ps(model: Model, plan: Parallelism, host_rate_bps: int = PCIE_BPS) -> int:
    closed = ClosedForms(
        model=model, gpu=gpu("h100"), software=QUIET, cluster=cluster(host_rate_bps), placement=packed(plan.ranks, 8)
    )
    return closed.iteration(plan).total_ps


@st.composite
def plans(draw: st.DrawFn) -> Parallelism:
    pipeline, virtual_stages = draw(st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 2), (4, 2), (3, 1)]))
    schedule = "1f1b" if virtual_stages > 1 else draw(st.sampled_from(["1f1b", "gpipe", "zb-h1", "dualpipe"]))
    if schedule == "dualpipe":
        pipeline += pipeline % 2
    data = draw(st.sampled_from([1, 2]))
    count = 2 * pipeline * draw(st.integers(1, 3))
    micro_batch = draw(st.sampled_from([1, 2, 4]))
    return Parallelism(
        tensor=draw(st.sampled_from([1, 2])),
        pipeline=pipeline,
        virtual_stages=virtual_stages,
        schedule=schedule,
        data=data,
        micro_batch=micro_batch,
        global_batch=count * micro_batch * data,
        sequence=draw(st.sampled_from([512, 4096])),
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
        precision=draw(st.sampled_from(["bf16", "fp8"])),
        zero=draw(st.sampled_from([0, 1] if schedule == "dualpipe" else [0, 1, 3])),
        offloaded_layers=draw(st.integers(1, LAYERS)),
    )


@given(plan=plans(), model=st.sampled_from([SMALL, EXPERTS]), slower=st.sampled_from([1.5, 4, 100]))
@settings(max_examples=case_count(plain=40, deep=400), deadline=None)
def test_offloading_never_saves_time_and_an_endless_link_hides_it(
    plan: Parallelism, model: Model, slower: float
) -> None:
    without_ps = total_ps(model, plan.model_copy(update={"offloaded_layers": 0}))
    with_ps = total_ps(model, plan)
    assert total_ps(model, plan, ENDLESS_BPS) == pytest.approx(without_ps, rel=DECIMALS)
    assert without_ps <= with_ps * (1 + DECIMALS)
    assert with_ps <= total_ps(model, plan, round(PCIE_BPS / slower)) * (1 + DECIMALS)


@given(plan=plans(), model=st.sampled_from([SMALL, EXPERTS]), rate=st.sampled_from([10**9, 10**11, PCIE_BPS]))
@settings(max_examples=case_count(plain=40, deep=400), deadline=None)
def test_the_program_of_one_gpu_takes_what_the_closed_form_says(plan: Parallelism, model: Model, rate: int) -> None:
    """Without a pipeline and without communication no approximation is between them."""
    alone = {"tensor": 1, "data": 1, "pipeline": 1, "virtual_stages": 1, "schedule": "1f1b", "zero": 0}
    plan = plan.model_copy(update=alone)
    job, _ = training_job(
        model, plan, gpu=gpu("h100"), software=QUIET, cluster=cluster(rate), placement=packed(plan.ranks, 8)
    )
    found = run_stages(job)
    assert found.left_tokens == {}
    waited_ps = found.busy_ps[0][job.labels.index("offload")]
    assert found.end_ps == pytest.approx(total_ps(model, plan, rate), rel=1e-6)
    hidden_ps = total_ps(model, plan, ENDLESS_BPS)
    assert waited_ps == pytest.approx(found.end_ps - hidden_ps, rel=1e-6, abs=1e-6 * found.end_ps)


@given(plan=plans(), name=st.sampled_from(["llama-3-8b", "gpt-22b"]), layers=st.integers(1, 30))
@settings(max_examples=case_count(plain=30, deep=300), deadline=None)
def test_each_offloaded_layer_sets_free_the_activations_that_are_moved(
    plan: Parallelism, name: str, layers: int
) -> None:
    model = model_of_catalogue(name)
    plan = plan.model_copy(
        update={"pipeline": 1, "virtual_stages": 1, "schedule": "1f1b", "global_batch": plan.data * plan.micro_batch}
    )
    kept, left = (
        fullest_stage(model, plan.model_copy(update={"offloaded_layers": count}), has_flash_attention=True)
        for count in (0, layers)
    )
    (parts,) = virtual_stages_of(model, plan)
    (moved,) = stage_transfers(parts, layers)
    moved_bytes = sum(unit_bytes(model, plan, one.unit, has_flash_attention=True) for one in moved)
    assert kept.activations_bytes - left.activations_bytes == pytest.approx(moved_bytes, rel=1e-6, abs=2)
    assert replace(kept, activations_bytes=0) == replace(left, activations_bytes=0)
