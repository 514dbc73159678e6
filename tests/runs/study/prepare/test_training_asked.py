"""Training that a scenario asks for by mistake: refused in words, and run where the user insists."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from weftwork.base.errors import ConfigError
from weftwork.cli import main
from weftwork.study.prepare.prepare import prepare, read_scenario

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO = """schema: 3
fabric: {topology: rail-optimized, gpus: 32, node: dgx-h100, switch: tomahawk-5}
training:
  model: MODEL
  global_batch: 32
"""
TINY = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 1000, "max_position_embeddings": 512,
}  # fmt: skip


def written(folder: Path, model: str = "llama-3-8b", more: str = "") -> Path:
    file = folder / "asked.yaml"
    file.write_text(SCENARIO.replace("MODEL", model) + more, encoding="utf-8")
    return file


def test_a_sequence_many_times_too_long_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare(read_scenario(written(tmp_path, more="  sequence: 819200\n")))
    (mistake,) = caught.value.mistakes
    assert (mistake.path, mistake.line, mistake.fix) == ("training.sequence", 6, "8192")
    assert "100 times the 8,192" in mistake.text
    assert "wanted at most 524,288; to use it anyway, set training.force: true" in mistake.text


def test_who_insists_is_asked_nothing_and_the_longest_stretch_neither(tmp_path: Path) -> None:
    (tmp_path / "tiny.json").write_text(json.dumps(TINY), encoding="utf-8")
    file = written(tmp_path, "tiny.json")
    assert prepare(read_scenario(file, {"training.sequence": "32768"})).jobs[0].plan.sequence == 64 * 512
    with pytest.raises(ConfigError, match=r"to use it anyway, set training\.force"):
        prepare(read_scenario(file, {"training.sequence": "32769"}))
    insisted = prepare(read_scenario(file, {"training.sequence": "32769", "training.force": "true"}))
    assert insisted.jobs[0].plan.sequence == 32_769


def test_long_context_is_no_slip_of_the_pen(tmp_path: Path) -> None:
    found = prepare(read_scenario(written(tmp_path), {"training.phase": "long-context", "training.recompute": "full",
                                                      "training.context": "8", "training.tensor": "4"}))  # fmt: skip
    assert found.jobs[0].plan.sequence == 131_072


def test_a_model_of_a_file_has_no_caveats_of_the_catalogues_model_of_its_name(tmp_path: Path) -> None:
    known = prepare(read_scenario(written(tmp_path), {"training.tensor": "8"}))
    (tmp_path / "tiny.json").write_text(json.dumps({**TINY, "_name_or_path": "x/llama-3-8b"}), encoding="utf-8")
    own = prepare(read_scenario(written(tmp_path, "tiny.json")))
    assert own.jobs[0].model.name == known.jobs[0].model.name == "llama-3-8b"
    assert any(subject.startswith("llama-3-8b.") for subject in known.notes)
    assert not any(subject.startswith("llama-3-8b.") for subject in own.notes)


def test_a_proposed_plan_is_the_fix_of_one_mistake_in_json_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "llama-3-70b", more="  pipeline: 4\n")
    with pytest.raises(SystemExit) as left:
        main(["run", str(file), "--json"])
    assert left.value.code == 2
    printed = capsys.readouterr()
    (mistake,) = json.loads(printed.out)["error"]["mistakes"]
    assert mistake["path"] == "training.memory"
    assert "1 mistake, nothing was run" in printed.err
    settings = [part for part in mistake["fix"].split(" ") if part != "--set"]
    overrides = dict(part.split("=", 1) for part in settings)
    assert prepare(read_scenario(file, overrides)).jobs[0].plan.ranks == 32
