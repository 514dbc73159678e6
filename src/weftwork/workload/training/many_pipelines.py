"""End times of the stages of many pipelines at a time, equal to `FollowedPipeline.ends_ps` of each.

Pipelines of one schedule and length do the same passes in the same order, whatever they take. Passes that wait for
nothing but earlier steps are one step, so that a step is arithmetic on whole columns: a row for each stage that has a
pass in it, a column for each pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.training import PipelineSchedule
from weftwork.workload.training.followed_pipeline import KINDS, block_orders, followed_counts

__all__ = ["many_ends_ps"]

Whole = NDArray[np.int64]
_AT_ONCE: Final = 2_000_000  # chosen: times of messages that are kept at a time, 16 MB


def many_ends_ps(
    schedule: PipelineSchedule, micro_batches: Whole, times_ps: Whole, messages_ps: Whole, *, blocking: float
) -> Whole:
    """End of each stage's last pass.

    Parameters
    ----------
    schedule, blocking : as of `weftwork.workload.training.followed_pipeline.FollowedPipeline`
    micro_batches : of each pipeline. Shape (pipelines,)
    times_ps : shape (pipelines, stages, virtual stages, kinds of passes)
    messages_ps : shape (pipelines, stages): from each stage to the next, and from the last to the first

    Returns
    -------
    shape (pipelines, stages)
    """
    ends = np.empty(messages_ps.shape, np.int64)
    counts, which = np.unique(micro_batches, return_inverse=True)
    stages, virtual_stages = times_ps.shape[1:3]
    followed = [followed_counts(schedule, stages, virtual_stages, count) for count in counts.tolist()]
    is_whole = [few == count for (few, _), count in zip(followed, counts.tolist(), strict=True)]
    for walk in dict.fromkeys(zip(followed, is_whole, strict=True)):  # long pipelines are followed alike
        (few, step), ends_there = walk
        alike = [place for place, one in enumerate(zip(followed, is_whole, strict=True)) if one == walk]
        places = np.flatnonzero(np.isin(which, alike))
        # plans that differ in what comes behind their passes are followed once; rows of times are too wide to pack
        rows = np.hstack([times_ps[places].reshape(len(places), -1), messages_ps[places]])
        distinct, of = np.unique(rows, axis=0, return_inverse=True)
        times = distinct[:, :-stages].reshape(-1, *times_ps.shape[1:])
        messages = distinct[:, -stages:]
        first = _ends_ps(schedule, few, times, messages, blocking)
        ends[places] = first[of.reshape(-1)]
        if not ends_there:
            each = _ends_ps(schedule, few + step, times, messages, blocking) - first
            more = (micro_batches[places] - few) // step
            ends[places] += more[:, None] * each[of.reshape(-1)]
    return ends


def _ends_ps(schedule: PipelineSchedule, count: int, times_ps: Whole, messages_ps: Whole, blocking: float) -> Whole:
    pipelines, stages, virtual_stages = times_ps.shape[:3]
    steps, messages = _steps(schedule, stages, virtual_stages, count)
    taken = times_ps.transpose(1, 2, 3, 0).reshape(-1, pipelines)
    nothing = np.zeros((1, pipelines), np.int64)
    taken, sent = np.vstack([taken, nothing]), np.vstack([messages_ps.T, nothing])
    waited = np.rint(blocking * sent).astype(np.int64)
    found = np.empty((stages, pipelines), np.int64)
    most = max(1, _AT_ONCE // (messages + 2))
    for first in range(0, pipelines, most):
        part = slice(first, first + most)
        found[:, part] = _walked(steps, messages, taken[:, part], sent[:, part], waited[:, part])
    return found.T


@dataclass(frozen=True, slots=True)
class _PassStep:
    """Passes that may be done at the same time, one row for each.

    Attributes
    ----------
    stages : of each
    needed, works, given, links : messages that it needs, what of the times it takes, messages that it gives, and over
        which links; as many columns as any has, of shape (passes,) each
    """

    stages: Whole
    needed: tuple[Whole, ...]
    works: tuple[Whole, ...]
    given: tuple[tuple[Whole, Whole], ...]


def _walked(steps: tuple[_PassStep, ...], messages: int, taken: Whole, sent: Whole, waited: Whole) -> Whole:
    stages, pipelines = len(sent) - 1, taken.shape[1]
    came = np.zeros((messages + 2, pipelines), np.int64)  # behind messages: what nobody needs, and what nobody gives
    now = np.zeros((stages, pipelines), np.int64)
    for step in steps:
        time = now[step.stages]
        for needed in step.needed:
            np.maximum(time, came[needed], out=time)
        for work in step.works:
            time += taken[work]
        end = time
        for message, link in step.given:
            came[message] = time + sent[link]
            end = np.maximum(end, time + waited[link])
        now[step.stages] = end
    return now


@lru_cache(maxsize=256)  # chosen: lengths of pipelines that a search asks for, each for many plans
def _steps(
    schedule: PipelineSchedule, stages: int, virtual_stages: int, count: int
) -> tuple[tuple[_PassStep, ...], int]:
    """Steps of all stages, and how many messages there are."""
    orders = block_orders(schedule, stages, virtual_stages, count)
    messages = 2 * stages * virtual_stages * count
    level_of = [-1] * messages  # of the pass that gives a message
    levels: list[list[tuple[int, int]]] = []  # stage and place in its order
    done, free_at = [0] * stages, [0] * stages
    waiting = list(range(stages))
    while waiting:
        for stage in waiting:
            for needed, _, given in orders[stage][done[stage] :]:
                came = [level_of[message] for message in needed]
                if -1 in came:
                    break
                level = max([free_at[stage], *(one + 1 for one in came)])
                levels.extend([] for _ in range(level + 1 - len(levels)))
                levels[level].append((stage, done[stage]))
                for message, _ in given:
                    level_of[message] = level
                free_at[stage] = level + 1
                done[stage] += 1
        waiting = [stage for stage in waiting if done[stage] < len(orders[stage])]
    no_work = stages * virtual_stages * len(KINDS)
    each = virtual_stages * len(KINDS)
    steps = []
    for at_once in levels:
        blocks = [orders[stage][place] for stage, place in at_once]
        steps.append(
            _PassStep(
                stages=np.array([stage for stage, _ in at_once]),
                needed=_columns([needed for needed, _, _ in blocks], messages),
                works=_columns(
                    [
                        [each * stage + work for work in works]
                        for (stage, _), (_, works, _) in zip(at_once, blocks, strict=True)
                    ],
                    no_work,
                ),
                given=tuple(
                    zip(
                        _columns([[message for message, _ in given] for _, _, given in blocks], messages + 1),
                        _columns([[link for _, link in given] for _, _, given in blocks], stages),
                        strict=True,
                    )
                ),
            )
        )
    return tuple(steps), messages


def _columns(rows: list[tuple[int, ...]] | list[list[int]], filler: int) -> tuple[Whole, ...]:
    """Rows of unequal length as columns."""
    longest = max(map(len, rows), default=0)
    return tuple(np.array([row[place] if place < len(row) else filler for row in rows]) for place in range(longest))
