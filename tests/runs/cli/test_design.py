"""`weftwork design`: what it prints and writes, that it goes on where it was, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.command import Command, command_of
from helpers.designs import JOB, ONLY
from helpers.own_topology import DESIGN, DESIGN_FIELD, write_circle
from helpers.sweeps import with_pattern
from helpers.workers_here import use_workers_here

import weftwork
from weftwork.cli import main

SMALL = ("design", "job.yaml", "--gpus", "64", *ONLY, "-j", "1")
TRAINING = """schema: 3
fabric: {node: dgx-h100, gpus: 64}
training: {model: llama-3-8b, tensor: 8, sequence: 4096, global_batch: 64}
"""
CLOSED = ("design", "training.yaml", *ONLY, "-j", "1", "--closed-forms")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a job and its design in ``out``, which each test copies."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "job.yaml").write_text(JOB, encoding="utf-8")
    (folder / "training.yaml").write_text(TRAINING, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        use_workers_here(patched)
        patched.chdir(folder)
        with pytest.raises(SystemExit) as left:
            main([*SMALL, "-o", "out", "--json"])
    assert left.value.code in {0, None}
    return folder


@pytest.fixture
def command(made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run a command in a copy of that folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    use_workers_here(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return command_of(capsys)


def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return found


def test_a_design_names_the_front_its_knee_and_why_others_lose(command: Command, tmp_path: Path) -> None:
    found = command(*SMALL, "-o", "out")
    assert found.code == 0, found.err
    told = document(tmp_path / "out")
    assert found.out.startswith(f"Take {told['take']}: rail-only, spectrum-4,")
    for said in (
        "the collective takes",
        "4 candidates: 0 pruned",
        "Not on the front",
        "money +",
        "page: out/page.html",
    ):
        assert said in found.out
    assert told["by"] == "flow engine"
    assert told["end"] == "done"
    assert {one["name"] for one in told["candidates"] if one["is_front"]} == set(told["front"])
    for one in told["candidates"]:
        assert one["is_front"] == ("loses_to" not in one)
        assert (tmp_path / "out" / one["run"] / "summary.json").is_file()
    for name in ("page.html", "design.json", "command.txt"):
        assert (tmp_path / "out" / name).is_file()


def test_a_second_call_runs_nothing_anew_and_json_says_what_the_file_has(command: Command, tmp_path: Path) -> None:
    first = document(tmp_path / "out")
    assert first["kept"] == 0
    again = command(*SMALL, "-o", "out", "--json")
    assert again.code == 0
    assert again.err == ""
    told = json.loads(again.out)
    placed = sum(len(one["placed"]) for one in told["candidates"])
    assert told["kept"] == len(told["candidates"]) + placed == 4 + placed
    assert placed >= 8
    assert {**told, "kept": 0} == {"folder": "out", "resume": told["resume"], **first}
    assert document(tmp_path / "out")["kept"] == told["kept"]
    assert told["resume"].startswith("weftwork design job.yaml --gpus 64 --only topology=rail-only,rail-optimized")
    assert told["resume"].endswith("-o out")


def test_a_candidate_runs_as_its_scenario_for_as_long(command: Command, tmp_path: Path) -> None:
    best = next(one for one in document(tmp_path / "out")["candidates"] if one["is_knee"])
    found = command("run", f"out/fabrics/{best['name']}.yaml", "-o", "alone", "--what-if", "none")
    assert found.code == 0, found.err
    numbers = json.loads((tmp_path / "alone/summary.json").read_text(encoding="utf-8"))["numbers"]
    assert numbers["collective_duration_ps"]["value"] == best["time_ps"]
    assert command("cost", f"out/fabrics/{best['name']}.yaml", "--json").code == 0


def test_report_makes_the_page_again(command: Command, tmp_path: Path) -> None:
    page = (tmp_path / "out/page.html").read_bytes()
    (tmp_path / "out/page.html").unlink()
    assert command("report", "out").out.startswith("page: out/page.html (")
    assert (tmp_path / "out/page.html").read_bytes() == page
    told = json.loads(command("report", "out", "-o", "other.html", "--json").out)
    assert told == {"page": "other.html", "size_bytes": len(page), "design": "out"}
    assert "is a design, which is not compared" in command("report", "out", "out").err
    (tmp_path / "out/result.json").write_text("{}", encoding="utf-8")
    wrong = command("report", "out")
    assert wrong.code == 2
    assert "write it again with: weftwork design job.yaml" in wrong.err


def test_a_budget_prunes_and_another_budget_runs_nothing_anew(command: Command, tmp_path: Path) -> None:
    prices = sorted(one["price_usd"]["typical"] for one in document(tmp_path / "out")["candidates"])
    found = command(*SMALL, "-o", "out", "--budget", f"{(prices[1] + prices[2]) / 2000}k", "--json")
    assert found.code == 0, found.err
    told = json.loads(found.out)
    assert sorted(one["price_usd"]["typical"] for one in told["candidates"]) == prices[:2]
    assert [(one["reason"], one["count"]) for one in told["pruned"]] == [("it costs more than the budget", 2)]
    assert told["kept"] == 2 + sum(len(one["placed"]) for one in told["candidates"])
    assert "--budget" in told["resume"]
    page = (tmp_path / "out/page.html").read_text(encoding="utf-8")
    assert "budget: $" in page
    watts = sorted(one["power_w"]["typical"] for one in told["candidates"])
    found = command(*SMALL, "-o", "out", "--power", f"{watts[0]}W", "--json")
    assert [one["power_w"]["typical"] for one in json.loads(found.out)["candidates"]] == watts[:1]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--budget", "1k"), "no candidate is left; 4 candidates were pruned: 4 because it costs more than the budget"),
        (("--budget", "much"), "--budget  found 'much', wanted an amount above 0 such as 80M"),
        (("--power", "0"), "--power  found '0', wanted an amount above 0 such as 2MW"),
        (("--only", "topolgy=fat-tree"), "found 'topolgy', wanted one of topology, switch"),
        (("--only", "topolgy=fat-tree"), "did you mean 'topology'?"),
        (("--only", "switch=spectrum4"), "did you mean 'spectrum-4'?"),
        (("--only", "planes"), "found 'planes', wanted KEY=VALUE,VALUE such as topology=rail-only,fat-tree"),
        (("--gpus", "63"), "--gpus  found 63, wanted a multiple of 8"),
        (("--closed-forms",), "closed forms exist only for training; leave --closed-forms out"),
        (("--prices", "cheap"), "found 'cheap', which is no file, wanted street-2025"),
        (("--set", "fabric.node=dgx-h10"), "did you mean 'dgx-h100'?"),
        (("--set", "transport.load_balancing=spry"), "did you mean 'spray'?"),
        (("--set", "collective.size=1XB"), "--set collective.size  found '1XB'"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_no_folder(
    command: Command, tmp_path: Path, more: tuple[str, ...], said: str
) -> None:
    found = command(*SMALL, *more, "-o", "new")
    assert found.code == 2
    assert said in found.err
    assert "Traceback" not in found.err
    assert not (tmp_path / "new").exists()


def test_a_number_of_gpus_is_needed(command: Command, tmp_path: Path) -> None:
    found = command("design", "job.yaml", *ONLY, "-o", "new")
    assert found.code == 2
    assert "--gpus  is missing, and the file has no fabric.gpus; give it, such as --gpus 16384" in found.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema: 3\nfabric: {node: dgx-h100\ncollective: [}\n", "line 3  file  not YAML"),
        ("schema: 3\nfabric: {node: dgx-h100}\ncolective: {operation: all-reduce, size: 1MB}\n", "line 3  colective"),
        ("schema: 3\nfabric: &a {node: dgx-h100}\ncollective: *a\n", "line 2  file  found the anchor '&a'"),
        ("", "found no mapping, wanted a scenario"),
        ("- 3", "found no mapping, wanted a scenario"),
        (JOB.replace("h100}", "h100, link_delay: 3kg}"), "fabric.link_delay  found '3kg'"),
        (f"{JOB}sweep: {{grid: {{engine.seed: [1, 2]}}}}\n", "line 5  sweep  varies keys over many runs"),
    ],
)
def test_a_mistake_of_the_file_has_its_line(command: Command, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "job.yaml").write_text(text, encoding="utf-8")
    found = command(*SMALL, "-o", "new")
    assert found.code == 2
    assert said in found.err
    assert "Traceback" not in found.err
    assert not (tmp_path / "new").exists()
    (tmp_path / "job.yaml").unlink()
    assert "job.yaml: 1 mistake, nothing was run\n  file  there is no such file" in command(*SMALL, "-o", "new").err


def test_another_question_in_the_same_folder_is_refused(command: Command, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    for more in (("--set", "collective.size=2MB"), ("--gpus", "128"), ("--only", "topology=fat-tree")):
        found = command(*SMALL, *more, "-o", "out")
        assert found.code == 2
        assert "holds another design" in found.err
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine", encoding="utf-8")
    assert "has other contents than a design" in command(*SMALL, "-o", "mine").err


def test_closed_forms_alone_run_nothing_and_say_so_everywhere(command: Command, tmp_path: Path) -> None:
    found = command(*CLOSED, "-o", "closed")
    assert found.code == 0, found.err
    assert "no fabric on this front was run" in found.out
    told = document(tmp_path / "closed")
    assert told["by"] == "closed forms"
    assert all(one["run"] == "" and one["time_ps"] == one["closed_form_ps"]["most"] for one in told["candidates"])
    assert list((tmp_path / "closed/runs").iterdir()) == []
    page = (tmp_path / "closed/page.html").read_text(encoding="utf-8")
    assert page.count("Closed forms alone: nothing was run.") == 2
    assert "--closed-forms" in told_resume(tmp_path / "closed")
    assert command(*CLOSED[:-1], "-o", "closed").code == 0  # the same question, now answered by runs
    told = document(tmp_path / "closed")
    assert (told["by"], told["kept"]) == ("flow engine", 0)
    assert "Closed forms alone" not in (tmp_path / "closed/page.html").read_text(encoding="utf-8")


def told_resume(folder: Path) -> str:
    return (folder / "command.txt").read_text(encoding="utf-8")


def test_what_set_sets_is_in_the_scenarios_of_candidates(command: Command, tmp_path: Path) -> None:
    more = ("--set", "training.micro_batch=2", "--set", "fabric.link_delay=1us", "--set", "name=mine")
    assert command(*CLOSED, *more, "-o", "closed").code == 0
    for file in (tmp_path / "closed/fabrics").iterdir():
        read = weftwork.read_scenario(file)
        assert read.training is not None
        assert (read.name, read.training.micro_batch, read.fabric.link_delay_ps) == ("mine", 2, 1_000_000)
        assert read.engine.fidelity == "flow"


def test_keys_of_the_fabric_that_are_chosen_again_are_told(command: Command, tmp_path: Path) -> None:
    text = TRAINING.replace("gpus: 64", "gpus: 64, topology: fat-tree, switch: tomahawk-4")
    (tmp_path / "training.yaml").write_text(text, encoding="utf-8")
    found = command(*CLOSED, "-o", "closed")
    assert "fabric.switch, fabric.topology" in found.out
    assert document(tmp_path / "closed")["chosen_anew"] == ["switch", "topology"]


@pytest.mark.deep  # a search takes seconds of CPU time
def test_a_training_job_without_a_plan_gets_one(command: Command, tmp_path: Path) -> None:
    fixed = ["--set", "training.global_batch=64"]
    (tmp_path / "training.yaml").write_text(
        TRAINING.replace("tensor: 8, ", "").replace("64}", "16}", 1), encoding="utf-8"
    )
    found = command(*CLOSED, *fixed, "-o", "closed")
    assert found.code == 0, found.err
    assert "The plan is the best one of a search on a non-blocking fabric" in found.out
    told = document(tmp_path / "closed")
    assert told["plan"]["data"] >= 1
    read = weftwork.read_scenario(tmp_path / "closed/fabrics" / f"{told['knee']}.yaml")
    assert read.training is not None
    assert read.training.data == told["plan"]["data"]
    again = command(*CLOSED, *fixed, "-o", "closed", "--json")
    assert json.loads(again.out)["plan"] == told["plan"]


def test_no_user_code_refuses_files(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("open('mark', 'w').close()\n", encoding="utf-8")
    text = JOB.replace("size: 1MB", "size: 1MB, algorithm: ./mine.py")
    (tmp_path / "job.yaml").write_text(text, encoding="utf-8")
    found = command(*SMALL, "--no-user-code", "-o", "new")
    assert found.code == 2
    assert "which --no-user-code refuses" in found.err
    assert not (tmp_path / "mark").exists()
    assert not (tmp_path / "new").exists()


TINY = """{"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
"num_attention_heads": 8, "vocab_size": 4096, "max_position_embeddings": 512}"""


def test_a_confirmation_is_printed_and_kept(command: Command, tmp_path: Path) -> None:
    """The model is a file beside the scenario, which a candidate's scenario in another folder names too."""
    (tmp_path / "tiny.json").write_text(TINY, encoding="utf-8")
    text = "schema: 3\ntraining: {model: tiny.json, tensor: 8, pipeline: 1, sequence: 512, global_batch: 16}\n"
    (tmp_path / "job.yaml").write_text(text, encoding="utf-8")
    one = ("--only", "topology=rail-only", "--only", "link_rate=400Gbps")
    line = ("design", "job.yaml", "--gpus", "16", *ONLY[2:4], *ONLY[6:], *one, "-j", "1", "-o", "confirmed")
    found = command(*line, "--confirm", "knee")
    assert found.code == 0, found.err
    confirmed = document(tmp_path / "confirmed")["confirmation"]
    assert (confirmed["candidate"], confirmed["how"], confirmed["gpus"]) == ("f000", "whole", 16)
    assert "Packet by packet (all 16 GPUs): an iteration takes" in found.out
    assert "f000 packet by packet" in (tmp_path / "confirmed/page.html").read_text(encoding="utf-8")
    wrong = command(*line, "--confirm", "f00")
    assert wrong.code == 2
    assert "found 'f00', wanted take, knee or a candidate that was not pruned: f000; did you mean 'f000'?" in wrong.err


