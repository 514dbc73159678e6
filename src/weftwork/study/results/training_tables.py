"""The tables and the summary of a run of training jobs, from what the flow engine gives back.

Leaves out: flows and queues; whole collectives are told in the table `activities`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.spec.result import TABLES, Quantity
from weftwork.study.results.record import port_names, table
from weftwork.study.results.record_ways import node_rows
from weftwork.study.results.training_time import COMMUNICATION, COMPUTATION, job_time, segments_of, with_tails
from weftwork.workload.models.size import model_flops_per_token
from weftwork.workload.reliability import goodput
from weftwork.workload.training.programs import PASSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from weftwork.engine.flow.outcome import FlowOutcome
    from weftwork.study.prepare.training import PreparedTraining, TrainingJob
    from weftwork.study.results.training_time import JobTime, Segments

    TimesOfJobs = tuple[Segments, list[JobTime]]

__all__ = ["MOST_LINKS", "job_times", "training_summary", "training_tables"]

MOST_SEGMENTS: Final = 300_000  # chosen: some megabytes; beyond, one rank stands for its stage
MOST_LINKS: Final = 100_000  # chosen: as that; beyond, the busiest are kept
KEPT_LINKS: Final = 2_000
_COUNTED: Final = ("ranks", "instances", "flows", "size_bytes", "posted_ps", "start_ps", "end_ps")
LORA_SHARE: Final = 2 / 3  # forward and data gradients; weights have none


def job_times(prepared: PreparedTraining, outcome: FlowOutcome) -> TimesOfJobs:
    """Where the time of each job went: the segments of all, and the sums of each.

    Parameters
    ----------
    prepared : what was run
    outcome : of it
    """
    job = prepared.job_of_program[outcome.actors["program"]]
    has_pipeline = [one.plan.pipeline > 1 for one in prepared.jobs]
    found = segments_of(outcome, prepared.job.labels)
    segments = with_tails(found, job=job, has_pipeline=has_pipeline, passed_ps=_passed_ps(prepared, outcome, found))
    return segments, [
        job_time(
            segments,
            actors=(own := np.flatnonzero(job == index)),
            ranks=outcome.actors["ranks"][own],
            stage=prepared.stage_of_program[outcome.actors["program"][own]],
        )
        for index in range(len(prepared.jobs))
    ]


def _passed_ps(prepared: PreparedTraining, outcome: FlowOutcome, segments: Segments) -> NDArray[np.int64]:
    """When each actor ended its last forward or backward pass."""
    program = outcome.actors["program"][segments.actor]
    of_pass = np.zeros(len(program), np.bool_)
    for index in np.unique(program).tolist():
        is_pass = np.isin(prepared.passes(index)["pass"], (PASSES.index("forward"), PASSES.index("backward")))
        own = np.flatnonzero((program == index) & (segments.mark >= 0) & (segments.mark < len(is_pass)))
        of_pass[own] = is_pass[segments.mark[own]]
    passed_ps = np.zeros(len(outcome.actors), np.int64)
    np.maximum.at(passed_ps, segments.actor[of_pass], segments.end_ps[of_pass])
    return passed_ps


def training_tables(
    prepared: PreparedTraining,
    outcome: FlowOutcome,
    spent: TimesOfJobs,
    *,
    what_if: Sequence[tuple[str, str, float, str]],
) -> dict[str, pa.Table]:
    """Make the tables of `weftwork.spec.result`.

    Parameters
    ----------
    prepared : what was run
    outcome : of it
    spent : of `job_times`
    what_if : job, case, iteration_ps and how it was found
    """
    segments, times = spent
    found: dict[str, dict[str, Any]] = {
        "segments": _segments(prepared, outcome, segments, times),
        "activities": _activities(prepared, outcome),
        "jobs": _jobs(prepared, outcome, times),
        "what_if": {c.name: [row[i] for row in what_if] for i, c in enumerate(TABLES["what_if"])},
        "links": _links(prepared, outcome),
        "tiers": _tiers(prepared, outcome),
        "nodes": node_rows(prepared.fabric),
        "events": _faults(prepared, outcome),
    }
    return {name: table(name, found.get(name, {c.name: [] for c in columns})) for name, columns in TABLES.items()}


def training_summary(
    prepared: PreparedTraining, outcome: FlowOutcome, spent: TimesOfJobs, tables: Mapping[str, pa.Table]
) -> dict[str, Quantity]:
    """Make the numbers of the summary; of several jobs those of the first, and those of all under their names."""
    _, times = spent
    rows = tables["jobs"].to_pylist()
    found: dict[str, Quantity] = {}
    for place, (job, row, time) in enumerate(zip(prepared.jobs, rows, times, strict=True)):
        lead = f"{job.name}." if place else ""
        iterations = job.section.iterations
        for name in ("iteration_ps", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "model_flops", "compute_ps",
                     "exposed_ps", "bubble_ps", "exposed_share", "bubble_share", "memory_bytes"):  # fmt: skip
            column = next(c for c in TABLES["jobs"] if c.name == name)
            found[f"{lead}{name}"] = Quantity(value=row[name], unit=column.unit, text=column.text)
        for kind in COMMUNICATION:
            value = time.by_kind_ps.get(kind, 0.0) / iterations
            text = f"Time of an average rank that went to {kind} communication which did not hide."
            found[f"{lead}exposed_{kind}_ps"] = Quantity(value=round(value), unit="ps", text=text)
        if prepared.scenario.reliability is not None and row["iteration_ps"] is not None:
            found |= {f"{lead}{name}": number for name, number in _over_weeks(prepared, job, row).items()}
    links = tables["links"]
    busiest = float(np.max(links["utilisation"].to_numpy(), initial=0.0))
    found["simulated_ps"] = Quantity(value=outcome.packets.simulated_ps, unit="ps", text="How far the run came.")
    found["busiest_link"] = Quantity(value=busiest, unit="share", text="Utilisation of the busiest link.")
    found["network_bytes"] = Quantity(
        value=float(outcome.link_bytes.sum()), unit="B", text="Bytes that all links carried, headers included."
    )
    return found


def _over_weeks(prepared: PreparedTraining, job: TrainingJob, row: Mapping[str, Any]) -> dict[str, Quantity]:
    """What failures leave of a job's time."""
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


