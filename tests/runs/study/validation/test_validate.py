"""``weftwork validate``: rules that make cases of rows, the shape of the scorecard, the command, and its page."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

import weftwork
from weftwork.cli import main
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.validation import validate
from weftwork.study.validation.curves import CurveRow
from weftwork.study.validation.predict import predict
from weftwork.study.validation.published_cases import Case, bridge, sc21, vtrain_multi_node, vtrain_single_node
from weftwork.study.validation.row_scenario import file_name, write_row
from weftwork.study.validation.scorecard import Point
from weftwork.study.validation.ultra_ethernet import UetRow, permutations
from weftwork.workload.models.huggingface import model_of
from weftwork.workload.models.software import software
from weftwork.workload.parallelism.memory import fullest_stage

FAMILIES = ("dense-fp8", "dense-nvfp4", "experts", "gpt-oss")


def cases_of(family: str) -> tuple[Case, ...]:
    return bridge(family)[0]  # type: ignore[arg-type]


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
