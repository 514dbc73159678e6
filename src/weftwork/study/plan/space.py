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
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import Any, Final

from weftwork.spec.scenario.training import TrainingSection
from weftwork.spec.training import HEADROOM, Gpu, Model, Parallelism
from weftwork.workload.parallelism.memory import Memory, fullest_stage
from weftwork.workload.parallelism.refuse import PlanLimits, misfits

__all__ = ["SEARCHED", "Degrees", "PossiblePlan", "Space", "candidates", "most_bytes", "parts"]

Degrees = Mapping[str, int]

LEAST_TOKENS: Final = 1_024  # chosen: of a context rank; below, attention is too short to hide its keys and values
MOST_SEQUENCES: Final = 16  # chosen: of a pass; the largest micro batch of the published tables is 16
SCHEDULES: Final = ("1f1b", "zb-h1", "dualpipe")  # frozen weights have no gradients that could be delayed
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
    pruned : how many plans were left out, by the key that stood in the way; ``memory`` is a key
    """

    section: TrainingSection
    model: Model
    gpu: Gpu
    gpus: int
    domain_gpus: int
    has_flash_attention: bool
    fixed: frozenset[str]
    headroom: float = HEADROOM
    smallest: tuple[Parallelism, Memory] | None = None
    pruned: Counter[str] = field(default_factory=Counter)

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

    def too_large(self, plan: Parallelism, memory: Memory) -> None:
        """Note a plan that needs too much memory."""
        if self.smallest is None or memory.total_bytes < self.smallest[1].total_bytes:
            self.smallest = plan, memory

    def choices(self, key: str, values: Sequence[Any]) -> Sequence[Any]:
        """Values of a key; a fixed key has only the user's."""
        return (getattr(self.section, key),) if key in self.fixed else values


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

    Ways with equal time for a pass are consecutive.
    """
    found: dict[tuple[int, int], list[Degrees]] = {}
    for degrees in _degrees(space):
        found.setdefault((degrees["tensor"], degrees["context"]), []).append(degrees)
    return list(found.values())


def candidates(space: Space, spread: Iterable[Degrees]) -> Iterator[PossiblePlan]:
    """All feasible plans of ways to spread the GPUs.

    Infeasible plans are counted in ``space.pruned``.
    """
    for degrees in spread:
        for rest in _rest(space, degrees):
            yield from _fitting(space, {**degrees, **rest})


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


def _fitting(space: Space, keys: Mapping[str, Any]) -> Iterator[PossiblePlan]:
    """The feasible plan with the least recomputation, for each way to shard."""
    base = space.section.model_copy(update=dict(keys))
    plan = base.parallelism(space.model)
    given = space.limits
    why = misfits(given, plan)
    if why:
        space.pruned[why[0].key] += 1
        return
    sharded = ""  # recomputation with which ZeRO 1 fits
    placement = space.section.placement
    for zero in space.choices("zero", [0, 1, 2, 3] if keys["data"] * keys["context"] > 1 else [0]):
        if zero > 1 and (why := misfits(given, plan.model_copy(update={"zero": zero}))):
            space.pruned[why[0].key] += 1
            continue
        for recompute in space.choices("recompute", RECOMPUTE):
            kept = {"zero": zero, "recompute": recompute, "has_prefetch": base.prefetches(zero)}
            chosen = plan.model_copy(update=kept)
            memory = fullest_stage(space.model, chosen, has_flash_attention=space.has_flash_attention)
            if memory.total_bytes > space.limit_bytes:
                space.too_large(chosen, memory)
                continue
            if zero == 2 and recompute == sharded and "zero" not in space.fixed:
                break  # ZeRO 1 takes no longer
            sharded = recompute if zero == 1 else sharded
            for order in _orders(space, chosen):
                yield PossiblePlan(
                    keys={**keys, "zero": zero, "recompute": recompute, "order": order, "placement": placement},
                    plan=chosen.model_copy(update={"order": order}),
                    memory_bytes=memory.total_bytes,
                )
            break
        else:
            space.pruned["memory"] += 1


def _orders(space: Space, plan: Parallelism) -> Sequence[str]:
    """Distinct orders of ranks."""
    differ = plan.pipeline > 1 and plan.data > 1
    return space.choices("order", ["tp-cp-dp-pp", "tp-cp-pp-dp"] if differ else ["tp-cp-dp-pp"])


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]
