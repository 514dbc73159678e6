"""The plans for a model on a number of GPUs.

They are all combinations of the keys that the user has not fixed.

Some are left out since another plan is never slower and never needs more memory: GPipe beside 1F1B, tensor ranks
without sequence parallelism, more recomputation than memory asks for, ZeRO 2 where ZeRO 1 fits with no more. Others are
left out by rules that people keep and that a user lifts by giving the key: tensor and expert-tensor ranks stay in an
NVLink domain, a context rank has at least 1,024 tokens, a pass has at most 16 sequences.
Leaves out: offloading, virtual stages that do not divide the layers of a stage, uneven stages by hand, plans that leave
GPUs idle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.scenario.training import TrainingSection
from weftwork.spec.training import HEADROOM, Gpu, Model, Parallelism
from weftwork.study.plan.trainers import Trainer
from weftwork.workload.parallelism.many_memory import ManyMemories
from weftwork.workload.parallelism.plan_columns import KEYS, PlanColumns, distinct_rows
from weftwork.workload.parallelism.refuse import PlanLimits, first_misfits

__all__ = [
    "SEARCHED", "Degrees", "FeasiblePlans", "PossiblePlan", "Space", "candidates", "feasible_plans", "most_bytes",
    "parts",
]  # fmt: skip

Degrees = Mapping[str, int]

LEAST_TOKENS: Final = 1_024  # chosen: of a context rank; below, attention is too short to hide its keys and values
MOST_SEQUENCES: Final = 16  # chosen: of a pass; the largest micro batch of the published tables is 16
SCHEDULES: Final = ("1f1b", "zb-h1", "dualpipe")  # frozen weights have no gradients that could be delayed
ORDERS: Final = ("tp-cp-dp-pp", "tp-cp-pp-dp")
PARTS: Final = 12  # chosen: so that processes end at the same time, and neighbours still share what they ask
LEAST_WAYS, MOST_WAYS = 32, 192  # chosen: of a part: half a second and a few seconds of counting
_OF_PASS: Final = ("tensor", "context", "expert", "expert_tensor")  # degrees that decide what a pass takes
_COLUMNS: Final = {"balanced_ends": "has_balanced_ends"}  # by key of the scenario, where the record's differs
_KEYS: Final = {column: key for key, column in _COLUMNS.items()}
# Of keys that decide little beside degrees: the places of values that are looked at first; -1 is the last place
_FEW: Final[Mapping[str, frozenset[int]]] = {
    "schedule": frozenset({0}),
    "balanced_ends": frozenset({0}),
    "order": frozenset({0}),
    "virtual_stages": frozenset({0, -1}),
    "micro_batch": frozenset({0, 1}),
    "zero": frozenset({0, 1, -1}),
}
RECOMPUTE: Final = ("none", "selective", "full")  # each slower than the one before
# Keys of `training` that are searched, in the order of the loops
SEARCHED: Final = (
    "tensor", "context", "expert", "expert_tensor", "pipeline", "data", "order", "schedule", "balanced_ends",
    "virtual_stages", "micro_batch", "zero", "recompute",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class PossiblePlan:
    """A feasible plan.

    Attributes
    ----------
    keys : of ``training``, those that were searched, and the placement
    plan : resolved
    memory_bytes : of the GPU that needs most
    """

    keys: Mapping[str, Any]
    plan: Parallelism
    memory_bytes: int


@dataclass(kw_only=True, slots=True)
class Space:
    """The searched space, and its infeasible plans.

    Attributes
    ----------
    section : of the scenario; its values of searched keys count only where these are fixed
    model, gpu : what trains on what
    gpus : that take part
    domain_gpus : of an NVLink domain
    has_flash_attention : of the software
    fixed : keys of ``training`` that the user has given
    headroom : share of the memory of a GPU that a plan leaves free
    smallest : of the plans that need too much memory the plan that needs least, and its memory
    pruned : how many plans were left out, by the key that stood in the way; ``memory`` is a key, and so is what
        the trainer excludes (`weftwork.study.plan.trainers.Trainer.reasons`)
    trainer : that has to run the plans; None: any
    is_coarse : whether only a few plans of each way to spread the GPUs are made
    """

    section: TrainingSection
    model: Model
    gpu: Gpu
    gpus: int
    domain_gpus: int
    has_flash_attention: bool
    fixed: frozenset[str]
    headroom: float = HEADROOM
    smallest: tuple[Parallelism, int] | None = None
    pruned: Counter[str] = field(default_factory=Counter)
    trainer: Trainer | None = None
    is_coarse: bool = False

    @property
    def gpu_bytes(self) -> int:
        """Memory of a GPU: what the scenario permits, by default all that it has."""
        return self.section.memory_bytes or self.gpu.memory_bytes

    @property
    def limit_bytes(self) -> int:
        """Memory that a plan may use."""
        return most_bytes(self.gpu_bytes, self.headroom)

    @property
    def limits(self) -> PlanLimits:
        """What a plan is judged by."""
        return PlanLimits(
            model=self.model,
            gpus=self.gpus,
            gpu=self.gpu,
            memory_bytes=self.limit_bytes,
            has_flash_attention=self.has_flash_attention,
        )

    def too_large(self, plan: Parallelism, memory_bytes: int) -> None:
        """Note a plan that needs too much memory."""
        if self.smallest is None or memory_bytes < self.smallest[1]:
            self.smallest = plan, memory_bytes

    def choices(self, key: str, values: Sequence[Any]) -> Sequence[Any]:
        """Values of a key; a fixed key has only the user's."""
        if key in self.fixed:
            return (getattr(self.section, key),)
        if self.trainer is not None:
            values = self.trainer.choices(key, values)
        return _few(key, values) if self.is_coarse and key in _FEW else values


