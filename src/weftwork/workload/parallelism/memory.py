"""Training memory of a GPU, item by item, for each pipeline stage.

Weights, gradients and Adam's state follow ZeRO; activations follow the published count of what a backward pass reads,
written for any width, grouped heads, gates and experts, times the micro batches that the schedule keeps in flight.
Where a backward pass is split, activations stay until the gradients of weights are there; full recomputation is done
once, before the gradients of inputs, so that whole layers stay from then on. With DualPipe a rank keeps the weights and
gradients of two stages, and under ZeRO Adam's state of its own stage alone.
Source: Korthikanti et al., arXiv:2205.05198, section 4 (activations) and equations 1 to 5; Rajbhandari et al.,
arXiv:1910.02054, section 3 (states); micro batches in flight: Narayanan et al., arXiv:2104.04473, section 2.2, Qi et
al., arXiv:2401.10241, section 2.1 (ZB-H1), and DeepSeek-V3, arXiv:2412.19437, table 2 (DualPipe).
`weftwork.study.validation.peak_memory` holds the count to peaks that others measured.
Leaves out: what gradients of inputs set free before those of weights; gradients of the layer that is computed; logits
in FP32 and what else a loss keeps that is not fused; fragmentation, and experts that get more tokens than others. With
LoRA, inputs of frozen matrices without an adapter are counted although no backward pass reads them, and copies in BF16
that adapters read of inputs in fewer bits are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from weftwork.spec.training import Model, Parallelism, Recompute, RecomputeModule
from weftwork.workload.models.adapters import Adapter, adapters
from weftwork.workload.models.size import (
    LayerKind,
    attention_parameters,
    delta_parameters,
    expert_parameters,
    mlp_parameters,
    prediction_share,
    state_space_parameters,
)
from weftwork.workload.parallelism.exchanged_heads import exchanged_values
from weftwork.workload.parallelism.groups import groups
from weftwork.workload.parallelism.layout import Unit, alike_stages, counted_units, held_units, recomputation
from weftwork.workload.parallelism.offloading import offloaded_counts

__all__ = [
    "RESERVED_BYTES", "WEIGHT_BYTES", "Memory", "activation_bytes", "adam_bytes", "batch_bytes", "fullest_stage",
    "gradient_bytes", "stage_memory", "states_bytes", "unit_bytes",
]  # fmt: skip

WEIGHT_BYTES: Final = 2  # BF16, also where products are in fewer bits
MASTER_BYTES: Final = 4  # a copy in FP32 beside Adam's two moments: arXiv:1910.02054, section 3.1
# Copies of a weight that products in fewer bits read, by row and by column, with the scales of blocks of 32 or 16.
QUANTISED_BYTES: Final = {"bf16": 0.0, "fp8": 2.0, "mxfp8": 2 * 33 / 32, "nvfp4": 2 * 9 / 16}
# What is kept of an input of a matrix product for the gradient of the weight.
INPUT_BYTES: Final = {"bf16": 2.0, "fp8": 1.0, "mxfp8": 33 / 32, "nvfp4": 9 / 16}
# BF16, beside the sum in FP32: bigscience-workshop/bigscience, train/tr11-176B-ml/README.md, "Deepspeed config"
GRADIENT_COPY_BYTES: Final = 2
_TURNING_LAYERS: Final = 2  # of offloaded ones: one is computed while the other one is on its way
LOGIT_BYTES: Final = 6  # a logit in BF16 and its softmax in FP32
_SOFTMAX_BYTES: Final = 4  # what stays of a loss until its backward pass: core/fusions/fused_cross_entropy.py
LOGIT_GRADIENT_BYTES: Final = 2  # BF16, as the product behind it takes it
DELTA_BLOCK: Final = 64  # tokens: fla-org/flash-linear-attention, fla/ops/gated_delta_rule
RESERVED_BYTES: Final = 3 * 10**9  # chosen: CUDA context, buffers of NCCL, workspaces of cuBLAS


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes on a GPU of one stage, by item.

    Bytes of matrices that are gathered for a while are ``gathered``.
    """

    stage: int
    weights_bytes: int
    quantised_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    recomputed_bytes: int
    gathered_bytes: int
    logits_bytes: int
    reserved_bytes: int

    @property
    def total_bytes(self) -> int:
        """Bytes of all items."""
        return sum(self.items.values())

    @property
    def items(self) -> dict[str, int]:
        """Bytes by name of the item, without empty items."""
        found = {field.name: int(getattr(self, field.name)) for field in fields(self) if field.name != "stage"}
        return {name.removesuffix("_bytes"): size for name, size in found.items() if size}

    @property
    def states_bytes(self) -> int:
        """Bytes of weights, gradients and optimizer, which no batch and no recomputation changes."""
        return self.weights_bytes + self.quantised_bytes + self.gradients_bytes + self.optimizer_bytes

    @property
    def text(self) -> str:
        """The items in one line, in GB."""
        return ", ".join(f"{name} {size / 1e9:.1f}" for name, size in self.items.items())


