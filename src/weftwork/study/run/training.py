"""Run a scenario with training jobs on the flow engine, ask what would be if, and make the contents of its run folder.

What would be if the network were infinitely fast is simulated again, without bytes and without latency of software;
what would be without bubbles, and with all exposed communication beside computation, are sums of the run itself.
Leaves out: the folder (`weftwork.study.run.run`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.base.clock import SECOND_PS
from weftwork.engine.flow import run as flow
from weftwork.spec.job import Compute, Job, Loop, Operation
from weftwork.study.results.training_tables import job_times, training_summary, training_tables
from weftwork.study.run.engines import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from weftwork.engine.flow.outcome import FlowOutcome
    from weftwork.spec.result import Quantity
    from weftwork.study.prepare.training import PreparedTraining
    from weftwork.study.results.training_time import JobTime

__all__ = ["TrainingResult", "run_training", "training_about"]

WhatIf = tuple[str, str, int, str]  # job, case, iteration_ps, how it was found
SIMULATED: Final = "simulated again"
SUMMED: Final = "a bound by a sum"


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingResult:
    """What a run folder of training jobs holds, and how the run ended."""

    tables: Mapping[str, pa.Table]
    summary: Mapping[str, Quantity]
    facts: Mapping[str, str]
    status: str
    interrupted: bool
    digest: str


def run_training(prepared: PreparedTraining, on_progress: Callable[[Progress], None]) -> TrainingResult:
    """Run jobs and what is asked beside them.

    Parameters
    ----------
    prepared : what to run
    on_progress : called about ten times a second; may raise KeyboardInterrupt to stop the run
    """
    interrupted = False
    least_ps = _least_ps(prepared.job)

    def told(simulated_ps: int, delivered_bytes: int) -> None:
        nonlocal interrupted
        del delivered_bytes
        share = min(0.99, simulated_ps / least_ps) if least_ps else None
        try:
            on_progress(Progress(simulated_ps=simulated_ps, packet_hops=0, share=share))
        except KeyboardInterrupt:
            interrupted = True
            raise

    outcome = flow.run(prepared.plan, told, also_ideal=True)
    status = _status(prepared, outcome, is_whole=outcome.packets.complete and not interrupted)
    spent = job_times(prepared, outcome)
    what_if = _what_if(prepared, outcome, spent[1]) if status == "complete" else []
    tables = training_tables(prepared, outcome, spent, what_if=what_if)
    return TrainingResult(
        tables=tables,
        summary=training_summary(prepared, outcome, spent, tables),
        facts=outcome.facts | _bracket(prepared, outcome),
        status=status,
        interrupted=interrupted,
        digest=outcome.packets.digest(),
    )


def _status(prepared: PreparedTraining, outcome: FlowOutcome, *, is_whole: bool) -> str:
    """One word for how a run ended that nobody interrupted, see `Run.status`."""
    if not is_whole:
        return "stopped"
    marks = outcome.marks
    ends = int((marks["name"] == prepared.job.mark_names.index("iteration")).sum())
    program = outcome.actors["program"]
    wanted = sum(prepared.jobs[job].section.iterations for job in prepared.job_of_program[program].tolist())
    return "complete" if ends == wanted else "stuck"


def training_about(prepared: PreparedTraining) -> dict[str, str]:
    """What ran, in words."""
    jobs = prepared.jobs
    if len(jobs) == 1:
        job = jobs[0]
        workload = f"an iteration of {job.model.name} on {job.plan.ranks:,} GPUs ({job.words})"
    else:
        workload = f"{len(jobs)} training jobs on one fabric: {', '.join(job.name for job in jobs)}"
    policies = prepared.policies
    paths, ports = policies["path-selection"].name, policies["port-selection"].name
    shared = "bandwidth shared max-min, without congestion control, queues and flow control"
    return {
        "workload": workload,
        "transport": f"{prepared.transport.name}, paths by {paths}, ports by {ports}; {shared}",
    }


def _what_if(prepared: PreparedTraining, outcome: FlowOutcome, times: Sequence[JobTime]) -> list[WhatIf]:
    """What an iteration of each job would be in other worlds."""
    found: list[WhatIf] = []
    for index, (job, time) in enumerate(zip(prepared.jobs, times, strict=True)):
        each = job.section.iterations
        if outcome.ideal_marks is not None:
            end_ps = _end_ps(prepared, outcome, outcome.ideal_marks, index)
            found.append((job.name, "infinite network", round(end_ps / each), SIMULATED))
        if job.plan.pipeline > 1:
            found.append((job.name, "no bubble", round(time.busiest_ps / each), SUMMED))
        found.append((job.name, "perfect overlap", round(time.overlapped_ps / each), SUMMED))
    if len(prepared.jobs) > 1:
        found += _alone(prepared)
    return found


def _end_ps(prepared: PreparedTraining, outcome: FlowOutcome, marks: NDArray[np.void], job: int) -> int:
    """Instant of the last mark of a job."""
    own = prepared.job_of_program[outcome.actors["program"][marks["actor"]]] == job
    return int(marks["at_ps"][own].max(initial=0))


def _bracket(prepared: PreparedTraining, outcome: FlowOutcome) -> dict[str, str]:
    """Between which times an approximate iteration lies, as a fact."""
    if outcome.bracket_marks is None:
        return {}
    found = {}
    for index, job in enumerate(prepared.jobs):
        low, high = (
            _end_ps(prepared, outcome, marks, index) / job.section.iterations / SECOND_PS
            for marks in outcome.bracket_marks
        )
        text = f"with the paths of hashing an iteration of {job.name} takes between {low:.4g} s and {high:.4g} s"
        found[f"approximate.{job.name}"] = text
    return found


def _alone(prepared: PreparedTraining) -> list[WhatIf]:
    """Each of several jobs with the fabric to itself."""
    found: list[WhatIf] = []
    for index, job in enumerate(prepared.jobs):
        _, times = job_times(prepared, flow.run(prepared.alone(index)))
        took = times[index].end_ps - times[index].start_ps
        found.append((job.name, "alone", round(took / job.section.iterations), SIMULATED))
    return found


def _least_ps(job: Job) -> int:
    """What the busiest program computes in its main stream: no run is shorter."""

    def length(operations: tuple[Operation, ...]) -> int:
        total = 0
        for operation in operations:
            if isinstance(operation, Compute):
                total += operation.duration_ps
            elif isinstance(operation, Loop):
                total += operation.count * length(operation.body)
        return total

    return max(length(program.streams[0]) for program in job.programs)
