"""Tables and numbers of training jobs.

Iterations have them at every fidelity; parts of the time only on flows.

Leaves out: messages and links (`weftwork.study.results.record`); on flows, collectives are rows of `activities`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.clock import SECOND_PS
from weftwork.engine.flow.flow_input import FlowInput
from weftwork.spec.numbers import quantities
from weftwork.spec.result import TABLES, Quantity
from weftwork.spec.time_kinds import COMMUNICATION, COMPUTATION, TIME_KINDS
from weftwork.study.prepare.training import gpu_numbers
from weftwork.study.results.goodput import over_weeks
from weftwork.study.results.measure import taken_ps
from weftwork.study.results.memory_margin import memory_numbers
from weftwork.study.results.record import words
from weftwork.study.results.training_time import job_time, segments_of, with_tails
from weftwork.study.run.ending import are_iterations_done, job_of_rank
from weftwork.workload.training.turns import PASSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from weftwork.engine.flow.outcome import FlowOutcome
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.prepare.training import TrainingJob
    from weftwork.study.results.training_time import JobTime, Segments
    from weftwork.study.run.execute import Execution

    TimesOfJobs = tuple[Segments, list[JobTime]]

__all__ = ["bracket_caveats", "job_times", "training_rows", "training_summary"]

MOST_SEGMENTS: Final = 300_000  # chosen: some megabytes; beyond, one rank stands for its stage
_COUNTED: Final = ("ranks", "instances", "flows", "size_bytes", "posted_ps", "start_ps", "end_ps")
_OF_A_BATCH: Final = ("forward", "backward", "weights")  # passes that work on a micro batch
SIMULATED: Final = "simulated again"
BUSIEST: Final = "a bound: the busiest GPU works as long"
LONGER: Final = "a bound: the longer of computing and communicating stays, with the bubble"


def job_times(prepared: Prepared, outcome: FlowOutcome) -> TimesOfJobs:
    """Parts of the time of each job: segments and their sums.

    Parameters
    ----------
    prepared : what was run
    outcome : of it
    """
    job = prepared.job_of_program[outcome.actors["program"]]
    has_pipeline = [one.plan.pipeline > 1 for one in prepared.jobs]
    found = segments_of(outcome, prepared.job.labels)
    segments = with_tails(found, job=job, has_pipeline=has_pipeline, passed_ps=_passed_ps(prepared, outcome, found))
    by_pass = _by_pass(prepared, outcome, segments)
    return segments, [
        job_time(
            by_pass,
            actors=(own := np.flatnonzero(job == index)),
            ranks=outcome.actors["ranks"][own],
            stage=prepared.stage_of_program[outcome.actors["program"][own]],
        )
        for index in range(len(prepared.jobs))
    ]


def _by_pass(prepared: Prepared, outcome: FlowOutcome, segments: Segments) -> Segments:
    """Segments with computing by pass: one of `_OF_A_BATCH`, or ``other``."""
    kinds = (*segments.kinds, *_OF_A_BATCH)
    of_pass = np.full(len(PASSES), kinds.index("other"), np.int64)
    for name in _OF_A_BATCH:
        of_pass[PASSES.index(name)] = kinds.index(name)
    found = _pass_of(prepared, outcome.actors["program"][segments.actor], segments.milestone)
    is_computing = segments.kind == kinds.index("compute")
    return replace(segments, kind=np.where(is_computing, of_pass[found], segments.kind), kinds=kinds)


def _passed_ps(prepared: Prepared, outcome: FlowOutcome, segments: Segments) -> NDArray[np.int64]:
    """Instants at which each actor ended its last pass of a micro batch."""
    program = outcome.actors["program"][segments.actor]
    of_pass = np.isin(_pass_of(prepared, program, segments.milestone), [PASSES.index(name) for name in _OF_A_BATCH])
    passed_ps = np.zeros(len(outcome.actors), np.int64)
    np.maximum.at(passed_ps, segments.actor[of_pass], segments.end_ps[of_pass])
    return passed_ps


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseRun:
    """A world that one can buy, as it was simulated.

    Attributes
    ----------
    case : of the table ``what_if``; empty for a world that nobody can buy, such as the run without a fault
    job : index of the job that it is about; None: all of them
    prepared, execution : of the world
    """

    case: str
    job: int | None
    prepared: Prepared
    execution: Execution


def training_rows(
    prepared: Prepared, execution: Execution, spent: TimesOfJobs | None, cases: Sequence[CaseRun] = ()
) -> dict[str, dict[str, Any]]:
    """Columns of the tables about training.

    Only tables of `weftwork.spec.result` that the run has.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    spent : of `job_times`; None where the engine does not tell where time goes
    cases : what one can buy, as it was simulated
    """
    if not prepared.scenario.workload_kind.is_training:
        return {}
    plan = prepared.engine_input
    if spent is None or execution.flows is None or not isinstance(plan, FlowInput):
        return {"jobs": _jobs(prepared, execution, None), "what_if": _what_if_columns(prepared, execution, (), cases)}
    segments, times = spent
    return {
        "segments": _segments(prepared, plan, execution.flows, segments, times),
        "activities": _activities(prepared, plan, execution.flows),
        "tiers": _tiers(plan, execution.flows),
        "jobs": _jobs(prepared, execution, times),
        "what_if": _what_if_columns(prepared, execution, times, cases),
    }


def training_summary(
    prepared: Prepared, spent: TimesOfJobs | None, tables: Mapping[str, pa.Table]
) -> dict[str, Quantity]:
    """Make the numbers of training jobs.

    Names of the first job have no prefix, names of others the job's name.

    What an engine does not tell has no value. Parameters are those of `training_rows`, and the tables made of them.
    """
    found: dict[str, Quantity] = {}
    for place, (job, row) in enumerate(zip(prepared.jobs, tables["jobs"].to_pylist(), strict=True)):
        lead = f"{job.name}." if place else ""
        for name in ("iteration_ps", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "model_flops", "compute_ps",
                     "exposed_ps", "bubble_ps", "exposed_share", "bubble_share", "memory_bytes",
                     "memory_share", "memory_likely_share"):  # fmt: skip
            found |= quantities(name, row[name], lead=lead)
        time = None if spent is None else spent[1][place]
        found |= {f"{lead}{name}": number for name, number in _spent(job, time, row["iteration_ps"]).items()}
        if job.plan.has_lora:
            found |= quantities("trained_parameters", job.trained_parameters, lead=lead)
        if prepared.scenario.reliability is not None and row["iteration_ps"] is not None:
            found |= {f"{lead}{name}": number for name, number in over_weeks(prepared, job, row).items()}
    return found


def _spent(job: TrainingJob, time: JobTime | None, iteration_ps: int | None) -> dict[str, Quantity]:
    """Time of a job's average rank by kind and in groups.

    None if the engine does not record it.
    """
    found: dict[str, Quantity] = {}
    each: dict[str, float] = {}
    if time is not None:
        each = {kind: value / job.section.iterations for kind, value in time.by_kind_ps.items()}
    for kind, time_kind in TIME_KINDS.items():
        if kind == "bubble":  # which the table jobs has
            continue
        if kind == "offload" and not job.plan.offloaded_layers:
            continue
        if kind == "weights" and not job.plan.has_split_backward:  # they are a part of its backward passes
            continue
        known = time is not None
        found |= quantities(f"{time_kind.number}_ps", round(each.get(kind, 0.0)) if known else None)
        share = each.get(kind, 0.0) / iteration_ps if known and iteration_ps else None
        found |= quantities(f"{time_kind.number}_share", share)
    for name, kinds in (("computing_share", COMPUTATION), ("waiting_share", ("skew",))):
        total = sum(each.get(kind, 0.0) for kind in kinds)
        found |= quantities(name, total / iteration_ps if time is not None and iteration_ps else None)
    return found


def _what_if_columns(
    prepared: Prepared, execution: Execution, times: Sequence[JobTime], cases: Sequence[CaseRun]
) -> dict[str, list[Any]]:
    rows = _what_if(prepared, execution, times, cases)
    return {column.name: [row[place] for row in rows] for place, column in enumerate(TABLES["what_if"])}


def _what_if(
    prepared: Prepared, execution: Execution, times: Sequence[JobTime], cases: Sequence[CaseRun]
) -> list[tuple[str, str, int, str]]:
    """What-if times of each job: job, case, iteration_ps, and method."""
    found: list[tuple[str, str, int, str]] = []
    if execution.interrupted:
        return found
    for world in cases:
        if not world.case or (took_ps := taken_ps(world.prepared, world.execution)) is None:
            continue
        found += [
            (job.name, world.case, took_ps[index], SIMULATED)
            for index, job in enumerate(prepared.jobs)
            if world.job in {None, index}
        ]
    if not are_iterations_done(prepared, execution).all():
        return found
    for job, time in zip(prepared.jobs, times, strict=False):
        each = job.section.iterations
        if job.plan.pipeline > 1:
            found.append((job.name, "no bubble", round(time.busiest_ps / each), BUSIEST))
        found.append((job.name, "perfect overlap", round(time.overlapped_ps / each), LONGER))
    order = {job.name: place for place, job in enumerate(prepared.jobs)}
    return sorted(found, key=lambda row: order[row[0]])


def _last_milestone_ps(prepared: Prepared, execution: Execution, job: int) -> int:
    """Instant of a job's last milestone."""
    milestones = execution.outcome.milestones
    return int(milestones["at_ps"][job_of_rank(prepared)[milestones["rank"]] == job].max(initial=0))


