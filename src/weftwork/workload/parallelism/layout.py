"""Which layers a stage of a pipeline holds: units in the order of the model, cut into parts.

Part ``c p + s`` is virtual stage c of stage s. Where layers do not divide, parts differ by one and the fullest stage
paces the pipeline. With balanced ends the embedding, the loss head and modules that predict further tokens count as
layers, as recipes for models whose layers and two are a round number have it (Llama 3, arXiv:2407.21783,
section 3.3.2).
With DualPipe stage s also holds the part of stage p - 1 - s, as its virtual stage 1.
Leaves out: layouts by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.training import Model, Parallelism
from weftwork.workload.models.size import LayerKind, layer_kinds

__all__ = ["Unit", "virtual_stages_of"]

Part = Literal["embedding", "layer", "prediction", "head"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """A piece of a model that one stage holds; ``layer`` for a layer and for a prediction module."""

    part: Part
    layer: LayerKind | None = None


def virtual_stages_of(model: Model, plan: Parallelism) -> tuple[tuple[tuple[Unit, ...], ...], ...]:
    """Units of every stage, by virtual stage: ``virtual_stages_of(...)[stage][virtual_stage]``.

    Parameters
    ----------
    model : what is cut
    plan : stages, virtual stages and whether ends count as layers

    Raises
    ------
    ConfigError : fewer layers than parts, ends counted where they are balanced

    Examples
    --------
    >>> from weftwork.workload.models.catalogue import model
    >>> found = virtual_stages_of(model("llama-3-8b"), Parallelism(pipeline=4, virtual_stages=2, global_batch=1))
    >>> [[len(part) for part in stage] for stage in found]
    [[5, 4], [4, 4], [4, 4], [4, 5]]
    """
    kinds = layer_kinds(model)
    first = (Unit(part="embedding"),)
    layers = tuple(Unit(part="layer", layer=kind) for kind in kinds)
    last = (*(Unit(part="prediction", layer=kinds[-1]) for _ in range(model.prediction_layers)), Unit(part="head"))
    parts = plan.pipeline * plan.virtual_stages
    units = (*first, *layers, *last) if plan.has_balanced_ends else layers
    if len(units) < parts:
        what = "layers, the embedding and the head" if plan.has_balanced_ends else "layers"
        split = f"{plan.pipeline} stages of {plan.virtual_stages} virtual stages"
        text = f"found {split}, wanted at most {len(units)} in all: {what}"
        raise ConfigError("training", [Mistake(path="training.pipeline", text=text)])
    cut = _near_equal(units, parts)
    if not plan.has_balanced_ends:
        cut[0] = first + cut[0]
        cut[-1] = cut[-1] + last
    if plan.has_mirror:
        return tuple(zip(cut, reversed(cut), strict=True))
    return tuple(
        tuple(cut[part * plan.pipeline + stage] for part in range(plan.virtual_stages))
        for stage in range(plan.pipeline)
    )


def _near_equal(units: tuple[Unit, ...], parts: int) -> list[tuple[Unit, ...]]:
    """Cut into parts whose lengths differ by at most one, the longer ones spread evenly."""
    edges = [part * len(units) // parts for part in range(parts + 1)]
    return [units[low:high] for low, high in pairwise(edges)]
