"""Messages, payload and computing of a job.

Progress and completeness are measured against them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weftwork.spec.job import Arrivals, Compute, Loop, Operation, Send

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.job import Job

__all__ = ["Volume", "computing_ps", "least_ps", "volume"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Volume:
    """All messages of a job and their payload.

    ``payload_bytes`` counts a part of a whole as the mean part, which is exact over all ranks of a group where each of
    them sends another.
    """

    messages: int
    payload_bytes: int


def volume(job: Job) -> Volume:
    """Add up the messages of all ranks of a job."""
    messages, payload = 0, 0.0
    for index, program in enumerate(job.programs):
        ranks = np.flatnonzero(job.rank_program == index)
        for stream in program.streams:
            count, size = _sent(stream, ranks)
            messages += count
            payload += size
    return Volume(messages=messages, payload_bytes=round(payload))


def _sent(operations: tuple[Operation, ...], ranks: NDArray[np.int64]) -> tuple[int, float]:
    messages, payload = 0, 0.0
    for operation in operations:
        if isinstance(operation, Loop):
            count, size = _sent(operation.body, ranks)
            messages += operation.count * count
            payload += operation.count * size
        elif isinstance(operation, Arrivals):
            messages += len(ranks) * len(operation)
            payload += len(ranks) * float(operation.size_bytes.sum())
        elif isinstance(operation, Send):
            senders = len(ranks)
            if operation.peer.table is not None:
                senders = int((np.asarray(operation.peer.table)[ranks] >= 0).sum())
            messages += senders
            size_ = operation.size
            share = size_.span / size_.parts if size_.parts else 1
            payload += senders * size_.total_bytes * share * size_.copies
    return messages, payload


def least_ps(job: Job) -> int:
    """Computing time of the busiest program's main stream.

    No run is shorter.
    """
    return max(computing_ps(program.streams[0]) for program in job.programs)


def computing_ps(operations: tuple[Operation, ...]) -> int:
    """Computing time of a stream, with loops unrolled."""
    total = 0
    for operation in operations:
        if isinstance(operation, Compute):
            total += operation.duration_ps
        elif isinstance(operation, Loop):
            total += operation.count * computing_ps(operation.body)
    return total
