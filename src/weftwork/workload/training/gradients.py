"""Trained parameters of a unit, and the calls that add their gradients and gather parameters.

With LoRA the trained parameters are those of adapters, and ZeRO 3 gathers the frozen weights too.
Leaves out: when a program does these calls (`weftwork.workload.training.programs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weftwork.spec.training import Model, Parallelism
    from weftwork.workload.parallelism.layout import Unit
    from weftwork.workload.training.communication import TimedCollective
    from weftwork.workload.training.stage import UnitOperations

__all__ = ["data_calls", "tied_bytes", "trained_parameters"]


def tied_bytes(model: Model, plan: Parallelism) -> int:
    """Gradient bytes of a table that first and last stage both hold; 0 where they do not."""
    if not model.has_tied_embeddings or plan.has_lora or plan.has_both_ends:
        return 0
    return model.vocabulary * model.hidden // plan.tensor * plan.gradient_bytes


def data_calls(units: UnitOperations, unit: Unit) -> tuple[tuple[TimedCollective, ...], tuple[TimedCollective, ...]]:
    """Calls that gather a unit's parameters, and calls that add its gradients.

    ZeRO 3 gathers frozen weights too.
    """
    plan, calls = units.plan, units.communication
    sizes = trained_parameters(units, unit)
    gathered = sizes
    if plan.has_lora and plan.zero == 3:
        work = units.work[unit]
        gathered = work.parameters + work.adapter_parameters, work.expert_parameters
    return () if plan.zero == 0 else calls.parameters(*gathered), calls.gradients(*sizes)


def trained_parameters(units: UnitOperations, unit: Unit) -> tuple[float, float]:
    """Trained parameters of a unit on a rank, experts apart."""
    work = units.work[unit]
    if units.plan.has_lora:
        return work.adapter_parameters, 0.0
    return work.parameters, work.expert_parameters
