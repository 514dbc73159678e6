"""``weftwork new recipe`` and ``weftwork list recipe``: a public recipe as a scenario, and what of it is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.new_recipe import DIVISIBLE, NAME, left_code

from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.recipe_scenario import recipe_scenario
from weftwork.workload.models.catalogue import model
from weftwork.workload.models.huggingface import model_of
from weftwork.workload.models.software import software
from weftwork.workload.recipes.catalogue import recipe_named


def test_a_recipe_is_written_as_a_scenario_with_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert left_code("new", "recipe", NAME) == 0
    (file,) = tmp_path.glob("*.yaml")
    assert f"weftwork run {file.name}" in capsys.readouterr().out
    text = file.read_text(encoding="utf-8")
    recipe, _ = recipe_named(NAME)
    assert text.startswith("# NVIDIA-NeMo/Megatron-Bridge at v0.5.0")
    assert recipe.recipe in text.splitlines()[0]
    assert left_code("new", "recipe", NAME) == 2  # it is there already


@pytest.mark.parametrize("name", sorted(DIVISIBLE)[::40])
def test_its_scenario_has_the_plan_and_the_software_of_the_recipe(name: str, tmp_path: Path) -> None:
    recipe, release = DIVISIBLE[name]
    file = tmp_path / "s.yaml"
    file.write_text(recipe_scenario(name), encoding="utf-8")
    scenario = read_scenario(file)
    (section,) = scenario.trainings
    made = model(recipe.model)
    plan = section.parallelism(model_of(section.model)).model_copy(update={"has_prefetch": True})
    assert plan == recipe.plan(made)
    assert section.software.on(software(section.software.model)) == recipe.software(release)
    assert section.gpus == recipe.gpus
