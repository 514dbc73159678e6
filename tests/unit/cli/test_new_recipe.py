"""``weftwork new recipe`` and ``weftwork list recipe``: a public recipe as a scenario, and what of it is left out."""

from __future__ import annotations

import json

import pytest
from helpers.new_recipe import NAME, left_code

from weftwork.study.recipe_scenario import recipe_scenario
from weftwork.workload.models.catalogue import MODELS, model
from weftwork.workload.recipes.catalogue import recipe_named, recipe_names


def test_what_no_key_says_stands_above_the_scenario() -> None:
    (name,) = [
        one for one, (recipe, _) in recipe_names().items()
        if recipe.recompute.startswith("full block") and recipe.model in MODELS
    ][:1]  # fmt: skip
    recipe, _ = recipe_named(name)
    assert f"# Left out: recomputation of some whole layers ({recipe.recompute})." in recipe_scenario(name)


def test_whole_layers_that_are_computed_again_one_by_one_are_full_recomputation() -> None:
    found = [recipe for recipe, _ in recipe_names().values() if recipe.recompute == "full uniform 1"]
    assert found  # of models whose layers Weftwork does not have; what is computed again does not depend on them
    assert {recipe.plan(model("llama-3-8b")).recompute for recipe in found} == {"full"}
    assert not any("whole layers" in words for recipe in found for words in recipe.unplanned)


def test_a_wrong_name_says_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert left_code("new", "recipe", "26.06/deepseek-v3/gb300/mxfp9") == 2
    assert f"did you mean '{NAME}'?" in capsys.readouterr().err


def test_a_model_that_is_not_there_is_told_with_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    name = next(one for one, (recipe, _) in recipe_names().items() if recipe.model not in MODELS)
    assert left_code("new", "recipe", name) == 2
    assert "nothing was run" in capsys.readouterr().err


def test_all_recipes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert left_code("list", "recipe", "--json") == 0
    listed = {row["name"] for row in json.loads(capsys.readouterr().out)}
    assert listed == set(recipe_names())
