"""Defaults of a mixture of experts: what a public recipe of the model sets on its GPU in its precision.

A mixture without its exchange tuned is several times as slow as what anybody runs, so keys that a scenario leaves open
take the value of the newest public recipe that fits: software, overlap, recomputation, number formats, and the cut into
stages where the recipe has as many. The plan itself (degrees, batches, sequence) stays with the user.
Source: `weftwork.workload.recipes`, Megatron-Bridge, by release, file and name.
Leaves out: dense models, whose defaults differ little from recipes; models that are a file.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, Final, TypeVar

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.errors import ConfigError, Mistake
from weftwork.hardware.catalogue import server_gpu
from weftwork.spec.scenario.devices import DeviceChoice, device_rows
from weftwork.spec.scenario.training import AUTO_RECIPE, NO_RECIPE, TrainingSection
from weftwork.spec.training import Software
from weftwork.workload.models.catalogue import MODELS, model
from weftwork.workload.models.software import software
from weftwork.workload.recipes.catalogue import recipe_named, recipe_names

if TYPE_CHECKING:
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.training import Model
    from weftwork.workload.recipes.catalogue import Recipe

__all__ = ["recipe_caveats", "with_recipes"]

_Section = TypeVar("_Section", bound=TrainingSection)
_NUMBERS: Final = {2: "bf16", 4: "fp32"}  # by bytes


def with_recipes(scenario: Scenario) -> Scenario:
    """Give keys that jobs of mixtures of experts leave open the values of the recipes that fit.

    Parameters
    ----------
    scenario : that was read; its training jobs name a recipe, ask for the one that fits (``auto``), or for none

    Raises
    ------
    ConfigError : a job names a recipe that there is not, or one of another model
    """
    given = scenario
    for place, job in enumerate(given.trainings):
        section = _with_recipe(given, job, given.job_path(place))
        if section is not job:
            scenario = scenario.with_job(place, section)
    return scenario


def recipe_caveats(section: TrainingSection, path: str) -> dict[str, Caveat]:
    """The recipe whose values a job has by default; nothing without one.

    Parameters
    ----------
    section, path : of the job
    """
    if section.recipe in {AUTO_RECIPE, NO_RECIPE}:
        return {}
    key = f"{path}.recipe"
    text = (
        f"keys that the scenario leaves open (software, overlap, recompute, gradients, moments, quantised_weights,"
        f" layout, balanced_ends) are those of the public recipe {section.recipe}; {key}: {NO_RECIPE} leaves it out"
    )
    return caveats_by_subject([Caveat(subject=key, kind="assumed", text=text)])


def _with_recipe(scenario: Scenario, section: _Section, path: str) -> _Section:
    chosen = _chosen(scenario, section, path)
    if chosen is None:
        return section
    name, recipe, release = chosen
    open_ = _open_keys(scenario, section, path, recipe, model(section.model), release)
    return section.model_copy(update={"recipe": name, **open_})


def _chosen(scenario: Scenario, section: TrainingSection, path: str) -> tuple[str, Recipe, str] | None:
    """The recipe of a job by its name, with its release; None where there is none."""
    if section.recipe == NO_RECIPE:
        return None
    if section.recipe != AUTO_RECIPE:
        try:
            recipe, release = recipe_named(section.recipe)
        except ConfigError as error:
            (mistake,) = error.mistakes
            raise scenario.locate(
                ConfigError(path, [Mistake(path=f"{path}.recipe", text=mistake.text, fix=mistake.fix)])
            ) from error
        if recipe.model != section.model:
            wanted = f"a recipe of {section.model}, {AUTO_RECIPE} or {NO_RECIPE}"
            text = f"found the recipe of {recipe.model}, wanted {wanted}"
            raise scenario.locate(ConfigError(path, [Mistake(path=f"{path}.recipe", text=text)]))
        return section.recipe, recipe, release
    if section.model not in MODELS or section.phase != "pre-training" or not model(section.model).experts:
        return None
    gpu = section.gpu or server_gpu(scenario.fabric.node.model)
    gpus = section.gpus or _gpus(scenario)
    fitting = [
        (name, recipe, release)
        for name, (recipe, release) in recipe_names().items()
        if (recipe.model, recipe.gpu, recipe.precision) == (section.model, gpu, section.precision)
        and recipe.task == "pretrain"
    ]
    if not fitting:
        return None
    newest = max(release for _, _, release in fitting)
    last = [each for each in fitting if each[2] == newest]
    return min(last, key=lambda each: abs(log(each[1].gpus / gpus)) if gpus else 0.0)


def _gpus(scenario: Scenario) -> int:
    """GPUs of a fabric, as far as the scenario says; 0 where only its topology knows."""
    return int(getattr(scenario.fabric, "gpus", None) or 0)


def _open_keys(
    scenario: Scenario, section: TrainingSection, path: str, recipe: Recipe, of: Model, release: str
) -> dict[str, Any]:
    """Values of the recipe for the keys that the scenario leaves open."""

    def is_set(key: str) -> bool:
        return scenario.is_set(f"{path}.{key}")

    plan = recipe.plan(of)
    values: dict[str, Any] = {
        "gradients": _NUMBERS[plan.gradient_bytes],
        "moments": _NUMBERS[plan.moment_bytes],
        "quantised_weights": plan.has_quantised_weights,
    }
    values = {key: value for key, value in values.items() if not is_set(key)}
    if not is_set("software"):
        values["software"] = _software(recipe.software(release))
    if not is_set("recompute") and not is_set("recompute_modules"):
        values["recompute"] = plan.recompute
        if plan.recompute == "selective":
            values |= {"recompute_modules": plan.recompute_modules, "recompute_every": plan.recompute_every}
    overlap = {key: value for key, value in plan.overlap.model_dump().items() if not is_set(f"overlap.{key}")}
    values["overlap"] = section.overlap.model_copy(update=overlap)
    if plan.pipeline > 1 and section.pipeline > 1 and not is_set("layout") and not is_set("balanced_ends"):
        has_same_parts = (plan.pipeline, plan.virtual_stages) == (section.pipeline, section.virtual_stages)
        if plan.layout and has_same_parts and section.schedule == "1f1b":
            values["layout"] = plan.layout
        else:  # the recipe gives fewer layers to the ends, and so does this cut
            values["balanced_ends"] = bool(plan.layout) or plan.has_balanced_ends
    return values


def _software(made: Software) -> DeviceChoice:
    """The software of a recipe as a choice of the catalogue with the fields that differ."""
    usual = software(made.name)
    fields = {
        field: getattr(made, field) for field in device_rows(Software) if getattr(made, field) != getattr(usual, field)
    }
    return DeviceChoice(model=made.name, fields=fields)
