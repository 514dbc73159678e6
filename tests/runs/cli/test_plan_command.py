"""``weftwork plan``: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.workers_here import use_workers_here

from weftwork.cli import main
from weftwork.cli.progress import CountLine
from weftwork.report.plan_words import _behind
from weftwork.study.prepare.prepare import read_scenario

FILE = """schema: 3
fabric: {topology: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 2, node: dgx-h100, link_rate: 400Gbps}
training: {model: llama-3-8b, global_batch: 32, sequence: 4096}
engine: {fidelity: flow}
"""


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["weftwork", *arguments])
    try:
        return main() or 0
    except SystemExit as end:
        return int(end.code or 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "job.yaml"
    made.write_text(FILE, encoding="utf-8")
    return made


def test_the_folder_of_a_plan_has_copies_of_the_users_own_files(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 1,
        "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 2048, "vocab_size": 1024,
        "max_position_embeddings": 2048,
    }  # fmt: skip
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(json.dumps(model), encoding="utf-8")
    keys = "model: mine/config.json, global_batch: 8, sequence: 2048, tensor: 8, micro_batch: 1"
    text = FILE.replace("model: llama-3-8b, global_batch: 32, sequence: 4096", keys)
    file.write_text(text, encoding="utf-8")
    assert run(monkeypatch, "plan", str(file), "-o", str(tmp_path / "plan"), "-j", "1") == 0
    shutil.rmtree(tmp_path / "mine")
    shutil.move(tmp_path / "plan", tmp_path / "elsewhere")
    for name in ("scenario.yaml", "best.yaml"):
        document = yaml.safe_load((tmp_path / "elsewhere" / name).read_text(encoding="utf-8"))
        assert document["training"]["model"] == "files/mine/config.json"
        read_scenario(tmp_path / "elsewhere" / name, {"sweep": "null"})


@pytest.mark.deep  # a search takes seconds of CPU time
def test_the_best_plan_runs_as_long_as_it_says(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "plan"
    assert run(monkeypatch, "plan", str(file), "-o", str(out), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"folder": str(out), **json.loads((out / "plan.json").read_text(encoding="utf-8"))}
    times = [one["iteration_ps"] for one in told["best"]]
    assert times == sorted(times)
    assert len(times) >= 10
    assert told["run"] == len(times) < told["counted"]
    assert all(one["loses_ps"] > 0 for one in told["best"][1:])
    front = [(one["closed_form_ps"], -one["memory_bytes"]) for one in told["front"]]
    assert front == sorted(set(front))

    assert run(monkeypatch, "run", str(out / "scenario.yaml"), "-o", str(tmp_path / "run"), "--what-if", "none") == 0
    numbers = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))["numbers"]
    assert numbers["iteration_ps"]["value"] == times[0]
    assert numbers["memory_bytes"]["value"] == told["best"][0]["memory_bytes"]

    page = (out / "page.html").read_text(encoding="utf-8")
    assert told["best"][0]["plan"] in page
    assert run(monkeypatch, "report", str(out), "-o", str(tmp_path / "again.html")) == 0
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page

    rates = ["--set", "fabric.link_rate=400Gbps,200Gbps"]
    assert run(monkeypatch, "sweep", str(out / "best.yaml"), *rates, "-o", str(tmp_path / "sweep"), "-j", "1") == 0
    rows = json.loads((tmp_path / "sweep" / "result.json").read_text(encoding="utf-8"))["rows"]
    found = {rate: [] for rate in ("400Gbps", "200Gbps")}
    for row in rows:
        found[row["values"]["fabric.link_rate"]].append(row["numbers"]["iteration_ps"]["value"])
    assert found["400Gbps"] == times[:5]
    assert len(found["200Gbps"]) == 5
    assert all(slow > fast for slow, fast in zip(found["200Gbps"], found["400Gbps"], strict=True))


def test_what_is_given_stays(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(FILE.replace("global_batch", "tensor: 4, global_batch"), encoding="utf-8")
    out = ["-o", str(tmp_path / "plan"), "--json"]
    assert run(monkeypatch, "plan", str(file), "--set", "training.zero=3", *out) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["fixed"] == ["tensor", "zero"]
    assert {(one["keys"]["tensor"], one["keys"]["zero"]) for one in told["best"]} == {(4, 3)}

    best = yaml.safe_load((tmp_path / "plan" / "best.yaml").read_text(encoding="utf-8"))
    assert set(best["fabric"]) == {"topology", "leaves", "spines", "hosts_per_leaf", "node", "link_rate"}
    assert (best["training"]["tensor"], best["training"]["zero"]) == (4, 3)
    listed = best["sweep"]["list"]
    assert len(listed) == 5
    assert [one["training.data"] for one in listed] == [one["keys"]["data"] for one in told["best"][:5]]
    assert not {"training.tensor", "training.zero"} & set(listed[0])
    assert {key.removeprefix("training.") for key in listed[0]} < set(best["training"])  # of the best plan


def test_the_sweep_of_the_best_keeps_lists_devices_and_policies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "former.yaml"
    file.write_text(
        """schema: 3
