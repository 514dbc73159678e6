"""A scenario that names a calibration: each constant moves the answer, at every fidelity, and gives it an interval."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.cli import main
from weftwork.report.three_lines import labelled_lines
from weftwork.spec.calibration import CONSTANTS, read_calibration
from weftwork.study.calibrate.file import calibration_text
from weftwork.study.prepare.prepare import prepare, read_scenario

FABRIC = "{topology: rail-optimized, node: dgx-h100, switch: tomahawk-5, gpus: 16}"


# A value far from Weftwork's own of each constant; both lead to a longer time
OTHER = {
    "matmul_efficiency": 0.3, "fp8_efficiency": 0.3, "kernel_tail_us": 40.0, "launch_us": 400.0,
    "collective_launch_us": 300.0, "network_efficiency": 0.3, "latency_scale": 8.0,
}  # fmt: skip


# A model whose gradients take little time packet by packet
SMALL = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 1,
    "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 8192, "vocab_size": 1024,
    "max_position_embeddings": 4096,
}  # fmt: skip


def training(fidelity: str) -> str:
    return f"""\
schema: 3
fabric: {FABRIC}
training: {{model: ./small.json, tensor: 4, data: 4, global_batch: 4, sequence: 4096, precision: fp8}}
engine: {{fidelity: {fidelity}}}
"""


def collective(fidelity: str, protocol: str = "simple") -> str:
    return f"""\
