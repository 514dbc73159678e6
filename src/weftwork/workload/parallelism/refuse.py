"""Refuse infeasible plans before anything runs.

All reasons are given at once, with the nearest feasible plan. The nearest plan is looked for step by step, the smallest
change first: a degree goes to its next value, recomputation or ZeRO goes up by one, the batch to the next that divides.
The model and the number of GPUs stay.
Leaves out: what is allowed and slow, such as tensor parallelism between servers.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from math import gcd, log2
from typing import Any, Final, get_args

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.fix import Settings
from weftwork.base.grammar import plural
from weftwork.spec.training import Gpu, LoraTarget, Model, ModulePrecision, Parallelism, RecomputeModule
from weftwork.workload.models.adapters import PARTS, every_adapter, lora_targets
from weftwork.workload.models.size import layer_kinds, parameters
from weftwork.workload.parallelism.exchanged_heads import head_misfit
from weftwork.workload.parallelism.groups import groups
from weftwork.workload.parallelism.layout import virtual_stages_of
from weftwork.workload.parallelism.memory import (
    RESERVED_BYTES,
    WEIGHT_BYTES,
    Memory,
    adam_bytes,
    fullest_stage,
    gradient_bytes,
)
from weftwork.workload.parallelism.plan_columns import PlanColumns, shared_answers

__all__ = [
    "PlanLimits",
    "Refusal",
    "exceeding_part",
    "first_misfits",
    "misfits",
    "nearest_plan",
    "reasons",
    "refuse",
    "settings",
]

MOST_PLANS: Final = 1_500  # chosen: at most a second or two
_NO_PLAN: Final = "no plan near this one fits; take more GPUs or a smaller model"
_MORE_RECOMPUTED: Final = {"none": "selective", "selective": "full", "operations": "full"}
_KEYS: Final = {
    "is_sequence_parallel": "sequence_parallel",
    "module_precision": "precision_by_module",
    "lora_rank": "lora.rank",
    "lora_targets": "lora.targets",
}  # of the scenario, where they differ from the record's
_STEPS: Final = {"recompute": 0.5, "zero": 0.75, "micro_batch": 0.9}  # chosen: what is changed rather than a degree
_DEGREES: Final = ("tensor", "context", "pipeline")
# What may be changed where a key stands in the way; no guess is made of modules and layouts that were meant.
_REMEDIES: Final[dict[str, tuple[str, ...]]] = {
    "data": _DEGREES,
    "tensor": ("tensor", "context"),
    "context": ("context", "context_exchange"),
    "pipeline": ("pipeline", "virtual_stages"),
    "virtual_stages": ("virtual_stages", "pipeline", "schedule"),
    "schedule": ("schedule", "pipeline"),
    "zero": ("zero", "schedule"),
    "expert": ("expert", "expert_tensor", *_DEGREES),
    "expert_tensor": ("expert_tensor",),
    "is_sequence_parallel": ("is_sequence_parallel", "tensor"),
    "global_batch": ("global_batch", "micro_batch", "virtual_stages", "schedule", *_DEGREES),
    "precision": ("precision",),
    "layout": ("layout",),
    "recompute_modules": ("recompute_modules",),
    "module_precision": ("module_precision",),
    "bf16_last_layers": ("bf16_first_layers", "bf16_last_layers"),
    "memory": (*_DEGREES, "expert", "expert_tensor", "virtual_stages", "recompute", "zero", "micro_batch"),
    **dict.fromkeys(
        ("layout", "recompute_modules", "module_precision", "bf16_last_layers", "lora_rank", "lora_targets"), ()
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """Reason why a plan is infeasible: the responsible key, and a sentence."""

    key: str
    text: str


def refuse(
    model: Model,
    plan: Parallelism,
    *,
    gpus: int,
    gpu: Gpu | None = None,
    memory_bytes: int | None = None,
    has_flash_attention: bool = True,
    path: str = "training",
) -> None:
    """Refuse an infeasible plan; do nothing for a feasible plan.

    Parameters
    ----------
    model, plan : what is asked
    gpus : that take part
    gpu : which decides about precision and memory; None: neither is judged
    memory_bytes : of a GPU that may be used; None: all of it
    has_flash_attention : whether scores of attention are never kept
    path : section of the scenario that holds the plan

    Raises
    ------
    ConfigError : with every reason; the fix of the last one is the nearest feasible plan, as ``--set`` for all of them
    """
    given = PlanLimits(
        model=model, gpus=gpus, gpu=gpu, memory_bytes=memory_bytes, has_flash_attention=has_flash_attention
    )
    found = reasons(given, plan)
    if not found:
        return
    near = nearest_plan(given, plan)
    fix = None if near is None else settings(plan, near, path=path)
    mistakes = [Mistake(path=f"{path}.{_KEYS.get(one.key, one.key)}", text=one.text) for one in found]
    text = mistakes[-1].text if fix is not None else f"{mistakes[-1].text}; {_NO_PLAN}"
    raise ConfigError(path, [*mistakes[:-1], replace(mistakes[-1], text=text, fix=fix)])


def settings(plan: Parallelism, other: Parallelism, *, path: str = "training") -> Settings:
    """The settings that change ``plan`` into ``other``."""
    changed = [key for key in Parallelism.model_fields if getattr(plan, key) != getattr(other, key)]
    return Settings(tuple((f"{path}.{_KEYS.get(key, key)}", _shown(getattr(other, key))) for key in changed))


def _shown(value: object) -> str:
    """A value as written in YAML on the command line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, ModulePrecision):
        return "{}"  # every module as its layer
    return str(value) or "null"


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanLimits:
    """Context of a plan; parameters of `refuse`."""

    model: Model
    gpus: int
    gpu: Gpu | None = None
    memory_bytes: int | None = None
    has_flash_attention: bool = True

    @property
    def limit_bytes(self) -> int | None:
        """Usable memory of a GPU; None if unknown."""
        if self.memory_bytes is not None or self.gpu is None:
            return self.memory_bytes
        return self.gpu.memory_bytes


