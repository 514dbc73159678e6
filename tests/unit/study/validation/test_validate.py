"""``weftwork validate``: rules that make cases of rows, the shape of the scorecard, the command, and its page."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.cli import main
from weftwork.data.measured import measured
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.validation import published_cases, validate
from weftwork.study.validation.curves import CurveRow
from weftwork.study.validation.predict import Prediction, predict
from weftwork.study.validation.published_cases import Case, bridge, sc21, vtrain_multi_node, vtrain_single_node
from weftwork.study.validation.recipes import MODELS, recipe_of
from weftwork.study.validation.row_scenario import file_name, write_row
from weftwork.study.validation.scorecard import Point
from weftwork.study.validation.scorecard_page import HEAD, document, line, page
from weftwork.study.validation.ultra_ethernet import UetRow, permutations
from weftwork.workload.models.huggingface import model_of
from weftwork.workload.models.size import iteration_flops
from weftwork.workload.models.software import software
from weftwork.workload.parallelism.memory import fullest_stage

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


def every_case() -> list[Case]:
    found = [*vtrain_multi_node(), *vtrain_single_node()[::40], *sc21()]
    return [*found, *(case for family in FAMILIES for case in cases_of(family))]


@pytest.mark.parametrize("case", every_case(), ids=lambda case: case.name)
def test_the_scenario_of_a_row_says_what_its_table_says(case: Case, tmp_path: Path) -> None:
    scenario = read_scenario(write_row(case, tmp_path))
    section = scenario.trainings[0]
    made = model_of(section.model)
    plan = section.parallelism(made).model_copy(update={"has_prefetch": case.plan.has_prefetch})  # of ZeRO 3 alone
    assert (made, plan) == (case.model, case.plan)
    assert section.software.on(software(section.software.model)) == case.software
    assert section.gpus == case.cluster.gpus
    needed = fullest_stage(made, plan, has_flash_attention=case.software.has_flash_attention).total_bytes
    assert needed <= (section.memory_bytes or case.gpu.memory_bytes)


def test_of_a_rack_whole_domains_are_used_with_their_ports(tmp_path: Path) -> None:
    (case, *_) = [one for one in cases_of("experts") if one.cluster.domain_gpus]
    server = prepare(read_scenario(write_row(case, tmp_path))).fabric.servers[0]
    assert (server.name, server.gpus, server.nic_ports, server.nvlink_domain_gpus) == (case.cluster.node, 64, 64, 64)


@pytest.mark.parametrize(("key", "row"), [("sc21", 0), ("bridge-dense-nvfp4", 6), ("vtrain-single-node", 0)])
def test_a_row_that_is_written_and_run_has_the_number_of_the_scorecard(key: str, row: int, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as left:
        main(["validate", key, "--write-scenarios", str(tmp_path / "rows"), "--full"])
    assert left.value.code == 0
    make = validate.SETS[key].cases
    assert make is not None
    case = make(True)[0][row]  # noqa: FBT003 - all rows
    assert len(list((tmp_path / "rows" / key).glob("*.yaml"))) == len(make(True)[0])  # noqa: FBT003
    found = weftwork.run(tmp_path / "rows" / key / file_name(case), out=tmp_path / "run", what_if="none")
    predicted = predict(case)
    assert found.value("iteration_ps") == round(predicted.iteration_s * 1e12)
    assert found.value("mfu") == pytest.approx(predicted.peak_s / predicted.iteration_s)


def test_scenarios_are_not_written_over_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["validate", "sc21", "--write-scenarios", str(tmp_path)])
    assert left.value.code == 2
    assert (
        "--write-scenarios  cannot be made: File exists; name a folder that does not exist" in capsys.readouterr().err
    )


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


@pytest.mark.parametrize("is_full", [False, True])
def test_rows_of_packets_are_scored_against_line_rate(is_full: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    monkeypatch.setattr(UetRow, "point", lambda row: Point(
        name=row.name, measured_s=row.tail_us, predicted_s=1.1 * row.tail_us, naive_s=2 * row.tail_us
    ))  # fmt: skip
    (found,) = validate.validate(["uet"], is_full=is_full, processes=1)
    rows, excluded = permutations(is_full=is_full)
    assert [point.name for point in found.points] == [row.name for row in rows]
    assert len(found.excluded) == len(excluded)
    assert found.mape == pytest.approx(0.1)
    assert found.is_reached is False
    assert found.naive == "line rate"
    assert ("--full" in " ".join(found.notes)) is not is_full


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


def test_the_command_prints_curves_and_their_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(CurveRow, "predicted_s", cache(CurveRow.predicted_s))  # the second command asks for the same
    with pytest.raises(SystemExit) as left:
        main(["validate", "nccl-one-server", "--page", str(tmp_path / "page.md")])
    assert left.value.code == 0
    out = capsys.readouterr().out
    assert "nccl-one-server-blind" in out
    assert "rank corr." in out
    assert (tmp_path / "page.md").read_text(encoding="utf-8").startswith("# Scorecard")
    with pytest.raises(SystemExit):
        main(["validate", "nccl-one-server", "--json"])
    sets = json.loads(capsys.readouterr().out)["sets"]
    assert [found["set"] for found in sets] == ["nccl-one-server", "nccl-one-server-blind"]
    assert sets[0]["rows"][0]["measured_s"] > 0
    assert sets[1]["reached"] is True


P5 = [f"nccl-p5-{name}" for name in ("all-reduce", "all-gather", "all-to-all", "small")]


@pytest.mark.deep
@pytest.mark.parametrize("key", ["sc21", "bridge-dense-nvfp4", "nccl-one-server", *P5])
def test_the_page_of_the_documents_has_the_line_of_a_set(key: str) -> None:
    """Some sets are worked out again; `weftwork validate --full --page docs/models/scorecard.md` writes it anew."""
    text = PAGE.read_text(encoding="utf-8")
    for score in validate.validate([key], is_full=True):
        assert f"| {' | '.join(line(score))} |" in text, score.key


def test_the_page_of_the_documents_has_every_set_whole() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for key in validate.SETS:
        assert f"\n| {key} |" in text, key
    assert "Every 6th row" not in text
