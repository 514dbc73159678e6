"""Several queue pairs for each connection of a job.

Messages are split over them, or take them alternately. Each queue pair has an entropy of its own, so that a hash may
send it another way.
Source: NCCL, user guide, NCCL_IB_QPS_PER_CONNECTION, and NCCL_IB_SPLIT_DATA_ON_QPS: 1 splits, 0 takes turns, as Meta's
E-ECMP does (Gangidi et al., SIGCOMM 2024, doi:10.1145/3651890.3672233).
Leaves out: a limit below which messages are not split. Messages inside a server are treated as those between servers.
Bytes of a collective that is no messages (`Collect`) are spread evenly over the queue pairs either way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.job import Arrivals, Collect, Digit, Job, Loop, Operation, Program, Receive, Send, Size
from weftwork.workload.turns import in_turn, widened

__all__ = ["split_over_queue_pairs", "take_queue_pairs_in_turn"]

CONNECTIONS: Final = 1 << 16  # a flow's identity has 16 bits for the channel


def split_over_queue_pairs(job: Job, queue_pairs: int) -> Job:
    """Split every connection over several queue pairs.

    Channel c becomes the channels c q to (c + 1) q - 1. Part k of P becomes the parts k q to (k + 1) q - 1 of P q, one
    on each queue pair, so that all bytes are sent once.

    Parameters
    ----------
    job : whose sends, receives and collectives are split; what waits for a message then waits for all of its parts
    queue_pairs : q, of each connection

    Raises
    ------
    ConfigError : the job has more connections between two ranks than so many queue pairs leave numbers for
    """
    if queue_pairs == 1:
        return job
    _refuse_too_many(job, queue_pairs)
    programs = (tuple(_split(stream, queue_pairs) for stream in program.streams) for program in job.programs)
    return replace(job, programs=tuple(Program(streams=streams) for streams in programs))


def take_queue_pairs_in_turn(job: Job, queue_pairs: int) -> Job:
    """Let a connection's messages use its queue pairs alternately.

    Message k takes queue pair k mod q. Channel c becomes the channels c q to (c + 1) q - 1. Loops are unrolled as far
    as the turns ask for it.

    Parameters
    ----------
    job : whose sends and receives take turns
    queue_pairs : q, of each connection

    Raises
    ------
    ConfigError : as `split_over_queue_pairs`, or the unrolled loops would be too long
    """
    if queue_pairs == 1:
        return job
    _refuse_too_many(job, queue_pairs)
    gpu = job.placement.gpu
    is_switch = np.zeros(job.ranks, np.bool_) if gpu is None else gpu < 0
    programs = in_turn(job.programs, job.rank_program, is_switch, queue_pairs, job.first_rank)
    return replace(job, programs=programs)


def _refuse_too_many(job: Job, queue_pairs: int) -> None:
    channels = 1 + max((_last_channel(stream) for program in job.programs for stream in program.streams), default=-1)
    if channels * queue_pairs > CONNECTIONS:
        text = (
            f"found {queue_pairs}: two ranks have up to {plural(channels, 'connection')} here, and together they can "
            "have"
            f" {CONNECTIONS:,} queue pairs; wanted at most {max(1, CONNECTIONS // channels)}"
        )
        raise ConfigError("transport", [Mistake(path="transport.queue_pairs", text=text)])


def _last_channel(operations: tuple[Operation, ...]) -> int:
    found = -1
    for operation in operations:
        if isinstance(operation, Loop):
            found = max(found, _last_channel(operation.body))
        elif isinstance(operation, Send | Receive | Collect):
            found = max(found, operation.channel)
        elif isinstance(operation, Arrivals) and len(operation):
            found = max(found, int(operation.channel.max()))
    return found


def _split(operations: tuple[Operation, ...], pairs: int) -> tuple[Operation, ...]:
    found: list[Operation] = []
    for operation in operations:
        match operation:
            case Loop():
                found.append(replace(operation, body=_split(operation.body, pairs)))
            case Send():
                first = operation.channel * pairs
                found += [
                    replace(operation, channel=first + pair, size=_part(operation.size, pairs, pair))
                    for pair in range(pairs)
                ]
            case Receive():
                first = operation.channel * pairs
                found += [replace(operation, channel=first + pair) for pair in range(pairs)]
            case _:
                found.append(widened(operation, pairs))
    return tuple(found)


def _part(size: Size, pairs: int, pair: int) -> Size:
    """The part of a message on one of its queue pairs."""
    if size.parts == 0:
        return replace(size, parts=pairs, offset=pair, digits=(), span=1)
    return replace(
        size,
        parts=size.parts * pairs,
        digits=tuple(_wider(digit, pairs) for digit in size.digits),
        offset=size.offset * pairs + pair,
        span_stride=size.span_stride * pairs,
    )


def _wider(digit: Digit, pairs: int) -> Digit:
    return replace(digit, weight=digit.weight * pairs)
