"""What trainers can run: a search for one of them makes no other plan."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from helpers.cases import case_count
from helpers.plan_questions import searched

from weftwork.base.errors import ConfigError
from weftwork.base.fix import Settings
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.training import TrainingSection
from weftwork.spec.training import PipelineSchedule, Recompute
from weftwork.study.plan.search import search
from weftwork.study.plan.space import Degrees, Space, candidates, parts
from weftwork.study.plan.trainers import TRAINERS, fixed_mistakes, trainer
from weftwork.study.prepare.prepare import read_scenario
from weftwork.workload.models.catalogue import model

SECTION = loads("{schema: 3, fabric: {radix: 4}, training: {model: llama-3-8b, global_batch: 64, zero: 0}}").training
assert SECTION is not None
SEEDS = range(case_count(plain=12, deep=60))


def ways(space: Space, seed: int) -> list[Degrees]:
    """Some ways to spread the GPUs that the trainer of the search has."""
    every = [degrees for part in parts(space) for degrees in part]
    return random.Random(seed).sample(every, min(8, len(every)))


@pytest.mark.parametrize("name", TRAINERS)
def test_no_plan_is_beyond_the_trainer(name: str, tmp_path: Path) -> None:
    made, seen = TRAINERS[name], 0
    for seed in SEEDS:
        asked = searched(seed, tmp_path, gpus=(64,))
        if asked is None:
            continue
        asked.space.trainer = made
        asked.space.fixed = frozenset()
        for one in candidates(asked.space, ways(asked.space, seed)):
            seen += 1
            for key in made.abilities.keys() & one.keys.keys():
                assert one.keys[key] in made.abilities[key].values, (key, one.keys)
            if name == "megatron":
                assert one.keys["zero"] < 2 or one.keys["order"] == "tp-cp-dp-pp"
            else:
                assert one.keys["expert"] == 1 or one.keys["expert"] >= one.keys["tensor"]
    assert seen > 100


def test_plans_of_all_trainers_are_among_those_of_any(tmp_path: Path) -> None:
    """But for what they recompute by other units."""
    for seed in SEEDS:
        asked = searched(seed, tmp_path, gpus=(32,))
        if asked is None or "recompute" in asked.space.fixed:
            continue
        of_any = {tuple(one.keys.items()) for one in candidates(asked.space, asked.spread[:6])}
        asked.space.trainer = TRAINERS["megatron"]
        if fixed_mistakes(TRAINERS["megatron"], asked.space.section, asked.space.model, asked.space.fixed):
            continue
        assert {tuple(one.keys.items()) for one in candidates(asked.space, asked.spread[:6])} <= of_any


def test_every_cell_has_a_source() -> None:
    for made in TRAINERS.values():
        assert set(made.abilities) <= TrainingSection.model_fields.keys()
        for exclusion in made.exclusions:
            assert set(exclusion.keys) <= TrainingSection.model_fields.keys()
        for cell in (*made.abilities.values(), *made.exclusions):
            assert "/" in cell.source


def test_a_key_that_the_trainer_cannot_run_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(
        "{schema: 3, fabric: {topology: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 2, node: dgx-h100},"
        " training: {model: llama-3-8b, global_batch: 32, pipeline: 2, schedule: zb-h1, zero: 1}}",
        encoding="utf-8",
    )
    scenario = read_scenario(file)
    with pytest.raises(ConfigError) as caught:
        search(scenario, fixed=frozenset({"schedule", "zero", "pipeline"}), trainer=TRAINERS["torchtitan"])
    paths = [one.path for one in caught.value.mistakes]
    assert paths == ["training.schedule", "training.zero"]
    assert "found zb-h1, wanted 1f1b, gpipe for torchtitan" in caught.value.mistakes[0].text
    assert [one.fix for one in caught.value.mistakes] == ["1f1b", "0"]


def alternatives(key: str, values: tuple[Any, ...]) -> list[Any]:
    """Values of a key of ``training`` that a trainer lacks."""
    annotation = {"recompute_every": (2, 4), "zero": (0, 1, 2, 3), "expert_tensor": (1, 2)}
    words = {
        "schedule": get_args(PipelineSchedule), "recompute": get_args(Recompute), "gradients": ("bf16", "bf16+fp32"),
        "phase": ("fine-tuning-lora",), "order": ("tp-cp-pp-dp",), "context_exchange": ("all-to-all",),
    }  # fmt: skip
    return [value for value in {**annotation, **words}[key] if value not in values]


@pytest.mark.parametrize("name", TRAINERS)
def test_every_lacking_key_is_named_and_its_fix_is_run(name: str) -> None:
    """No key of the table is blamed on another one, such as the number of GPUs."""
    made, every = TRAINERS[name], frozenset(TrainingSection.model_fields)
    seen = 0
    for key, ability in made.abilities.items():
        for value in alternatives(key, ability.values):
            section = SECTION.model_copy(update={key: value})
            (mistake,) = fixed_mistakes(made, section, model("llama-3-8b"), every)
            assert mistake.path == f"training.{key}"
            assert f"found {value}, wanted {', '.join(map(str, ability.values))} for {made.title}" in mistake.text
            assert ability.source in mistake.text
            mended = SECTION.model_copy(update={key: type(value)(mistake.fix)})
            assert not fixed_mistakes(made, mended, model("llama-3-8b"), every)
            seen += 1
    assert seen > 3


EXCLUDED: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "megatron": [
        ("llama-3-8b", {"zero": 2, "order": "tp-cp-pp-dp"}),
        ("llama-3-8b", {"zero": 3, "prefetch": False}),
        ("llama-3-8b", {"context_exchange": "all-to-all", "context": 8, "tensor": 2}),
        ("nemotron-h-56b", {"pipeline": 4}),
        ("nemotron-3-super", {"pipeline": 4, "virtual_stages": 22, "balanced_ends": True}),
        ("deepseek-v3", {"pipeline": 2, "layout": "Et*30|t*31mL", "virtual_stages": 1}),
        ("deepseek-v3", {"pipeline": 2, "layout": "Et*30|t*31|m|L", "virtual_stages": 2}),
    ],
    "torchtitan": [("mixtral-8x7b", {"expert": 2, "tensor": 8})],
}


@pytest.mark.parametrize(("name", "trained", "keys"), [(name, *one) for name, rows in EXCLUDED.items() for one in rows])
def test_keys_that_exclude_each_other_are_named(name: str, trained: str, keys: dict[str, Any]) -> None:
    """Values that a trainer has alone and not together."""
    made, every = TRAINERS[name], frozenset(TrainingSection.model_fields)
    section = SECTION.model_copy(update=keys)
    mistakes = fixed_mistakes(made, section, model(trained), every)
    if keys.get("layout") == "Et*30|t*31mL":  # its prediction layer is in the last part, where Megatron-LM has it
        assert not mistakes
        return
    (mistake,) = mistakes
    assert mistake.path.removeprefix("training.") in keys
    assert isinstance(mistake.fix, Settings)
    values = {path.removeprefix("training."): yaml.safe_load(value) for path, value in mistake.fix.values}
    assert not fixed_mistakes(made, section.model_copy(update=values), model(trained), every)
    half = every - {next(iter(keys))}  # a key that the search may vary stands in no one's way
    assert not fixed_mistakes(made, section, model(trained), half) or len(keys) == 1


def test_no_plan_for_a_trainer_names_the_given_keys(tmp_path: Path) -> None:
    """Where other keys could vary and no value of theirs helps."""
    file = tmp_path / "job.yaml"
    file.write_text(
        "{schema: 3, fabric: {topology: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 2, node: dgx-b200},"
        " training: {model: nemotron-3-nano, global_batch: 32, pipeline: 8, virtual_stages: 1}}",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError) as caught:
        search(read_scenario(file), fixed=frozenset({"pipeline", "virtual_stages"}), trainer=TRAINERS["megatron"])
    first, second, last = caught.value.mistakes
    assert (first.path, second.path) == ("training.pipeline", "training.virtual_stages")
    assert "hybrid" in first.text
    assert "for Megatron-LM" in last.text


def test_an_unknown_trainer_is_refused() -> None:
    assert trainer("any") is None
    with pytest.raises(ConfigError) as caught:
        trainer("torch-titan")
    assert caught.value.mistakes[0].fix == "torchtitan"
