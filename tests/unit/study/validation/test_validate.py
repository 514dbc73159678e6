"""``weftwork validate``: rules that make cases of rows, the shape of the scorecard, the command, and its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.base.errors import ConfigError
from weftwork.data.measured import measured
from weftwork.study.validation import published_cases, validate
from weftwork.study.validation.predict import Prediction
from weftwork.study.validation.published_cases import Case, bridge, sc21, vtrain_multi_node, vtrain_single_node
from weftwork.study.validation.recipes import MODELS, recipe_of
from weftwork.study.validation.scorecard_page import HEAD, document, line, page
from weftwork.workload.models.size import iteration_flops

PAGE = Path(__file__).resolve().parents[4] / "docs" / "models" / "scorecard.md"


FAMILIES = ("dense-fp8", "dense-nvfp4", "experts", "gpt-oss")


def cases_of(family: str) -> tuple[Case, ...]:
    return bridge(family)[0]  # type: ignore[arg-type]


@pytest.fixture
def half_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the engine."""
    found = Prediction(iteration_s=0.5, peak_s=0.2, parts_s=(("compute", 0.5),))
    monkeypatch.setattr(validate, "predict", lambda *_: found)


def test_every_row_of_a_table_is_a_case_or_left_out_with_a_reason() -> None:
    found = [bridge(family) for family in FAMILIES]  # type: ignore[arg-type]
    assert sum(len(cases) + len(excluded) for cases, excluded in found) == measured("megatron-bridge").num_rows
    assert all(row.reason for _, excluded in found for row in excluded)
    assert {row.name.split()[0] for _, excluded in found for row in excluded} == {"DeepSeekV4"}
    assert (len(vtrain_multi_node()), len(vtrain_single_node()), len(sc21())) == (47, 360, 5)


def test_plans_use_all_gpus_and_divide_their_batch() -> None:
    everything = [*vtrain_multi_node(), *vtrain_single_node(), *sc21()]
    for family in FAMILIES:
        everything += cases_of(family)
    for case in everything:
        plan = case.plan
        assert plan.ranks == case.cluster.gpus, case.name
        assert plan.global_batch == plan.micro_batches * plan.data * plan.micro_batch, case.name
        assert (plan.tensor * plan.context * plan.data) % plan.expert == 0, case.name


def test_eight_gpus_with_70_billion_parameters_are_lora_and_do_two_thirds_of_the_work() -> None:
    found = {case.name: case for case in cases_of("dense-fp8")}
    lora = [case for case in found.values() if case.plan.has_lora]
    assert {(case.model.name, case.cluster.gpus) for case in lora} == {("llama-3-70b", 8)}
    rows = [row for row in measured("megatron-bridge").to_pylist() if row["gpus"] == 8 and "LLAMA" in row["model"]]
    for case, row in zip(lora, rows, strict=True):
        published = row["model_tflop_per_s_per_gpu"] * 1e12 * row["gpus"] * case.measured_s
        assert iteration_flops(case.model, case.plan) == pytest.approx(published, rel=0.06)


@pytest.mark.parametrize("family", ["dense-fp8", "dense-nvfp4"])
def test_flops_are_those_of_the_table(family: str) -> None:
    rows = {published_cases._row_name(row): row for row in measured("megatron-bridge").to_pylist()}
    for case in cases_of(family):
        row = rows[case.name]
        published = row["model_tflop_per_s_per_gpu"] * 1e12 * row["gpus"] * case.measured_s
        assert iteration_flops(case.model, case.plan) == pytest.approx(published, rel=0.06), case.name


def test_sharded_rows_shard_and_others_do_not() -> None:
    rows = {published_cases._row_name(row): row for row in measured("megatron-bridge").to_pylist()}
    for case in cases_of("dense-fp8"):
        assert case.plan.zero == (3 if rows[case.name]["fsdp"] else 1), case.name


def test_layers_that_do_not_divide_are_spread_with_the_ends_or_by_hand() -> None:
    for case in (*cases_of("dense-fp8"), *cases_of("experts")):
        stages = case.plan.pipeline * case.plan.virtual_stages
        assert case.model.layers % stages == 0 or case.plan.has_balanced_ends or case.plan.layout, case.name


def test_micro_batches_of_sc21_are_those_of_its_scripts() -> None:
    assert [case.plan.micro_batch for case in sc21()] == [16, 16, 4, 2, 1]
    assert [case.plan.virtual_stages for case in sc21()] == [1, 1, 1, 2, 3]