def bracket_caveats(prepared: Prepared, execution: Execution) -> dict[str, Caveat]:
    """Bounds of approximate iterations, by ``job.iteration_ps``.

    Empty if no iteration is approximate.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    """
    flows = execution.flows
    if flows is None or flows.bracket_milestones is None:
        return {}
    found = []
    job_of_actor = job_of_rank(prepared)[flows.actors["rank"]]
    for index, job in enumerate(prepared.jobs):
        low, high = (
            int(milestones["at_ps"][job_of_actor[milestones["actor"]] == index].max(initial=0)) / job.section.iterations
            for milestones in flows.bracket_milestones
        )
        took = f"between {low / SECOND_PS:.4g} s and {high / SECOND_PS:.4g} s"
        text = f"{took} an iteration, with the paths of hashing"
        found.append(Caveat(subject=f"{job.name}.iteration_ps", kind="approximate", text=text))
    return caveats_by_subject(found)


def _segments(
    prepared: Prepared, plan: FlowInput, outcome: FlowOutcome, segments: Segments, times: Sequence[JobTime]
) -> dict[str, Any]:
    actors = outcome.actors
    program = actors["program"]
    ranks = actors["ranks"].copy()
    kept = np.ones(len(segments.actor), np.bool_)
    if len(kept) > MOST_SEGMENTS:
        chosen = np.array(sorted(actor for time in times for actor in time.slowest.values()), np.int64)
        kept = np.isin(segments.actor, chosen)
        where = prepared.job_of_program[program] * len(program) + prepared.stage_of_program[program]
        ranks[chosen] = [int(actors["ranks"][where == where[actor]].sum()) for actor in chosen.tolist()]
    actor, milestone = segments.actor[kept], segments.milestone[kept]
    about = _passes(prepared, program[actor], milestone)
    first = plan.program_first_rank[program[actor]]
    return {
        "job": words([job.name for job in prepared.jobs], prepared.job_of_program[program[actor]]),
        "stage": prepared.stage_of_program[program[actor]],
        "rank": actors["rank"][actor] - first,
        "ranks": ranks[actor],
        "gpu": gpu_numbers(prepared.fabric, prepared.job.placement)[actors["rank"][actor]],
        **about,
        "kind": words(segments.kinds, segments.kind[kept]),
        "start_ps": segments.start_ps[kept],
        "end_ps": segments.end_ps[kept],
    }


