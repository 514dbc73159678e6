"""A public recipe as a scenario.

It has the plan and software on servers of its GPU, and a fabric without a bottleneck.

What a scenario cannot say of a recipe stands above it as a comment.
Source: `weftwork.workload.recipes`.
"""

from __future__ import annotations

from weftwork.spec.scenario.yaml_tree import write_tree
from weftwork.study.validation.published_cases import bridge_cluster
from weftwork.study.validation.row_scenario import training_tree
from weftwork.workload.models.catalogue import model
from weftwork.workload.recipes.catalogue import RELEASES, recipe_named

__all__ = ["recipe_scenario"]


def recipe_scenario(name: str) -> str:
    """The scenario of a recipe.

    Parameters
    ----------
    name : such as ``26.06/deepseek-v3/gb300/mxfp8``; `weftwork.workload.recipes.catalogue.recipe_names` has all

    Returns
    -------
    YAML

    Raises
    ------
    ConfigError : there is no such recipe, or its model has layers that Weftwork does not have
    """
    recipe, release = recipe_named(name)
    made = model(recipe.model, path="recipe")
    cluster = bridge_cluster(recipe.gpu, recipe.gpus)
    tree = training_tree(name, made, recipe.plan(made), cluster, recipe.software(release))
    where = f"NVIDIA-NeMo/Megatron-Bridge at {RELEASES[release]}, {recipe.file}, {recipe.recipe}"
    lines = [where, "The fabric is not part of the recipe: one leaf, packets sprayed."]
    lines += [f"Left out: {words}." for words in recipe.unplanned]
    return "".join(f"# {line}\n" for line in lines) + write_tree(tree)
