"""Computing time of a unit for one micro batch on one GPU.

It also counts the parameters that this GPU holds of the unit. A layer has two halves, the mixer of tokens (attention or
a state space) and the MLP (dense or experts), each with matrix products, a core (attention proper) and kernels bound by
memory: norms, residual adds, activations, casts to smaller formats, permutations of tokens. Backward passes have two
products for each forward one, or one where weights have no gradient (LoRA). An adapter of LoRA is two thin products in
BF16 with both gradients, whose result is added to that of its matrix.
Source: Korthikanti et al., arXiv:2205.05198 (what a layer consists of); Dao, arXiv:2307.08691 (flash attention);
Dao and Gu, arXiv:2405.21060, section 6 (state spaces in blocks); Yang et al., arXiv:2412.06464, section 3.3, and
fla-org/flash-linear-attention, fla/ops/gated_delta_rule (gated delta nets in blocks).
Gradients of weights are a time of their own, which schedules that split backward passes run later: matrix products
alone, all else of a backward pass stays with the gradients of inputs.
Leaves out: what tensor ranks exchange between both products of an adapter, whose rows are as short as its rank; load
imbalance of experts; capacity factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from weftwork.spec.training import (
    GraphModule,
    Model,
    ModulePrecision,
    Parallelism,
    Precision,
    RecomputeModule,
    StateSpace,
)
from weftwork.workload.models.adapters import Adapter, adapters
from weftwork.workload.models.size import (
    LayerKind,
    attended_tokens,
    attention_parameters,
    delta_parameters,
    expert_parameters,
    mlp_parameters,
    prediction_share,
    state_space_parameters,
)
from weftwork.workload.parallelism.exchanged_heads import exchanged_values
from weftwork.workload.parallelism.layout import Unit
from weftwork.workload.training.kernels import RESULT_BYTES, Kernels
from weftwork.workload.training.unit_times import Half, UnitWork

__all__ = ["Half", "UnitWork", "scan_flops_per_token", "unit_work"]

# Bytes of an element of the residual stream: a norm reads and writes it (4), an add with dropout reads two and a mask
# and writes one (7, without dropout 6). Backward: both again.
NORM_BYTES: Final = 4
NORM_BACKWARD_BYTES: Final = 6
ADD_BYTES: Final = {True: 7, False: 6}
ADD_BACKWARD_BYTES: Final = 5
ACTIVATION_BYTES: Final = {True: 6, False: 4}  # gated: two inputs, one output
ACTIVATION_BACKWARD: Final = 1.6  # times the bytes forward
# Of an operand that is cast: read, for an amax or Hadamard transforms twice, and written by row and by column. What
# layers take longer with casts than without, over all operands: NVIDIA/TransformerEngine, docs/examples/gemm_profiling,
# B300 (H200 in FP8: 4.8); benchmarks/fit_products.py
CAST_BYTES: Final[dict[Precision, float]] = {"bf16": 0.0, "fp8": 5.5, "mxfp8": 4.3, "nvfp4": 6.4}
ROTATION_BYTES: Final = 4  # of queries and keys: read and written
ATTENTION_CAST_BYTES: Final = 3  # of queries, keys and values, backward of the output's gradient: read 2, written 1
# Of a value of an exchange of heads: put in the order of ranks before it, in that of tokens behind it, or the reverse.
# Source: NVIDIA/TransformerEngine, pytorch/attention/dot_product_attention/context_parallel.py (A2A communication)
EXCHANGED_BYTES: Final = 8
EXCHANGED_KERNELS: Final = 2 * 4  # of queries, keys, values and results
PERMUTE_BYTES: Final = 8  # of tokens to experts and back, once
# NCCL's all-to-all has a permutation of all tokens in front of the one by local expert, DeepEP and HybridEP do that one
# in their kernels: NVIDIA/Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization, section 2.1.1
PERMUTATIONS: Final = {True: 1, False: 2}  # by whether tokens are deduplicated
LOSS_BYTES: Final = 14  # of a logit, forward: written by the product, read twice as 4 bytes
LOSS_BACKWARD_BYTES: Final = 10
EMBEDDING_BYTES: Final = 8
# Operations that the CPU launches, forward and backward, by the module whose CUDA graph may replay them. Counted in
# eager Megatron-LM: 26 + 45 a dense layer in BF16; chosen: how they split over a half and its matrix products
MIXER_OPERATIONS: Final = (6, 10)
_GRAPHED: Final[dict[str, GraphModule]] = {
    "attention": "attn", "window": "attn", "delta": "attn", "state-space": "mamba",
}  # fmt: skip
DENSE_OPERATIONS: Final = (4, 7)
PRODUCT_OPERATIONS: Final = (4, 7)
# More for each product whose operands are cast, by row and by column, with scales that are put in order in MXFP8 and
# NVFP4. Source: NVIDIA/Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization, sections 2.1.2 and 2.1.3
CAST_OPERATIONS: Final[dict[Precision, tuple[int, int]]] = {
    "bf16": (0, 0), "fp8": (2, 2), "mxfp8": (3, 3), "nvfp4": (4, 4),
}  # fmt: skip
# Kernels of router and of what comes before the exchange: 72, with a fused router 31, 17 where the dispatcher fuses the
# rest (the same, sections 2.1.4 and 2.2.1). chosen: backward passes have as many
ROUTER_OPERATIONS: Final = {False: 58, True: 17}  # by whether the router is fused
PREPROCESS_OPERATIONS: Final = {False: 14, True: 0}  # by whether the dispatcher does it
# chosen: 45 and 81 with two products that were counted: dispatch, experts, combine
EXCHANGE_OPERATIONS: Final = (37, 67)
# Without flash attention softmax is one kernel where heads of a rank times sequences of a pass are a multiple of four,
# and rows have 17 to 4,096 scores; else it is a cast, a scale, a mask, softmax and a cast back, each over all scores.
# More operations, and more bytes of a score, forward and backward. Source: NVIDIA/Megatron-LM, FusedScaleMaskSoftmax
SOFTMAX_GROUP: Final = 4
SOFTMAX_ROWS: Final = range(17, 4_097)
LOOSE_SOFTMAX_OPERATIONS: Final = (4, 4)
LOOSE_SOFTMAX_BYTES: Final = (33, 35)
# Of each expert on a stream: 2 products forward and 4 backward, as many casts of what they take (2 and 2), launched by
# one call of the CPU. chosen: 5 us of the CPU each, several microseconds (the same, section 2.1.2)
EXPERT_KERNELS: Final = (4, 6)
MIXTURE_KERNELS: Final = 4  # besides the router's: norm, residual add, permutation of tokens, activation
KERNEL_LAUNCH_S: Final = 5e-6
# Bytes of a channel that a state space moves forward: convolution 4, scan 4, gate and norm 6; of the shared ones 8
SCAN_INNER_BYTES: Final = 14
SCAN_BOTH_BYTES: Final = 8
SCAN_BLOCK: Final = 256  # tokens that a state space works on at once: state-spaces/mamba, chunk_size of Mamba-2
DELTA_BLOCK: Final = 64  # as above, of a gated delta net: fla-org/flash-linear-attention, fla/ops/gated_delta_rule
# Bytes of a channel that a gated delta net moves forward: of queries and keys convolution 4, two kernels that read 4;
# of values convolution 4, read and written 4, gate and norm 6. Of what one kernel writes for the next one: 4.
DELTA_KEY_BYTES: Final = 8
DELTA_VALUE_BYTES: Final = 14
DELTA_BETWEEN_BYTES: Final = 4
ADAPTED_BYTES: Final = 6  # of an element that an adapter gives, and of a gradient backward: added to another one
GATE_BYTES: Final = 6  # of an element that attention gives: read with its gate, written


def unit_work(unit: Unit, model: Model, plan: Parallelism, kernels: Kernels) -> UnitWork:
    """Costs of a unit of a model under a plan.

    Parameters
    ----------
    unit : a layer, or an end of the model
    model, plan : as they are
    kernels : the GPU's
    """
    if unit.precision is not None:
        changed = {"precision": unit.precision, "module_precision": ModulePrecision()}
        plan, kernels = plan.model_copy(update=changed), replace(kernels, precision=unit.precision)
    shapes = _Shapes(model=model, plan=plan, kernels=kernels)
    if unit.part == "embedding":
        return shapes.embedding()
    if unit.part == "head":
        return shapes.head()
    layer = unit.layer if unit.layer is not None else LayerKind(mixer="attention", mlp="dense")
    found = shapes.layer(layer)
    return shapes.prediction(found) if unit.part == "prediction" else found


def scan_flops_per_token(space: StateSpace) -> float:
    """FLOP of a state space's block scan, forward (arXiv:2405.21060, section 6).

    It counts one token and layer.
    """
    of_head = 2 * SCAN_BLOCK * space.head_dim + 4 * space.state * space.head_dim
    of_group = 2 * SCAN_BLOCK * space.state
    return float(space.heads * of_head + space.groups * of_group)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shapes:
    """Shapes of a plan; widths of tensors are per GPU."""

    model: Model
    plan: Parallelism
    kernels: Kernels

    def layer(self, kind: LayerKind) -> UnitWork:
        """Both halves of a layer, as far as it has them."""
        halves: list[tuple[str, Half]] = []
        operations: list[tuple[GraphModule | None, float, float]] = []
        loops_s = (0.0, 0.0)
        dense = experts = 0.0
        model, plan = self.model, self.plan
        of_mixer, of_mlp = adapters(model, plan, kind)
        if kind.mixer != "none":
            mixer, parameters = self._mixer(kind)
            mixer = self._adapted(mixer, of_mixer)
            halves.append(("mixer", mixer))
            more = LOOSE_SOFTMAX_OPERATIONS if self._has_loose_softmax(kind) else (0, 0)
            base = (MIXER_OPERATIONS[0] + more[0], MIXER_OPERATIONS[1] + more[1])
            operations.append((_GRAPHED[kind.mixer], *self._operations(base, self._products_of(kind), len(of_mixer))))
            dense += parameters / plan.tensor
        if kind.mlp == "dense":
            halves.append(("mlp", _recomputable(self._adapted(self._dense(), of_mlp), "mlp")))
            operations.append(("mlp", *self._operations(DENSE_OPERATIONS, 2, len(of_mlp))))
            dense += mlp_parameters(model, model.ffn) / plan.tensor
        if kind.mlp == "experts":
            halves.append(("mlp", self._experts()))
            operations += self._expert_operations()
            loops_s = self._expert_loops_s()
            dense += model.hidden * (model.experts + 2 * model.expert_hidden)
            dense += mlp_parameters(model, model.shared_ffn) / plan.tensor
            experts = self._local_experts * expert_parameters(model) / plan.expert_tensor
        return UnitWork(
            halves=tuple(halves),
            operations=tuple(operations),
            loops_s=loops_s,
            parameters=dense,
            expert_parameters=experts,
            adapter_parameters=sum(adapter.parameters for adapter in (*of_mixer, *of_mlp)) / plan.tensor,
        )

    def _adapted(self, half: Half, of_half: Sequence[Adapter]) -> Half:
        """Half a layer with the products of its adapters."""
        kernels, plan = self.kernels, self.plan
        for adapter in of_half:
            given = adapter.given / plan.tensor if adapter.has_split_input else adapter.given
            rank = adapter.rank if adapter.has_split_input else adapter.rank / plan.tensor
            taken = adapter.taken / plan.tensor
            thin = (_Product(plan.tokens, rank, given, "bf16"), _Product(plan.tokens, taken, adapter.rank, "bf16"))
            backward_s = sum(self._inputs_s(product) + self._weights_s(product) for product in thin)
            half = replace(
                half,
                matmul_s=half.matmul_s + sum(map(self._forward_s, thin)),
                memory_s=half.memory_s + kernels.memory_s(ADAPTED_BYTES * plan.tokens * taken, 1),
                matmul_backward_s=half.matmul_backward_s + backward_s,
                memory_backward_s=half.memory_backward_s + kernels.memory_s(ADAPTED_BYTES * plan.tokens * given, 1),
            )
        return half

    @property
    def _local_experts(self) -> float:
        return self.model.experts / self.plan.expert

    def _operations(self, base: tuple[int, int], products: int, adapted: int = 0) -> tuple[float, float]:
        """Operations of a module by its matrix products, forward and backward.

        An adapter has two products more, without casts, and an addition.
        """
        cast = CAST_OPERATIONS[self.plan.precision]
        forward, backward = (
            products * (PRODUCT_OPERATIONS[way] + cast[way]) + adapted * (2 * PRODUCT_OPERATIONS[way] + 1)
            for way in (0, 1)
        )
        return base[0] + forward, base[1] + backward

    def _expert_operations(self) -> list[tuple[GraphModule | None, float, float]]:
        """Operations of a mixture of experts (the same source, section 2.3)."""
        software = self.kernels.software
        router = float(ROUTER_OPERATIONS[software.has_fused_router])
        before = float(PREPROCESS_OPERATIONS[software.has_deduplicated_experts])
        shared = self._operations((0, 0), 2) if self.model.shared_ffn else (0.0, 0.0)
        return [
            ("moe_router", router + shared[0], router + shared[1]),
            ("moe_preprocess", before, before),
            (None, *self._operations(EXCHANGE_OPERATIONS, 2)),
        ]

    def _expert_loops_s(self) -> tuple[float, float]:
        if not self.kernels.software.expert_streams:
            return 0.0, 0.0
        forward, backward = EXPERT_KERNELS
        return KERNEL_LAUNCH_S * forward * self._local_experts, KERNEL_LAUNCH_S * backward * self._local_experts

    def _mixer(self, kind: LayerKind) -> tuple[Half, int]:
        """The token mixer, and its parameters."""
        if kind.mixer == "state-space":
            return self._state_space(), state_space_parameters(self.model)
        if kind.mixer == "delta":
            return self._delta(), delta_parameters(self.model)
        return self._attention(kind), attention_parameters(self.model)

    def _products_of(self, kind: LayerKind) -> int:
        """Matrix products of the token mixer, without core and scan."""
        latent = self.model.latent_attention
        if kind.mixer in {"state-space", "delta"} or latent is None:
            return 2
        return 5 if latent.query_rank else 4

    def prediction(self, layer: UnitWork) -> UnitWork:
        """A prediction module: a layer, a joining product, a loss head."""
        hidden, share = self.model.hidden, prediction_share(self.model)
        join = self._half([_Product(self.plan.own_tokens, hidden, 2 * hidden)], 0.0, 0.0, (2, 3))
        head = self.head()
        return UnitWork(
            halves=(("join", join), *layer.halves, *head.halves),
            operations=layer.operations,
            loops_s=layer.loops_s,
            parameters=share * (layer.parameters + 2 * hidden * hidden / self.plan.tensor),
            expert_parameters=share * layer.expert_parameters,
            adapter_parameters=share * layer.adapter_parameters,
        )

    def embedding(self) -> UnitWork:
        """Embedding lookup; its gradient is added in place."""
        model, plan = self.model, self.plan
        moved = EMBEDDING_BYTES * self.plan.tokens * model.hidden
        memory_s = self.kernels.memory_s(moved, 3)
        return UnitWork(
            halves=(("embedding", Half(memory_s=memory_s, memory_backward_s=memory_s)),),
            parameters=model.vocabulary * model.hidden / plan.tensor,
        )

    def head(self) -> UnitWork:
        """Logits and loss; a tied matrix beside the embedding counts once."""
        model, plan, kernels = self.model, self.plan, self.kernels
        width = model.vocabulary / plan.tensor
        logits = self.plan.tokens * width
        product_s = kernels.matmul_s(self.plan.tokens, width, model.hidden, precision="bf16")
        half = Half(
            matmul_s=product_s,
            memory_s=kernels.memory_s(LOSS_BYTES * logits, 4),
            matmul_backward_s=product_s * self._products,
            memory_backward_s=kernels.memory_s(LOSS_BACKWARD_BYTES * logits, 2),
            weights_s=product_s * (self._products - 1),
        )
        held = 0.0 if model.has_tied_embeddings and plan.has_both_ends else width * model.hidden
        return UnitWork(halves=(("head", half),), parameters=held)

    @property
    def _products(self) -> int:
        """Number of backward products for each forward product."""
        return 1 if self.plan.has_lora else 2

    def _attention(self, kind: LayerKind) -> Half:
        model, plan, precision = self.model, self.plan, self.plan.module_precision
        heads = model.heads / plan.tensor
        latent = model.latent_attention
        tokens, given = plan.tokens, plan.own_tokens * model.hidden
        up: list[_Product] = []
        if latent is None:
            key = value = model.head_dim
            queries = model.heads * (2 if model.has_gated_attention else 1)
            width = key * (queries + 2 * model.key_value_heads) / plan.tensor
            matrices = [_Product(tokens, width, model.hidden, precision.qkv, given)]
        else:
            key, value = latent.no_position_dim + latent.rope_dim, latent.value_dim
            rank = latent.query_rank
            query = _Product(tokens, key * heads, rank or model.hidden, precision.qkv)
            of_latents = _Product(
                tokens, (latent.no_position_dim + value) * heads, latent.key_value_rank, precision.qkv
            )
            up = [query, of_latents] if rank else [of_latents]
            matrices = [_Product(tokens, rank, model.hidden, precision.qkv)] if rank else []
            compressed = latent.key_value_rank + latent.rope_dim
            matrices += [query, _Product(tokens, compressed, model.hidden, precision.qkv, given), of_latents]
        matrices.append(_Product(tokens, model.hidden, value * heads, precision.projection, tokens * value * heads))
        core = self._core(kind, heads, key, value)
        keys = model.key_value_heads / plan.tensor
        moved = 0.0 if model.has_dropout else ROTATION_BYTES * tokens * key * (heads + keys)
        moved += GATE_BYTES * tokens * value * heads if model.has_gated_attention else 0.0
        moved_backward = moved
        if model.has_query_key_norm:
            moved += NORM_BYTES * tokens * key * (heads + keys)
            moved_backward += NORM_BACKWARD_BYTES * tokens * key * (heads + keys)
        if self.kernels.software.has_fp8_attention and plan.precision != "bf16":
            moved += ATTENTION_CAST_BYTES * tokens * (key * (heads + keys) + value * keys)
            moved_backward += ATTENTION_CAST_BYTES * tokens * value * heads
        operations = 2
        exchanged_s = 0.0
        if plan.exchanges_heads:
            exchanged = EXCHANGED_BYTES * tokens * exchanged_values(model, plan).total
            moved, moved_backward, operations = moved + exchanged, moved_backward + exchanged, 2 + EXCHANGED_KERNELS
            exchanged_s = self.kernels.memory_s(exchanged, EXCHANGED_KERNELS)
        again: list[tuple[RecomputeModule, float]] = [("core_attn", core[0] + exchanged_s)]
        if up:
            again.append(("mla_up_proj", sum(map(self._forward_s, up))))
        second_s = 0.0
        if latent is None:  # of queries, keys, values and result the second and the fourth
            second_s = self._forward_s(matrices[0]) * key * keys / matrices[0].columns + self._forward_s(matrices[1])
        kernels = (operations, operations)
        return self._half(matrices, moved, moved_backward, kernels, core=core, again=again, second_s=second_s)

    def _core(self, kind: LayerKind, heads: float, key: int, value: int) -> tuple[float, float]:
        """Attention proper, forward and backward."""
        plan, model, kernels = self.plan, self.model, self.kernels
        ranks = plan.context if plan.exchanges_heads else 1  # that have all tokens of some heads
        heads, rows = heads / ranks, plan.sequence * ranks / plan.context
        if kernels.software.has_flash_attention:
            seen = attended_tokens(model, kind, plan.sequence)
            flops = 2.0 * plan.micro_batch * heads * rows * seen * (key + value)
            width = key + value
            return kernels.flash_s(flops, 2 * seen, width), kernels.flash_s(flops, 2 * seen, width, backward=True)
        batch = plan.micro_batch * heads
        products_s = kernels.matmul_s(rows, plan.sequence, key, batch=batch, precision="bf16")
        products_s += kernels.matmul_s(rows, value, plan.sequence, batch=batch, precision="bf16")
        scores = batch * rows * plan.sequence
        dropout = 5 if model.has_dropout else 0
        more, steps = (
            (LOOSE_SOFTMAX_BYTES, LOOSE_SOFTMAX_OPERATIONS) if self._has_loose_softmax(kind) else ((0, 0), (0, 0))
        )
        forward_s = products_s + kernels.memory_s((4 + dropout + more[0]) * scores, 2 + steps[0])
        return forward_s, 2 * products_s + kernels.memory_s((6 + dropout + more[1]) * scores, 2 + steps[1])

    def _has_loose_softmax(self, kind: LayerKind) -> bool:
        """Whether scores are in memory and their softmax is separate."""
        plan, model = self.plan, self.model
        if kind.mixer not in {"attention", "window"} or self.kernels.software.has_flash_attention:
            return False
        heads = model.heads // (plan.tensor * plan.context if plan.exchanges_heads else plan.tensor)
        is_group = heads * plan.micro_batch % SOFTMAX_GROUP == 0
        return not is_group or plan.sequence not in SOFTMAX_ROWS

    def _state_space(self) -> Half:
        """Mamba-2: two products, a convolution, and a block scan of products."""
        space, plan = self.model.state_space, self.plan
        if space is None:
            return Half()
        inner = space.heads * space.head_dim / plan.tensor
        both = 2 * space.groups * space.state / plan.tensor
        tokens, hidden = plan.tokens, self.model.hidden
        width, behind = 2 * inner + both + space.heads / plan.tensor, plan.module_precision.mamba_out
        matrices = [
            _Product(tokens, width, hidden, cast=plan.own_tokens * hidden),
            _Product(tokens, hidden, inner, behind, tokens * inner),
        ]
        flops = tokens * scan_flops_per_token(space) / plan.tensor
        core = (self.kernels.scan_s(flops), self.kernels.scan_s(flops, backward=True))
        states = 8 * inner * space.state / SCAN_BLOCK  # of every block, four bytes a value, written and read
        products = 8 * space.groups * SCAN_BLOCK / plan.tensor  # of tokens of a block with each other, likewise
        moved = self.plan.tokens * (SCAN_INNER_BYTES * inner + SCAN_BOTH_BYTES * both + states + products)
        return self._half(matrices, moved, 2 * moved, (9, 16), core=core)

    def _delta(self) -> Half:
        """A gated delta net: two products, a convolution, and a block recurrence."""
        delta, plan = self.model.delta, self.plan
        if delta is None:
            return Half()
        keys, values = (
            count * width / plan.tensor
            for count, width in ((delta.key_heads, delta.key_dim), (delta.value_heads, delta.value_dim))
        )
        heads, state = delta.value_heads / plan.tensor, delta.key_dim * delta.value_dim
        hidden = self.model.hidden
        matrices = [
            _Product(plan.tokens, 2 * keys + 2 * values + 2 * heads, hidden, cast=plan.own_tokens * hidden),
            _Product(plan.tokens, hidden, values, cast=plan.tokens * values),
        ]
        # a token and head: keys by keys, both sides of the inverse, queries by keys, and those times values, in its
        # block; the state read for the correction and for the result, and written
        of_block = 2 * DELTA_BLOCK * (3 * delta.key_dim + 2 * delta.value_dim)
        flops = self.plan.tokens * heads * (of_block + 3 * 2 * state)
        core = (self.kernels.scan_s(flops), self.kernels.scan_s(flops, backward=True))
        between = heads * (delta.key_dim + delta.value_dim + DELTA_BLOCK + state / DELTA_BLOCK)
        moved = DELTA_KEY_BYTES * 2 * keys + DELTA_VALUE_BYTES * values + DELTA_BETWEEN_BYTES * between
        moved *= self.plan.tokens
        return self._half(matrices, moved, 2 * moved, (14, 18), core=core)

    def _dense(self) -> Half:
        model, plan = self.model, self.plan
        width = model.ffn / plan.tensor
        matrices = [
            _Product(plan.tokens, self._gates * width, model.hidden, cast=plan.own_tokens * model.hidden),
            _Product(plan.tokens, model.hidden, width, cast=plan.tokens * width),
        ]
        moved = ACTIVATION_BYTES[model.is_gated] * plan.tokens * width
        # the second product of three is half of the first one here, which has gate and input; of two it is the last
        second_s = self._forward_s(matrices[0]) / 2 if model.is_gated else self._forward_s(matrices[1])
        return self._half(matrices, moved, ACTIVATION_BACKWARD * moved, (2, 3), second_s=second_s)

    @property
    def _gates(self) -> int:
        return 2 if self.model.is_gated else 1

    def _experts(self) -> Half:
        """Router, shared experts, and this GPU's experts on their tokens."""
        model, plan, software = self.model, self.plan, self.kernels.software
        tokens, own = plan.tokens, plan.tokens / plan.tensor
        routed = own * plan.expert_tensor * model.experts_per_token  # rows of all experts of this GPU together
        outer = model.expert_hidden or model.hidden
        width = model.expert_ffn / plan.expert_tensor
        local = self._local_experts
        matrices = [_Product(own, model.experts, model.hidden, "bf16")]
        shared = model.shared_ffn / plan.tensor
        if model.shared_ffn:
            given = plan.own_tokens * model.hidden
            matrices.append(_Product(tokens, self._gates * shared, model.hidden, cast=given))
            matrices.append(_Product(tokens, model.hidden, shared, cast=tokens * shared))
        if model.expert_hidden:
            latent = plan.module_precision.latent
            matrices += [_Product(own, outer, model.hidden, latent), _Product(own, model.hidden, outer, latent)]
        inside = 0.0 if software.has_fused_activations else routed * width
        batch, times, streams = (1.0, local, software.expert_streams) if software.expert_streams else (local, 1.0, 1)
        for columns, inner, cast in ((self._gates * width, outer, routed * outer), (outer, width, inside)):
            matrices.append(
                _Product(routed / local, columns, inner, cast=cast, batch=batch, times=times, streams=streams)
            )
        moved = ACTIVATION_BYTES[model.is_gated] * (tokens * shared + inside)
        permuted = PERMUTATIONS[software.has_deduplicated_experts] * PERMUTE_BYTES * routed * outer
        kernels = MIXTURE_KERNELS + ROUTER_OPERATIONS[software.has_fused_router]
        kernels += PREPROCESS_OPERATIONS[software.has_deduplicated_experts]
        casts = 2 * round(local) if software.expert_streams and plan.precision != "bf16" else 0
        activation_s = self.kernels.memory_s(ACTIVATION_BYTES[model.is_gated] * inside, 1) if inside else 0.0
        half = self._half(
            matrices,
            moved + permuted,
            ACTIVATION_BACKWARD * moved + permuted,
            (kernels + casts, kernels + casts),
            again=[("moe_act", activation_s)],
        )
        return _recomputable(half, "moe")

    def _half(
        self,
        matrices: list[_Product],
        moved: float,
        moved_backward: float,
        operations: tuple[int, int],
        *,
        core: tuple[float, float] = (0.0, 0.0),
        again: Sequence[tuple[RecomputeModule, float]] = (),
        second_s: float = 0.0,
    ) -> Half:
        """Add norm and residual add to the kernels of half a layer."""
        kernels, model = self.kernels, self.model
        stream = self.plan.own_tokens * model.hidden
        cast_bytes = sum(CAST_BYTES[product.precision or self.plan.precision] * product.cast for product in matrices)
        forward = (NORM_BYTES + ADD_BYTES[model.has_dropout]) * stream + moved + cast_bytes
        backward = (NORM_BACKWARD_BYTES + ADD_BACKWARD_BYTES) * stream + moved_backward + 1.5 * cast_bytes
        weights_s = 0.0 if self.plan.has_lora else sum(map(self._weights_s, matrices))
        memory_s = kernels.memory_s(forward, operations[0])
        return Half(
            matmul_s=sum(map(self._forward_s, matrices)),
            core_s=core[0],
            memory_s=memory_s,
            matmul_backward_s=sum(map(self._inputs_s, matrices)) + weights_s,
            core_backward_s=core[1],
            memory_backward_s=kernels.memory_s(backward, operations[1]),
            weights_s=weights_s,
            again_s=(*again, ("layernorm", kernels.memory_s(NORM_BYTES * stream, 1))),
            operations_s=memory_s + second_s,
        )

    def _forward_s(self, product: _Product) -> float:
        """Time of the product of an input with a weight."""
        return self._product_s(product, product.rows, product.columns, product.inner)

    def _inputs_s(self, product: _Product) -> float:
        """Time of the input gradient."""
        return self._product_s(product, product.rows, product.inner, product.columns)

    def _weights_s(self, product: _Product) -> float:
        """Time of the weight gradient, which is accumulated: read and written."""
        added = 2.0 * self.plan.gradient_bytes
        return self._product_s(product, product.inner, product.columns, product.rows, result_bytes=added)

    def _product_s(
        self, product: _Product, rows: float, columns: float, inner: float, *, result_bytes: float = RESULT_BYTES
    ) -> float:
        taken_s = self.kernels.matmul_s(
            rows, columns, inner, batch=product.batch, precision=product.precision, result_bytes=result_bytes
        )
        tails_s = (product.times - product.times / product.streams) * self.kernels.tail_s  # hidden behind other streams
        return product.times * taken_s - tails_s


def _recomputable(half: Half, module: RecomputeModule) -> Half:
    """Half a layer that is a single module."""
    return replace(half, again_s=(*half.again_s, (module, half.forward_s)))


@dataclass(frozen=True, slots=True)
class _Product:
    """A matrix product of the forward pass, [rows, inner] x [inner, columns].

    Attributes
    ----------
    rows, columns, inner : its shape on this GPU
    precision : where it is not the layer's
    cast : elements of its input that are cast to that precision
    batch, times : products in one kernel, and kernels
    streams : on which kernels run side by side, so that the tail of each hides behind others
    """

    rows: float
    columns: float
    inner: float
    precision: Precision | None = None
    cast: float = 0.0
    batch: float = 1.0
    times: float = 1.0
    streams: int = 1