fabric: {topology: leaf-spine, hosts: 2, radix: 32, node: dgx-h100, switch: {model: tomahawk-5, buffer: 80MB}}
transport: {congestion_control: {name: dcqcn, g: 0.01}, load_balancing: ecmp}
training: {model: llama-3-8b, global_batch: 32, sequence: 4096, tensor: 2, pipeline: 1, overlap: {data: 0.5}}
stragglers: [{gpu: 3, factor: 1.2}]
faults: [{at: 0ps, nic: host1/nic2, event: slow, fraction: 0.4}]
""",
        encoding="utf-8",
    )
    out = tmp_path / "plan"
    use_workers_here(monkeypatch)
    assert run(monkeypatch, "plan", str(file), "-o", str(out), "--json") == 0
    times = [one["iteration_ps"] for one in json.loads(capsys.readouterr().out)["best"]]
    whole, best = (read_scenario(out / name, {"sweep": "null"}) for name in ("scenario.yaml", "best.yaml"))
    assert best == whole
    assert (best.stragglers, best.faults) != ((), ())
    ratios = ["--set", "fabric.oversubscription=1,2"]
    assert run(monkeypatch, "sweep", str(out / "best.yaml"), *ratios, "-o", str(tmp_path / "sweep"), "-j", "1") == 0
    rows = json.loads((tmp_path / "sweep" / "result.json").read_text(encoding="utf-8"))["rows"]
    found = [row["numbers"]["iteration_ps"]["value"] for row in rows if row["values"]["fabric.oversubscription"] == "1"]
    assert found == times[:5]


def test_without_a_file_the_options_make_the_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "plan"
    options = [
        "--model",
        "gpt-1.7b",
        "--node",
        "dgx-a100",
        "--gpus",
        "8",
        "--sequence",
        "2048",
        "--global-batch",
        "8",
    ]
    assert run(monkeypatch, "plan", *options, "-o", str(out)) == 0
    told = capsys.readouterr().out
    assert told.startswith("Best plan: ")
    assert "The next, " in told
    assert re.search(r"\n(TP\d+ )?(CP\d+ )?(PP\S+ )?DP\d+ .*mb\d", told)
    assert f"weftwork run {out / 'scenario.yaml'}" in told.replace("\n", "")
    assert "gpus: 8" in (out / "scenario.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "gpt-1.7b"], ["--node  is missing", "--gpus  is missing"]),
        (["--model", "gpt-1.7", "--node", "dgx-a100", "--gpus", "16"], ["--model  found 'gpt-1.7'"]),
        (["--model", "gpt-1.7b", "--node", "dgx-a10", "--gpus", "16"], ["--node  found 'dgx-a10'"]),
        (["--model", "gpt-1.7b", "--node", "dgx-a100", "--gpus", "0"], ["--gpus  found '0'"]),
        (["--model", "llama-3-405b", "--node", "dgx-a100", "--gpus", "8"], ["--gpus  no plan for 8 GPUs", "memory"]),
    ],
)
def test_what_cannot_be_planned_is_told_by_the_option(
    options: list[str],
    said: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "plan"
    assert run(monkeypatch, "plan", *options, "-o", str(out)) == 2
    errors = capsys.readouterr().err
    assert all(text in errors for text in said), errors
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_a_scenario_without_training_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "traffic.yaml"
    file.write_text("{schema: 3, fabric: {radix: 4, link_rate: 100Gbps}, traffic: {pattern: permutation}}", "utf-8")
    assert run(monkeypatch, "plan", str(file), "-o", str(tmp_path / "plan")) == 2
    assert "training  is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    "schedule", [pytest.param(one, marks=pytest.mark.deep) for one in ("zb-h1", "dualpipe", "gpipe")]
)
def test_a_given_schedule_stays_and_the_search_is_the_same_in_one_process(
    schedule: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ["--set", f"training.schedule={schedule}", "--set", "training.pipeline=2", "--json"]
    found = []
    for jobs in ("1", "2"):
        assert run(monkeypatch, "plan", str(file), *settings, "-j", jobs, "-o", str(tmp_path / jobs)) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert {one["keys"]["schedule"] for one in found[0]["best"]} == {schedule}
    assert found[0]["fixed"] == ["pipeline", "schedule"]
    assert found[0]["best"] == found[1]["best"]
    for one in found[0]["best"]:
        assert one["closed_form_ps"] < 1.03 * one["iteration_ps"]


def test_a_confirmation_is_printed_and_kept(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = """{"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
    "num_attention_heads": 8, "vocab_size": 4096, "max_position_embeddings": 512}"""
    (tmp_path / "tiny.json").write_text(model, encoding="utf-8")
    text = FILE.replace("llama-3-8b", "tiny.json, tensor: 2").replace("4096", "512")
    file.write_text(text, encoding="utf-8")
    out = tmp_path / "plan"
    assert run(monkeypatch, "plan", str(file), "-o", str(out), "--confirm") == 0
    told = capsys.readouterr().out
    kept = json.loads((out / "plan.json").read_text(encoding="utf-8"))
    confirmed = kept["confirmation"]
    assert (confirmed["how"], confirmed["gpus"]) == ("whole", 16)
    assert confirmed["flow_ps"] == kept["best"][0]["iteration_ps"]
    assert "Packet by packet (all 16 GPUs): an iteration takes" in told
    assert f"Left out: {confirmed['left_out']}." in told
    assert re.search(r"\ntensor +(all-gather|reduce-scatter|all-reduce), .* 2 ranks ", told)

    again = tmp_path / "again"
    assert run(monkeypatch, "plan", str(file), "-o", str(again), "--json") == 0
    assert "confirmation" not in json.loads(capsys.readouterr().out)


ARGUMENTS = (
    "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --vocab-size 50304 --max-position-embeddings 2048"
    " --seq-length 2048 --micro-batch-size 1 --global-batch-size 64 --bf16 --lr 1e-4"
)


@pytest.mark.deep  # a search takes seconds of CPU time
def test_arguments_of_megatron_are_a_plan_to_beat(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan of the arguments runs too, and the winner comes as arguments that say the same plan."""
    out = tmp_path / "plan"
    options = ["--gpus", "16", "-o", str(out)]
    words = f"{ARGUMENTS} --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --sequence-parallel"
    assert run(monkeypatch, "plan", "--megatron", words, *options) == 0
    told = capsys.readouterr().out
    kept = json.loads((out / "plan.json").read_text(encoding="utf-8"))
    own = kept["best"][kept["own"]["plan"]]
    assert {key: own["keys"][key] for key in ("tensor", "pipeline", "data", "zero")} == {
        "tensor": 2, "pipeline": 4, "data": 2, "zero": 0,
    }  # fmt: skip
    assert f"Yours, {own['plan']}, takes " in told
    assert "--lr" in told
    assert kept["imported"]["ignored"]["--lr"]

    written = (out / "megatron.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    assert run(monkeypatch, "plan", "--megatron", written, *options[:2], "-o", str(tmp_path / "again"), "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert again["own"] == {"plan": 0}
    assert again["best"][0]["iteration_ps"] == kept["best"][kept["megatron"]["plan"]]["iteration_ps"]

    assert run(monkeypatch, "run", str(out / "scenario.yaml"), "-o", str(tmp_path / "run"), "--what-if", "none") == 0
    numbers = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))["numbers"]
    assert numbers["iteration_ps"]["value"] == kept["best"][0]["iteration_ps"]


