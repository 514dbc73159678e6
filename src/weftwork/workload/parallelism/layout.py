"""Layers of each pipeline stage: units of the model, cut into parts.

Units are in the order of the model. Part ``c p + s`` is virtual stage c of stage s. Where layers do not divide, parts
differ by one and the fullest stage paces the pipeline. With balanced ends the embedding, the loss head and modules that
predict further tokens count as layers, as recipes for models whose layers and two are a round number have it (Llama 3,
arXiv:2407.21783,
section 3.3.2).
With DualPipe stage s also holds the part of stage p - 1 - s, as its virtual stage 1. A layout by hand
(`layout_text`) says what each part holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.training import Model, Parallelism, Precision, Recompute
from weftwork.workload.models.size import LayerKind, layer_kinds, prediction_kind
from weftwork.workload.parallelism.layout_text import layout_mistakes, layout_parts

__all__ = ["Unit", "alike_stages", "counted_units", "held_units", "recomputation", "virtual_stages_of"]

KEPT: Final = 1_024  # chosen: a search asks for as many cuts of one model at the most, each many times

Part = Literal["embedding", "layer", "prediction", "head"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """A piece of a model within one stage.

    Attributes
    ----------
    part : which piece
    layer : for a layer and for a prediction module
    precision : of all its matrix products, where it is not the plan's
    recompute : what a backward pass computes again of a layer, where it is not the plan's
    """

    part: Part
    layer: LayerKind | None = None
    precision: Precision | None = None
    recompute: Recompute | None = None


def recomputation(unit: Unit, plan: Parallelism) -> Recompute:
    """What a backward pass computes again of a unit.

    Examples
    --------
    >>> plan = Parallelism(recompute="full")
    >>> recomputation(Unit(part="layer"), plan), recomputation(Unit(part="layer", recompute="none"), plan)
    ('full', 'none')
    """
    return plan.recompute if unit.recompute is None else unit.recompute


def virtual_stages_of(model: Model, plan: Parallelism) -> tuple[tuple[tuple[Unit, ...], ...], ...]:
    """Units of every stage, by virtual stage.

    The index is ``virtual_stages_of(...)[stage][virtual_stage]``.

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
    return _virtual_stages(_Cut.of(model, plan))


def counted_units(model: Model, plan: Parallelism) -> tuple[tuple[Counter[Unit], ...], ...]:
    """Number of each unit, as `virtual_stages_of` without the order.

    The counters are shared: nobody may change them.
    """
    return _counted(_Cut.of(model, plan))


def held_units(model: Model, plan: Parallelism) -> tuple[Counter[Unit], ...]:
    """Number of each unit in every stage, over all its virtual stages.

    The result is shared as that of `counted_units`.
    """
    return _held(_Cut.of(model, plan))


def alike_stages(model: Model, plan: Parallelism) -> tuple[tuple[int, ...], ...]:
    """Groups of stages with equal units, each group in order.

    Their virtual stages have as many of each unit.
    """
    return _alike(_Cut.of(model, plan))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cut:
    """Inputs that decide where a model is cut."""

    model: Model
    stages: int
    virtual_stages: int
    has_balanced_ends: bool
    has_mirror: bool
    layout: str
    bf16_first_layers: int
    bf16_last_layers: int
    prediction_precision: Precision | None
    recompute_every: int

    @classmethod
    def of(cls, model: Model, plan: Parallelism) -> _Cut:
        """The cut of a plan."""
        return cls(
            model=model,
            stages=plan.pipeline,
            virtual_stages=plan.virtual_stages,
            has_balanced_ends=plan.has_balanced_ends,
            has_mirror=plan.has_mirror,
            layout=plan.layout,
            bf16_first_layers=plan.bf16_first_layers,
            bf16_last_layers=plan.bf16_last_layers,
            prediction_precision=plan.module_precision.prediction,
            recompute_every=plan.recompute_every if plan.recompute != "none" else 1,
        )

    @property
    def units(self) -> tuple[tuple[Unit, ...], ...]:
        """Units before the layers, the layers, and units after them."""
        kinds = layer_kinds(self.model)
        outer = range(self.bf16_first_layers, self.model.layers - self.bf16_last_layers)
        layers = (
            Unit(
                part="layer",
                layer=kind,
                precision=None if place in outer else "bf16",
                recompute=None if (place + 1) % self.recompute_every == 0 else "none",
            )
            for place, kind in enumerate(kinds)
        )
        layer = prediction_kind(self.model)
        prediction = Unit(part="prediction", layer=layer, precision=self.prediction_precision)
        last = (*[prediction] * self.model.prediction_layers, Unit(part="head"))
        return (Unit(part="embedding"),), tuple(layers), last


