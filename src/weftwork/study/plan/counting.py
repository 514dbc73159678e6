"""All plans of a search, counted by closed forms and in the order of their times.

A few plans of every way to spread the GPUs are counted first. So there are good plans after seconds, and the other
plans of promising ways come before those of others; where time is short, these others are left with their few.
Leaves out: runs of an engine (`weftwork.study.plan.search`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.study.plan.space import PossiblePlan, Space, feasible_plans
from weftwork.workload.parallelism.many_memory import ManyMemories
from weftwork.workload.parallelism.plan_columns import KEYS, distinct_rows
from weftwork.workload.training.closed_form import IterationTime
from weftwork.workload.training.many_forms import IterationTimes, ManyForms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.training import Parallelism
    from weftwork.study.plan.space import Degrees, FeasiblePlans
    from weftwork.study.pool.side_by_side import Workers
    from weftwork.study.prepare.training import TrainingSetting

    Told = Callable[[str, int, int], None]

__all__ = ["Counted", "CountedPlans", "Counting", "count_plans"]

_SEARCHES: Final = count()
FEW: Final = 2  # chosen: parts for each process; with fewer all plans are counted at once


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """A plan with its closed form."""

    candidate: PossiblePlan
    time: IterationTime


@dataclass(frozen=True, kw_only=True, slots=True)
class CountedPlans:
    """Plans with their closed forms, as columns.

    Attributes
    ----------
    feasible : the plans
    times : of each
    """

    feasible: FeasiblePlans
    times: IterationTimes

    def __len__(self) -> int:
        return len(self.feasible)

    def counted(self, place: int) -> Counted:
        """One of the plans."""
        fields = IterationTime.__dataclass_fields__
        taken = {name: int(getattr(self.times, name)[place]) for name in fields}
        return Counted(candidate=self.feasible.candidate(place), time=IterationTime(**taken))

    def chosen(self, places: NDArray[np.int64]) -> CountedPlans:
        """Some of the plans."""
        taken = {name: getattr(self.times, name)[places] for name in IterationTimes.__dataclass_fields__}
        return CountedPlans(feasible=self.feasible.chosen(places), times=IterationTimes(**taken))

    def by_time(self) -> CountedPlans:
        """The plans, the fastest first and of equal times that with less memory.

        Plans that differ only in the order of ranks or in what the ends count, and take the same time and memory, are
        there once.
        """
        order = np.lexsort((self.feasible.memory_bytes, self.times.total_ps))
        sorted_plans = self.chosen(order)
        plans = sorted_plans.feasible.plans
        rest = [place for place, key in enumerate(KEYS) if key not in {"order", "has_balanced_ends"}]
        _, alike_time = np.unique(sorted_plans.times.total_ps, return_inverse=True)
        _, alike_memory = np.unique(sorted_plans.feasible.memory_bytes, return_inverse=True)
        first, _ = distinct_rows(np.column_stack([plans.values[:, rest], alike_time, alike_memory]))
        return sorted_plans.chosen(np.sort(first))

    def front(self) -> list[Counted]:
        """Of plans by time those that no faster plan beats in memory."""
        memory_bytes = self.feasible.memory_bytes
        least = np.minimum.accumulate(memory_bytes) if len(self) else memory_bytes
        is_front = np.ones(len(self), bool)
        is_front[1:] = memory_bytes[1:] < least[:-1]
        return [self.counted(place) for place in np.flatnonzero(is_front).tolist()]


@dataclass(frozen=True, kw_only=True, slots=True)
class Counting:
    """What was counted.

    Attributes
    ----------
    plans : by time
    ways : to spread the GPUs
    left_ways : those of which only a few plans were counted, for lack of time
    """

    plans: CountedPlans
    ways: int
    left_ways: int


def count_plans(
    space: Space,
    setting: TrainingSetting,
    spread: Sequence[list[Degrees]],
    processes: Workers,
    *,
    told: Told,
    until_s: float,
    kept: list[CountedPlans],
) -> Counting:
    """Count plans until all are counted, or time is over.

    Infeasible plans are counted in ``space.pruned``.

    Parameters
    ----------
    space, setting : what is searched, on what
    spread : of `weftwork.study.plan.space.parts`
    processes : that count
    told : called with ``looking`` and then ``counting``, and how many of how many ways are done
    until_s : of `time.monotonic`
    kept : gets what is counted as it comes, for whoever stops the search
    """
    ways, number = sum(map(len, spread)), next(_SEARCHES)
    order = list(range(len(spread)))
    few: list[CountedPlans | None] = [None] * len(spread)
    if len(spread) >= FEW * processes.count:
        asked = [
            _Part(number=number, space=replace(space, is_coarse=True), setting=setting, spread=part) for part in spread
        ]
        done = 0
        told("looking", 0, ways)
        for place, (counted, _, _) in enumerate(processes.answers(_counted_part, asked, until_s=until_s)):
            few[place] = counted
            kept.append(counted)
            done += len(spread[place])
            told("looking", done, ways)
        order.sort(key=lambda place: _fastest_ps(few[place]))
    whole: list[CountedPlans] = []
    done = 0
    asked = [_Part(number=number, space=space, setting=setting, spread=spread[place]) for place in order]
    told("counting", 0, ways)
    for counted, pruned, smallest in processes.answers(_counted_part, asked, until_s=until_s):
        done += len(spread[order[len(whole)]])
        whole.append(counted)
        kept.append(counted)
        space.pruned.update(pruned)
        if smallest is not None:
            space.too_large(*smallest)
        told("counting", done, ways)
    rest = [one for place in order[len(whole) :] if (one := few[place]) is not None]
    return Counting(plans=joined([*whole, *rest]), ways=ways, left_ways=ways - done)


def joined(parts: Sequence[CountedPlans]) -> CountedPlans:
    """Plans of all parts by time."""
    first, *others = parts
    feasible = first.feasible.and_then([one.feasible for one in others])
    taken = {
        name: np.concatenate([getattr(one.times, name) for one in parts])
        for name in IterationTimes.__dataclass_fields__
    }
    return CountedPlans(feasible=feasible, times=IterationTimes(**taken)).by_time()


def _fastest_ps(counted: CountedPlans | None) -> int:
    none = np.iinfo(np.int64).max
    return int(none if counted is None else counted.times.total_ps.min(initial=none))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """The plans that one worker counts at a time.

    Parts of one search have its number, and a worker keeps what it knows of the last search.
    """

    number: int
    space: Space = field(compare=False)
    setting: TrainingSetting = field(compare=False)
    spread: list[Degrees] = field(compare=False)


@lru_cache(maxsize=1)
def _forms(part: _Part) -> tuple[ManyMemories, ManyForms]:
    space = part.space
    memories = ManyMemories(model=space.model, has_flash_attention=space.has_flash_attention)
    return memories, ManyForms(closed=part.setting.closed_forms())


def _counted_part(part: _Part) -> tuple[CountedPlans, Counter[str], tuple[Parallelism, int] | None]:
    space = replace(part.space, pruned=Counter(), smallest=None)
    memories, forms = _forms(part)
    feasible = feasible_plans(space, part.spread, memories)
    counted = CountedPlans(feasible=feasible, times=forms.iterations(feasible.plans))
    return counted, space.pruned, space.smallest
