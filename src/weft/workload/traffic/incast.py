"""Incast: many hosts send to one at once, as in the last step of a partition-aggregate or a badly placed all-to-all.

The senders are spread evenly over the other hosts, so that the last link is the only bottleneck of a non-blocking
fabric.
Source of the name: Phanishayee et al., FAST 2008. Leaves out: requests by which the receiver asks for the data.
"""

from __future__ import annotations

import numpy as np

from weft.spec.job import At, Job, Peer, Program
from weft.workload.placement import one_per_host
from weft.workload.traffic.sequence import messages, refuse, start_ps

__all__ = ["incast", "incast_senders"]


def incast_senders(hosts: int, senders: int, receiver: int) -> tuple[int, ...]:
    """Which hosts send: every k-th one after the receiver, k being the largest step that fits.

    Examples
    --------
    >>> incast_senders(8, 3, 0)
    (1, 3, 5)
    """
    step = (hosts - 1) // senders
    return tuple(sorted((receiver + 1 + index * step) % hosts for index in range(senders)))


def incast(  # noqa: PLR0913 - the parameters of a pattern, all by name
    *,
    hosts: int,
    size_bytes: int,
    seed: int,
    senders: int | None = None,
    receiver: int = 0,
    repeat: int = 1,
    start_jitter_ps: int = 0,
    queue_pairs: int = 1,
    priority: int = -1,
) -> Job:
    """Make the job.

    Parameters
    ----------
    hosts : of the fabric, at least 2; host i is rank i
    size_bytes : of each message
    seed : decides the starts
    senders : how many hosts send; by default all but the receiver
    receiver : number of the host that receives
    repeat : messages of each flow, one after the other
    start_jitter_ps : each flow starts at a random instant up to that
    queue_pairs : of each flow, used in turn by message
    priority : of the data, -1 for the transport's

    Raises
    ------
    ConfigError : an argument out of range
    """
    count = hosts - 1 if senders is None else senders
    refuse(
        hosts=(hosts, 2, None),
        senders=(count, 1, hosts - 1),
        receiver=(receiver, 0, hosts - 1),
        size=(size_bytes, 1, None),
        repeat=(repeat, 1, None),
        queue_pairs=(queue_pairs, 1, 65_536),
        start_jitter=(start_jitter_ps, 0, None),
    )
    peer = Peer(rule="rank", shift=receiver)
    body = messages(peer, size_bytes=size_bytes, repeat=repeat, queue_pairs=queue_pairs, priority=priority)
    chosen = incast_senders(hosts, count, receiver)
    classes = np.zeros(hosts, np.int32)  # class 0 does nothing
    if start_jitter_ps == 0:
        sending: tuple[Program, ...] = (Program(streams=(body,)),)
        classes[list(chosen)] = 1
    else:
        starts = [At(at_ps=start_ps(seed, host, start_jitter_ps)) for host in chosen]
        sending = tuple(Program(streams=((start, *body),)) for start in starts)
        classes[list(chosen)] = np.arange(1, count + 1)
    return Job(
        name=f"incast {count}:1",
        ranks=hosts,
        programs=(Program(streams=()), *sending),
        rank_class=classes,
        placement=one_per_host(hosts),
    )
