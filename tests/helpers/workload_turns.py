"""Streams whose sends take queue pairs in turn, unrolled and expanded again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weftwork.spec.job import Group, Loop, Operation, Program
from weftwork.workload.turns import in_turn

RANKS = 16


GROUP = Group(size=RANKS)


def expanded(operations: tuple[Operation, ...], counter: int = 0) -> Iterator[tuple[Operation, int]]:
    for operation in operations:
        if isinstance(operation, Loop):
            for turn in range(operation.count):
                yield from expanded(operation.body, turn)
        else:
            yield operation, counter


def turned(stream: tuple[Operation, ...], pairs: int) -> tuple[Operation, ...]:
    (program,) = in_turn((Program(streams=(stream,)),), np.zeros(RANKS, np.int32), np.zeros(RANKS, np.bool_), pairs)
    return program.streams[0]