def reasons(given: PlanLimits, plan: Parallelism) -> list[Refusal]:
    """Every reason why a plan is infeasible.

    Memory is judged if the shapes fit.
    """
    return misfits(given, plan) or _memory(given, plan)


def misfits(given: PlanLimits, plan: Parallelism) -> list[Refusal]:
    """Every reason except memory why a plan is infeasible."""
    return [refusal for _, rule in _RULES for refusal in rule(given, plan)]


def first_misfits(given: PlanLimits, plans: PlanColumns) -> list[str]:
    """The key that stands in the way of each of many plans, memory aside: the first of `misfits`, or nothing."""
    found = [""] * len(plans)
    open_places = np.arange(len(plans))
    for keys, rule in _RULES:
        left = plans.chosen(open_places)

        def answer(place: int, *, rule: _Rule = rule, left: PlanColumns = left) -> str:
            return next((refusal.key for refusal in rule(given, left.plan(place))), "")

        answers, which = shared_answers(left.by(keys), {}, answer)
        is_refused = np.array([bool(key) for key in answers], bool)[which] if answers else np.zeros(0, bool)
        for place, refused in zip(open_places[is_refused].tolist(), which[is_refused].tolist(), strict=True):
            found[place] = answers[refused]
        open_places = open_places[~is_refused]
    return found


def _gpus(given: PlanLimits, plan: Parallelism) -> Iterator[Refusal]:
    if plan.ranks != given.gpus:
        degrees = f"tensor {plan.tensor} x context {plan.context} x pipeline {plan.pipeline} x data {plan.data}"
        yield Refusal(key="data", text=f"{degrees} = {plan.ranks:,}, wanted the {plural(given.gpus, 'GPU')}")


def _tensor(model: Model, plan: Parallelism) -> Iterator[Refusal]:
    tensor = plan.tensor
    wanted = [("heads", model.heads)]
    if model.latent_attention is None:
        wanted.append(("key and value heads", model.key_value_heads))
    if any(kind.mlp == "dense" for kind in layer_kinds(model)):
        wanted.append(("columns of the MLP", model.ffn))
    if model.shared_ffn:
        wanted.append(("columns of the shared experts", model.shared_ffn))
    if model.state_space is not None:
        wanted += [
            ("heads of the state space", model.state_space.heads),
            ("groups of the state space", model.state_space.groups),
        ]
    if model.delta is not None:
        wanted.append(("key heads of the delta net", model.delta.key_heads))
    for name, size in wanted:
        if size % tensor:
            yield Refusal(
                key="tensor", text=f"found {tensor}, wanted a divisor of the {size:,} {name} of '{model.name}'"
            )


