"""Keys that a mixture of experts leaves open have the values of the public recipe that fits it."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.written import dump
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.workload.models.catalogue import model
from weftwork.workload.models.software import software
from weftwork.workload.recipes.catalogue import recipe_named

TEXT = """schema: 3
fabric: {topology: rail-optimized, gpus: 256, node: dgx-b200, switch: tomahawk-5}
training: {model: deepseek-v3, pipeline: 16, expert: 8, global_batch: 4096, precision: mxfp8}
engine: {fidelity: flow}
"""
NEWEST = "26.08/deepseek-v3/b200/mxfp8"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mixture.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_open_keys_have_the_values_of_the_newest_recipe_that_fits(file: Path) -> None:
    prepared = prepare(read_scenario(file))
    (job,) = prepared.jobs
    recipe, release = recipe_named(NEWEST)
    wanted = recipe.plan(model("deepseek-v3"))
    assert job.section.recipe == NEWEST
    assert job.software == recipe.software(release)
    for field in ("overlap", "gradient_bytes", "moment_bytes", "has_quantised_weights", "recompute"):
        assert getattr(job.plan, field) == getattr(wanted, field), field
    assert (job.plan.pipeline, job.plan.expert, job.plan.global_batch) == (16, 8, 4096)
    assert NEWEST in prepared.notes["training.recipe"].text


def test_the_cut_of_the_recipe_holds_where_the_stages_are_its_own(file: Path) -> None:
    recipe, _ = recipe_named(NEWEST)
    own = read_scenario(file, {"training.pipeline": recipe.pipeline, "training.virtual_stages": recipe.chunks}).training
    assert own is not None
    assert own.layout == recipe.layout
    other = read_scenario(file, {"training.pipeline": 2 * recipe.pipeline}).training
    assert other is not None
    assert (other.layout, other.balanced_ends) == (None, True)


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("overlap.expert", "0.25", lambda job: job.overlap.expert == 0.25),
        ("gradients", "fp32", lambda job: job.gradients == "fp32"),
        ("moments", "fp32", lambda job: job.moments == "fp32"),
        ("recompute", "none", lambda job: job.recompute == "none"),
        ("software", "plain", lambda job: job.software.model == "plain"),
        ("balanced_ends", "false", lambda job: not job.balanced_ends and job.layout is None),
    ],
)
def test_what_the_scenario_sets_stays(file: Path, key: str, value: str, read) -> None:  # noqa: ANN001
    job = read_scenario(file, {f"training.{key}": value}).training
    assert job is not None
    assert job.recipe == NEWEST
    assert read(job)


@pytest.mark.parametrize(
    "overrides",
    [
        {"training.recipe": "none"},
        {"training.model": "llama-3-70b", "training.expert": 1},
        {"training.model": "deepseek-v3", "fabric.node": "dgx-h100", "training.precision": "nvfp4"},
        {"training.phase": "fine-tuning-lora"},
    ],
)
def test_others_have_the_usual_defaults(file: Path, overrides: dict[str, object]) -> None:
    job = read_scenario(file, overrides).training
    assert job is not None
    assert job.recipe in {"auto", "none"}
    assert (job.software.model, job.software.fields, job.overlap.expert) == ("plain", {}, 0.0)


def test_a_recipe_may_be_named_for_any_model(file: Path) -> None:
    name = "26.06/llama-3-70b/b200/mxfp8"
    overrides = {"training.model": "llama-3-70b", "training.expert": 1, "training.recipe": name}
    job = read_scenario(file, overrides).training
    assert job is not None
    assert (job.recipe, job.software.on(software(job.software.model))) == (
        name,
        recipe_named(name)[0].software("26.06"),
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("26.08/deepsek", "did you mean"),
        ("26.06/kimi-k2/b200/mxfp8", "wanted a recipe of deepseek-v3, auto or none"),
    ],
)
def test_a_recipe_that_is_none_of_the_model_is_refused_at_its_key(file: Path, name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=r"training\.recipe") as wrong:
        read_scenario(file, {"training.recipe": name})
    assert text in str(wrong.value)


@pytest.mark.parametrize("overrides", [{}, {"training.recipe": "none"}, {"training.gradients": "fp32"}])
def test_the_resolved_scenario_is_read_back_equal(file: Path, tmp_path: Path, overrides: dict[str, object]) -> None:
    scenario = read_scenario(file, overrides)
    again = tmp_path / "resolved.yaml"
    again.write_text(dump(scenario), encoding="utf-8")
    assert read_scenario(again) == scenario