def fullest_stage(model: Model, plan: Parallelism, *, has_flash_attention: bool = True) -> Memory:
    """Memory of the fullest pipeline stage.

    Parameters
    ----------
    has_flash_attention : whether scores of attention are never kept

    Raises
    ------
    ConfigError : the layers or the experts cannot be spread

    Examples
    --------
    >>> from weftwork.workload.models.catalogue import model
    >>> plan = Parallelism(tensor=8, pipeline=4, data=4, global_batch=128, sequence=8192)
    >>> round(fullest_stage(model("llama-3-70b"), plan).total_bytes / 1e9)
    46
    """
    shape = _GpuShare(model=model, plan=plan, has_flash_attention=has_flash_attention)
    found = [_stage_memory(shape, stages) for stages in _judged_stages(model, plan)]
    return max(found, key=lambda memory: memory.total_bytes)


def stage_memory(model: Model, plan: Parallelism, stage: int, *, has_flash_attention: bool = True) -> Memory:
    """Memory of a GPU of one stage; parameters as for `fullest_stage`."""
    shape = _GpuShare(model=model, plan=plan, has_flash_attention=has_flash_attention)
    return _stage_memory(shape, (stage,))


def states_bytes(model: Model, plan: Parallelism) -> list[int]:
    """The part of `fullest_stage` that no batch and no recomputation changes, for each of `alike_stages`.

    Memory that is reserved belongs to it, and parameters that ZeRO 3 gathers.
    """
    shape = _GpuShare(model=model, plan=plan, has_flash_attention=True)
    return [RESERVED_BYTES + sum(_states(shape, stages).values()) for stages in alike_stages(model, plan)]


def batch_bytes(model: Model, plan: Parallelism, *, has_flash_attention: bool = True) -> list[int]:
    """The rest of `fullest_stage`, for each of `alike_stages`."""
    shape = _GpuShare(model=model, plan=plan, has_flash_attention=has_flash_attention)
    return [sum(_of_batch(shape, stages)[1].values()) for stages in _judged_stages(model, plan)]


def _judged_stages(model: Model, plan: Parallelism) -> list[tuple[int, ...]]:
    """Stages of each group of equal units that may be its fullest.

    A later stage with the same units keeps no more passes of them, but for gradients of weights that wait.
    """
    most = None if plan.has_split_backward else 1
    return [stages[:most] for stages in alike_stages(model, plan)]


def _stage_memory(shape: _GpuShare, stages: Sequence[int]) -> Memory:
    """Memory of the fullest stage among stages with the same units."""
    stage, of_batch = _of_batch(shape, stages)
    return Memory(stage=stage, **_states(shape, stages), **of_batch, reserved_bytes=RESERVED_BYTES)


def _of_batch(shape: _GpuShare, stages: Sequence[int]) -> tuple[int, dict[str, int]]:
    """The fullest stage, and the items of its memory that a batch decides."""
    virtual_stages = counted_units(shape.model, shape.plan)[stages[0]]
    units = held_units(shape.model, shape.plan)[stages[0]]
    stage, activations_bytes = _activations_bytes(shape, stages, virtual_stages)
    recomputed = round(max((shape.of(unit).recomputed_bytes(unit) for unit in units), default=0.0))
    logits = round(shape.logit_bytes()) if any(unit.part == "head" for unit in units) else 0
    return stage, {
        "activations_bytes": round(activations_bytes),
        "recomputed_bytes": recomputed,
        "logits_bytes": logits,
    }


