"""`weftwork import`: from a script to a scenario that runs, or to all mistakes at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Answer, Command, command_of

import weftwork
from weftwork.study.prepare.prepare import prepare

GOLDEN = Path(__file__).parents[2] / "golden/megatron"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Import a file in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return command_of(capsys, "import")


def told(answer: Answer) -> str:
    """What was printed, without blanks at the ends of lines and the place of the file."""
    text = (answer.out + answer.err).replace(f"{GOLDEN}/", "")
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


@pytest.mark.parametrize("file", ["gpt3_175b.sh", "llama3_70b.sh", "mixtral_8x7b.sh", "nemo.yaml"])
def test_a_file_becomes_a_scenario_and_says_what_was_read(
    file: str, command: Command, check_golden: Callable[[str, str], None]
) -> None:
    answer = command(str(GOLDEN / file))
    name = Path(file).stem
    made = [Path(f"{name}.yaml"), *sorted(Path().glob("*.json"))]
    texts = "".join(f"\n{path}:\n{path.read_text(encoding='utf-8')}" for path in made)
    check_golden(f"megatron/{name}.txt", told(answer) + texts)
    assert answer.code == 0
    prepared = prepare(weftwork.read_scenario(f"{name}.yaml"))
    (job,) = prepared.jobs
    assert job.plan.ranks == job.section.gpus == prepared.scenario.fabric.gpus


def test_all_mistakes_are_told_and_nothing_is_written(
    command: Command, check_golden: Callable[[str, str], None]
) -> None:
    answer = command(str(GOLDEN / "mistakes.sh"))
    check_golden("megatron/mistakes.txt", told(answer))
    assert (answer.code, list(Path().iterdir())) == (2, [])


def test_a_plan_that_cannot_be_is_told_by_its_arguments(command: Command) -> None:
    text = (GOLDEN / "llama3_70b.sh").read_text(encoding="utf-8")
    Path("job.sh").write_text(text.replace("PP=${PP:-4}", "PP=${PP:-5}").replace("VPP=5", "VPP=4"), encoding="utf-8")
    answer = command("job.sh")
    assert answer.code == 2
    assert "tensor 8 x context 1 x pipeline 5 = 40, wanted a divisor of the 512 GPUs" in answer.err
    assert re.search(r"line \d+ +--pipeline-model-parallel-size \(training.pipeline\)", answer.err)
    assert list(Path().iterdir()) == [Path("job.sh")]


def test_options_say_what_the_file_does_not(command: Command) -> None:
    answer = command(
        str(GOLDEN / "llama3_70b.sh"), "--gpus", "1024", "--node", "dgx-b200", "--variable", "TP=4", "-o", "x.yaml"
    )
    assert answer.code == 0
    scenario = weftwork.read_scenario("x.yaml")
    assert (scenario.fabric.gpus, scenario.fabric.node.model) == (1024, "dgx-b200")
    assert scenario.training is not None
    assert scenario.training.tensor == 4
    assert command(str(GOLDEN / "llama3_70b.sh"), "--world-size", "256", "-o", "y.yaml").code == 0
    assert weftwork.read_scenario("y.yaml").fabric.gpus == 256


def test_one_object_has_what_the_tables_say(command: Command) -> None:
    document = json.loads(command(str(GOLDEN / "nemo.yaml"), "--json", "-o", "a.yaml").out)
    assert document["files"] == ["a.yaml", "nemo.json"]
    assert document["keys"]["training.tensor"] == 4
    assert document["keys"]["training.model"] == "./nemo.json"
    assert document["gpus"] == 32
    assert document["read"]["--tensor-model-parallel-size"] == "training.tensor: 4"
    assert document["command"] == "weftwork run a.yaml"
    scenario = weftwork.read_scenario("a.yaml")
    assert scenario.training is not None
    assert Path(scenario.training.model).name == "nemo.json"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("-o", "there.yaml"), "'there.yaml' exists already"),
        (("-o", "a.json"), "wanted a name that ends in .yaml"),
        (("-o", "none/a.yaml"), "cannot be written: No such file or directory"),
        (("--gpus", "0"), "found 0, wanted a whole number from 1"),
        (("--gpus", "100"), "--gpus (fabric.gpus)"),
        (("--node", "dgx-h10"), "did you mean 'dgx-h100'?"),
        (("--variable", "TP"), "wanted NAME=VALUE"),
    ],
)
def test_options_that_cannot_be_are_refused(options: tuple[str, ...], told: str, command: Command) -> None:
    Path("there.yaml").write_text("mine", encoding="utf-8")
    answer = command(str(GOLDEN / "gpt3_175b.sh"), *options)
    assert answer.code == 2
    assert told in answer.err
    assert [path.read_text(encoding="utf-8") for path in Path().iterdir()] == ["mine"]


def test_a_model_of_somebody_else_is_not_overwritten(command: Command) -> None:
    Path("nemo.json").write_text("mine", encoding="utf-8")
    answer = command(str(GOLDEN / "nemo.yaml"))
    assert (answer.code, list(Path().iterdir())) == (2, [Path("nemo.json")])
    assert "'nemo.json' exists already" in answer.err


def test_without_gpus_it_is_said_what_is_missing(command: Command) -> None:
    text = (GOLDEN / "gpt3_175b.sh").read_text(encoding="utf-8")
    Path("job.sh").write_text(text.replace("NUM_NODES=128\n", "NUM_NODES=$SLURM_NNODES\n"), encoding="utf-8")
    answer = command("job.sh")
    assert answer.code == 2
    assert "--gpus" in answer.err
    assert "--nnodes: 'SLURM_NNODES' has no value without running the script" in answer.err
    assert command("job.sh", "--variable", "SLURM_NNODES=16").code == 0


def test_nothing_of_a_script_is_run(command: Command) -> None:
    text = (GOLDEN / "gpt3_175b.sh").read_text(encoding="utf-8")
    own = "touch a; X=$(touch b)\nY=`touch c`\n: ${Z:=$(touch d)} $((E[$(touch e)]))\n"
    Path("job.sh").write_text(own + text.replace("--lr 6.0e-5", "--lr $(touch f)"), encoding="utf-8")
    assert command("job.sh").code == 0
    assert sorted(path.name for path in Path().iterdir()) == ["job.sh", "job.yaml"]