def test_a_job_that_does_not_train_is_not_confirmed_and_says_what_to_run(command: Command) -> None:
    found = command(*SMALL, "-o", "out", "--confirm", "knee")
    assert found.code == 2
    assert "--confirm  confirms only training jobs; run other jobs with: weftwork run out/fabrics/" in found.err


@pytest.mark.deep
@pytest.mark.usefixtures("python_hears_sigint")
def test_a_design_that_is_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    file = with_pattern(tmp_path)
    text = file.read_text(encoding="utf-8")
    fabric = next(one for one in text.splitlines() if one.startswith("fabric: "))
    text = text.replace(fabric, "fabric: {node: dgx-h100}").replace("./acts.py}", "./acts.py, presses: 1}")
    file.write_text(text, encoding="utf-8")
    program = "import sys; from weftwork.cli import main; sys.exit(main())"
    where = os.environ | {"PYTHONPATH": str(Path(weftwork.__file__).parents[1])}
    line = ["design", file.name, "--gpus", "64", *ONLY, "-j", "1", "-o", "out"]

    def call() -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-c", program, *line]
        return subprocess.run(words, cwd=tmp_path, env=where, capture_output=True, text=True, check=False)

    found = call()
    assert found.returncode == 128 + signal.SIGINT, found.stderr
    assert (
        "the design was interrupted: finished runs are kept; continue with: weftwork design acts.yaml" in found.stderr
    )
    told = document(tmp_path / "out")
    assert told["end"] == "interrupted"
    assert "This design has not ended" in (tmp_path / "out/page.html").read_text(encoding="utf-8")
    again = call()
    assert again.returncode == 0, again.stderr
    assert document(tmp_path / "out")["end"] == "done"