def test_a_row_has_the_recipe_of_its_release_and_what_it_ran_with_otherwise() -> None:
    rows = measured("megatron-bridge").to_pylist()
    for row in rows:
        if "DeepSeekV4" in row["model"]:
            continue
        found = recipe_of(row)
        recipe = found.recipe
        assert (recipe.model, recipe.gpu, recipe.precision) == (
            MODELS[row["model"]], row["system"].lower(), row["precision"].lower(),
        )  # fmt: skip
        assert all(getattr(recipe, key) != (row[key] or 1) for key in found.differs)
    (late,) = {
        recipe_of(row).recipe.graphs
        for row in rows
        if (row["model"], row["system"], row["release"]) == ("DeepSeekV3", "GB300", "26.06")
    }
    assert late == "iteration"


@pytest.mark.parametrize(
    ("change", "told"),
    [({"release": "26.03"}, "wanted 26.02"), ({"release": "26.02", "system": "B300", "precision": "NVFP4"}, "wanted")],
)
def test_a_row_without_a_recipe_is_told_what_there_is(change: dict[str, str], told: str) -> None:
    row = next(row for row in measured("megatron-bridge").to_pylist() if row["model"] == "DeepSeekV3")
    with pytest.raises(ConfigError, match=told):
        recipe_of({**row, **change})


def test_recipes_name_models_once() -> None:
    assert len(set(MODELS.values())) == len(MODELS)


def test_the_cpu_time_of_an_operation_is_declared_where_it_was_read() -> None:
    assert {case.software.name for case in vtrain_single_node()} == {"megatron-deepspeed"}
    chosen = validate.SETS["vtrain-single-node"]
    assert chosen.role == "declared"
    assert "36 us" in chosen.calibrated_on
    assert validate.SETS["vtrain-39b"].role == "calibration"


def test_tolerances_are_those_that_are_wanted() -> None:
    found = {key: chosen.tolerance for key, chosen in validate.SETS.items() if chosen.curves is None}
    assert found == {
        "vtrain-39b": 0.08, "vtrain-single-node": 0.07, "sc21": 0.03, "bridge-dense-fp8": 0.05,
        "bridge-dense-nvfp4": 0.05, "bridge-experts": 0.10, "bridge-gpt-oss": None,
        "uet-small": 0.05, "uet": 0.05,
        "mlperf-gpt3": 0.15, "mlperf-llama3": 0.15, "mlperf-lora": None, "foundry-h100": 0.15, "foundry-h100-fp8": 0.15,
        "foundry-a100": 0.15, "lumi": None, "deepseek-v3": None, "fabric-signs": None,
    }  # fmt: skip


@pytest.mark.usefixtures("half_a_second")
def test_a_prediction_that_is_wrong_is_not_reached_and_says_so() -> None:
    (found,) = validate.validate(["sc21"], processes=1)
    assert found.is_reached is False
    assert found.mape == pytest.approx(sum(1 - 0.5 / case.measured_s for case in sc21()) / 5)
    text = page([found])
    assert "not reached" in text
    assert all(case.name in text for case in sc21())
    assert document([found])[0]["reached"] is False
    assert line(found)[HEAD.index("reached")] == "no"


@pytest.mark.usefixtures("half_a_second")
def test_ranks_of_plans_are_printed_for_every_job_with_several() -> None:
    (found,) = validate.validate(["vtrain-39b"], processes=1)
    (rank,) = found.plan_ranks()
    assert (rank.plans, rank.rank) == (47, 47)  # a model that says the same to all plans
    assert "number 47 of 47" in page([found])


@pytest.mark.usefixtures("half_a_second")
def test_small_rows_are_sampled_unless_all_are_wanted() -> None:
    (some,) = validate.validate(["vtrain-single-node"], processes=1)
    (every,) = validate.validate(["vtrain-single-node"], is_full=True, processes=1)
    assert (len(some.points), len(every.points)) == (60, 360)
    assert "--full" in " ".join(some.notes)


def test_what_takes_a_minute_runs_by_name_or_with_full(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(validate, "scored", lambda chosen, **_: ran.append(chosen.key) or ())
    validate.validate()
    assert set(validate.SETS) - set(ran) == validate.BY_NAME == {"fabric-signs", "uet"}
    validate.validate(is_full=True)
    assert ran[-len(validate.SETS) :] == list(validate.SETS)
    validate.validate(["uet"])
    assert ran[-1] == "uet"


def test_an_unknown_set_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'bridge-experts'"):
        validate.validate(["bridge-expert"])


def test_the_page_of_the_documents_has_every_set_whole() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for key in validate.SETS:
        assert f"\n| {key} |" in text, key
    assert "Every 6th row" not in text
