"""The assumptions of a training job's answer in one line.

Leaves out: figures of devices and software, which are caveats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.spec.fidelities import FIDELITIES

if TYPE_CHECKING:
    from weftwork.spec.training import Parallelism
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["assumptions"]

_ZERO: Final = {
    0: "optimizer not sharded",
    1: "optimizer sharded (ZeRO 1)",
    2: "optimizer and gradients sharded (ZeRO 2)",
    3: "optimizer, gradients and weights sharded (ZeRO 3)",
}
_SCHEDULES: Final = {"gpipe": "GPipe", "1f1b": "1F1B", "zb-h1": "ZB-H1", "dualpipe": "DualPipe"}
_SUMS: Final = {1: "FP8", 2: "BF16", 4: "FP32"}  # bytes of a gradient


def assumptions(prepared: Prepared) -> str:
    """Overlap, schedule, gradients, sharding and collectives in words.

    Several jobs are described by the first, with the names of those that differ.

    Parameters
    ----------
    prepared : a run of training jobs
    """
    told = [_of(job.plan) for job in prepared.jobs]
    differ = [job.name for job, text in zip(prepared.jobs, told, strict=True) if text != told[0]]
    who = f" ({prepared.jobs[0].name}; {', '.join(differ)} otherwise)" if differ else ""
    collectives = "collectives as NCCL chooses"
    if not FIDELITIES[prepared.scenario.engine.fidelity].has_collectives:
        collectives = "collectives as rings and direct exchanges, never hidden"
    return f"{told[0]}{who}; {collectives}"


def _of(plan: Parallelism) -> str:
    schedule = _SCHEDULES[plan.schedule]
    if plan.virtual_stages > 1:
        schedule = f"interleaved {schedule}"
    copy = " and a copy in BF16" if plan.has_gradient_copy else ""
    return "; ".join([
        f"overlap {_overlap(plan)}",
        *([schedule] if plan.pipeline > 1 else []),
        f"{_SUMS.get(plan.gradient_bytes, f'{plan.gradient_bytes}-byte')} gradients{copy}",
        _ZERO[plan.zero],
    ])  # fmt: skip


def _overlap(plan: Parallelism) -> str:
    """Overlap shares of the plan's kinds of communication.

    A kind with a degree of 1 has none.
    """
    degrees = {
        "tensor": plan.tensor,
        "context": plan.context,
        "expert": plan.expert,
        "pipeline": plan.pipeline,
        "data": plan.data,
    }
    told = [f"{kind} {100 * getattr(plan.overlap, kind):g} %" for kind, degree in degrees.items() if degree > 1]
    return ", ".join(told) if told else "nothing to hide"
