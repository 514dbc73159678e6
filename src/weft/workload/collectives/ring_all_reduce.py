"""All-reduce on a ring: 2 (n - 1) steps in which each rank passes one n-th of the data to its neighbour.

First n - 1 steps reduce and scatter, then n - 1 steps gather; in step i rank r sends part r - i (mod n). A step's send
waits for the receive of the step before, not for an acknowledgement. ``channels`` rings share the bytes, each with
connections of its own.
Source: Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002.
Leaves out: the time of the additions, and slices of a part by which libraries overlap steps.
"""

from __future__ import annotations

import numpy as np

from weft.base.errors import ConfigError, Mistake
from weft.spec.job import (
    Await,
    Digit,
    Group,
    Job,
    Loop,
    Mark,
    Operation,
    Peer,
    Program,
    Receive,
    Send,
    Signal,
    Size,
    Wait,
)
from weft.workload.placement import one_per_host

__all__ = ["END", "START", "ring_all_reduce"]

START, END = 0, 1  # indices of Job.mark_names


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
    wanted = {
        "gpus": (ranks, 2, "GPUs"),
        "size": (size_bytes, ranks * channels, "bytes, one for each part of each ring"),
        "channels": (channels, 1, "ring"),
        "repeat": (repeat, 1, "time"),
    }
    mistakes = [
        Mistake(path=f"collective.{name}", text=f"found {found:,}, wanted at least {least:,} {words}")
        for name, (found, least, words) in wanted.items()
        if found < least
    ]
    if mistakes:
        raise ConfigError("collective", mistakes)
    begin: list[Operation] = []
    finish: list[Operation] = []
    streams: list[tuple[Operation, ...]] = []
    for channel in range(channels):
        share_bytes = size_bytes // channels + (channel < size_bytes % channels)
        go, data, done = 3 * channel, 3 * channel + 1, 3 * channel + 2
        begin.append(Signal(token=go))
        finish.append(Await(token=done))
        streams += _ring(ranks, share_bytes, channel, priority, repeat, (go, data, done))
    main = Loop(count=repeat, body=(Mark(name=START), *begin, *finish, Mark(name=END)))
    return Job(
        name="ring all-reduce",
        ranks=ranks,
        programs=(Program(streams=((main,), *streams)),),
        rank_class=np.zeros(ranks, np.int32),
        placement=one_per_host(ranks),
        mark_names=("start", "end"),
    )


def _ring(
    ranks: int, size_bytes: int, channel: int, priority: int, repeat: int, tokens: tuple[int, int, int]
) -> list[tuple[Operation, ...]]:
    """Make the sending and the receiving stream of one ring; ``tokens``: go, one per step that has arrived, done."""
    go, data, done = tokens
    group = Group(size=ranks)
    following = Peer(rule="shift", group=group, shift=1)
    previous = Peer(rule="shift", group=group, shift=-1)
    steps = 2 * (ranks - 1)

    def send(part_shift: int, part_step: int) -> Send:
        size = Size(total_bytes=size_bytes, parts=ranks, digits=(Digit(group=group, shift=part_shift, step=part_step),))
        return Send(peer=following, size=size, channel=channel, priority=priority)

    receive = Receive(peer=previous, channel=channel)
    sending = (Await(token=go), send(0, 0), Loop(count=steps - 1, body=(Await(token=data), send(-1, -1))))
    receiving = (Loop(count=steps - 1, body=(receive, Wait(), Signal(token=data))), receive, Wait(), Signal(token=done))
    return [(Loop(count=repeat, body=sending),), (Loop(count=repeat, body=receiving),)]