def _experts(model: Model, plan: Parallelism) -> Iterator[Refusal]:
    if not model.experts:
        for key in ("expert", "expert_tensor"):
            if getattr(plan, key) > 1:
                yield Refusal(key=key, text=f"found {getattr(plan, key)}, wanted 1: '{model.name}' has no experts")
        return
    if model.experts % plan.expert:
        text = f"found {plan.expert}, wanted a divisor of the {plural(model.experts, 'expert')} of '{model.name}'"
        yield Refusal(key="expert", text=text)
        return
    if model.expert_ffn % plan.expert_tensor:
        text = f"found {plan.expert_tensor}, wanted a divisor of the {plural(model.expert_ffn, 'column')} of an expert"
        yield Refusal(key="expert_tensor", text=text)
    try:
        groups(plan)
    except ConfigError as error:
        yield from (Refusal(key=one.path.rpartition(".")[2], text=one.text) for one in error.mistakes)
    if plan.tensor > 1 and not plan.is_sequence_parallel:
        text = "found false, wanted true: with tensor above 1 every rank would send the same tokens to experts"
        yield Refusal(key="is_sequence_parallel", text=text)


def _pipeline(model: Model, plan: Parallelism) -> Iterator[Refusal]:
    try:
        virtual_stages_of(model, plan)
    except ConfigError as error:
        yield from (Refusal(key=one.path.rpartition(".")[2], text=one.text) for one in error.mistakes)
    if plan.layout and plan.has_balanced_ends:
        yield Refusal(key="layout", text="found with balanced_ends, wanted one of the two: both place the layers")
    if plan.layout and plan.has_mirror:
        yield Refusal(key="layout", text="found with schedule dualpipe, wanted 1f1b, gpipe or zb-h1: stages mirror")
    if plan.virtual_stages > 1 and plan.pipeline == 1:
        text = f"found {plan.virtual_stages}, wanted 1: one stage has no bubble to shorten"
        yield Refusal(key="virtual_stages", text=text)
    elif plan.virtual_stages > 1 and plan.schedule != "1f1b":
        yield Refusal(key="virtual_stages", text=f"found {plan.virtual_stages}, wanted 1 with schedule {plan.schedule}")
    if plan.has_split_backward and plan.has_lora:
        text = f"found '{plan.schedule}', wanted 1f1b or gpipe: frozen weights have no gradients to delay"
        yield Refusal(key="schedule", text=text)
    if plan.has_mirror and plan.pipeline % 2:
        text = (
            f"found 'dualpipe' with {plural(plan.pipeline, 'stage')}, wanted an even number of them: it goes both ways"
        )
        yield Refusal(key="schedule", text=text)
    if plan.has_mirror and plan.zero == 3:
        text = "found 3, wanted 0, 1 or 2: dualpipe keeps two copies of the weights to have them at hand"
        yield Refusal(key="zero", text=text)


def _batch(plan: Parallelism) -> Iterator[Refusal]:
    at_once = plan.data * plan.micro_batch
    if plan.global_batch % at_once:
        text = f"found {plan.global_batch:,}, wanted a multiple of data {plan.data} x micro_batch {plan.micro_batch}"
        yield Refusal(key="global_batch", text=text)
    elif plan.virtual_stages > 1 and plan.micro_batches % plan.pipeline:
        wanted = f"wanted with virtual stages a multiple of the {plural(plan.pipeline, 'stage')}"
        text = f"makes {plural(plan.micro_batches, 'micro batch', 'micro batches')}, {wanted}"
        yield Refusal(key="global_batch", text=text)
    elif plan.has_mirror and (plan.micro_batches % 2 or plan.micro_batches < 2 * plan.pipeline):
        wanted = (
            f"wanted with dualpipe an even number, and two or more for each of the {plural(plan.pipeline, 'stage')}"
        )
        yield Refusal(
            key="global_batch", text=f"makes {plural(plan.micro_batches, 'micro batch', 'micro batches')}, {wanted}"
        )


def _sequence(model: Model, plan: Parallelism) -> Iterator[Refusal]:
    misfit = head_misfit(model, plan)
    if misfit is not None:
        yield Refusal(key="context", text=misfit)
    if plan.context > 1 and plan.sequence % (2 * plan.context):
        text = (
            f"found {plan.context}, wanted half a divisor of the {plural(plan.sequence, 'token')}: a rank has two "
            "pieces"
        )
        yield Refusal(key="context", text=text)
    elif plan.is_sequence_parallel and plan.tensor > 1 and plan.sequence // plan.context % plan.tensor:
        tokens = plan.sequence // plan.context
        yield Refusal(
            key="tensor", text=f"found {plan.tensor}, wanted a divisor of the {plural(tokens, 'token')} of a sequence"
        )