def _segments(
    prepared: PreparedTraining, outcome: FlowOutcome, segments: Segments, times: Sequence[JobTime]
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
    actor, mark = segments.actor[kept], segments.mark[kept]
    about = _passes(prepared, program[actor], mark)
    first = prepared.plan.class_first_rank[program[actor]]
    return {
        "job": np.array([job.name for job in prepared.jobs], np.object_)[prepared.job_of_program[program[actor]]],
        "stage": prepared.stage_of_program[program[actor]],
        "rank": actors["rank"][actor] - first,
        "ranks": ranks[actor],
        **about,
        "kind": np.array(segments.kinds, np.object_)[segments.kind[kept]],
        "start_ps": segments.start_ps[kept],
        "end_ps": segments.end_ps[kept],
    }


def _passes(prepared: PreparedTraining, program: NDArray[np.int64], mark: NDArray[np.int64]) -> dict[str, Any]:
    """Pass, micro batch and chunk of each segment, by its program and the marks behind it."""
    names = np.empty(len(mark), np.object_)
    names[:] = "update"
    micro_batch = np.full(len(mark), -1, np.int64)
    chunk = np.full(len(mark), -1, np.int64)
    for index in np.unique(program).tolist():
        passes = prepared.passes(index)
        own = np.flatnonzero(program == index)
        own = own[(mark[own] >= 0) & (mark[own] < len(passes))]
        names[own] = np.array(PASSES, np.object_)[passes["pass"][mark[own]]]
        micro_batch[own] = passes["micro_batch"][mark[own]]
        chunk[own] = passes["chunk"][mark[own]]
    return {"micro_batch": micro_batch, "chunk": chunk, "pass": names}


def _activities(prepared: PreparedTraining, outcome: FlowOutcome) -> dict[str, Any]:
    found = outcome.activities
    job = prepared.job_of_program[outcome.actors["program"][found["actor"]]]
    operations = np.array([*prepared.plan.operations, "send"], np.object_)
    return {
        "job": np.array([one.name for one in prepared.jobs], np.object_)[job],
        "kind": np.array([*prepared.job.labels, "other"], np.object_)[found["label"]],
        "operation": operations[found["operation"]],
        **{name: found[name] for name in _COUNTED},
    }


def _tiers(prepared: PreparedTraining, outcome: FlowOutcome) -> dict[str, Any]:
    found = outcome.tiers
    entropy = found["entropy"]
    return {
        "start_ps": found["start_ps"],
        "at_ps": found["at_ps"],
        "tier": np.array(prepared.plan.tier_names, np.object_)[found["tier"]],
        "bytes": found["bytes"],
        "flows": found["flows"],
        "entropy": [None if np.isnan(value) else value for value in entropy.tolist()],
    }


def _jobs(prepared: PreparedTraining, outcome: FlowOutcome, times: Sequence[JobTime]) -> dict[str, Any]:
    job_of_actor = prepared.job_of_program[outcome.actors["program"]]
    ended = outcome.marks[outcome.marks["name"] == prepared.job.mark_names.index("iteration")]
    ends = np.bincount(job_of_actor[ended["actor"]], minlength=len(prepared.jobs))
    actors = np.bincount(job_of_actor, minlength=len(prepared.jobs))
    wanted = actors * [job.section.iterations for job in prepared.jobs]
    rows = [
        _job_row(job, time, is_done=bool(done))
        for job, time, done in zip(prepared.jobs, times, (ends == wanted).tolist(), strict=True)
    ]
    return {column.name: [row[column.name] for row in rows] for column in TABLES["jobs"]}


def _job_row(job: TrainingJob, time: JobTime, *, is_done: bool) -> dict[str, Any]:
    iterations = job.section.iterations
    plan = job.plan
    iteration_ps = round((time.end_ps - time.start_ps) / iterations)
    tokens = plan.global_batch * plan.sequence
    flops = tokens * model_flops_per_token(job.model, plan.sequence) * (LORA_SHARE if plan.has_lora else 1.0)
    peak = {"bf16": job.gpu.bf16_flops, "nvfp4": job.gpu.fp4_flops}.get(plan.precision, job.gpu.fp8_flops)
    spent = {kind: value / iterations for kind, value in time.by_kind_ps.items()}
    exposed = sum(spent.get(kind, 0.0) for kind in COMMUNICATION)
    bubble = spent.get("bubble", 0.0)
    done = is_done and iteration_ps > 0
    return {
        "job": job.name,
        "model": job.model.name,
        "plan": job.words,
        "gpus": plan.ranks,
        "start_ps": time.start_ps,
        "iteration_ps": iteration_ps if done else None,
        "tokens": tokens,
        "tokens_per_s": tokens * SECOND_PS / iteration_ps if done else None,
        "tokens_per_s_per_gpu": tokens * SECOND_PS / iteration_ps / plan.ranks if done else None,
        "model_flops": flops,
        "mfu": flops * SECOND_PS / iteration_ps / (plan.ranks * peak) if done else None,
        "compute_ps": round(sum(spent.get(kind, 0.0) for kind in COMPUTATION)),
        "exposed_ps": round(exposed),
        "bubble_ps": round(bubble),
        "exposed_share": exposed / iteration_ps if done else None,
        "bubble_share": bubble / iteration_ps if done else None,
        "memory_bytes": job.memory.total_bytes,
    }


def _links(prepared: PreparedTraining, outcome: FlowOutcome) -> dict[str, Any]:
    """Ports with what they carried; the busiest where there are very many."""
    fabric = prepared.fabric
    ports = fabric.ports
    rate_bps = fabric.links["rate_bps"][ports.link]
    end_s = outcome.packets.simulated_ps / SECOND_PS
    utilisation = outcome.link_bytes * 8.0 / (rate_bps * end_s) if end_s > 0 else np.zeros(len(rate_bps))
    kept = np.arange(len(rate_bps))
    if len(kept) > MOST_LINKS:
        kept = np.sort(np.argsort(-utilisation, kind="stable")[:KEPT_LINKS])
    counted = outcome.packets.ports[kept]
    columns: dict[str, Any] = {
        "port": kept,
        "name": port_names(fabric, kept),
        "link": [fabric.link_names[index] for index in ports.link[kept].tolist()],
        "node": ports.node[kept],
        "peer": ports.node[ports.peer[kept]],
        "rate_bps": rate_bps[kept],
        "utilisation": utilisation[kept],
    }
    return columns | {name: counted[name] for name in counted.dtype.names or ()}


def _faults(prepared: PreparedTraining, outcome: FlowOutcome) -> dict[str, Any]:
    rows: list[tuple[str, str, str, int | None, int]] = [
        ("fault", fault.event, fault.where, fault.at_ps, 1)
        for fault in prepared.faults
        if fault.at_ps <= outcome.packets.simulated_ps
    ]
    rows += [
        ("straggler", f"computes {slow.factor:g} times longer", f"GPU {slow.gpu}", None, 1)
        for slow in prepared.scenario.stragglers
    ]
    return {column.name: [row[place] for row in rows] for place, column in enumerate(TABLES["events"])}