def _states(shape: _GpuShare, stages: Sequence[int]) -> dict[str, int]:
    """The items that no batch decides."""
    virtual_stages = counted_units(shape.model, shape.plan)[stages[0]]
    units = held_units(shape.model, shape.plan)[stages[0]]
    plan = shape.plan
    dense = sum(many * shape.dense_parameters(unit) for unit, many in units.items())
    experts = sum(many * shape.expert_parameters(unit) for unit, many in units.items())
    copies = {unit: QUANTISED_BYTES[shape.of(unit).plan.precision] for unit in units}
    quantised = {unit: many * shape.quantised_parameters(unit) for unit, many in units.items()}
    spread = groups(plan)
    shards, expert_shards = spread.gradients.size, spread.expert_gradients.size

    def sharded(size: float, is_sharded: bool) -> int:  # noqa: FBT001 - read at the call
        both = dense / shards + experts / expert_shards if is_sharded else dense + experts
        return round(size * both)

    kept_bytes = _kept_weight_bytes(plan)
    trained = sum(many * shape.adapter_parameters(unit) for unit, many in units.items())
    own_part = trained / shards
    states = {
        "gradients": round(gradient_bytes(plan) * (own_part if plan.zero >= 2 else trained)),
        "optimizer": round(adam_bytes(plan) * (own_part if plan.zero >= 1 else trained)),
    }
    if not plan.has_lora:
        states["gradients"] = sharded(gradient_bytes(plan), plan.zero >= 2)
        states["optimizer"] = sharded(adam_bytes(plan), plan.zero >= 1)
    if plan.has_mirror and plan.zero >= 1:  # the mirror updates the other half
        own_dense = sum(many * shape.dense_parameters(unit) for unit, many in virtual_stages[0].items())
        own_experts = sum(many * shape.expert_parameters(unit) for unit, many in virtual_stages[0].items())
        states["optimizer"] = round(adam_bytes(plan) * (own_dense / shards + own_experts / expert_shards))
    is_gathered = plan.zero == 3
    largest = max((shape.dense_parameters(unit) + shape.expert_parameters(unit) for unit in units), default=0.0)
    at_once = 2 if plan.has_prefetch else 1
    weights_bytes = sharded(kept_bytes, is_gathered) + round(WEIGHT_BYTES * (own_part if is_gathered else trained))
    if not is_gathered and plan.has_quantised_weights:  # the ends, routers and the like are in BF16 all the same
        alone = sum(many for unit, many in quantised.items() if copies[unit])
        weights_bytes = round(WEIGHT_BYTES * (dense + experts - alone + trained))
    return {
        "weights_bytes": weights_bytes,
        "quantised_bytes": 0 if is_gathered else round(sum(copies[unit] * many for unit, many in quantised.items())),
        "gradients_bytes": states["gradients"],
        "optimizer_bytes": states["optimizer"],
        "gathered_bytes": round(at_once * kept_bytes * largest) if is_gathered else 0,
    }


def adam_bytes(plan: Parallelism) -> int:
    """Bytes of a parameter's FP32 copy and Adam's two moments."""
    return MASTER_BYTES + 2 * plan.moment_bytes


def gradient_bytes(plan: Parallelism) -> int:
    """Bytes of a parameter's gradient, with its copy in BF16 if the plan keeps one."""
    return plan.gradient_bytes + (GRADIENT_COPY_BYTES if plan.has_gradient_copy else 0)


def _kept_weight_bytes(plan: Parallelism) -> float:
    """Bytes of a sharded or gathered parameter."""
    copies = QUANTISED_BYTES[plan.precision]
    if plan.has_quantised_weights and copies:
        return copies / 2  # by row alone, the copy by column is made where it is gathered
    return WEIGHT_BYTES


def activation_bytes(model: Model, plan: Parallelism, kind: LayerKind, *, has_flash_attention: bool = True) -> float:
    """Activation bytes of one layer and micro batch on one GPU.

    They are kept until the backward pass, with the plan's recomputation.
    """
    shape = _GpuShare(model=model, plan=plan, has_flash_attention=has_flash_attention)
    return shape.kept_bytes(Unit(part="layer", layer=kind))


