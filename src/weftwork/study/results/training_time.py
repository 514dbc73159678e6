"""Parts of a training job's time, by kind.

Each rank is followed from the begin of an iteration to its end.

An engine says on what the main stream of each actor (a class of equal ranks) spends its time. Here it gets the kinds
that people ask for, the pass and the micro batch; what an actor waits after its last operation is bubble or skew, so
that the kinds of every rank add up to the iteration.
Leaves out: what the other streams do; it hides behind the main one, or the main one waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.spec.time_kinds import COMMUNICATION, IDLE, TIME_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from weftwork.engine.flow.outcome import FlowOutcome

__all__ = [
    "JobTime",
    "Segments",
    "job_time",
    "segments_of",
    "with_tails",
]

_PASSES: Final = (
    "forward",
    "backward",
    "weights",
)  # all are ``compute`` in segments; the milestone of a stage tells them apart
_WAITING: Final = 1  # code of weftwork.engine.rows.flow_outcome.SEGMENT_DTYPE


@dataclass(frozen=True, kw_only=True, slots=True)
class Segments:
    """Parts of the actors' time, ordered by actor and time.

    All arrays have one entry per segment.

    Attributes
    ----------
    actor : which actor
    kind : index into ``kinds``
    milestone : number of the last milestone that the actor had passed, -1 before the first
    start_ps, end_ps : from when to when
    kinds : names
    """

    actor: NDArray[np.int64]
    kind: NDArray[np.int64]
    milestone: NDArray[np.int64]
    start_ps: NDArray[np.int64]
    end_ps: NDArray[np.int64]
    kinds: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobTime:
    """The iteration of one job.

    Attributes
    ----------
    start_ps, end_ps : of the iterations that were run
    by_kind_ps : mean over the ranks of the job; adds up to ``end_ps - start_ps``
    busiest_ps : of the actor that is the least idle: what would be left without bubbles and skew
    overlapped_ps : of the actor that would take longest if its exposed communication ran beside its computation
    slowest : for each stage, the actor of it that ends last
    """

    start_ps: int
    end_ps: int
    by_kind_ps: Mapping[str, float]
    busiest_ps: int
    overlapped_ps: int
    slowest: Mapping[int, int]


def segments_of(outcome: FlowOutcome, labels: Sequence[str], *, milestone_name: int = 0) -> Segments:
    """Give the segments of an engine their kinds and milestones.

    Parameters
    ----------
    outcome : of the flow engine
    labels : of the job
    milestone_name : index of the milestones that begin a pass
    """
    found = outcome.segments
    order = np.lexsort((found["start_ps"], found["actor"]))
    found = found[order]
    kinds = tuple(dict.fromkeys(("compute", *(kind for kind in TIME_KINDS if kind not in _PASSES), *labels)))
    place = np.array([kinds.index(name) for name in labels] or [0], np.int64)
    kind = np.where(found["label"] >= 0, place[np.maximum(found["label"], 0)], kinds.index("other"))
    idle = np.where(kind == kinds.index("pipeline"), kinds.index("bubble"), kinds.index("skew"))
    waits = (found["code"] == _WAITING) & (kind != kinds.index("offload"))  # no rank waits for another one there
    kind = np.where(waits, idle, kind)
    return Segments(
        actor=found["actor"].astype(np.int64),
        kind=kind,
        milestone=_milestones_passed(outcome, found, milestone_name),
        start_ps=found["start_ps"].astype(np.int64),
        end_ps=found["end_ps"].astype(np.int64),
        kinds=kinds,
    )


def with_tails(
    segments: Segments, *, job: NDArray[np.int64], has_pipeline: Sequence[bool], passed_ps: NDArray[np.int64]
) -> Segments:
    """Add each actor's wait from its last operation to the end.

    In a pipeline that is a bubble for as long as the last pass of the job ended after the actor's own; the rest it
    waits for the update of others, which is skew, as is all of it in a job without a pipeline.

    Parameters
    ----------
    segments : of all jobs
    job : shape (actors,), job of each actor
    has_pipeline : of each job
    passed_ps : shape (actors,), when each actor ended its last forward or backward pass
    """
    last = np.flatnonzero(np.diff(segments.actor, append=-1))
    actor = segments.actor[last]
    of_job = job[actor]
    end_ps, all_passed_ps = np.zeros((2, len(has_pipeline)), np.int64)
    np.maximum.at(end_ps, of_job, segments.end_ps[last])
    np.maximum.at(all_passed_ps, of_job, passed_ps[actor])
    bubble_ps = np.where(np.array(has_pipeline, np.bool_)[of_job], all_passed_ps[of_job] - passed_ps[actor], 0)
    own_ps, until_ps = segments.end_ps[last], end_ps[of_job]
    between_ps = np.minimum(own_ps + bubble_ps, until_ps)
    kinds = np.tile([segments.kinds.index("bubble"), segments.kinds.index("skew")], len(last))
    start_ps = np.stack([own_ps, between_ps], axis=1).ravel()
    stop_ps = np.stack([between_ps, until_ps], axis=1).ravel()
    kept = stop_ps > start_ps
    behind = np.repeat(last, 2)[kept]
    at = behind + 1
    return Segments(
        actor=np.insert(segments.actor, at, segments.actor[behind]),
        kind=np.insert(segments.kind, at, kinds[kept]),
        milestone=np.insert(segments.milestone, at, segments.milestone[behind]),
        start_ps=np.insert(segments.start_ps, at, start_ps[kept]),
        end_ps=np.insert(segments.end_ps, at, stop_ps[kept]),
        kinds=segments.kinds,
    )


def _milestones_passed(outcome: FlowOutcome, found: NDArray[np.void], milestone_name: int) -> NDArray[np.int64]:
    """For each segment, the number of milestones behind its actor, less one."""
    milestones = outcome.milestones[outcome.milestones["name"] == milestone_name]
    milestones = milestones[np.lexsort((milestones["at_ps"], milestones["actor"]))]
    milestone = np.full(len(found), -1, np.int64)
    every = np.arange(len(outcome.actors) + 1)
    segments, bounds = np.searchsorted(found["actor"], every), np.searchsorted(milestones["actor"], every)
    for own, first, last in zip(
        (slice(*ends) for ends in pairwise(segments.tolist())), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True
    ):
        milestone[own] = np.searchsorted(milestones["at_ps"][first:last], found["start_ps"][own], side="right") - 1
    return milestone


def job_time(
    segments: Segments, *, actors: NDArray[np.int64], ranks: NDArray[np.int64], stage: NDArray[np.int64]
) -> JobTime:
    """Add up the parts of one job's time.

    Parameters
    ----------
    segments : of all jobs
    actors : shape (actors of this job,), ascending
    ranks : the same shape, how many ranks each stands for
    stage : the same shape, of the pipeline
    """
    own = np.isin(segments.actor, actors)
    place = np.searchsorted(actors, segments.actor[own])
    kind, start_ps, end_ps = segments.kind[own], segments.start_ps[own], segments.end_ps[own]
    begin, end = int(start_ps.min(initial=0)), int(end_ps.max(initial=0))
    spent = np.zeros((len(actors), len(segments.kinds)), np.int64)
    np.add.at(spent, (place, kind), end_ps - start_ps)
    last = np.zeros(len(actors), np.int64)
    np.maximum.at(last, place, end_ps)
    mean = ranks @ spent / max(1, int(ranks.sum()))
    idle = spent[:, [segments.kinds.index(name) for name in IDLE]].sum(axis=1)
    exposed = spent[:, [segments.kinds.index(name) for name in COMMUNICATION]].sum(axis=1)
    computing = spent.sum(axis=1) - idle - exposed
    busy = exposed + computing
    order = np.lexsort((-idle, last))  # the last to end comes last; among equals the busiest
    slowest = {int(stage[place]): int(actors[place]) for place in order.tolist()}
    return JobTime(
        start_ps=begin,
        end_ps=end,
        by_kind_ps={name: float(value) for name, value in zip(segments.kinds, mean.tolist(), strict=True) if value},
        busiest_ps=int(busy.max(initial=0)),
        overlapped_ps=int((np.maximum(exposed, computing) + idle).max(initial=0)),
        slowest=slowest,
    )
