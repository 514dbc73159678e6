"""How a run ended: whether it is complete, and its status.

Leaves out: what was found on the way (`weftwork.study.results.results`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.engine.rows.waits import WAIT_KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["actor_ranks", "are_iterations_done", "is_done", "job_of_rank", "status"]

_OF_OTHERS: Final = [WAIT_KINDS.index(kind) for kind in ("receive", "token", "collective")]
ITERATION: Final = "iteration"  # of `weftwork.workload.training.programs.MILESTONES`


def status(prepared: Prepared, execution: Execution) -> str:
    """Status of a run: the name of its ending in `weftwork.spec.endings.ENDINGS`.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    """
    if execution.interrupted:
        return "interrupted"
    if is_done(prepared, execution):
        return "complete"  # also where engine.until cut the last acknowledgements off
    if len(execution.outcome.deadlock):
        return "deadlocked"
    if execution.outcome.counters.get("queue_pair_errors", 0):
        return "gave-up"
    return "stuck" if execution.outcome.complete else "stopped"


def is_done(prepared: Prepared, execution: Execution) -> bool:
    """Whether every message has arrived and every iteration has ended.

    Messages count only where an engine keeps single ones.

    Without iterations nobody may wait for a message that was never sent, or for another stream, either.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    """
    if prepared.volume is not None:
        delivered = int((execution.outcome.messages["delivered_at_ps"] >= 0).sum())
        if delivered != prepared.volume.messages:
            return False
    if not prepared.scenario.workload_kind.is_training and np.isin(execution.outcome.waits["kind"], _OF_OTHERS).any():
        return False
    return bool(are_iterations_done(prepared, execution).all())


def are_iterations_done(prepared: Prepared, execution: Execution) -> NDArray[np.bool_]:
    """Whether all iterations of each job have ended on its ranks; shape (jobs,).

    Parameters
    ----------
    prepared : what was run
    execution : of it
    """
    jobs = len(prepared.jobs)
    if not jobs:
        return np.empty(0, np.bool_)
    job_of = job_of_rank(prepared)
    milestones = execution.outcome.milestones
    ended = milestones["rank"][milestones["name"] == prepared.job.milestone_names.index(ITERATION)]
    wanted = np.bincount(job_of[actor_ranks(prepared, execution)], minlength=jobs)
    wanted *= np.array([job.section.iterations for job in prepared.jobs])
    wanted[_idle_jobs(prepared)] = 0
    return np.asarray(np.bincount(job_of[ended], minlength=jobs) == wanted)


def _idle_jobs(prepared: Prepared) -> list[int]:
    """Jobs with idle ranks, when one job is run alone."""
    busy = {
        int(job)
        for job, program in zip(prepared.job_of_program, prepared.job.programs, strict=True)
        if any(program.streams)
    }
    return [job for job in range(len(prepared.jobs)) if job not in busy]


def job_of_rank(prepared: Prepared) -> NDArray[np.int64]:
    """Index of the training job of each rank; shape (ranks,)."""
    return np.asarray(prepared.job_of_program[prepared.job.rank_program])


def actor_ranks(prepared: Prepared, execution: Execution) -> NDArray[np.int64]:
    """The ranks that ran; shape (actors,).

    If ranks are folded, one of each group of identical ranks.
    """
    if execution.flows is None:
        return np.arange(prepared.job.ranks)
    return np.asarray(execution.flows.actors["rank"])
