"""A user's own rows: templates come back as packaged rows, mistakes come all at once, and the exit code tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.nccl_texts import Written, tagged, text_of

from weftwork.base.errors import ConfigError
from weftwork.cli import main
from weftwork.cli.validate import parse_tolerance
from weftwork.spec.scenario.training import OverlapSection
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.collective import collective_scenario
from weftwork.study.validation import validate
from weftwork.study.validation.curves import CurveRow, rows_of
from weftwork.study.validation.llm_foundry import llm_foundry
from weftwork.study.validation.mlperf import mlperf
from weftwork.study.validation.own_rows import own_rows, own_sets
from weftwork.study.validation.published_cases import Case, bridge, sc21, vtrain_multi_node, vtrain_single_node
from weftwork.study.validation.row_formats import FORMATS, GENERAL, template
from weftwork.study.validation.signs import comparisons
from weftwork.study.validation.training_runs import deepseek_v3, lumi
from weftwork.study.validation.ultra_ethernet import permutations, small_cases
from weftwork.topology.build import fabric_of_section

PACKAGED = {
    "vtrain-39b": vtrain_multi_node,
    "vtrain-single-node": vtrain_single_node,
    "sc21": sc21,
    "bridge-dense-fp8": lambda: bridge("dense-fp8")[0],
    "bridge-dense-nvfp4": lambda: bridge("dense-nvfp4")[0],
    "bridge-experts": lambda: bridge("experts")[0],
    "bridge-gpt-oss": lambda: bridge("gpt-oss")[0],
    "uet-small": lambda: small_cases()[0],
    "uet": lambda: permutations(is_full=True)[0],
    "mlperf-gpt3": lambda: mlperf("gpt3-175b"),
    "mlperf-llama3": lambda: mlperf("llama3.1"),
    "mlperf-lora": lambda: mlperf("llama2-70b-lora"),
    "foundry-h100": lambda: llm_foundry("H100", "BF16"),
    "foundry-h100-fp8": lambda: llm_foundry("H100", "FP8"),
    "foundry-a100": lambda: llm_foundry("A100", "BF16"),
    "lumi": lumi,
    "deepseek-v3": deepseek_v3,
    "fabric-signs": lambda: comparisons()[0],
}
GOOD = "operation,gpus,size_bytes,seconds,server\nall-reduce,8,67108864,0.0003,dgx-h100\n"


def written(folder: Path, text: str) -> Path:
    file = folder / "rows.csv"
    file.write_text(text, encoding="utf-8")
    return file


def left_code(*words: str) -> object:
    with pytest.raises(SystemExit) as left:
        main(list(words))
    return left.value.code


def test_every_set_of_the_scorecard_has_a_format() -> None:
    assert set(FORMATS) == {*validate.SETS, *GENERAL}


@pytest.mark.parametrize("key", sorted(PACKAGED))
def test_the_template_of_a_set_is_read_back_as_its_packaged_rows(key: str, tmp_path: Path) -> None:
    text = template(FORMATS[key])
    assert f"'weftwork validate {key} --data FILE' scores them." in text
    found = own_rows(written(tmp_path, text), key)
    packaged = PACKAGED[key]()
    assert len(found.rows) == min(3, len(packaged))
    for row in found.rows:
        if isinstance(row, Case):
            same = next(one for one in packaged if one.name == row.name)
            assert (row.model, row.plan, row.cluster, row.software) == (
                same.model, same.plan, same.cluster, same.software,
            )  # fmt: skip
            assert row.measured_s == pytest.approx(same.measured_s)
        else:
            assert row in packaged


@pytest.mark.parametrize("key", [key for key in FORMATS if key.startswith("nccl")])
def test_templates_of_curves_are_read_back_as_packaged_sizes(key: str, tmp_path: Path) -> None:
    found = own_rows(written(tmp_path, template(FORMATS[key])), key)
    assert found.rows
    for row in found.rows:
        assert isinstance(row, CurveRow)
        times_s = [
            one.measured_s
            for one in rows_of(key)
            if (one.server, one.operation, one.gpus, one.size_bytes)
            == (row.server, row.operation, row.gpus, row.size_bytes)
        ]
        assert any(row.measured_s == pytest.approx(time_s) for time_s in times_s)


@pytest.mark.parametrize("key", GENERAL)
def test_general_templates_are_known_by_their_head(key: str, tmp_path: Path) -> None:
    (found,) = own_sets(written(tmp_path, template(FORMATS[key])))
    assert found.format.name == key
    assert len(found.rows) == 3


def test_general_iterations_say_what_the_columns_of_sc21_say(tmp_path: Path) -> None:
    found = own_rows(written(tmp_path, template(FORMATS["iterations"])))
    for row, case in zip(found.rows, sc21(), strict=False):
        assert isinstance(row, Case)
        overlap = OverlapSection().resolved(case.plan.virtual_stages)
        assert row.plan == case.plan.model_copy(update={"overlap": overlap, "has_prefetch": False})  # of ZeRO 3 alone
        assert (row.model, row.measured_s, row.software) == (case.model, case.measured_s, case.software)


def test_rows_of_several_families_are_a_set_each(tmp_path: Path) -> None:
    rows = [template(FORMATS[f"bridge-{family}"]).splitlines() for family in ("dense-fp8", "experts")]
    head = next(line for line in rows[1] if line.startswith("release,"))  # experts have all columns of dense models
    names = head.split(",")
    lines = [head]
    for text in rows:
        own = next(line for line in text if line.startswith("release,")).split(",")
        for line in text[-3:]:
            cells = dict(zip(own, line.split(","), strict=True))
            lines.append(",".join(cells.get(name, "") for name in names))
    file = written(tmp_path, "\n".join(lines))
    assert [(one.format.name, len(one.rows)) for one in own_sets(file)] == [
        ("bridge-dense-fp8", 3), ("bridge-experts", 3),
    ]  # fmt: skip
    named = own_rows(file, "bridge-experts")
    assert len(named.rows) == 3
    assert all("bridge-dense-fp8" in row.reason for row in named.excluded)


def test_a_model_of_ones_own_goes_into_the_scenario(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 8,
        "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 4096, "vocab_size": 32000,
        "max_position_embeddings": 2048,
    }  # fmt: skip
    (tmp_path / "mine.json").write_text(json.dumps(config), encoding="utf-8")
    text = "model,node,gpus,global_batch,micro_batch,seconds\nmine.json,dgx-h100,8,16,1,0.5\n"
    file = written(tmp_path, text)
    assert left_code("validate", "--data", str(file), "--write-scenarios", str(tmp_path / "out")) == 0
    (scenario,) = (tmp_path / "out" / "iterations").glob("*.yaml")
    (job,) = prepare(read_scenario(scenario)).jobs
    assert (job.model.key_value_heads, job.model.is_gated, job.plan.data) == (4, True, 8)


def test_all_mistakes_come_at_once_with_their_lines(tmp_path: Path) -> None:
    text = (
        "# a comment\noperation,gpus,size_bytes,seconds,server\n"
        "all-reduce,8,x,0.1,dgx-h100\nall-reduc,8,1024,-1,dgx-h100\nall-reduce,8,1024,nan,dgx-h10\n8,1\n"
    )
    with pytest.raises(ConfigError) as wrong:
        own_rows(written(tmp_path, text))
    found = [(one.line, one.path, one.fix) for one in wrong.value.mistakes]
    assert found == [
        (3, "size_bytes", None), (4, "operation", "all-reduce"), (4, "seconds", None), (5, "seconds", None),
        (5, "server", "dgx-h100"), (6, "row", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "column", "text"),
    [
        ({"data": "3"}, "gpus", "wanted 96, the product of tensor, data, pipeline"),
        ({"attention_heads": "63"}, "attention_heads", "wanted a divisor of hidden, 8192"),
        ({"global_batch": "100"}, "global_batch", "wanted"),
    ],
)
def test_plans_that_cannot_be_are_told_at_their_line(
    change: dict[str, str], column: str, text: str, tmp_path: Path
) -> None:
    lines = template(FORMATS["vtrain-39b"]).splitlines()
    at = next(index for index, one in enumerate(lines) if not one.startswith("#"))
    cells = dict(zip(lines[at].split(","), lines[at + 1].split(","), strict=True)) | {"pipeline": "16"} | change
    cells |= {} if "data" in change else {"pipeline": "8"}
    file = written(tmp_path, "\n".join([lines[at], ",".join(cells.values())]))
    with pytest.raises(ConfigError) as wrong:
        own_rows(file, "vtrain-39b")
    (mistake,) = wrong.value.mistakes
    assert (mistake.line, mistake.path) == (2, column)
    assert text in mistake.text


@pytest.mark.parametrize(
    ("text", "key", "path", "words"),
    [
        ("", None, "head", "no set has these columns"),
        ("a,b\n1,2\n", None, "head", "--template SET prints"),
        ("gpus,size_bytes,time_us\n8,1024,1\n", None, "head", "does not name its operation"),
        ("operation,gpus,size_bytes,seconds,server\n", "curves", "file", "no rows"),
        (GOOD.replace("seconds,", "").replace("0.0003,", ""), "curves", "seconds", "found no time"),
        (GOOD.replace(",8,", ",12,"), "curves", "gpus", "a multiple: whole servers"),
        (GOOD.replace(",8,", ",1,"), "curves", "gpus", "at least 2"),
        ("link_gbps,message_bytes,paths,control,tail_fct_us\n2,1000,64,nscc,10\n", "uet", "link_gbps", "at least 8"),
        ("model,node,gpus,global_batch,micro_batch,seconds\nno-such,dgx-h100,8,8,1,1\n", None, "model", "wanted"),
    ],
)
def test_tables_that_cannot_be_scored_are_refused(
    text: str, key: str | None, path: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as wrong:
        own_rows(written(tmp_path, text), key)
    assert wrong.value.mistakes[0].path == path
    assert words in wrong.value.mistakes[0].text


def test_an_unknown_set_names_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert left_code("validate", "sc22", "--data", str(written(tmp_path, GOOD))) == 2
    assert left_code("validate", "--template", "curve") == 2
    assert "did you mean 'curves'" in capsys.readouterr().err


@pytest.mark.parametrize(("tolerance", "code"), [("5%", 0), ("1%", 1), ("20", 2), ("x", 2), (None, 0)])
def test_the_exit_code_says_whether_a_tolerance_is_kept(
    tolerance: str | None, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\n".join(template(FORMATS["sc21"]).splitlines()[:-2])  # the row of the smallest model
    words = ["validate", "sc21", "--data", str(written(tmp_path, text)), "--json", "--page", str(tmp_path / "p.md")]
    assert left_code(*words, *([] if tolerance is None else ["--tolerance", tolerance])) == code
    out = capsys.readouterr().out
    if code < 2:
        (found,) = json.loads(out)["sets"]
        assert 0.01 < found["mape"] < 0.05
        (row,) = found["rows"]
        assert found["mape"] == pytest.approx(abs(row["error"]))
        assert found["tolerance"] == (None if tolerance is None else float(tolerance[:-1]) / 100)
        assert (tmp_path / "p.md").read_text(encoding="utf-8").startswith("# Your own rows")


def test_tolerances_are_shares() -> None:
    assert parse_tolerance("10%") == pytest.approx(0.1)
    with pytest.raises(ConfigError, match=r"did you mean '15%'"):
        parse_tolerance("15")


def test_the_naive_line_of_own_curves_is_line_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert left_code("validate", "--data", str(written(tmp_path, GOOD)), "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["sets"]
    (row,) = found["rows"]
    assert found["naive"]["rule"] == "line rate"
    assert row["naive_s"] == pytest.approx(67108864 * 8 * 1.75 / 3.6e12)
    assert row["predicted_s"] == pytest.approx(3.25e-4, rel=0.1)


def test_a_text_of_nccl_tests_is_scored_like_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, folder = tmp_path / "nccl.txt", tmp_path / "scenarios"
    run = Written(program="all_gather", sizes_bytes=(1 << 20, 1 << 24), times_us=(40.0, 90.0))
    file.write_text("\n".join(tagged(text_of(run), "[1,0]<stdout>:")), "utf-8")
    assert left_code("validate", "--data", str(file), "--node", "dgx-h100", "--json") == 0
    (made,) = json.loads(capsys.readouterr().out)["sets"]
    assert [row["measured_s"] for row in made["rows"]] == pytest.approx([40e-6, 90e-6])
    assert made["notes"][0].startswith("read from line 1 on: all_gather_perf, 1 host with 8 GPUs (node-0)")
    words = ("validate", "curves", "--data", str(file), "--node", "dgx-h100", "--write-scenarios", str(folder))
    assert left_code(*words) == 0
    assert len(list(folder.rglob("*.yaml"))) == 2


@pytest.mark.parametrize(
    ("words", "path", "text"),
    [
        (["--data", "nccl.txt"], "--node", "is missing"),
        (["--data", "nccl.txt", "--node", "dgx-h100", "--gpus", "16"], "--gpus", "the text lists 8 ranks"),
        (["--data", "rows.csv", "--node", "dgx-h100"], "--node", "a table has a column for it"),
        (["sc21", "--node", "dgx-h100"], "--node", "with --data"),
    ],
)
def test_facts_of_a_text_are_options_of_a_text_alone(
    words: list[str],
    path: str,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "nccl.txt").write_text("\n".join(text_of(Written())), "utf-8")
    written(tmp_path, GOOD)
    monkeypatch.chdir(tmp_path)
    assert left_code("validate", *words) == 2
    told = capsys.readouterr().err
    assert path in told
    assert text in told


def test_a_curve_of_a_rack_in_one_domain_has_a_fabric() -> None:
    """A rack has more uplinks than a switch of 128 ports, and needs none of them."""
    row = CurveRow(
        name="", server="gb200-nvl72", operation="all-reduce", gpus=72, size_bytes=1 << 30, measured_s=3e-3
    )  # fmt: skip
    overrides = {key: json.dumps(value) for key, value in row.scenario().items() if key not in {"schema", "name"}}
    scenario = collective_scenario({}, file=None, overrides=overrides)
    fabric = fabric_of_section(scenario.fabric, directory=Path())
    assert len(fabric.hosts) == 2
