"""Counted plans in the order of their times.

Times are refined only as far as the order requires.

A closed form takes virtual stages as if they held as many layers each; to follow their passes takes many times as long
and tells what unequal ones lose. It was never more than 1.5 % less, so that plans are followed a little before it would
be their turn.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weftwork.study.plan.space import PossiblePlan
    from weftwork.workload.training.closed_form import ClosedForms, IterationTime

__all__ = ["Counted", "PlanOrder"]

LONG: Final = 0.03  # chosen: twice what a closed form was above the same plan followed, at the most


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """A plan with its closed form."""

    candidate: PossiblePlan
    time: IterationTime


class PlanOrder:
    """Plans by time.

    Parameters
    ----------
    counted : by closed forms that take virtual stages as equal
    closed : that follows them
    """

    def __init__(self, counted: Sequence[Counted], closed: ClosedForms) -> None:
        self._counted = counted
        self._closed = closed
        self._sharp: dict[int, Counted] = {
            place: one for place, one in enumerate(counted) if one.candidate.plan.virtual_stages == 1
        }

    def by_time(self) -> Iterator[Counted]:
        """All plans, the fastest first.

        Of two equal times, the plan with less memory comes first.
        """
        heap = self._heap()
        while heap:
            found = self._popped(heap)
            if found is not None:
                yield found

    def front(self) -> list[Counted]:
        """Plans on the front of time and memory, the fastest first."""
        found: list[Counted] = []
        heap = self._heap()
        while heap:
            if found and heap[0][1] >= found[-1].candidate.memory_bytes:
                heapq.heappop(heap)
                continue
            one = self._popped(heap)
            if one is not None:
                found.append(one)
        kept: list[Counted] = []  # one that was followed late may be faster than one before it
        for one in reversed(found):
            if not kept or one.time.total_ps < kept[-1].time.total_ps:
                kept.append(one)
        return kept[::-1]

    def _heap(self) -> list[tuple[int, int, int]]:
        heap = [
            (
                self._sharp[place].time.total_ps if place in self._sharp else round(one.time.total_ps / (1 + LONG)),
                one.candidate.memory_bytes,
                place,
            )
            for place, one in enumerate(self._counted)
        ]
        heapq.heapify(heap)
        return heap

    def _popped(self, heap: list[tuple[int, int, int]]) -> Counted | None:
        """Take the first plan.

        None if it had to be refined and moved to another place.
        """
        _, memory_bytes, place = heapq.heappop(heap)
        if place in self._sharp:
            return self._sharp[place]
        candidate = self._counted[place].candidate
        time = self._closed.iteration(candidate.plan, follows=True)
        self._sharp[place] = Counted(candidate=candidate, time=time)
        heapq.heappush(heap, (time.total_ps, memory_bytes, place))
        return None
