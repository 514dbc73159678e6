"""All-to-all: every host sends one message to every other host.

Expert parallelism and distributed transposes do so. Host c posts to c + 1, c + 2, ... at once, so that no two hosts
begin with the same receiver. A host's next round begins when its last one is acknowledged whole. Leaves out: several
stages with a barrier between them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weftwork.spec.job import At, Group, Job, Loop, Operation, Peer, Program, Send, Size, Wait
from weftwork.spec.plug_in import Pattern
from weftwork.workload.placement import one_per_host
from weftwork.workload.traffic.sequence import SizedFlows, refuse, sized, sized_size, sized_words, start_ps

__all__ = ["PATTERN", "all_to_all"]


def all_to_all(
    *,
    hosts: int,
    size_bytes: int,
    seed: int,
    repeat: int = 1,
    start_jitter_ps: int = 0,
    queue_pairs: int = 1,
    priority: int = -1,
) -> Job:
    """Make the job.

    Parameters
    ----------
    hosts : at least 2; host i is rank i
    size_bytes : of each message
    seed : decides the starts
    repeat : rounds
    start_jitter_ps : each flow of the first round starts at a random instant up to that
    queue_pairs : of each flow, used in turn by round
    priority : of the data, -1 for the transport's

    Raises
    ------
    ConfigError : an argument out of range
    """
    refuse(
        hosts=(hosts, 2, None),
        size=(size_bytes, 1, None),
        repeat=(repeat, 1, None),
        queue_pairs=(queue_pairs, 1, 65_536),
        start_jitter=(start_jitter_ps, 0, None),
    )
    size = Size(total_bytes=size_bytes)
    group = Group(size=hosts)

    def one_round(channel: int) -> tuple[Operation, ...]:
        peer = Peer(rule="shift", group=group, shift=1, step=1)
        send = Send(peer=peer, size=size, channel=channel, priority=priority)
        return (Loop(count=hosts - 1, body=(send,)), Wait())

    def rounds(first: int, count: int) -> tuple[Operation, ...]:
        """Rounds ``first`` to ``first + count - 1``.

        They are a loop over whole turns of the queue pairs, then the rest.
        """
        turns, rest = divmod(count, queue_pairs)
        turn = tuple(
            op for index in range(queue_pairs if turns else 0) for op in one_round((first + index) % queue_pairs)
        )
        tail = tuple(op for index in range(rest) for op in one_round((first + index) % queue_pairs))
        return ((Loop(count=turns, body=turn),) if turns > 1 else turn) + tail

    if start_jitter_ps == 0:
        programs: tuple[Program, ...] = (Program(streams=(rounds(0, repeat),)),)
        rank_program = np.zeros(hosts, np.int32)
    else:
        later = rounds(1, repeat - 1)
        programs = tuple(
            Program(streams=((*_first_round(host, hosts, size, priority, seed, start_jitter_ps), *later),))
            for host in range(hosts)
        )
        rank_program = np.arange(hosts, dtype=np.int32)
    return Job(
        name="all-to-all", ranks=hosts, programs=programs, rank_program=rank_program, placement=one_per_host(hosts)
    )


def _first_round(
    host: int, hosts: int, size: Size, priority: int, seed: int, start_jitter_ps: int
) -> tuple[Operation, ...]:
    """First-round flows of one host, each at its own instant."""
    starts = sorted(
        (start_ps(seed, host * hosts + other, start_jitter_ps), (other - host) % hosts, other)
        for other in range(hosts)
        if other != host
    )
    found: list[Operation] = []
    for at_ps, _, other in starts:
        found += [At(at_ps=at_ps), Send(peer=Peer(rule="rank", shift=other), size=size, priority=priority)]
    return (*found, Wait())


PATTERN: Final = Pattern(
    keys=SizedFlows,
    words=sized_words,
    job=lambda keys, given: all_to_all(**sized(keys, given)),
    size=lambda keys, given: sized_size(keys, given, given.hosts * (given.hosts - 1)),
    source="chosen: what expert parallelism does to a network",
)