def _precision(gpu: Gpu | None, plan: Parallelism) -> Iterator[Refusal]:
    if gpu is None:
        return
    has_blocks = gpu.fp4_flops > gpu.fp8_flops  # block scaling came with FP4
    used = [("precision", "", plan.precision)]
    used += [("module_precision", f" of {name}", one) for name, one in plan.module_precision if one is not None]
    for key, where, precision in used:
        if precision == "fp8" and gpu.fp8_flops <= gpu.bf16_flops:
            yield Refusal(key=key, text=f"found 'fp8'{where}, wanted bf16: '{gpu.name}' is no faster in FP8")
        elif precision in {"mxfp8", "nvfp4"} and not has_blocks:
            wanted = "fp8 or bf16" if gpu.fp8_flops > gpu.bf16_flops else "bf16"
            text = f"found '{precision}'{where}, wanted {wanted}: '{gpu.name}' has no numbers with scales of blocks"
            yield Refusal(key=key, text=text)


def _gradients(plan: Parallelism) -> Iterator[Refusal]:
    if plan.has_gradient_copy and plan.zero > 1:
        text = f"found {plan.zero}, wanted 0 or 1: the optimizer that keeps gradients as bf16+fp32 does not shard them"
        yield Refusal(key="zero", text=text)


def _modules(model: Model, plan: Parallelism) -> Iterator[Refusal]:
    """Named modules that the model does not have."""
    kinds = layer_kinds(model)
    has_attention = any(kind.mixer in {"attention", "window"} for kind in kinds)
    has_experts = any(kind.mlp == "experts" for kind in kinds)
    recomputed: dict[RecomputeModule, bool] = {
        "core_attn": has_attention,
        "layernorm": True,
        "mla_up_proj": model.latent_attention is not None,
        "mlp": any(kind.mlp == "dense" for kind in kinds),
        "moe": has_experts,
        "moe_act": has_experts,
    }
    cast = {
        "qkv": has_attention,
        "projection": has_attention,
        "latent": model.expert_hidden > 0,
        "mamba_out": model.state_space is not None,
        "prediction": model.prediction_layers > 0,
    }
    wanted = f"wanted {{}} of '{model.name}'"
    if plan.recompute == "selective" and plan.recompute_modules != ("core_attn",):
        there = [module for module, is_there in recomputed.items() if is_there]
        for module in plan.recompute_modules:
            if module not in there:
                yield Refusal(key="recompute_modules", text=f"found {module}, {wanted.format(', '.join(there))}")
    is_plain = all(kind.mixer in {"attention", "window"} and kind.mlp == "dense" for kind in kinds)
    if plan.recompute == "operations" and (not is_plain or model.latent_attention or model.prediction_layers):
        text = (
            f"found operations, wanted none, selective or full: '{model.name}' has more than attention and dense MLPs"
        )
        yield Refusal(key="recompute", text=text)
    has = [name for name, is_there in cast.items() if is_there]
    for name, precision in plan.module_precision:
        if precision is not None and name not in has:
            text = f"found {name}, {wanted.format(', '.join(has) or 'none')}"
            yield Refusal(key="module_precision", text=text)
    if plan.bf16_first_layers + plan.bf16_last_layers > model.layers:
        found = f"found {plan.bf16_first_layers} and {plan.bf16_last_layers}"
        yield Refusal(
            key="bf16_last_layers",
            text=f"{found}, wanted at most the {plural(model.layers, 'layer')} of '{model.name}'",
        )