def test_named_topologies_stand_side_by_side(command: Command, tmp_path: Path) -> None:
    found = command(*SMALL, "-o", "out")
    told = document(tmp_path / "out")
    assert [one["topology"] for one in told["kinds"]] == ["rail-only", "rail-optimized"]
    for one in told["kinds"]:
        best = next(each for each in told["candidates"] if each["name"] == one["name"])
        assert best["fabric"]["topology"] == one["topology"]
        assert one["dead_leaf"]["cut_off"] == 8  # one port of each server is on the leaf
        assert re.search(rf"{one['topology']} .*the job stops:", found.out)
    page = (tmp_path / "out/page.html").read_text(encoding="utf-8")
    assert "The named topologies side by side" in page


def test_the_criterion_and_the_price_of_a_gpu_hour_are_the_users(command: Command, tmp_path: Path) -> None:
    usual = command(*SMALL, "-o", "out")
    assert "The cluster does " in usual.out
    assert "A GPU-hour costs $1.28 ($1.14 to $1.43) with server and electricity" in usual.out
    dear = json.loads(command(*SMALL, "-o", "out", "--gpu-hour", "30", "--json").out)
    assert dear["cluster"]["gpu_hour_usd"]["typical"] == 30
    assert dear["cluster"]["is_given"]
    assert "--gpu-hour 30" in dear["resume"]
    usual_usd = document(tmp_path / "out")["candidates"]
    assert all(one["cluster_usd"]["typical"] > 30 * 64 * 35_000 for one in usual_usd)
    cheap = json.loads(command(*SMALL, "-o", "out", "--criterion", "money", "--json").out)
    least = min(cheap["candidates"], key=lambda one: one["price_usd"]["typical"])
    assert cheap["take"] == least["name"]
    assert cheap["kept"] > len(cheap["candidates"])  # nothing runs again
    wrong = command(*SMALL, "-o", "out", "--criterion", "mony")
    assert wrong.code == 2
    assert "did you mean 'money'?" in wrong.err


