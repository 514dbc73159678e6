"""Every plan that a search proposes for Megatron-LM is one that Megatron-LM starts, and is read back as it was.

Questions are drawn at random: models, servers, batches and keys of the user.
Leaves out: keys that no argument says and no plan decides (`weftwork.workload.imports.megatron_write`).
"""

from __future__ import annotations

import random
import shlex
from collections import Counter
from pathlib import Path

import pytest
from helpers.cases import case_count
from helpers.plan_questions import Searched, searched

from weftwork.spec.scenario.training import TrainingSection
from weftwork.study.plan.search import section_with
from weftwork.study.plan.space import SEARCHED, candidates, parts
from weftwork.study.plan.trainers import TRAINERS, fixed_mistakes
from weftwork.workload.imports.megatron import read_megatron
from weftwork.workload.imports.megatron_model import model_arguments
from weftwork.workload.imports.megatron_write import write_megatron
from weftwork.workload.parallelism.layout import virtual_stages_of

SEEDS = range(case_count(plain=40, deep=300))
MEGATRON = TRAINERS["megatron"]
LAYOUT = "--pipeline-model-parallel-layout"
USUAL_KEYS = {key: TrainingSection.model_fields[key].default for key in SEARCHED}
ENDS = ("--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split")


def proposed(seed: int, folder: Path) -> Searched | None:
    """A question of somebody who trains with Megatron-LM, or None."""
    asked = searched(seed, folder, gpus=(16, 32, 64), share_beside=0.15)
    if asked is None or model_arguments(asked.space.model)[1]:  # arguments do not say all of its sizes
        return None
    section = asked.space.section
    given = asked.space.fixed | (TrainingSection.model_fields.keys() - frozenset(SEARCHED))
    if fixed_mistakes(MEGATRON, section, asked.space.model, given):
        return None
    asked.space.trainer = MEGATRON
    asked.space.section = section.model_copy(update={"memory_bytes": 10**14})  # large models have plans, too
    return asked


def value_of(words: tuple[str, ...], argument: str, default: int) -> int:
    return int(words[words.index(argument) + 1]) if argument in words else default


def assert_megatron_starts(words: tuple[str, ...]) -> None:
    """validate_args and TransformerConfig of Megatron-LM give every virtual stage as many layers, or take a layout."""
    if LAYOUT in words:
        assert not set(ENDS) & set(words)
        assert "--num-virtual-stages-per-pipeline-rank" not in words
        assert "--hybrid-override-pattern" not in words
        return
    stages = value_of(words, "--pipeline-model-parallel-size", 1)
    virtual_stages = value_of(words, "--num-virtual-stages-per-pipeline-rank", 1)
    layers = value_of(words, "--num-layers", 0) + sum(end in words for end in ENDS)
    assert layers
    assert layers % (stages * virtual_stages) == 0
    assert not (set(ENDS) & set(words) and "--mtp-num-layers" in words and stages * virtual_stages > 1)


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, Searched]]:
    folder = tmp_path_factory.mktemp("questions")
    made = ((seed, proposed(seed, folder)) for seed in SEEDS)
    return [(seed, asked) for seed, asked in made if asked is not None]


def test_a_proposed_plan_is_read_as_it_was_written(questions: list[tuple[int, Searched]]) -> None:
    forms: Counter[str] = Counter()
    for seed, asked in questions:
        space, draw = asked.space, random.Random(seed)
        ways = [degrees for part in parts(space) for degrees in part if degrees["pipeline"] > 1 or draw.random() < 0.1]
        plans = list(candidates(space, draw.sample(ways, min(6, len(ways)))))
        for one in draw.sample(plans, min(8, len(plans))):
            section = section_with(asked.scenario, one.keys)
            written = write_megatron(section, space.model)
            assert not {f"training.{key}" for key in MEGATRON.abilities} & written.left_out.keys()
            assert_megatron_starts(written.words)
            found = read_megatron(shlex.join(written.words), gpus=space.gpus)
            read = {key.removeprefix("training."): value for key, value in found.keys.items()}
            assert found.model == space.model.model_copy(update={"sequence": found.model.sequence})
            back = {**USUAL_KEYS, **{key: value for key, value in read.items() if key in USUAL_KEYS}}
            for key in set(SEARCHED) - {"data", "balanced_ends"}:
                assert back[key] == one.keys[key], (key, one.keys, written.words)
            cut = {"layout": read.get("layout", ""), "has_balanced_ends": back["balanced_ends"]}
            assert virtual_stages_of(space.model, one.plan.model_copy(update=cut)) == virtual_stages_of(
                space.model, one.plan
            )
            forms["layout" if LAYOUT in written.words else "ends" if ENDS[0] in written.words else "even"] += 1
    assert min(forms[form] for form in ("layout", "ends", "even")) > 2, forms
