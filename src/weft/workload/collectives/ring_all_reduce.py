"""All-reduce on a ring of one GPU per host: the algorithm `ring` of the catalogue with a placement."""

from __future__ import annotations

from weft.spec.job import Job
from weft.workload.collectives.algorithm import END, START
from weft.workload.collectives.call import Call
from weft.workload.collectives.catalogue import schedule
from weft.workload.placement import one_per_host

__all__ = ["END", "START", "ring_all_reduce"]


def ring_all_reduce(*, ranks: int, size_bytes: int, channels: int = 1, repeat: int = 1, priority: int = -1) -> Job:
    """Make the job; every rank marks the start and the end of each repetition.

    Parameters
    ----------
    ranks : GPUs that take part, at least 2; rank i is on host i and sends to rank i + 1
    size_bytes : that each rank brings
    channels : rings, each with an equal share of the bytes
    repeat : times that it is done; a rank starts again when it has the whole result
    priority : of the data, -1 for the transport's

    Raises
    ------
    ConfigError : fewer than two ranks, or nothing to send
    """
    call = Call(
        operation="all-reduce",
        ranks=ranks,
        size_bytes=size_bytes,
        channels=channels,
        repeat=repeat,
        priority=priority,
    )
    return schedule("ring", call).job(one_per_host(ranks))
