"""Several jobs on one fabric, merged into one job.

Their ranks follow each other, and their programs stay apart.
Leaves out: jobs that come and go; all begin at the start of the run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.job import Await, Collect, Compute, Job, Loop, Milestone, Operation, Placement, Program, Send, Wait

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["joined"]


def joined(jobs: Sequence[Job]) -> Job:
    """Join jobs.

    Rank r of job k becomes rank r plus the ranks of the jobs before it. Names of milestones and labels that jobs share
    stay one. Peers and groups of a program go on to count from the first rank of its own job (`Job.first_rank`).

    Parameters
    ----------
    jobs : one or more, placed on different GPUs of one fabric

    Raises
    ------
    ConfigError : two jobs are on one GPU
    """
    if len(jobs) == 1:
        return jobs[0]
    milestones = _union([job.milestone_names for job in jobs])
    labels = _union([job.labels for job in jobs])
    columns = max(job.placement.nics.shape[1] for job in jobs)
    programs: list[Program] = []
    rank_programs, bases = [], []
    first = 0
    for job in jobs:
        milestone_of = [milestones.index(name) for name in job.milestone_names]
        label_of = [labels.index(name) for name in job.labels]
        rank_programs.append(job.rank_program + len(programs))
        bases += [first] * len(job.programs)
        programs += [
            Program(streams=tuple(_renamed(stream, milestone_of, label_of) for stream in program.streams))
            for program in job.programs
        ]
        first += job.ranks
    placement = Placement(
        host=np.concatenate([job.placement.host for job in jobs]),
        # a rank with fewer NIC ports than others has them again in its row
        nics=np.concatenate([np.resize(job.placement.nics.T, (columns, job.ranks)).T for job in jobs]),
        gpu=np.concatenate([_gpu(job) for job in jobs]),
    )
    _check(jobs, placement)
    return Job(
        name=" and ".join(job.name for job in jobs),
        ranks=first,
        programs=tuple(programs),
        rank_program=np.concatenate(rank_programs).astype(np.int32),
        placement=placement,
        milestone_names=milestones,
        labels=labels,
        first_rank=tuple(bases),
    )


def _union(names: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for own in names for name in own))


def _gpu(job: Job) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.zeros(job.ranks, np.int32) if job.placement.gpu is None else job.placement.gpu.astype(np.int32)


def _renamed(operations: tuple[Operation, ...], milestone_of: list[int], label_of: list[int]) -> tuple[Operation, ...]:
    """The same operations with milestone and label numbers of the joint job."""
    known: dict[int, Operation] = {}  # programs repeat their operations, and share them

    def one(operation: Operation) -> Operation:
        if isinstance(operation, Loop):
            return replace(operation, body=tuple(again(inner) for inner in operation.body))
        if isinstance(operation, Milestone):
            return replace(operation, name=milestone_of[operation.name])
        if isinstance(operation, Compute | Send | Collect | Wait | Await) and operation.label >= 0:
            return replace(operation, label=label_of[operation.label])
        return operation

    def again(operation: Operation) -> Operation:
        if id(operation) not in known:
            known[id(operation)] = one(operation)
        return known[id(operation)]

    return tuple(again(operation) for operation in operations)


def _check(jobs: Sequence[Job], placement: Placement) -> None:
    """Refuse two jobs on one GPU."""
    gpu = placement.gpu if placement.gpu is not None else np.zeros(len(placement.host), np.int32)
    where = np.stack([placement.host.astype(np.int64), gpu.astype(np.int64)])
    _, first, of_rank, times = np.unique(where, axis=1, return_index=True, return_inverse=True, return_counts=True)
    if (times > 1).any():
        place = int(np.flatnonzero(times > 1)[0])
        ranks = np.flatnonzero(of_rank.ravel() == place)
        ends = np.cumsum([job.ranks for job in jobs])
        names = [jobs[int(np.searchsorted(ends, rank, side="right"))].name for rank in ranks[:2].tolist()]
        rank = int(first[place])
        text = f"GPU {gpu[rank]} of server {placement.host[rank]} is taken by '{names[0]}' and by '{names[1]}'"
        raise ConfigError("jobs", [Mistake(path="jobs", text=text)])
