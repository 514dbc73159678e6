"""How Megatron-LM is told which layers a pipeline stage has.

Where layers (with balanced ends the layers and both ends) divide by all virtual stages, numbers say it. Other cuts are
written as a layout, part by part.
Source: NVIDIA/Megatron-LM, megatron/training/arguments.py (validate_args),
megatron/core/transformer/transformer_config.py (__post_init__) and
megatron/core/transformer/pipeline_parallel_layer_layout.py (validate_layer_layout).
Leaves out: uneven first and last stages by number (``--decoder-first-pipeline-num-layers``).
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from weftwork.workload.parallelism.layout import virtual_stages_of
from weftwork.workload.parallelism.layout_text import layout_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.training import Model, Parallelism

__all__ = ["has_apart_predictions", "layout_words", "stage_words"]

_LETTERS: Final = {"embedding": "E", "layer": "t", "prediction": "m", "head": "L"}
_ENDS: Final = ("--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split")
_LAYOUT: Final = "--pipeline-model-parallel-layout"


def stage_words(model: Model, plan: Parallelism) -> tuple[str, ...] | None:
    """Arguments that give the layers of a model to stages and virtual stages; None if Megatron-LM has none.

    Parameters
    ----------
    model, plan : that are written

    Examples
    --------
    >>> from weftwork.spec.training import Parallelism
    >>> from weftwork.workload.models.catalogue import model
    >>> stage_words(model("llama-3-8b"), Parallelism(pipeline=4, virtual_stages=2))
    ('--num-virtual-stages-per-pipeline-rank', '2')
    >>> stage_words(model("deepseek-v3"), Parallelism(pipeline=4))
    ('--pipeline-model-parallel-layout', 'Et*15|t*15|t*15|t*16mL')
    """
    if plan.layout:
        return (_LAYOUT, plan.layout)
    ends = _ENDS if plan.has_balanced_ends else ()
    counted = model.layers + len(ends)
    parts = plan.pipeline * plan.virtual_stages
    predictions = model.prediction_layers if plan.has_balanced_ends else 0  # Megatron-LM does not count these layers
    is_short = counted + predictions < parts  # no such plan: nothing to lay out
    if parts == 1 or is_short or plan.has_mirror or (counted % parts == 0 and not predictions):
        virtual_stages = ("--num-virtual-stages-per-pipeline-rank", str(plan.virtual_stages))
        return (*(virtual_stages if plan.virtual_stages > 1 else ()), *ends)
    text = layout_words(model, plan)
    if model.state_space is not None or has_apart_predictions(text, plan.pipeline):
        return None
    return (_LAYOUT, text)


def layout_words(model: Model, plan: Parallelism) -> str:
    """The cut of a plan as a layout.

    Parameters
    ----------
    model, plan : whose stages are laid out

    Raises
    ------
    ConfigError : the model cannot be cut so
    """
    stages = virtual_stages_of(model, plan)
    parts = [stages[stage][chunk] for chunk in range(plan.virtual_stages) for stage in range(plan.pipeline)]
    return "|".join(_repeated([_LETTERS[unit.part] for unit in units]) for units in parts)


def _repeated(letters: Sequence[str]) -> str:
    """Letters of a part, each run of one letter as a product: Ett is Et*2."""
    runs = [(letter, len(list(run))) for letter, run in groupby(letters)]
    return "".join(f"{letter}*{count}" if count > 1 else letter for letter, count in runs)


def has_apart_predictions(layout: str, stages: int) -> bool:
    """Whether prediction layers are where Megatron-LM does not have them.

    They have to be in one part, which is the last virtual stage of its stage and not in the first stage.

    Parameters
    ----------
    layout : of a pipeline
    stages : of the pipeline

    Examples
    --------
    >>> has_apart_predictions("Et|t|tm|mL", 2), has_apart_predictions("Et|t|t|tmmL", 2)
    (True, False)
    """
    parts = layout_parts(layout)
    places = [place for place, part in enumerate(parts) if "m" in part]
    if not places:
        return False
    is_in_front = places[0] < len(parts) - stages or (stages > 1 and places[0] == len(parts) - stages)
    return len(places) > 1 or is_in_front