def _adapters(model: Model, plan: Parallelism) -> Iterator[Refusal]:
    """Adapters beside matrices that the model does not have, or that get none."""
    if not plan.has_lora:
        return
    if plan.lora_rank % plan.tensor:
        text = f"found {plan.lora_rank}, wanted a multiple of tensor {plan.tensor}, whose ranks split an adapter"
        yield Refusal(key="lora_rank", text=text)
    if model.latent_attention is not None:
        text = f"found adapters, wanted all weights trained: the latent attention of '{model.name}' gets no adapters"
        yield Refusal(key="lora_targets", text=text)
        return
    offered = {adapter.target for kind in layer_kinds(model) for half in every_adapter(model, kind) for adapter in half}
    names = [target for target in get_args(LoraTarget) if target in offered]
    if not names:
        yield Refusal(
            key="lora_targets", text=f"found adapters, wanted all weights: '{model.name}' has no such matrices"
        )
        return
    chosen = lora_targets(model, plan)
    for target in chosen:
        if model.experts and target.startswith("linear_fc"):
            text = f"found {target}, wanted matrices of attention: experts of '{model.name}' get no adapters"
            yield Refusal(key="lora_targets", text=text)
        elif target not in offered:
            text = f"found {target}, wanted {', '.join(names)} of '{model.name}'"
            yield Refusal(key="lora_targets", text=text)
    for whole, parts in PARTS.items():
        both = [part for part in parts if part in chosen]
        if whole in chosen and both:
            text = f"found {whole} with {both[0]}, wanted one of the two: the one is a part of the other"
            yield Refusal(key="lora_targets", text=text)


def _memory(given: PlanLimits, plan: Parallelism) -> list[Refusal]:
    limit = given.limit_bytes
    if limit is None:
        return []
    needed = fullest_stage(given.model, plan, has_flash_attention=given.has_flash_attention)
    if needed.total_bytes <= limit:
        return []
    where = f"GPUs of stage {needed.stage}" if plan.pipeline > 1 else "a GPU"
    text = (
        f"{where} would need {needed.total_bytes / 1e9:.1f} of {limit / 1e9:.1f} GB: {needed.text}; "
        f"{exceeding_part(needed, limit)}"
    )
    return [Refusal(key="memory", text=text)]


def exceeding_part(memory: Memory, limit_bytes: int) -> str:
    """The part of the memory that exceeds a limit, in words."""
    if memory.weights_bytes + memory.quantised_bytes + memory.reserved_bytes > limit_bytes:
        return "weights alone exceed it"
    if memory.states_bytes + memory.reserved_bytes > limit_bytes:
        return "weights, gradients and optimizer alone exceed it"
    return "activations do not fit beside weights, gradients and optimizer"


_Rule = Callable[[PlanLimits, Parallelism], Iterable[Refusal]]
# Each rule with those keys of `KEYS` that decide what it says
_RULES: Final[tuple[tuple[tuple[str, ...], _Rule], ...]] = (
    (("tensor", "context", "pipeline", "data"), _gpus),
    (("tensor",), lambda given, plan: _tensor(given.model, plan)),
    (
        ("tensor", "context", "pipeline", "data", "expert", "expert_tensor", "order"),
        lambda given, plan: _experts(given.model, plan),
    ),
    (
        ("pipeline", "virtual_stages", "schedule", "has_balanced_ends", "zero", "recompute"),
        lambda given, plan: _pipeline(given.model, plan),
    ),
    (("pipeline", "virtual_stages", "schedule", "data", "micro_batch"), lambda _, plan: _batch(plan)),
    (("tensor", "context"), lambda given, plan: _sequence(given.model, plan)),
    ((), lambda given, plan: _precision(given.gpu, plan)),
    (("zero",), lambda _, plan: _gradients(plan)),
    (("recompute",), lambda given, plan: _modules(given.model, plan)),
    (("tensor",), lambda given, plan: _adapters(given.model, plan)),
)


# The nearest plan


def nearest_plan(given: PlanLimits, plan: Parallelism) -> Parallelism | None:
    """The feasible plan nearest to the one asked for, or None.

    Where memory alone is in the way the global batch stays: it decides what is learnt.
    None means that none of the first `MOST_PLANS` plans is feasible.
    """
    if _is_too_large(given, plan):
        return None
    keeps_batch = not misfits(given, plan)
    order = count()
    start = _on_all_gpus(given, plan)
    heap = [(0.0, next(order), start)]
    seen = {_identity(start)}
    for _ in range(MOST_PLANS):
        if not heap:
            return None
        cost, _, found = heapq.heappop(heap)
        why = reasons(given, found)
        if not why:
            return found
        for more, other in _neighbours(given, found, why[0].key):
            if keeps_batch and other.global_batch != plan.global_batch:
                continue
            if _identity(other) not in seen:
                seen.add(_identity(other))
                heapq.heappush(heap, (cost + more, next(order), other))
    return None