def unit_bytes(model: Model, plan: Parallelism, unit: Unit, *, has_flash_attention: bool) -> float:
    """Activation bytes that a unit keeps of one micro batch on one GPU, in its own number format."""
    return _GpuShare(model=model, plan=plan, has_flash_attention=has_flash_attention).of(unit).kept_bytes(unit)


def _activations_bytes(
    shape: _GpuShare, stages: Sequence[int], virtual_stages: tuple[Counter[Unit], ...]
) -> tuple[int, float]:
    """Stage with the most activations at a time, and their bytes.

    The stages have these units.
    """
    plan = shape.plan
    share = _stayed(plan, virtual_stages)
    kept = [
        sum(many * shape.of(unit).kept_bytes(unit) * (share if unit.layer else 1.0) for unit, many in held.items())
        for held in virtual_stages
    ]
    if not plan.has_split_backward:
        in_flight = [_in_flight(plan, stage) for stage in stages]
        sizes = [sum(count * size for count, size in zip(counts, kept, strict=True)) for counts in in_flight]
    else:
        delayed = [
            sum(many * shape.of(unit).delayed_bytes(unit) for unit, many in held.items()) for held in virtual_stages
        ]
        sizes = [
            max(
                sum(
                    count * size + later * later_size
                    for (count, later), size, later_size in zip(moment, kept, delayed, strict=True)
                )
                for moment in _split_in_flight(plan, stage)
            )
            for stage in stages
        ]
    place = max(range(len(stages)), key=lambda one: sizes[one])
    return stages[place], sizes[place]


def _stayed(plan: Parallelism, virtual_stages: tuple[Counter[Unit], ...]) -> float:
    """Share of activations that are not offloaded to the host.

    Two layers are always on the GPU. Layers count alike, also where some of them keep more than others.
    """
    each = [sum(many for unit, many in held.items() if unit.layer) for held in virtual_stages]
    layers = sum(each)
    left = layers - sum(offloaded_counts(each, plan.offloaded_layers))
    return max(left, min(layers, _TURNING_LAYERS)) / layers if layers else 1.0


def _split_in_flight(plan: Parallelism, stage: int) -> list[tuple[tuple[int, int], ...]]:
    """Moments of possible peak memory for split backward passes.

    Of each virtual stage: passes before their gradients of inputs, and those between these and gradients of weights.
    """
    stages = plan.pipeline
    if not plan.has_mirror:
        total = min(stages, plan.micro_batches)
        delayed = min(stage + 1, total)
        return [((total - delayed, delayed),)]
    depth = min(stage, stages - 1 - stage)  # from the nearer end of the pipeline
    left = stages // 2 - 1 - depth  # passes that wait when the first gradients of weights of the end are due
    near = ((left, 0), (0, depth + 1)), ((left, depth + 1), (0, 0))  # gradients of weights of one way or of the other
    at_end = near if stage < stages // 2 else tuple((second, first) for first, second in near)
    return [((stages - stage, 0), (stage + 1, 0)), *at_end]