def _pass_of(prepared: Prepared, program: NDArray[np.int64], milestone: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pass of each segment, an index into `PASSES`."""
    found = np.full(len(milestone), PASSES.index("update"), np.int64)
    for index in np.unique(program).tolist():
        passes = prepared.passes(index)
        own = np.flatnonzero((program == index) & (milestone >= 0) & (milestone < len(passes)))
        found[own] = passes["pass"][milestone[own]]
    return found


def _passes(prepared: Prepared, program: NDArray[np.int64], milestone: NDArray[np.int64]) -> dict[str, Any]:
    """Pass, micro batch and virtual stage of each segment.

    They follow from its program and the milestones behind it.
    """
    micro_batch = np.full(len(milestone), -1, np.int64)
    virtual_stage = np.full(len(milestone), -1, np.int64)
    for index in np.unique(program).tolist():
        passes = prepared.passes(index)
        own = np.flatnonzero(program == index)
        own = own[(milestone[own] >= 0) & (milestone[own] < len(passes))]
        micro_batch[own] = passes["micro_batch"][milestone[own]]
        virtual_stage[own] = passes["virtual_stage"][milestone[own]]
    return {
        "micro_batch": micro_batch,
        "virtual_stage": virtual_stage,
        "pass": words(PASSES, _pass_of(prepared, program, milestone)),
    }


def _activities(prepared: Prepared, plan: FlowInput, outcome: FlowOutcome) -> dict[str, Any]:
    found = outcome.activities
    job = prepared.job_of_program[outcome.actors["program"][found["actor"]]]
    return {
        "job": words([one.name for one in prepared.jobs], job),
        "kind": words([*prepared.job.labels, "other"], found["label"] % (len(prepared.job.labels) + 1)),
        "operation": words([*plan.operations, "send"], found["operation"] % (len(plan.operations) + 1)),
        **{name: found[name] for name in _COUNTED},
    }


def _tiers(plan: FlowInput, outcome: FlowOutcome) -> dict[str, Any]:
    found = outcome.tiers
    entropy = found["entropy"]
    return {
        "start_ps": found["start_ps"],
        "at_ps": found["at_ps"],
        "tier": words(plan.tier_names, found["tier"]),
        "bytes": found["bytes"],
        "flows": found["flows"],
        "entropy": [None if np.isnan(value) else value for value in entropy.tolist()],
    }


def _jobs(prepared: Prepared, execution: Execution, times: Sequence[JobTime] | None) -> dict[str, Any]:
    is_done = are_iterations_done(prepared, execution).tolist()
    rows = []
    for index, job in enumerate(prepared.jobs):
        time = None if times is None else times[index]
        end_ps = _last_milestone_ps(prepared, execution, index) if time is None else time.end_ps - time.start_ps
        took_ps = round(end_ps / job.section.iterations) if is_done[index] else 0
        rows.append(_job_row(job, time, took_ps or None))
    return {column.name: [row[column.name] for row in rows] for column in TABLES["jobs"]}


def _job_row(job: TrainingJob, time: JobTime | None, iteration_ps: int | None) -> dict[str, Any]:
    """One job as a row.

    Rates are missing for an unfinished run, and parts of the time for packets.
    """
    plan, iterations = job.plan, job.section.iterations
    tokens = plan.global_batch * plan.sequence
    row: dict[str, Any] = {
        "job": job.name,
        "model": job.model.name,
        "plan": job.words,
        "gpus": plan.ranks,
        "start_ps": 0 if time is None else time.start_ps,  # all jobs begin with the run
        "iteration_ps": iteration_ps,
        "tokens": tokens,
        "model_flops": job.model_flops,
        **memory_numbers(job),
        **dict.fromkeys(("tokens_per_s", "tokens_per_s_per_gpu", "mfu", "compute_ps", "exposed_ps", "bubble_ps",
                         "exposed_share", "bubble_share")),
    }  # fmt: skip
    if iteration_ps is not None:
        row["tokens_per_s"] = tokens * SECOND_PS / iteration_ps
        row["tokens_per_s_per_gpu"] = tokens * SECOND_PS / iteration_ps / plan.ranks
        row["mfu"] = job.model_flops * SECOND_PS / iteration_ps / (plan.ranks * job.peak_flops)
    if time is not None:
        spent = {kind: value / iterations for kind, value in time.by_kind_ps.items()}
        exposed, bubble = sum(spent.get(kind, 0.0) for kind in COMMUNICATION), spent.get("bubble", 0.0)
        row["compute_ps"] = round(sum(spent.get(kind, 0.0) for kind in COMPUTATION))
        row["exposed_ps"], row["bubble_ps"] = round(exposed), round(bubble)
        if iteration_ps is not None:
            row["exposed_share"], row["bubble_share"] = exposed / iteration_ps, bubble / iteration_ps
    return row
