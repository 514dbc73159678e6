"""The recipe behind a row of Megatron-Bridge's performance summary.

A row names release, model, GPU, GPUs and precision; the launcher takes the recipe of these, whose plan the row repeats.
Source: `weftwork.workload.recipes`; docs/performance-summary.md of NVIDIA-NeMo/Megatron-Bridge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.workload.recipes.catalogue import RELEASES, Recipe, recipes

__all__ = ["MODELS", "RowRecipe", "recipe_of"]

# Names of the table, and names of Weftwork's catalogue of models.
MODELS: Final = {
    "LLAMA3_8B": "llama-3-8b",
    "LLAMA3_70B": "llama-3-70b",
    "LLAMA3.1_405B": "llama-3-405b",
    "DeepSeekV3": "deepseek-v3",
    "DeepSeekV4 Flash": "deepseek-v4-flash",
    "Qwen3_30B_a3B": "qwen3-30b-a3b",
    "Qwen3_235B_a22B": "qwen3-235b-a22b",
    "GPT OSS 20B": "gpt-oss-20b",
    "GPT OSS 120B": "gpt-oss-120b",
    "Nemotron_3_Nano": "nemotron-3-nano",
    "Nemotron_3_Super": "nemotron-3-super",
}
_PLAN: Final = ("gpus", "sequence", "micro_batch", "global_batch", "tensor", "pipeline", "context", "chunks", "expert")


@dataclass(frozen=True, kw_only=True, slots=True)
class RowRecipe:
    """A recipe, and the keys of its plan that the row changed."""

    recipe: Recipe
    differs: tuple[str, ...]


def recipe_of(row: Mapping[str, Any]) -> RowRecipe:
    """Find the recipe of a row.

    Of its release, model, GPU and precision, it is the recipe with the nearest plan.

    Parameters
    ----------
    row : of the table

    Raises
    ------
    ConfigError : no recipe is of this release, model, GPU and precision
    """
    release = row["release"]
    if release not in RELEASES:
        text = f"found '{release}', wanted {', '.join(RELEASES)}"
        raise ConfigError("row", [Mistake(path="release", text=text, fix=nearest(release, RELEASES))])
    wanted = (MODELS[row["model"]], row["system"].lower(), row["precision"].lower())
    of_release = [one for one in recipes() if RELEASES[release] in one.tags]
    found = [one for one in of_release if (one.model, one.gpu, one.precision) == wanted]
    if not found:
        there = sorted({f"{one.gpu} {one.precision}" for one in of_release if one.model == wanted[0]})
        text = f"found {wanted[1]} {wanted[2]}, but release {release} has no such recipe for {wanted[0]}; wanted "
        raise ConfigError("row", [Mistake(path="system", text=text + (", ".join(there) or "another model"))])
    closest = min(found, key=lambda one: len(_differs(one, row)))
    return RowRecipe(recipe=closest, differs=_differs(closest, row))


def _differs(recipe: Recipe, row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(key for key in _PLAN if getattr(recipe, key) != (row[key] or 1))