@pytest.mark.deep  # a search takes seconds of CPU time
def test_a_plan_of_arguments_that_cannot_be_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "--micro-batch-size 16 --seq-length 8192 --global-batch-size 256"
    options = ["--model", "llama-3-8b", "--gpus", "16", "-o", str(tmp_path / "plan")]
    assert run(monkeypatch, "plan", "--megatron", words, *options) == 0
    assert "Your plan is infeasible: training.memory: a GPU would need" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--megatron", "--bf16", "--gpus", "16"], "--model  is missing without FILE and an argument of --megatron"),
        (["--megatron", ARGUMENTS], "--gpus  is missing"),
        (["--megatron", ARGUMENTS, "--gpus", "16", "--global-batch", "8"], "--global-batch  repeats --global"),
        (["--megatron", "--num-layers 24 --hidden-size many", "--gpus", "16"], "--hidden-size"),
        (["FILE", "--model", "gpt-1.7b"], "--model  is for a search without FILE"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused(
    options: list[str], said: str, file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [str(file) if one == "FILE" else one for one in options]
    assert run(monkeypatch, "plan", *given) == 2
    assert said in capsys.readouterr().err


TIGHT = "--set training.tensor=1 --set training.context=1 --set training.pipeline=1"


def tight(tmp_path: Path, memory: str) -> list[str]:
    """A search among ZeRO stages and recomputation, in little memory."""
    file = tmp_path / "tight.yaml"
    file.write_text(
        "{schema: 3, fabric: {topology: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 2, node: dgx-a100},"
        f" training: {{model: gpt-1.7b, global_batch: 16, sequence: 2048, memory: {memory}}}}}",
        encoding="utf-8",
    )
    return [str(file), *TIGHT.split(), "-o", str(tmp_path / "plan")]


def test_zero_3_is_what_its_scenario_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve GB hold ZeRO 3 without recomputation, or ZeRO 2 with all of it: the first is faster, and prefetches."""
    assert run(monkeypatch, "plan", *tight(tmp_path, "12GB"), "--json") == 0
    best = json.loads(capsys.readouterr().out)["best"][0]
    assert (best["keys"]["zero"], best["keys"]["recompute"]) == (3, "none")
    scenario = str(tmp_path / "plan" / "scenario.yaml")
    assert run(monkeypatch, "run", scenario, "-o", str(tmp_path / "run"), "--what-if", "none") == 0
    numbers = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))["numbers"]
    assert numbers["iteration_ps"]["value"] == best["iteration_ps"]
    assert numbers["memory_bytes"]["value"] == best["memory_bytes"]


def test_zero_2_is_tried_where_it_spares_recomputation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, "plan", *tight(tmp_path, "16GB"), "--json") == 0
    best = json.loads(capsys.readouterr().out)["best"][0]
    assert (best["keys"]["zero"], best["keys"]["recompute"]) == (2, "none")


def test_an_end_of_the_run_and_keys_without_a_value_do_not_matter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan is measured by whole iterations, and `null` is as if the key were not there."""
    given = tight(tmp_path, "16GB")
    assert run(monkeypatch, "plan", *given, "--json") == 0
    plain = json.loads(capsys.readouterr().out)
    more = ["--set", "engine.until=1ms", "--set", "training.zero=null"]
    assert run(monkeypatch, "plan", *given[:-1], str(tmp_path / "other"), *more, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fixed"] == plain["fixed"]
    assert [one["iteration_ps"] for one in found["best"]] == [one["iteration_ps"] for one in plain["best"]]


def test_a_damaged_document_is_refused(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "plan"
    assert run(monkeypatch, "plan", str(file), "--set", "training.tensor=8", "-o", str(out)) == 0
    document = json.loads((out / "plan.json").read_text(encoding="utf-8"))
    del document["best"][0]["mfu"]
    (out / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    capsys.readouterr()
    assert run(monkeypatch, "report", str(out)) == 2
    assert "lacks best[0].mfu; run weftwork plan again" in capsys.readouterr().err


OF_FILE = FILE.replace("sequence: 4096", "sequence: 4096, pipeline: 2, micro_batch: 2")


def best_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    return found


def test_null_opens_a_key_of_the_file_and_its_own_plan_is_compared(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(OF_FILE, encoding="utf-8")
    closed = ("plan", str(file), "-o", str(tmp_path / "closed"), "-j", "1")
    assert run(monkeypatch, *closed) == 0
    assert {one["keys"]["pipeline"] for one in best_of(tmp_path / "closed")["best"]} == {2}
    capsys.readouterr()
    opened = ("plan", str(file), "--set", "training.pipeline=null", "-o", str(tmp_path / "open"), "-j", "1")
    assert run(monkeypatch, *opened) == 0
    found = best_of(tmp_path / "open")
    assert {1, 2} <= {one["keys"]["pipeline"] for one in found["best"]}
    own = found["best"][found["own"]["plan"]]
    assert (own["keys"]["pipeline"], own["keys"]["micro_batch"]) == (2, 2)
    assert found["best"][0]["iteration_ps"] <= own["iteration_ps"]
    assert "Yours, with micro_batch as set, PP 2, DP 8," in capsys.readouterr().out


def test_no_plan_of_a_search_is_slower_than_that_of_its_file(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GPipe is left out of a search, where a file does not ask for it."""
    text = FILE.replace("sequence: 4096", "sequence: 128, schedule: gpipe, pipeline: 2, micro_batch: 1")
    file.write_text(text, encoding="utf-8")
    assert run(monkeypatch, "plan", str(file), "-o", str(tmp_path / "plan"), "-j", "1") == 0
    found = best_of(tmp_path / "plan")
    assert found["own"]["plan"] is not None
    times = [one["iteration_ps"] for one in found["best"]]
    assert times[0] == min(times)


def test_plans_of_equal_time_are_called_so() -> None:
    best = {"iteration_ps": 100, "plan": "a"}
    assert _behind({"iteration_ps": 100, "loses_by": "computing", "loses_ps": 0}, best) == "takes the same time"


def test_a_trainer_is_named_and_its_plans_alone_are_there(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_workers_here(monkeypatch)
    folder = tmp_path / "plan"
    assert run(monkeypatch, "plan", str(file), "-o", str(folder), "-j", "1", "--for", "torchtitan") == 0
    said = capsys.readouterr().out
    assert re.search(r"[0-9,]+ plans that torchtitan \(.*\) can run counted", said)
    assert "The plans are for torchtitan" in said
    assert not (folder / "megatron.txt").exists()
    document = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    assert document["trainer"]["name"] == "torchtitan"
    assert {one["keys"]["zero"] for one in document["best"]} <= {0, 2, 3}


def test_a_search_within_a_moment_says_what_it_left(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_workers_here(monkeypatch)
    monkeypatch.setattr("weftwork.study.plan.space.LEAST_WAYS", 8)  # so that a small search has several parts
    assert run(monkeypatch, "plan", str(file), "-o", str(tmp_path / "plan"), "-j", "1", "--within", "1ns") == 0
    said, warned = capsys.readouterr()
    assert "Time was over: of " in said
    assert " 1 run on the flow engine" in said
    assert "The search took " in said
    assert "The search will take longer than --within: 0 s of it are left, and one plan always runs" in warned
    document = json.loads((tmp_path / "plan" / "plan.json").read_text(encoding="utf-8"))
    assert document["within_s"] == pytest.approx(1e-9)
    assert document["took_s"] == pytest.approx(document["closed_form_s"] + document["flow_s"], abs=0.002)
    assert document["run"] == 1  # no other placement runs after the limit
    assert len(document["waiting"]) == 9
    assert all(one["short"] in said for one in document["waiting"])
    assert all(one["closed_form_ps"] >= document["best"][0]["closed_form_ps"] for one in document["waiting"])
    assert run(monkeypatch, "plan", str(file), "-o", str(tmp_path / "other"), "--within", "60sec") == 2
    assert "did you mean '60s'?" in capsys.readouterr().err


@pytest.mark.parametrize("when", ["looking", "running"])
def test_a_stopped_search_prints_what_it_knows(
    when: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def hear(_self: CountLine, what: str, done: int, of: int) -> None:
        if what == when and done and (done == of or what == "running"):
            raise KeyboardInterrupt

    monkeypatch.setattr(CountLine, "__call__", hear)
    monkeypatch.setattr("weftwork.study.plan.space.LEAST_WAYS", 8)  # so that a small search has several parts
    assert run(monkeypatch, "plan", str(file), "-o", str(tmp_path / "plan"), "-j", "1") == 130
    title, *lines = capsys.readouterr().out.splitlines()
    wanted = "by closed forms; none has run:" if when == "looking" else "those that ran on the flow engine:"
    assert title.startswith("Stopped. The fastest plans")
    assert title.endswith(wanted)
    assert all(re.match(r" *[0-9.]+ m?s  .*DP", line) for line in lines)
    assert len(lines) == (10 if when == "looking" else 1)
    assert not (tmp_path / "plan").exists()


def test_the_list_of_plans_says_which_overlap_it_assumed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No all-to-all of experts is hidden by default, and the reader learns which key changes that."""
    keys = "model: mixtral-8x7b, tensor: 2, context: 1, expert: 8, expert_tensor: 1, pipeline: 1, zero: 3"
    file.write_text(FILE.replace("model: llama-3-8b", keys), encoding="utf-8")
    given = ["plan", str(file), "--set", "training.micro_batch=1", "-j", "1"]
    assert run(monkeypatch, *given, "-o", str(tmp_path / "plain")) == 0
    told = capsys.readouterr().out
    assert "at most (training.overlap): expert traffic 0 %, tensor traffic 0 %, data traffic 90 %." in told
    assert "--set training.overlap.expert=0.9 stands for a job with it." in told
    hidden = ["--set", "training.overlap.expert=0.9", "--set", "training.overlap.tensor=0.5", "--json"]
    assert run(monkeypatch, *given, *hidden, "-o", str(tmp_path / "hidden")) == 0
    overlap = json.loads(capsys.readouterr().out)["overlap"]
    assert [(one["key"], one["share"]) for one in overlap] == [
        ("training.overlap.expert", 0.9),
        ("training.overlap.tensor", 0.5),
        ("training.overlap.data", 0.9),
    ]
    assert (
        best_of(tmp_path / "hidden")["best"][0]["iteration_ps"] < best_of(tmp_path / "plain")["best"][0]["iteration_ps"]
    )