def test_candidates_run_as_a_scheduler_places_ranks_unless_the_file_says_where(
    command: Command, tmp_path: Path
) -> None:
    told = document(tmp_path / "out")
    assert told["placed_key"] == "collective.placement"
    for one in told["candidates"]:
        names = {each["placement"] for each in one["placed"]}
        assert names == {"random-servers", "random-fragments"}
        for each in one["placed"]:
            numbers = json.loads((tmp_path / "out" / each["run"] / "summary.json").read_text(encoding="utf-8"))
            assert numbers["numbers"]["collective_duration_ps"]["value"] == each["counting_time_ps"]
    text = (tmp_path / "job.yaml").read_text(encoding="utf-8").replace("size: 1MB", "size: 1MB, placement: rails")
    (tmp_path / "rails.yaml").write_text(text, encoding="utf-8")
    found = command(SMALL[0], "rails.yaml", *SMALL[2:], "-o", "rails")
    assert "Not varied: the plan and its overlap, which all candidates share; placement, which stays as" in found.out
    assert all(not one["placed"] for one in document(tmp_path / "rails")["candidates"])


def test_a_topology_of_a_users_own_is_designed_with_by_its_file(command: Command, tmp_path: Path) -> None:
    write_circle(tmp_path, functions=DESIGN, fields=DESIGN_FIELD)
    only = [word.replace("rail-only,rail-optimized", "rail-only,./circle.py") for word in ONLY]
    found = command("design", "job.yaml", "--gpus", "64", *only, "-j", "1", "-o", "circle")
    assert found.code == 0, found.err
    kinds = {kind["topology"]: kind["name"] for kind in document(tmp_path / "circle")["kinds"]}
    assert set(kinds) == {"rail-only", "circle.py"}
    assert kinds["circle.py"] is not None
    assert "circle.py" in found.out
    text = (tmp_path / "circle" / "fabrics" / f"{kinds['circle.py']}.yaml").read_text(encoding="utf-8")
    assert str(tmp_path / "circle.py") in text


def test_the_scenarios_own_topology_that_cannot_be_searched_is_told(command: Command, tmp_path: Path) -> None:
    write_circle(tmp_path)
    (tmp_path / "circle.yaml").write_text(TRAINING.replace("{node:", "{topology: ./circle.py, node:"), encoding="utf-8")
    found = command("design", "circle.yaml", "--gpus", "64", *ONLY[2:], "-j", "1", "-o", "circle", "--closed-forms")
    assert found.code == 0, found.err
    assert "The topology of the file takes no part: 'circle.py' does not say what a design may vary" in found.out