schema: 3
fabric: {FABRIC}
collective: {{operation: all-reduce, size: 8MiB, protocol: {protocol}}}
engine: {{fidelity: {fidelity}}}
"""


def written(folder: Path, scenario: str, values: dict[str, float] | None, **more: Any) -> Path:
    file = folder / "s.yaml"
    (folder / "small.json").write_text(json.dumps(SMALL), encoding="utf-8")
    named = "" if values is None else "calibration: my.toml\n"
    file.write_text(scenario + named, encoding="utf-8")
    if values is not None:
        text = calibration_text(values=values, fitted_on={"file": "rows.csv", "rows": 30}, **more)
        (folder / "my.toml").write_text(text, encoding="utf-8")
    return file


def time_ps(folder: Path, scenario: str, values: dict[str, float] | None) -> float:
    run = weftwork.run(
        written(folder, scenario, values), out=folder / f"run-{len(list(folder.iterdir()))}", what_if="none"
    )
    name = "iteration_ps" if "iteration_ps" in run.summary else "collective_duration_ps"
    return run.value(name) or 0.0


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    folder = tmp_path_factory.mktemp("usual")
    texts = {f"training {one}": training(one) for one in ("flow", "packet")}
    texts |= {f"collective {one}": collective(one) for one in ("flow", "packet", "reference")}
    return {name: time_ps(folder, text, None) for name, text in texts.items()}


@pytest.mark.parametrize("fidelity", ["flow", "packet"])
@pytest.mark.parametrize("name", sorted(CONSTANTS))
def test_every_constant_moves_an_iteration(name: str, fidelity: str, usual: dict[str, float], tmp_path: Path) -> None:
    assert time_ps(tmp_path, training(fidelity), {name: OTHER[name]}) > 1.005 * usual[f"training {fidelity}"]


@pytest.mark.parametrize("fidelity", ["flow", "packet"])
@pytest.mark.parametrize("name", [name for name, one in CONSTANTS.items() if "collective" in one.workloads])
def test_every_constant_of_collectives_moves_one(
    name: str, fidelity: str, usual: dict[str, float], tmp_path: Path
) -> None:
    assert time_ps(tmp_path, collective(fidelity), {name: OTHER[name]}) > 1.05 * usual[f"collective {fidelity}"]


def test_the_efficiency_of_the_network_is_the_share_of_a_nic_that_data_have(tmp_path: Path) -> None:
    whole, half = (
        prepare(read_scenario(written(tmp_path, collective("flow"), values))).transport.payload_share
        for values in (None, {"network_efficiency": 0.5})
    )
    assert half == pytest.approx(0.5 * whole, rel=1e-3)


def test_packets_and_flows_obey_alike(usual: dict[str, float], tmp_path: Path) -> None:
    values = {"network_efficiency": 0.5, "latency_scale": 2.0, "collective_launch_us": 50.0}
    found = [time_ps(tmp_path, collective(fidelity), values) for fidelity in ("flow", "packet")]
    assert found[0] == pytest.approx(found[1], rel=0.05)
    assert min(found) > 1.5 * usual["collective flow"]


def test_a_value_is_followed_from_the_file_to_the_record(tmp_path: Path) -> None:
    prepared = prepare(read_scenario(written(tmp_path, training("flow"), dict(OTHER))))
    (job,) = prepared.jobs
    made = job.software
    assert (made.matmul_efficiency, made.fp8_efficiency, made.kernel_tail_ps, made.launch_ps) == (
        0.3, 0.3, 40_000_000, 400_000_000,
    )  # fmt: skip
    assert (made.network_efficiency, made.latency_scale) == (0.3, 8.0)


def test_a_key_of_the_scenario_goes_before_the_calibration(tmp_path: Path) -> None:
    text = training("flow").replace("precision: fp8", "precision: fp8, software: {name: plain, launch: 50us}")
    prepared = prepare(read_scenario(written(tmp_path, text, {"launch_us": 400.0, "matmul_efficiency": 0.5})))
    (job,) = prepared.jobs
    assert (job.software.launch_ps, job.software.matmul_efficiency) == (50_000_000, 0.5)
    assert "changes nothing for a job with training.software.launch" in prepared.notes["calibration.launch_us"].text


DRAWS = [{"matmul_efficiency": value} for value in (0.5, 0.55, 0.6, 0.65, 0.7)]


def test_a_run_prints_an_interval_and_keeps_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, training("flow"), {"matmul_efficiency": 0.6}, draws=DRAWS)
    run = weftwork.run(file, out=tmp_path / "run", what_if="none")
    low, time, high = (run.value(f"iteration{end}_ps") or 0 for end in ("_low", "", "_high"))
    assert low < time < high
    interval = run.answer.took.interval
    assert interval is not None
    assert (interval.low, interval.high, interval.rows) == (low / 1e12, high / 1e12, 30)
    assert "5 to 95 % of the draws of the calibration" in dict(labelled_lines(run))["measured"]
    assert run.about["calibrated"].startswith("matmul_efficiency 0.6; fitted on 30 rows of rows.csv (my.toml)")
    text = (tmp_path / "my.toml").read_text(encoding="utf-8")
    assert run.provenance["calibration"]["kept_as"] == "files/my.toml"
    assert (tmp_path / "run" / "files" / "my.toml").read_text(encoding="utf-8") == text
    assert run.provenance["calibration"]["hash"] == read_calibration(tmp_path / "my.toml").digest
    again = weftwork.run(tmp_path / "run" / "scenario.yaml", out=tmp_path / "again", what_if="none")
    assert again.provenance["digest"] == run.provenance["digest"]


def test_the_interval_holds_what_runs_at_its_ends_say(tmp_path: Path) -> None:
    file = written(tmp_path, training("flow"), {"matmul_efficiency": 0.6}, draws=DRAWS)
    run = weftwork.run(file, out=tmp_path / "run", what_if="none")
    for value, end in ((0.7, "low"), (0.5, "high")):
        there = time_ps(tmp_path, training("flow"), {"matmul_efficiency": value})
        assert run.value(f"iteration_{end}_ps") == pytest.approx(there, rel=0.03)


def test_collectives_print_an_interval_for_each_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draws = [{"latency_scale": value} for value in (1.5, 2.0, 2.5)]
    file = written(tmp_path, collective("flow"), {"latency_scale": 2.0}, draws=draws)
    words = ["collective", "all-reduce", "--fabric", str(file), "--sizes", "64KiB,1GiB"]
    with pytest.raises(SystemExit) as left:
        main([*words, "--json"])
    assert left.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert "latency_scale 2" in told["about"]["calibrated"]
    for row in told["sizes"]:
        assert row["low_ps"] < row["time_ps"] < row["high_ps"]
    small, large = ((row["high_ps"] - row["low_ps"]) / row["time_ps"] for row in told["sizes"])
    assert small > 2 * large  # latencies are most of the small one
    with pytest.raises(SystemExit):
        main(words)
    assert "# 64KiB: " in capsys.readouterr().out


def test_a_collective_without_a_closed_form_has_no_interval(tmp_path: Path) -> None:
    text = collective("flow").replace("operation: all-reduce", "operation: broadcast")
    file = written(tmp_path, text, {"latency_scale": 2.0}, draws=[{"latency_scale": 2.0}])
    run = weftwork.run(file, out=tmp_path / "run", what_if="none")
    assert "collective_duration_low_ps" not in run.summary
    assert run.value("collective_duration_ps")


def test_a_calibration_that_changes_nothing_is_refused(tmp_path: Path) -> None:
    for text, values, words in (
        (collective("flow"), {"matmul_efficiency": 0.5}, "a collective uses none of the constants"),
        (collective("flow", "none"), {"latency_scale": 2.0}, "a collective with protocol none"),
    ):
        with pytest.raises(ConfigError, match=words) as wrong:
            prepare(read_scenario(written(tmp_path, text, values)))
        assert (wrong.value.mistakes[0].path, wrong.value.mistakes[0].line) == ("calibration", 5)


def test_traffic_has_no_constants_to_calibrate(tmp_path: Path) -> None:
    text = f"schema: 3\nfabric: {FABRIC}\ntraffic: {{pattern: permutation, size: 1MiB}}\n"
    with pytest.raises(ConfigError, match="the scenario has traffic"):
        read_scenario(written(tmp_path, text, {"latency_scale": 2.0}))


def test_rows_that_calibrated_are_said_to_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text(
        "operation,gpus,size_bytes,seconds,server\nall-reduce,8,67108864,0.0003,dgx-h100\n", encoding="utf-8"
    )
    other = tmp_path / "other.csv"
    other.write_text(rows.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    digest = sha256(rows.read_bytes()).hexdigest()
    text = calibration_text(values={"latency_scale": 2.0}, fitted_on={"file": "rows.csv", "rows": 1, "sha256": digest})
    (tmp_path / "my.toml").write_text(text, encoding="utf-8")
    times = []
    for file, role in ((rows, "calibration"), (other, "blind")):
        with pytest.raises(SystemExit) as left:
            main(["validate", "--data", str(file), "--calibration", str(tmp_path / "my.toml"), "--json"])
        assert left.value.code == 0
        (found,) = json.loads(capsys.readouterr().out)["sets"]
        assert found["role"] == role
        assert "my.toml" in found["calibrated_on"]
        times.append(found["rows"][0]["predicted_s"])
    with pytest.raises(SystemExit):
        main(["validate", "--data", str(rows), "--json"])
    (found,) = json.loads(capsys.readouterr().out)["sets"]
    assert times[0] > found["rows"][0]["predicted_s"]
    with pytest.raises(SystemExit) as left:
        main(["validate", "sc21", "--calibration", str(tmp_path / "my.toml")])
    assert left.value.code == 2
