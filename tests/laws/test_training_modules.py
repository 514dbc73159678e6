"""Laws of what recipes set module by module: layouts, numbers, what is computed again, and what graphs replay."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import get_args

import pytest
from helpers.cases import case_count
from helpers.on_paper import CLUSTER, DENSE, HYBRID, LATENT, MIXED, plan_on_paper
from helpers.trained import packed
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.hardware.catalogue import gpu
from weftwork.spec.training import GraphModule, Model, ModulePrecision, Parallelism, RecomputeModule, Software
from weftwork.workload.models.size import layer_kinds
from weftwork.workload.parallelism.layout import Unit, virtual_stages_of
from weftwork.workload.training.communication import Communication
from weftwork.workload.training.kernels import Kernels
from weftwork.workload.training.layers import UnitWork, unit_work
from weftwork.workload.training.stage import UnitOperations

MODELS = [DENSE, MIXED, HYBRID, LATENT, MIXED.model_copy(update={"prediction_layers": 2, "expert_hidden": 48})]
MODULES = tuple(ModulePrecision.model_fields)
REPLAYED = [one for one in get_args(GraphModule) if one != "iteration"]
models = st.sampled_from(MODELS)
eights = st.sampled_from(["fp8", "mxfp8"])


def units_of(model: Model, plan: Parallelism) -> list[Unit]:
    """Of a model on one stage, in order."""
    ((units,),) = virtual_stages_of(model, plan)
    return list(units)


def work(unit: Unit, model: Model, plan: Parallelism, software: Software | None = None) -> UnitWork:
    kernels = Kernels(gpu=gpu("b200"), software=software or Software(), precision=plan.precision)
    return unit_work(unit, model, plan, kernels)


# Layouts


@st.composite
def texts(draw: st.DrawFn, letters: str, parts: int) -> str:
    """Letters cut into parts at random, with some runs of a letter written as a repetition, and commas."""
    ends = sorted(draw(st.lists(st.integers(0, len(letters)), min_size=parts - 1, max_size=parts - 1)))
    text = ""
    for place, (first, last) in enumerate(pairwise([0, *ends, len(letters)])):
        text += "|" if place else ""
        index = first
        while index < last:
            run = next(
                (n for n in range(last - index, 0, -1) if set(letters[index : index + n]) == {letters[index]}), 1
            )
            form = draw(st.sampled_from(["plain", "repeated", "group"]))
            text += {
                "plain": letters[index] * run,
                "repeated": f"{letters[index]}*{run}",
                "group": f"({letters[index]})*{run}",
            }[form]
            text += draw(st.sampled_from(["", ",", " "]))
            index += run
    return text


@given(data=st.data(), model=models, stages=st.integers(1, 4), virtual=st.integers(1, 3))
@settings(max_examples=case_count(plain=60, deep=500), deadline=None)
def test_the_parts_of_a_layout_are_the_units_of_the_model_in_order(
    data: st.DataObject, model: Model, stages: int, virtual: int
) -> None:
    letters = f"E{'t' * model.layers}{'m' * model.prediction_layers}L"
    # the embedding is in the first part and the loss in the last, however these are cut
    text = data.draw(texts(letters[1:-1], stages * virtual))
    plan = Parallelism(pipeline=stages, virtual_stages=virtual, global_batch=stages, layout=f"E{text}L")
    found = virtual_stages_of(model, plan)
    in_order = [found[part % stages][part // stages] for part in range(stages * virtual)]
    together = list(chain.from_iterable(in_order))
    assert together == units_of(model, plan.model_copy(update={"pipeline": 1, "virtual_stages": 1, "layout": ""}))
    assert [unit.layer for unit in together if unit.part == "layer"] == list(layer_kinds(model))
    assert in_order[0][0].part == "embedding"
    assert in_order[-1][-1].part == "head"


# Numbers


@given(
    model=models,
    precision=eights,
    modules=st.lists(st.sampled_from(MODULES[:-1]), unique=True),
    backward=st.booleans(),
)
@settings(max_examples=case_count(plain=60, deep=400), deadline=None)
def test_numbers_of_modules_add_up(model: Model, precision: str, modules: list[str], backward: bool) -> None:  # noqa: FBT001
    """What one module costs in BF16 instead is the same, whatever the others are in."""

    def cost_s(unit: Unit, wide: list[str]) -> float:
        plan = plan_on_paper(precision=precision, module_precision=dict.fromkeys(wide, "bf16"))
        found = work(unit, model, plan)
        return found.backward_s if backward else found.forward_s

    for unit in set(units_of(model, plan_on_paper(precision=precision))):
        alone = sum(cost_s(unit, [module]) - cost_s(unit, []) for module in modules)
        assert cost_s(unit, modules) == pytest.approx(cost_s(unit, []) + alone, rel=1e-9)


@given(model=models, precision=eights, first=st.integers(0, 6), last=st.integers(0, 6))
@settings(max_examples=case_count(plain=60, deep=400), deadline=None)
def test_layers_in_bf16_cost_what_they_cost_in_bf16_and_the_others_what_they_cost(
    model: Model, precision: str, first: int, last: int
) -> None:
    last = min(last, model.layers - first)
    mixed, narrow, wide = (
        plan_on_paper(precision=numbers, bf16_first_layers=one, bf16_last_layers=other)
        for numbers, one, other in ((precision, first, last), (precision, 0, 0), ("bf16", 0, 0))
    )
    found, few, many = ([work(unit, model, plan) for unit in units_of(model, plan)] for plan in (mixed, narrow, wide))
    layers = [place for place, unit in enumerate(units_of(model, mixed)) if unit.part == "layer"]
    stay = {*layers[:first], *layers[len(layers) - last :]}
    assert found == [many[place] if place in stay else few[place] for place in range(len(found))]
    times = [sum(one.forward_s + one.backward_s for one in each) for each in (found, few, many)]
    assert min(times[1:]) <= times[0] * (1 + 1e-12)
    assert times[0] <= max(times[1:]) * (1 + 1e-12)


@given(model=models, precision=eights)
@settings(max_examples=case_count(plain=10, deep=40), deadline=None)
def test_a_prediction_layer_in_bf16_changes_nothing_else(model: Model, precision: str) -> None:
    plain, wide = (
        plan_on_paper(precision=precision, module_precision={"prediction": numbers}) for numbers in (None, "bf16")
    )
    for one, other in zip(units_of(model, plain), units_of(model, wide), strict=True):
        costs = work(one, model, plain), work(other, model, wide)
        assert (costs[0] == costs[1]) == (one.part != "prediction")
        if one.part == "prediction":
            assert costs[1] == work(one, model, plan_on_paper())


# What is computed again


@given(
    model=models,
    modules=st.lists(st.sampled_from(get_args(RecomputeModule)), unique=True),
    precision=st.sampled_from(["bf16", "mxfp8"]),
)
@settings(max_examples=case_count(plain=60, deep=400), deadline=None)
def test_more_modules_are_more_and_never_more_than_the_layer(
    model: Model, modules: list[RecomputeModule], precision: str
) -> None:
    plan = plan_on_paper(precision=precision)
    for unit in set(units_of(model, plan)):
        costs = work(unit, model, plan)
        taken = [costs.again_s(modules[:count]) for count in range(len(modules) + 1)]
        assert taken == sorted(taken)
        assert taken[0] == 0
        assert taken[-1] <= costs.forward_s * (1 + 1e-12)


# What graphs replay


def excess_ps(
    model: Model, plan: Parallelism, graphs: list[GraphModule], streams: int
) -> dict[Unit, tuple[float, float]]:
    """What units wait for the CPU, on a GPU whose CPU is slow."""
    software = Software(launch_ps=30_000_000, graphs=tuple(graphs), expert_streams=streams, latency_scale=0)
    communication = Communication(
        model=model, plan=plan, software=software, cluster=CLUSTER, placement=packed(plan.ranks, CLUSTER.domain_gpus)
    )
    kernels = Kernels(gpu=gpu("b200"), software=software, precision=plan.precision)
    units = UnitOperations(model=model, plan=plan, kernels=kernels, communication=communication)
    return {unit: units.excess_ps(unit) for unit in set(units_of(model, plan))}


@given(
    model=models,
    graphs=st.lists(st.sampled_from(REPLAYED), unique=True),
    streams=st.sampled_from([0, 1, 4]),
    recompute=st.sampled_from(["none", "selective", "full"]),
    precision=st.sampled_from(["bf16", "nvfp4"]),
)
@settings(max_examples=case_count(plain=60, deep=400), deadline=None)
def test_a_graph_more_never_makes_a_layer_wait_longer(
    model: Model, graphs: list[GraphModule], streams: int, recompute: str, precision: str
) -> None:
    plan = plan_on_paper(recompute=recompute, precision=precision)
    found = [excess_ps(model, plan, graphs[:count], streams) for count in range(len(graphs) + 1)]
    for before, after in pairwise(found):
        for unit, waits in before.items():
            assert sum(after[unit]) <= sum(waits) * (1 + 1e-12)
    whole = excess_ps(model, plan, [*graphs, "iteration"], streams)
    assert set(whole.values()) == {(0.0, 0.0)}
    assert any(sum(waits) > 0 for waits in found[0].values())