@lru_cache(maxsize=KEPT)
def _virtual_stages(cut: _Cut) -> tuple[tuple[tuple[Unit, ...], ...], ...]:
    first, layers, last = cut.units
    parts = cut.stages * cut.virtual_stages
    if cut.layout:
        return _by_stage(cut, _laid_out(cut, (*first, *layers, *last), parts))
    units = (*first, *layers, *last) if cut.has_balanced_ends else layers
    if len(units) < parts:
        what = "layers, the embedding and the head" if cut.has_balanced_ends else "layers"
        split = f"{plural(cut.stages, 'stage')} of {plural(cut.virtual_stages, 'virtual stage')}"
        text = f"found {split}, wanted at most {len(units)} in all: {what}"
        raise ConfigError("training", [Mistake(path="training.pipeline", text=text)])
    made = _near_equal(units, parts)
    if not cut.has_balanced_ends:
        made[0] = first + made[0]
        made[-1] = made[-1] + last
    if cut.has_mirror:
        return tuple(zip(made, reversed(made), strict=True))
    return _by_stage(cut, made)


def _by_stage(cut: _Cut, made: Sequence[tuple[Unit, ...]]) -> tuple[tuple[tuple[Unit, ...], ...], ...]:
    stages = range(cut.stages)
    return tuple(tuple(made[part * cut.stages + stage] for part in range(cut.virtual_stages)) for stage in stages)


def _laid_out(cut: _Cut, units: tuple[Unit, ...], parts: int) -> list[tuple[Unit, ...]]:
    """Units of each part, cut by the layout."""
    mistakes = layout_mistakes(cut.layout, cut.model, parts)
    if mistakes:
        raise ConfigError("training", [Mistake(path="training.layout", text=text) for text in mistakes])
    left = iter(units)
    return [tuple(next(left) for _ in part) for part in layout_parts(cut.layout)]


@lru_cache(maxsize=KEPT)
def _counted(cut: _Cut) -> tuple[tuple[Counter[Unit], ...], ...]:
    return tuple(tuple(Counter(units) for units in stage) for stage in _virtual_stages(cut))


@lru_cache(maxsize=KEPT)
def _held(cut: _Cut) -> tuple[Counter[Unit], ...]:
    return tuple(sum(stage, start=Counter[Unit]()) for stage in _counted(cut))


@lru_cache(maxsize=KEPT)
def _alike(cut: _Cut) -> tuple[tuple[int, ...], ...]:
    found: dict[tuple[frozenset[tuple[Unit, int]], ...], list[int]] = {}
    for stage, parts in enumerate(_counted(cut)):
        found.setdefault(tuple(frozenset(units.items()) for units in parts), []).append(stage)
    return tuple(map(tuple, found.values()))


def _near_equal(units: tuple[Unit, ...], parts: int) -> list[tuple[Unit, ...]]:
    """Cut into parts of nearly equal length.

    Lengths differ by at most one; the longer parts are spread evenly.
    """
    edges = [part * len(units) // parts for part in range(parts + 1)]
    return [units[low:high] for low, high in pairwise(edges)]
