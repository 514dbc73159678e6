"""Closed forms of an iteration beside the flow engine, and where they must be exact."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.spec.training import ModulePrecision, Parallelism
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.prepare.prepared import Prepared
from weftwork.study.prepare.training import training_setting
from weftwork.study.record.road import execute, results
from weftwork.study.validation.published_cases import Case, bridge, sc21, vtrain_multi_node
from weftwork.study.validation.row_scenario import write_row
from weftwork.workload.training.closed_form import IterationTime

ABOVE = 0.03  # the margin of a search: what a closed form may be above the flow engine
CASES = [*vtrain_multi_node()[::8], *sc21()[::2], *bridge("dense-fp8")[0][::6]]


def closed(prepared: Prepared, plan: Parallelism | None = None) -> IterationTime:
    (job,) = prepared.jobs
    setting = training_setting(prepared.scenario, prepared.fabric, job.section)
    return setting.closed_forms().iteration(plan or job.plan)


def flow_ps(prepared: Prepared) -> float:
    return float(results(prepared, execute(prepared, what_if="none")).summary["iteration_ps"].value or 0)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name, marks=[pytest.mark.deep] * (place % 3 > 0)) for place, case in enumerate(CASES)],
)
def test_published_dense_plans_take_as_long_as_in_the_flow_engine(case: Case, tmp_path: Path) -> None:
    prepared = prepare(read_scenario(write_row(case, tmp_path)))
    assert closed(prepared).total_ps == pytest.approx(flow_ps(prepared), rel=0.025)


def scenario(folder: Path, training: str, *, batch: int = 64) -> Prepared:
    named = "" if "model:" in training else "model: gpt-1.7b, "
    file = folder / "one.yaml"
    file.write_text(
        "{schema: 3, fabric: {topology: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 2, node: dgx-h100},"
        f" training: {{{named}global_batch: {batch}, {training}}}, engine: {{fidelity: flow}}}}",
        encoding="utf-8",
    )
    return prepare(read_scenario(file))


def test_where_nothing_shares_a_link_it_is_exact(tmp_path: Path) -> None:
    prepared = scenario(tmp_path, "tensor: 8, gpus: 8")
    assert closed(prepared).total_ps == pytest.approx(flow_ps(prepared), rel=1e-6)


@pytest.mark.parametrize(
    "keys",
    [
        "recompute: selective, recompute_modules: [mlp, layernorm]",
        "precision: fp8, bf16_first_layers: 3, bf16_last_layers: 2, precision_by_module: {projection: bf16}",
        "precision: fp8, software: {launch: 200us, graphs: [attn]}",
        "software: {launch: 200us, graphs: [iteration]}",
    ],
)
def test_what_recipes_set_is_exact_where_nothing_shares_a_link(keys: str, tmp_path: Path) -> None:
    prepared = scenario(tmp_path, f"tensor: 8, gpus: 8, {keys}")
    assert closed(prepared).total_ps == pytest.approx(flow_ps(prepared), rel=1e-6)


@pytest.mark.parametrize(
    "keys",
    [
        "context: 8",
        "context: 4, tensor: 2, recompute: full",
        "context: 8, recompute: selective",
        "context: 2, tensor: 2, pipeline: 2, sequence_parallel: false, recompute: operations",
    ],
)
def test_an_exchange_of_heads_is_exact_where_nothing_shares_a_link(keys: str, tmp_path: Path) -> None:
    prepared = scenario(tmp_path, f"gpus: 8, overlap: {{data: 0}}, context_exchange: all-to-all, {keys}", batch=16)
    whole = closed(prepared)
    assert whole.total_ps == pytest.approx(flow_ps(prepared), rel=0.01 if "pipeline" in keys else 1e-6)
    (job,) = prepared.jobs
    ring = job.plan.model_copy(update={"context_exchange": "ring"})
    assert whole.total_ps != closed(prepared, ring).total_ps


@pytest.mark.parametrize(
    "keys",
    [
        "overlap: {data: 0}, recompute: selective, recompute_modules: [moe, layernorm]",
        "overlap: {data: 0, expert: 1}, software: {exchange_multiprocessors: 32, exchange_efficiency: 0.5}",
        "overlap: {data: 0}, software: {name: megatron-bridge-26.04, expert_streams: 4, graphs: [attn, moe_router]}",
    ],
)
def test_experts_as_recipes_have_them_are_exact_where_exchanges_share_no_link(keys: str, tmp_path: Path) -> None:
    prepared = scenario(tmp_path, f"model: qwen3-30b-a3b, expert: 8, gpus: 8, memory: 10TB, {keys}", batch=16)
    assert closed(prepared).total_ps == pytest.approx(flow_ps(prepared), rel=1e-6)


def test_a_layout_by_hand_takes_as_long_as_in_the_flow_engine(tmp_path: Path) -> None:
    prepared = scenario(tmp_path, "tensor: 4, pipeline: 4, micro_batch: 4, layout: Et*3|t*8|t*6|t*7L")
    assert closed(prepared).total_ps == pytest.approx(flow_ps(prepared), rel=0.025)


def test_a_bubble_is_that_of_one_f_one_b(tmp_path: Path) -> None:
    """(p - 1) passes of equal stages, by virtual stages less: Narayanan et al., section 2.2."""
    found = {}
    for virtual_stages in (1, 2, 3):
        prepared = scenario(tmp_path, f"tensor: 4, pipeline: 4, virtual_stages: {virtual_stages}, micro_batch: 4")
        found[virtual_stages] = closed(prepared)
    plan = prepared.jobs[0].plan
    one = found[1]
    alone_ps = one.passes_ps / plan.micro_batches * (plan.pipeline - 1)
    assert 0.8 * alone_ps < one.bubble_ps < 1.05 * alone_ps  # the last stage, with the head, is the longest
    messages_ps = (3 * found[3].bubble_ps - one.bubble_ps) / 2  # b(v) = b / v + messages
    assert found[2].bubble_ps == pytest.approx((one.bubble_ps - messages_ps) / 2 + messages_ps, rel=0.01)


@pytest.mark.parametrize(
    "plan",
    [
        "tensor: 4, pipeline: 4, virtual_stages: 5, micro_batch: 2",
        "tensor: 2, pipeline: 8, virtual_stages: 3, balanced_ends: true",
        "tensor: 8, pipeline: 2, virtual_stages: 7",
        "tensor: 4, pipeline: 4, schedule: zb-h1",
        "tensor: 2, pipeline: 4, schedule: dualpipe, micro_batch: 2",
    ],
)
def test_passes_that_are_followed_take_as_long_as_in_the_flow_engine(plan: str, tmp_path: Path) -> None:
    """Unequal virtual stages, of which the plain closed form misses up to 16 %, and split backward passes."""
    prepared = scenario(tmp_path, plan)
    (job,) = prepared.jobs
    setting = training_setting(prepared.scenario, prepared.fabric, job.section)
    found = setting.closed_forms().iteration(job.plan, follows=True)
    assert -0.09 < found.total_ps / flow_ps(prepared) - 1 < ABOVE


@pytest.mark.parametrize("tokens", [64, 2048])
def test_answers_are_shared_and_stay_those_of_each_plan(tokens: int, tmp_path: Path) -> None:
    """Few tokens make gradients of weights bound by memory, so that their width counts."""
    prepared = scenario(tmp_path, f"tensor: 2, pipeline: 2, sequence: {tokens}, software: {{launch: 0us}}")
    setting = training_setting(prepared.scenario, prepared.fabric, prepared.jobs[0].section)
    shared = setting.closed_forms()
    base = prepared.jobs[0].plan
    changes = (
        {},
        {"micro_batch": 2},
        {"recompute": "full"},
        {"zero": 3},
        {"tensor": 4, "data": 2},
        {"tensor": 1, "data": 8},
        {"order": "tp-cp-pp-dp"},
        {"context": 2, "data": 2},
        {"context": 2, "data": 2, "context_exchange": "all-to-all"},
        {"overlap": base.overlap.model_copy(update={"tensor": 0.5, "data": 0.5})},
        {"gradient_bytes": 2},
        {"recompute": "selective"},
        {"recompute": "selective", "recompute_modules": ("mlp",)},
        {"precision": "fp8"},
        {"precision": "fp8", "bf16_first_layers": 3},
        {"precision": "fp8", "bf16_last_layers": 5},
        {"precision": "fp8", "module_precision": ModulePrecision(qkv="bf16")},
        {"layout": "Et*11|t*13L"},
    )
    plans = [base.model_copy(update=change) for change in changes]
    together = [shared.iteration(plan) for plan in plans]
    assert together == [closed(prepared, plan) for plan in plans]
    assert together == [shared.iteration(plan) for plan in plans]
    assert len({one.total_ps for one in together}) >= len(plans) - 1  # the order of ranks may make no difference
