"""What Megatron-LM can run of the keys of ``training``: the one table for its plans and for its arguments.

Source: NVIDIA/Megatron-LM, megatron/training/arguments.py (commit 000c4ac2), and the sources at each row.
Leaves out: how a plan is written (`weftwork.workload.imports.megatron_write`).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.workload.imports.megatron_stages import has_apart_predictions, stage_words
from weftwork.workload.parallelism.abilities import Ability, Exclusion
from weftwork.workload.parallelism.plan_columns import shared_answers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from weftwork.spec.training import Model, Parallelism
    from weftwork.workload.parallelism.plan_columns import PlanColumns

__all__ = ["ABILITIES", "EXCLUSIONS", "lacking"]

_ARGUMENTS: Final = "NVIDIA/Megatron-LM, megatron/training/arguments.py"
_GUIDE: Final = "docs.nvidia.com/megatron-core, 0.18.1, user-guide/parallelism-guide"
_CONFIG: Final = "NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py"
_ENGINE: Final = "NVIDIA/TransformerEngine, pytorch/attention/dot_product_attention/context_parallel.py"
_LAYOUT: Final = "NVIDIA/Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py"
_ORDER: Final = "tp-cp-dp-pp"

ABILITIES: Final[Mapping[str, Ability]] = MappingProxyType(
    {
        "schedule": Ability(
            values=("1f1b",),
            source="NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/schedules.py",
            note="Megatron-LM has 1F1B alone, plain and interleaved",
        ),
        "zero": Ability(
            values=(0, 1, 2, 3),
            source=_GUIDE,
            note="--use-distributed-optimizer is 1, --data-parallel-sharding-strategy of Megatron-FSDP 2 and 3",
        ),
        "order": Ability(
            values=(_ORDER, "tp-cp-pp-dp"), source=_ARGUMENTS, note="the second is --use-tp-pp-dp-mapping"
        ),
        "recompute": Ability(
            values=("none", "selective", "full"),
            source=_ARGUMENTS,
            note="Megatron-LM computes modules again (--recompute-granularity), not operations",
            instead="selective",
        ),
        "recompute_every": Ability(
            values=(1,), source=_ARGUMENTS, note="Megatron-LM counts the layers of a stage that it computes again"
        ),
        "gradients": Ability(
            values=("fp32", "bf16"),
            source=_ARGUMENTS,
            note="the copy in BF16 is DeepSpeed's; Megatron-LM keeps the sum in FP32 alone",
        ),
        "phase": Ability(
            values=("pre-training", "long-context"),
            source=_ARGUMENTS,
            note="NeMo's adapters are no arguments of Megatron-LM",
        ),
    }
)


def _is_sharded_across_stages(_: Model, plans: PlanColumns) -> NDArray[np.bool_]:
    excluded: NDArray[np.bool_] = (plans.column("zero") > 1) & plans.is_word("order", "tp-cp-pp-dp")
    return excluded


def _gathers_late(_: Model, plans: PlanColumns) -> NDArray[np.bool_]:
    excluded: NDArray[np.bool_] = (plans.column("zero") == 3) & (not plans.prefetches)
    return excluded


def _has_no_words(model: Model, plans: PlanColumns) -> NDArray[np.bool_]:
    def answer(place: int) -> bool:
        return stage_words(model, plans.plan(place)) is None

    answers, which = shared_answers(plans.by(("pipeline", "virtual_stages", "has_balanced_ends")), {}, answer)
    return np.array(answers, bool)[which] if answers else np.zeros(0, bool)


def _parts_predictions(_: Model, plans: PlanColumns) -> NDArray[np.bool_]:
    def answer(place: int) -> bool:
        plan = plans.plan(place)
        return bool(plan.layout) and has_apart_predictions(plan.layout, plan.pipeline)

    answers, which = shared_answers(plans.by(("pipeline",)), {}, answer)
    return np.array(answers, bool)[which] if answers else np.zeros(0, bool)


def _parts_key_heads(model: Model, plans: PlanColumns) -> NDArray[np.bool_]:
    if plans.base.context_exchange == "ring" or model.latent_attention is not None:
        return np.zeros(len(plans), bool)
    excluded: NDArray[np.bool_] = model.key_value_heads % (plans.column("tensor") * plans.column("context")) != 0
    return excluded & (plans.column("context") > 1)


def _divided_stages(model: Model, plan: Parallelism) -> Mapping[str, Any]:
    """The most virtual stages below those of a plan, else the most stages, that Megatron-LM can write."""
    for virtual_stages in range(plan.virtual_stages, 0, -1):
        for has_ends in dict.fromkeys((plan.has_balanced_ends, False)):
            other = plan.model_copy(update={"virtual_stages": virtual_stages, "has_balanced_ends": has_ends})
            if stage_words(model, other) is not None:
                return {"virtual_stages": virtual_stages, "balanced_ends": has_ends}
    divisors = [stages for stages in range(1, plan.pipeline) if model.layers % stages == 0]
    return {"pipeline": divisors[-1], "virtual_stages": 1, "balanced_ends": False}


EXCLUSIONS: Final = (
    Exclusion(
        keys=("context_exchange", "context", "tensor"),
        text="Transformer Engine exchanges heads of keys and values in whole parts alone, without copies: tensor x"
        " context divides them",
        source=f"{_ENGINE} (AttnFuncWithCPAndQKVOA2A, commit 015d2257)",
        holds=_parts_key_heads,
        remedy=lambda _model, _plan: {"context_exchange": "ring"},
    ),
    Exclusion(
        keys=("order", "zero"),
        text=f"Megatron-FSDP, which ZeRO 2 and 3 are, has the order {_ORDER} alone",
        source="docs.nvidia.com/nemo/megatron-bridge, skills/perf-techniques/megatron-fsdp (validation)",
        holds=_is_sharded_across_stages,
        remedy=lambda _model, _plan: {"order": _ORDER},
    ),
    Exclusion(
        keys=("prefetch", "zero"),
        text="Megatron-FSDP, which ZeRO 3 is, gathers the next weights ahead by itself",
        source="NVIDIA/Megatron-LM, megatron/core/distributed/fsdp; unverified that no argument stops it",
        holds=_gathers_late,
        remedy=lambda _model, _plan: {"prefetch": True},
    ),
    Exclusion(
        keys=("pipeline", "virtual_stages", "balanced_ends"),
        text="layers of a hybrid model have to divide by all virtual stages, and prediction layers stay together in one"
        " of the last",
        source=f"{_CONFIG} (__post_init__); {_LAYOUT} (validate_layer_layout); unverified that a layout cannot cut a"
        " hybrid model",
        holds=_has_no_words,
        remedy=_divided_stages,
    ),
    Exclusion(
        keys=("layout", "pipeline"),
        text="all prediction layers (m) stay together in one of the last virtual stages",
        source=f"{_LAYOUT} (validate_layer_layout)",
        holds=_parts_predictions,
        remedy=lambda _model, _plan: {"layout": None},
    ),
)


def lacking(model: Model, plan: Parallelism, values: Mapping[str, Any]) -> dict[str, str]:
    """Keys of a plan that Megatron-LM cannot run, each with the reason.

    Parameters
    ----------
    model, plan : that are to run
    values : of keys of ``training``

    Examples
    --------
    >>> from weftwork.workload.models.catalogue import model
    >>> from weftwork.spec.training import Parallelism
    >>> lacking(model("llama-3-8b"), Parallelism(), {"schedule": "gpipe", "zero": 1})
    {'schedule': 'Megatron-LM has 1F1B alone, plain and interleaved'}
    """
    reasons = {
        key: ability.note for key, ability in ABILITIES.items() if key in values and not ability.has(values[key])
    }
    if plan.schedule != "1f1b":  # its stages may be cut in other ways
        return reasons
    for exclusion in EXCLUSIONS:
        if exclusion.excludes(model, plan):
            reasons.setdefault(exclusion.keys[0], exclusion.text)
    return reasons
