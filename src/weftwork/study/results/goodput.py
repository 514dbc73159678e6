"""Goodput of a training job over weeks with failures.

It follows from the iteration time of a run.

Source: `weftwork.workload.reliability`, which has the formula. Leaves out: how an iteration is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weftwork.base.clock import SECOND_PS
from weftwork.workload.reliability import goodput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.spec.result import Quantity
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.prepare.training import TrainingJob

__all__ = ["over_weeks"]


def over_weeks(prepared: Prepared, job: TrainingJob, row: Mapping[str, Any]) -> dict[str, Quantity]:
    """Goodput over weeks as numbers of the summary.

    Empty if the scenario does not ask for it.

    Parameters
    ----------
    prepared : what was run
    job : one of its training jobs
    row : of the job in the table ``jobs``, whose iteration has ended
    """
    section = prepared.scenario.reliability
    if section is None:
        return {}
    saved = job.section.checkpoint
    iterations = job.section.iterations
    written = 0 if saved is None else iterations // saved.every
    iteration_ps = row["iteration_ps"] - job.checkpoint_ps * written / iterations  # goodput counts checkpoints itself
    iteration_s = iteration_ps / SECOND_PS
    found = goodput(
        section,
        gpus=job.plan.ranks,
        iteration_s=iteration_s,
        checkpoint_every_s=None if saved is None else saved.every * iteration_s,
        checkpoint_cost_s=None if saved is None else job.checkpoint_ps / SECOND_PS,
        seed=prepared.scenario.engine.seed,
    )
    return found.quantities(row["tokens"] / iteration_s)
