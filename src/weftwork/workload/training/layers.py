"""How long a unit of a model computes for one micro batch on one GPU, and how many parameters that GPU holds of it.

A layer has two halves, the mixer of tokens (attention or a state space) and the MLP (dense or experts), each with
matrix products, a core (attention proper) and kernels bound by memory: norms, residual adds, activations, casts to
smaller formats, permutations of tokens. Backward passes have two products for each forward one, or one where weights
have no gradient (LoRA).
Source: Korthikanti et al., arXiv:2205.05198 (what a layer consists of); Dao, arXiv:2307.08691 (flash attention);
Dao and Gu, arXiv:2405.21060, section 6 (state spaces in blocks).
Gradients of weights are a time of their own, which schedules that split backward passes run later: matrix products
alone, all else of a backward pass stays with the gradients of inputs.
Leaves out: adapters of LoRA; load imbalance of experts; capacity factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weftwork.spec.training import Model, Parallelism, Precision
from weftwork.workload.models.size import (
    LayerKind,
    attended_tokens,
    attention_parameters,
    expert_parameters,
    mlp_parameters,
    state_space_parameters,
)
from weftwork.workload.parallelism.layout import Unit
from weftwork.workload.training.kernels import Kernels

__all__ = ["Half", "UnitWork", "unit_work"]

# Bytes of an element of the residual stream: a norm reads and writes it (4), an add with dropout reads two and a mask
# and writes one (7, without dropout 6). Backward: both again.
NORM_BYTES: Final = 4
NORM_BACKWARD_BYTES: Final = 6
ADD_BYTES: Final = {True: 7, False: 6}
ADD_BACKWARD_BYTES: Final = 5
ACTIVATION_BYTES: Final = {True: 6, False: 4}  # gated: two inputs, one output
ACTIVATION_BACKWARD: Final = 1.6  # times the bytes forward
# Read 2, write twice, by row and by column; NVFP4 has a scale for the whole tensor, for which it is read once more
# (arXiv:2509.25149, section 2)
CAST_BYTES: Final[dict[Precision, float]] = {"bf16": 0.0, "fp8": 4.0, "mxfp8": 4.0, "nvfp4": 5.125}
PERMUTE_BYTES: Final = 8  # of tokens to experts and back
LOSS_BYTES: Final = 14  # of a logit, forward: written by the product, read twice as 4 bytes
LOSS_BACKWARD_BYTES: Final = 10
EMBEDDING_BYTES: Final = 8
# Operations that the CPU launches, counted in eager Megatron-LM: 26 + 45 a dense layer, 96 + 145 a mixture of experts;
# chosen: how they split over the halves
MIXER_OPERATIONS: Final = (14, 24)
MLP_OPERATIONS: Final = {"dense": (12, 21), "experts": (82, 121), "none": (0, 0)}
# Bytes of a channel that a state space moves forward: convolution 4, scan 4, gate and norm 6; of the shared ones 8
SCAN_INNER_BYTES: Final = 14
SCAN_BOTH_BYTES: Final = 8
SCAN_BLOCK: Final = 256  # tokens that a state space works on at once: state-spaces/mamba, chunk_size of Mamba-2


@dataclass(frozen=True, kw_only=True, slots=True)
class Half:
    """Seconds of computing of half a layer, by what can hide behind what."""

    matmul_s: float = 0.0
    core_s: float = 0.0
    memory_s: float = 0.0
    matmul_backward_s: float = 0.0
    core_backward_s: float = 0.0
    memory_backward_s: float = 0.0
    weights_s: float = 0.0  # of matmul_backward_s: products that give gradients of weights

    @property
    def forward_s(self) -> float:
        """All of the forward pass."""
        return self.matmul_s + self.core_s + self.memory_s

    @property
    def backward_s(self) -> float:
        """All of the backward pass, recomputation not."""
        return self.matmul_backward_s + self.core_backward_s + self.memory_backward_s


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitWork:
    """What a unit costs on one GPU.

    Attributes
    ----------
    halves : in the order of the forward pass, by name: mixer, mlp, embedding, head, and join in a prediction module
    operations, operations_backward : that the CPU launches
    parameters, expert_parameters : that this GPU holds, those of routed experts apart
    """

    halves: tuple[tuple[str, Half], ...]
    operations: float = 0.0
    operations_backward: float = 0.0
    parameters: float = 0.0
    expert_parameters: float = 0.0

    @property
    def forward_s(self) -> float:
        """Computing of the forward pass."""
        return sum(half.forward_s for _, half in self.halves)

    @property
    def backward_s(self) -> float:
        """Computing of the backward pass, recomputation not."""
        return sum(half.backward_s for _, half in self.halves)

    @property
    def weights_s(self) -> float:
        """Gradients of weights, a part of the backward pass."""
        return sum(half.weights_s for _, half in self.halves)

    @property
    def core_s(self) -> float:
        """Attention proper, forward: what selective recomputation does again."""
        return sum(half.core_s for _, half in self.halves)


def unit_work(unit: Unit, model: Model, plan: Parallelism, kernels: Kernels) -> UnitWork:
    """What a unit of a model costs under a plan.

    Parameters
    ----------
    unit : a layer, or an end of the model
    model, plan : as they are
    kernels : the GPU's
    """
    shapes = _Shapes(model=model, plan=plan, kernels=kernels)
    if unit.part == "embedding":
        return shapes.embedding()
    if unit.part == "head":
        return shapes.head()
    layer = unit.layer if unit.layer is not None else LayerKind(mixer="attention", mlp="dense")
    found = shapes.layer(layer)
    return shapes.prediction(found) if unit.part == "prediction" else found


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shapes:
    """Shapes of a plan; widths of tensors are per GPU."""

    model: Model
    plan: Parallelism
    kernels: Kernels

    def layer(self, kind: LayerKind) -> UnitWork:
        """Both halves of a layer, as far as it has them."""
        halves: list[tuple[str, Half]] = []
        forward = backward = dense = experts = 0.0
        model, plan = self.model, self.plan
        if kind.mixer != "none":
            is_state = kind.mixer == "state-space"
            halves.append(("mixer", self._state_space() if is_state else self._attention(kind)))
            forward += MIXER_OPERATIONS[0]
            backward += MIXER_OPERATIONS[1]
            dense += (state_space_parameters(model) if is_state else attention_parameters(model)) / plan.tensor
        if kind.mlp != "none":
            halves.append(("mlp", self._experts() if kind.mlp == "experts" else self._dense()))
            forward += MLP_OPERATIONS[kind.mlp][0]
            backward += MLP_OPERATIONS[kind.mlp][1]
        if kind.mlp == "dense":
            dense += mlp_parameters(model, model.ffn) / plan.tensor
        if kind.mlp == "experts":
            local = model.experts / plan.expert
            dense += model.hidden * (model.experts + 2 * model.expert_hidden)
            dense += mlp_parameters(model, model.shared_ffn) / plan.tensor
            experts = local * expert_parameters(model) / plan.expert_tensor
            if not self.kernels.software.has_fused_experts:
                forward += 2 * local
                backward += 4 * local
        return UnitWork(
            halves=tuple(halves),
            operations=forward,
            operations_backward=backward,
            parameters=dense,
            expert_parameters=experts,
        )

    def prediction(self, layer: UnitWork) -> UnitWork:
        """A module that predicts a further token: a layer, a product that joins two hidden vectors, a loss head."""
        hidden = self.model.hidden
        join = self._half([(self.plan.own_tokens, hidden, 2 * hidden)], 0.0, 0.0, (2, 3))
        head = self.head()
        return UnitWork(
            halves=(("join", join), *layer.halves, *head.halves),
            operations=layer.operations,
            operations_backward=layer.operations_backward,
            parameters=layer.parameters + 2 * hidden * hidden / self.plan.tensor,
            expert_parameters=layer.expert_parameters,
        )

    def embedding(self) -> UnitWork:
        """Looking tokens up; its gradient is added where they were."""
        model, plan = self.model, self.plan
        moved = EMBEDDING_BYTES * self.plan.tokens * model.hidden
        memory_s = self.kernels.memory_s(moved, 3)
        return UnitWork(
            halves=(("embedding", Half(memory_s=memory_s, memory_backward_s=memory_s)),),
            parameters=model.vocabulary * model.hidden / plan.tensor,
        )

    def head(self) -> UnitWork:
        """Logits and the loss. On one stage with the embedding a tied matrix counts once."""
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
        """Backward products for each forward one."""
        return 1 if self.plan.has_lora else 2

    def _attention(self, kind: LayerKind) -> Half:
        model, plan = self.model, self.plan
        heads = model.heads / plan.tensor
        latent = model.latent_attention
        if latent is None:
            key = value = model.head_dim
            matrices = [
                (self.plan.tokens, key * (model.heads + 2 * model.key_value_heads) / plan.tensor, model.hidden),
                (self.plan.tokens, model.hidden, key * heads),
            ]
        else:
            key, value = latent.no_position_dim + latent.rope_dim, latent.value_dim
            rank = latent.query_rank
            query = (self.plan.tokens, key * heads, rank or model.hidden)
            compressed = [(self.plan.tokens, rank, model.hidden)] if rank else []
            matrices = [
                *compressed,
                query,
                (self.plan.tokens, latent.key_value_rank + latent.rope_dim, model.hidden),
                (self.plan.tokens, (latent.no_position_dim + value) * heads, latent.key_value_rank),
                (self.plan.tokens, model.hidden, value * heads),
            ]
        core_s, core_backward_s = self._core(kind, heads, key, value)
        rotating = heads + model.key_value_heads / plan.tensor
        rotated = 0.0 if model.has_dropout else 4 * plan.tokens * key * rotating
        cast = self.plan.own_tokens * model.hidden + self.plan.tokens * value * heads
        return self._half(
            [matrix for matrix in matrices if matrix[1]],
            rotated,
            rotated,
            (2, 2),
            cast=cast,
            core=(core_s, core_backward_s),
        )

    def _core(self, kind: LayerKind, heads: float, key: int, value: int) -> tuple[float, float]:
        """Attention proper, forward and backward."""
        plan, model, kernels = self.plan, self.model, self.kernels
        rows = plan.sequence / plan.context
        if kernels.software.has_flash_attention:
            seen = attended_tokens(model, kind, plan.sequence)
            flops = 2.0 * plan.micro_batch * heads * rows * seen * (key + value)
            return kernels.flash_s(flops, 2 * seen), kernels.flash_s(flops, 2 * seen, backward=True)
        batch = plan.micro_batch * heads
        products_s = kernels.matmul_s(rows, plan.sequence, key, batch=batch, precision="bf16")
        products_s += kernels.matmul_s(rows, value, plan.sequence, batch=batch, precision="bf16")
        scores = batch * rows * plan.sequence
        dropout = 5 if model.has_dropout else 0
        forward_s = products_s + kernels.memory_s((4 + dropout) * scores, 2)
        return forward_s, 2 * products_s + kernels.memory_s((6 + dropout) * scores, 2)

    def _state_space(self) -> Half:
        """Mamba-2: two products, a convolution, and a scan in blocks that is made of products."""
        space, plan = self.model.state_space, self.plan
        if space is None:
            return Half()
        inner = space.heads * space.head_dim / plan.tensor
        both = 2 * space.groups * space.state / plan.tensor
        matrices: list[tuple[float, float, float]] = [
            (self.plan.tokens, 2 * inner + both + space.heads / plan.tensor, self.model.hidden),
            (self.plan.tokens, self.model.hidden, inner),
        ]
        of_head = 2 * SCAN_BLOCK * space.head_dim + 4 * space.state * space.head_dim
        of_group = 2 * SCAN_BLOCK * space.state
        flops = self.plan.tokens * (space.heads * of_head + space.groups * of_group) / plan.tensor
        core = (self.kernels.scan_s(flops), self.kernels.scan_s(flops, backward=True))
        states = 8 * inner * space.state / SCAN_BLOCK  # of every block, four bytes a value, written and read
        products = 8 * space.groups * SCAN_BLOCK / plan.tensor  # of tokens of a block with each other, likewise
        moved = self.plan.tokens * (SCAN_INNER_BYTES * inner + SCAN_BOTH_BYTES * both + states + products)
        cast = self.plan.own_tokens * self.model.hidden + self.plan.tokens * inner
        return self._half(matrices, moved, 2 * moved, (9, 16), cast=cast, core=core)

    def _dense(self) -> Half:
        model, plan = self.model, self.plan
        width = model.ffn / plan.tensor
        matrices: list[tuple[float, float, float]] = [
            (self.plan.tokens, (2 if model.is_gated else 1) * width, model.hidden),
            (self.plan.tokens, model.hidden, width),
        ]
        moved = ACTIVATION_BYTES[model.is_gated] * self.plan.tokens * width
        cast = self.plan.own_tokens * model.hidden + self.plan.tokens * width
        return self._half(matrices, moved, ACTIVATION_BACKWARD * moved, (2, 3), cast=cast)

    def _experts(self) -> Half:
        """Router, shared experts, and the experts of this GPU, on the tokens that come to them."""
        model, plan, kernels = self.model, self.plan, self.kernels
        gates = 2 if model.is_gated else 1
        own = self.plan.tokens / plan.tensor
        routed = own * plan.expert_tensor * model.experts_per_token  # rows of all experts of this GPU together
        outer = model.expert_hidden or model.hidden
        width = model.expert_ffn / plan.expert_tensor
        local = model.experts / plan.expert
        matrices: list[tuple[float, float, float]] = [(own, model.experts, model.hidden)]
        if model.shared_ffn:
            shared = model.shared_ffn / plan.tensor
            matrices += [(self.plan.tokens, gates * shared, model.hidden), (self.plan.tokens, model.hidden, shared)]
        if model.expert_hidden:
            matrices += [(own, outer, model.hidden), (own, model.hidden, outer)]
        shared_width = self.plan.tokens * model.shared_ffn / plan.tensor
        hidden_width = shared_width + (0.0 if kernels.software.has_fused_activations else routed * width)
        moved = ACTIVATION_BYTES[model.is_gated] * hidden_width
        permuted = PERMUTE_BYTES * routed * outer
        half = self._half(
            matrices,
            moved + permuted,
            ACTIVATION_BACKWARD * moved + permuted,
            (8, 9),
            cast=(self.plan.own_tokens * model.hidden if model.shared_ffn else 0.0) + routed * outer + hidden_width,
        )
        batch, times = (local, 1.0) if kernels.software.has_fused_experts else (1.0, local)
        rows = routed / local
        forward_s = backward_s = weights_s = 0.0
        for columns, inner in ((gates * width, outer), (outer, width)):
            forward_s += times * kernels.matmul_s(rows, columns, inner, batch=batch)
            backward_s += times * kernels.matmul_s(rows, inner, columns, batch=batch)
            if not plan.has_lora:
                gradient_s = times * kernels.matmul_s(inner, columns, rows, batch=batch)
                backward_s += gradient_s
                weights_s += gradient_s
        return Half(
            matmul_s=half.matmul_s + forward_s,
            memory_s=half.memory_s,
            matmul_backward_s=half.matmul_backward_s + backward_s,
            memory_backward_s=half.memory_backward_s,
            weights_s=half.weights_s + weights_s,
        )

    def _half(
        self,
        matrices: list[tuple[float, float, float]],
        moved: float,
        moved_backward: float,
        operations: tuple[int, int],
        *,
        cast: float = 0.0,
        core: tuple[float, float] = (0.0, 0.0),
    ) -> Half:
        """Add the norm and the residual add of every half to its own kernels."""
        kernels, model = self.kernels, self.model
        stream = self.plan.own_tokens * model.hidden
        cast_bytes = CAST_BYTES[self.plan.precision] * cast
        forward = (NORM_BYTES + ADD_BYTES[model.has_dropout]) * stream + moved + cast_bytes
        backward = (NORM_BACKWARD_BYTES + ADD_BACKWARD_BYTES) * stream + moved_backward + 1.5 * cast_bytes
        products_s = products_backward_s = weights_s = 0.0
        for rows, columns, inner in matrices:
            products_s += kernels.matmul_s(rows, columns, inner)
            products_backward_s += kernels.matmul_s(rows, inner, columns)
            if not self.plan.has_lora:
                gradient_s = kernels.matmul_s(inner, columns, rows)
                products_backward_s += gradient_s
                weights_s += gradient_s
        return Half(
            matmul_s=products_s,
            core_s=core[0],
            memory_s=kernels.memory_s(forward, operations[0]),
            matmul_backward_s=products_backward_s,
            core_backward_s=core[1],
            memory_backward_s=kernels.memory_s(backward, operations[1]),
            weights_s=weights_s,
        )
