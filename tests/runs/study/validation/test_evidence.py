"""Sets that came later: rules that make cases of rows, comparisons by sign, and that nothing of them is calibrated."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.data.measured import measured
from weftwork.spec.scenario.yaml_tree import write_tree
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.validation.llm_foundry import llm_foundry
from weftwork.study.validation.mlperf import mlperf
from weftwork.study.validation.predict import predict
from weftwork.study.validation.published_cases import Case
from weftwork.study.validation.row_scenario import write_row
from weftwork.study.validation.signs import comparisons
from weftwork.study.validation.training_runs import deepseek_v3, lumi
from weftwork.topology.measures import measure
from weftwork.workload.models.huggingface import model_of
from weftwork.workload.models.software import software


def every_case() -> list[Case]:
    foundry = [*llm_foundry("H100", "BF16"), *llm_foundry("H100", "FP8"), *llm_foundry("A100", "BF16")]
    return [*mlperf("gpt3-175b"), *mlperf("llama3.1"), *mlperf("llama2-70b-lora"), *foundry, *lumi(), *deepseek_v3()]


@pytest.mark.parametrize("case", every_case()[::8], ids=lambda case: case.name)
def test_the_scenario_of_a_row_says_what_its_table_says(case: Case, tmp_path: Path) -> None:
    section = read_scenario(write_row(case, tmp_path)).trainings[0]
    made = model_of(section.model)
    plan = section.parallelism(made).model_copy(update={"has_prefetch": case.plan.has_prefetch})  # of ZeRO 3 alone
    assert (made, plan) == (case.model, case.plan)
    assert section.software.on(software(section.software.model)) == case.software
    assert plan.ranks == section.gpus == case.cluster.gpus
    assert plan.global_batch == plan.micro_batches * plan.data * plan.micro_batch


def test_deepseek_v3_runs_both_ways_through_its_pipeline(tmp_path: Path) -> None:
    (case,) = deepseek_v3()
    plan = read_scenario(write_row(case, tmp_path)).trainings[0].parallelism(case.model)
    assert (plan.schedule, plan.pipeline, plan.expert, plan.data) == ("dualpipe", 16, 64, 128)


def test_more_servers_than_a_leaf_has_room_for_meet_without_a_bottleneck(tmp_path: Path) -> None:
    (case,) = (case for case in mlperf("gpt3-175b") if case.cluster.gpus == 11_616)
    fabric = prepare(read_scenario(write_row(case, tmp_path))).fabric
    assert len(fabric.hosts) == 1_452
    assert measure(fabric).oversubscription_by_tier[1] == 1


@pytest.mark.parametrize(("case", "least", "most"), [(mlperf("llama3.1")[1], 0.5, 2.0), (lumi()[0], 0.5, 2.0)])
def test_a_row_is_predicted_within_a_factor_of_two(case: Case, least: float, most: float) -> None:
    assert least < predict(case).iteration_s / case.measured_s < most


def test_comparisons_differ_in_their_fabric_and_can_be_read(tmp_path: Path) -> None:
    rows, excluded = comparisons()
    assert len(rows) == measured("fabric-comparisons").num_rows
    assert all(row.reason for row in excluded)
    for row in rows:
        differs = {key for key in {*row.own, *row.other} if row.own.get(key) != row.other.get(key)}
        assert differs <= {"fabric", "transport", "collective"}
        assert "collective" not in differs or row.name.startswith("Rail-only")  # forwarded where rails are apart
        assert len(differs & {"fabric", "transport"}) == 1
        for name, tree in row.scenarios().items():
            if "training" in tree:
                file = tmp_path / "one.yaml"
                file.write_text(write_tree(tree), encoding="utf-8")
                assert read_scenario(file).trainings[0].gpus == tree["training"]["gpus"], name


def test_a_comparison_runs_on_both_fabrics() -> None:
    row = comparisons()[0][0]
    point = row.point()
    assert (point.measured_s, point.naive_s) == (1.079, 1.0)
    assert 0.9 < point.predicted_s < 1.5


def test_the_step_of_deepseek_is_that_of_its_own_set(tmp_path: Path) -> None:
    (case,) = deepseek_v3()
    (row,) = (row for row in comparisons()[0] if row.name.startswith("DeepSeek: step"))
    file = tmp_path / "step.yaml"
    file.write_text(write_tree(row.scenarios()[f"{row.name}, own"]), encoding="utf-8")
    plans = [read_scenario(one).trainings[0].parallelism(case.model) for one in (file, write_row(case, tmp_path))]
    assert plans[0] == plans[1]