def most_bytes(gpu_bytes: int, headroom: float) -> int:
    """Memory that a plan may use, with a share of a GPU's left free.

    Examples
    --------
    >>> most_bytes(80_000_000_000, 0.1), most_bytes(80_000_000_000, 0.0)
    (72000000000, 80000000000)
    """
    return floor(gpu_bytes * (1 - Fraction(str(headroom))))


def parts(space: Space) -> list[list[Degrees]]:
    """Ways to spread the GPUs, in the order of the search.

    Ways with equal times for a pass are consecutive, and a part has as many as are counted at a time.
    """
    found: dict[tuple[int, ...], list[Degrees]] = {}
    for degrees in _degrees(space):
        found.setdefault(tuple(degrees[key] for key in _OF_PASS), []).append(degrees)
    joined: list[list[Degrees]] = []
    most = max(LEAST_WAYS, min(MOST_WAYS, sum(map(len, found.values())) // PARTS))
    for ways in found.values():
        if not joined or len(joined[-1]) + len(ways) > most:
            joined.append([])
        joined[-1] += ways
    return joined


@dataclass(frozen=True, kw_only=True, slots=True)
class FeasiblePlans:
    """Feasible plans as columns.

    Attributes
    ----------
    plans : in the order of the search
    memory_bytes : of the GPU of each that needs most. Shape (plans,)
    placement : of all of them
    """

    plans: PlanColumns
    memory_bytes: NDArray[np.int64]
    placement: str

    def __len__(self) -> int:
        return len(self.plans)

    def candidate(self, place: int) -> PossiblePlan:
        """One of the plans."""
        keys = {_KEYS.get(key, key): value for key, value in self.plans.keys(place).items()}
        return PossiblePlan(
            keys={**{key: keys[key] for key in SEARCHED}, "placement": self.placement},
            plan=self.plans.plan(place),
            memory_bytes=int(self.memory_bytes[place]),
        )

    def chosen(self, places: NDArray[np.int64]) -> FeasiblePlans:
        """Some of the plans."""
        return replace(self, plans=self.plans.chosen(places), memory_bytes=self.memory_bytes[places])

    def and_then(self, others: Sequence[FeasiblePlans]) -> FeasiblePlans:
        """These plans and others of the same search."""
        values = np.concatenate([one.plans.values for one in (self, *others)])
        memory_bytes = np.concatenate([one.memory_bytes for one in (self, *others)])
        return replace(self, plans=self.plans.with_values(values), memory_bytes=memory_bytes)


def candidates(space: Space, spread: Iterable[Degrees]) -> Iterator[PossiblePlan]:
    """All feasible plans of ways to spread the GPUs, one by one; see `feasible_plans`."""
    found = feasible_plans(space, spread)
    for place in range(len(found)):
        yield found.candidate(place)


def feasible_plans(space: Space, spread: Iterable[Degrees], memories: ManyMemories | None = None) -> FeasiblePlans:
    """All feasible plans of ways to spread the GPUs: for each way to shard the one with the least recomputation.

    Infeasible plans are counted in ``space.pruned``.

    Parameters
    ----------
    space : that is searched
    spread : of `parts`
    memories : of plans that were asked for before
    """
    known = memories or ManyMemories(model=space.model, has_flash_attention=space.has_flash_attention)
    section = space.section
    exchange = section.context_exchange
    rows = [{**degrees, **rest} for degrees in spread for rest in _rest(space, degrees)]
    plans = PlanColumns.of(
        [{_COLUMNS.get(key, key): value for key, value in row.items()} for row in rows],
        base=section.parallelism(space.model),
        overlaps=(section.overlap.resolved(1, exchange), section.overlap.resolved(2, exchange)),
        prefetches=section.prefetches(3),
    )
    plans = _without_misfits(space, plans)
    sharded = plans.each_with("zero", space.choices("zero", [0, 1, 2, 3]))
    if "zero" not in space.fixed:  # there is nobody to shard with
        alone = sharded.column("data") * sharded.column("context") == 1
        sharded = sharded.chosen(~(alone & (sharded.column("zero") > 0)))
    is_more = sharded.column("zero") > 1
    fit = np.array([not key for key in _counted_misfits(space, sharded.chosen(is_more))], bool)
    kept = ~is_more
    kept[is_more] = fit
    least, memory_bytes = _least_recomputed(space, sharded.chosen(kept), known)
    place = np.arange(len(least))
    if "zero" not in space.fixed:
        place = place[~_takes_no_less(least)]
    found = FeasiblePlans(plans=least.chosen(place), memory_bytes=memory_bytes[place], placement=section.placement)
    return _with_orders(space, found)


def _without_misfits(space: Space, plans: PlanColumns) -> PlanColumns:
    return plans.chosen(np.array([not key for key in _counted_misfits(space, plans)], bool))


def _counted_misfits(space: Space, plans: PlanColumns) -> list[str]:
    found = first_misfits(space.limits, plans)
    if space.trainer is not None:
        excluded = space.trainer.excluded(space.model, plans)
        found = [key or reason for key, reason in zip(found, excluded, strict=True)]
    space.pruned.update(key for key in found if key)
    return found


def _least_recomputed(
    space: Space, plans: PlanColumns, memories: ManyMemories
) -> tuple[PlanColumns, NDArray[np.int64]]:
    """The plans with the least recomputation with which they fit a GPU, and their memory."""
    values, memory_bytes = plans.values.copy(), np.zeros(len(plans), np.int64)
    is_open = np.ones(len(plans), bool)
    column = KEYS.index("recompute")
    for how in space.choices("recompute", RECOMPUTE):
        places = np.flatnonzero(is_open)
        tried = plans.chosen(places).each_with("recompute", [how])
        can_be = np.array([not key for key in first_misfits(space.limits, tried)], bool)
        places, tried = places[can_be], tried.chosen(can_be)
        needed = memories.fullest_bytes(tried)
        fits = needed <= space.limit_bytes
        if not fits.all():
            least = int(np.where(fits, np.iinfo(np.int64).max, needed).argmin())
            space.too_large(tried.plan(least), int(needed[least]))
        values[places[fits], column] = tried.values[fits, column]
        memory_bytes[places[fits]] = needed[fits]
        is_open[places[fits]] = False
    space.pruned.update({"memory": int(is_open.sum())} if is_open.any() else {})
    return plans.with_values(values[~is_open]), memory_bytes[~is_open]


def _takes_no_less(plans: PlanColumns) -> NDArray[np.bool_]:
    """Plans of ZeRO 2 that recompute what the same plan of ZeRO 1 recomputes, which takes no longer."""
    zero = KEYS.index("zero")
    rest = np.delete(plans.values, zero, axis=1)
    _, which = distinct_rows(rest)
    is_first = plans.column("zero") == 1
    has_first = np.zeros(len(plans) and int(which.max()) + 1, bool)
    has_first[which[is_first]] = True
    found: NDArray[np.bool_] = (plans.column("zero") == 2) & has_first[which]
    return found


def _with_orders(space: Space, found: FeasiblePlans) -> FeasiblePlans:
    """Each plan with the distinct orders of its ranks."""
    orders = space.choices("order", ORDERS)
    if len(orders) == 1:
        return replace(found, plans=found.plans.each_with("order", orders))
    both = found.plans.each_with("order", ORDERS)
    memory_bytes = np.repeat(found.memory_bytes, len(ORDERS))
    is_kept = (both.column("pipeline") > 1) & (both.column("data") > 1) | both.is_word("order", ORDERS[0])
    if space.trainer is not None:
        is_kept &= np.array([not reason for reason in space.trainer.excluded(space.model, both)], bool)
    place = np.flatnonzero(is_kept)
    return replace(found, plans=both.chosen(place), memory_bytes=memory_bytes[place])


def _degrees(space: Space) -> Iterator[dict[str, int]]:
    """Ways to spread the GPUs."""
    model, gpus = space.model, space.gpus
    inside = max(1, space.domain_gpus)
    sequence = space.section.sequence or model.sequence
    for tensor in space.choices("tensor", [one for one in _divisors(gpus) if one <= inside]):
        contexts = [one for one in _divisors(gpus // tensor or 1) if one == 1 or sequence // one >= LEAST_TOKENS]
        for context in space.choices("context", contexts):
            left = gpus // (tensor * context)
            for pipeline in space.choices("pipeline", [one for one in _divisors(left) if one <= model.layers]):
                for data in space.choices("data", [left // pipeline] if pipeline <= left else []):
                    found = {"tensor": tensor, "context": context, "pipeline": pipeline, "data": data}
                    for expert, expert_tensor in _experts(space, tensor * context * data, inside):
                        yield {**found, "expert": expert, "expert_tensor": expert_tensor}


def _experts(space: Space, ranks: int, inside: int) -> Iterator[tuple[int, int]]:
    """Ways to spread experts over the ranks of a stage."""
    experts = space.model.experts
    spread = [one for one in _divisors(experts) if ranks % one == 0] if experts else [1]
    shared = [one for one in _divisors(ranks) if one <= inside] if experts else [1]
    for expert in space.choices("expert", spread):
        for expert_tensor in space.choices("expert_tensor", shared):
            yield expert, expert_tensor


def _rest(space: Space, degrees: Degrees) -> Iterator[dict[str, Any]]:
    """Ways to schedule a spread."""
    pipeline = degrees["pipeline"]
    each = space.section.global_batch // degrees["data"]
    sizes = [one for one in _divisors(each) if one <= MOST_SEQUENCES] if each else []
    schedules = SCHEDULES if pipeline > 1 and space.section.phase != "fine-tuning-lora" else SCHEDULES[:1]
    for micro_batch in space.choices("micro_batch", sizes):
        for schedule in space.choices("schedule", schedules):
            for balanced_ends in space.choices("balanced_ends", [False, True] if pipeline > 1 else [False]):
                units = space.model.layers + (2 + space.model.prediction_layers if balanced_ends else 0)
                most = units // pipeline if pipeline > 1 and schedule == "1f1b" else 1
                for virtual_stages in space.choices("virtual_stages", _divisors(max(1, most))):
                    yield {
                        "micro_batch": micro_batch,
                        "schedule": schedule,
                        "virtual_stages": virtual_stages,
                        "balanced_ends": balanced_ends,
                    }


def _few(key: str, values: Sequence[Any]) -> Sequence[Any]:
    """The values with which a way to spread the GPUs shows what it is worth."""
    return [value for place, value in enumerate(values) if place in _FEW[key] or place - len(values) in _FEW[key]]


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]
