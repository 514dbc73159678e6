"""Training programs on the flow engine, beside the same programs by hand with every collective alone on its links."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.stages import run_stages
from helpers.tiny import flow_input_of
from helpers.trained import EXPERTS, QUIET, SMALL, job_of

from weftwork.engine.flow.run import run
from weftwork.spec.job import Collect
from weftwork.spec.training import Model, Overlap, Parallelism, PipelineSchedule
from weftwork.topology.build import fabric_of
from weftwork.workload.parallelism.groups import members_of

FABRIC: Any = {"topology": "rail-optimized", "gpus": 32, "node": "dgx-h100", "switch": "quantum-2"}
NVLINK_LATENCY_PS = 1_000_000
NVLINK_BPS, NIC_BPS = 2_923_200_000_000, 400_000_000_000  # of the catalogue's dgx-h100


def collect_ps(one: Collect) -> int:
    members = members_of(one.group, 0)
    near = sum(int(member) < 8 for member in members)
    far = len(members) > near
    local_s = one.amount_bytes * 8 / (NVLINK_BPS * one.local_efficiency)
    if one.pattern == "all-to-all":
        local_s *= (near - 1) / len(members)
        far_s = one.amount_bytes * 8 * (1 - near / len(members)) / (NIC_BPS * one.network_efficiency)
    else:
        far_s = one.amount_bytes * 8 / (near * NIC_BPS * one.network_efficiency)
    return round(max(local_s, far_s if far else 0) * 1e12) + NVLINK_LATENCY_PS * (near > 1)


def engine_ps(model: Model, plan: Parallelism, **options: Any) -> int:
    fabric = fabric_of(**FABRIC)
    job, _ = job_of(model, plan)
    found = run(flow_input_of(fabric, job, port_selection="spray", **options))
    assert {int(name) for name in found.milestones["name"]} == {0, 1}  # everybody ended an iteration
    return int(found.milestones["at_ps"].max())


@pytest.mark.parametrize(
    ("plan", "tolerance"),
    [
        (Parallelism(global_batch=4), 1e-9),  # nothing is sent
        (Parallelism(tensor=8, global_batch=4), 1e-6),  # one server
        (Parallelism(tensor=4, data=2, global_batch=8, zero=1), 1e-6),
        (
            Parallelism(
                tensor=2, context=2, data=2, global_batch=8, zero=3, gradient_bytes=2, overlap=Overlap(data=1.0)
            ),
            0.1,  # shared
        ),
        (Parallelism(tensor=8, data=4, global_batch=8, zero=0), 0.05),  # headers, latency
        (Parallelism(tensor=2, data=4, pipeline=4, schedule="zb-h1", global_batch=32, overlap=Overlap(data=0.9)), 0.05),
        (Parallelism(tensor=2, data=4, pipeline=4, schedule="dualpipe", global_batch=32), 0.05),
        (Parallelism(tensor=2, data=8, pipeline=2, virtual_stages=2, global_batch=64, overlap=Overlap(data=0.9)), 0.05),
    ],
)
def test_alone_on_its_links_a_job_takes_what_its_parts_take(plan: Parallelism, tolerance: float) -> None:
    job, _ = job_of(SMALL, plan)
    by_hand = run_stages(job, collect_ps=collect_ps, message_ps=lambda size: size * 8 * 10**12 // NIC_BPS)
    assert engine_ps(SMALL, plan) == pytest.approx(by_hand.end_ps, rel=tolerance, abs=20)


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "dualpipe"])
@pytest.mark.parametrize("model", [SMALL, EXPERTS])
def test_ranks_that_are_alike_run_once_and_nothing_changes(model: Model, schedule: PipelineSchedule) -> None:
    expert = 4 if model.experts else 1
    plan = Parallelism(tensor=2, data=8, pipeline=2, expert=expert, global_batch=32, schedule=schedule)
    assert engine_ps(model, plan, fold="auto") == pytest.approx(engine_ps(model, plan, fold="never"), rel=1e-9)


def test_hidden_gradients_cost_less_than_exposed_ones() -> None:
    plan = Parallelism(tensor=8, data=4, global_batch=8, micro_batch=1, zero=1, sequence=8192)
    exposed = engine_ps(SMALL, plan)
    hidden = engine_ps(SMALL, plan.model_copy(update={"overlap": Overlap(data=1.0)}))
    alone = engine_ps(SMALL, Parallelism(tensor=8, global_batch=2, sequence=8192, zero=1))
    assert alone < hidden < exposed
    assert QUIET.latency_scale == 0  # so that what is compared are bytes
