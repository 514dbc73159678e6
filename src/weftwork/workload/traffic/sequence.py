"""Common parts of patterns: flow keys, message sequences, random starts.

The messages go over several queue pairs. A sender posts its next message when the last one is acknowledged whole;
message k travels on channel k mod queue pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.random import Stream, draw
from weftwork.base.units import format_quantity
from weftwork.spec.job import At, Job, Loop, Operation, Peer, Program, Send, Size, Wait
from weftwork.spec.plug_in import DURATION, SIZE, Measure, PatternInput, Record, TrafficSize, Whole, row
from weftwork.spec.scenario.choice import LONELY
from weftwork.workload.placement import one_per_host

__all__ = ["SizedFlows", "messages", "one_flow_each", "refuse", "sized", "sized_size", "sized_words", "start_ps"]


class SizedFlows(Record):
    """The keys of a pattern whose flows have one size."""

    size_bytes: int = row(
        "size",
        Measure(quantity=SIZE, low=1),
        default="1MiB",
        text="Bytes of each message.",
        source="chosen: 256 full packets",
    )
    start_jitter_ps: int = row(
        "start_jitter",
        Measure(quantity=DURATION),
        default="0ps",
        text="Each flow starts at a random instant up to that.",
        source="chosen: all at once",
    )
    repeat: int = row(
        "repeat",
        Whole(low=1, high=1_000_000, unit="messages"),
        default=1,
        text="Messages of each flow, in sequence.",
        source="chosen: one",
    )


def sized(keys: SizedFlows, given: PatternInput) -> dict[str, int]:
    """The common arguments of all builders of sized flows."""
    return {
        "hosts": given.hosts,
        "seed": given.seed,
        "priority": given.priority,
        "queue_pairs": given.queue_pairs,
        "size_bytes": keys.size_bytes,
        "repeat": keys.repeat,
        "start_jitter_ps": keys.start_jitter_ps,
    }


def sized_size(keys: SizedFlows, given: PatternInput, pairs: int) -> TrafficSize:
    """Traffic of a number of host pairs."""
    messages_ = pairs * keys.repeat
    return TrafficSize(
        messages=messages_,
        queue_pairs=pairs * min(keys.repeat, given.queue_pairs),
        payload_bytes=messages_ * keys.size_bytes,
    )


def sized_words(keys: SizedFlows, job: Job, *, with_hosts: bool = True) -> str:
    """The job of sized flows in a few words."""
    hosts = f" among {plural(job.ranks, 'host')}" if with_hosts else ""
    times = f", {keys.repeat:,} times" if keys.repeat > 1 else ""
    return f"{job.name} of {format_quantity(SIZE, keys.size_bytes)}{hosts}{times}"


def messages(peer: Peer, *, size_bytes: int, repeat: int, queue_pairs: int, priority: int) -> tuple[Operation, ...]:
    """Operations that send ``repeat`` messages of ``size_bytes`` to a peer, in sequence."""

    def on(channels: int) -> tuple[Operation, ...]:
        size = Size(total_bytes=size_bytes)
        pairs = ((Send(peer=peer, size=size, channel=index, priority=priority), Wait()) for index in range(channels))
        return tuple(operation for pair in pairs for operation in pair)

    rounds, rest = divmod(repeat, queue_pairs)
    if rounds == 0:
        return on(rest)
    if rounds == 1:
        return on(queue_pairs) + on(rest)
    return (Loop(count=rounds, body=on(queue_pairs)), *on(rest))


def one_flow_each(name: str, body: tuple[Operation, ...], *, hosts: int, seed: int, start_jitter_ps: int) -> Job:
    """A job in which every host does the same, from a start of its own on.

    Parameters
    ----------
    name : of the job
    body : what a host does
    hosts : host i is rank i
    seed, start_jitter_ps : each flow starts at a random instant up to that
    """
    if start_jitter_ps == 0:
        programs: tuple[Program, ...] = (Program(streams=(body,)),)
        rank_program = np.zeros(hosts, np.int32)
    else:
        starts = [At(at_ps=start_ps(seed, host, start_jitter_ps)) for host in range(hosts)]
        programs = tuple(Program(streams=((start, *body),)) for start in starts)
        rank_program = np.arange(hosts, dtype=np.int32)
    return Job(name=name, ranks=hosts, programs=programs, rank_program=rank_program, placement=one_per_host(hosts))


def start_ps(seed: int, flow: int, start_jitter_ps: int) -> int:
    """Random start of a flow, from 0 to ``start_jitter_ps``.

    It follows from the identity of the flow.
    """
    return draw(seed, Stream.START, flow, 0, 0) * (start_jitter_ps + 1) >> 64


def refuse(also: Sequence[Mistake] = (), **wanted: tuple[int, int, int | None]) -> None:
    """Raise one ConfigError for all arguments out of range.

    An argument is given as ``name=(found, least, most or None)``. ``hosts`` is always among them: a pattern needs two.
    ``also`` are mistakes that were found elsewhere.
    """
    hosts = wanted.pop("hosts")[0]
    mistakes = [Mistake(path="traffic", text=LONELY)] if hosts < 2 else list(also)
    mistakes += [
        Mistake(
            path=f"traffic.{name}",
            text=f"found {found:,}, wanted {least:,}" + (" or more" if most is None else f" to {most:,}"),
        )
        for name, (found, least, most) in wanted.items()
        if found < least or (most is not None and found > most)
    ]
    if mistakes:
        raise ConfigError("traffic", mistakes)
