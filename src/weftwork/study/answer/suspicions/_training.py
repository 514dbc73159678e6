"""Jobs of a run that trains: the standing of their plans, and the run with keys of one changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weftwork.study.prepare.prepare import prepare

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.study.answer.suspect import Standing
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["job_index", "job_standing", "with_job"]


def job_index(prepared: Prepared, job: int) -> int | None:
    """The job whose time a suspect of it costs; None for the only job."""
    return job if len(prepared.jobs) > 1 else None


def job_standing(prepared: Prepared) -> Standing:
    """Standing of what the plan of a job sets: beside other jobs it is wrong in this run."""
    return "built" if prepared.scenario.workload_kind.is_single_job else "wrong"


def with_job(index: int, **changed: Any) -> Callable[[Prepared], Prepared]:  # noqa: ANN401 - keys of the section
    """The run with keys of one job changed."""

    def change(prepared: Prepared) -> Prepared:
        scenario = prepared.scenario
        section = scenario.trainings[index].model_copy(update=changed)
        return prepare(scenario.with_job(index, section), fabric=prepared.fabric)

    return change