def _is_too_large(given: PlanLimits, plan: Parallelism) -> bool:
    """Whether the training state exceeds the memory of all GPUs together.

    The state is weights, gradients and Adam's state.
    """
    counted = parameters(given.model)
    size = WEIGHT_BYTES + (0 if plan.has_lora else gradient_bytes(plan) + adam_bytes(plan))
    each = size * (counted.total + counted.prediction) / given.gpus + RESERVED_BYTES
    return given.limit_bytes is not None and each > given.limit_bytes


def _identity(plan: Parallelism) -> tuple[Any, ...]:
    return tuple(getattr(plan, key) for key in Parallelism.model_fields if key != "overlap")


def _on_all_gpus(given: PlanLimits, plan: Parallelism) -> Parallelism:
    """The plan with its model copies on the remaining GPUs, if they divide."""
    product = plan.tensor * plan.context * plan.pipeline
    return plan if given.gpus % product else plan.model_copy(update={"data": given.gpus // product})


def _neighbours(given: PlanLimits, plan: Parallelism, key: str) -> Iterator[tuple[float, Parallelism]]:
    """Plans one step away that may mend ``key``, each with its cost."""
    for remedy in _REMEDIES[key]:
        old = getattr(plan, remedy)
        for cost, new in _steps(given, plan, remedy):
            if new != old:
                yield cost, _on_all_gpus(given, plan.model_copy(update={remedy: new}))


def _steps(given: PlanLimits, plan: Parallelism, key: str) -> Iterator[tuple[float, Any]]:
    """The next values of one key, each with its cost."""
    model, ranks = given.model, plan.tensor * plan.context * plan.data
    values: list[int] = []
    match key:
        case "tensor":
            values = _divisors(gcd(given.gpus, model.heads))
        case "context" | "pipeline":
            values = _divisors(given.gpus)
        case "expert":
            values = _divisors(gcd(model.experts, ranks)) if model.experts else [1]
        case "expert_tensor":
            values = _divisors(gcd(model.expert_ffn, ranks)) if model.experts else [1]
        case "virtual_stages":
            values = list(range(1, max(model.layers // plan.pipeline, 1) + 1)) if plan.pipeline > 1 else [1]
        case "global_batch":
            yield from ((1.0 + abs(log2(batch / plan.global_batch)), batch) for batch in _batches(plan))
        case "micro_batch" if plan.micro_batch > 1:
            yield _STEPS[key], _divisors(plan.micro_batch)[-2]
        case "recompute" if plan.recompute in _MORE_RECOMPUTED:
            yield _STEPS[key], _MORE_RECOMPUTED[plan.recompute]
        case "zero" if _next_zero(plan) != plan.zero:
            yield _STEPS[key], _next_zero(plan)
        case "precision":
            yield from ((1.0, "fp8"), (2.0, "bf16"))
        case "schedule":
            yield 1.0, "1f1b"
        case "context_exchange":
            yield 1.0, "ring"
        case "layout" | "recompute_modules" | "module_precision" | "bf16_first_layers" | "bf16_last_layers":
            yield 1.0, Parallelism.model_fields[key].default
        case "is_sequence_parallel":
            yield 0.5, True
    old = getattr(plan, key)
    if values:
        yield from ((abs(log2(new / old)), new) for new in _beside(old, values))


def _next_zero(plan: Parallelism) -> int:
    """The next degree of sharding; the last one that the plan admits stays."""
    most = 1 if plan.has_gradient_copy else 2 if plan.has_mirror else 3
    return min(plan.zero + 1, most)


def _batches(plan: Parallelism) -> tuple[int, int]:
    """The next global batches, below and above, that the schedule can split."""
    at_once = plan.data * plan.micro_batch
    if plan.has_mirror:
        below = max(plan.global_batch // (2 * at_once), plan.pipeline) * 2 * at_once
        return below, below + 2 * at_once
    step = at_once * (plan.pipeline if plan.virtual_stages > 1 else 1)
    below = plan.global_batch // step * step
    return below or step, below + step


def _divisors(number: int) -> list[int]:
    small = [size for size in range(1, int(number**0.5) + 1) if number % size == 0]
    return sorted({*small, *(number // size for size in small)})


def _beside(value: int, values: list[int]) -> Iterator[int]:
    """The next smaller and the next larger value."""
    smaller = [one for one in values if one < value]
    larger = [one for one in values if one > value]
    yield from smaller[-1:]
    yield from larger[:1]
