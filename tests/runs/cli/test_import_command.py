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
    assert "job.yaml is written, and the mistake is at its key" in answer.err
    (line,) = [row for row in Path("job.yaml").read_text(encoding="utf-8").splitlines() if "# mistake: " in row]
    assert line.startswith("  pipeline: 5  # mistake: training.pipeline: tensor 8 x context 1 x pipeline 5 = 40")


HEAVY = """
torchrun --nnodes 48 --nproc_per_node 8 x.py --num-layers 70 --hidden-size 14336 --num-attention-heads 112 \\
  --seq-length 2048 --max-position-embeddings 2048 --vocab-size 250880 --micro-batch-size 2 --global-batch-size 2048 \\
  --bf16 --tensor-model-parallel-size 4 --pipeline-model-parallel-size 12 \\
  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
"""


def mistakes_of(answer: Answer) -> list[str]:
    return [line.split("training.memory")[1] for line in answer.err.splitlines() if "training.memory" in line]


def test_a_job_that_cannot_run_is_written_with_its_mistake_and_its_fix_can_be_taken(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("job.sh").write_text(HEAVY, encoding="utf-8")
    answer = command("job.sh")
    assert answer.code == 2
    assert "mend it       job.yaml" in answer.out
    assert "read: 14 arguments" in answer.out
    written = Path("job.yaml").read_text(encoding="utf-8")
    assert re.search(
        r"^training:  # mistake: training.memory: .* did you mean '--set training.zero=1'\?$", written, re.MULTILINE
    )
    again = command_of(capsys, "run")("job.yaml", "-o", "none", "--what-if", "none")
    assert (again.code, mistakes_of(again)) == (2, mistakes_of(answer))
    (fix,) = re.findall(r"'--set (\S+)'", answer.err)
    taken = command("job.sh", "--set", fix)
    assert (taken.code, "# mistake" in Path("job.yaml").read_text(encoding="utf-8")) == (0, False)
    scenario = weftwork.read_scenario("job.yaml")
    assert scenario.training is not None
    assert scenario.training.zero == 1


def test_a_scenario_with_a_mistake_that_somebody_changed_is_not_overwritten(command: Command) -> None:
    Path("job.sh").write_text(HEAVY, encoding="utf-8")
    assert command("job.sh").code == 2
    changed = Path("job.yaml").read_text(encoding="utf-8").replace("micro_batch: 2", "micro_batch: 1")
    Path("job.yaml").write_text(changed, encoding="utf-8")
    answer = command("job.sh", "--set", "training.zero=1")
    assert (answer.code, Path("job.yaml").read_text(encoding="utf-8")) == (2, changed)
    assert "'job.yaml' exists already and is not overwritten" in answer.err


def test_a_model_file_that_somebody_changed_is_not_overwritten(command: Command) -> None:
    Path("job.sh").write_text(HEAVY, encoding="utf-8")
    assert command("job.sh").code == 2
    Path("job.json").write_text("mine", encoding="utf-8")
    answer = command("job.sh", "--set", "training.zero=1")
    assert (answer.code, Path("job.json").read_text(encoding="utf-8")) == (2, "mine")


def test_the_mistakes_of_a_job_that_cannot_run_are_one_object(command: Command) -> None:
    Path("job.sh").write_text(HEAVY, encoding="utf-8")
    answer = command("job.sh", "--json")
    document = json.loads(answer.out)
    assert (answer.code, [one["path"] for one in document["error"]["mistakes"]]) == (2, ["training.memory"])


def test_settings_take_the_place_of_what_the_arguments_say(command: Command) -> None:
    text = HEAVY.replace("torchrun --nnodes 48 --nproc_per_node 8", "python")
    Path("job.sh").write_text(text, encoding="utf-8")
    answer = command(
        "job.sh", "--set", "training.zero=1", "--set", "fabric.gpus=384", "--set", "fabric.topology=leaf-spine",
        "--set", "training.overlap={data: 0.5}", "--json",
    )  # fmt: skip
    document = json.loads(answer.out)
    assert answer.code == 0
    assert "fabric.topology" not in document["assumed"]
    scenario = weftwork.read_scenario("job.yaml")
    assert scenario.training is not None
    assert (scenario.fabric.gpus, scenario.fabric.topology, scenario.training.overlap.data) == (384, "leaf-spine", 0.5)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("training.zro=1", "--set training.zro  unknown key; 'zero' stands here already"),
        ("training.zero=9", "--set training.zero  found '9'"),
        ("training.zero", "wanted KEY=VALUE"),
        ("training.zero=[", "--set training.zero"),
        ("fabric.gpus=100", "--set fabric.gpus  "),
    ],
)
def test_a_wrong_setting_is_a_mistake_of_the_option(setting: str, told: str, command: Command) -> None:
    answer = command(str(GOLDEN / "gpt3_175b.sh"), "--set", setting)
    assert (answer.code, list(Path().iterdir())) == (2, [])
    assert told in answer.err


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
    assert document["read"]["model.tensor_model_parallel_size"] == "training.tensor: 4"
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
    own += (
        "eval touch g; bash -c 'touch h'; f() { touch l; }; f\nsh <<END\ntouch i\nEND\necho > k\ncat > j <<END\nEND\n"
    )
    Path("job.sh").write_text(own + text.replace("--lr 6.0e-5", "--lr $(touch f)"), encoding="utf-8")
    assert command("job.sh").code == 0
    assert sorted(path.name for path in Path().iterdir()) == ["job.sh", "job.yaml"]
