"""Slow ranks of a job as programs that compute longer.

A rank computes longer by a factor; everything else that it does is as in the program of its peers.
Leaves out: the flow engine, which takes the factors as they are (`weftwork.engine.flow.lower`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from weftwork.spec.job import Compute, Loop, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.job import Job, Operation

__all__ = ["slowed"]


def slowed(job: Job, factor: NDArray[np.float64]) -> Job:
    """Give each slow rank a program in which computing takes longer.

    Slow ranks of one program and one factor share their program, which stands behind those of the job.

    Parameters
    ----------
    job : of ranks that are alike
    factor : shape (ranks,), how many times longer each rank computes
    """
    programs, rank_program = list(job.programs), job.rank_program.copy()
    origins = list(range(len(programs)))
    first_rank = list(job.first_rank)
    copies: dict[tuple[int, float], int] = {}
    for rank in np.flatnonzero(factor != 1.0).tolist():
        origin, times = int(job.rank_program[rank]), float(factor[rank])
        if (origin, times) not in copies:
            copies[origin, times] = len(programs)
            streams = job.programs[origin].streams
            programs.append(Program(streams=tuple(_longer(stream, times) for stream in streams)))
            origins.append(origin)
            first_rank += first_rank[origin : origin + 1]
        rank_program[rank] = copies[origin, times]
    if not copies:
        return job
    return replace(
        job,
        programs=tuple(programs),
        rank_program=rank_program,
        first_rank=tuple(first_rank),
        origins=tuple(origins),
    )


def _longer(operations: tuple[Operation, ...], times: float) -> tuple[Operation, ...]:
    """The same operations with longer computing."""
    return tuple(
        replace(each, body=_longer(each.body, times))
        if isinstance(each, Loop)
        else replace(each, duration_ps=round(each.duration_ps * times))
        if isinstance(each, Compute)
        else each
        for each in operations
    )
