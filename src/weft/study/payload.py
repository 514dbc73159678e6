"""How many bytes a job will deliver: what progress is measured against."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.spec.job import Loop, Operation, Send

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weft.spec.job import Job

__all__ = ["payload_bytes"]


def payload_bytes(job: Job) -> int:
    """Payload of all messages of a job.

    A send of one part of a whole counts as the mean part, which is exact over all ranks of a group.
    """
    total = 0.0
    for index, program in enumerate(job.programs):
        ranks = np.flatnonzero(job.rank_class == index)
        total += sum(_bytes_of(stream, ranks) for stream in program.streams)
    return round(total)


def _bytes_of(operations: tuple[Operation, ...], ranks: NDArray[np.int64]) -> float:
    total = 0.0
    for operation in operations:
        if isinstance(operation, Loop):
            total += operation.count * _bytes_of(operation.body, ranks)
        elif isinstance(operation, Send):
            senders = len(ranks)
            if operation.peer.table is not None:
                senders = int((np.asarray(operation.peer.table)[ranks] >= 0).sum())
            size = operation.size
            total += senders * (size.total_bytes / size.parts if size.parts else size.total_bytes)
    return total
