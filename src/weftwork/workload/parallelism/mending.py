"""What mends a plan that needs too much memory, by the part of the memory that exceeds.

Weights, gradients and Adam's state do not depend on batch, sequence and recomputation: where they alone exceed, only
degrees, ZeRO, GPUs and model help. Otherwise activations exceed, and recomputation, the micro batch, context ranks and
the sequence help too. The global batch is never proposed: it decides what is learnt, and a pipeline keeps no more
micro batches for a larger one.
Leaves out: offloading.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.workload.models.size import parameters
from weftwork.workload.parallelism.memory import RESERVED_BYTES, WEIGHT_BYTES, Memory, adam_bytes, gradient_bytes
from weftwork.workload.parallelism.refuse import PlanLimits, exceeding_part, nearest_plan, settings

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from weftwork.spec.training import Parallelism

__all__ = ["least_gpus", "mended_by"]

_FOLLOWS: Final = frozenset({"data", "has_prefetch"})  # keys that a search derives from the others


def mended_by(given: PlanLimits, plan: Parallelism, memory: Memory, *, fixed: AbstractSet[str] = frozenset()) -> str:
    """What a search for plans can be given so that one of them fits, in words.

    Parameters
    ----------
    given : the limits that the plan exceeds
    plan, memory : the plan that needs least, and what it needs
    fixed : keys of ``training`` that the search may not change
    """
    limit_bytes = given.limit_bytes or 0
    part = exceeding_part(memory, limit_bytes)
    near = nearest_plan(given, plan)
    if near is not None:
        changed = {key for key in type(plan).model_fields if getattr(plan, key) != getattr(near, key)} - _FOLLOWS
        kept = changed & fixed or changed
        words = settings(plan, plan.model_copy(update={key: getattr(near, key) for key in kept}))
        return f"{part}; {words} makes one fit"
    if memory.states_bytes + memory.reserved_bytes > limit_bytes:
        return f"{part}; take at least {plural(least_gpus(given, plan), 'GPU')}, or a smaller model"
    return f"{part}; take more GPUs, a smaller model, or less of training.sequence"


def least_gpus(given: PlanLimits, plan: Parallelism) -> int:
    """GPUs that hold weights, gradients and Adam's state if all of these are spread evenly; more than there are."""
    counted = parameters(given.model)
    each = WEIGHT_BYTES + (0 if plan.has_lora else gradient_bytes(plan) + adam_bytes(plan))
    free_bytes = (given.limit_bytes or 0) - RESERVED_BYTES
    least = ceil(each * (counted.total + counted.prediction) / free_bytes) if free_bytes > 0 else 0
    return max(least, given.gpus + 1)
