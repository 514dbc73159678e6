"""Several queue pairs for each connection of a job: every message is split evenly over them.

Each queue pair has an entropy of its own, so that a hash may send its part another way.
Source: NCCL, user guide, NCCL_IB_QPS_PER_CONNECTION and NCCL_IB_SPLIT_DATA_ON_QPS=1.
Leaves out: NCCL_IB_SPLIT_DATA_ON_QPS=0, which takes the queue pairs in turn by message; a limit below which messages
are not split. Messages inside a server are split as well, and take turns on its ports as one would in slices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.job import Collect, Digit, Job, Loop, Operation, Program, Receive, Send, Size

__all__ = ["split_over_queue_pairs"]

CONNECTIONS: Final = 1 << 16  # a flow's identity has 16 bits for the channel


def split_over_queue_pairs(job: Job, queue_pairs: int) -> Job:
    """Give every connection several queue pairs: channel c becomes the channels c q to (c + 1) q - 1.

    Part k of P becomes the parts k q to (k + 1) q - 1 of P q, one on each queue pair, so that all bytes are sent once.

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
    channels = 1 + max((_last_channel(stream) for program in job.programs for stream in program.streams), default=-1)
    if channels * queue_pairs > CONNECTIONS:
        text = (
            f"found {queue_pairs}: two ranks have up to {channels:,} connections here, and together they can have"
            f" {CONNECTIONS:,} queue pairs; wanted at most {max(1, CONNECTIONS // channels)}"
        )
        raise ConfigError("transport", [Mistake(path="transport.queue_pairs", text=text)])
    programs = tuple(
        Program(streams=tuple(_split(stream, queue_pairs) for stream in program.streams)) for program in job.programs
    )
    return replace(job, programs=programs)


def _last_channel(operations: tuple[Operation, ...]) -> int:
    found = -1
    for operation in operations:
        if isinstance(operation, Loop):
            found = max(found, _last_channel(operation.body))
        elif isinstance(operation, Send | Receive | Collect):
            found = max(found, operation.channel)
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
            case Collect():
                found.append(replace(operation, queue_pairs=pairs))
            case _:
                found.append(operation)
    return tuple(found)


def _part(size: Size, pairs: int, pair: int) -> Size:
    """The part of a message that goes on one of its queue pairs."""
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