def _in_flight(plan: Parallelism, stage: int) -> list[int]:
    """Passes in flight of each virtual stage, at most.

    Their activations are kept at a time.
    """
    total = plan.micro_batches * plan.virtual_stages
    behind = plan.pipeline - stage - 1
    warm = behind if plan.virtual_stages == 1 else 2 * behind + (plan.virtual_stages - 1) * plan.pipeline
    kept = total if plan.schedule == "gpipe" else min(warm + 1, total)
    found = [0] * plan.virtual_stages
    for index in range(kept):
        found[index // plan.pipeline % plan.virtual_stages if plan.virtual_stages > 1 else 0] += 1
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class _GpuShare:
    """Parameters and activations of units on one GPU of a plan."""

    model: Model
    plan: Parallelism
    has_flash_attention: bool

    def of(self, unit: Unit) -> _GpuShare:
        """The same share, in the number format of a unit."""
        if unit.precision is None:
            return self
        return replace(self, plan=self.plan.model_copy(update={"precision": unit.precision}))

    # Parameters

    def dense_parameters(self, unit: Unit) -> float:
        """All parameters except routed experts."""
        model, plan = self.model, self.plan
        if unit.part in {"embedding", "head"}:
            is_shared = unit.part == "head" and model.has_tied_embeddings and plan.has_both_ends
            return 0.0 if is_shared else model.vocabulary * model.hidden / plan.tensor
        split, whole = self._layer_parameters(_layer(unit))
        if unit.part != "prediction":
            return split / plan.tensor + whole
        return prediction_share(model) * ((split + 2 * model.hidden * model.hidden) / plan.tensor + whole)

    def expert_parameters(self, unit: Unit) -> float:
        """Parameters of this GPU's routed experts."""
        if unit.layer is None or unit.layer.mlp != "experts":
            return 0.0
        local = self.model.experts / self.plan.expert
        share = prediction_share(self.model) if unit.part == "prediction" else 1.0
        return share * local * expert_parameters(self.model) / self.plan.expert_tensor

    def quantised_parameters(self, unit: Unit) -> float:
        """Parameters whose products may use fewer bits.

        They are those of layers, not of the ends nor of routers.
        """
        if unit.layer is None:
            return 0.0
        share = prediction_share(self.model) if unit.part == "prediction" else 1.0
        return share * self._layer_parameters(unit.layer)[0] / self.plan.tensor + self.expert_parameters(unit)

    def adapter_parameters(self, unit: Unit) -> float:
        """Parameters of the adapters of a unit (LoRA); 0 if all weights are trained."""
        if unit.layer is None or not self.plan.has_lora:
            return 0.0
        share = prediction_share(self.model) if unit.part == "prediction" else 1.0
        return share * sum(adapter.parameters for adapter in self._adapters(unit.layer)) / self.plan.tensor

    def _adapters(self, kind: LayerKind) -> list[Adapter]:
        return [adapter for half in adapters(self.model, self.plan, kind) for adapter in half]

    def _layer_parameters(self, kind: LayerKind) -> tuple[float, float]:
        """Parameters split by tensor ranks, and parameters that each has whole."""
        model = self.model
        split, whole = 0, 0
        if kind.mixer in {"attention", "window"}:
            split += attention_parameters(model)
        elif kind.mixer == "state-space":
            split += state_space_parameters(model)
        elif kind.mixer == "delta":
            split += delta_parameters(model)
        if kind.mlp == "dense":
            split += mlp_parameters(model, model.ffn)
        elif kind.mlp == "experts":
            split += mlp_parameters(model, model.shared_ffn)
            whole += model.hidden * (model.experts + 2 * model.expert_hidden)
        return split, whole

    # Activations

    def delayed_bytes(self, unit: Unit) -> float:
        """Bytes of a unit kept between input and weight gradients.

        They are what was computed again, and gradients of logits.
        """
        has_logits = unit.part in {"head", "prediction"}
        logits = self.plan.tokens * self.model.vocabulary / self.plan.tensor if has_logits else 0.0
        return self.kept_bytes(unit, has_inside=True) + LOGIT_GRADIENT_BYTES * logits

    def kept_bytes(self, unit: Unit, *, has_inside: bool = False) -> float:
        """Bytes of a unit kept from forward to backward pass.

        The plan's recomputation decides.

        Parameters
        ----------
        unit : of the model
        has_inside : whether what full recomputation computes again is there
        """
        hidden = self.model.hidden
        if unit.part == "embedding":
            return self.plan.own_tokens * hidden if self.model.has_dropout else 0.0  # the mask
        if unit.part == "head":
            return 4 * self.plan.own_tokens * hidden  # inputs of the last norm and of the product
        joined = 8 * self.plan.own_tokens * hidden  # two inputs, joined, and their norm
        extra = joined if unit.part == "prediction" else 0.0
        how = recomputation(unit, self.plan)
        if how == "full":
            inside = self._layer_bytes(_layer(unit)) if has_inside else 2 * self.plan.own_tokens * hidden
            return inside + extra
        if how == "operations":
            return self._operation_bytes() + extra
        return self._layer_bytes(_layer(unit), self._again(how)) + extra

    def recomputed_bytes(self, unit: Unit) -> float:
        """Extra bytes while a unit is recomputed."""
        if unit.layer is None:
            return 0.0
        how = recomputation(unit, self.plan)
        if how == "operations":
            return max(self._layer_bytes(unit.layer) - self._operation_bytes(), 0.0)
        kept = 0.0 if how == "full" else self._layer_bytes(unit.layer, self._again(how))
        return self._layer_bytes(unit.layer) - kept

    def _again(self, how: Recompute) -> frozenset[RecomputeModule]:
        """Parts of a layer that are recomputed one by one."""
        return frozenset(self.plan.recompute_modules if how == "selective" else ())

    def _operation_bytes(self) -> float:
        """Bytes of a dense layer that keeps results of attention and of every second product.

        They are its input, queries, values and the result of attention, the first product of the MLP and, where a gate
        makes it the third, the last one. With tensor ranks that last one is kept before it is summed, and both sums too
        (pytorch/torchtitan, torchtitan/distributed/activation_checkpoint.py: mm, attention and reduce-scatter).
        """
        model, plan = self.model, self.plan
        stream = 2 * plan.own_tokens * model.hidden
        of_heads = 2 * plan.tokens * model.head_dim * (2 * model.heads + model.key_value_heads) / plan.tensor
        inside = 2 * plan.tokens * model.ffn / plan.tensor
        last = 2 * plan.tokens * model.hidden if model.is_gated else 0
        sums = 2 * stream if plan.tensor > 1 else 0
        return stream + of_heads + inside + last + sums

    def logit_bytes(self) -> float:
        """Bytes of one micro batch's logits and their softmax.

        They are those of the model and of each further token that it predicts.
        """
        each = LOGIT_BYTES + _SOFTMAX_BYTES * self.model.prediction_layers
        return each * self.plan.tokens * self.model.vocabulary / self.plan.tensor

    def _layer_bytes(self, kind: LayerKind, again: frozenset[RecomputeModule] = frozenset()) -> float:
        """Bytes of a layer, without recomputed activations."""
        halves = ((kind.mixer != "none") + (kind.mlp != "none")) * self._edge_bytes(again)
        if kind.mixer in {"attention", "window"}:
            halves += self._attention_bytes(again)
            halves += 0.0 if "core_attn" in again else self._score_bytes(kind)
        elif kind.mixer == "state-space":
            halves += self._state_space_bytes()
        elif kind.mixer == "delta":
            halves += self._delta_bytes()
        halves += sum(self._adapter_bytes(adapter) for adapter in self._adapters(kind))
        if kind.mlp == "dense" and "mlp" not in again:
            halves += self._dense_bytes()
        elif kind.mlp == "experts" and "moe" not in again:
            halves += self._experts_bytes(again)
        return halves

    def _adapter_bytes(self, adapter: Adapter) -> float:
        """Bytes between both thin matrices of an adapter."""
        return WEIGHT_BYTES * self.plan.tokens * adapter.rank / self.plan.tensor

    def _edge_bytes(self, again: frozenset[RecomputeModule]) -> float:
        """Bytes around the matrices of half a layer.

        They are the input of the norm, the input of the first product, and the mask of the dropout.
        """
        given = 0.0 if "layernorm" in again else INPUT_BYTES[self.plan.precision]
        element = 2 + given + (1 if self.model.has_dropout else 0)
        return element * self.plan.own_tokens * self.model.hidden

    def _attention_bytes(self, again: frozenset[RecomputeModule]) -> float:
        """Bytes of queries, keys, values, and the input of the output product."""
        exchanged = 0.0 if "core_attn" in again else self._exchanged_bytes()
        return exchanged + self._unexchanged_bytes(again)

    def _exchanged_bytes(self) -> float:
        """Bytes that an exchange of heads adds: copies of keys and values, and the result before it is sent back."""
        model, plan = self.model, self.plan
        if not plan.exchanges_heads:
            return 0.0
        values, copies = exchanged_values(model, plan), 0.0
        if model.latent_attention is None:
            copies = 2 * (values.key - model.head_dim * model.key_value_heads / plan.tensor)
        return 2 * plan.tokens * (values.result + copies)

    def _unexchanged_bytes(self, again: frozenset[RecomputeModule]) -> float:
        """Bytes of attention where every rank keeps its own tokens."""
        model, given = self.model, INPUT_BYTES[self.plan.precision]
        latent = model.latent_attention
        if latent is None:
            width = (
                2 * model.head_dim * (model.heads + 2 * model.key_value_heads) + given * model.head_dim * model.heads
            )
            width += 4 * model.head_dim * model.heads if model.has_gated_attention else 0  # a gate, and what it gates
            return self.plan.tokens * width / self.plan.tensor
        key = latent.no_position_dim + latent.rope_dim
        ranks = latent.query_rank + latent.key_value_rank
        low = (2 + given) * ranks + 2 * latent.rope_dim  # before and after the norms of the latent vectors
        wide = 0 if "mla_up_proj" in again else 2 * (2 * key + latent.value_dim)
        width = model.heads * (wide + given * latent.value_dim)
        return self.plan.own_tokens * low + self.plan.tokens * width / self.plan.tensor

    def _score_bytes(self, kind: LayerKind) -> float:
        """Bytes of the score square: softmax, and with dropout mask and output."""
        if self.has_flash_attention:
            return 0.0
        model, plan = self.model, self.plan
        seen = min(plan.sequence, model.attention_window) if kind.mixer == "window" else plan.sequence
        return (5 if model.has_dropout else 2) * model.heads * seen * self.plan.tokens / plan.tensor

    def _dense_bytes(self) -> float:
        """Bytes of the activation's input and the last product's input.

        A gated activation has two inputs.
        """
        return self.plan.tokens * self._mlp_element() * self.model.ffn / self.plan.tensor

    def _experts_bytes(self, again: frozenset[RecomputeModule]) -> float:
        """Bytes of expert layers: tokens, results, experts, shared expert, router.

        The tokens are those sent here.
        """
        model, own = self.model, self.plan.own_tokens
        moved = (2 + INPUT_BYTES[self.plan.precision]) * (model.expert_hidden or model.hidden)
        inside = self._mlp_element() - (INPUT_BYTES[self.plan.precision] if "moe_act" in again else 0.0)
        routed = own * model.experts_per_token * (moved + inside * model.expert_ffn)
        shared = self.plan.tokens * self._mlp_element() * model.shared_ffn / self.plan.tensor
        shared = 0.0 if "shared_experts" in again else shared
        latent = own * 4 * model.expert_hidden
        return routed + shared + latent + own * 4 * model.experts

    def _state_space_bytes(self) -> float:
        """Bytes of a state space: convolution, scan and last product.

        They are the input and output of the convolution, the output of the scan, and the input of the last product.
        """
        space = self.model.state_space
        if space is None:
            return 0.0
        inner, both = space.heads * space.head_dim, 2 * space.groups * space.state
        width = 2 * (2 * inner + both + space.heads) + 2 * (inner + both) + 2 * inner
        return self.plan.tokens * (width + INPUT_BYTES[self.plan.precision] * inner) / self.plan.tensor

    def _delta_bytes(self) -> float:
        """Bytes of a delta net: convolution, gate, recurrence, last product.

        Of each head two numbers in FP32, and the inverse of its block of 64 tokens (fla-org/flash-linear-attention,
        fla/ops/gated_delta_rule/chunk.py).
        """
        delta = self.model.delta
        if delta is None:
            return 0.0
        keys, values = delta.key_heads * delta.key_dim, delta.value_heads * delta.value_dim
        width = 2 * 2 * (2 * keys + values) + 2 * 2 * values + INPUT_BYTES[self.plan.precision] * values
        return self.plan.tokens * (width + delta.value_heads * (2 * 4 + 2 * DELTA_BLOCK)) / self.plan.tensor

    def _mlp_element(self) -> float:
        return (4 if self.model.is_gated else 2) + INPUT_BYTES[self.plan.precision]


def _layer(unit: Unit) -> LayerKind:
    return unit.layer if unit.layer is not None else LayerKind(mixer="none", mlp="none")
