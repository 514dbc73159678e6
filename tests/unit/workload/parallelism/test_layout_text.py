"""A pipeline layout by hand: letters and repetitions as Megatron-LM reads them, and each mistake.

Source: NVIDIA/Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py, whose examples are among them.
"""

from __future__ import annotations

import pytest
from helpers.trained import EXPERTS, SMALL, job_of

from weftwork.base.errors import ConfigError
from weftwork.spec.training import Model, Parallelism
from weftwork.workload.parallelism.layout import held_units, virtual_stages_of
from weftwork.workload.parallelism.layout_text import layout_mistakes, layout_parts
from weftwork.workload.parallelism.refuse import PlanLimits, misfits


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Ettt|(tt|)*29,m|L", ["Ettt", *["tt"] * 29, "m", "L"]),  # of Megatron-LM
        ("Et*4|(t*4|)*14tmL", ["Etttt", *["tttt"] * 14, "tmL"]),  # a recipe of DeepSeek-V3
        ("Et*2|(t|)*2tmL", ["Ett", "t", "t", "tmL"]),
        ("E(t|tt|t)*2L", ["Et", "tt", "tt", "tt", "tL"]),
        ("E|(|t)*2,tL", ["E", "", "t", "ttL"]),
        ("((t|)*2t)*2", ["t", "t", "tt", "t", "t"]),
        ("E t t | t L", ["Ett", "tL"]),
        ("E|*3L", ["E", "", "", "L"]),
        ("Et*0|L", ["E", "L"]),
        ("(Et)|L", ["Et", "L"]),
    ],
)
def test_letters_and_groups_are_repeated(text: str, parts: list[str]) -> None:
    assert list(layout_parts(text)) == parts


@pytest.mark.parametrize("text", ["", "|*0", "Etx|L", "et|tL", "E(t|L", "Et)|L", "Et*|L", "Et*2*3|L", "*2", "Et*-1|L"])
def test_what_cannot_be_read_is_shown_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        layout_parts(text)
    (mistake,) = refused.value.mistakes
    assert mistake.path == "training.layout"
    assert f"found '{text}', wanted letters E, t, m and L" in mistake.text


@pytest.mark.parametrize("text", ["Et*100001|L", "((t*1000)*1000)*1000", "E(t|)*999999999999L"])
def test_a_layout_that_repeats_for_ever_is_refused_before_it_is_made(text: str) -> None:
    with pytest.raises(ConfigError, match="which repeats too often"):
        layout_parts(text)


PREDICTING = SMALL.model_copy(update={"prediction_layers": 1})


@pytest.mark.parametrize(
    ("text", "model", "parts", "told"),
    [
        ("Et*4|t*4L", SMALL, 2, []),
        ("Et*4|t*4mL", PREDICTING, 2, []),
        ("E||t*8L", SMALL, 3, []),  # a part without units
        ("Et*4|t*4L", SMALL, 4, ["found 2 parts, wanted 4: pipeline x virtual_stages"]),
        ("Et*4|t*3L", SMALL, 2, ["found 7 layers (t), wanted 8 of small"]),
        ("Et*4|t*4L", PREDICTING, 2, ["found 0 prediction layers (m), wanted 1 of small"]),
        ("Et*4|t*4mL", SMALL, 2, ["found 1 prediction layers (m), wanted 0 of small"]),
        ("t*4|t*4L", SMALL, 2, ["wanted one embedding (E), in front"]),
        ("tE|t*7L", SMALL, 2, ["wanted one embedding (E), in front"]),
        ("Et*4|t*4", SMALL, 2, ["wanted one loss head (L), at the end"]),
        ("Et*4L|t*4L", SMALL, 2, ["wanted one loss head (L), at the end"]),
        (
            "Et*4|mt*4L",
            PREDICTING,
            2,
            ["found a prediction layer (m) in front of a layer (t), wanted those behind the last layer"],
        ),
        (
            "t*4|Em",
            SMALL,
            1,
            [
                "found 2 parts, wanted 1: pipeline x virtual_stages",
                "found 4 layers (t), wanted 8 of small",
                "found 1 prediction layers (m), wanted 0 of small",
                "wanted one embedding (E), in front",
                "wanted one loss head (L), at the end",
            ],
        ),
    ],
)
def test_every_mistake_of_a_layout_is_told(text: str, model: Model, parts: int, told: list[str]) -> None:
    assert layout_mistakes(text, model, parts) == told


def test_a_layout_says_what_each_virtual_stage_holds() -> None:
    """Of four parts stage 0 has the first and the third; the mixtures of the model are its last six layers."""
    plan = Parallelism(pipeline=2, virtual_stages=2, global_batch=2, layout="Et|t*3|t|t*3L")
    first, second = virtual_stages_of(EXPERTS, plan)
    kinds = [[(unit.part, unit.layer.mlp if unit.layer else "") for unit in part] for part in (*first, *second)]
    dense, mixture = ("layer", "dense"), ("layer", "experts")
    assert kinds == [[("embedding", ""), dense], [mixture], [dense, mixture, mixture], [mixture] * 3 + [("head", "")]]


@pytest.mark.parametrize(
    ("plan", "keys"),
    [
        ({"layout": "Et*4|t*4L"}, []),
        ({"layout": "Et*4|t*3L"}, ["layout"]),
        ({"layout": "Ety|L"}, ["layout"]),
        ({"layout": "Et*4|t*4L", "has_balanced_ends": True}, ["layout"]),
        ({"layout": "Et*4|t*4L", "schedule": "dualpipe", "global_batch": 4}, ["layout"]),
    ],
)
def test_a_plan_with_a_layout_that_cannot_be_is_refused(plan: dict[str, object], keys: list[str]) -> None:
    given = Parallelism.model_validate({"pipeline": 2, "global_batch": 2} | plan)
    assert [one.key for one in misfits(PlanLimits(model=SMALL, gpus=2), given)] == keys


def test_a_part_without_units_passes_micro_batches_on() -> None:
    """Three stages of which the middle one computes nothing: two hold all parameters, and all three send."""
    plan = Parallelism(pipeline=3, global_batch=4, layout="Et*4||t*4L")
    assert [sum(units.values()) for units in held_units(SMALL, plan)] == [5, 0, 5]
    job, shape = job_of(SMALL, plan)
    assert len(job.programs) == 3
    assert len(shape.passes[1]) == len(shape.passes[0])
