"""Every command whose numbers rest on what an input leaves open says so on its screen and in its JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.command import command_of
from helpers.pages import plain

SHAPE = {
    "model_type": "llama", "vocab_size": 32_000, "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
    "intermediate_size": 1_376,
}  # fmt: skip
JOB = """\
schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 1, node: dgx-h100}
training: {model: config.json, tensor: 8, data: 2, global_batch: 8}
engine: {fidelity: flow}
"""
SAID = "training.sequence is 2,048 tokens, since config.json has no max_position_embeddings"
COMMANDS = {
    "run": "run job.yaml --what-if none",
    "seeds": "run job.yaml --what-if none --seeds 2",
    "sweep": "sweep job.yaml --set training.global_batch=8,16 -j 1",
    "plan": "plan job.yaml --set training.context=1 -j 1",
    "tune": "tune job.yaml --parameter training.micro_batch=1..2 --trials 2 --fresh 1 -j 1",
    "design": "design job.yaml --gpus 64 --set training.data=8 --only topology=leaf-spine --closed-forms -j 1",
}


Prints = Callable[..., str]


@pytest.fixture
def prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Prints:
    """Run a command that succeeds, beside a job of a model with these further keys: what it prints, on one line."""
    monkeypatch.chdir(tmp_path)
    command = command_of(capsys)
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")

    def run(*words: str, **shape: object) -> str:
        (tmp_path / "config.json").write_text(json.dumps(SHAPE | shape), encoding="utf-8")
        answer = command(*words)
        assert answer.code == 0, answer.err
        return " ".join(answer.out.split())

    return run


def of_command(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.extra if name == "tune" else ())


@pytest.mark.parametrize("name", [of_command(name) for name in COMMANDS])
def test_a_sequence_that_no_file_states_is_told(name: str, prints: Prints) -> None:
    if name == "tune":
        pytest.importorskip("optuna", reason="Optuna comes with the extra 'plan'")
    printed = prints(*COMMANDS[name].split(), "-o", "words")
    assert printed.count(SAID) == 1
    assert f"ssumed: {SAID}" in printed


@pytest.mark.parametrize("name", ["run", "plan"])
def test_the_same_stands_in_json(name: str, prints: Prints) -> None:
    assert SAID in prints(*COMMANDS[name].split(), "-o", "json", "--json")


def test_a_comparison_says_what_its_runs_assumed(prints: Prints, tmp_path: Path) -> None:
    for batch in ("8", "16"):
        prints(*COMMANDS["run"].split(), "--set", f"training.global_batch={batch}", "-o", batch)
    assert prints("compare", "8", "16").count(SAID) == 1
    assert json.loads(prints("compare", "8", "16", "--json"))["assumed"] == [f"Assumed: {SAID}."]
    prints("report", "8", "16", "-o", "page.html")
    assert SAID in plain((tmp_path / "page.html").read_text(encoding="utf-8"))


STATED = {"max_position_embeddings": 2_048}, {"rope_scaling": {"original_max_position_embeddings": 2_048}}


@pytest.mark.parametrize("shape", STATED)
def test_a_sequence_that_is_stated_is_no_assumption(shape: dict[str, object], prints: Prints) -> None:
    assert "ssumed" not in prints(*COMMANDS["run"].split(), "-o", "run", **shape)


def test_a_sequence_of_the_scenario_is_no_assumption(prints: Prints) -> None:
    assert "ssumed" not in prints(*COMMANDS["run"].split(), "--set", "training.sequence=2048", "-o", "run")
